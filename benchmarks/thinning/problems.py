"""Two posteriors with known moments, and the output of Markov chains that sample them.

The chains are random-walk Metropolis, so a draw is repeated where a proposal was refused. A chain
is made again from its seed in half a second, so nothing is kept on disk.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import product

import numpy as np
from scipy.optimize import minimize
from scipy.special import expit

DRAWS, BURN_IN = 8000, 1000
STREAMS = {"logistic": 1, "banana": 2}  # of seeds, so that no two chains share their numbers

# The logistic regression: an intercept and three inputs of different units, two of them alike.
OBSERVATIONS, COEFFICIENTS = 60, np.array([-0.5, 1.2, -0.8, 0.3])
UNITS, CORRELATION, PRIOR_SD = np.array([1.0, 1.0, 3.0]), 0.7, 5.0
STEP, REACH = 0.5, 9.0  # of the grid behind its moments, in sds of the Laplace approximation
PROPOSAL = 1.15  # the sd of proposals over that of the Laplace approximation

# The banana: x0 is normal with sd WIDTH, and x1 - BEND (x0^2 - WIDTH^2) is standard normal.
WIDTH, BEND = 2.0, 0.25
BANANA_PROPOSAL = 2.2  # the sd of proposals


@dataclass(frozen=True)
class Problem:
    """A density up to a constant, with its derivatives and its moments."""

    log_density: Callable[[np.ndarray], np.ndarray]  # (n, d) to (n,)
    score: Callable[[np.ndarray], np.ndarray]  # (n, d) to (n, d)
    hessian: Callable[[np.ndarray], np.ndarray]  # (n, d) to (n, d, d)
    mean: np.ndarray
    sd: np.ndarray
    start: np.ndarray  # of a chain
    step: np.ndarray  # a factor (d, d) of the covariance of proposals: a third are accepted


@dataclass(frozen=True)
class Output:
    """What a chain leaves behind, after its burn-in."""

    draws: np.ndarray  # (DRAWS, d)
    scores: np.ndarray  # (DRAWS, d)
    log_densities: np.ndarray  # (DRAWS,)
    hessians: np.ndarray  # (DRAWS, d, d)
    accepted: float


@cache
def banana():
    """A normal distribution that is bent along a parabola; its moments are exact."""

    def bent(x):
        return x[:, 1] - BEND * (x[:, 0] ** 2 - WIDTH**2)

    def log_density(x):
        return -0.5 * (x[:, 0] / WIDTH) ** 2 - 0.5 * bent(x) ** 2

    def score(x):
        u = bent(x)
        return np.column_stack([-x[:, 0] / WIDTH**2 + 2 * BEND * x[:, 0] * u, -u])

    def hessian(x):
        h = np.empty((len(x), 2, 2))
        h[:, 0, 0] = -1 / WIDTH**2 + 2 * BEND * bent(x) - (2 * BEND * x[:, 0]) ** 2
        h[:, 0, 1] = h[:, 1, 0] = 2 * BEND * x[:, 0]
        h[:, 1, 1] = -1
        return h

    # Var x0^2 = 2 WIDTH^4
    sd = np.array([WIDTH, np.sqrt(1 + 2 * BEND**2 * WIDTH**4)])
    return Problem(
        log_density, score, hessian, np.zeros(2), sd, np.zeros(2), BANANA_PROPOSAL * np.eye(2)
    )


@cache
def logistic():
    """Bayesian logistic regression of made-up data, with a normal prior.

    Its moments are sums over a grid: see :func:`grid_moments`.
    """
    x, y = data()

    def log_density(b):
        eta = b @ x.T
        fit = (y * eta - np.logaddexp(0, eta)).sum(axis=1)
        return fit - 0.5 * np.square(b / PRIOR_SD).sum(axis=1)

    def score(b):
        return (y - expit(b @ x.T)) @ x - b / PRIOR_SD**2

    def hessian(b):
        p = expit(b @ x.T)
        return -np.einsum("ni,ic,ie->nce", p * (1 - p), x, x) - np.eye(b.shape[1]) / PRIOR_SD**2

    mode = minimize(
        lambda b: -log_density(b[None])[0],
        np.zeros(x.shape[1]),
        jac=lambda b: -score(b[None])[0],
        tol=1e-10,
    ).x
    factor = np.linalg.cholesky(np.linalg.inv(-hessian(mode[None])[0]))
    mean, sd = grid_moments(log_density, mode, factor, STEP)
    return Problem(log_density, score, hessian, mean, sd, mode, PROPOSAL * factor)


def data():
    """Inputs (OBSERVATIONS, 4), the first a constant, and outcomes (OBSERVATIONS,) of 0 or 1."""
    rng = np.random.default_rng(0)
    covariance = np.eye(3)
    covariance[0, 1] = covariance[1, 0] = CORRELATION
    inputs = rng.standard_normal((OBSERVATIONS, 3)) @ np.linalg.cholesky(covariance).T * UNITS
    x = np.column_stack([np.ones(OBSERVATIONS), inputs])
    return x, (rng.random(OBSERVATIONS) < expit(x @ COEFFICIENTS)).astype(float)


def grid_moments(log_density, mode, factor, step):
    """Means and sds by the trapezoidal rule, in units of the Laplace approximation.

    The rule's error falls exponentially in 1 / step for analytic densities. Means in units of the
    sd and sds change by less than 1e-8 from STEP to 0.75 or to 0.4.
    """
    d = len(mode)
    line = np.arange(-round(REACH / step), round(REACH / step) + 1) * step
    rest = np.array(list(product(line, repeat=d - 2)))
    top = log_density(mode[None])[0]
    total, first, second = 0.0, np.zeros(d), np.zeros((d, d))
    for pair in product(line, repeat=2):  # a slice at a time, to bound memory
        z = np.column_stack([np.broadcast_to(pair, (len(rest), 2)), rest])
        z = z[np.square(z).sum(axis=1) <= REACH**2]
        weights = np.exp(log_density(mode + z @ factor.T) - top)
        total += weights.sum()
        first += weights @ z
        second += (weights[:, None] * z).T @ z
    mean, covariance = first / total, second / total
    covariance -= np.outer(mean, mean)
    return mode + factor @ mean, np.sqrt(np.diagonal(factor @ covariance @ factor.T))


def chain(name, seed, draws=DRAWS):
    """Draws of random-walk Metropolis from the mode on, without its burn-in."""
    problem = PROBLEMS[name]()
    rng = np.random.default_rng([STREAMS[name], seed])
    moves = rng.standard_normal((BURN_IN + draws, len(problem.start))) @ problem.step.T
    thresholds = -rng.standard_exponential(BURN_IN + draws)  # logarithms of uniform numbers
    x, visited, accepted = problem.start, np.empty_like(moves), np.empty(len(moves), bool)
    here = problem.log_density(x[None])[0]
    for t, (move, threshold) in enumerate(zip(moves, thresholds, strict=True)):
        there = problem.log_density((x + move)[None])[0]
        accepted[t] = there - here > threshold
        if accepted[t]:
            x, here = x + move, there
        visited[t] = x
    kept = visited[BURN_IN:]
    return Output(
        kept,
        problem.score(kept),
        problem.log_density(kept),
        problem.hessian(kept),
        accepted[BURN_IN:].mean(),
    )


PROBLEMS = {"logistic": logistic, "banana": banana}
