"""Records of what outputs were made of, and the dates that follow from them."""

import os
import time
from dataclasses import replace

import pytest

from bqlib.results.integrity import check
from bqlib.results.layout import Layout, path_of_piece, path_of_timing
from bqlib.results.records import Step, digest, settle, write_record
from bqlib.results.retry import delete
from bqlib.results.timings import sha256_of

PIECE = "normal/eq/1/iid/seeds-0-9.zarr.zip"


@pytest.fixture
def made(tmp_path):
    """Results of two steps, made of one piece: at, steps, scripts, and a function that settles."""
    at = Layout(tmp_path / "small")
    script = tmp_path / "gather.py"
    curves, rates = (at.record(name) for name in ("curves", "rates"))
    steps = [
        Step("a", (at.piece(PIECE),), (at.curves, curves), curves, at.benchmark("gather")),
        Step("b", (at.curves, curves), (at.rates, rates), rates, at.benchmark("rates")),
    ]
    for path in (at.piece(PIECE), at.timing(PIECE), at.curves, at.rates, script):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text("a file")
    at.benchmark("gather").parent.mkdir()
    at.benchmark("gather").write_text("a benchmark")
    at.timing(PIECE).write_text('{"sha256": "one"}')
    for step in steps:
        write_record(at.folder, step.record, step.made_by, step.inputs)

    def settled(steps=steps):
        settle(at.folder, [(at.piece(PIECE), at.timing(PIECE))], [], steps, [script])
        return [is_current(step, script) for step in steps]

    return at, steps, script, settled


def is_current(step, script):
    """Whether Snakemake takes the outputs of a step for current, by their dates."""
    outputs = [path.stat().st_mtime for path in (*step.outputs, step.benchmark) if path.exists()]
    inputs = [path.stat().st_mtime for path in step.inputs]
    assert max(*outputs, *inputs) <= time.time()
    return min(outputs) > script.stat().st_mtime and min(outputs) >= max(inputs)


def set_dates(paths, dates):
    for path, date in zip(paths, dates, strict=True):
        os.utime(path, (date, date))


@pytest.mark.parametrize("piece", [1e9, 1.9e9, 3e9])
@pytest.mark.parametrize("gathered", [2e9, 1.1e9])
@pytest.mark.parametrize("benchmark", [3e9, 1.1e9])
@pytest.mark.parametrize("script", [3e9, 1.2e9, 0.9e9])
def test_dates_say_nothing_of_what_is_current(made, piece, gathered, benchmark, script):
    at, _, own, settled = made
    paths = [at.piece(PIECE), at.curves, at.record("curves"), at.benchmark("gather"), own]
    set_dates(paths, [piece, gathered, 1.3e9, benchmark, script])
    set_dates([at.rates, at.record("rates")], [1e9, 1e9])
    assert settled() == [True, True]


def test_dates_that_are_right_stay(made):
    at, _, script, settled = made
    paths = [script, at.piece(PIECE), at.timing(PIECE), at.curves, at.record("curves"), at.rates]
    set_dates(paths, [1e9, 1.1e9, 1.1e9, 1.2e9, 1.2e9, 1.3e9])
    set_dates([at.record("rates"), at.benchmark("gather")], [1.3e9, 1.25e9])
    assert settled() == [True, True]
    assert at.rates.stat().st_mtime == 1.3e9 and at.piece(PIECE).stat().st_mtime == 1.1e9


def test_other_pieces_and_other_code_make_outputs_outdated(made):
    at, steps, _, settled = made
    timing = at.timing(PIECE)
    timing.write_text('{"sha256": "two"}')
    assert settled() == [False, False]
    timing.write_text('{"sha256": "one"}')
    assert settled() == [True, True]  # nothing is lost by a dry run
    other = Step("c", *(getattr(steps[1], name) for name in list(vars(steps[1]))[1:]))
    assert settled([steps[0], other]) == [True, False]
    # What the first is made of decides, even where its own record is not yet right.
    first = Step("c", *(getattr(steps[0], name) for name in list(vars(steps[0]))[1:]))
    assert settled([first, steps[1]]) == [False, False]


def test_a_damaged_record_makes_its_output_outdated_and_is_named(made, tmp_path):
    at, _, _, settled = made
    for data in (b"", b"\xff" * 65, at.record("curves").read_bytes()[:-2]):
        at.record("curves").write_bytes(data)
        assert settled() == [False, True]
        faults = {fault.path: fault.what for fault in check(at.folder).faults}
        assert faults["records/curves.txt"] == "is damaged"
    delete(at.folder, ["records/curves.txt"])
    assert not at.record("curves").exists()


def test_what_is_missing_and_what_belongs_to_others_is_left_alone(made, monkeypatch):
    at, _, script, settled = made
    at.curves.unlink()
    date = at.record("curves").stat().st_mtime
    settle(at.folder, [], [], [], [script.with_name("none.py")])
    assert at.record("curves").stat().st_mtime == date
    at.curves.write_text("a file")

    def refuse(path, times):
        raise PermissionError(1, "Operation not permitted")

    set_dates([at.rates], [1e9])
    monkeypatch.setattr(os, "utime", refuse)
    assert settled() == [True, False]


def test_outdated_outputs_of_another_user_are_made_again(made, monkeypatch):
    at, steps, _, settled = made
    assert settled() == [True, True]
    before = at.record("rates").read_bytes()
    theirs, set_date = {path.stat().st_ino for path in at.folder.rglob("*")}, os.utime

    def as_another_user(path, times):
        if times and os.stat(path).st_ino in theirs:
            raise PermissionError(1, "Operation not permitted")
        set_date(path, times)

    monkeypatch.setattr(os, "utime", as_another_user)
    assert settled() == [True, True]
    assert settled([steps[0], replace(steps[1], made_by="changed")]) == [True, False]
    assert at.record("rates").read_bytes() == before
    piece, script = at.piece(PIECE), steps[0].inputs[0].with_name("none.py")
    script.write_text("a script")
    settle(at.folder, [], [piece], [], [script])
    assert piece.read_text() == "a file" and piece.stat().st_mtime < script.stat().st_mtime


def test_pieces_and_studies_are_known_by_what_their_jobs_recorded(results):
    at = Layout(results)
    piece = next(path for path in at.pieces.rglob("*.zip"))
    name = piece.relative_to(at.pieces).as_posix()
    study = at.study("cost") / "zarr.json"
    study.parent.mkdir(parents=True)
    study.write_text('{"attributes": {"digest": "one"}}')
    inputs = [piece, study, at.figure("mmd", "svg")]

    def record():
        write_record(at.folder, at.record("a"), "code", inputs)
        return at.record("a").read_text()

    sums = {path_of_piece(name): sha256_of(at.folder, name), "studies/cost.zarr/zarr.json": "one"}
    before = record()
    assert before == digest(["code", sums]) + "\n"
    study.write_text('{"attributes": {"digest": "two"}}')
    assert record() != before
    study.unlink()
    at.file(path_of_timing(name)).unlink()
    assert record() not in (before, digest(["code", {}]) + "\n")
