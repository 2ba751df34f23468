import json
import re
import sys
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import xarray as xr
from documented import DOCS, documented_files
from project import QUICK

from bqlib.analysis.cells import embedding_of
from bqlib.embeddings import embedding
from bqlib.running.errors import OtherCodeError
from bqlib.running.worker import attempt, versions
from bqlib.streams import stream
from bqlib.sweep import plugins, registry
from bqlib.sweep.file import load
from bqlib.sweep.plugins import PluginError
from bqlib.sweep.words import SweepError

RING = documented_files("plugins.md")["ring.py"]
OTHERS = '''
from typing import Literal

import numpy as np
from numpy.typing import ArrayLike

from bqlib import Embedding, ExponentiatedQuadratic, GaussianMixture
from bqlib.designs.design import Design, checked_request
from bqlib.embeddings import embed, register
from bqlib.integrands import Integrands
from bqlib.kernels import Kernel
from bqlib.weights import PrefixWeights, uniform


class Pair(GaussianMixture):
    """Two bumps at a place."""

    def __init__(self, place: np.ndarray, share: float = 0.5, far: float = np.inf, by=np.ones(2)):
        place = np.minimum(place * by, far)
        place = place / 1  # an array, and no list
        super().__init__([share, 1 - share], [place, -place], [np.eye(2)] * 2)


class Part(Kernel):
    """An inner kernel, with an embedding of its own."""

    dim = None

    def __init__(self, lengthscale):
        self.inner = ExponentiatedQuadratic(lengthscale)

    def __call__(self, x, y):
        return self.inner(x, y)

    def diagonal(self, x):
        return self.inner.diagonal(x)

    def gradient(self, x, y):
        return self.inner.gradient(x, y)


class Twice(Part):
    """Twice that kernel."""

    def __init__(self, lengthscale, factor: float = 2.0):
        self.part, self.factor = Part(lengthscale), factor

    def __call__(self, x, y):
        return self.factor * self.part(x, y)

    def diagonal(self, x):
        return self.factor * self.part.diagonal(x)

    def gradient(self, x, y):
        return self.factor * self.part.gradient(x, y)


@register(Part, GaussianMixture)
def part_mixture(kernel, target):
    found = embed(kernel.inner, target)
    return Embedding(
        kernel, target, found.kernel_mean, found.kernel_mean_gradient, found.prior_variance
    )


@register(Twice, GaussianMixture)
def twice_mixture(kernel, target):
    found, factor = embed(kernel.part, target), kernel.factor
    return Embedding(
        kernel,
        target,
        lambda x: factor * found.kernel_mean(x),
        lambda x: factor * found.kernel_mean_gradient(x),
        factor * found.prior_variance,
    )


def every(target, kernel, n, *, rng, candidates, initial=None, step: int = 1, offset=0):
    request = checked_request(target, kernel, n, rng, candidates, initial)
    return Design(request.embedding, request.pool[offset::step][:n], uniform)


def shrunk(embedding, points, *, by: float = 0.9):
    return PrefixWeights(by * uniform(embedding, points).matrix)


def typed(
    embedding,
    points,
    *,
    word: Literal["one", "two"] = "one",
    count: int | None = None,
    array: ArrayLike = (1.0, 2.0),
    flag=True,
    later: "NotThere" = None,
):
    return word, count, array, flag, later


def coordinates(embedding, rng, *, signs: np.ndarray):
    return Integrands(lambda x: x * signs, np.zeros(2))
'''
SWEEP = """\
name: tiny
targets: [{name: pair, family: others.py:Pair, place: [1, 2]}]
kernels:
  eq: {family: exponentiated_quadratic}
  twice: {family: ./others.py:Twice, shape: [1, 2]}
lengthscales: [0.5]
algorithms:
  - iid
  - {name: mine, design: {family: others.py:every, step: 3}, weights: others.py:shrunk}
candidates: {size: 100}
integrands:
  all: {family: others.py:coordinates, signs: [1, -1]}
n: 10
seeds: 1
rate_windows: [[2, 10]]
"""


@pytest.fixture
def written(tmp_path, monkeypatch):
    """Write files into a folder of the working directory, by name and text; give the folder."""
    monkeypatch.chdir(tmp_path)

    def write(folder="", **files):
        place = tmp_path / folder
        place.mkdir(exist_ok=True, parents=True)
        for name, text in {"ring": RING, "others": OTHERS, **files}.items():
            (place / f"{name}.py").write_text(text)
        (place / "sweep.yaml").write_text(SWEEP)
        return place

    return write


def edited(text, *edits):
    for old, new in edits:
        assert text.count(old) == 1, old
        text = text.replace(old, new)
    return text


def test_plugins_of_every_kind_run_from_their_files(written):
    sweep = load(written() / "sweep.yaml")
    iid, mine, *_ = [sweep.spec(cell) for cell in sweep.cells()[2:]]
    target, kernel = mine.build()
    assert target.means.tolist() == [[1, 2], [-1, -2]]
    assert kernel.part.inner.lengthscale.tolist() == [0.5, 1.0] and kernel.factor == 2
    curves, _ = mine.run(0)
    assert curves["weight_sum"] == pytest.approx(np.full(10, 0.9))
    pool = sweep.candidates.draw(target, stream("candidates", 0))
    assert np.array_equal(curves["points"], pool[::3][:10])
    assert curves["error"].shape == (10, 1) and np.isfinite(curves["mmd"]).all()
    assert iid.run(0)[0]["weight_sum"] == pytest.approx(np.ones(10))


def test_the_canonical_form_has_full_paths_and_only_parameters_that_were_changed(written):
    folder = written("a folder")
    found = load(folder / "sweep.yaml").canonical()
    assert found["targets"]["pair"] == {
        "family": f"{folder}/others.py:Pair",
        "place": [1.0, 2.0],
        "share": 0.5,
    }
    assert found["algorithms"][1] == {
        "name": "mine",
        "design": f"{folder}/others.py:every",
        "weights": f"{folder}/others.py:shrunk",
        "design_parameters": {"step": 3},
        "weights_parameters": {},
        "sizes": [],
    }


def test_a_target_file_names_plugins_from_where_it_is(written):
    folder = written("here")
    (folder / "small.json").write_text('{"family": "ring.py:Ring", "radius": 0.5}')
    text = SWEEP.replace("{name: pair, family: others.py:Pair, place: [1, 2]}", "here/small.json")
    text = text.replace("./others.py:Twice, shape: [1, 2]", "exponentiated_quadratic")
    Path("sweep.yaml").write_text(text.replace("others.py", "here/others.py"))
    sweep = load("sweep.yaml")
    assert sweep.build_targets()["small"].radius == 0.5


BAD = """\
name: tiny
targets:
  - {name: a, family: ring.py:Rinc}
  - {name: b, family: ring.py:Ring, radius: -2}
  - {name: c, family: rin.py:Ring}
  - ring.py:Ring
  - {family: ring.py:Ring, raduis: 3}
  - {name: d, family: ring.py:Ring, radius: wide}
  - {name: e, family: broken.py:Ring}
  - {name: f, family: lonely.py:Ring}
  - {name: g, family: failing.py:Failing}
  - {name: h, family: others.py:every}
kernels:
  a: {family: no_such_package.kernels:Mine}
  b: {family: ring.py:Ring}
  c: {family: ring}
lengthscales: [0.5]
algorithms:
  - {name: a, design: {family: others.py:every, step: 1.5, stop: 2}, weights: others.py:every}
  - {name: b, design: {family: block_sbq, block: x, memory: 3}, weights: 3}
  - {name: c, design: ring.py, weights: others.py:Part}
  - {name: d, design: made.py:made, weights: made.py:shadow}
n: 10
seeds: 1
rate_windows: [[2, 10]]
"""


@pytest.mark.parametrize("where", ["", "    def __init__(self):\n        "])
def test_a_plugin_that_exits_does_not_end_the_check(written, where):
    written(leaving=f"import sys\n\nclass Leaving:\n    dim = 2\n\n{where}sys.exit(0)\n")
    text = SWEEP.replace("others.py:Pair, place: [1, 2]", "leaving.py:Leaving")
    Path("leaving.yaml").write_text(text)
    with pytest.raises(SweepError, match=r"SystemExit in leaving\.py:\d: 0"):
        load("leaving.yaml")


def test_all_that_is_wrong_with_plugins_is_told_at_once(written):
    folder = written(
        broken="class Ring:\n    dim = = 2\n",
        lonely="import ring\n",
        failing="class Failing:\n    dim = 2\n\n    def __init__(self):\n        self.x = {}[1]\n",
        made="from functools import partial\n\ndef make():\n    def made(target, kernel, n, rng, "
        "candidates):\n        pass\n    return made\n\nmade, shadow = make(), partial(make)\n",
    )
    Path("bad.yaml").write_text(BAD)
    with pytest.raises(SweepError) as raised:
        load("bad.yaml")
    assert [line.removeprefix("bad.yaml:") for line in raised.value.problems] == [
        f'3: targets[0].family: {folder}/ring.py has no "Rinc"; did you mean "Ring"? It has: Ring, '
        "exponentiated_quadratic_ring",
        "4: targets[1].radius: radius is -2; it must be positive",
        f'5: targets[2].family: there is no file {folder}/rin.py; did you mean "ring.py"? '
        "Every machine of a run must see the file under this path",
        '6: targets[3]: give the target a name: {name: ..., family: "ring.py:Ring"}',
        "7: targets[4].name: missing: give the label that results carry",
        '7: targets[4].raduis: unknown key "raduis"; did you mean "radius"? Allowed: family, '
        "radius, name, about, source, licence",
        '8: targets[5].radius: must be a number, not the text "wide"',
        f"9: targets[6].family: {folder}/broken.py cannot be loaded: {folder}/broken.py:2: "
        "invalid syntax",
        f"10: targets[7].family: {folder}/lonely.py cannot be loaded: ModuleNotFoundError in "
        "lonely.py:1: No module named 'ring'. A file can import installed packages, but no file "
        "beside it: make a package",
        "11: targets[8]: KeyError in failing.py:5: 1",
        "12: targets[9].family: others.py:every is a function; a target must be a class",
        "14: kernels.a.family: there is no module no_such_package in this environment: install its "
        "package, or write the path of a file with .py, such as ./no_such_package/kernels.py:name",
        "15: kernels.b.family: ring.py:Ring is not a kernel: a kernel must be a subclass of "
        "bqlib.kernels.Kernel",
        f'16: kernels.c.family: unknown kernel family "ring". Allowed: '
        f"{', '.join(registry.PLACES['kernel'])}, or file.py:name or package.module:name",
        "19: algorithms[0].design.step: must be a whole number without point or exponent, not 1.5",
        '19: algorithms[0].design.stop: unknown key "stop"; did you mean "step"? Allowed: family, '
        "step, offset",
        "19: algorithms[0].weights: others.py:every takes (target, kernel, n, rng, candidates, "
        "initial, step, offset); a weight rule must be a function(embedding, points, ...)",
        "20: algorithms[1].design.block: must be a whole number without point or exponent, not "
        'the text "x"',
        '20: algorithms[1].design.memory: unknown key "memory". Allowed: family, block',
        "20: algorithms[1].weights: must be the name of a weight rule or "
        "{family: ..., parameter: ...}, not 3",
        '21: algorithms[2].design: "ring.py" must be file.py:name or package.module:name',
        "21: algorithms[2].weights: others.py:Part is a class; a weight rule must be a "
        "function(embedding, points, ...)",
        "22: algorithms[3].design: made.py:made is defined in make.<locals>.made; write it as a "
        "def or class at the top level of its module, so that changes of its code are seen",
        "22: algorithms[3].weights: made.py:shadow is of type partial; a weight rule must be a "
        "function(embedding, points, ...)",
    ]


def test_parameters_are_of_the_types_of_the_signature(written):
    folder = written()
    algorithm = "  - {name: typed, design: iid, weights: {family: others.py:typed, "
    good = "word: two, count: 3, array: [[1, 2], [3, 4]], flag: false, later: any}}\n"
    text = SWEEP.replace("candidates:", algorithm + good + "candidates:")
    (folder / "typed.yaml").write_text(text)
    *_, algorithm = load(folder / "typed.yaml").algorithms
    _, rule = algorithm.build()
    word, count, array, flag, later = rule(None, None)
    assert (word, count, array.tolist(), flag, later) == ("two", 3, [[1, 2], [3, 4]], False, "any")
    for value, told in [("[1, 2]", "array"), (".inf", "must be a list"), ("[.inf]", "finite num")]:
        (folder / "typed.yaml").write_text(text.replace("[[1, 2], [3, 4]]", value))
        if told == "array":
            assert "array" not in load(folder / "typed.yaml").algorithms[2].weights_parameters
        else:
            with pytest.raises(SweepError, match=told):
                load(folder / "typed.yaml")
    bad = "word: three, count: 1.5, array: wide, flag: 1}}\n"
    (folder / "typed.yaml").write_text(text.replace(good, bad))
    with pytest.raises(SweepError) as raised:
        load(folder / "typed.yaml")
    assert [
        problem.partition(": algorithms[2].weights.")[2] for problem in raised.value.problems
    ] == [
        'array: must be a list of numbers, not the text "wide"',
        "count: must be a whole number without point or exponent, not 1.5",
        "flag: must be true or false, not 1",
        'word: unknown value "three". Allowed: one, two',
    ]


def test_the_algorithms_of_the_page_are_right(written):
    page = (DOCS / "plugins.md").read_text(encoding="utf-8")
    (algorithms,) = re.findall(r"```yaml\n(algorithms:\n.*?)```", page, re.DOTALL)
    files = documented_files("plugins.md")
    folder = written(picks=files["picks.py"])
    text = edited(files["ring.yaml"], ("algorithms: [iid, sbq]\n", algorithms))
    (folder / "page.yaml").write_text(text)
    names = [algorithm.name for algorithm in load(folder / "page.yaml").algorithms]
    assert names == ["sbq", "farthest", "farthest_bq"]


def test_an_embedding_must_belong_to_its_kernel_or_target(written):
    stray = (
        "from bqlib import Embedding, Korobov, GaussianMixture\n"
        "from bqlib.embeddings import register\n\n"
        "class Own(GaussianMixture):\n    def __init__(self):\n"
        "        super().__init__([1.0], [[0.0]], [[[1.0]]])\n\n"
        "@register(Korobov, GaussianMixture)\ndef stray(kernel, target):\n"
        "    return Embedding(kernel, target, None, None, 1.0)\n"
    )
    written(stray=stray)
    normal = "{name: b, family: gaussian_mixture, weights: [1], means: [[0]], covariances: [[[1]]]}"
    text = f"name: a\ntargets: [{normal}, {{name: c, family: stray.py:Own}}]\n"
    text += "kernels: {k: {family: korobov}}\nlengthscales: [1]\nalgorithms: [iid]\n"
    text += "n: 5\nseeds: 1\nrate_windows: [[1, 5]]\n"
    Path("stray.yaml").write_text(text)
    try:
        with pytest.raises(SweepError, match=r"with target b: the embedding of Korobov with Gaus"):
            load("stray.yaml")
    finally:
        embedding._pairs.popitem()


@pytest.mark.parametrize(
    ("file", "old", "new", "changed"),
    [
        ("others", "request.pool[offset::step]", "request.pool[offset :: step + 1]",
         ["eq/mine", "twice/mine"]),
        ("others", "place = place / 1", "place = place / 2", "all"),
        ("others", "self.factor * self.part(x, y)", "self.factor * self.part(x, y) * 1.0",
         ["twice/iid", "twice/mine"]),
        # reached through embed() alone
        ("others", "embed(kernel.inner, target)", "embed(kernel.inner, *[target])",
         ["twice/iid", "twice/mine"]),
        ("others", "np.zeros(2))", "np.ones(2))", "all"),
        ("others", "  # an array, and no list", "", []),
        ("others", "Two bumps at a place.", "Two.", []),
        ("ring", "dim = 2", "dim = 3", []),
    ],
)  # fmt: skip
def test_an_edit_changes_the_digests_of_what_depends_on_it(written, file, old, new, changed):
    def digests(folder):
        sweep = load(folder / "sweep.yaml")
        return {f"{c.kernel}/{c.algorithm}": sweep.spec(c).digest for c in sweep.cells()}

    before = digests(written("before"))
    # A file in another folder is another module, as an edited one is in a new process.
    text = {"ring": RING, "others": OTHERS}[file]
    after = digests(written("after", **{file: edited(text, (old, new))}))
    different = [cell for cell in before if before[cell] != after[cell]]
    assert different == (list(before) if changed == "all" else changed)


def test_results_can_be_read_until_a_plugin_is_needed_that_is_gone(written):
    folder = written("old")
    config = json.dumps(load(folder / "sweep.yaml").canonical())
    curves = xr.Dataset(attrs={"config": config})
    cell = {"target": "pair", "kernel": "twice", "lengthscale": 0.5}
    assert embedding_of(curves, cell).prior_variance > 0
    gone = xr.Dataset(attrs={"config": config.replace("/old/", "/gone/")})
    with pytest.raises(PluginError, match=r"there is no file .*/gone/others\.py"):
        embedding_of(gone, cell)
    gone.attrs["config"] = gone.attrs["config"].replace("/gone/", "/old/")
    assert embedding_of(gone, cell).prior_variance > 0


def test_a_worker_without_the_plugin_ends_the_run(written):
    sweep = load(written() / "sweep.yaml")
    spec = sweep.spec(sweep.cells()[1])
    nowhere = replace(spec.algorithm, design="/nowhere/others.py:every")
    with pytest.raises(OtherCodeError, match=r"has not all plug-ins: there is no file /nowhere/"):
        attempt(replace(spec, algorithm=nowhere), 0, versions())


@pytest.fixture
def installed(tmp_path, monkeypatch):
    """An installed package with entry points."""
    site = tmp_path / "site"
    (site / "ringpackage" / "inner").mkdir(parents=True)
    (site / "ringpackage" / "__init__.py").write_text("from .inner.code import Ring, other\n")
    (site / "ringpackage" / "inner" / "__init__.py").write_text("")
    (site / "ringpackage" / "inner" / "code.py").write_text(
        RING + "\n\ndef other(embedding, points):\n    pass\n"
    )
    about = site / "ringpackage-1.0.dist-info"
    about.mkdir()
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: ringpackage\nVersion: 1.0\n")
    (about / "entry_points.txt").write_text(
        "[bqlib.targets]\nring = ringpackage:Ring\nuniform = ringpackage:Ring\n"
        "[bqlib.weights]\nshared = ringpackage:other\n"
    )
    again = site / "second-1.0.dist-info"
    again.mkdir()
    (again / "METADATA").write_text("Metadata-Version: 2.1\nName: second\nVersion: 1.0\n")
    (again / "entry_points.txt").write_text("[bqlib.weights]\nshared = second:rule\n")
    monkeypatch.syspath_prepend(site)
    plugins.entry_points.cache_clear()
    yield
    plugins.entry_points.cache_clear()
    for name in [name for name in sys.modules if name.startswith("ringpackage")]:
        del sys.modules[name]


def test_a_package_can_give_names(installed, written):
    folder = written()
    text = SWEEP.replace("others.py:Pair, place: [1, 2]", "ring, radius: 3")
    text = text.replace("./others.py:Twice, shape: [1, 2]", "exponentiated_quadratic")
    (folder / "named.yaml").write_text(text)
    (folder / "placed.yaml").write_text(text.replace(": ring,", ": ringpackage:Ring,"))
    named, placed = load(folder / "named.yaml"), load(folder / "placed.yaml")
    assert named == placed
    assert named.targets["pair"]["family"] == "ringpackage:Ring"
    assert registry.find("target", "uniform").__module__ == "bqlib.targets"
    (folder / "shared.yaml").write_text(SWEEP.replace("others.py:shrunk", "shared"))
    with pytest.raises(SweepError, match='offer "shared": write ringpackage:other or second:rule'):
        load(folder / "shared.yaml")


def test_no_packages_are_looked_up_for_our_own_names(monkeypatch):
    monkeypatch.setattr(plugins, "entry_points", None)
    load(QUICK)


def test_kinds_are_told_from_what_a_plugin_looks_like(written):
    folder = written()
    kinds = {"Pair": "target", "Twice": "kernel", "every": "design", "shrunk": "weights"}
    for name, kind in {**kinds, "coordinates": "integrand"}.items():
        assert plugins.kind_of(f"{folder}/others.py:{name}") == kind
    with pytest.raises(PluginError, match=r"not a target: others.py:part_mixture is a function"):
        plugins.kind_of(f"{folder}/others.py:part_mixture")
