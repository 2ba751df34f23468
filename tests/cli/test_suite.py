"""The commands of those who enter a method in the benchmark suite."""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import submitted

import bqlib
from bqlib.cli.command import NO_ANSWER, PROBLEM
from bqlib.cli.main import main
from bqlib.suite.submission import read_submission

MIDPOINTS = [("box_1d_brownian", seed, (np.arange(16)[:, None] + 0.5) / 16) for seed in range(2)]


@pytest.fixture
def entry(tmp_path, monkeypatch):
    """A submission in the working directory."""
    monkeypatch.chdir(tmp_path)
    submitted.write("entry", MIDPOINTS)
    return Path("entry")


def test_a_submission_is_scored(entry, capsys):
    before = {path: path.read_bytes() for path in entry.iterdir()}
    assert main(["score", "entry"]) == 0
    title, _, head, row, _, last = capsys.readouterr().out.strip().split("\n")
    assert title == "halves 1.0, set, weights uniform"
    assert head.split("  ")[0] == "problem"
    name, seeds, n, mmd, best, levels, *_ = row.split()
    assert (name, seeds, n, mmd) == ("box_1d_brownian", "2", "16", "1.804e-02")
    assert float(best) < float(mmd)
    assert last == f"1 problem, {levels} of 51 levels; curves: entry/curves.zarr"
    curves = bqlib.open_results("entry")
    assert curves["algorithm"].values.tolist() == ["halves"]
    assert {path: path.read_bytes() for path in before} == before
    assert [path.name for path in Path().iterdir()] == ["entry"]
    assert {path.name for path in entry.iterdir()} == {p.name for p in before} | {"curves.zarr"}


def test_what_is_worse_than_no_points_is_asked_about(tmp_path, capsys):
    sets = [("box_1d_brownian", 0, [[0.5]], [100.0]), ("box_1d_bridge", 0, [[0.5]], [1.0])]
    submitted.write(tmp_path / "mine", sets, weights="own")
    assert main(["score", str(tmp_path / "mine")]) == 0
    said = capsys.readouterr().out
    assert "\nMMDs above that of no points: box_1d_brownian. Are weights, columns and" in said
    assert main(["profile", str(tmp_path / "other")]) == 2
    submitted.write(tmp_path / "other", sets, weights="own")
    capsys.readouterr()
    assert main(["profile", str(tmp_path / "other")]) == 2
    assert f"is a submission without scores: bqlib score {tmp_path}" in capsys.readouterr().err


def test_scores_go_where_they_are_asked_for(entry, capsys):
    assert main(["score", "entry", "--to", "elsewhere", "--json"]) == 0
    told = json.loads(capsys.readouterr().out)
    assert told["problems"] == [] and told["curves"] == "elsewhere/curves.zarr"
    assert (told["method"], told["version"]) == ("halves", "1.0")
    assert told["sha256"] == read_submission("entry").sha256
    (row,) = told["scores"]
    assert abs(row["mmd"] - 1 / (np.sqrt(12) * 16)) < 1e-12
    assert not (entry / "curves.zarr").exists()
    assert bqlib.open_results("elsewhere")["status"].values.ravel().tolist().count(1) == 2


def test_what_is_wrong_is_told_with_its_row(entry, capsys):
    table = entry / "points.csv"
    table.write_text(table.read_text().replace("0.96875", "nan"))
    assert main(["score", "entry"]) == PROBLEM
    told = capsys.readouterr()
    assert told.out == ""
    assert [line.partition(": ")[0] for line in told.err.strip().split("\n")] == [
        "points.csv:17",
        "points.csv:33",
    ]
    assert main(["score", "entry", "--json"]) == PROBLEM
    told = json.loads(capsys.readouterr().out)["problems"]
    assert told[0] == 'points.csv:17: column x_1: "nan" is not a number such as 0.25, -3 or 1e-5'
    assert not (entry / "curves.zarr").exists()


def test_results_of_a_run_are_not_replaced(entry, capsys):
    Path("run", "pieces").mkdir(parents=True)
    assert main(["score", "entry", "--to", "run"]) == NO_ANSWER
    assert "run holds results that are no scores of a submission" in capsys.readouterr().err
    assert [path.name for path in Path("run").iterdir()] == ["pieces"]


def test_curves_of_others_are_not_followed_or_replaced(entry, capsys):
    assert main(["score", "entry", "--to", "kept"]) == 0
    kept = {path: path.lstat().st_mtime_ns for path in Path("kept").rglob("*")}
    (entry / "curves.zarr").symlink_to(Path("kept", "curves.zarr").absolute())
    assert main(["score", "entry"]) == 0  # the link is replaced, and not what it leads to
    assert not (entry / "curves.zarr").is_symlink()
    assert {path: path.lstat().st_mtime_ns for path in Path("kept").rglob("*")} == kept


def test_a_folder_that_is_none_is_told(entry, capsys):
    assert main(["score", "nowhere"]) == NO_ANSWER
    assert "nowhere: No such file or directory" in capsys.readouterr().err
    assert main(["score", "entry/points.csv"]) == NO_ANSWER
    assert "Not a directory" in capsys.readouterr().err


def test_nothing_beside_the_two_files_is_run(entry):
    """Modules of the names of ours, and what Python or pytest would load by itself."""
    canary = Path("canary").absolute()
    code = f"open({str(canary)!r}, 'w').close()\n"
    for name in ("numpy", "bqlib", "json", "sitecustomize", "conftest", "submission", "zarr"):
        (entry / f"{name}.py").write_text(code)
    (entry / "setup.cfg").write_text("[metadata]\n")
    command = [Path(sys.executable).with_name("bqlib"), "score", "."]
    environment = os.environ | {"PYTHONPATH": str(Path(bqlib.__file__).parents[1])}
    done = subprocess.run(command, cwd=entry, env=environment, capture_output=True, text=True)
    assert done.returncode == 0, done.stderr
    assert not canary.exists()


def test_a_template_is_written_once(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    assert main(["submission-template", "kmeans"]) == 0
    assert capsys.readouterr().out == "kmeans: 4 files; README.txt says how to go on\n"
    assert main(["submission-template", "kmeans"]) == NO_ANSWER
    assert "kmeans has README.txt already: give another folder" in capsys.readouterr().err
    assert main(["submission-template", "kmeans", "--to", "entries/a"]) == 0
    assert read_submission("entries/a").about.method == "kmeans"
    assert main(["score", "kmeans"]) == PROBLEM
    assert "points.csv: has no rows: there is nothing to score" in capsys.readouterr().err


@pytest.mark.parametrize("words", [["../up"], ["a/b"], ["sbq"], ["a", "--seeds", "0"]])
def test_labels_and_seeds_that_are_none_are_refused(words, tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    try:
        code = main(["submission-template", *words])
    except SystemExit as error:
        code = error.code
    assert code == NO_ANSWER and capsys.readouterr().err
    assert not list(tmp_path.iterdir())


def test_a_rule_of_a_run_becomes_a_submission(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    submitted.run(submitted.sweep_of(["box_1d_korobov1"], ["sobol_bq"], seeds=1), "small")
    assert main(["submission-of", "small", "sobol_bq", "--to", "again"]) == 0
    assert capsys.readouterr().out == "again: 1 point set of sobol_bq\n"
    assert main(["score", "again"]) == 0
    merged = bqlib.open_results(["small", "again"])
    mmd = merged["mmd"].sel(target="box_1d_korobov1").squeeze()
    ours, theirs = (mmd.sel(algorithm=a) for a in ("sobol_bq", "sobol_bq_submitted"))
    np.testing.assert_array_equal(ours, theirs)
    for words, said in (
        (["small", "sbq"], "there is no algorithm sbq"),
        (["small", "sobol_bq"], "submission.json is there already"),
        (["nowhere", "sbq"], "nowhere: no such folder"),
    ):
        assert main(["submission-of", *words, "--to", "again"]) == NO_ANSWER
        assert said in capsys.readouterr().err
