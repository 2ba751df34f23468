"""The command line: its help, its answers, its exit codes, and what docs/cli.md says of it."""

import argparse
import json
import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from bqlib import claims
from bqlib.cli.command import COMMANDS
from bqlib.cli.main import main, parser
from bqlib.results import pieces, store
from bqlib.results.integrity import write_manifest
from bqlib.results.layout import piece_name, timing_name
from bqlib.sweep import registry
from bqlib.sweep.file import load

ROOT = Path(__file__).parent.parent
QUICK, SHELF = str(ROOT / "config" / "quick.yaml"), str(ROOT / "config" / "targets")
PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def parsers():
    (commands,) = (a for a in parser()._actions if isinstance(a, argparse._SubParsersAction))
    return commands.choices


@pytest.mark.parametrize("name", COMMANDS)
def test_the_page_says_what_the_help_says(name):
    parser = parsers()[name]
    section = re.search(rf"^## {name}$(.*?)(?=^## |\Z)", PAGE, re.MULTILINE | re.DOTALL)[1]
    options = {option for action in parser._actions for option in action.option_strings}
    told = set(re.findall(r"`(--[a-z-]+)`", section)) - {"--check", "--quiet"}
    assert told <= options
    assert options - {"-h", "--help"} <= told
    examples = parser.epilog.partition("examples:\n")[2].splitlines()
    assert examples
    for example in examples:
        assert example.strip() in section, example


def test_the_page_has_every_command_and_no_other():
    assert set(re.findall(r"^## (.*)$", PAGE, re.MULTILINE)) == set(COMMANDS)
    assert set(re.findall(r"\[`bqlib ([a-z-]+)`\]\(#", PAGE)) == set(COMMANDS)


@pytest.mark.parametrize("name", COMMANDS)
def test_help_fits_a_terminal(name, capsys, monkeypatch):
    monkeypatch.setenv("COLUMNS", "80")
    with pytest.raises(SystemExit) as ended:
        main([name, "--help"])
    assert ended.value.code == 0
    assert max(map(len, capsys.readouterr().out.splitlines())) <= 100


def test_version_and_wrong_use(capsys):
    with pytest.raises(SystemExit) as ended:
        main(["--version"])
    assert ended.value.code == 0 and re.fullmatch(r"bqlib \d+\.\d+.*\n", capsys.readouterr().out)
    for wrong in ([], ["valdate"], ["validate"], ["plan", "--worker", "x", QUICK]):
        with pytest.raises(SystemExit) as ended:
            main(wrong)
        assert ended.value.code == 2


@pytest.mark.parametrize("command", ["validate", "plan", "show", "check", "retry", "claims"])
def test_what_is_not_there_is_said_in_one_line(command, capsys):
    assert main([command, "nope.yaml"]) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("bqlib: ") and "nope.yaml" in said.err
    assert said.err.count("\n") == 1


@pytest.mark.parametrize(
    "words", [["show"], ["check"], ["retry"], ["claims"], ["export", "--points"]]
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
    assert "config: a folder, and no sweep file; " in capsys.readouterr().err


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


def test_every_algorithm_is_listed_with_its_cost(capsys):
    assert main(["algorithms", "--json"]) == 0
    rows = json.loads(capsys.readouterr().out)
    assert [row["name"] for row in rows] == list(registry.ALGORITHMS)
    costs = {row["name"]: row["cost"] for row in rows}
    assert costs["sbq"] == "O(M n) a step + O(n^3)"
    assert main(["algorithms"]) == 0
    assert len(capsys.readouterr().out.splitlines()) == len(rows) + 1


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
    (folder / "sweep.yaml").write_text(SWEEP)
    experiment, results = load(folder / "sweep.yaml", SHELF), folder / "small"
    (cell,), (block,) = experiment.cells(), experiment.blocks()
    spec, name = experiment.spec(cell), piece_name(cell, block)
    piece, timing = results / "pieces" / name, results / "timings" / timing_name(name)
    for path in (piece, timing):
        path.parent.mkdir(parents=True)
    piece.write_bytes(pieces.encode_piece(spec, [0], [spec.run(0)[0]]))
    timing.write_text(json.dumps({"digest": spec.digest, "seconds": {"0": 1.0}}))
    store.gather(experiment, results)
    (results / "claims.json").write_text(claims.as_json([], [], []))
    write_manifest(results)
    return folder


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
def test_damaged_results_are_told_in_a_line_with_what_to_do(results, capsys, words, path, old, new):
    assert main(words) == 0
    capsys.readouterr()
    content = (results / path).read_bytes()
    assert old is None or old in content
    (results / path).write_bytes(new if old is None else content.replace(old, new))
    assert main(words) == 2
    said = capsys.readouterr()
    assert said.out == "" and said.err.startswith("bqlib: small") and said.err.count("\n") == 1
    assert "cannot be read (" in said.err and said.err.endswith("damaged: bqlib check small\n")
    assert main(["check", "small"]) == 1


def test_an_export_to_another_kind_of_file_is_no_damage(results, capsys):
    assert main(["export", "small", "small.xlsx"]) == 2
    assert capsys.readouterr().err == "bqlib: small.xlsx: must end in .csv, .parquet, .nc\n"
    Path("small.csv").mkdir()
    assert main(["export", "small", "small.csv"]) == 2
    assert "small.csv is a folder" in capsys.readouterr().err


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
    command = re.search("made anew: bqlib (.*), then run", said)[1]
    there = len(list(results.rglob("[!.]*")))
    assert main(command.split()) == 0
    deleted = there - len(list(results.rglob("[!.]*")))
    last = capsys.readouterr().out.splitlines()[-1]
    files = "1 file" if deleted == 1 else f"{deleted} files"
    assert last == f"0 failed trials; {files} deleted; the next run makes them anew"
    assert main(command.split()) == 0
    assert capsys.readouterr().out.endswith("0 failed trials; nothing to delete\n")


def test_a_trial_beyond_all_memory_has_no_plan(tmp_path, capsys):
    sweep = tmp_path / "sweep.yaml"
    sweep.write_text(
        SWEEP.replace("size: 20", "size: 20, fresh: true").replace("n: 3", "n: 1" + 9 * "0")
    )
    assert main(["validate", "--shelf", SHELF, str(sweep)]) == 0
    assert main(["plan", "--shelf", SHELF, str(sweep)]) == 2
    assert "more memory than this machine has: ask for fewer" in capsys.readouterr().err


def test_bad_files_among_the_targets_are_named_below_the_good_ones(tmp_path, capsys):
    shutil.copy(Path(SHELF, "chen2010_mixture.json"), tmp_path)
    uniform = '{"family": "uniform", "lower": [0], "upper": [1], '
    bad = {
        "a": ("{", "is not JSON: line 1"),
        "b": ("[]", "must hold one JSON object"),
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


def test_a_folder_is_no_site_file(tmp_path, capsys):
    assert main(["jobscript", str(tmp_path)]) == 2
    assert capsys.readouterr().err.startswith(f"bqlib: {tmp_path}: a folder; name a site file")


def ran(words, **options):
    command = [sys.executable, "-m", "bqlib", *words]
    buffered = {key: value for key, value in os.environ.items() if key != "PYTHONUNBUFFERED"}
    options = {"stderr": subprocess.PIPE, "env": buffered} | options
    return subprocess.run(command, cwd=ROOT, **options)


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
def test_a_full_disk_is_told(words):
    with open("/dev/full", "w") as full:
        found = ran(words, stdout=full)
    assert found.stderr == b"bqlib: the answer: No space left on device\n"
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
