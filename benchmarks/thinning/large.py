"""Time and memory of thinning many draws, and goodpoints on the same pools.

First: 100,000 draws of the logistic regression's chain to 1,000 points, with and without scores, a
process each. MB is the peak of that process, beside that of one which only reads the draws.

Then 65,536 points to 256 by Compress++, and 10,000 to 156 by kernel thinning: pools of the paper's
mixture, in two dimensions, and its kernel. bqlib and goodpoints take turns, a process each, so
that what else the machine does falls on both. Ratios are of medians. MMD: that to the pool, as root
mean squares over the seeds of the rules.

Seconds are those of the processor. One thread for all.
Run: python benchmarks/thinning/large.py [--seeds S] [--part thin | peers]
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from files import run
from measures import mean_of_pairs, mmd
from problems import chain

sys.path.append(str(Path(__file__).parents[1] / "peers"))
from environments import THREADS, python_of  # of the peers

MIXTURE = Path(__file__).parents[2] / "config" / "targets" / "chen2010_mixture.json"
MANY, KEPT = 100_000, 1_000
LENGTHSCALE = 0.5
# Candidates and points, then code, its name of the rule, and ours; the first is that of the ratios.
CONTESTS = [
    (
        (65_536, 256),
        [
            ("bqlib", "compress of a pool"),
            ("goodpoints", "compress++, g = 0"),
            ("goodpoints", "compress++, g = 2"),
            ("goodpoints", "compress++, g = 4"),
        ],
    ),
    (
        (10_000, 156),
        [
            ("bqlib", "kernel thinning of a pool"),
            ("goodpoints", "kernel thinning"),
            ("goodpoints", "kernel thinning, matrix"),
        ],
    ),
]


def mixture(size):
    """Independent draws of the paper's mixture."""
    numbers = json.loads(MIXTURE.read_text())
    weights, means, covariances = (
        np.array(numbers[key]) for key in ("weights", "means", "covariances")
    )
    rng = np.random.default_rng(0)
    component = rng.choice(len(weights), size=size, p=weights / weights.sum())
    factors = np.linalg.cholesky(covariances)[component]
    return means[component] + np.einsum("nij,nj->ni", factors, rng.standard_normal((size, 2)))


def many_draws(python):
    output = chain("logistic", 0, MANY)
    given = {"draws": output.draws, "scores": output.scores, "n": KEPT, "seed": 0}
    print(f"{MANY} draws to {KEPT}, d = {output.draws.shape[1]}")
    print(f"{'rule':22} {'seconds':>8} {'MB':>6} {'distinct':>8}")
    for rule in ("nothing", "default", "sbq", "scores", "scores, sbq"):
        facts = run(python, "bqlib", [rule], THREADS, **given)[rule]
        distinct = len(np.unique(output.draws[facts["rows"]], axis=0))
        print(f"{rule:22} {facts['seconds']:8.2f} {facts['peak']:6.0f} {distinct:8}", flush=True)


def contest(size, n, entrants, pythons, seeds):
    pool = mixture(size)
    pairs = mean_of_pairs(pool, LENGTHSCALE)
    given = {"draws": pool, "n": n, "scale": np.ones(2), "lengthscale": LENGTHSCALE}
    found = {entrant: [] for entrant in entrants}
    for seed in range(seeds):
        for code, rule in entrants:
            facts = run(pythons[code], code, [rule], THREADS, seed=seed, **given)[rule]
            rows, weights = np.array(facts["rows"]), np.array(facts["weights"])
            distance = mmd(pool, pool[rows], weights, LENGTHSCALE, pairs)
            found[code, rule].append((facts["seconds"], facts["peak"], distance))
    print(f"\n{size} points to {n}, {seeds} seeds in turns")
    print(f"{'code':10} {'rule':26} {'seconds':>8} {'bqlib / it':>10} {'MB':>6} {'MMD':>8}")
    ours = np.median(np.array(found[entrants[0]])[:, 0])
    for code, rule in entrants:
        seconds, peak, distance = np.array(found[code, rule]).T
        middle = np.median(seconds)
        print(
            f"{code:10} {rule:26} {middle:8.3f} {ours / middle:10.2f} {np.median(peak):6.0f} "
            f"{np.sqrt(np.mean(distance**2)):8.5f}",
            flush=True,
        )


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--seeds", type=int, default=10, help="of the rules (default: 10)")
    parser.add_argument("--part", choices=("thin", "peers"), help="only this (default: both)")
    asked = parser.parse_args()
    if asked.part != "peers":
        many_draws(sys.executable)
    if asked.part != "thin":
        pythons = {code: python_of(code) for code in ("bqlib", "goodpoints")}
        if pythons["goodpoints"] is None:
            sys.exit("goodpoints could not be installed: it needs a C compiler")
        for (size, n), entrants in CONTESTS:
            contest(size, n, entrants, pythons, asked.seeds)
