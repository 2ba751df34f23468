"""The variance of f under the target, from the posterior of f at many points."""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from bqlib.answers import checked_gram, checked_sample
from bqlib.arrays import Array
from bqlib.checks import checked_rng
from bqlib.designs.sobol import sobol_points
from bqlib.kernel_posterior import Point, Values, covariance, solution
from bqlib.targets import Empirical, Target

MANY, SOME = 2048, 256  # points for the variance, and for its error


def spread_points(target: Target) -> Array:
    """Points that stand for the target, the same each time, shape (N, d) with N at most 2048."""
    if isinstance(target, Empirical) and len(target.points) <= MANY and not np.ptp(target.weights):
        return target.points
    try:
        return sobol_points(target, MANY, rng=0)
    except TypeError:  # no map from the unit cube
        return checked_sample(target, MANY, checked_rng(0))


def variance_given(point: Point, values: Values, everywhere: Array) -> tuple[float, float]:
    """Posterior mean and squared scale of the variance of f, for given kernel parameters.

    Parameters
    ----------
    point : Point
        Of the posterior of the parameters.
    values : Values
    everywhere : ndarray, shape (N, d)
        Points that stand for the target.

    Returns
    -------
    mean, square : float
        In squared units of the values, and the square of those.

    Notes
    -----
    At N points f is normal, and its variance over them is the quadratic form f'Hf / N, where H
    subtracts the mean. With mean m and covariance C its expectation is (m'Hm + tr HC) / N, and its
    variance (2 tr HCHC + 4 m'HCHm) / N^2. O(N n^2 + N'^2 n) time, with N' = 256 for the second.

    References
    ----------
    Haylock and O'Hagan, "On inference for outputs of computationally expensive algorithms with
    uncertainty on the inputs", 1996.
    """
    gram = checked_gram(point.kernel, values.points, values.points)
    found = solution(covariance(gram, point, values), values)
    size = 1.0 if values.noise is not None else found.misfit / values.freedom
    across = point.variance * checked_gram(point.kernel, everywhere, values.points)
    mean = across @ found.solved  # the constant drops out
    white = solve_triangular(found.factor, across.T, lower=True)
    left = point.variance * point.kernel.diagonal(everywhere) - np.square(white).sum(axis=0)
    if values.constant:
        missing = 1 - across @ found.ones
        left += np.square(missing) / found.information

    some = slice(None, None, max(len(everywhere) // SOME, 1))
    own = point.variance * checked_gram(point.kernel, everywhere[some], everywhere[some])
    own -= white[:, some].T @ white[:, some]
    if values.constant:
        own += np.outer(missing[some], missing[some]) / found.information
    # The share of all variance that the mean of f takes.
    shared = own.mean()
    centred = own - own.mean(axis=0) - own.mean(axis=1)[:, None] + shared
    residual = mean[some] - mean[some].mean()
    square = 2 * size**2 * np.square(centred).sum() + 4 * size * residual @ centred @ residual
    expected = mean.var() + size * (left.mean() - shared)
    return float(expected), float(square) / len(own) ** 2
