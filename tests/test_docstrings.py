"""Docstrings of all public names: each part is there, and each example runs as copied.

The examples of all modules run by pytest's --doctest-modules, each in an empty namespace: see
`pytest_collection_modifyitems` in conftest.py. Those that need results, workers or an optional
package are skipped there, and run here.
"""

import ast
import builtins
import doctest
import inspect
import re
from importlib.util import find_spec

import paper_sweep
import pytest
from numpydoc.docscrape import NumpyDocString

import bqlib
from bqlib import discrepancy, integrands, likelihood, posterior, sharded, weights
from bqlib.designs.frank_wolfe import line_search
from bqlib.kernels import ProductKernel, ScaledKernel, SumKernel

LONGEST_SIGNATURE = 200  # two lines of help()
SWEEP = """
name: quick
targets: [chen2010_mixture]
kernels: {eq: {family: exponentiated_quadratic}}
lengthscales: [0.5]
algorithms: [herding, sbq]
candidates: {size: 60}
n: 8
seeds: 2
rate_windows: [[2, 8]]
"""
NEEDS = {"export": "xarray", "open_results": "xarray"}
VAGUE = re.compile("argument is wrong|out of (its|their) range")
SKIP = re.compile(r"\s*# doctest: \+SKIP")


def of_module(module):
    """What a module defines under a name without an underscore, but for its exceptions."""
    return {
        f"{module.__name__.removeprefix('bqlib.')}.{name}": found
        for name, found in vars(module).items()
        if not name.startswith("_")
        and inspect.isroutine(found) | inspect.isclass(found)
        and found.__module__ == module.__name__
        and not (inspect.isclass(found) and issubclass(found, Exception))
    }


PUBLIC = {name: getattr(bqlib, name) for name in bqlib.__all__}
OF_MODULES = {
    name: found
    for module in (weights, discrepancy, posterior, integrands, likelihood, sharded)
    for name, found in of_module(module).items()
    if found not in PUBLIC.values()
}
OF_MODULES |= {"line_search": line_search}  # the weight rule of Frank-Wolfe
OF_MODULES |= {kind.__name__: kind for kind in (SumKernel, ScaledKernel, ProductKernel)}
NAMES = PUBLIC | OF_MODULES


def methods(name, cls):
    """The functions and properties that users of a class see, whichever base has them."""
    ours = [base for base in cls.__mro__ if base.__module__.startswith("bqlib.")]
    for method in dict.fromkeys(key for base in ours for key in vars(base)):
        found = inspect.getattr_static(cls, method)
        found = getattr(found, "func", found)  # of a cached property
        shown = method == "__call__" or not method.startswith("_")
        if shown and (inspect.isfunction(found) or isinstance(found, property)):
            yield f"{name}.{method}", found


METHODS = dict(
    pair for name, found in NAMES.items() if inspect.isclass(found) for pair in methods(name, found)
)


def takes(function):
    """Names of the parameters of a function, or of what makes an instance of a class."""
    return [name for name in inspect.signature(function).parameters if name != "self"]


def lacking(function):
    """What the docstring of a public name does not say."""
    text = inspect.getdoc(function) or ""
    parts = NumpyDocString(text)
    described = parts["Parameters"] + parts["Attributes"]
    names = [name.strip("*") for part in described for name in part.name.split(", ")]
    wanted = [f"the parameter {name}" for name in takes(function) if name not in names]
    wanted += [f"the type of {part.name}" for part in described if not part.type]
    made = inspect.isclass(function) and function not in PUBLIC.values()  # by a function
    if not inspect.isclass(function):
        wanted += ["Returns"] * (not parts["Returns"])
    if not made:
        causes = [" ".join(part.desc) for part in parts["Raises"]]
        wanted += ["Raises"] * (not causes or "" in causes)
        wanted += ["what makes an argument wrong"] * any(map(VAGUE.search, causes))
        wanted += ["the cost, O(...)"] * ("O(" not in text)
    wanted += ["Examples"] * (">>>" not in "".join(parts["Examples"]))
    return wanted


def test_a_docstring_has_all_parts():
    found = {name: lacking(function) for name, function in NAMES.items()}
    assert {name: parts for name, parts in found.items() if parts} == {}


def test_what_a_docstring_lacks_is_found():
    def rule(points, *, rng):
        """A rule.

        Parameters
        ----------
        points

        Raises
        ------
        ValueError
            If an argument is wrong.
        """

    assert lacking(rule) == [
        "the parameter rng",
        "the type of points",
        "Returns",
        "what makes an argument wrong",
        "the cost, O(...)",
        "Examples",
    ]


def unnamed(method):
    """Parameters of a method that its docstring does not name; or that it has no docstring."""
    text = inspect.getdoc(method)
    if not text:
        return ["docstring"]
    named = takes(method) if inspect.isfunction(method) else []
    return [name for name in named if not re.search(rf"\b{name}\b", text)]


def test_a_method_says_what_it_takes():
    found = {name: unnamed(method) for name, method in METHODS.items()}
    assert len(found) > 90
    assert {name: parts for name, parts in found.items() if parts} == {}


def test_a_parameter_that_a_method_does_not_name_is_found():
    def draw(self, n, rng):
        """Draw n points."""

    assert unnamed(draw) == ["rng"]


def test_help_shows_a_signature_in_two_lines():
    functions = {k: v for k, v in (NAMES | METHODS).items() if not isinstance(v, property)}
    lengths = {name: len(str(inspect.signature(found))) for name, found in functions.items()}
    assert {k: n for k, n in lengths.items() if n > LONGEST_SIGNATURE} == {}


def unbound(text):
    """Names that the examples of a docstring use and do not bind themselves."""
    code = "".join(example.source for example in doctest.DocTestParser().get_examples(text))
    nodes = list(ast.walk(ast.parse(code)))
    bound = {alias.asname or alias.name for n in nodes for alias in getattr(n, "names", ())}
    bound |= {n.arg for n in nodes if isinstance(n, ast.arg)}
    bound |= {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
    used = {n.id for n in nodes if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
    return used - bound - vars(builtins).keys()


def test_an_example_imports_what_it_uses():
    found = {name: unbound(inspect.getdoc(made)) for name, made in (NAMES | METHODS).items()}
    assert {name: names for name, names in found.items() if names} == {}


def test_a_name_that_an_example_does_not_import_is_found():
    assert unbound(">>> import numpy as np\n>>> x = np.ones(3)\n>>> sbq(x)") == {"sbq"}


SKIPPED = [name for name, found in NAMES.items() if SKIP.search(inspect.getdoc(found))]


@pytest.fixture(scope="module")
def results(tmp_path_factory):
    """A folder with the results of a sweep in results/quick."""
    folder = tmp_path_factory.mktemp("project")
    (folder / "results" / "quick").mkdir(parents=True)
    paper_sweep.run(folder / "results" / "quick", SWEEP)
    return folder


@pytest.mark.parametrize("name", SKIPPED)
def test_examples_that_need_more_run_as_copied(name, results, monkeypatch):
    needed = NEEDS.get(name, "distributed")
    if find_spec(needed) is None:
        pytest.skip(f"{needed} is an optional extra")
    monkeypatch.chdir(results)
    text = SKIP.sub("", inspect.getdoc(NAMES[name]))
    example = doctest.DocTestParser().get_doctest(text, {}, name, None, None)
    said = []
    assert doctest.DocTestRunner().run(example, out=said.append).failed == 0, "".join(said)


def test_only_what_needs_more_is_skipped():
    assert {*SKIPPED} == {*NEEDS, "sharded.sbq", "sharded.herding"}
