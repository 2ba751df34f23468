"""Arrays in stores carry checksums."""

import pytest
from damage import flip

import bqlib
from bqlib.results.store import gather


def test_a_flipped_bit_in_a_chunk_is_an_error(experiment, pieces, tmp_path):
    gather(experiment, tmp_path)
    chunk = next((tmp_path / "curves.zarr" / "mmd").glob("c.*"))
    flip(chunk, place=chunk.stat().st_size // 2)
    with pytest.raises(Exception, match=r"(?i)checksum|crc"):
        bqlib.open_results(tmp_path).mmd.load()
