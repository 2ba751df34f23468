"""The command line: its help, its answers, its exit codes, and what docs/cli.md says of it."""

import argparse
import json
import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

from bqlib import registry
from bqlib.__main__ import COMMANDS, _parser, main

ROOT = Path(__file__).parent.parent
QUICK, SHELF = str(ROOT / "config" / "quick.yaml"), str(ROOT / "config" / "targets")
PAGE = (ROOT / "docs" / "cli.md").read_text(encoding="utf-8")


def parsers():
    (commands,) = (a for a in _parser()._actions if isinstance(a, argparse._SubParsersAction))
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


def test_a_closed_pipe_is_no_error():
    command = [sys.executable, "-m", "bqlib", "targets", "--shelf", SHELF]
    reader, writer = os.pipe()
    os.close(reader)
    ran = subprocess.run(command, stdout=writer, stderr=subprocess.PIPE, text=True, cwd=ROOT)
    os.close(writer)
    assert ran.stderr == "" and ran.returncode == 141
