"""The posterior of kernel parameters: what values of f say of length-scales, and how surely.

The model of n values: f = constant + a g + noise, where g has covariance K + nugget I. The kernel
k has height one. The constant, and the output scale a where the values have no noise of known
variance, are integrated out exactly. The other parameters have a prior, by which few points in
many dimensions do not lead to absurd length-scales, and their posterior is represented by weighted
points.

The nugget is the part of f that no length-scale explains. It keeps the interval honest where the
kernel does not match f: Gramacy and Lee, "Cases for the nugget in modeling computer experiments",
2012.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve, eigh
from scipy.optimize import minimize
from scipy.special import chdtri, gammaln, logsumexp, ndtri
from scipy.stats import qmc

from bqlib.arrays import Array
from bqlib.kernels import ExponentiatedQuadratic
from bqlib.likelihood import NUGGET, Stationary

# Priors of the logarithms: mean and standard deviation. A length-scale is about the width of the
# points, times the root of their dimension, as the distance between points grows with it.
WIDTH = np.sqrt(12)  # of a uniform distribution, in standard deviations
LENGTH_SPREAD = 1.0
NUGGET_PLACE, NUGGET_SPREAD = -4.0, 2.0
SCALE_SPREAD = 2.0  # of a^2, about the variance of the values
REACH = 10.0  # of the search, in spreads: there the smallest nugget is no part of the diagonal
STARTS = (-3.0, -2.0, -1.0, 0.0, 1.0)  # logs of all length-scales about their prior medians
CLIMBS = 2  # of the best of these
POINTS = 64  # of the posterior of one kernel
TAILS = 6  # degrees of freedom of the Student distribution that proposes them
ENOUGH = 10.0  # effective number of points
ROUNDS = 4
LEAST = 1e-4  # weight of a point that counts
FLAT = 0.7  # of the prior variance of a log length-scale, left by values that tell little of it


@dataclass(frozen=True, eq=False)
class Values:
    """Values of f at distinct points, in units in which they are about one.

    Attributes
    ----------
    points : ndarray, shape (n, d)
    f : ndarray, shape (n,)
    noise : ndarray, shape (n,), or None
        Known variance of the noise of each value; None if there is none.
    constant : bool
        Whether the mean of f is an unknown constant, and not zero.
    """

    points: Array
    f: Array
    noise: Array | None
    constant: bool

    @property
    def freedom(self) -> int:
        """Degrees of freedom of an output scale fitted to the values."""
        return len(self.f) - self.constant


@dataclass(frozen=True, eq=False)
class Solution:
    """The values under one covariance C of theirs.

    Attributes
    ----------
    factor : ndarray, shape (n, n)
        Lower Cholesky factor of C.
    ones : ndarray, shape (n,)
        C^{-1} 1; zero if f has mean zero.
    solved : ndarray, shape (n,)
        C^{-1} (f - constant), with the constant that fits best.
    misfit : float
        (f - constant)' C^{-1} (f - constant).
    """

    factor: Array
    ones: Array
    solved: Array
    misfit: float

    @property
    def information(self) -> float:
        """1' C^{-1} 1, the precision of the constant."""
        return float(self.ones.sum())


def solution(covariance: Array, values: Values) -> Solution:
    """Solve the systems of :class:`Solution`. O(n^3) time."""
    factor = cho_factor(covariance, lower=True, check_finite=False)
    if values.constant:
        ones = cho_solve(factor, np.ones(len(values.f)), check_finite=False)
        residual = values.f - ones @ values.f / ones.sum()
    else:
        ones, residual = np.zeros(len(values.f)), values.f
    solved = cho_solve(factor, residual, check_finite=False)
    return Solution(factor[0], ones, solved, float(residual @ solved))


@dataclass(frozen=True, eq=False)
class Family:
    """A kernel whose length-scales are parameters, with their prior.

    Attributes
    ----------
    kernel : ExponentiatedQuadratic, Matern or RationalQuadratic
        At length-scales that do not matter.
    places, spreads : ndarray, shape (m,)
        Prior means and standard deviations of the log length-scales.
    """

    kernel: Stationary
    places: Array
    spreads: Array

    def at(self, logs: Array) -> Stationary:
        """The kernel with these log length-scales (m,)."""
        kernel = self.kernel
        if isinstance(kernel, ExponentiatedQuadratic) and kernel.covariance is not None:
            return replace(kernel, covariance=np.exp(2 * logs[0]) * kernel.covariance)
        one_each = isinstance(kernel.lengthscale, np.ndarray)
        lengths = np.exp(logs)
        return replace(kernel, lengthscale=lengths if one_each else float(lengths[0]))


def family_of(kernel: Stationary, points: Array) -> Family:
    """The family of a stationary kernel, with the prior that fits the width of the points."""
    deviations = points.std(axis=0)
    if isinstance(kernel, ExponentiatedQuadratic) and kernel.covariance is not None:
        # In units of its own length-scales.
        variance = np.linalg.solve(kernel.covariance, np.atleast_2d(np.cov(points.T, ddof=0)))
        deviations = np.sqrt(np.array([np.trace(variance) / len(variance)]))
    elif not isinstance(kernel.lengthscale, np.ndarray):
        deviations = np.sqrt(np.mean(np.square(deviations), keepdims=True))
    places = np.log(WIDTH * deviations) + 0.5 * np.log(points.shape[1])
    return Family(replace(kernel, scale="unit"), places, np.full(len(places), LENGTH_SPREAD))


@dataclass(frozen=True, eq=False)
class Point:
    """One point of the posterior of the parameters, with its weight.

    Attributes
    ----------
    kernel : ExponentiatedQuadratic, Matern or RationalQuadratic
    nugget : float
        Of the kernel's height one.
    variance : float
        a^2; one if it is integrated out.
    weight : float
        Its share of the posterior.
    """

    kernel: Stationary
    nugget: float
    variance: float
    weight: float


@dataclass(frozen=True, eq=False)
class KernelPosterior:
    """Weighted points of the posterior of the parameters of one or several kernels.

    Attributes
    ----------
    points : tuple of Point
        Their weights sum to one.
    best : Point
        The most probable parameters of the most probable kernel.
    flat : bool
        Whether the values say nearly nothing of any length-scale of the most probable kernel.
    effective : float
        Effective number of points of the most probable kernel.
    shares : ndarray, shape (number of kernels,)
        Posterior probabilities of the kernels.
    """

    points: tuple[Point, ...]
    best: Point
    flat: bool
    effective: float
    shares: Array

    def average(self, numbers: ArrayLike) -> float:
        """Average of numbers, one for each point, over the posterior."""
        return float(np.array([point.weight for point in self.points]) @ np.asarray(numbers))


class _Search:
    """The posterior density of the parameters t of one family.

    t holds the log length-scales, the log nugget, and log a^2 if the values have noise.
    """

    def __init__(self, family: Family, values: Values):
        self.family, self.values = family, values
        self.lengths = len(family.places)
        places, spreads = [*family.places, NUGGET_PLACE], [*family.spreads, NUGGET_SPREAD]
        if values.noise is not None:
            places, spreads = [*places, 0.0], [*spreads, SCALE_SPREAD]
        self.places, self.spreads = np.array(places), np.array(spreads)

    def point(self, t: Array, weight: float = 1.0) -> Point:
        kernel, nugget = self.family.at(t[: self.lengths]), float(np.exp(t[self.lengths]))
        variance = 1.0 if self.values.noise is None else float(np.exp(t[-1]))
        return Point(kernel, nugget, variance, weight)

    def value(self, t: Array) -> float:
        """Log posterior density, up to a constant that all families share."""
        point = self.point(t)
        gram = point.kernel(self.values.points, self.values.points)
        found = solution(covariance(gram, point, self.values), self.values)
        return self._log_density(t, found)

    def negative(self, t: Array) -> tuple[float, Array]:
        """The negative of :meth:`value`, and of its gradient."""
        values, point = self.values, self.point(t)
        x, n = values.points, len(values.f)
        gram = point.kernel(x, x)
        matrix = covariance(gram, point, values)
        found = solution(matrix, values)
        size = 1.0 if values.noise is not None else values.freedom / found.misfit
        # The derivative of the log likelihood in C is half of this matrix.
        slope = size * np.outer(found.solved, found.solved)
        slope -= cho_solve((found.factor, True), np.eye(n), check_finite=False)
        if values.constant:
            slope += np.outer(found.ones, found.ones) / found.information
        gradient = np.zeros(len(t))
        # k depends on x - y over the length-scales: dk / d log l_c = -(x_c - y_c) dk / dx_c.
        kernel_slopes = point.kernel.gradient(x, x)
        for c in range(x.shape[1]):
            change = (x[None, :, c] - x[:, None, c]) * kernel_slopes[:, :, c]
            own = c if self.lengths > 1 else 0
            gradient[own] += 0.5 * point.variance * np.vdot(slope, change)
        gradient[self.lengths] = 0.5 * point.variance * point.nugget * np.trace(slope)
        if values.noise is not None:
            np.fill_diagonal(matrix, np.diag(matrix) - values.noise)
            gradient[-1] = 0.5 * np.vdot(slope, matrix)
        gradient -= (t - self.places) / np.square(self.spreads)
        return -self._log_density(t, found), -gradient

    def _log_density(self, t: Array, found: Solution) -> float:
        prior = -0.5 * np.square((t - self.places) / self.spreads) - np.log(self.spreads)
        density = prior.sum() - np.log(np.diag(found.factor)).sum()
        if self.values.constant:
            density -= 0.5 * np.log(found.information)
        if self.values.noise is None:
            return float(density - 0.5 * self.values.freedom * np.log(found.misfit))
        return float(density - 0.5 * found.misfit)

    def mode(self) -> Array:
        """Parameters of the greatest posterior density, climbed from the best of some starts."""
        is_length = np.arange(len(self.places)) < self.lengths
        starts = [self.places + shift * is_length for shift in STARTS]
        starts = sorted(starts, key=self.value, reverse=True)[:CLIMBS]
        low, high = self.places - REACH * self.spreads, self.places + REACH * self.spreads
        bounds = list(zip(low, high, strict=True))
        climbs = [
            minimize(self.negative, start, jac=True, method="L-BFGS-B", bounds=bounds)
            for start in starts
        ]
        best: Array = min(climbs, key=lambda climb: climb.fun).x
        return best

    def spread_at(self, mode: Array) -> Array:
        """Covariance (p, p) of the normal distribution that has the curvature of the mode.

        No direction gets more than the prior's own variance.
        """
        step = 1e-3
        hessian = np.array(
            [
                self.negative(mode + step * unit)[1] - self.negative(mode - step * unit)[1]
                for unit in np.eye(len(mode))
            ]
        ) / (2 * step)
        # In units of the prior, where its own curvature is one.
        scaled = 0.5 * (hessian + hessian.T) * np.outer(self.spreads, self.spreads)
        curvatures, axes = eigh(scaled)
        root = axes / np.sqrt(np.maximum(curvatures, 1.0)) * self.spreads[:, None]
        return root @ root.T


def covariance(gram: Array, point: Point, values: Values) -> Array:
    """Covariance of the values (n, n), from the Gram matrix of the kernel."""
    matrix = point.variance * gram
    added = np.full(len(gram), point.variance * (point.nugget + NUGGET * gram.diagonal()))
    if values.noise is not None:
        added += values.noise
    matrix[np.diag_indices_from(matrix)] += added
    return matrix


def kernel_posterior(families: Sequence[Family], values: Values) -> KernelPosterior:
    """Weighted points of the posterior of the kernels and their parameters.

    The kernels are equally probable before the values are known.

    Parameters
    ----------
    families : sequence of Family
        At least one.
    values : Values

    Returns
    -------
    KernelPosterior

    Notes
    -----
    For each kernel: the mode by L-BFGS from the best two of five starts, then importance sampling
    by 64 quasi-random points of a Student distribution with the curvature of the mode. Where few
    of these points have weight, they are drawn again with the moments of those that have, up to
    three times. The sum of the importance weights is the evidence of the kernel. O(n^3 + n^2 d)
    time for each of about 200 + 4 d likelihoods.
    """
    samples = [_sample(_Search(family, values)) for family in families]
    evidence = np.array([logsumexp(logs) for _, _, _, logs in samples])
    shares = np.exp(evidence - logsumexp(evidence))
    points = []
    for share, (search, _, ts, logs) in zip(shares, samples, strict=True):
        weights = share * np.exp(logs - logsumexp(logs))
        points += [(search.point(t), w) for t, w in zip(ts, weights, strict=True) if w > LEAST]
    total = sum(weight for _, weight in points)
    search, mode, ts, logs = samples[int(np.argmax(shares))]
    weights = np.exp(logs - logsumexp(logs))
    logs_of_lengths = ts[:, : search.lengths]
    variances = weights @ np.square(logs_of_lengths - weights @ logs_of_lengths)
    flat = variances > FLAT * np.square(search.spreads[: search.lengths])
    return KernelPosterior(
        points=tuple(replace(point, weight=w / total) for point, w in points),
        best=search.point(mode),
        flat=bool(flat.all()),
        effective=float(1 / np.square(weights).sum()),
        shares=shares,
    )


def _sample(search: _Search) -> tuple[_Search, Array, Array, Array]:
    """The mode, and points (S, p) with the logarithms of their weights, which hold the evidence."""
    mode = search.mode()
    normal, stretch = _standard_points(len(mode))
    centre, spread = mode, search.spread_at(mode)
    # Of the Student density over that of the normal prior, at their centres.
    constant = gammaln((TAILS + len(mode)) / 2) - gammaln(TAILS / 2)
    constant += 0.5 * len(mode) * np.log(2 / TAILS)
    for _ in range(ROUNDS):
        factor = np.linalg.cholesky(spread)
        white = normal * stretch[:, None]
        ts = centre + white @ factor.T
        proposed = -0.5 * (TAILS + len(mode)) * np.log1p(np.square(white).sum(axis=1) / TAILS)
        proposed += constant - np.log(np.diag(factor)).sum()
        logs = np.array([search.value(t) for t in ts]) - proposed
        weights = np.exp(logs - logsumexp(logs))
        if 1 / np.square(weights).sum() >= ENOUGH:
            break
        centre = weights @ ts
        spread = (weights * (ts - centre).T) @ (ts - centre) + spread / 2
    return search, mode, ts, logs - np.log(len(ts))


def _standard_points(dim: int) -> tuple[Array, Array]:
    """Points of a standard Student distribution: normal ones (S, dim) and their factors (S,).

    The same each time: a rule of quadrature, and no sample.
    """
    cube = qmc.Sobol(dim + 1, rng=0).random(POINTS)
    cube = np.clip(cube, 2.0**-32, 1 - 2.0**-32)  # whose ends have no quantiles
    return ndtri(cube[:, :dim]), np.sqrt(TAILS / chdtri(TAILS, 1 - cube[:, dim]))
