"""Kernel parameters by marginal likelihood: length-scales and output scale from values of f."""

from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_factor, cho_solve
from scipy.optimize import minimize

from bqlib.arrays import Array
from bqlib.checks import checked_points, checked_values_of_f
from bqlib.kernels import ExponentiatedQuadratic, Matern, RationalQuadratic
from bqlib.weights import first_occurrence, leading_cholesky

# Kernels whose values depend on x - y over the length-scales and on nothing else.
STATIONARY = (ExponentiatedQuadratic, Matern, RationalQuadratic)
Stationary = ExponentiatedQuadratic | Matern | RationalQuadratic
NUGGET = 1e-8  # of k(x, x): keeps K positive definite in float64 at long length-scales
RANGE = 1e4  # the search covers the starting length-scales divided and multiplied by this


@dataclass(frozen=True, eq=False)
class KernelFit:
    """A kernel fitted to values of f.

    Attributes
    ----------
    kernel
        The kernel given, with new length-scales.
    output_scale : float
        a, where a^2 k is the covariance of f.
    log_likelihood : float
        Log marginal likelihood of the values at these parameters.
    stop : str
        Empty, or why you should check the fit: the search ended early; a length-scale reached the
        end of its range, which happens if f does not depend on a coordinate; or K is singular in
        float64 at the fitted length-scales, which happens for values of a very smooth f.
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
        Where to start. A kernel with one length-scale for all coordinates keeps one. A kernel with
        one for each coordinate keeps one for each (automatic relevance determination).
    points : array_like, shape (n, d)
    values : array_like, shape (n,)
        f at the points. If the mean of f is far from zero, subtract a constant first.

    Returns
    -------
    KernelFit

    Raises
    ------
    TypeError
        If the kernel has no length-scales to fit.
    ValueError
        If points and values do not fit together, or all values are zero.

    Notes
    -----
    The output scale has a closed form at fixed length-scales, a^2 = f'K^{-1}f / n, which leaves the
    profile likelihood -(n/2) log a^2 - (1/2) log |K|. It is maximised by L-BFGS on the log
    length-scales with its analytic gradient, from the best of the starting length-scales times
    1/16, 1/4, 1, 4 and 16. The search may find only a local maximum. 1e-8 k(x, x) is added to the
    diagonal of K. O(n^3 + n^2 d) time an evaluation.

    After fitting, the variance of the integral is too small: it ignores the uncertainty of the
    fitted length-scales.

    References
    ----------
    Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, section 5.4.1.

    Examples
    --------
    >>> from bqlib import ExponentiatedQuadratic
    >>> x = np.linspace(0, 10, 21)[:, None]
    >>> fit = fit_kernel(ExponentiatedQuadratic(1.0), x, np.sin(x[:, 0]))
    >>> 1 < fit.kernel.lengthscale < 4
    True
    """
    if not isinstance(kernel, STATIONARY) or kernel.lengthscale is None:
        raise TypeError(
            f"this {type(kernel).__name__} has no length-scales to fit; use an "
            "ExponentiatedQuadratic, Matern or RationalQuadratic made with lengthscale="
        )
    x = checked_points(points, kernel.dim)
    f = checked_values_of_f(values, len(x))
    if not len(x):
        raise ValueError("there are no points; give at least one")
    if not f.any():
        raise ValueError("all values are zero, so every length-scale fits; give other values of f")
    distinct = first_occurrence(x) == np.arange(len(x))
    x, f = x[distinct], f[distinct]
    # The height drops out of the profile likelihood, so the search is done at unit scale.
    unit = replace(kernel, scale="unit")
    start = np.log(np.atleast_1d(kernel.lengthscale))

    def negative(log_lengthscales: Array) -> tuple[float, Array]:
        likelihood, gradient = profile_likelihood(_with_lengthscales(unit, log_lengthscales), x, f)
        return -likelihood, -gradient

    starts = [start + step * np.log(4) for step in (-2, -1, 0, 1, 2)]
    found = minimize(
        negative,
        min(starts, key=lambda logs: negative(logs)[0]),
        jac=True,
        method="L-BFGS-B",
        bounds=[(log - np.log(RANGE), log + np.log(RANGE)) for log in start],
    )
    fitted = _with_lengthscales(kernel, found.x)
    reasons = []
    # Near the maximum, rounding may end the line search; this is not a failure.
    if not found.success and np.abs(found.jac).max() > 1e-3 * len(f):
        reasons.append(f"the search ended early: {found.message}")
    if (np.abs(found.x - start) > 0.99 * np.log(RANGE)).any():
        reasons.append(
            f"a length-scale reached the end of its search range, a factor {RANGE:g} from its start"
        )
    gram = _with_lengthscales(unit, found.x)(x, x)
    _, rank = leading_cholesky(gram)
    if rank < len(f):
        reasons.append(
            "the length-scales are so long that double precision separates only "
            f"{rank} of {len(f)} points"
        )
    variance = f @ cho_solve(cho_factor(_raised(gram), lower=True), f) / len(f)
    output_scale = np.sqrt(variance / fitted.height(x.shape[1]))
    return KernelFit(fitted, float(output_scale), float(-found.fun), "; ".join(reasons))


def profile_likelihood(kernel: Stationary, points: Array, values: Array) -> tuple[float, Array]:
    """Log marginal likelihood at the best output scale, and its gradient.

    Parameters
    ----------
    kernel
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

    Notes
    -----
    The gradient is tr((K^{-1}f f'K^{-1} / a^2 - K^{-1}) dK) / 2. As k depends on x - y over the
    length-scales alone, dk / d log l_c = -(x_c - y_c) dk / dx_c.
    """
    n = len(values)
    gram = kernel(points, points)
    factor = cho_factor(_raised(gram), lower=True)
    inverse = cho_solve(factor, np.eye(n))
    solved = inverse @ values
    variance = values @ solved / n
    log_determinant = 2 * np.log(np.diag(factor[0])).sum()
    likelihood = -0.5 * (n * (np.log(2 * np.pi * variance) + 1) + log_determinant)
    change = (points[None, :, :] - points[:, None, :]) * kernel.gradient(points, points)
    sensitivity = np.outer(solved, solved) / variance - inverse
    gradient = 0.5 * np.einsum("ij,ijc->c", sensitivity, change)
    one_each = isinstance(kernel.lengthscale, np.ndarray)
    return likelihood, gradient if one_each else gradient.sum(keepdims=True)


def _with_lengthscales(kernel: Stationary, logs: Array) -> Stationary:
    one_each = isinstance(kernel.lengthscale, np.ndarray)
    lengthscale = np.exp(logs) if one_each else float(np.exp(logs[0]))
    return replace(kernel, lengthscale=lengthscale)


def _raised(gram: Array) -> Array:
    return gram + NUGGET * np.eye(len(gram))
