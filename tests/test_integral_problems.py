"""Known integrals of the benchmark: formulas against averages over Sobol points."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from bqlib import Marginals, Matern, sobol
from bqlib.streams import stream

FILE = Path(__file__).parents[1] / "benchmarks" / "integrals" / "problems.py"
SPEC = importlib.util.spec_from_file_location("integral_problems", FILE)
problems = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(problems)

SCRAMBLES, POINTS = 16, 2**12


@pytest.mark.parametrize("name", problems.PROBLEMS)
def test_the_mean_is_that_of_sobol_points(name):
    problem = problems.PROBLEMS[name](stream(f"test/{name}", 0))
    inputs = Marginals(problem.marginals)
    means = [
        problem.f(sobol(inputs, Matern(1.0), POINTS, rng=seed).points).mean()
        for seed in range(SCRAMBLES)
    ]
    error = np.std(means, ddof=1) / np.sqrt(SCRAMBLES)
    off = np.mean(means) - problem.mean
    assert abs(off) < 5 * error
    # The averages tell a mean that is wrong by one in a hundred.
    assert abs(off - 0.01 * problem.mean) > 5 * error
