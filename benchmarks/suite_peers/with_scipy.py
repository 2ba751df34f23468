"""Sobol' points, Halton points and Latin hypercubes of scipy.stats.qmc, as submissions.

In boxes, and for normal distributions by the inverse of their distribution function.
Run: python benchmarks/suite_peers/with_scipy.py FOLDER
"""

from entering import Rule, enter, from_unit_cube
from scipy.stats import qmc


def points_of(engine, **settings):
    def points(problem, n):
        made = engine(problem.dim, rng=problem.seed, **settings)
        # Sobol' warns of numbers of points that are no powers of two, if asked for all at once.
        cube = made.random(n) if engine is not qmc.Sobol else made.random_base2(n.bit_length())[:n]
        return from_unit_cube(problem, cube)

    return points


RULES = [
    Rule("scipy_sobol", points_of(qmc.Sobol), "sequence", "uniform", []),
    Rule("scipy_halton", points_of(qmc.Halton), "sequence", "uniform", []),
    Rule("scipy_latin_hypercube", points_of(qmc.LatinHypercube), "set", "uniform", []),
]


if __name__ == "__main__":
    enter(
        "bqlib",  # has scipy
        "scipy",
        RULES,
        "P. Virtanen et al., SciPy 1.0, Nature Methods 17, 261-272, 2020",
        "CC0-1.0",
        "https://scipy.org",
    )
