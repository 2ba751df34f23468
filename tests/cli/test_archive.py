"""The command for archives."""

import numpy as np
import pytest
import submitted

from bqlib.cli.main import main
from bqlib.suite.archive import add

MIDPOINTS = (np.arange(16)[:, None] + 0.5) / 16
SETS = [("box_1d_brownian", 0, MIDPOINTS)]


@pytest.fixture
def archive(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    submitted.write(tmp_path / "halves", SETS)
    add("halves", "archive")
    return tmp_path / "archive" / "bqbench-1" / "halves-1.0"


def test_an_entry_is_added_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    submitted.write(tmp_path / "halves", SETS)
    assert main(["archive", "add", "halves", "--to", "archive"]) == 0
    assert capsys.readouterr().out == "archive/bqbench-1/halves-1.0: added\n"
    assert main(["archive", "add", "halves", "--to", "archive"]) == 0
    assert capsys.readouterr().out == "archive/bqbench-1/halves-1.0: already there\n"
    submitted.write(tmp_path / "other", [("box_1d_brownian", 0, MIDPOINTS[:4])])
    assert main(["archive", "add", "other", "--to", "archive"]) == 1
    said = capsys.readouterr()
    assert said.out == "" and "entries never change" in said.err
    (tmp_path / "other" / "points.csv").write_text("x")
    assert main(["archive", "add", "other", "--to", "archive"]) == 1
    assert "points.csv:1: " in capsys.readouterr().err


def test_an_archive_is_checked(archive, capsys):
    assert main(["archive", "check", "archive"]) == 0
    assert capsys.readouterr().out == "bqbench-1/halves-1.0: right\n1 checked, 0 wrong\n"
    (archive / "points.csv").unlink()
    assert main(["archive", "check", "archive"]) == 1
    assert capsys.readouterr().out == (
        "bqbench-1/halves-1.0/points.csv: is missing\n1 checked, 1 wrong\n"
    )


def test_a_table_is_printed_and_written(archive, tmp_path, capsys):
    assert main(["archive", "table", "archive"]) == 0
    head, row = capsys.readouterr().out.splitlines()
    assert head.startswith("Method") and row.startswith("halves") and "1 of 42" in row
    words = ["--html", "out/t.html", "--markdown", "t.md"]
    assert main(["archive", "table", "archive", *words]) == 0
    assert capsys.readouterr().out.splitlines() == [
        head, row, "out/t.html: 1 method", "t.md: 1 method"
    ]  # fmt: skip
    assert main(["archive", "table", "archive", str(archive)]) == 2
    assert "halves is a submission: add it to an archive" in capsys.readouterr().err
    assert (tmp_path / "out" / "t.html").read_text().startswith("<!doctype html>")
    assert (tmp_path / "t.md").read_text().startswith("# Methods on bqbench-1\n")
    (archive / "entry.json").write_text("{}")
    assert main(["archive", "table", "archive"]) == 1
    assert "bqbench-1/halves-1.0/entry.json: " in capsys.readouterr().err


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["add", "halves"], "archive add needs --to ARCHIVE"),
        (["check", "archive", "--to", "x"], "archive check takes no --to"),
        (["check", "archive", "x"], "archive check takes no results, --html or --markdown"),
        (["table", "archive", "nowhere"], "nowhere: no such folder"),
        (["check", "nowhere"], "nowhere: No such file or directory"),
        (["add", "nowhere", "--to", "archive"], "nowhere: No such file or directory"),
    ],
)
def test_wrong_words_are_told(words, told, archive, capsys):
    assert main(["archive", *words]) == 2
    assert capsys.readouterr().err == f"bqlib: {told}\n"
