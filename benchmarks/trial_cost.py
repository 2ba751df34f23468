"""Time and memory of one trial, as ratios within one run.

A trial of SBQ is measured by matrix-vector products, one for each point picked over the rows of the
basis so far; herding needs none. Large pools are measured too, where several products are worked
out together. Prints each figure beside its bound, and exits with 1 where one is above it.
Run: python benchmarks/trial_cost.py
"""

import json
import sys
import time
import tracemalloc
from pathlib import Path
from statistics import median

import numpy as np
from threadpoolctl import threadpool_limits

from bqlib import Candidates, ExponentiatedQuadratic, GaussianMixture, herding, joint, sbq
from bqlib.trial import trial
from bqlib.weights import bq, uniform

M, N, RUNS = 10_000, 400, 5
LARGE, RUNS_OF_LARGE = 100_000, 3
TARGET = Path(__file__).parent.parent / "config" / "targets" / "chen2010_mixture.json"


def seconds(function):
    """Of the processor, as other programs may use the machine."""
    start = time.process_time()
    function()
    return time.process_time() - start


def products(basis):
    """The matrix-vector products of one SBQ design."""
    row = np.ones(N)
    for n in range(N):
        _ = row[:n] @ basis[:n]


def in_turn(jobs, runs):
    """Seconds of all jobs in each round, so that a change of the machine's speed meets all."""
    for job in jobs.values():
        job()
    return [{name: seconds(job) for name, job in jobs.items()} for _ in range(runs)]


def of_large_pool(target, kernel):
    """Seconds of SBQ and of its products for a large pool, in rounds."""
    pool = Candidates(LARGE).draw(target, np.random.default_rng(0))
    basis = np.random.default_rng(0).random((N, LARGE))
    return in_turn(
        {
            "products": lambda: products(basis),
            "sbq": lambda: sbq(target, kernel, N, rng=0, candidates=pool),
        },
        RUNS_OF_LARGE,
    )


if __name__ == "__main__":
    numbers = json.loads(TARGET.read_text())
    mixture = GaussianMixture(*(numbers[key] for key in ("weights", "means", "covariances")))
    kernel = ExponentiatedQuadratic(0.5, scale="density")
    pool = Candidates(size=M)
    basis = np.random.default_rng(0).random((N, M))
    drawn = pool.draw(mixture, np.random.default_rng(0))
    jobs = {
        "products": lambda: products(basis),
        "sbq": lambda: sbq(mixture, kernel, N, rng=0, candidates=drawn),
        "sbq trial": lambda: trial(mixture, kernel, sbq, bq, pool, N, 0),
        "herding": lambda: herding(mixture, kernel, N, rng=0, candidates=drawn),
        "herding trial": lambda: trial(mixture, kernel, herding, uniform, pool, N, 0),
        "joint": lambda: joint(mixture, kernel, N, rng=0, candidates=drawn),
    }
    with threadpool_limits(1):
        rounds = in_turn(jobs, RUNS)
        del basis
        tracemalloc.start()
        jobs["sbq trial"]()
        peak = tracemalloc.get_traced_memory()[1]
        tracemalloc.stop()
        normal = GaussianMixture([1.0], [np.zeros(5)], [np.eye(5)])
        large = {2: of_large_pool(mixture, kernel)}
        large[5] = of_large_pool(normal, ExponentiatedQuadratic(1.0))

    def ratio(job, other, rounds=rounds, about=""):
        return f"{job} / {other}{about}", median(r[job] / r[other] for r in rounds)

    rows = [
        (*ratio("sbq", "products"), 1.5),
        (*ratio("sbq trial", "products"), 1.6),
        (*ratio("sbq", "products", large[2], f", M = {LARGE}, d = 2"), 0.85),
        (*ratio("sbq", "products", large[5], f", M = {LARGE}, d = 5"), 0.6),
        (*ratio("herding", "sbq"), 0.3),
        (*ratio("herding trial", "sbq trial"), 0.35),
        (*ratio("joint", "sbq"), 60),
        ("peak memory of the trial / basis", peak / (M * N * 8), 2),
    ]
    print(*(f"{name} {median(r[name] for r in rounds):.3f} s" for name in jobs), sep=", ")
    for dim, found in large.items():
        times = (f"{name} {median(r[name] for r in found):.3f} s" for name in found[0])
        print(f"M = {LARGE}, d = {dim}:", *times)
    for name, found, bound in rows:
        print(f"{name:38} {found:6.2f}  at most {bound:g}")
    sys.exit(any(found > bound for _, found, bound in rows))
