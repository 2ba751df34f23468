"""Posteriors of the benchmark of thinning: derivatives, moments and chains against known values."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

FILE = Path(__file__).parents[1] / "benchmarks" / "thinning" / "problems.py"
SPEC = importlib.util.spec_from_file_location("thinning_problems", FILE)
problems = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(problems)

NAMES = list(problems.PROBLEMS)
SHORT = 500


def some_points(problem):
    """Points spread about the middle of the distribution."""
    rng = np.random.default_rng(0)
    return problem.start + problem.sd * rng.standard_normal((7, len(problem.sd)))


def differences(f, x, step=1e-5):
    """Central differences of f in each coordinate, the last axis."""
    moves = step * np.eye(x.shape[1])
    return np.stack([(f(x + move) - f(x - move)) / (2 * step) for move in moves], axis=-1)


@pytest.mark.parametrize("name", NAMES)
def test_the_score_is_the_gradient_of_the_log_density(name):
    problem = problems.PROBLEMS[name]()
    x = some_points(problem)
    np.testing.assert_allclose(problem.score(x), differences(problem.log_density, x), rtol=1e-6)


@pytest.mark.parametrize("name", NAMES)
def test_the_hessian_is_the_derivative_of_the_score(name):
    problem = problems.PROBLEMS[name]()
    x = some_points(problem)
    np.testing.assert_allclose(
        problem.hessian(x), differences(problem.score, x), rtol=1e-6, atol=1e-8
    )


def test_the_moments_of_the_banana_are_those_of_its_closed_form():
    """x1 = u + BEND (x0^2 - WIDTH^2) with standard normal u, by Gauss-Hermite sums, here exact."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(8)
    u, v = np.meshgrid(nodes, nodes)
    x0 = problems.WIDTH * v
    x = np.stack([x0, u + problems.BEND * (x0**2 - problems.WIDTH**2)])
    both = np.outer(weights, weights) / weights.sum() ** 2
    mean = (both * x).sum(axis=(1, 2))
    sd = np.sqrt((both * np.square(x)).sum(axis=(1, 2)) - mean**2)
    problem = problems.banana()
    np.testing.assert_allclose(mean, problem.mean, atol=1e-12)
    np.testing.assert_allclose(sd, problem.sd)


def test_the_sums_over_a_grid_know_a_normal_distribution():
    mode, factor = np.array([1.0, -2.0, 0.5]), np.tril(np.ones((3, 3)))
    precision = np.linalg.inv(factor @ factor.T)

    def log_density(x):
        return -0.5 * np.einsum("ni,ij,nj->n", x - mode, precision, x - mode)

    # The approximation that places the grid is half a unit off, and half as wide.
    mean, sd = problems.grid_moments(log_density, mode + 0.5, 0.9 * factor, problems.STEP)
    np.testing.assert_allclose(mean, mode, atol=1e-8)
    np.testing.assert_allclose(sd, np.sqrt([1, 2, 3]), rtol=1e-8)


def test_the_moments_of_the_regression_do_not_depend_on_the_grid():
    problem = problems.logistic()
    factor = problem.step / problems.PROPOSAL
    mean, sd = problems.grid_moments(problem.log_density, problem.start, factor, 0.75)
    np.testing.assert_allclose((mean - problem.mean) / problem.sd, 0, atol=1e-8)
    np.testing.assert_allclose(sd, problem.sd, rtol=1e-8)
    # The posterior is skew, so its mean is not its mode.
    assert np.all(np.abs(problem.mean - problem.start) > 0.1 * problem.sd)


@pytest.mark.parametrize("name", NAMES)
def test_a_chain_is_that_of_its_seed(name):
    first, again = (problems.chain(name, 3, SHORT) for _ in range(2))
    np.testing.assert_array_equal(first.draws, again.draws)
    assert not np.array_equal(first.draws, problems.chain(name, 4, SHORT).draws)


@pytest.mark.parametrize("name", NAMES)
def test_a_chain_has_the_moments_and_accepts_a_third(name):
    problem, output = problems.PROBLEMS[name](), problems.chain(name, 0)
    assert output.draws.shape == output.scores.shape == (8000, len(problem.mean))
    assert 0.28 < output.accepted < 0.38
    assert len(np.unique(output.draws, axis=0)) == pytest.approx(8000 * output.accepted, abs=1)
    # Four standard errors at 150 effective draws, fewer than either chain has.
    np.testing.assert_allclose(
        (output.draws.mean(axis=0) - problem.mean) / problem.sd, 0, atol=0.33
    )
    np.testing.assert_allclose(output.draws.std(axis=0), problem.sd, rtol=0.33)
    # What comes with the draws is of the same rows.
    np.testing.assert_allclose(output.scores, problem.score(output.draws))
    np.testing.assert_allclose(output.log_densities, problem.log_density(output.draws))
    np.testing.assert_allclose(output.hessians, problem.hessian(output.draws))
