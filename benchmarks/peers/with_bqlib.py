"""bqlib: designs for the target itself, and for the pool as a data set."""

import numpy as np
from problems import LENGTHSCALE, SIZES, parts, pool, report

from bqlib import Empirical, ExponentiatedQuadratic, GaussianMixture, herding, sbq

KERNEL = ExponentiatedQuadratic(LENGTHSCALE)


def rows(points, candidates):
    """The first row of the pool that each point is."""
    return (points[:, None, :] == candidates).all(axis=2).argmax(axis=1)


def design(rule, problem, empirical=False):
    candidates = pool(problem)
    target = Empirical(candidates) if empirical else GaussianMixture(*parts(problem))
    made = rule(target, KERNEL, SIZES[problem][1], rng=0, candidates=candidates)
    return rows(made.points, candidates)


if __name__ == "__main__":
    report(
        {
            "sbq": lambda problem: design(sbq, problem),
            "herding": lambda problem: design(herding, problem),
            "herding the pool": lambda problem: design(herding, problem, empirical=True),
            "iid": lambda problem: np.arange(SIZES[problem][1]),
        }
    )
