"""Greedy designs by the Newton basis: one triangular row for each point picked.

The residual of a point x is z(x) minus its interpolant from the points picked so far. Its power is
the prior variance of f(x) that remains once f is known at these points. A greedy design picks each
candidate by its residual and power. Candidates that repeat a point, exactly or nearly, are left
out: see :mod:`bqlib.weights`.
"""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular

from bqlib.arrays import Array, Mask
from bqlib.designs.design import Design, Request
from bqlib.designs.pools import Score, candidates_of, scores
from bqlib.embeddings import Embedding
from bqlib.weights import NOT_DISTINCT, PIVOT_TOLERANCE, bq, repeats


def newton_greedy(
    request: Request,
    score: Score,
    choose: Callable[[Array], int | None] | None = None,
    refine: Callable[[Interpolant, Array, Array, Array], Array] | None = None,
    memory: float | None = None,
) -> Design:
    """Pick points one by one from the candidates.

    The design ends when the chosen candidate has a power of at most 1e-12 k(x, x). Then double
    precision cannot separate it from the points picked, and the scores have become noise. The
    design also ends when no candidate lowers the MMD.

    Parameters
    ----------
    request : Request
    score : callable
        (residual (M,), power (M,)) to the score of each candidate (M,). Residual and power are both
        zero if the power is only rounding.
    choose : callable, optional
        Scores (M,) to the index of a candidate, or to None to end the design. Default:
        :func:`best`.
    refine : callable, optional
        (interpolant, pool (M, d), residual, power) to a point (d,) of positive power, which is
        picked instead of the chosen candidate.
    memory : float, optional
        Memory limit in bytes, not counting the candidates (default: all memory of the machine).
        Above it the basis is recomputed at each step, block by block.

    Returns
    -------
    Design
        With the weight rule :func:`bqlib.weights.bq`.

    Raises
    ------
    MemoryError
        If `memory` does not suffice even for one block.

    Notes
    -----
    Fixed pool: O(M n) time a step, O(M n) memory. Fresh pools, and a pool in blocks: O(M n^2) time
    a step, O(M + n^2) memory. Source: Mueller and Schaback, "A Newton basis for kernel spaces",
    2009.
    """
    embedding, n, initial = request.embedding, request.n, request.initial
    # Picks off the pool, or drawn, cannot be foreseen.
    foresee = choose is None and refine is None
    candidates = candidates_of(request, memory, score if foresee else None)
    choose = choose or best
    interpolant = Interpolant(embedding, n)
    points = np.empty((n, embedding.target.dim))
    points[: len(initial)] = initial
    for x, height in zip(initial, embedding.kernel.diagonal(initial), strict=True):
        column, residual, power = interpolant.at(x)
        if power > PIVOT_TOLERANCE * height:  # else it repeats an earlier one
            candidates.learn(interpolant.rank, x, column, residual, power)
            interpolant.add(x, column, residual, power)
    for step in range(len(initial), n):
        candidates.look(interpolant)
        i = choose(scores(candidates, score))
        chosen = slice(None) if i is None else i
        floor = PIVOT_TOLERANCE * candidates.heights[chosen]
        spent = bool(np.all(candidates.power[chosen] <= floor))
        if i is None or spent:
            return Design(embedding, points[:step], bq, stop_reason(step, n, spent))
        power = candidates.power[i]
        if refine is None:
            x, residual = candidates.pool[i], candidates.residual[i]
            column = candidates.column(interpolant, i)
        else:
            x = refine(interpolant, candidates.pool, candidates.residual, candidates.power)
            column, residual, power = interpolant.at(x)
            i = None
        points[step] = x
        candidates.learn(interpolant.rank, x, column, residual, power, i)
        interpolant.add(x, column, residual, power)
    return Design(embedding, points, bq)


def best(score: Array) -> int | None:
    """Index of the largest score, or None if no score is positive."""
    i = int(np.argmax(score))
    return i if score[i] > 0 else None


class Interpolant:
    """The interpolant of z from points that come one by one.

    Attributes
    ----------
    embedding : Embedding
    rank : int
        Number of points taken in.
    points : ndarray, shape (rank, d)
    factor : ndarray, shape (rank, rank)
        Lower Cholesky factor L of their Gram matrix.
    projections : ndarray, shape (rank,)
        L^{-1} z at the points.
    """

    def __init__(self, embedding: Embedding, capacity: int):
        self.embedding = embedding
        self.rank = 0
        self._points = np.empty((capacity, embedding.target.dim))
        self._factor = np.zeros((capacity, capacity))
        self._projections = np.empty(capacity)

    @property
    def points(self) -> Array:
        return self._points[: self.rank]

    @property
    def factor(self) -> Array:
        return self._factor[: self.rank, : self.rank]

    @property
    def projections(self) -> Array:
        return self._projections[: self.rank]

    @property
    def weights(self) -> Array:
        """K^{-1} z at the points, shape (rank,)."""
        return solve_triangular(self.factor, self.projections, lower=True, trans="T")

    def gram(self, x: Array) -> Array:
        """k(points, x) for x (m, d), shape (rank, m)."""
        return self.embedding.kernel(self.points, x)

    def columns(self, x: Array, gram: Array | None = None) -> Array:
        """Newton basis at x (m, d), shape (rank, m): L^{-1} k(points, x)."""
        return solve_triangular(self.factor, self.gram(x) if gram is None else gram, lower=True)

    def repeated(self, x: Array, gram: Array | None = None) -> Mask:
        """Which of x (m, d) repeat a point, shape (m,)."""
        diagonal = self.embedding.kernel.diagonal
        gram = self.gram(x) if gram is None else gram
        return np.any(repeats(gram, diagonal(self.points), diagonal(x)), axis=0)

    def residual_and_power(self, x: Array, columns: Array) -> tuple[Array, Array]:
        """Residual and power at x (m, d) from its `columns`, each of shape (m,)."""
        residual = self.embedding.kernel_mean(x) - self.projections @ columns
        return residual, self.embedding.kernel.diagonal(x) - np.square(columns).sum(axis=0)

    def gradients(self, x: Array, columns: Array) -> tuple[Array, Array]:
        """Gradients of residual and power at x (m, d) from its `columns`, each (m, d)."""
        kernel = self.embedding.kernel
        slopes = kernel.gradient(x, self.points)
        own = np.einsum("iid->id", kernel.gradient(x, x))  # half the gradient of k(x, x)
        solved = solve_triangular(self.factor, columns, lower=True, trans="T")
        residual = self.embedding.kernel_mean_gradient(x)
        residual = residual - np.einsum("ijd,j->id", slopes, self.weights)
        return residual, 2 * (own - np.einsum("ijd,ji->id", slopes, solved))

    def at(self, x: Array) -> tuple[Array, float, float]:
        """Column (rank,), residual and power at one point x (d,); the power of a repeat is zero."""
        columns = self.columns(x[None])
        residual, power = self.residual_and_power(x[None], columns)
        return columns[:, 0], residual[0], 0.0 if self.repeated(x[None])[0] else power[0]

    def add(self, x: Array, column: Array, residual: float, power: float) -> None:
        """Take in the point x (d,), of positive power."""
        root = np.sqrt(power)
        self._points[self.rank] = x
        self._factor[self.rank, : self.rank] = column
        self._factor[self.rank, self.rank] = root
        self._projections[self.rank] = residual / root
        self.rank += 1


def stop_reason(n: int, asked: int, spent: bool) -> str:
    """Why a greedy design ends at n points: the next candidate is redundant, or none is useful."""
    if spent:
        return f"design stops at n = {n} of {asked}: {NOT_DISTINCT}"
    return f"design stops at n = {n} of {asked}: no remaining candidate lowers the MMD"
