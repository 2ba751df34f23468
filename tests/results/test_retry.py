"""What is deleted so that the next run computes it, by `bqlib retry` too."""

import pytest
from damage import files
from project import SHELF
from written_results import BAD, GOOD, TIMED, write_failure, write_timed_pieces

from bqlib.cli.main import main
from bqlib.results import store
from bqlib.results.integrity import check, write_manifest
from bqlib.results.layout import MANIFEST, Layout, retried_name, timing_name
from bqlib.results.retry import advice, delete, outdated
from bqlib.results.timings import read_timing
from bqlib.results.used import all_failed
from bqlib.running.session import lock
from bqlib.sweep.file import load


def test_a_piece_is_deleted_with_the_curves_and_the_manifest(results):
    piece, other = files(results, "pieces/**/*.zip")[:2]
    delete(results, ["timings/" + timing_name(piece.relative_to(results / "pieces"))])
    gone = [piece, results / "curves.zarr" / "zarr.json", results / MANIFEST]
    assert not any(path.exists() for path in gone) and other.exists()
    assert (results / "report.html").exists()
    # What is there now has no record of the piece, and is no fault.
    (fault,) = check(results).faults
    assert (fault.path, fault.what) == ("curves.zarr/zarr.json", "is missing")


def test_one_command_mends_a_truncated_piece(finished, results, capsys):
    experiment, _ = finished
    piece = files(results, "pieces/**/*.zip")[0]
    piece.write_bytes(piece.read_bytes()[:200])
    with pytest.raises(store.SchemaError) as caught:
        store.gather(experiment, results)
    command = f"bqlib retry --damaged {results}"
    assert str(piece) in str(caught.value) and command in str(caught.value)
    assert main(["check", str(results)]) == 1
    said = capsys.readouterr().out
    assert str(piece) in said and command in said
    assert main(command.split()[1:]) == 0 and not piece.exists()
    write_timed_pieces(experiment, results)
    store.gather(experiment, results)
    write_manifest(results)
    assert main(["check", str(results)]) == 0


def test_files_of_another_sweep_are_known(finished, results, tmp_path):
    experiment, _ = finished
    assert outdated(results, experiment) == []
    (tmp_path / "sweep.yaml").write_text(TIMED.replace("size: 50", "size: 51"))
    changed = outdated(results, load(tmp_path / "sweep.yaml", SHELF))
    assert len(changed) == 9 and changed[-1] == "curves.zarr/zarr.json"
    (tmp_path / "sweep.yaml").write_text(TIMED.replace("[0.5, 2]", "[0.5]"))
    assert outdated(results, load(tmp_path / "sweep.yaml", SHELF)) == ["curves.zarr/zarr.json"]
    sweep = ["--sweep", str(tmp_path / "sweep.yaml"), "--shelf", str(SHELF)]
    assert main(["retry", *sweep, str(results)]) == 0
    assert len(files(results, "pieces/**/*.zip")) == 8


def test_retry_deletes_the_pieces_with_failures_alone(tmp_path, capsys):
    results = write_failure(tmp_path)
    assert all_failed(results) == [(BAD, 3, "out of memory")]
    assert main(["retry", str(results)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"{BAD}: seed 3 failed: out of memory"
    assert said[1] == "1 failed trial; 3 files deleted; the next run recreates what is missing"
    assert (results / "pieces" / GOOD).exists() and not (results / "pieces" / BAD).exists()
    assert not (results / "curves.zarr" / "zarr.json").exists()
    assert all_failed(results) == []


def test_retry_keeps_the_trials_that_succeeded(tmp_path, capsys):
    results = write_failure(tmp_path)
    at = Layout(results)
    text = at.timing(BAD).read_text()
    at.timing(BAD).write_text(text.replace("{", '{"digest": "of its spec", ', 1))
    assert main(["retry", str(results)]) == 0
    assert (
        "1 failed trial; 1 piece set aside, 2 files deleted; the next run"
        in capsys.readouterr().out
    )
    new = retried_name(BAD)
    assert not at.piece(BAD).exists() and not at.timing(BAD).exists()
    assert at.piece(new).read_text() == "piece" and read_timing(results, new)[0] == {2: 1.0}
    assert main(["retry", str(results)]) == 0  # its failure does not count any more
    assert "0 failed trials; nothing to delete" in capsys.readouterr().out
    assert at.piece(new).exists()


def test_retry_does_not_keep_what_is_damaged_too(tmp_path):
    results = write_failure(tmp_path)
    timing = Layout(results).timing(BAD)
    record = '{"digest": "of its spec", "sha256": "other", '
    timing.write_text(timing.read_text().replace("{", record, 1))
    assert main(["retry", "--damaged", str(results)]) == 0
    assert not Layout(results).piece(retried_name(BAD)).exists()
    assert not timing.exists()


def test_what_the_last_run_told_goes_with_what_it_was_told_of(tmp_path):
    results = write_failure(tmp_path)
    Layout(results).status.touch()
    assert main(["retry", str(results)]) == 0
    assert not Layout(results).status.exists()


def test_results_whose_pieces_are_set_aside_are_not_called_damaged(tmp_path, capsys):
    results = write_failure(tmp_path)
    at = Layout(results)
    at.piece(BAD).rename(at.piece(retried_name(BAD)))
    (at.curves / "zarr.json").unlink()
    for path in (results, at.curves):
        assert main(["show", str(path)]) == 2
        assert f"no results at {results} yet, only pieces" in capsys.readouterr().err


def test_without_failures_nothing_is_deleted(tmp_path):
    results = write_failure(tmp_path)
    Layout(results).status.touch()
    (results / "pieces" / BAD).unlink()
    assert main(["retry", str(results)]) == 0
    assert (results / "curves.zarr" / "zarr.json").exists()
    assert Layout(results).status.exists()


def test_retry_needs_results(tmp_path, capsys):
    assert main(["retry", str(tmp_path)]) == 2
    assert "no results are there yet" in capsys.readouterr().err


def test_retry_leaves_the_results_of_a_run_alone(tmp_path, capsys):
    results = write_failure(tmp_path)
    with lock(results):
        assert main(["retry", str(results)]) == 2
    assert "another run works on" in capsys.readouterr().err
    assert (results / "pieces" / BAD).exists()


def test_what_fails_again_is_told_apart_from_what_may_pass():
    passing = ["out of memory: 3 GB", "the worker died in each of 4 runs of this trial: killed"]
    [lost] = advice(passing, "results/x")
    assert lost.startswith("2 of 2 failed trials ran out of memory or lost their workers")
    assert "bqlib retry results/x" in lost
    lost, certain = advice([*passing, "MemoryErrors: no", "ValueError: out of memory"], "r")
    assert lost.startswith("2 of 4 ") and certain.startswith("2 of 4 failed trials ended with an")
    assert "they fail again as long as sweep, code and what they use are the same" in certain
    assert advice([], "results/x") == []
