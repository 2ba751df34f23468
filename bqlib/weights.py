"""Weight rules: which weights go with given points.

A rule is a function(embedding, points) -> PrefixWeights. It gives the weights of every prefix of
an ordered sequence of points at once, as a lower triangular matrix whose row n - 1 holds the
weights of the first n points.
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import lapack, solve_triangular

PIVOT_TOLERANCE = 1e-12  # of the largest k(x, x); below it float64 has no digits left


@dataclass(frozen=True, eq=False)
class PrefixWeights:
    """Weights of the first n points, for n = 1..rank.

    Attributes
    ----------
    matrix : ndarray, shape (rank, rank)
        Row n - 1: weights of the first n points, zero after them.
    stop : str
        Empty, or why `rank` is less than the number of points.
    """

    matrix: np.ndarray
    stop: str = ""

    def final(self, n):
        """Weights of n points, shape (n,): those of the largest prefix, then zeros."""
        weights = np.zeros(n)
        weights[: len(self.matrix)] = self.matrix[-1]
        return weights


def first_occurrence(points):
    """For each point, the index of the first point equal to it, shape (n,)."""
    _, first, inverse = np.unique(points, axis=0, return_index=True, return_inverse=True)
    return first[inverse.ravel()]


def uniform(embedding, points):
    """Equal weights 1/n, whatever the kernel."""
    n = len(points)
    return PrefixWeights(np.tril(np.ones((n, n))) / np.arange(1, n + 1)[:, None])


def bq(embedding, points):
    r"""Bayesian quadrature weights K^{-1} z: the weights with the least MMD.

    A point that repeats an earlier one gets weight zero, as it tells nothing new. The weights end
    before the first point whose pivot, its prior variance given the points before it, is at most
    1e-12 of the largest k(x, x).

    With the Cholesky factor L of K and a = L^{-1} z, the weights of the first n points are
    L_n^{-T} a_n, so one triangular inverse gives those of every prefix. O(n^3) time, O(n^2)
    memory.
    """
    n = len(points)
    distinct = np.flatnonzero(first_occurrence(points) == np.arange(n))
    gram = embedding.kernel(points[distinct], points[distinct])
    factor, rank = leading_cholesky(gram)
    stop = ""
    if rank < len(distinct):
        n = distinct[rank]
        stop = f"weights stop at n = {n}: pivot below {PIVOT_TOLERANCE:g} of the kernel's height"
    projections = solve_triangular(
        factor, embedding.kernel_mean(points[distinct[:rank]]), lower=True
    )
    inverse = solve_triangular(factor, np.eye(rank), lower=True)
    matrix = np.zeros((n, n))
    matrix[np.ix_(distinct[:rank], distinct[:rank])] = projections[:, None] * inverse
    return PrefixWeights(np.cumsum(matrix, axis=0), stop)


def leading_cholesky(gram):
    """Cholesky factor of the largest leading block with pivots above the tolerance, and its size.

    `gram` is overwritten.
    """
    floor = PIVOT_TOLERANCE * np.diag(gram).max()
    factor, info = lapack.dpotrf(gram, lower=True, clean=True, overwrite_a=True)
    pivots = np.square(np.diag(factor)[: info - 1 if info else len(gram)])
    small = np.flatnonzero(pivots <= floor)
    rank = int(small[0]) if len(small) else len(pivots)
    return factor[:rank, :rank], rank
