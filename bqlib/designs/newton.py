"""Greedy designs by the Newton basis: one triangular row for each point picked.

The residual of a point x is z(x) minus its interpolant from the points picked so far; its power is
the prior variance of f(x) that is left once f is known at them. A greedy design is a rule that
picks a candidate by the two. Candidates that repeat a point, exactly or nearly, are left out: see
:mod:`bqlib.weights`.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np
from scipy.linalg import solve_triangular

from bqlib.arrays import Array, Mask
from bqlib.checks import checked_number
from bqlib.designs.design import Design, Request
from bqlib.embeddings import Embedding
from bqlib.weights import PIVOT_TOLERANCE, bq, repeat_floor, repeats

ROUNDING = 16 * np.finfo(float).eps  # of k(x, x): the error of a power
BLOCK = 2048  # candidates that are looked at together where the pool comes in blocks


def newton_greedy(
    request: Request,
    choose: Callable[[Array, Array], int | None],
    refine: Callable[[Interpolant, Array, Array, Array], Array] | None = None,
    memory: float | None = None,
) -> Design:
    """Pick points one by one from the candidates.

    The design ends where the candidate that the rule chooses has a power of at most 1e-12 of its
    k(x, x): float64 cannot tell it from the points picked, and what the rule compares has become
    noise. It also ends where the rule finds none that brings anything.

    Parameters
    ----------
    request : Request
    choose : callable
        (residual (M,), power (M,)) to the index of a candidate, or None for none. Both are zero
        where the power is no more than rounding.
    refine : callable, optional
        (interpolant, pool (M, d), residual, power) to a point (d,) of positive power that is
        picked in place of the chosen candidate.
    memory : float, optional
        Most bytes to use, beside those of drawing candidates. Where the basis of the whole pool
        takes more, it is worked out anew at each step, block by block. Left out: all that the
        machine has.

    Returns
    -------
    Design
        With the weight rule :func:`bqlib.weights.bq`.

    Raises
    ------
    MemoryError
        If `memory` is too little even for one block.

    Notes
    -----
    Fixed pool: O(M n) time a step, O(M n) memory. Fresh pools, and a pool in blocks: O(M n^2) time
    a step, O(M + n^2) memory. Source: Mueller and Schaback, "A Newton basis for kernel spaces",
    2009.
    """
    embedding, n, initial = request.embedding, request.n, request.initial
    candidates = _candidates(request, memory)
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
        # What is left at a point that repeats a picked one is rounding: no rule may compare it.
        nothing = candidates.power <= candidates.floors
        candidates.residual[nothing] = candidates.power[nothing] = 0.0
        i = choose(candidates.residual, candidates.power)
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
        points[step] = x
        candidates.learn(interpolant.rank, x, column, residual, power)
        interpolant.add(x, column, residual, power)
    return Design(embedding, points, bq)


def best(score: Array) -> int | None:
    """Index of the largest score, or None where none is positive."""
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
        """Column (rank,), residual and power at one point x (d,); no power where x is a repeat."""
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


class FixedPool:
    """One pool for all steps: its residual, power and basis are carried on from step to step.

    Its points learn of each pick, the `rank`-th from 0, by what an Interpolant knows of it.
    """

    def __init__(self, request: Request):
        assert request.pool is not None  # a fresh one is not fixed
        self.pool, self.kernel = request.pool, request.embedding.kernel
        # Copies, as a kernel may hand out its own arrays or the pool's.
        self.residual = np.array(request.embedding.kernel_mean(self.pool))
        self.heights = np.array(self.kernel.diagonal(self.pool))
        self.floors = ROUNDING * self.heights
        self.power = self.heights.copy()
        self.basis = np.empty((request.n, len(self.pool)))
        self._repeat_floor = repeat_floor(self.heights)
        # Room for what a step works out: new arrays would cost it twice the time in a large pool.
        self._product, self._size = np.empty((2, len(self.pool)))

    def look(self, interpolant: Interpolant) -> None:
        pass

    def learn(self, rank: int, x: Array, column: Array, residual: float, power: float) -> None:
        root, product = np.sqrt(power), self._product
        row = self.basis[rank]
        gram = self.kernel(x[None], self.pool)[0]
        np.dot(column, self.basis[:rank], out=product)
        np.subtract(gram, product, out=row)
        row /= root
        self.residual -= np.multiply(row, residual / root, out=product)
        self.power -= np.multiply(row, row, out=product)
        least = repeat_floor(self.kernel.diagonal(x[None]))
        np.multiply(least, self._repeat_floor, out=product)
        # From here on it only falls, so that repeats stay without power.
        self.power[np.abs(gram, out=self._size) >= product] = 0.0

    def column(self, interpolant: Interpolant, i: int) -> Array:
        return self.basis[: interpolant.rank, i].copy()


class _PoolInBlocks:
    """Residual and power worked out anew at each step, for a fresh pool or for the fixed one."""

    def __init__(self, request: Request):
        self.request = request
        self.pool = request.initial if request.pool is None else request.pool
        self._measure()

    def _measure(self) -> None:
        self.heights = self.request.embedding.kernel.diagonal(self.pool)
        self.floors = ROUNDING * self.heights

    def look(self, interpolant: Interpolant) -> None:
        if self.request.pool is None:
            self.pool = self.request.fresh_pool()
            self._measure()
        self.residual, self.power = np.empty((2, len(self.pool)))
        for start in range(0, len(self.pool), BLOCK):
            own = slice(start, start + BLOCK)
            block = self.pool[own]
            gram = interpolant.gram(block)
            found = interpolant.residual_and_power(block, interpolant.columns(block, gram))
            self.residual[own], self.power[own] = found
            self.power[own][interpolant.repeated(block, gram)] = 0.0

    def learn(self, rank: int, x: Array, column: Array, residual: float, power: float) -> None:
        pass

    def column(self, interpolant: Interpolant, i: int) -> Array:
        return interpolant.columns(self.pool[i : i + 1])[:, 0]


def _candidates(request: Request, memory: float | None) -> FixedPool | _PoolInBlocks:
    """The candidates of a request, as the memory allows."""
    memory = _physical_memory() if memory is None else checked_number(memory, "memory")
    n, dim = request.n, request.embedding.target.dim
    size = request.candidates.size if request.pool is None else len(request.pool)
    least = 8 * (size * (dim + 10) + min(size, BLOCK) * (3 * n + dim) + 2 * n**2)
    if request.pool is not None and least + 8 * size * n <= memory:
        return FixedPool(request)
    if least <= memory:
        return _PoolInBlocks(request)
    raise MemoryError(
        f"{size} candidates and n = {n} need {least / 1e9:.3g} GB even in blocks, and there are "
        f"{memory / 1e9:.3g} GB; take fewer candidates or points, or more memory"
    )


def _physical_memory() -> float:
    """Bytes of memory of this machine, infinite where it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return np.inf


def stop_reason(n: int, asked: int, spent: bool) -> str:
    """Why a greedy design ends at n points: the next candidate is spent, or none is of use."""
    if spent:
        return (
            f"design stops at n = {n} of {asked}: the next pivot is below {PIVOT_TOLERANCE:g} of "
            "the kernel's height"
        )
    return f"design stops at n = {n} of {asked}: no further candidate lowers the MMD"
