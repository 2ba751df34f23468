"""How often the 95 % intervals of Design.integrate hold the integral of a draw from the model.

2,000 functions drawn from a Gaussian process on [0, 1]^3 with length-scale 0.3, at n scrambled
Sobol points, with a constant added to each: 0 or 10 times their standard deviation. The kernel of
the design has the length-scale of the draws, or one twice as long or half as long. The mean of f in
the model is an unknown constant or zero; the output scale is fitted. The standard error of a share
of 95 % is 0.5 %.

Exits with 1 where the model is right and its share is not 93 to 97 %. Takes about a minute on two
cores. Run: python benchmarks/integrals/coverage.py
"""

import os
import sys
from concurrent.futures import ProcessPoolExecutor
from itertools import product
from multiprocessing import get_context
from pathlib import Path

import numpy as np

from bqlib import Design, ExponentiatedQuadratic, Matern, Uniform, embed, sobol
from bqlib.posterior import joint_draws
from bqlib.streams import stream
from bqlib.weights import bq

sys.path.append(str(Path(__file__).parents[1] / "peers"))
from environments import THREADS  # of the peers

KERNELS = {"EQ": ExponentiatedQuadratic, "Matern 5/2": Matern}
CUBE = Uniform([0.0] * 3, [1.0] * 3)
LENGTHSCALE, DRAWS = 0.3, 2000
FACTORS = {"right": 1.0, "twice too long": 2.0, "half too short": 0.5}
MODELS = {"unknown constant": None, "zero mean": bq}  # rules, of which None is the default
CONSTANTS = (0.0, 10.0)  # in standard deviations of the draws
SIZES = (10, 30, 100)


def shares(case):
    """Share of the draws whose interval holds their integral: of each model and constant."""
    name, factor, n = case
    make, rng = KERNELS[name], stream(f"coverage/{name}/{n}", 0)
    true = embed(make(LENGTHSCALE), CUBE)
    points = sobol(CUBE, true.kernel, n, rng=rng).points
    values, integrals = joint_draws(true, points, DRAWS, rng)
    design = Design(embed(make(LENGTHSCALE * FACTORS[factor]), CUBE), points)
    found = []
    for rule, constant in product(MODELS.values(), CONSTANTS):
        estimates = design.integrate(values=values.T + constant, rule=rule)
        lower, upper = np.transpose([estimate.interval(0.95) for estimate in estimates])
        true_means = integrals + constant
        found.append(np.mean((lower <= true_means) & (true_means <= upper)))
    return found


def main():
    os.environ.update(THREADS)  # of the processes below, which load numpy themselves
    cases = list(product(KERNELS, FACTORS, SIZES))
    wrong = False
    columns = list(product(MODELS, CONSTANTS))
    print(f"{'kernel':12}{'length-scale':16}{'n':>4}", end="")
    print("".join(f"{f'{model}, f + {constant:g}':>26}" for model, constant in columns))
    with ProcessPoolExecutor(len(os.sched_getaffinity(0)), get_context("spawn")) as pool:
        for (name, factor, n), found in zip(cases, pool.map(shares, cases), strict=True):
            print(f"{name:12}{factor:16}{n:4}", end="")
            print("".join(f"{share:26.1%}" for share in found), flush=True)
            right = [
                share
                for (model, constant), share in zip(columns, found, strict=True)
                if factor == "right" and (model == "unknown constant" or not constant)
            ]
            wrong |= not all(0.93 <= share <= 0.97 for share in right)
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
