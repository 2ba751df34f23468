"""Seconds of fitting the rates of 252 cells of 5 seeds in 2 windows, and of a map of them.

    OPENBLAS_NUM_THREADS=1 python benchmarks/rates_of_many_cells.py

The curves are synthetic: power laws, stretched exponentials, floors, kinks and ripples with noise.
Seconds are those of the processor. Exits with 1 if the fits take more than 3 of them.
"""

import sys
import time
from pathlib import Path

import numpy as np

import bqlib.access.accessor  # noqa: F401

sys.path.insert(0, str(Path(__file__).parent.parent / "tests" / "helpers"))
from synthetic_sweep import correlated_noise, sweep

ALLOWED = 3.0
N = np.arange(1.0, 201)
SHAPES = (
    lambda a: N**-a,
    lambda a: np.exp(-0.3 * N ** (a / 3)),
    lambda a: np.hypot(N**-a, 0.03),
    lambda a: np.where(N <= 50, N**-0.5, 50 ** (a - 0.5) * N**-a),
    lambda a: N**-a * (1 + 0.3 * (N % 7 == 0)),
)


def many_curves():
    """A sweep of 2 targets, 3 kernels, 6 length-scales and 7 algorithms, with 5 seeds."""
    rng = np.random.default_rng(0)
    names = [f"algorithm {i}" for i in range(7)]
    dataset = sweep(
        {name: np.ones((5, len(N))) for name in names},
        lengthscales=(0.125, 0.25, 0.5, 1, 2, 4), windows=((5, 200), (20, 100)),
        targets={"a": {}, "b": {}}, kernels={"i": {}, "j": {}, "k": {}},
    )  # fmt: skip
    mmd = dataset["mmd"].values
    for k, cell in enumerate(np.ndindex(mmd.shape[:4])):
        mean = SHAPES[k % len(SHAPES)](rng.uniform(0.4, 1.8))
        noise = correlated_noise(rng, (5, len(N)), 10 ** rng.uniform(-4, -0.7))
        mmd[cell] = mean * np.exp(noise)
    return dataset


def seconds(function):
    start = time.process_time()
    found = function()
    return time.process_time() - start, found


def main():
    curves = many_curves()
    fitting, found = seconds(curves.bq.rates)
    drawing, _ = seconds(lambda: curves.bq.plot.heatmap(x="lengthscale", y="algorithm"))
    cells = found["verdict"].isel(window=0).size
    print(f"{cells} cells, {curves.sizes['seed']} seeds, {found.sizes['window']} windows")
    print(f"fitted: {fitting:.2f} s; heat map of these rates: {drawing:.2f} s")
    return fitting > ALLOWED


if __name__ == "__main__":
    raise SystemExit(main())
