"""Redundant points: those that repeat others, and those whose pivots are too small.

The pivot of a point is its prior variance given all points before it. Arrays here are checked
already: points (n, d), and Gram matrices (n, n).
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import lapack

from bqlib.answers import checked_gram
from bqlib.arrays import Array, Indices, Mask
from bqlib.kernels import Kernel

REPEAT_TOLERANCE = 1e-8  # of k(x, x), left by one other point: about the root of float64's rounding
PIVOT_TOLERANCE = 1e-12  # of k(x, x); below it float64 has no digits left


def first_occurrence(points: Array) -> Indices:
    """For each point, the index of the first point equal to it, shape (n,)."""
    _, first, inverse = np.unique(points, axis=0, return_index=True, return_inverse=True)
    return first[inverse.ravel()]


def repeats(gram: Array, heights: Array, others: Array) -> Mask:
    """Where one point leaves only rounding of the variance at another, shape (n, m).

    1 - k(x, y)^2 / (k(x, x) k(y, y)) <= 1e-8, from k(x, y) (n, m), k(x, x) (n,) and k(y, y) (m,).
    """
    return np.abs(gram) >= repeat_floor(heights)[:, None] * repeat_floor(others)


def repeat_floor(heights: Array) -> Array:
    """From k(x, x) (n,): two points repeat each other if k(x, y) >= the product of their floors."""
    # By roots, as squares of small heights underflow.
    return (1 - REPEAT_TOLERANCE) ** 0.25 * np.sqrt(heights)


def distinct_points(kernel: Kernel, points: Array) -> tuple[Indices, Array]:
    """Indices of the points that repeat no earlier point, and their Gram matrix.

    Points where k(x, x) is zero are left out: f is known to be zero there.
    """
    gram = checked_gram(kernel, points, points)
    heights = np.diag(gram)
    near = np.tril(repeats(gram, heights, heights), -1)
    kept = heights != 0  # what is no point of its own has no repeats either
    for i in np.flatnonzero(near.any(axis=1)):
        kept[i] &= not near[i, kept].any()
    distinct = np.flatnonzero(kept)
    return distinct, gram if kept.all() else gram[np.ix_(distinct, distinct)]


def leading_cholesky(gram: Array) -> tuple[Array, int]:
    """Cholesky factor of the largest leading block with pivots above tolerance, and its size.

    Rounding in a pivot is about eps k(x, x) of its own point, whatever k(x, x) is at others.
    """
    factor, info = lapack.dpotrf(gram, lower=True, clean=True)
    pivots = np.square(np.diag(factor)[: info - 1 if info else len(gram)])
    small = np.flatnonzero(pivots <= PIVOT_TOLERANCE * np.diag(gram)[: len(pivots)])
    rank = int(small[0]) if len(small) else len(pivots)
    return factor[:rank, :rank], rank


def not_spent(kernel: Kernel, points: Array) -> Indices:
    """Indices of the points that are not redundant, in their order.

    :func:`bqlib.weights.final` says how they are found. Exact repeats are left out. A point where
    k(x, x) is zero is kept.
    """
    gram = checked_gram(kernel, points, points)
    roots = np.sqrt(np.diag(gram))
    zero = np.flatnonzero(roots == 0)
    roots[zero] = 1.0
    unit = gram / roots / roots[:, None]
    _, order, rank, _ = lapack.dpstrf(unit, lower=1, tol=PIVOT_TOLERANCE)
    kept = np.sort(np.append(order[:rank] - 1, zero))
    # In the order of the points, a pivot may be smaller than the least of those.
    while True:
        distinct, gram = distinct_points(kernel, points[kept])
        _, rank = leading_cholesky(gram)
        if rank == len(distinct):
            return kept
        kept = np.delete(kept, distinct[rank])


def refuse_two_values(points: Array, values: Array) -> None:
    """Raise a ValueError if f has two values at one point."""
    first = first_occurrence(points)
    # A part of the spread of f, whose mean may be large, or the rounding of f itself.
    allowed = max(1e-9 * np.ptp(values), 4e-15 * np.abs(values).max()) if len(values) else 0.0
    differ = np.abs(values - values[first]) > allowed
    if differ.any():
        i = int(differ.argmax())
        raise ValueError(
            f"points {first[i]} and {i} are equal, but f is {values[first[i]]} and {values[i]} "
            "there; f must have one value at each point. For values with noise of known variance, "
            "use bqlib.integrate(..., noise=...)"
        )
