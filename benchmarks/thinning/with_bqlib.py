"""bqlib: rows and weights of `bqlib.thin`, and of designs for a pool as a data set.

Run: with_bqlib.py FILE RULE..., as in files.py
"""

from functools import partial

import numpy as np
from files import report
from measures import absolute_deviation, median_distance

import bqlib
from bqlib.weights import simplex


def thinned(given, scores=False, regularised=False, **options):
    """`bqlib.thin` with its defaults but for the options."""
    if scores:
        options["scores"] = given["scores"]
    if regularised:
        options["scores"] = {
            "score": given["scores"],
            "log_density": given["log_densities"],
            "hessian": given["hessians"],
        }
    made = bqlib.thin(given["draws"], int(given["n"]), rng=int(given["seed"]), **options)
    return made.rows, made.weights


def as_stein_thinning(given, median=False, **options):
    """With the units of stein_thinning, and its length-scale or that of its preconditioner med."""
    units = absolute_deviation(given["draws"])
    lengthscale = median_distance(given["draws"] / units) if median else 1.0
    return thinned(given, scores=True, units=units, lengthscale=lengthscale, **options)


def of_a_pool(rule, given):
    """A design for the draws as a data set, without `bqlib.thin`."""
    pool = given["draws"] / given["scale"]
    kernel = bqlib.ExponentiatedQuadratic(float(given["lengthscale"]))
    seed, n = int(given["seed"]), int(given["n"])
    made = rule(bqlib.Empirical(pool), kernel, n, rng=seed, candidates=pool)
    return made.rows, made.weights


def every(given):
    """Evenly spaced draws."""
    step = len(given["draws"]) // int(given["n"])
    return np.arange(step - 1, len(given["draws"]), step)


RULES = {
    "default": thinned,
    "kernel thinning": partial(thinned, design=bqlib.kernel_thinning),
    "herding": partial(thinned, design=bqlib.herding),
    "sbq": partial(thinned, design=bqlib.sbq),
    "scores": partial(thinned, scores=True),
    "scores, regularised": partial(
        thinned, scores=True, design=bqlib.stein_thinning, regularised=True
    ),
    "scores, sbq": partial(thinned, scores=True, design=bqlib.sbq),
    "scores, sbq, simplex": partial(thinned, scores=True, design=bqlib.sbq, weights=simplex),
    "scores, as stein_thinning": as_stein_thinning,
    "scores, as stein_thinning, sbq": partial(as_stein_thinning, design=bqlib.sbq),
    "scores, as med, sbq": partial(as_stein_thinning, median=True, design=bqlib.sbq),
    "kernel thinning of a pool": partial(of_a_pool, bqlib.kernel_thinning),
    "compress of a pool": partial(of_a_pool, bqlib.compress),
    "every": every,
    "nothing": lambda given: np.arange(int(given["n"])),
}

if __name__ == "__main__":
    report(RULES)
