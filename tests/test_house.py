"""The structure of the code: which room may use which, and what each keeps to itself."""

import ast
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PACKAGE = ROOT / "bqlib"
# The wings from the lowest up. A wing may import those below it, and not its neighbours.
WINGS = (
    ("numerics",),
    ("sweep",),
    ("studies",),
    ("results",),
    ("running", "analysis", "sharded"),
    ("claims", "figures", "suite"),
    ("report", "access"),
    ("cli",),
    ("__main__",),
)
LEVELS = {wing: level for level, wings in enumerate(WINGS) for wing in wings}
# Operators make sums and products of kernels, which are kernels.
NATURAL_CIRCLE = {"bqlib.kernels.kernel", "bqlib.kernels.algebra"}
FOREIGN = ("dask", "distributed", "matplotlib", "pydantic", "snakemake", "xarray", "yaml", "zarr")
# Names of files and folders of results, and what joins them to a path.
RESULTS = {
    ".jobs", ".lock", ".private", ".trials", "benchmarks", "claims.json", "curves.zarr", "figures",
    "function_errors.zarr", "logs", "manifest-sha256.txt", "pieces", "provenance.json",
    "rates.zarr", "records", "report.html", "studies", "timings", "zarr.json",
}  # fmt: skip
JOINING = {"Path", "glob", "join", "joinpath", "rglob", "with_name"}
REASON = re.compile(r"#.*(\d (ms|s|MB)\b|\bextra\b|\bcircle\b|not on every system)")


def module_of(file):
    parts = file.relative_to(ROOT).with_suffix("").parts
    return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)


FILES = {module_of(file): file for file in sorted(PACKAGE.rglob("*.py"))}
TREES = {module: ast.parse(file.read_text(encoding="utf-8")) for module, file in FILES.items()}


def imported(tree):
    """Names of all modules that a tree imports, anywhere in it."""
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            yield from (alias.name for alias in node.names)
        elif isinstance(node, ast.ImportFrom):
            assert not node.level, "imports name their module in full"
            for alias in node.names:
                full = f"{node.module}.{alias.name}"
                yield full if full in FILES else node.module


ARROWS = {
    module: {other for other in imported(tree) if other in FILES and other != module}
    for module, tree in TREES.items()
}


def wing_of(module):
    """The wing of a module; the package itself, which imports nothing, belongs to the lowest."""
    name = module.split(".")[1] if "." in module else "numerics"
    return name if name in LEVELS else "numerics"


def arrows_up(arrows):
    """Arrows to a higher wing, or to a neighbour."""
    return [
        f"{module} imports {other}"
        for module, others in arrows.items()
        for other in others
        if wing_of(other) != wing_of(module) and LEVELS[wing_of(other)] >= LEVELS[wing_of(module)]
    ]


def circles(arrows):
    """Sets of modules that import each other, directly or through others."""
    reached = {}
    for module in arrows:
        seen, todo = set(), [module]
        while todo:
            new = arrows[todo.pop()] - seen
            seen |= new
            todo += new
        reached[module] = seen
    return {
        frozenset(other for other in reached[module] if module in reached[other])
        for module in arrows
        if module in reached[module]
    }


def test_arrows_between_wings_run_down():
    assert arrows_up(ARROWS) == []
    assert arrows_up(ARROWS | {"bqlib.results.store": {"bqlib.access.opening"}})
    assert arrows_up(ARROWS | {"bqlib.running.server": {"bqlib.analysis.fits"}})


def test_there_is_one_circle():
    assert circles(ARROWS) == {frozenset(NATURAL_CIRCLE)}


@pytest.mark.parametrize("module", [m for m in FILES if wing_of(m) == "numerics"])
def test_numerics_know_nothing_of_files_and_clusters(module):
    roots = {name.partition(".")[0] for name in imported(TREES[module])}
    assert roots.isdisjoint(FOREIGN)


def test_numerics_load_nothing_of_files_and_clusters():
    modules = [module for module in FILES if wing_of(module) == "numerics"]
    code = f"import sys, {', '.join(modules)}; print([m for m in {FOREIGN} if m in sys.modules])"
    loaded = subprocess.run([sys.executable, "-c", code], capture_output=True, check=True)
    assert loaded.stdout.decode().strip() == "[]"


def joined_paths(tree):
    """Lines on which a path inside a folder of results is joined."""
    for node in ast.walk(tree):
        texts = []
        if isinstance(node, ast.BinOp) and isinstance(node.op, ast.Div):
            texts = [node.left, node.right]
        elif isinstance(node, ast.Call):
            name = getattr(node.func, "attr", getattr(node.func, "id", ""))
            texts = node.args if name in JOINING else []
        elif isinstance(node, ast.JoinedStr):  # such as f"{results}/logs"
            values = [""] + [v.value if isinstance(v, ast.Constant) else "" for v in node.values]
            if any(text.startswith("/") and set(text.split("/")) & RESULTS for text in values):
                yield node.lineno
        parts = {
            part
            for text in texts
            for constant in ast.walk(text)
            if isinstance(constant, ast.Constant) and isinstance(constant.value, str)
            for part in constant.value.split("/")
        }
        if parts & RESULTS:
            yield node.lineno


SCRIPTS = sorted((ROOT / "workflow" / "scripts").glob("*.py"))


def test_paths_in_results_are_joined_in_one_room():
    trees = TREES | {script.name: ast.parse(script.read_text("utf-8")) for script in SCRIPTS}
    found = [
        f"{module}:{line}"
        for module, tree in trees.items()
        if module != "bqlib.results.layout"
        for line in joined_paths(tree)
    ]
    assert found == []
    for rules in (ROOT / "workflow" / "rules").glob("*.smk"):
        assert not re.search(rf"}}/({'|'.join(map(re.escape, RESULTS))})", rules.read_text("utf-8"))


@pytest.mark.parametrize(
    "code",
    ['results / "pieces"', 'Path(a, "logs", b)', 'f"{a}/curves.zarr"', 'a.glob("*/studies")'],
)
def test_joined_paths_are_found(code):
    assert list(joined_paths(ast.parse(code))) == [1]


def unexplained_imports(text):
    """Lines with an import inside a function and no reason beside it: time, an extra, a circle."""
    lines = text.split("\n")
    for function in ast.walk(ast.parse(text)):
        if not isinstance(function, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        for node in ast.walk(function):
            if isinstance(node, ast.Import | ast.ImportFrom):
                first, last = node.lineno - 1, node.end_lineno
                while re.match(r"\s*(#|from |import )", lines[first - 1]):
                    first -= 1
                while re.match(r"\s*(#|from |import )", lines[last]):
                    last += 1
                if not any(map(REASON.search, lines[first:last])):
                    yield node.lineno


def test_imports_inside_functions_say_what_they_save():
    found = [
        f"{module}:{line}"
        for module, file in FILES.items()
        for line in unexplained_imports(file.read_text(encoding="utf-8"))
    ]
    assert sorted(set(found)) == []


def test_an_import_inside_a_function_needs_a_number():
    code = "def f():\n    # here, as it is late\n    import zarr\n    import xarray  # takes 1 s\n"
    assert list(unexplained_imports(code)) == []
    assert list(unexplained_imports(code.replace("1 s", "long"))) == [3, 4]


def test_no_room_is_too_large():
    assert {
        m: n for m, f in FILES.items() if (n := len(f.read_text("utf-8").split("\n"))) > 501
    } == {}
    common = ROOT / "workflow" / "rules" / "common.smk"
    assert len(common.read_text("utf-8").split("\n")) < 80
