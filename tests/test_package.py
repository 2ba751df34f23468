import pydoc
import re
import subprocess
import sys
from importlib.metadata import PackageNotFoundError
from pathlib import Path

import pytest

import bqlib

HEAVY = ("dask", "distributed", "zarr", "xarray", "matplotlib", "pandas", "snakemake")
ROOT = Path(bqlib.__file__).parent.parent


def printed(code, *options):
    """What a process of Python prints."""
    command = [sys.executable, *options, "-c", code]
    return subprocess.run(command, capture_output=True, text=True, check=True).stdout.strip()


@pytest.mark.parametrize("statement", ["import bqlib", "from bqlib import sbq, GaussianMixture"])
def test_the_library_loads_without_the_pipeline(statement):
    assert (
        printed(f"{statement}; import sys; print([m for m in {HEAVY} if m in sys.modules])") == "[]"
    )


def test_importing_the_package_alone_loads_no_numerics():
    assert printed("import bqlib, sys; print('numpy' in sys.modules)") == "False"


def test_modules_load_as_attributes():
    code = "import bqlib; print(bqlib.weights.bq.__name__, bqlib.discrepancy.mmd2.__name__)"
    assert printed(code) == "bq mmd2"


def test_public_names_exist_and_are_documented():
    for name in bqlib.__all__:
        assert getattr(bqlib, name).__doc__, name
    with pytest.raises(AttributeError, match="no attribute 'sbk'"):
        bqlib.sbk  # noqa: B018


WHAT_IS_THERE = """
import inspect, pydoc, sys
sys.path.insert(0, {root!r})
sys.modules.update(dict.fromkeys({missing}))
import bqlib
names = set(dir(bqlib))
found = [
    bqlib.__file__.startswith({root!r}),
    "sbq(" in pydoc.render_doc(bqlib, renderer=pydoc.plaintext),
    names <= dict(inspect.getmembers(bqlib)).keys(),
    names >= set(bqlib.__all__),
]
from bqlib import *
found.append("Design" in globals())
design = sbq(GaussianMixture([1], [[0]], [[[1]]]), ExponentiatedQuadratic(1.0), 3, rng=0)
print(all(found) or found, [name for name in ("export", "open_results") if name in globals()])
"""


@pytest.mark.parametrize(
    "missing, left",
    [
        (HEAVY, []),
        (["pandas"], []),
        (["xarray"], []),
        (["zarr"], ["export"]),
        (["dask"], ["open_results"]),
    ],
    ids=str,
)
def test_names_load_where_libraries_of_others_are_missing(missing, left):
    assert printed(WHAT_IS_THERE.format(root=str(ROOT), missing=missing)) == f"True {left}"


@pytest.mark.parametrize("options", [["-OO"], ["-W", "error"], ["-I"]], ids=str)
def test_all_names_load_whatever_the_options_of_python(options):
    code = WHAT_IS_THERE.format(root=str(ROOT), missing=())
    assert printed(code, *options) == "True ['export', 'open_results']"


def test_all_names_load_where_a_library_fails_as_it_loads(tmp_path):
    (tmp_path / "pandas.py").write_text("raise ImportError('built for another numpy')")
    code = f"import sys; sys.path.insert(0, {str(tmp_path)!r})\n"
    assert printed(code + WHAT_IS_THERE.format(root=str(ROOT), missing=())) == "True []"


def test_a_name_whose_library_is_missing_says_which_and_how_to_install_it(monkeypatch):
    monkeypatch.setitem(sys.modules, "xarray", None)
    for module in [
        name for name in sys.modules if name.startswith(("bqlib.access", "bqlib.results"))
    ]:
        monkeypatch.delitem(sys.modules, module)
    with pytest.raises(
        ModuleNotFoundError, match=r"open_results needs xarray.*pip install 'bqlib\[work"
    ):
        bqlib.open_results  # noqa: B018


def test_help_works_where_the_package_is_not_installed(monkeypatch):
    def version(name):
        raise PackageNotFoundError(name)

    monkeypatch.setattr("importlib.metadata.version", version)
    assert not hasattr(bqlib, "__version__")
    assert "sbq" in pydoc.render_doc(bqlib)


def test_all_files_tell_the_same_version():
    for name, line in {
        "pyproject.toml": 'version = "{}"',
        "CITATION.cff": "version: {}",
        "workflow/envs/bqlib.yaml": "bqlib[workflow,cluster] =={}",
    }.items():
        text = (ROOT / name).read_text()
        assert re.search(re.escape(line.format(bqlib.__version__)) + "$", text, re.M), name
