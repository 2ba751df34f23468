"""Weight rules: which weights go with given points.

A rule is a function(embedding, points) -> PrefixWeights, of an :class:`bqlib.Embedding` and points
(n, d). It returns the weights of every prefix, as a lower triangular matrix whose row n - 1 holds
those of the first n points. It raises a ValueError for points of another shape, NaN or infinity.

All rules except :func:`uniform` minimise the MMD, each over its own set of weights. They have two
properties in common. First, a point that repeats an earlier one gets weight zero, because f is
already known there. So does a point where one earlier point leaves at most 1e-8 of its prior
variance, such as one within 1e-4 length-scales for a smooth kernel: large and opposite weights on
both would estimate a derivative of f. Second, the weights end before the first redundant point,
whose pivot (its prior variance given all points before it) is at most 1e-12 k(x, x): beyond it,
the weights are noise. Those of a finished set of points, :func:`final`, do not end: only redundant
points have weight zero, wherever they are in the order.

At a point where k(x, x) is zero, such as 0 for :class:`bqlib.Brownian`, a weight does not change
the MMD and is zero. Only with sum one, the first of these points gets what the others leave.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import solve_triangular

from bqlib.answers import checked_diagonal
from bqlib.arrays import Array
from bqlib.checks import checked_values
from bqlib.embeddings.embedding import Embedding, points_of
from bqlib.leading_blocks import nonnegative_solutions, solutions
from bqlib.pivots import PIVOT_TOLERANCE, distinct_points, leading_cholesky, not_spent


@dataclass(frozen=True, eq=False)
class PrefixWeights:
    """Weights of the first n points, for n = 1..rank.

    They end before the first redundant point; :func:`final` still gives weights for all points.

    Attributes
    ----------
    matrix : ndarray, shape (rank, rank)
        Row n - 1: weights of the first n points, zero after them.
    stop : str
        Empty, or why `rank` is less than the number of points.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib.weights import PrefixWeights
    >>> PrefixWeights(np.array([[1.0, 0.0], [0.5, 0.5]])).final(3)
    array([0.5, 0.5, 0. ])
    """

    matrix: Array
    stop: str = ""

    def final(self, n: int) -> Array:
        """Weights of n points, shape (n,): those of the largest prefix, then zeros.

        Raises
        ------
        ValueError
            If n is less than the number of points that have weights.
        """
        rank = len(self.matrix)
        if n < rank:
            raise ValueError(
                f"n is {n}; it must be at least {rank}, the number of points that have weights. "
                "For the weights of the first m points, use matrix[m - 1, :m]"
            )
        weights = np.zeros(n)
        if rank:
            weights[:rank] = self.matrix[-1]
        return weights


Rule = Callable[[Embedding, ArrayLike], PrefixWeights]
Solve = Callable[[Array, Array, Array], Array]  # Gram matrix, its Cholesky factor, kernel mean


@dataclass(frozen=True, eq=False)
class Conditioning:
    """How well conditioned some points are, and what that does to their weights.

    Attributes
    ----------
    pivots : ndarray, shape (distinct,)
        Prior variance of each distinct point given the points before it, divided by its k(x, x).
        The array ends with the first pivot of at most 1e-12.
    rank : int
        Number of distinct points before that pivot.
    duplicates : int
        Number of points that repeat an earlier one, exactly or nearly, or where k(x, x) is zero.
    condition_number : float
        Largest over smallest eigenvalue of the Gram matrix of the first `rank` distinct points;
        NaN if there are none.
    weight_sum, weight_l1, weight_l2, weight_min : float
        Sum, sum of absolute values, Euclidean norm and least of the weights.
    negative : int
        Number of weights below zero.

    Examples
    --------
    >>> from bqlib import Brownian, Uniform, sbq
    >>> from bqlib.weights import conditioning
    >>> design = sbq(Uniform([0], [1]), Brownian(), n=20, rng=0)
    >>> found = conditioning(design.embedding, design.points, design.weights)
    >>> found.rank, found.duplicates, found.negative
    (20, 0, 0)
    """

    pivots: Array
    rank: int
    duplicates: int
    condition_number: float
    weight_sum: float
    weight_l1: float
    weight_l2: float
    weight_min: float
    negative: int


def uniform(embedding: Embedding, points: ArrayLike) -> PrefixWeights:
    """Equal weights 1/n, whatever the kernel. A repeated point counts each time.

    Parameters
    ----------
    embedding : Embedding
    points : array_like, shape (n, d)

    Returns
    -------
    PrefixWeights
        The weights of every prefix.

    Raises
    ------
    ValueError
        If points are not a finite array (n, d).
    TypeError
        If `embedding` is not an Embedding.

    Notes
    -----
    O(n^2) time and memory.

    Examples
    --------
    >>> from bqlib import Brownian, Uniform, embed
    >>> from bqlib.weights import uniform
    >>> embedding = embed(Brownian(), Uniform([0], [1]))
    >>> uniform(embedding, [[0.2], [0.4], [0.8]]).final(3).round(3)
    array([0.333, 0.333, 0.333])
    """
    n = len(points_of(embedding, points))
    return PrefixWeights(np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None])


def bq(embedding: Embedding, points: ArrayLike) -> PrefixWeights:
    r"""Bayesian quadrature weights K^{-1} z: of all weights, those with the least MMD.

    Parameters
    ----------
    embedding : Embedding
    points : array_like, shape (n, d)

    Returns
    -------
    PrefixWeights
        The weights of every prefix.

    Raises
    ------
    ValueError
        If points are not a finite array (n, d).
    TypeError
        If `embedding` is not an Embedding.

    Notes
    -----
    With the Cholesky factor L of K and a = L^{-1} z, the weights of the first n points are
    L_n^{-T} a_n, so one triangular inverse gives those of every prefix. O(n^3) time and O(n^2)
    memory, after O(n^2 d) time for the kernel.

    References
    ----------
    O'Hagan, "Bayes-Hermite quadrature", 1991.

    Examples
    --------
    >>> from bqlib import Brownian, Uniform, embed
    >>> from bqlib.weights import bq
    >>> embedding = embed(Brownian(), Uniform([0], [1]))
    >>> bq(embedding, [[0.2], [0.4], [0.8]]).final(3).round(3)
    array([0.2, 0.3, 0.4])
    """
    return _rule(embedding, points, lambda gram, factor, mean: solutions(factor, mean))


def sum_to_one(embedding: Embedding, points: ArrayLike) -> PrefixWeights:
    r"""Of all weights with sum one, those with the least MMD.

    Parameters
    ----------
    embedding : Embedding
    points : array_like, shape (n, d)

    Returns
    -------
    PrefixWeights
        The weights of every prefix.

    Raises
    ------
    ValueError
        If points are not a finite array (n, d).
    TypeError
        If `embedding` is not an Embedding.

    Notes
    -----
    They are K^{-1} (z + c 1) with c = (1 - 1'K^{-1}z) / (1'K^{-1}1). Their estimate is the
    posterior mean of the integral if f has an unknown constant mean (a flat prior on it), and
    their MMD^2 is the posterior variance. O(n^3) time and O(n^2) memory, after O(n^2 d) time for
    the kernel.

    References
    ----------
    Karvonen, Oates and Särkkä, "A Bayes-Sard cubature method", 2018.

    Examples
    --------
    >>> from bqlib import Brownian, Uniform, embed
    >>> from bqlib.weights import sum_to_one
    >>> embedding = embed(Brownian(), Uniform([0], [1]))
    >>> sum_to_one(embedding, [[0.2], [0.4], [0.8]]).final(3).round(3)
    array([0.3, 0.3, 0.4])
    """

    def solve(gram: Array, factor: Array, mean: Array) -> Array:
        weights = solutions(factor, mean)
        constant = solutions(factor, np.ones(len(mean)))
        missing = (1 - weights.sum(axis=1)) / constant.sum(axis=1)
        return weights + missing[:, None] * constant

    return _with_the_rest(embedding, points, _rule(embedding, points, solve), bq)


def nonnegative(embedding: Embedding, points: ArrayLike) -> PrefixWeights:
    """Of all weights that are not negative, those with the least MMD.

    Parameters
    ----------
    embedding : Embedding
    points : array_like, shape (n, d)

    Returns
    -------
    PrefixWeights
        The weights of every prefix.

    Raises
    ------
    ValueError
        If points are not a finite array (n, d).
    TypeError
        If `embedding` is not an Embedding.

    Notes
    -----
    Non-negative least squares for every prefix. Each starts from the solution of the prefix before
    and needs one or two dense solves on its support: O(n^4) time with a small constant, O(n^2)
    memory. For the points of SBQ this takes less time than picking the points up to n = 400, and
    several times more at n = 1000.

    References
    ----------
    Lawson and Hanson, "Solving Least Squares Problems", 1974, chapter 23.

    Examples
    --------
    >>> from bqlib import Brownian, Uniform, embed
    >>> from bqlib.weights import nonnegative
    >>> embedding = embed(Brownian(), Uniform([0], [1]))
    >>> nonnegative(embedding, [[0.2], [0.4], [0.8]]).final(3).round(3)
    array([0.2, 0.3, 0.4])
    """
    return _rule(embedding, points, lambda gram, factor, mean: nonnegative_solutions(gram, mean))


def simplex(embedding: Embedding, points: ArrayLike) -> PrefixWeights:
    """Of all weights that are not negative and have sum one, those with the least MMD.

    Parameters
    ----------
    embedding : Embedding
    points : array_like, shape (n, d)

    Returns
    -------
    PrefixWeights
        The weights of every prefix.

    Raises
    ------
    ValueError
        If points are not a finite array (n, d).
    TypeError
        If `embedding` is not an Embedding.

    Notes
    -----
    With sum one, MMD^2 is w'Qw for Q = K - z1' - 1z' + V0 11'. For v = t w with t > 0,
    v'Qv + c (1'v - 1)^2 = t^2 w'Qw + c (t - 1)^2 has the same best w for every t. So for any c > 0
    the weights are exactly the non-negative v that minimise it, divided by their sum. As for
    :func:`nonnegative`, O(n^4) time with a small constant, O(n^2) memory.

    Examples
    --------
    >>> from bqlib import Brownian, Uniform, embed
    >>> from bqlib.weights import simplex
    >>> embedding = embed(Brownian(), Uniform([0], [1]))
    >>> simplex(embedding, [[0.2], [0.4], [0.8]]).final(3).round(3)
    array([0.3, 0.3, 0.4])
    """
    prior_variance = embedding.prior_variance

    def solve(gram: Array, factor: Array, mean: Array) -> Array:
        # This large a c leaves every pivot at least half of what it is in K.
        c = prior_variance + np.diag(gram).max(initial=0.0)
        lifted = gram - mean[:, None] - mean[None, :] + (prior_variance + c)
        weights = nonnegative_solutions(lifted, np.full(len(mean), c))
        return weights / weights.sum(axis=1, keepdims=True)

    return _with_the_rest(embedding, points, _rule(embedding, points, solve), nonnegative)


def final(rule: Rule, embedding: Embedding, points: ArrayLike) -> Array:
    """Weights of all points by a rule, without those of their prefixes.

    This is the last row of the rule's matrix. If the matrix ends early, the points are taken one by
    one, always the point with the largest pivot relative to k(x, x), down to 1e-12. The rule gives
    the weights of the points taken. The other points are redundant and have weight zero. If the
    points were taken in their own order instead, the first points of a dense group would get
    weights that are larger by orders of magnitude.

    Parameters
    ----------
    rule : callable
        A function of this module, or any (embedding, points) -> PrefixWeights.
    embedding : Embedding
    points : array_like, shape (n, d)

    Returns
    -------
    ndarray, shape (n,)

    Raises
    ------
    ValueError
        If points are not a finite array (n, d).
    TypeError
        If `embedding` is not an Embedding, or the rule does not return PrefixWeights.

    Notes
    -----
    The cost of the rule, twice if it ends early, and O(n^3) time to find redundant points.

    Examples
    --------
    >>> from bqlib import Brownian, Uniform, embed
    >>> from bqlib.weights import bq, final
    >>> final(bq, embed(Brownian(), Uniform([0], [1])), [[0.4], [0.8], [0.4]]).round(3)
    array([0.4, 0.4, 0. ])
    """
    points = points_of(embedding, points)
    found = rule(embedding, points)
    if not isinstance(found, PrefixWeights):
        raise TypeError(f"the rule returned {type(found).__name__}; it must return PrefixWeights")
    if found.stop:
        kept = not_spent(embedding.kernel, points)
        if len(kept) < len(points):
            weights = np.zeros(len(points))
            weights[kept] = rule(embedding, points[kept]).final(len(kept))
            return weights
    return found.final(len(points))


def conditioning(embedding: Embedding, points: ArrayLike, weights: ArrayLike) -> Conditioning:
    """How well conditioned points are, and their weights.

    Parameters
    ----------
    embedding : Embedding
    points : array_like, shape (n, d)
    weights : array_like, shape (n,)

    Returns
    -------
    Conditioning

    Raises
    ------
    ValueError
        If there are no points, or points and weights do not fit together.
    TypeError
        If `embedding` is not an Embedding.

    Notes
    -----
    O(n^3 + n^2 d) time, O(n^2) memory.

    Examples
    --------
    >>> from bqlib import Brownian, Uniform, embed
    >>> from bqlib.weights import conditioning
    >>> embedding = embed(Brownian(), Uniform([0], [1]))
    >>> found = conditioning(embedding, [[0.4], [0.8], [0.4]], [0.4, 0.4, 0.0])
    >>> found.duplicates, round(found.weight_sum, 3), round(found.condition_number, 2)
    (1, 0.8, 6.85)
    """
    points = points_of(embedding, points)
    n = len(points)
    if not n:
        raise ValueError("there are no points; give at least one")
    weights = checked_values(weights, n, "weights")
    distinct, gram = distinct_points(embedding.kernel, points)
    factor, rank = leading_cholesky(gram)
    pivots = np.square(np.diag(factor))
    if rank < len(distinct):
        row = solve_triangular(factor, gram[:rank, rank], lower=True)
        pivots = np.append(pivots, gram[rank, rank] - row @ row)
    eigenvalues = np.linalg.eigvalsh(gram[:rank, :rank])
    return Conditioning(
        pivots=pivots / np.diag(gram)[: len(pivots)],
        rank=rank,
        duplicates=n - len(distinct),
        condition_number=float(eigenvalues[-1] / eigenvalues[0]) if rank else np.nan,
        weight_sum=float(weights.sum()),
        weight_l1=float(np.abs(weights).sum()),
        weight_l2=float(np.linalg.norm(weights)),
        weight_min=float(weights.min()),
        negative=int((weights < 0).sum()),
    )


def _rule(embedding: Embedding, points: ArrayLike, solve: Solve) -> PrefixWeights:
    """PrefixWeights by solve(gram, Cholesky factor, kernel mean) on the distinct points."""
    points = points_of(embedding, points)
    n = len(points)
    distinct, gram = distinct_points(embedding.kernel, points)
    factor, rank = leading_cholesky(gram)
    stop = ""
    if rank < len(distinct):
        n = int(distinct[rank])
        stop = f"weights stop at n = {n}: pivot below {PIVOT_TOLERANCE:g} of the kernel's height"
    kept = distinct[:rank]
    block = solve(gram[:rank, :rank], factor, embedding.kernel_mean(points[kept]))
    block = np.concatenate([np.zeros((1, rank)), block])  # row m: of the first m that are kept
    matrix = np.zeros((n, n))
    matrix[:, kept] = block[np.searchsorted(kept, np.arange(n), side="right")]
    return PrefixWeights(matrix, stop)


def _with_the_rest(
    embedding: Embedding, points: ArrayLike, summed: PrefixWeights, rule: Rule
) -> PrefixWeights:
    """`summed`, the best weights of sum one, with the freedom that a point of k(x, x) = 0 gives.

    A weight there does not change the MMD. So from the first one on, the best weights of sum one
    are those of `rule`, which have any sum, and the rest at that point. If weights may not be
    negative and those of `rule` already have a sum above one, nothing is left for that point, and
    `summed` is the best.
    """
    zero = np.flatnonzero(checked_diagonal(embedding.kernel, points_of(embedding, points)) == 0)
    if not len(zero) or zero[0] >= len(summed.matrix):
        return summed
    matrix = rule(embedding, points).matrix.copy()
    rest = 1 - matrix.sum(axis=1)
    matrix[:, zero[0]] = rest
    bound = np.arange(len(matrix)) < zero[0]
    if rule is nonnegative:
        bound |= rest < 0
    matrix[bound] = summed.matrix[bound]
    return PrefixWeights(matrix, summed.stop)
