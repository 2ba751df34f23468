"""Measured cost of each algorithm: the only results that differ from run to run."""

import time
import tracemalloc
from dataclasses import replace

import numpy as np

from bqlib.schema import Variable
from bqlib.streams import stream
from bqlib.studies.plans import PLANS, SHARES, one_pool, requires_joint, requires_of_plans
from bqlib.studies.study import Study
from bqlib.sweep.spec import Algorithm

FRESH_SHARE = 0.1  # of the pool's size, for plans that draw a new pool at each step
RUNS, ENOUGH = 3, 0.5  # the best of 3 runs, or of fewer that take 0.5 s together

FRESH = ("herding_fresh", "sbq_fresh")  # draw a new pool at each step
# Only the SBQ design that it starts from depends on the pool.
SLOW = ("joint",)


def cost(target, kernel, candidates, n, seed, plans):
    """Seconds and memory of a design and its weights, without drawing its pool.

    Seconds are CPU seconds of one thread, so that other programs change them little.

    Returns
    -------
    dict of ndarray
        ``seconds`` (plan, n) with the whole pool, ``seconds_by_pool`` (plan, pool) with half the
        points, NaN for joint refinement; and ``peak_bytes`` (plan,) with half the points and the
        whole pool. The plans with fresh candidates have a tenth of the pool at each step.
    """
    sizes = np.unique([max(1, round(share * n)) for share in SHARES]).tolist()
    pools = {}
    for share in SHARES:
        pool = one_pool(candidates, target, stream("candidates", seed), share)
        pools[len(pool)] = pool
    half = max(1, n // 2)
    pools = {size: pool for size, pool in pools.items() if size >= half}
    whole = pools[max(pools)]
    seconds = np.empty((len(plans), len(sizes)))
    by_pool = np.full((len(plans), len(pools)), np.nan)
    peak = np.empty(len(plans))
    for i, (name, (design, rule)) in enumerate(plans.items()):

        def run(count, pool, design=design, rule=rule, name=name):
            if name in FRESH:
                share = max(1, round(FRESH_SHARE * len(pool)))
                pool = replace(candidates, size=share, fresh=True)
            rng = stream(f"study/{name}", seed)
            made = design(target, kernel, count, rng=rng, candidates=pool)
            rule(made.embedding, made.points).final(count)

        run(sizes[0], whole)  # the first call also loads and plans
        seconds[i] = [_seconds(run, size, whole) for size in sizes]
        if name not in SLOW:
            by_pool[i] = [_seconds(run, half, pool) for pool in pools.values()]
        peak[i] = peak_bytes(run, half, whole)
    return {
        "plan": np.array(list(plans)),
        "n": np.array(sizes),
        "pool": np.array(list(pools)),
        "seconds": seconds,
        "seconds_by_pool": by_pool,
        "peak_bytes": peak,
    }


def requires_of_cost(target, kernel):
    """Raise the TypeError or ValueError of the first plan whose design cannot work on the pair."""
    requires_of_plans(target, kernel)
    requires_joint(target, kernel)


def _seconds(run, *arguments):
    found = []
    while len(found) < RUNS and sum(found) < ENOUGH:
        start = time.thread_time()
        run(*arguments)
        found.append(time.thread_time() - start)
    return min(found)


def peak_bytes(function, *arguments):
    """Peak of the memory that a call allocates."""
    tracemalloc.start()
    try:
        function(*arguments)
        return tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


STUDY = Study(
    function=cost,
    seeds=5,
    variables={
        "seconds": Variable(("plan", "n"), "CPU time of one thread, whole pool", "s"),
        "seconds_by_pool": Variable(("plan", "pool"), "CPU time of one thread, half of n", "s"),
        "peak_bytes": Variable(("plan",), "peak memory, whole pool and half of n", "B"),
    },
    coordinates={
        "plan": ("how points are picked and weighted", ""),
        "n": ("number of points", "1"),
        "pool": ("number of candidates", "1"),
    },
    precondition=requires_of_cost,
    plans=(
        *PLANS,
        Algorithm("herding_fresh", "herding", "uniform"),
        Algorithm("sbq_fresh", "sbq", "bq"),
        Algorithm("joint", "joint", "bq"),
    ),
)
