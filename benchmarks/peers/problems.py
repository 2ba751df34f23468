"""The two problems, for the peers and for bqlib alike; numpy is all that is needed."""

import json
import resource
import sys
import time
from pathlib import Path

import numpy as np

CHEN2010 = Path(__file__).parents[2] / "config" / "targets" / "chen2010_mixture.json"
LENGTHSCALE = 0.5
# Name: number of candidates M and of points n. Kernel thinning wants M = 4^i and n = 2^i.
SIZES = {"normal": (2000, 50), "mixture": (4096, 64)}


def parts(problem):
    """Weights, means and covariances of the target's components."""
    if problem == "normal":
        return np.ones(1), np.zeros((1, 2)), np.eye(2)[None]
    numbers = json.loads(CHEN2010.read_text())
    return tuple(np.array(numbers[key]) for key in ("weights", "means", "covariances"))


def pool(problem):
    """M independent draws from the target."""
    rng = np.random.default_rng(0)
    weights, means, covariances = parts(problem)
    size, _ = SIZES[problem]
    component = rng.choice(len(weights), size=size, p=weights / weights.sum())
    factors = np.linalg.cholesky(covariances)[component]
    return means[component] + np.einsum("nij,nj->ni", factors, rng.standard_normal((size, 2)))


def report(rules):
    """Run the rule that the command line names, twice, and print what came out as JSON.

    `rules` has a function of a problem's name for each rule; it returns row numbers of the pool,
    in order where there is one. The second run needs no compilation.
    """
    problem, rule = sys.argv[1:]
    seconds = []
    for _ in range(2):
        start = time.perf_counter()
        picks = rules[rule](problem)
        seconds.append(time.perf_counter() - start)
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    print(json.dumps({"picks": np.asarray(picks).tolist(), "seconds": seconds, "peak": peak}))
