"""Damage results in every way: each damage must be named, and no other values be read.

The suite does a sample. This does 150:
PYTHONPATH=.:tests/helpers .venv/bin/python tests/helpers/every_damage.py 150
"""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
from complete_results import write_results
from damage import damages

import bqlib
from bqlib.results.damage import DamagedError
from bqlib.results.integrity import check
from bqlib.results.layout import CURVES, MANIFEST, Layout, path_of_study, store_at
from bqlib.results.store import open_dataset


def opened(results):
    """Path of each store to what it holds, read whole."""
    at = Layout(results)
    studies = [path_of_study(name) for name in ("cost", "refinement")]
    readers = {
        path: lambda path=path: open_dataset(at.file(path)).load()
        for path in ("rates.zarr", "function_errors.zarr", *studies)
    }
    return readers | {CURVES: lambda: bqlib.open_results(results).load()}


def failures(results, count, seed=150):
    """What is wrong with how so many damages are told, in words: nothing, as it should be."""
    sound, wrong, done = {name: read() for name, read in opened(results).items()}, [], 0
    for what, paths in damages(results, count, np.random.default_rng(seed)):
        relative = {path.relative_to(results).as_posix() for path in paths}
        missed = relative - {fault.path for fault in check(results).faults}
        wrong += [f"{what}: {path} is not named" for path in missed]
        done += 1
        for store, read in opened(results).items():
            if MANIFEST not in relative and store not in map(store_at, relative):
                continue
            try:
                if not read().identical(sound[store]):
                    wrong.append(f"{what}: {store} has other values")
            except DamagedError as error:
                said = str(error)
                if not any(str(path) in said for path in paths):
                    wrong.append(f"{what}: {said} does not name the file")
                if f"bqlib retry --damaged {results}, then run" not in said:
                    wrong.append(f"{what}: {said} does not say what to do")
    assert done == count
    return wrong + [f"{fault.path} was not mended" for fault in check(results).faults]


if __name__ == "__main__":
    count = int(sys.argv[1])
    with TemporaryDirectory() as folder:
        found = failures(write_results(Path(folder))[1], count)
    print("\n".join(found) or f"{count} of {count} damages were named, and no other values read")
    sys.exit(bool(found))
