"""Ten more points after 32: the next Sobol points, or points planned with the fitted kernel.

Prints the root mean squared error of bqlib.integrate at 32 and at 42 points, in standard deviations
of f, for each problem of the other benchmarks here. Run: python benchmarks/integrals/planning.py
"""

import argparse
import os
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from multiprocessing import get_context

import numpy as np
from problems import PROBLEMS

import bqlib
from bqlib.streams import stream

FIRST, MORE = 32, 10
THREADS = dict.fromkeys(("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"), "1")


def errors(name, repetition):
    """Errors at 32 points, with ten Sobol points more, and with ten planned ones."""

    def rng(purpose):
        return stream(f"planning/{name}/{purpose}", repetition)

    problem = PROBLEMS[name](rng("parameters"))
    inputs = bqlib.Marginals(problem.marginals)
    sobol = bqlib.sobol_points(inputs, FIRST + MORE, rng=rng("points"))
    first = sobol[:FIRST]
    result = bqlib.integrate(inputs, first, problem.f(first))
    planned = bqlib.sbq(inputs, result.kernel, FIRST + MORE, rng=rng("pool"), initial=first).points
    spread = problem.f(bqlib.sobol_points(inputs, 2**12, rng=rng("spread"))).std()
    found = [result.mean]
    found += [bqlib.integrate(inputs, x, problem.f(x)).mean for x in (sobol, planned)]
    return (np.array(found) - problem.mean) / spread


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--repetitions", type=int, default=40)
    parser.add_argument("--processes", type=int, default=2, help="one thread each")
    given = parser.parse_args()
    os.environ.update(THREADS)  # of the processes below, which load numpy themselves
    print(f"{'problem':14} {'32':>8} {'42 Sobol':>9} {'42 planned':>11} {'planned / Sobol':>16}")
    with ProcessPoolExecutor(given.processes, mp_context=get_context("spawn")) as pool:
        for name in PROBLEMS:
            found = np.array(list(pool.map(partial(errors, name), range(given.repetitions))))
            before, sobol, planned = np.sqrt(np.square(found).mean(axis=0))
            print(
                f"{name:14} {before:8.5f} {sobol:9.5f} {planned:11.5f} {planned / sobol:16.2f}",
                flush=True,
            )
