"""Linear systems, with any solution or one that is not negative, on every leading block."""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack, solve_triangular

from bqlib.arrays import Array

SLOPE_TOLERANCE = 1e-13  # of the largest linear term; below it a slope is rounding


def solutions(factor: Array, linear: Array) -> Array:
    """Row n - 1: the solution of G_n w = linear_n on every leading block, G = factor factor'."""
    projections = solve_triangular(factor, linear, lower=True)
    inverse = solve_triangular(factor, np.eye(len(linear)), lower=True)
    return np.cumsum(projections[:, None] * inverse, axis=0)


def nonnegative_solutions(gram: Array, linear: Array) -> Array:
    """Row n - 1: the w >= 0 that minimises w'G_n w - 2 w'linear_n, on every leading block.

    The active set method of Lawson and Hanson, "Solving Least Squares Problems", 1974, chapter
    23. It may start from the solution of the block before, and then needs one or two changes of
    the support for each new point, where a cold start needs one for each point of the support.
    """
    n = len(linear)
    rows = np.zeros((n, n))
    weights = np.zeros(n)
    support: list[int] = []
    tolerance = SLOPE_TOLERANCE * np.abs(linear).max(initial=0.0)
    for size in range(1, n + 1):
        refused: list[int] = []
        while True:
            slope = linear[:size] - gram[:size, support] @ weights[support]
            slope[support + refused] = -np.inf
            newcomer = int(np.argmax(slope))
            if slope[newcomer] <= tolerance:
                break
            support.append(newcomer)
            if not _move_to_best(gram, linear, weights, support):
                refused.append(newcomer)
        rows[size - 1] = weights
    return rows


def _move_to_best(gram: Array, linear: Array, weights: Array, support: list[int]) -> bool:
    """Move `weights` to the best on `support`, dropping from it each point that reaches zero.

    False, with nothing changed but the last point dropped, where that point cannot become
    positive: its slope was positive by rounding alone.
    """
    while True:
        current = weights[support]
        _, best, info = lapack.dposv(gram[np.ix_(support, support)], linear[support])
        if current[-1] == 0 and (info or best[-1] <= 0):
            support.pop()
            return False
        leaving = best <= 0
        if not leaving.any():
            weights[support] = best
            return True
        shares = np.full(len(support), np.inf)
        shares[leaving] = current[leaving] / (current - best)[leaving]
        share = shares.min()
        weights[support] = np.where(shares == share, 0.0, current + share * (best - current))
        support[:] = [i for i in support if weights[i] > 0]
