import json

import pytest

from bqlib.cli.main import main
from bqlib.results.timings import failed_trials, read_timing
from bqlib.results.used import all_failed
from bqlib.running.session import lock

GOOD, BAD = "mixture/eq/0.5/sbq/seeds-0-1.zarr.zip", "mixture/eq/0.5/sbq/seeds-2-3.zarr.zip"


def make_results(folder):
    timings = {
        GOOD: {"seconds": {"0": 1.5, "1": 2.0}, "failed": {}},
        BAD: {"seconds": {"2": 1.0, "3": None}, "failed": {"3": "out of memory"}},
    }
    for piece, content in timings.items():
        for path, text in {
            folder / "pieces" / piece: "piece",
            folder / "timings" / piece.replace(".zarr.zip", ".json"): json.dumps(content),
        }.items():
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
    (folder / "curves.zarr").mkdir()
    (folder / "curves.zarr" / "zarr.json").write_text("{}")
    return folder


def test_seconds_and_failures_are_read(tmp_path):
    results = make_results(tmp_path)
    assert read_timing(results, GOOD) == ({0: 1.5, 1: 2.0}, {})
    assert read_timing(results, BAD) == ({2: 1.0}, {3: "out of memory"})
    assert read_timing(results, "mixture/eq/1/sbq/seeds-0-1.zarr.zip") == ({}, {})
    assert failed_trials(results, [GOOD, BAD]) == [(BAD, 3, "out of memory")]
    assert failed_trials(results, [GOOD]) == []


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", "\xff", '{"seconds": 1}'])
def test_a_damaged_file_stops_no_command_and_is_named_and_made_anew(tmp_path, capsys, text):
    results = make_results(tmp_path)
    damaged = results / "timings" / GOOD.replace(".zarr.zip", ".json")
    damaged.write_text(text, encoding="latin-1")
    assert read_timing(results, GOOD) == ({}, {})
    assert main(["retry", "--damaged", str(results)]) == 0
    assert f"{damaged.relative_to(results)}: is damaged" in capsys.readouterr().out
    assert not damaged.exists() and not (results / "pieces" / GOOD).exists()


def test_retry_deletes_the_pieces_with_failures_alone(tmp_path, capsys):
    results = make_results(tmp_path)
    assert main(["retry", str(results)]) == 0
    said = capsys.readouterr().out.splitlines()
    assert said[0] == f"{BAD}: seed 3 had failed: out of memory"
    assert said[1] == "1 failed trial; 3 files deleted; the next run makes them anew"
    assert (results / "pieces" / GOOD).exists() and not (results / "pieces" / BAD).exists()
    assert not (results / "curves.zarr" / "zarr.json").exists()
    assert all_failed(results) == []


def test_without_failures_nothing_is_deleted(tmp_path):
    results = make_results(tmp_path)
    (results / "pieces" / BAD).unlink()
    assert main(["retry", str(results)]) == 0
    assert (results / "curves.zarr" / "zarr.json").exists()


def test_retry_needs_results(tmp_path, capsys):
    assert main(["retry", str(tmp_path)]) == 2
    assert "no results are there yet" in capsys.readouterr().err


def test_retry_leaves_the_results_of_a_run_alone(tmp_path, capsys):
    results = make_results(tmp_path)
    with lock(results):
        assert main(["retry", str(results)]) == 2
    assert "another run works on" in capsys.readouterr().err
    assert (results / "pieces" / BAD).exists()
