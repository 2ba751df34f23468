"""Compare two folders of results: every array of every store and piece, bit for bit.

    python benchmarks/same_results.py results/before results/after

Prints how many arrays are the same, and those that differ or are in one folder only. Exits with 1
if there are any. Digests, versions and dates are not compared: they tell by what and when the
results were made. The study `cost` measures seconds and is left out.
"""

import argparse
import io
import sys
import zipfile
from pathlib import Path

import numpy as np
import zarr

from bqlib.results.layout import CURVES, FUNCTION_ERRORS, RATES, Layout

LEFT_OUT = {"cost"}  # studies


def arrays_of(results):
    """Name and values of every array, stores first."""
    at = Layout(results)
    stores = [at.folder / name for name in (CURVES, RATES, FUNCTION_ERRORS)]
    stores += sorted(path for path in at.studies.glob("*.zarr") if path.stem not in LEFT_OUT)
    for store in stores:
        if store.exists():
            yield from _arrays(store.relative_to(at.folder), zarr.open_group(store, mode="r"))
    for piece in sorted(at.pieces.rglob("*.zip")):
        with zipfile.ZipFile(io.BytesIO(piece.read_bytes())) as archive:
            files = {name: archive.read(name) for name in archive.namelist()}
        buffers = {
            name: zarr.core.buffer.default_buffer_prototype().buffer.from_bytes(data)
            for name, data in files.items()
        }
        store = zarr.storage.MemoryStore(buffers, read_only=True)
        yield from _arrays(piece.relative_to(at.folder), zarr.open_group(store, mode="r"))


def _arrays(path, group):
    for name, array in sorted(group.arrays()):
        yield f"{path}/{name}", np.asarray(array[...])


def same(one, other):
    """Whether two arrays are equal to the last bit, NaN included."""
    if one.shape != other.shape or one.dtype != other.dtype:
        return False
    if one.dtype.kind == "f":
        return one.tobytes() == other.tobytes()
    return bool(np.all(one == other))


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("before", type=Path)
    parser.add_argument("after", type=Path)
    given = parser.parse_args()
    before, after = (dict(arrays_of(folder)) for folder in (given.before, given.after))
    both = sorted(before.keys() & after.keys())
    differing = [name for name in both if not same(before[name], after[name])]
    print(f"{len(both) - len(differing)} of {len(before)} arrays are the same")
    for name in differing:
        print(f"differs: {name}")
    for name in sorted(before.keys() ^ after.keys()):
        print(f"only in {given.before if name in before else given.after}: {name}")
    sys.exit(bool(differing or before.keys() != after.keys()))


if __name__ == "__main__":
    main()
