"""Seconds of recombination, and how exact its weights are, beside bounds.

Run: .venv/bin/python benchmarks/recombination.py
"""

import sys
import time

import numpy as np

import bqlib

M, N = 10_000, 100
MOST_SECONDS, MOST_OFF = 5.0, 1e-12
SQUARE = bqlib.Uniform([0.0, 0.0], [1.0, 1.0])
NORMAL = bqlib.GaussianMixture([1.0], [[0.0, 0.0]], [np.eye(2)])
PAIRS = {
    "Korobov, unit square": (SQUARE, bqlib.Korobov()),
    "Matern 3/2, unit square": (SQUARE, bqlib.Matern(0.5, nu=1.5)),
    "exponentiated quadratic, normal": (NORMAL, bqlib.ExponentiatedQuadratic(0.5)),
}


def main():
    missed = False
    print(
        f"{N} of {M:,} candidates\n\n"
        f"{'pair':34}{'seconds':>8}{'points':>8}{'least':>10}{'sum - 1':>10}"
    )
    for name, (target, kernel) in PAIRS.items():
        pool = target.sample(M, rng=1)
        start = time.process_time()
        design = bqlib.recombination(target, kernel, N, rng=0, candidates=pool)
        seconds = time.process_time() - start
        least, off = design.weights.min(), abs(design.weights.sum() - 1)
        print(f"{name:34}{seconds:8.2f}{len(design.points):8}{least:10.1e}{off:10.0e}")
        missed |= seconds > MOST_SECONDS or len(design.points) > N or least < 0 or off > MOST_OFF
    print(f"\nbounds: {MOST_SECONDS:g} s of one CPU, {N} points, 0 and {MOST_OFF:g}")
    return int(missed)


if __name__ == "__main__":
    sys.exit(main())
