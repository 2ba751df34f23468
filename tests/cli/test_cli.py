"""The command line: its help, its answers, its exit codes, and what docs/cli.md says about it."""

import argparse
import inspect
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import h5netcdf
import numpy as np
import pytest
import submitted
from project import PROJECT
from written_results import write_timing

from bqlib import claims
from bqlib.cli.command import CLOSED_PIPE, INTERRUPTED, NO_ANSWER, PROBLEM
from bqlib.cli.main import COMMANDS, EXIT_CODES, main, parser
from bqlib.results import pieces, store
from bqlib.results.integrity import write_manifest
from bqlib.results.layout import MANIFEST, PROVENANCE, Layout, piece_name
from bqlib.running.hooks import SOME_FAILED
from bqlib.running.status import Status, as_json
from bqlib.sweep import registry
from bqlib.sweep.file import load
from bqlib.sweep.problems import problems as problems_of_suite

QUICK, SHELF = str(PROJECT / "config" / "quick.yaml"), str(PROJECT / "config" / "targets")
PAGE = (PROJECT / "docs" / "cli.md").read_text(encoding="utf-8")
NAMES = [command.name for command in COMMANDS]


def parsers():
    (commands,) = (a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    return commands.choices


@pytest.mark.parametrize("name", NAMES)
def test_the_page_has_the_help_of_each_command_and_no_other_options(name):
    parser = parsers()[name]
    section = re.search(rf"^## {name}$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]
    assert section.startswith(f"\n\n```{{command}} {name}\n```\n")
    options = {option for action in parser._actions for option in action.option_strings}
    assert set(re.findall(r"`(--[a-z-]+)`", section)) <= options
    assert parser.epilog.partition("examples:\n")[2]


def test_the_page_has_the_commands_in_the_order_of_the_help():
    rows = re.findall(r"^\| \[`bqlib ([a-z-]+)`\]\(#\1\) \| (.*) \|$", PAGE, re.MULTILINE)
    assert rows == [(command.name, command.summary) for command in COMMANDS]
    assert re.findall(r"^## (.*)$", PAGE, re.MULTILINE) == NAMES


def test_the_page_has_the_exit_codes_of_the_help():
    on_page = re.findall(r"^\| (\d+) \| (.*) \|$", PAGE, re.MULTILINE)
    in_help = re.findall(r"^  (\d+) +(.*(?:\n {7}.*)*)", EXIT_CODES, re.MULTILINE)
    assert on_page == [(code, " ".join(meaning.split())) for code, meaning in in_help]
    codes = [0, PROBLEM, NO_ANSWER, SOME_FAILED, INTERRUPTED, CLOSED_PIPE]
    assert [int(code) for code, _ in in_help] == codes


@pytest.mark.parametrize("words", [[], *([name] for name in NAMES)])
def test_help_fits_a_terminal(words, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        main([*words, "--help"])
    assert ended.value.code == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 80


def test_help_does_not_wait_for_slow_libraries():
    slow = {"asyncio", "dask", "numpy", "pandas", "pydantic", "scipy", "xarray", "yaml", "zarr"}
    code = f"import sys, bqlib.__main__; print(*sorted({slow} & sys.modules.keys()))"
    found = subprocess.run(
        [sys.executable, "-c", code], cwd=PROJECT, capture_output=True, text=True
    )
    assert (found.stdout, found.stderr) == ("\n", "")


def test_version_and_wrong_use(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0 and re.fullmatch(r"bqlib \d+\.\d+.*\n", capsys.readouterr().out)
    for wrong in ([], ["valdate"], ["show"], ["plan", "--worker", "x", QUICK]):
        with pytest.raises(SystemExit) as ended:
            main(wrong)
        assert ended.value.code == 2


def test_an_empty_argument_names_no_folder(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    for words in (["submission-template", "kmeans", "--to", ""], ["init", ""], ["run", ""]):
        assert main(words) == 2
        assert "an argument is empty" in capsys.readouterr().err
    assert not [*tmp_path.iterdir()]


@pytest.mark.parametrize(
    "command", ["validate", "plan", "show", "check", "profile", "retry", "claims"]
)
def test_a_path_that_does_not_exist_is_reported_in_one_line(command, capsys):
    assert main([command, "nope.yaml"]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("bqlib: ") and "nope.yaml" in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    "words", [["show"], ["check"], ["profile"], ["retry"], ["claims"], ["export", "--points"]]
)
def test_results_that_are_there_are_named(words, tmp_path, monkeypatch, capsys):
    (tmp_path / "results" / "mine" / "pieces").mkdir(parents=True)
    monkeypatch.chdir(tmp_path)
    assert main([*words, "results/mnie", *(["x.csv"] if "export" in words else [])]) == 2
    assert capsys.readouterr().err == (
        "bqlib: results/mnie: no such folder; results here: results/mine\n"
    )


def test_sweeps_that_are_there_are_named(tmp_path, monkeypatch, capsys):
    for path in ("config/mine.yaml", "own.yaml", ".hidden.yaml"):
        (tmp_path / path).parent.mkdir(exist_ok=True)
        (tmp_path / path).touch()
    monkeypatch.chdir(tmp_path)
    for command in ("validate", "plan", "show"):
        assert main([command, "nope.yaml"]) == 2
        assert capsys.readouterr().err == (
            "bqlib: nope.yaml: no such file; sweeps here: config/mine.yaml, own.yaml\n"
        )
    assert main(["validate", "config"]) == 2
    assert "config: a folder, not a sweep file; sweeps here: " in capsys.readouterr().err


def test_sweeps_are_validated(tmp_path, capsys):
    assert main(["validate", QUICK]) == 0
    assert "8 cells, 16 trials, 5 studies; results/quick" in capsys.readouterr().out
    assert main(["validate", "--json", QUICK]) == 0
    assert json.loads(capsys.readouterr().out)["trials"] == 16
    bad = tmp_path / "bad.yaml"
    bad.write_text(Path(QUICK).read_text().replace("n: 50", "n: 0"))
    assert main(["validate", "--shelf", SHELF, str(bad)]) == 1
    said = capsys.readouterr()
    assert said.out == "" and "n: " in said.err
    assert main(["validate", "--shelf", SHELF, "--json", str(bad)]) == 1
    assert json.loads(capsys.readouterr().out)["problems"]


def test_sweeps_are_shown(capsys):
    assert main(["show", QUICK]) == 0
    said = capsys.readouterr().out
    assert "8 cells, each for n = 1 to 50 and 2 seeds" in said
    assert main(["show", "--json", QUICK]) == 0
    assert json.loads(capsys.readouterr().out)["name"] == "quick"


def test_targets_are_listed(capsys):
    assert main(["targets", "--shelf", SHELF, "--json"]) == 0
    rows = {row["name"]: row for row in json.loads(capsys.readouterr().out)}
    assert rows["chen2010_mixture"]["dim"] == 2 and rows["chen2010_mixture"]["source"]
    assert set(rows) == {path.stem for path in Path(SHELF).glob("*.json")}
    assert main(["targets", "--shelf", SHELF]) == 0
    assert "source: " in capsys.readouterr().out
    assert main(["targets", "--shelf", "nowhere"]) == 2


def test_validate_names_the_problems_to_which_a_rule_does_not_apply(tmp_path, capsys):
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text(
        "name: a\nproblems: [rings_eq, box_1d_bridge]\nalgorithms: [sbq, halton]\nseeds: 1\n"
    )
    assert main(["validate", str(sweep)]) == 0
    counts, left_out = capsys.readouterr().out.splitlines()
    assert counts.endswith("3 cells, 3 trials; results/a")
    assert left_out.startswith("halton does not apply to 1 problem: rings_eq: design halton canno")
    assert main(["validate", "--json", str(sweep)]) == 0
    assert json.loads(capsys.readouterr().out)["inapplicable"].keys() == {"halton"}


def test_every_algorithm_is_listed_with_its_cost(capsys):
    assert main(["algorithms", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(registry.ALGORITHMS)
    costs = {row["name"]: row["cost"] for row in rows}
    assert costs["sbq"] == "O(M n + M d) a step + O(n^3)"
    assert main(["algorithms"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(rows) + 1


def test_every_problem_of_the_suite_is_listed_with_its_version(capsys):
    assert main(["problems", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    suite = problems_of_suite()
    assert [row["problem"] for row in rows] == [f"{n}@{one.version}" for n, one in suite.items()]
    assert all(row["best known"] == suite[row["problem"][:-2]].best_known[-1][1] for row in rows)
    assert main(["problems"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(rows) + 1


@pytest.mark.parametrize("kind", registry.COSTS)
def test_docstrings_say_the_listed_costs(kind):
    assert registry.COSTS[kind].keys() == registry.PLACES[kind].keys()
    for name, cost in registry.COSTS[kind].items():
        about = " ".join(inspect.getdoc(registry.find(kind, name)).split())
        first = re.search(r"O\([^()]*\) time( a step)?", about)[0]  # more follow, of other options
        assert first.replace(" time", "") == cost, name


def test_docstrings_say_how_the_listed_designs_pick_points():
    assert registry.POINTS.keys() == registry.PLACES["design"].keys()
    for name, line in registry.POINTS.items():
        assert inspect.getdoc(registry.find("design", name)).splitlines()[0] == line


SWEEP = """\
name: small
targets: [chen2010_mixture]
kernels: {eq: {family: exponentiated_quadratic}}
lengthscales: [0.5]
algorithms: [iid]
candidates: {size: 20}
n: 3
seeds: 1
"""


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A folder with a sweep and its results, as a run leaves them."""
    folder = tmp_path_factory.mktemp("cli")
    finish(folder, "small", SWEEP)
    return folder


def finish(folder, name, sweep):
    """Write a sweep of one trial to ``sweep.yaml``, and its results to a folder."""
    (folder / "sweep.yaml").write_text(sweep)
    experiment, results = load(folder / "sweep.yaml", SHELF), folder / name
    (cell,), (block,) = experiment.cells(), experiment.blocks()
    spec, name = experiment.spec(cell), piece_name(cell, block)
    piece = results / "pieces" / name
    piece.parent.mkdir(parents=True)
    piece.write_bytes(pieces.encode_piece(spec, [0], [spec.run(0)[0]]))
    write_timing(results, name, piece.read_bytes(), spec.digest, {"0": 1.0})
    store.gather(experiment, results)
    (results / "claims.json").write_text(claims.as_json([], [], []))
    write_manifest(results)


@pytest.fixture
def results(finished, tmp_path, monkeypatch):
    """A copy of the results, to damage, in the working directory."""
    shutil.copytree(finished, tmp_path / "copy")
    monkeypatch.chdir(tmp_path / "copy")
    return Path("small")


RETRY = ["retry", "--shelf", SHELF, "--sweep", "sweep.yaml", "small"]


@pytest.mark.parametrize(
    ("words", "path", "old", "new"),
    [
        (["show", "small"], "curves.zarr/mmd/c.0.0.0.0.0.0", None, b"?"),
        (["show", "small"], "curves.zarr/zarr.json", b"{", b"\xff"),
        (["show", "small"], "curves.zarr/zarr.json", b'"float64"', b'"floot64"'),
        (["show", "small"], "claims.json", None, b"[]"),
        (["show", "small"], "claims.json", None, b'{"verdicts": 3}'),
        (["export", "small", "small.csv"], "curves.zarr/weight_l1/c.0.0.0.0.0.0", None, b"?"),
        (["export", "small", "small.csv"], "curves.zarr/zarr.json", b"{", b"["),
        (["claims", "small"], "claims.json", None, b""),
        (["claims", "--json", "small"], "claims.json", None, b'{"claims": ['),
        (["claims", "small"], "claims.json", b'"expectations"', b'"expactations"'),
        (["claims", "small"], "claims.json", None, b"\xff"),
        (RETRY, "curves.zarr/zarr.json", b'"config": "{', b'"config": "'),
    ],
)
def test_damaged_results_are_reported_in_a_line_with_what_to_do(
    results, capsys, words, path, old, new
):
    assert main(words) == 0
    capsys.readouterr()
    content = (results / path).read_bytes()
    assert old is None or old in content
    (results / path).write_bytes(new if old is None else content.replace(old, new))
    assert main(words) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("bqlib: small") and said.err.count("\n") == 1
    assert said.err.startswith(f"bqlib: small/{path} is ")
    assert "; to see all damage: bqlib check small; to recompute what is damaged: bqlib retry " in (
        said.err
    )
    assert main(["check", "small"]) == 1


def test_an_export_to_another_kind_of_file_is_no_damage(results, capsys):
    assert main(["export", "small", "small.xlsx"]) == 2
    assert capsys.readouterr().err == (
        "bqlib: small.xlsx: the file must end in .csv, .parquet or .nc\n"
    )
    Path("small.csv").mkdir()
    assert main(["export", "small", "small.csv"]) == 2
    assert "small.csv is a folder" in capsys.readouterr().err


def test_an_export_says_how_much_it_wrote_and_what_is_missing(results, capsys):
    finish(Path(), "other", SWEEP.replace("[0.5]", "[2]").replace("[iid]", "[sobol]"))
    assert main(["export", "small", "one.csv"]) == 0
    assert main(["export", "small", "one.nc"]) == 0
    assert main(["export", "small", "other", "both.csv"]) == 0
    assert main(["export", "small", "other", "both.nc"]) == 0
    assert capsys.readouterr().out.splitlines() == [
        "one.csv: 3 rows",
        "one.nc: 3 values of the MMD",
        "both.csv: 6 rows; 2 missing trials left out",
        "both.nc: 12 values of the MMD; 2 missing trials as NaN",
    ]
    with h5netcdf.File("both.nc") as file:
        mmd = file["mmd"][...]
    assert mmd.size == 12 and np.isnan(mmd).sum() == 6


def test_an_export_says_how_what_differs_was_joined(results, capsys):
    (size,) = re.findall(r"size: (\d+)", SWEEP)
    finish(Path(), "other", SWEEP.replace(f"size: {size}", "size: 99"))
    assert main(["export", "small", "other", "both.csv"]) == 0
    assert capsys.readouterr().out.splitlines()[0] == (
        f"candidates are {size} in small, 99 in other: they are labels of a dimension candidates"
    )
    assert Path("both.csv").read_text().startswith("candidates,target,kernel,")


@pytest.mark.parametrize(
    ("lost", "named"),
    [
        ("pieces", "small"),
        ("curves.zarr", "small"),
        ("curves.zarr/mmd", "small"),
        ("curves.zarr/mmd", "small/curves.zarr"),
    ],
)
def test_what_check_advises_works_and_says_how_much_it_deleted(results, capsys, lost, named):
    shutil.rmtree(results / lost)
    assert main(["check", named]) == 1
    said = capsys.readouterr().out
    assert f"\nsmall/{lost}" in f"\n{said}"
    command = re.search("to recompute them: bqlib (.*), then run", said)[1]
    there = len(list(results.rglob("[!.]*")))
    assert main(command.split()) == 0
    deleted = there - len(list(results.rglob("[!.]*")))
    last = capsys.readouterr().out.splitlines()[-1]
    files = "1 file" if deleted == 1 else f"{deleted} files"
    assert last == f"0 failed trials; {files} deleted; the next run recreates what is missing"
    assert main(command.split()) == 0
    assert capsys.readouterr().out.endswith("0 failed trials; nothing to delete\n")


@pytest.mark.parametrize("finished_run", [True, False])
def test_faults_of_a_study_are_named_by_paths_that_exist(results, capsys, finished_run):
    study = results / "studies" / "mine.zarr"
    shutil.copytree(results / "curves.zarr", study)
    if finished_run:
        write_manifest(results)
    else:
        (results / MANIFEST).unlink()
        (results / PROVENANCE).unlink()
    (chunk,) = study.glob("mmd/c.*")
    chunk.write_bytes(b"?")
    assert main(["check", str(study)]) == 1
    said = capsys.readouterr().out
    assert said.startswith(f"{chunk}: ") and "bqlib retry --damaged small, " in said


@pytest.mark.parametrize(("count", "said"), [(1, "1 piece is"), (2, "2 pieces are")])
def test_pieces_that_the_sweep_no_longer_needs_are_counted(results, capsys, count, said):
    (piece,) = results.glob("pieces/**/*.zip")
    for last in range(1, count + 1):
        shutil.copy(piece, piece.with_name(f"seeds-0-{last}.zarr.zip"))
    main(["check", "small"])
    assert f"\n{said} not in the curves, because the sweep has changed; " in capsys.readouterr().out


def test_a_trial_beyond_all_memory_has_no_plan(tmp_path, capsys):
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text(
        SWEEP.replace("size: 20", "size: 20, fresh: true").replace("n: 3", "n: 1" + 8 * "0")
    )
    assert main(["validate", "--shelf", SHELF, str(sweep)]) == 0
    assert main(["plan", "--shelf", SHELF, str(sweep)]) == 1
    assert "more memory than this machine has: ask for fewer" in capsys.readouterr().out


def test_bad_files_among_the_targets_are_named_below_the_good_ones(tmp_path, capsys):
    shutil.copy(Path(SHELF, "chen2010_mixture.json"), tmp_path)
    uniform = '{"family": "uniform", "lower": [0], "upper": [1], '
    bad = {
        "a": ("{", "is not JSON: line 1"),
        "b": ("[]", "must be one JSON object"),
        "c": ('{"family": "unifrom"}', 'unknown target family "unifrom"'),
        "d": (uniform + '"uper": [1]}', 'unknown key "uper"'),
        "e": ('{"family": "uniform", "lower": [1], "upper": [0]}', ": "),
        "f": (uniform + '"about": "\\ud800"}', "surrogates not allowed"),
    }
    for name, (text, _) in bad.items():
        (tmp_path / f"{name}.json").write_text(text)
    for words in ([], ["--json"]):
        assert main(["targets", "--shelf", str(tmp_path), *words]) == 1
        said = capsys.readouterr()
        assert "chen2010_mixture" in said.out
        told = said.err.splitlines()
        assert len(told) == len(bad)
        for line, (name, (_, why)) in zip(told, bad.items(), strict=True):
            assert line.startswith(str(tmp_path / f"{name}.json")) and why in line
        if words:
            assert [row["name"] for row in json.loads(said.out)] == ["chen2010_mixture"]


def test_a_folder_is_not_a_site_file(tmp_path, capsys):
    assert main(["jobscript", str(tmp_path)]) == 2
    told = f"bqlib: {tmp_path}: a folder, not a site file; give a site file such as "
    assert capsys.readouterr().err.startswith(told)


def ran(words, **options):
    command = [sys.executable, "-m", "bqlib", *words]
    buffered = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    options = {"stderr": subprocess.PIPE, "env": buffered} | options
    return subprocess.run(command, cwd=PROJECT, **options)


def test_plugins_that_draw_load_whatever_backend_jupyter_exports(tmp_path):
    plugin = tmp_path / "drawing.py"
    plugin.write_text("import matplotlib\nfrom bqlib.weights import uniform as rule\n")
    exported = os.environ | {"MPLBACKEND": "module://matplotlib_inline.backend_inline"}
    found = ran(["check-plugin", f"{plugin}:rule"], env=exported, stdout=subprocess.PIPE)
    assert found.returncode == 0, found.stderr


# Writes a part of the file, and is then ended by the signal.
ENDED = """
import os, sys
from bqlib.cli.main import main
from bqlib.results import exports
def write(dataset, path):
    path.write_text("a part")
    os.kill(os.getpid(), int(number))
    path.with_name("went on").touch()
    return 1
exports._write_csv, number = write, sys.argv.pop()
sys.exit(main())
"""


def ended_by(number, tmp_path, *before):
    words = [*before, sys.executable, "-c", ENDED, "export", "small", tmp_path / "a.csv", number]
    found = subprocess.run([*map(str, words)], capture_output=True, text=True)
    assert "Traceback" not in found.stderr
    return found.returncode, {path.name for path in tmp_path.iterdir() if path.is_file()}


@pytest.mark.parametrize("number", [15, 1, 2])  # SIGTERM, SIGHUP, SIGINT
def test_a_command_that_a_signal_ends_leaves_no_part_of_a_file(results, tmp_path, number):
    assert ended_by(number, tmp_path) == (128 + number, set())


def test_under_nohup_a_command_goes_on(results, tmp_path):
    code, left = ended_by(1, tmp_path, "nohup")
    assert code == 0 and left == {"a.csv", "went on"}


OPTIMIZED = os.environ | {"PYTHONOPTIMIZE": "2"}  # Python then drops all docstrings
EVERY_COMMAND = [
    ["validate", "--shelf", SHELF, "sweep.yaml"],
    ["plan", "--shelf", SHELF, "sweep.yaml"],
    ["jobscript", str(PROJECT / "profiles" / "cluster" / "site.yaml")],
    ["schema"],
    ["init", "a project"],
    ["check-plugin", "uniform_weights.py:rule"],
    ["targets", "--shelf", SHELF],
    ["algorithms"],
    ["problems"],
    ["show", "--shelf", SHELF, "sweep.yaml"],
    ["status", "small"],
    ["show", "small"],
    ["check", "small"],
    ["export", "small", "small.csv"],
    ["profile", "small"],
    ["retry", "--damaged", "--shelf", SHELF, "--sweep", "sweep.yaml", "small"],
    ["claims", "small"],
    ["submission-template", "kmeans"],
    ["score", "entry"],
    ["submission-of", "entry", "halves", "--to", "again"],
    ["archive", "add", "entry", "--to", "archive"],
    ["archive", "check", "archive"],
    ["archive", "table", "archive"],
]


def test_a_schema_is_that_of_the_project(capsys):
    for words in (["schema"], ["schema", "site"]):
        assert main(words) == 0
        file = PROJECT / "config" / "schemas" / f"{words[-1].replace('schema', 'sweep')}.json"
        assert capsys.readouterr().out == file.read_text()


def test_every_command_works_without_docstrings(results):
    Path("uniform_weights.py").write_text("from bqlib.weights import uniform as rule\n")
    told = Status("node1", 7, 0.0, 1.0, 2.0, 1, 1, 2, 2, 0, 0, None, 0, "")
    Layout("small").status.write_bytes(as_json(told))
    submitted.write("entry", [("box_1d_brownian", 0, [[0.25], [0.75]])], method="halves")
    # Those that run sweeps become Snakemake.
    assert {words[0] for words in EVERY_COMMAND} == set(NAMES) - {"run", "resume"}
    code = "import json, sys\nfrom bqlib.cli.main import main\n"
    code += "print([main(words) for words in json.loads(sys.argv[1])], file=sys.stderr)"
    command = [sys.executable, "-c", code, json.dumps(EVERY_COMMAND)]
    found = subprocess.run(command, env=OPTIMIZED, capture_output=True, text=True)
    assert found.stderr == f"{[0] * len(EVERY_COMMAND)}\n"


@pytest.mark.parametrize("words", [["--help"], ["algorithms"], *([n, "--help"] for n in NAMES)])
def test_help_is_the_same_without_docstrings(words):
    with_docstrings, without = (
        ran(words, stdout=subprocess.PIPE, env=env) for env in (os.environ, OPTIMIZED)
    )
    assert without.returncode == 0 and without.stderr == b""
    assert without.stdout == with_docstrings.stdout


@pytest.mark.parametrize(
    "words", [["targets", "--shelf", SHELF], ["--version"], ["show", "--help"]]
)
def test_a_closed_pipe_is_no_error(words):
    reader, writer = os.pipe()
    os.close(reader)
    found = ran(words, stdout=writer)
    os.close(writer)
    assert found.stderr == b"" and found.returncode == 141


def test_a_closed_pipe_of_errors_is_no_error():
    reader, writer = os.pipe()
    os.close(reader)
    assert ran(["show", "nope"], stderr=writer).returncode == 141
    os.close(writer)


@pytest.mark.skipif(not os.path.exists("/dev/full"), reason="as Linux has it")
@pytest.mark.parametrize("words", [["algorithms"], ["--version"]])
def test_a_full_disk_is_reported(words):
    with open("/dev/full", "w") as full:
        found = ran(words, stdout=full)
    assert found.stderr == b"bqlib: the output: No space left on device\n"
    assert found.returncode == 2


def test_an_answer_that_nobody_wants_is_no_error():
    found = ran(["algorithms"], preexec_fn=lambda: os.close(1))
    assert found.stderr == b"" and found.returncode == 0


@pytest.mark.parametrize("words", [["show"], ["show", "--json"]])
def test_letters_that_a_terminal_lacks_are_escaped(tmp_path, words):
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text(SWEEP + "title: caf\u00e9 \U0001f600\n", encoding="utf-8")
    environment = os.environ | {"PYTHONIOENCODING": "ascii"}
    found = ran([*words, "--shelf", SHELF, str(sweep)], stdout=subprocess.PIPE, env=environment)
    assert found.stderr == b"" and found.returncode == 0
    if "--json" in words:
        assert json.loads(found.stdout)["title"] == "caf\u00e9 \U0001f600"
    else:
        assert found.stdout.startswith(b"caf\\xe9 \\U0001f600\n")


def test_a_broken_configuration_of_dask_is_one_line(tmp_path):
    (tmp_path / "notes.yaml").write_text("not a mapping")
    ran = subprocess.run(
        [sys.executable, "-m", "bqlib", "jobscript"],
        cwd=PROJECT,
        env={**os.environ, "DASK_CONFIG": str(tmp_path)},
        capture_output=True,
        text=True,
    )
    assert ran.returncode == NO_ANSWER
    assert ran.stderr.startswith(f"bqlib: A dask config file at '{tmp_path}/notes.yaml'")
    assert ran.stderr.endswith(": mend or remove it\n") and ran.stderr.count("\n") == 1


def test_a_narrow_terminal_stops_no_command(monkeypatch, capsys):
    monkeypatch.setenv("COLUMNS", "1")
    with pytest.raises(SystemExit, match="0"):
        main(["--help"])
    assert "validate" in capsys.readouterr().out


def test_rules_are_compared_by_the_points_that_they_need(results, capsys):
    assert main(["profile", "small"]) == 0
    heading, row = capsys.readouterr().out.splitlines()
    assert heading.split()[:2] == ["algorithm", "problems"] and row.split()[1] == "1"
    assert main(["profile", "--json", "small"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["remarks"] == [] and told["profile"][0]["solved"] == 1
    name = told["profile"][0]["algorithm"]
    assert main(["profile", "--json", "--versus", name, "small"]) == 0
    assert json.loads(capsys.readouterr().out) == {"versus": [], "remarks": []}
    assert main(["profile", "--versus", "none", "small"]) == 2
    assert capsys.readouterr().err == f"bqlib: small: no algorithm none; there are {name}\n"


def test_rules_of_different_pools_are_not_compared(results, capsys):
    finish(Path(), "other", SWEEP.replace("size: 20", "size: 21"))
    assert main(["profile", "small", "other"]) == 2
    assert "small or other: their pools differ: give folders of one pool" in capsys.readouterr().err
