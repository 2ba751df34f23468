"""Greedy designs by the Newton basis: one triangular row for each point picked.

The residual of a point x is z(x) minus its interpolant from the points picked so far; its power is
the prior variance of f(x) that is left once f is known at them. A greedy design is a rule that
picks a candidate by the two.
"""

import os

import numpy as np
from scipy.linalg import solve_triangular

from bqlib.checks import checked_number
from bqlib.designs.design import Design
from bqlib.weights import PIVOT_TOLERANCE, bq

ROUNDING = 16 * np.finfo(float).eps  # of the largest k(x, x): the error of a power
BLOCK = 2048  # candidates that are looked at together where the pool comes in blocks


def newton_greedy(request, choose, refine=None, memory=None):
    """Pick points one by one from the candidates.

    The design ends where the candidate that the rule chooses has a power of at most 1e-12 of the
    largest k(x, x): float64 cannot tell it from the points picked, and what the rule compares has
    become noise. It also ends where the rule finds none that brings anything.

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
        Most bytes to use. Where the basis of the whole pool takes more, it is worked out anew at
        each step, block by block. Left out: all that the machine has.

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
    for x in initial:
        column, residual, power = interpolant.at(x)
        if power > PIVOT_TOLERANCE * candidates.height:  # else it repeats an earlier one
            candidates.learn(interpolant, x, column, residual, power)
            interpolant.add(x, column, residual, power)
    for step in range(len(initial), n):
        candidates.look(interpolant)
        # What is left at a point that repeats a picked one is rounding: no rule may compare it.
        repeats = candidates.power <= ROUNDING * candidates.height
        candidates.residual[repeats] = candidates.power[repeats] = 0.0
        i = choose(candidates.residual, candidates.power)
        power = candidates.power.max() if i is None else candidates.power[i]
        spent = power <= PIVOT_TOLERANCE * candidates.height
        if i is None or spent:
            return Design(embedding, points[:step], bq, stop_reason(step, spent))
        if refine is None:
            x, residual = candidates.pool[i], candidates.residual[i]
            column = candidates.column(interpolant, i)
        else:
            x = refine(interpolant, candidates.pool, candidates.residual, candidates.power)
            column, residual, power = interpolant.at(x)
        points[step] = x
        candidates.learn(interpolant, x, column, residual, power)
        interpolant.add(x, column, residual, power)
    return Design(embedding, points, bq)


def best(score):
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

    def __init__(self, embedding, capacity):
        self.embedding = embedding
        self.rank = 0
        self._points = np.empty((capacity, embedding.target.dim))
        self._factor = np.zeros((capacity, capacity))
        self._projections = np.empty(capacity)

    @property
    def points(self):
        return self._points[: self.rank]

    @property
    def factor(self):
        return self._factor[: self.rank, : self.rank]

    @property
    def projections(self):
        return self._projections[: self.rank]

    @property
    def weights(self):
        """K^{-1} z at the points, shape (rank,)."""
        return solve_triangular(self.factor, self.projections, lower=True, trans="T")

    def columns(self, x):
        """Newton basis at x (m, d), shape (rank, m): L^{-1} k(points, x)."""
        return solve_triangular(self.factor, self.embedding.kernel(self.points, x), lower=True)

    def residual_and_power(self, x, columns):
        """Residual and power at x (m, d) from its `columns`, each of shape (m,)."""
        residual = self.embedding.kernel_mean(x) - self.projections @ columns
        return residual, self.embedding.kernel.diagonal(x) - np.square(columns).sum(axis=0)

    def gradients(self, x, columns):
        """Gradients of residual and power at x (m, d) from its `columns`, each (m, d)."""
        kernel = self.embedding.kernel
        slopes = kernel.gradient(x, self.points)
        own = np.einsum("iid->id", kernel.gradient(x, x))  # half the gradient of k(x, x)
        solved = solve_triangular(self.factor, columns, lower=True, trans="T")
        residual = self.embedding.kernel_mean_gradient(x)
        residual = residual - np.einsum("ijd,j->id", slopes, self.weights)
        return residual, 2 * (own - np.einsum("ijd,ji->id", slopes, solved))

    def at(self, x):
        """Column (rank,), residual and power at one point x (d,)."""
        columns = self.columns(x[None])
        residual, power = self.residual_and_power(x[None], columns)
        return columns[:, 0], residual[0], power[0]

    def add(self, x, column, residual, power):
        """Take in the point x (d,), of positive power."""
        root = np.sqrt(power)
        self._points[self.rank] = x
        self._factor[self.rank, : self.rank] = column
        self._factor[self.rank, self.rank] = root
        self._projections[self.rank] = residual / root
        self.rank += 1


class _FixedPool:
    """One pool for all steps: its residual, power and basis are carried on from step to step."""

    def __init__(self, request):
        embedding, self.pool = request.embedding, request.pool
        self.kernel = embedding.kernel
        # Copies, as a kernel may hand out its own arrays or the pool's.
        self.residual = np.array(embedding.kernel_mean(self.pool))
        self.power = np.array(self.kernel.diagonal(self.pool))
        self.height = max(self.power.max(), self.kernel.diagonal(request.initial).max(initial=0.0))
        self.basis = np.empty((request.n, len(self.pool)))
        self._product = np.empty(len(self.pool))

    def look(self, interpolant):
        pass

    def learn(self, interpolant, x, column, residual, power):
        root, product = np.sqrt(power), self._product
        row = self.basis[interpolant.rank]
        np.dot(column, self.basis[: interpolant.rank], out=product)
        np.subtract(self.kernel(x[None], self.pool)[0], product, out=row)
        row /= root
        self.residual -= np.multiply(row, residual / root, out=product)
        self.power -= np.multiply(row, row, out=product)

    def column(self, interpolant, i):
        return self.basis[: interpolant.rank, i].copy()


class _PoolInBlocks:
    """Residual and power worked out anew at each step, for a fresh pool or for the fixed one."""

    def __init__(self, request):
        self.request, self.pool = request, request.pool
        diagonal = request.embedding.kernel.diagonal
        self.height = diagonal(request.initial).max(initial=0.0)
        if self.pool is not None:
            self.height = max(self.height, diagonal(self.pool).max())

    def look(self, interpolant):
        if self.request.pool is None:
            self.pool = self.request.fresh_pool()
            diagonal = interpolant.embedding.kernel.diagonal(self.pool)
            self.height = max(self.height, diagonal.max())
        self.residual, self.power = np.empty((2, len(self.pool)))
        for start in range(0, len(self.pool), BLOCK):
            own = slice(start, start + BLOCK)
            block = self.pool[own]
            found = interpolant.residual_and_power(block, interpolant.columns(block))
            self.residual[own], self.power[own] = found

    def learn(self, interpolant, x, column, residual, power):
        pass

    def column(self, interpolant, i):
        return interpolant.columns(self.pool[i : i + 1])[:, 0]


def _candidates(request, memory):
    """The candidates of a request, as the memory allows."""
    memory = _physical_memory() if memory is None else checked_number(memory, "memory")
    n, dim = request.n, request.embedding.target.dim
    size = request.candidates.size if request.pool is None else len(request.pool)
    least = 8 * (size * (dim + 6) + min(size, BLOCK) * (3 * n + dim) + 2 * n**2)
    if request.pool is not None and least + 8 * size * n <= memory:
        return _FixedPool(request)
    if least <= memory:
        return _PoolInBlocks(request)
    raise MemoryError(
        f"{size} candidates and n = {n} need {least / 1e9:.3g} GB even in blocks, and there are "
        f"{memory / 1e9:.3g} GB; take fewer candidates or points, or more memory"
    )


def _physical_memory():
    """Bytes of memory of this machine, infinite where it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return np.inf


def stop_reason(n, spent):
    """Why a greedy design ends at n points: the next candidate is spent, or none is of use."""
    if spent:
        return (
            f"design stops at n = {n}: the next pivot is below {PIVOT_TOLERANCE:g} of the kernel's "
            "height"
        )
    return f"design stops at n = {n}: no further candidate lowers the MMD"
