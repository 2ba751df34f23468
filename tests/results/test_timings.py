"""The file of timings of each piece."""

import json
import os

import pytest
from damage import files
from written_results import BAD, GOOD, write_failure

from bqlib.cli.main import main
from bqlib.results.integrity import check
from bqlib.results.layout import MANIFEST, PROVENANCE, Layout
from bqlib.results.timings import digest_of, failed_trials, read_timing


def test_seconds_and_failures_are_read(tmp_path):
    results = write_failure(tmp_path)
    assert read_timing(results, GOOD) == ({0: 1.5, 1: 2.0}, {})
    assert read_timing(results, BAD) == ({2: 1.0}, {3: "out of memory"})
    assert read_timing(results, "mixture/eq/1/sbq/seeds-0-1.zarr.zip") == ({}, {})
    assert failed_trials(results, [GOOD, BAD]) == [(BAD, 3, "out of memory")]
    assert failed_trials(results, [GOOD]) == []


@pytest.mark.parametrize("text", ["", "{", "{}", "[]", "\xff", '{"seconds": 1}'])
def test_a_damaged_file_stops_no_command_and_is_named_and_deleted(tmp_path, capsys, text):
    results = write_failure(tmp_path)
    damaged = results / "timings" / GOOD.replace(".zarr.zip", ".json")
    damaged.write_text(text, encoding="latin-1")
    assert read_timing(results, GOOD) == ({}, {})
    assert main(["retry", "--damaged", str(results)]) == 0
    what = "is damaged: " if text else "is empty"
    assert f"{damaged.relative_to(results)}: {what}" in capsys.readouterr().out
    assert not damaged.exists() and not (results / "pieces" / GOOD).exists()


@pytest.mark.parametrize(
    ("change", "said"),
    [
        ({"digest": "0" * 16}, "its digest is not that of pieces/"),
        ({"digest": "x"}, "its digest is none"),
        ({"sha256": None}, "its sha256 is none"),
        ({"sha256": ...}, "it has other keys"),
        ({"sha256": "0" * 64}, "its sha256 is not that of the piece"),
        ({"seconds": []}, "no JSON object"),
        ({"seconds": {"0": "1.5"}}, "its seconds are no numbers"),
        ({"seconds": {"0": True}}, "its seconds are no numbers"),
        ({"seconds": {"0": -1.0}}, "its seconds are no numbers"),
        ({"seconds": {"7": 1.5}}, "not those of the seeds"),
        ({"seconds": {"0": None}}, "none of one that did not"),
        ({"failed": {"0": "out of memory"}}, "seconds of a trial that failed"),
        ({"failed": ...}, "it has other keys"),
        ({"versions": {"numpy": 2}}, "no texts"),
    ],
)
def test_timings_that_are_not_those_of_their_piece_are_named(results, change, said):
    for name in (MANIFEST, PROVENANCE):  # as in a run that has not finished
        (results / name).unlink()
    timing = files(results, "timings/**/seeds-0-0.json")[0]
    content = json.loads(timing.read_text()) | change
    timing.write_text(json.dumps({k: v for k, v in content.items() if v is not ...}))
    found = {fault.path: fault.what for fault in check(results).faults}
    path = str(timing.relative_to(results))
    assert said in found[path]
    assert found.keys() - {path} <= {path.replace("timings", "pieces").replace("json", "zarr.zip")}


@pytest.mark.parametrize("recorded", [True, False])
def test_a_piece_without_its_timings_is_named_and_recomputed(results, capsys, recorded):
    if not recorded:
        for name in (MANIFEST, PROVENANCE):
            (results / name).unlink()
    timing = files(results, "timings/**/seeds-0-0.json")[0]
    timing.unlink()
    path = str(timing.relative_to(results))
    assert [(f.path, f.what) for f in check(results).faults] == [(path, "is missing")]
    main(["retry", "--damaged", str(results)])
    assert f"{path}: is missing" in capsys.readouterr().out
    assert not (results / path.replace("timings", "pieces").replace("json", "zarr.zip")).exists()


def deep(path):
    path.write_text("[" * 100_000)


@pytest.mark.parametrize("make", [os.mkfifo, deep, os.mkdir])
def test_timings_that_are_no_file_or_nested_too_deeply_are_none(tmp_path, make):
    at = Layout(tmp_path)
    at.timings.mkdir()
    make(at.timing("seeds-0-9.zarr.zip"))
    assert read_timing(tmp_path, "seeds-0-9.zarr.zip") == ({}, {})
    assert digest_of(tmp_path, "seeds-0-9.zarr.zip") is None


def test_seconds_that_are_no_times_are_left_out(tmp_path):
    at = Layout(tmp_path)
    at.timings.mkdir()
    at.timing("a").write_text('{"seconds": {"0": 1e999, "1": true, "2": 0.5}, "failed": {"3": 5}}')
    assert read_timing(tmp_path, "a") == ({2: 0.5}, {3: "5"})
