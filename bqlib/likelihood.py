"""Kernel parameters by marginal likelihood: length-scales and output scale from values of f."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize
from scipy.spatial.distance import pdist

from bqlib.arrays import Array, solve_lower
from bqlib.checks import LONGEST, SHORTEST, checked_points, checked_values_of_f
from bqlib.kernels import ExponentiatedQuadratic, Matern, RationalQuadratic
from bqlib.pivots import first_occurrence, leading_cholesky, refuse_two_values

# Kernels whose values depend on x - y over the length-scales and on nothing else.
STATIONARY = (ExponentiatedQuadratic, Matern, RationalQuadratic)
Stationary = ExponentiatedQuadratic | Matern | RationalQuadratic
NUGGET = 1e-8  # of k(x, x): keeps K positive definite in float64 at long length-scales
# The range of the search: from this part of the smallest distance to this multiple of the largest.
# At its ends all points are independent, or all of one piece.
SHORT, LONG = 1e-2, 1e3
STEP = 2.0  # between starting length-scales: the likelihood varies over factors that are larger
STARTS = 3  # local maxima among them that are climbed
EQUAL = 1e-6  # a difference of log likelihoods that is rounding
TOLD = 2.0  # a log likelihood lower by this is worse: about the end of a 95 % interval


@dataclass(frozen=True, eq=False)
class KernelFit:
    """A kernel fitted to values of f.

    Attributes
    ----------
    kernel : ExponentiatedQuadratic, Matern or RationalQuadratic
        The kernel given, with new length-scales.
    output_scale : float
        a, where a^2 k is the covariance of f, in units of f.
    log_likelihood : float
        Log marginal likelihood of the values at these parameters.
    stop : str
        Empty, or why you should check the fit: the values do not tell a length-scale, as the points
        are farther apart than f varies, or f does not depend on a coordinate; the search ended
        early; or K is singular in float64 at the fitted length-scales, which happens for values of
        a very smooth f.

    Examples
    --------
    >>> from bqlib import Matern, fit_kernel
    >>> fit = fit_kernel(Matern(1.0), [[0.0]], [2.0])
    >>> fit.stop
    'one point does not tell the length-scales: they are those of the kernel given'
    """

    kernel: Stationary
    output_scale: float
    log_likelihood: float
    stop: str = ""


def fit_kernel(kernel: Stationary, points: ArrayLike, values: ArrayLike) -> KernelFit:
    """Length-scales and output scale of the greatest marginal likelihood.

    The model is f from a Gaussian process with mean zero and covariance a^2 k.

    Parameters
    ----------
    kernel : ExponentiatedQuadratic, Matern or RationalQuadratic
        A kernel with one length-scale for all coordinates keeps one. A kernel with one for each
        coordinate keeps one for each (automatic relevance determination). A kernel with
        ``covariance=`` keeps the shape of this matrix and gets a new size. The length-scales
        themselves do not matter.
    points : array_like, shape (n, d)
    values : array_like, shape (n,)
        f at the points. If the mean of f is far from zero, subtract a constant first.

    Returns
    -------
    KernelFit
        With `kernel`, `output_scale`, `log_likelihood` and `stop`, which is empty, or says why you
        should check the fit: see :class:`bqlib.likelihood.KernelFit`.

    Raises
    ------
    TypeError
        If the kernel has no length-scales to fit.
    ValueError
        If points and values do not fit together, f has two values at one point, all values are
        zero, or the points are so close that their length-scales are out of range.

    Notes
    -----
    The output scale has a closed form at fixed length-scales, a^2 = f'K^{-1}f / n, which leaves the
    profile likelihood -(n/2) log a^2 - (1/2) log |K|. It is evaluated at length-scales from a
    quarter of the smallest distance between points to eight times the largest, in steps of 2, and
    maximised by L-BFGS on the log length-scales, with its analytic gradient, from the best three
    local maxima among these. With one length-scale for each coordinate, they start in the ratio of
    the widths of the points, and the search may find only a local maximum. 1e-8 k(x, x) is added to
    the diagonal of K. O(n^3 + n^2 d) time an evaluation.

    `stop` says that the values do not tell a length-scale if the log likelihood stays within 2 of
    its maximum down to a length-scale of zero, or up to infinity. Then f may vary much faster
    than the fit says, or not at all in this coordinate.

    After fitting, the variance of the integral is too small: it ignores the uncertainty of the
    fitted length-scales.

    References
    ----------
    Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, section 5.4.1.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib import ExponentiatedQuadratic, fit_kernel
    >>> x = np.linspace(0, 10, 21)[:, None]
    >>> fit = fit_kernel(ExponentiatedQuadratic(1.0), x, np.sin(x[:, 0]))
    >>> 1 < fit.kernel.lengthscale < 4
    True
    """
    if not isinstance(kernel, STATIONARY):
        raise TypeError(
            f"this {type(kernel).__name__} has no length-scales to fit; use an "
            "ExponentiatedQuadratic, Matern or RationalQuadratic"
        )
    x = checked_points(points, kernel.dim)
    f = checked_values_of_f(values, len(x))
    if not len(x):
        raise ValueError("there are no points; give at least one")
    refuse_two_values(x, f)
    distinct = first_occurrence(x) == np.arange(len(x))
    x, f = x[distinct], f[distinct]
    if not f.any():
        raise ValueError("all values are zero, so every length-scale fits; give other values of f")
    widths = np.ptp(x, axis=0)
    if ((widths > 0) & (widths < SHORTEST / SHORT)).any():
        raise ValueError(
            f"the points differ by at most {widths[widths > 0].min():g} in a coordinate; the "
            f"smallest length-scale is {SHORTEST:g}: change the unit of length"
        )
    if isinstance(kernel, ExponentiatedQuadratic) and kernel.covariance is not None:
        # In coordinates where the covariance is I, one length-scale is left.
        factor: Any = np.linalg.cholesky(kernel.covariance)
        x = solve_lower(factor, x.T).T
        unit: Stationary = ExponentiatedQuadratic(1.0)
    else:
        # The height drops out of the profile likelihood, so the search is done at unit scale.
        unit = replace(kernel, scale="unit")
    if len(x) == 1:
        found, reasons = (
            np.log(np.atleast_1d(_lengthscale(unit))),
            ["one point does not tell the length-scales: they are those of the kernel given"],
        )
    else:
        found, reasons = _search(unit, x, f)
    gram = _with_lengthscales(unit, found)(x, x)
    _, rank = leading_cholesky(gram)
    if rank < len(f):
        reasons.append(
            "the length-scales are so long that double precision separates only "
            f"{rank} of {len(f)} points"
        )
    likelihood, variance = _likelihood_and_variance(gram, f)
    if isinstance(kernel, ExponentiatedQuadratic) and kernel.covariance is not None:
        fitted: Stationary = replace(kernel, covariance=np.exp(2 * found[0]) * kernel.covariance)
    else:
        fitted = _with_lengthscales(kernel, found)
    output_scale = np.sqrt(variance / fitted.height(x.shape[1]))
    return KernelFit(fitted, float(output_scale), likelihood, "; ".join(reasons))


def _search(unit: Stationary, x: Array, f: Array) -> tuple[Array, list[str]]:
    """Log length-scales of the greatest likelihood, and what to say of them."""
    widths = np.ptp(x, axis=0)
    one_each = isinstance(unit.lengthscale, np.ndarray)
    moving = widths > 0 if one_each else np.array([True])
    # Length-scales are searched as multiples of these. Without a width, any one fits.
    scales = np.where(moving, widths, unit.lengthscale) if one_each else np.array([1.0])
    distances = pdist(x / scales)
    smallest, largest = distances[distances > 0].min(), distances.max()

    def value(logs: Array) -> float:
        return _likelihood_and_variance(_with_lengthscales(unit, logs)(x, x), f)[0]

    def negative(logs: Array) -> tuple[float, Array]:
        likelihood, gradient = profile_likelihood(_with_lengthscales(unit, logs), x, f)
        return -likelihood, -gradient

    low, high = (
        np.clip(np.log(scales * factor), np.log(SHORTEST), np.log(LONGEST))
        for factor in (SHORT * smallest, LONG * largest)
    )
    low, high = (np.where(moving, end, np.log(scales)) for end in (low, high))
    steps = np.arange(np.log(smallest / 4), np.log(8 * largest) + np.log(STEP), np.log(STEP))
    grid = [np.clip(np.log(scales) + step * moving, low, high) for step in steps]
    heights = np.array([-np.inf, *(value(logs) for logs in grid), -np.inf])
    # The longest of equals: where all are too short to matter, they are equal.
    peaks = np.flatnonzero(
        (heights[1:-1] > heights[2:] + EQUAL) & (heights[1:-1] >= heights[:-2] - EQUAL)
    )
    peaks = peaks[np.argsort(-heights[1:-1][peaks], kind="stable")][:STARTS]
    tried = [
        minimize(
            negative, grid[i], jac=True, method="L-BFGS-B", bounds=list(zip(low, high, strict=True))
        )
        for i in peaks
    ]
    least = min(climb.fun for climb in tried)
    best = max(
        (climb for climb in tried if climb.fun <= least + EQUAL), key=lambda climb: climb.x.sum()
    )
    reasons = []
    # Near the maximum, rounding may end the line search; this is not a failure.
    if not best.success and np.abs(best.jac).max() > 1e-3 * len(f):
        reasons.append(f"the search ended early: {best.message}")
    for c in range(len(scales)):
        said = _untold(value, best.x, c, low[c], high[c], -best.fun - TOLD)
        if said:
            which = f" of coordinate {c}" if one_each else ""
            reasons.append(f"the values do not tell the length-scale{which}: {said}")
    return best.x, reasons


def _untold(
    value: Callable[[Array], float], logs: Array, c: int, low: float, high: float, least: float
) -> str:
    """Which values of one length-scale have at least this likelihood; empty if it is told."""

    def fits(log: float) -> bool:
        return value(np.where(np.arange(len(logs)) == c, log, logs)) >= least

    below, above = fits(low), fits(high)
    if below and above:
        return "any fits about as well"
    if not (below or above):
        return ""
    # From the open end on, as long as all fit.
    start, end = (low, high) if below else (high, low)
    steps = np.linspace(start, end, int(abs(end - start) / np.log(STEP)) + 2)
    last = next(i for i, log in enumerate(steps) if not fits(log))
    inside, outside = steps[last - 1], steps[last]
    for _ in range(5):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if fits(middle) else (inside, middle)
    return f"any {'below' if below else 'above'} {np.exp(inside):.3g} fits about as well"


def profile_likelihood(kernel: Stationary, points: Array, values: Array) -> tuple[float, Array]:
    """Log marginal likelihood at the best output scale, and its gradient.

    Parameters
    ----------
    kernel : ExponentiatedQuadratic, Matern or RationalQuadratic
        With ``scale="unit"`` and a length-scale for all coordinates or for each.
    points : ndarray, shape (n, d)
        All different.
    values : ndarray, shape (n,)

    Returns
    -------
    likelihood : float
        -(n/2) (log(2 pi a^2) + 1) - (1/2) log |K|, with a^2 = f'K^{-1}f / n.
    gradient : ndarray, shape (1,) or (d,)
        In the log length-scales.

    Raises
    ------
    ValueError
        If points and kernel differ in dimension.

    Notes
    -----
    O(n^3 + n^2 d) time, O(n^2 d) memory.

    The gradient is tr((K^{-1}f f'K^{-1} / a^2 - K^{-1}) dK) / 2. As k depends on x - y over the
    length-scales alone, dk / d log l_c = -(x_c - y_c) dk / dx_c.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib import Matern
    >>> from bqlib.likelihood import profile_likelihood
    >>> x = np.array([[0.0], [1.0], [2.0]])
    >>> likelihood, gradient = profile_likelihood(Matern(1.0), x, np.array([1.0, 2.0, 1.0]))
    >>> round(float(likelihood), 3), gradient.round(3)
    (-4.352, array([0.769]))
    """
    n = len(values)
    gram = kernel(points, points)
    factor = cho_factor(_raised(gram), lower=True)
    inverse = cho_solve(factor, np.eye(n))
    solved = inverse @ values
    variance = values @ solved / n
    likelihood = _likelihood(factor[0], variance, n)
    change = (points[None, :, :] - points[:, None, :]) * kernel.gradient(points, points)
    sensitivity = np.outer(solved, solved) / variance - inverse
    gradient = 0.5 * np.einsum("ij,ijc->c", sensitivity, change)
    one_each = isinstance(kernel.lengthscale, np.ndarray)
    return likelihood, gradient if one_each else gradient.sum(keepdims=True)


def _likelihood_and_variance(gram: Array, values: Array) -> tuple[float, float]:
    """Log marginal likelihood at the best output scale, and the square of this scale."""
    factor = cho_factor(_raised(gram), lower=True)
    variance = float(values @ cho_solve(factor, values)) / len(values)
    return _likelihood(factor[0], variance, len(values)), variance


def _likelihood(factor: Array, variance: float, n: int) -> float:
    log_determinant = 2 * np.log(np.diag(factor)).sum()
    return float(-0.5 * (n * (np.log(2 * np.pi * variance) + 1) + log_determinant))


def _lengthscale(kernel: Stationary) -> float | Array:
    assert kernel.lengthscale is not None  # kernels with a covariance are taken to unit ones
    return kernel.lengthscale


def _with_lengthscales(kernel: Stationary, logs: Array) -> Stationary:
    one_each = isinstance(kernel.lengthscale, np.ndarray)
    lengthscales = np.clip(np.exp(logs), SHORTEST, LONGEST)  # which exp may leave by rounding
    lengthscale = lengthscales if one_each else float(lengthscales[0])
    return replace(kernel, lengthscale=lengthscale)


def _raised(gram: Array) -> Array:
    return gram + NUGGET * np.eye(len(gram))
