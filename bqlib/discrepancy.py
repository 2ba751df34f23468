"""Discrepancies: how far weighted points are from their target."""

from __future__ import annotations

from collections.abc import Callable
from itertools import product
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from bqlib.answers import checked_gram
from bqlib.arrays import Array
from bqlib.checks import checked_array, checked_points, checked_values
from bqlib.embeddings.embedding import Embedding, points_of
from bqlib.kernels import ExponentiatedQuadratic
from bqlib.targets import GaussianMixture


def mmd(embedding: Embedding, points: ArrayLike, weights: ArrayLike) -> float:
    """MMD to the embedding's target: the largest error over all functions of norm one.

    Parameters
    ----------
    embedding : Embedding
    points : array_like, shape (n, d)
    weights : array_like, shape (n,)
        Any weights; they need not be positive or sum to one.

    Returns
    -------
    float
        Square root of :func:`bqlib.discrepancy.mmd2`, NaN if that is NaN. In the unit of sqrt(k):
        if you double the kernel, the MMD grows by a factor of sqrt(2).

    Raises
    ------
    ValueError
        If points and weights do not fit together, or hold a number that is not finite.
    TypeError
        If `embedding` is not an Embedding, or points or weights are not real numbers.

    Notes
    -----
    O(n^2 d) time, O(n^2) memory.

    References
    ----------
    Gretton, Borgwardt, Rasch, Schölkopf and Smola, "A kernel two-sample test", 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib import ExponentiatedQuadratic, GaussianMixture, embed, mmd
    >>> normal = GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    >>> embedding = embed(ExponentiatedQuadratic(1.0), normal)
    >>> round(mmd(embedding, np.array([[-1.0], [1.0]]), np.array([0.5, 0.5])), 6)
    0.208871
    """
    return float(np.sqrt(mmd2(embedding, points, weights)))


def mmd2(embedding: Embedding, points: ArrayLike, weights: ArrayLike) -> float:
    """Squared MMD to the embedding's target: V0 - 2 w'z + w'Kw.

    Also the expected squared error of the weights, over f from the Gaussian process with mean zero
    and the embedding's kernel.

    Parameters
    ----------
    embedding : Embedding
    points : array_like, shape (n, d)
    weights : array_like, shape (n,)
        Any weights; they need not be positive or sum to one.

    Returns
    -------
    float
        In the unit of k. NaN if the result is at most 5 eps (V0 + |w|'|K||w|): see
        :func:`mmd2_of_prefixes`.

    Raises
    ------
    ValueError
        If points and weights do not fit together, or hold a number that is not finite.
    TypeError
        If `embedding` is not an Embedding, or points or weights are not real numbers.

    Notes
    -----
    O(n^2 d) time, O(n^2) memory.

    Examples
    --------
    >>> from bqlib import Brownian, Uniform, embed
    >>> from bqlib.discrepancy import mmd2
    >>> embedding = embed(Brownian(), Uniform([0], [1]))
    >>> round(mmd2(embedding, [[0.4], [0.8]], [0.4, 0.4]), 6)  # 1 / 75, the least of two points
    0.013333
    """
    return float(_above_rounding(*mmd2_and_rounding(embedding, points, weights)))


def mmd2_and_rounding(
    embedding: Embedding, points: ArrayLike, weights: ArrayLike
) -> tuple[float, float]:
    """V0 - 2 w'z + w'Kw as float64 computes it, and 5 eps (V0 + |w|'|K||w|).

    The rounding error alone is a third of the second number. If the first is not larger than the
    second, this bound is all that is known about the squared MMD.

    Parameters
    ----------
    embedding : Embedding
    points : array_like, shape (n, d)
    weights : array_like, shape (n,)
        Any weights; they need not be positive or sum to one.

    Returns
    -------
    mmd2, rounding : float

    Raises
    ------
    ValueError
        If points and weights do not fit together, or hold a number that is not finite.
    TypeError
        If `embedding` is not an Embedding, or points or weights are not real numbers.

    Notes
    -----
    O(n^2 d) time, O(n^2) memory.

    Examples
    --------
    >>> from bqlib import Brownian, Uniform, embed
    >>> from bqlib.discrepancy import mmd2_and_rounding
    >>> embedding = embed(Brownian(), Uniform([0], [1]))
    >>> squared, rounding = mmd2_and_rounding(embedding, [[0.4], [0.8]], [0.4, 0.4])
    >>> print(round(squared, 6), rounding < 1e-14)
    0.013333 True
    """
    points, weights = _checked(embedding, points, weights)
    gram = checked_gram(embedding.kernel, points, points)
    linear = weights @ embedding.kernel_mean(points)
    quadratic = weights @ gram @ weights
    magnitude = np.abs(weights) @ np.abs(gram) @ np.abs(weights)
    return _with_rounding(embedding.prior_variance, linear, quadratic, magnitude)


def mmd2_of_prefixes(embedding: Embedding, points: ArrayLike, matrix: ArrayLike) -> Array:
    """Squared MMD to the embedding's target of every prefix of `points`.

    Parameters
    ----------
    embedding : Embedding
    points : array_like, shape (n, d)
    matrix : array_like, shape (n, n)
        Row m - 1: the weights of the first m points, zero after them.

    Returns
    -------
    ndarray, shape (n,)
        V0 - 2 w'z + w'Kw for each row w. NaN if the result is at most 5 eps (V0 + |w|'|K||w|); the
        rounding error alone is a third of this bound.

    Raises
    ------
    ValueError
        If points and matrix do not fit together, or hold a number that is not finite.
    TypeError
        If `embedding` is not an Embedding, or points or matrix are not real numbers.

    Notes
    -----
    O(n^3 + n^2 d) time, O(n^2) memory.

    Examples
    --------
    >>> from bqlib import Brownian, Uniform, embed
    >>> from bqlib.discrepancy import mmd2_of_prefixes
    >>> embedding = embed(Brownian(), Uniform([0], [1]))
    >>> from bqlib.weights import bq
    >>> points = [[0.8], [0.4]]
    >>> mmd2_of_prefixes(embedding, points, bq(embedding, points).matrix).round(6)
    array([0.045333, 0.013333])
    """
    points, matrix = _checked(embedding, points, matrix, rows=True)
    gram = checked_gram(embedding.kernel, points, points)
    linear = matrix @ embedding.kernel_mean(points)
    quadratic = np.einsum("ij,ij->i", matrix @ gram, matrix)
    absolute = np.abs(matrix)
    magnitude = np.einsum("ij,ij->i", absolute @ np.abs(gram), absolute)
    return _above_rounding(*_with_rounding(embedding.prior_variance, linear, quadratic, magnitude))


def spectral_mmd2(embedding: Embedding, points: ArrayLike, weights: ArrayLike) -> float:
    r"""Squared MMD by integration over frequency: slow, but without cancellation.

    MMD^2 = int |phi(u) - sum_j w_j exp(i u'x_j)|^2 dL(u), with phi the characteristic function of
    the target and L the spectral measure of the kernel. The quadratic form of :func:`mmd2`
    subtracts terms of the size of V0, and so loses the digits of a small MMD. Here each term of the
    integral is small by itself, so small values keep their digits.

    Parameters
    ----------
    embedding : Embedding
        Of an :class:`ExponentiatedQuadratic` and a :class:`GaussianMixture`, with d <= 3.
    points : array_like, shape (n, d)
    weights : array_like, shape (n,)

    Returns
    -------
    float
        In the unit of k.

    Raises
    ------
    TypeError
        For another kernel or target.
    ValueError
        If d is above 3, or if points and weights do not fit together or are not finite.

    Notes
    -----
    The trapezoid rule over a box of frequencies. The spectral mass outside the box and the kernel's
    value at the period 2 pi / step are below 1e-40. Rounding at each frequency, of 1e-16 before it
    is squared, leaves digits down to some 1e-28 of V0. With G frequencies for each coordinate it
    takes at most O(G^d (n + J)) time and O(G^(d-1) n) memory. G is some hundreds if the target
    spans tens of length-scales.

    Examples
    --------
    >>> from bqlib import ExponentiatedQuadratic, GaussianMixture, sbq
    >>> from bqlib.discrepancy import mmd2, spectral_mmd2
    >>> normal = GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    >>> design = sbq(normal, ExponentiatedQuadratic(1.0), n=8, rng=0)
    >>> arguments = design.embedding, design.points, design.weights
    >>> round(spectral_mmd2(*arguments) / mmd2(*arguments), 6)
    1.0
    """
    kernel, target = embedding.kernel, embedding.target
    if not (isinstance(kernel, ExponentiatedQuadratic) and isinstance(target, GaussianMixture)):
        raise TypeError(
            "spectral_mmd2 works only for ExponentiatedQuadratic with GaussianMixture, not for "
            f"{type(kernel).__name__} with {type(target).__name__}; use mmd2 for other pairs"
        )
    dim = target.dim
    if dim > 3:
        raise ValueError(f"spectral_mmd2 works only for d <= 3, not for d = {dim}; use mmd2")
    x, weights = _checked(embedding, points, weights)
    # In coordinates where the kernel's covariance is I, the spectral density is a standard normal.
    factor = np.linalg.cholesky(kernel.metric(dim))
    x = solve_triangular(factor, x.T, lower=True).T
    means: Array = solve_triangular(factor, target.means.T, lower=True).T
    covariances = np.linalg.solve(factor, np.linalg.solve(factor, target.covariances).mT)
    spread = np.sqrt(np.einsum("jii->ji", covariances))
    lower = np.minimum(x.min(axis=0, initial=np.inf), (means - 10 * spread).min(axis=0))
    upper = np.maximum(x.max(axis=0, initial=-np.inf), (means + 10 * spread).max(axis=0))
    x, means = x - (lower + upper) / 2, means - (lower + upper) / 2
    reach = 14.0  # of a standard normal, and of its transform: exp(-reach^2 / 2) = 3e-43
    steps = 2 * np.pi / (upper - lower + reach)
    axes = [step * np.arange(-np.ceil(reach / step), reach / step + 1) for step in steps]
    # The integrand is even, so half of the first axis will do.
    halves = axes[0][axes[0] >= 0]
    rest = np.array(list(product(*axes[1:])))
    waves = np.exp(1j * rest @ x[:, 1:].T)
    total = 0.0
    for first in halves:
        u = np.column_stack([np.full(len(rest), first), rest])
        decay = np.einsum("ui,jik,uk->uj", u, covariances, u, optimize=True)
        difference = np.exp(1j * u @ means.T - 0.5 * decay) @ target.weights
        difference -= waves @ (weights * np.exp(1j * first * x[:, 0]))
        power = np.square(difference.real) + np.square(difference.imag)
        density = np.exp(-0.5 * np.square(u).sum(axis=1))
        total += (1.0 if first == 0 else 2.0) * (density @ power)
    return float(total * kernel.height(dim) * np.prod(steps) * (2 * np.pi) ** (-dim / 2))


def witness(
    embedding: Embedding, points: ArrayLike, weights: ArrayLike
) -> Callable[[ArrayLike], Array]:
    """The function of norm one with the largest error of the weighted points, which is their MMD.

    Parameters
    ----------
    embedding : Embedding
    points : array_like, shape (n, d)
    weights : array_like, shape (n,)

    Returns
    -------
    callable
        x (n, d) to (z(x) - sum_j w_j k(x, x_j)) / MMD, shape (n,).

    Raises
    ------
    ValueError
        If the MMD is below the rounding of float64, or if points and weights do not fit together or
        are not finite.
    TypeError
        If `embedding` is not an Embedding, or points or weights are not real numbers.

    Notes
    -----
    The integral of the witness is (V0 - w'z) / MMD. For the weights :func:`bqlib.weights.bq` it is
    zero at all the points and its integral is the MMD. No estimate from these points can
    distinguish it from its negative, so no estimate has a smaller worst-case error than this MMD.
    O(n^2 d) time once, and O(n d) a point.

    Examples
    --------
    >>> from bqlib import Brownian, Uniform, embed
    >>> from bqlib.discrepancy import witness
    >>> embedding = embed(Brownian(), Uniform([0], [1]))
    >>> f = witness(embedding, [[0.4], [0.8]], [0.4, 0.4])
    >>> f([[0.2], [0.5], [1.0]]).round(3)
    array([0.173, 0.13 , 0.173])
    """
    points, weights = _checked(embedding, points, weights)
    norm = mmd(embedding, points, weights)
    if np.isnan(norm):
        raise ValueError(
            "the MMD is below the rounding error of float64, so its witness would be noise: use "
            "fewer points"
        )
    dim = embedding.target.dim

    def difference(x: ArrayLike) -> Array:
        x = checked_points(x, dim)
        return embedding.kernel_mean(x) - checked_gram(embedding.kernel, x, points) @ weights

    return lambda x: difference(x) / norm


def _with_rounding(prior_variance: float, linear: Any, quadratic: Any, magnitude: Any) -> Any:
    mmd2 = prior_variance - 2 * linear + quadratic
    return mmd2, 5 * np.finfo(float).eps * (prior_variance + magnitude)


def _above_rounding(mmd2: Any, rounding: Any) -> Array:
    """`mmd2`, or NaN if float64 has cancelled every digit."""
    return np.where(mmd2 > rounding, mmd2, np.nan)


def _checked(
    embedding: Embedding, points: ArrayLike, weights: ArrayLike, rows: bool = False
) -> tuple[Array, Array]:
    points = points_of(embedding, points)
    n = len(points)
    if not rows:
        return points, checked_values(weights, n, "weights")
    matrix = checked_array(weights, "weights")
    if matrix.ndim != 2 or matrix.shape[1] != n:
        raise ValueError(f"weights have shape {matrix.shape}; {n} points need shape (m, {n})")
    if not np.isfinite(matrix).all():
        row = int(np.argmin(np.isfinite(matrix).all(axis=1)))
        raise ValueError(f"weights hold NaN or infinity, first in row {row}; they must be finite")
    return points, matrix
