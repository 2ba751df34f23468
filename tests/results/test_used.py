"""Which pieces count."""

import shutil

from damage import files

from bqlib.results.layout import timing_name
from bqlib.results.used import all_failed, timings_used


def test_failures_and_seconds_of_pieces_that_are_not_used_do_not_count(results):
    piece = files(results, "pieces/**/*.zip")[0]
    longer = piece.with_name("seeds-0-1.zarr.zip")
    shutil.copy(piece, longer)
    timing = results / "timings" / timing_name(str(longer.relative_to(results / "pieces")))
    timing.write_text('{"seconds": {"0": 1.0}, "failed": {"1": "no room"}}')
    assert all_failed(results) == []
    assert len(timings_used(results)) == 8
