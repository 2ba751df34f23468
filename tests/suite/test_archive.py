"""Archives: entries are added whole or not at all, and never change."""

import json
import os

import numpy as np
import pytest
import submitted

import bqlib
from bqlib.results.damage import sha256_of
from bqlib.results.layout import Layout
from bqlib.suite import archive
from bqlib.suite.about import NOBODY
from bqlib.suite.archive import ArchiveError, add, read_archive
from bqlib.suite.mistakes import SubmissionError
from bqlib.suite.recheck import check
from bqlib.sweep.problems import problems

MIDPOINTS = (np.arange(16)[:, None] + 0.5) / 16
SETS = [("box_1d_brownian", 0, MIDPOINTS), ("normal_1d_matern12", 0, MIDPOINTS * 4 - 2)]


def tree(folder):
    return {path: path.read_bytes() if path.is_file() else None for path in folder.rglob("*")}


@pytest.fixture
def entry(tmp_path):
    submitted.write(tmp_path / "mine", SETS)
    return tmp_path / "mine"


def test_an_entry_holds_the_submission_its_curves_and_their_sums(entry, tmp_path):
    path, added = add(entry, tmp_path / "archive")
    assert added and path == tmp_path / "archive" / "bqbench-1" / "halves-1.0"
    for name in ("submission.json", "points.csv"):
        assert (path / name).read_bytes() == (entry / name).read_bytes()
    definition = json.loads((path / "entry.json").read_text())
    files = {f.relative_to(path).as_posix(): f for f in path.rglob("*") if f.is_file()}
    files.pop("entry.json")
    assert definition.pop("files") == {
        name: {"sha256": sha256_of(f.read_bytes()), "bytes": f.stat().st_size}
        for name, f in files.items()
    }
    scores = definition.pop("problems")
    assert definition == {
        "schema_version": 1,
        "suite": "bqbench-1",
        "method": "halves",
        "version": "1.0",
        "bqlib_version": bqlib.__version__,
    }
    assert scores.keys() == {name for name, *_ in SETS}
    brownian = scores["box_1d_brownian"]
    assert brownian["sha256"] == problems()["box_1d_brownian"].sha256
    assert abs(brownian["mmd"] - 1 / (np.sqrt(12) * 16)) < 1e-12
    assert (brownian["seeds"], brownian["n"], brownian["of_levels"]) == (1, 16, 51)
    curves = bqlib.open_results(path)
    assert curves["mmd"].sel(target="box_1d_brownian", n=16).item() == brownian["mmd"]
    assert [p.name for p in (tmp_path / "archive").rglob(".*")] == []
    (found,) = read_archive(tmp_path / "archive")
    assert found.about.licence == "CC-BY-4.0" and found.definition.name == "halves-1.0"
    assert list(check(tmp_path / "archive")) == [("bqbench-1/halves-1.0", ())]


def test_the_same_submission_is_there_already_and_another_is_refused(entry, tmp_path):
    path, _ = add(entry, tmp_path / "archive")
    before = tree(tmp_path / "archive")
    assert add(entry, tmp_path / "archive") == (path, False)
    submitted.write(tmp_path / "other", SETS[:1])
    with pytest.raises(ArchiveError, match=r"another points\.csv; entries never change"):
        add(tmp_path / "other", tmp_path / "archive")
    submitted.write(tmp_path / "said", SETS, licence="CC0-1.0")
    with pytest.raises(ArchiveError, match=r"another submission\.json"):
        add(tmp_path / "said", tmp_path / "archive")
    assert tree(tmp_path / "archive") == before
    submitted.write(tmp_path / "next", SETS[:1], version="1.1")
    assert add(tmp_path / "next", tmp_path / "archive")[1]
    assert [e.definition.name for e in read_archive(tmp_path / "archive")] == [
        "halves-1.0", "halves-1.1",
    ]  # fmt: skip


def test_what_cannot_be_scored_is_not_added(entry, tmp_path):
    points = (entry / "points.csv").read_text()
    (entry / "points.csv").write_text(points.replace("0.03125", "nan", 1))
    with pytest.raises(SubmissionError, match=r"points\.csv:2: .*not a number"):
        add(entry, tmp_path / "archive")
    assert not (tmp_path / "archive").exists()


def test_an_addition_that_fails_leaves_nothing(entry, tmp_path, monkeypatch):
    def fail(*_):
        raise OSError(28, "no space left")

    monkeypatch.setattr(archive, "write_scores", fail)
    with pytest.raises(OSError, match="no space left"):
        add(entry, tmp_path / "archive")
    assert [p for p in (tmp_path / "archive").rglob("*") if p.is_file()] == []


@pytest.mark.parametrize(
    "version", ["../1", "a/b", ".", "..", "", "-1", "1\n", "1 ", "é", "x" * 33]
)
def test_a_version_is_never_a_path(version, entry, tmp_path):
    said = json.loads((entry / "submission.json").read_text()) | {"version": version}
    (entry / "submission.json").write_text(json.dumps(said))
    before = tree(tmp_path)
    with pytest.raises(SubmissionError, match="is not a valid version"):
        add(entry, tmp_path / "archive")
    assert tree(tmp_path) == before


@pytest.mark.parametrize("place", ["", "halves-1.0"])
def test_nothing_is_added_through_a_link(place, entry, tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    link = tmp_path / "archive" / "bqbench-1" / place
    link.parent.mkdir(parents=True)
    link.symlink_to(elsewhere)
    with pytest.raises(ArchiveError, match="is a link"):
        add(entry, tmp_path / "archive")
    assert list(elsewhere.iterdir()) == []
    ((_, problems_),) = check(tmp_path / "archive")
    assert "is no folder, or a link" in problems_[0]


def test_an_entry_that_is_damaged_is_not_replaced(entry, tmp_path):
    path, _ = add(entry, tmp_path / "archive")
    (path / "entry.json").write_text("{}")
    with pytest.raises(ArchiveError, match=r"entry\.json: .*missing[\s\S]*already, and damaged"):
        add(entry, tmp_path / "archive")
    (path / "entry.json").unlink()
    with pytest.raises(ArchiveError, match=r"entry\.json: is missing"):
        add(entry, tmp_path / "archive")
    assert Layout(path).curves.is_dir()


def test_of_two_additions_at_once_one_is_added(entry, tmp_path, monkeypatch):
    score = archive.score

    def meanwhile(submission):
        monkeypatch.setattr(archive, "score", score)
        assert add(entry, tmp_path / "archive")[1]
        return score(submission)

    monkeypatch.setattr(archive, "score", meanwhile)
    _, added = add(entry, tmp_path / "archive")
    assert not added
    assert os.listdir(tmp_path / "archive" / "bqbench-1") == ["halves-1.0"]


def test_reading_does_not_look_at_points_but_at_all_else(entry, tmp_path):
    path, _ = add(entry, tmp_path / "archive")
    (path / "points.csv").write_text("")
    assert len(read_archive(tmp_path / "archive")) == 1
    (path / "submission.json").write_text((path / "submission.json").read_text() + " ")
    with pytest.raises(ArchiveError, match=r"halves-1\.0/submission\.json: is damaged"):
        read_archive(tmp_path / "archive")
    with pytest.raises(FileNotFoundError):
        read_archive(tmp_path / "nowhere")


def test_too_many_entries_are_told(entry, tmp_path, monkeypatch):
    add(entry, tmp_path / "archive")
    (tmp_path / "archive" / "bqbench-1" / "more").mkdir()
    monkeypatch.setattr(archive, "MOST_ENTRIES", 1)
    assert list(check(tmp_path / "archive")) == [
        ("bqbench-1", ("bqbench-1: has more than 1 entries",))
    ]


def test_authors_must_be_filled_in(tmp_path):
    """An entry never changes, so that it could not be done later."""
    submitted.write(tmp_path / "mine", [("box_1d_brownian", 0, [[0.5]])], authors=[NOBODY])
    with pytest.raises(ArchiveError, match='authors: "your name" stands for them'):
        add(tmp_path / "mine", tmp_path / "archive")
    assert not (tmp_path / "archive").exists()


def test_an_addition_that_goes_on_hides_no_entry(tmp_path):
    submitted.write(tmp_path / "mine", SETS)
    path, _ = add(tmp_path / "mine", tmp_path / "archive")
    (path.parent / f".{'0' * 32}.halves-1.1").mkdir()
    assert [entry.definition.name for entry in read_archive(tmp_path / "archive")] == [path.name]
