"""Time and memory of reading and gathering results of a million curves.

Builds the stores in a temporary folder (1 GB), prints each figure beside its bound, and exits with
1 where one is above it. Run: python benchmarks/results_store.py
"""

import json
import os
import resource
import sys
import time
import zipfile
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import zarr

import bqlib
from bqlib.results.layout import piece_name
from bqlib.results.pieces import ZIP_DATE, encode_piece
from bqlib.results.store import gather
from bqlib.sweep.file import load

SEEDS, N = 20, 100
RULES = ("uniform", "bq")
DESIGNS = ("iid", "herding", "sbq", "omp", "p_greedy", "rpcholesky", "frank_wolfe", "sobol",
           "fp_greedy", "block_sbq")  # fmt: skip
SWEEP = """
name: {name}
targets: [{targets}]
kernels:
  eq: {{family: exponentiated_quadratic}}
  rough: {{family: matern, nu: 0.5}}
  smooth: {{family: matern, nu: 2.5}}
  heavy: {{family: rational_quadratic}}
  density: {{family: exponentiated_quadratic, scale: density}}
lengthscales: {lengthscales}
algorithms: [{algorithms}]
n: {n}
seeds: {seeds}
seeds_per_job: {seeds}
rate_windows: [[10, {n}]]
"""


def sweep(folder, lengthscales, rules):
    """A sweep of 10 targets, 5 kernels and 10 designs, with so many length-scales and rules."""
    folder.mkdir()
    for i in range(10):
        target = {"family": "gaussian_mixture", "weights": [1], "means": [[i, 0]]}
        target["covariances"] = [[[1, 0], [0, 1]]]
        (folder / f"target_{i}.json").write_text(json.dumps(target))
    pairs = product(DESIGNS, rules)
    algorithms = [f"{{name: {d}_{w}_, design: {d}, weights: {w}}}" for d, w in pairs]
    text = SWEEP.format(
        name=folder.name, n=N, seeds=SEEDS, algorithms=", ".join(algorithms),
        targets=", ".join(f"target_{i}.json" for i in range(10)),
        lengthscales=[float(f"{x:.4g}") for x in np.geomspace(0.1, 10, lengthscales)],
    )  # fmt: skip
    (folder / "sweep.yaml").write_text(text)
    return load(folder / "sweep.yaml")


def random_trial(rng):
    curves = ("mmd", "weight_sum", "weight_l1", "min_weight", "weights")
    return {
        **{name: rng.random(N) for name in curves},
        "duplicates": np.floor(np.arange(N) / 30),
        "points": rng.standard_normal((N, 2)),
        "rank_reached": N,
        "reason": "",
    }


def write_pieces(experiment, folder):
    """A piece for each cell: the same numbers, under the digest of each."""
    rng = np.random.default_rng(0)
    cells = experiment.cells()
    spec, block = experiment.spec(cells[0]), experiment.blocks()[0]
    made = folder / "made.zip"
    made.write_bytes(encode_piece(spec, range(SEEDS), [random_trial(rng) for _ in range(SEEDS)]))
    with zipfile.ZipFile(made) as archive:
        members = {name: archive.read(name) for name in archive.namelist()}
    for cell in cells:
        path = folder / "pieces" / piece_name(cell, block)
        path.parent.mkdir(parents=True, exist_ok=True)
        root = members["zarr.json"].replace(
            spec.digest.encode(), experiment.spec(cell).digest.encode()
        )
        with zipfile.ZipFile(path, "w") as archive:
            for name, data in {**members, "zarr.json": root}.items():
                archive.writestr(zipfile.ZipInfo(name, ZIP_DATE), data)
    return len(cells)


def fill(path):
    """Write the first chunk of each number of a store, and let all others be links to it."""
    rng = np.random.default_rng(0)
    for name, array in zarr.open_group(path).arrays():
        if array.ndim == 1 or name == "reason":
            continue
        values = rng.random(array.chunks) if array.dtype == np.float64 else np.int8(1)
        array[tuple(slice(0, size) for size in array.chunks)] = values
        chunk = path / name / f"c.{'.'.join('0' * array.ndim)}"
        grid = [-(-size // c) for size, c in zip(array.shape, array.chunks, strict=True)]
        for index in np.ndindex(*grid):
            if any(index):
                place = path / name / f"c.{'.'.join(map(str, index))}"
                place.unlink(missing_ok=True)
                os.link(chunk, place)


def in_a_process(function, *arguments):
    """What a function returns and the bytes at its process's peak."""
    with ProcessPoolExecutor(1, mp_context=get_context("spawn")) as pool:
        return pool.submit(_with_peak, function, *arguments).result()


def _with_peak(function, *arguments):
    found = function(*arguments)
    return found, 1024 * resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


def seconds(function, *arguments):
    start = time.perf_counter()
    found = function(*arguments)
    return found, time.perf_counter() - start


def read(path):
    _, first = seconds(bqlib.open_results, path)
    curves, opened = seconds(bqlib.open_results, path)
    cell = curves.mmd.isel(target=7, kernel=3, lengthscale=40, algorithm=11)
    _, median = seconds(lambda: cell.median("seed").values)
    return int(np.prod(curves.status.shape)), first, opened, median


def gather_again(folder):
    experiment = load(folder / "sweep.yaml")
    _, wall = seconds(gather, experiment, folder / "pieces", folder / "curves.zarr")
    return wall, time.process_time()


if __name__ == "__main__":
    with TemporaryDirectory() as temporary:
        large = Path(temporary, "large")
        gather(sweep(large, 50, RULES), large)
        fill(large / "curves.zarr")
        (count, first, opened, median), peak = in_a_process(read, large)
        small = Path(temporary, "small")
        pieces = write_pieces(sweep(small, 20, RULES[:1]), small)
        (gathered, cpu), most = in_a_process(gather_again, small)
    rows = [
        (f"open {count} curves, s", opened, 0.5),
        ("median curve of one cell, s", median, 1),
        ("peak memory of both, GB", peak / 1e9, 1),
        (f"gather {pieces} pieces, s", gathered, 60),
        ("peak memory of that, GB", most / 1e9, 2),
    ]
    print(f"the first store opened in a process takes {first:.2f} s, which is to load libraries")
    print(f"the process that gathers takes {cpu:.0f} s of CPU time in all")
    for name, found, bound in rows:
        print(f"{name:34} {found:6.2f}  at most {bound:g}")
    sys.exit(any(found > bound for _, found, bound in rows))
