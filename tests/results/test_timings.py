"""The file of timings of each piece."""

import pytest
from written_results import BAD, GOOD, write_failure

from bqlib.cli.main import main
from bqlib.results.timings import failed_trials, read_timing


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
