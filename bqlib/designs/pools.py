"""The candidates of a greedy design: their residual and power from step to step.

Residual and power are those of :mod:`bqlib.designs.interpolant`, from the points picked so far.
"""

from __future__ import annotations

import os
from collections.abc import Callable

import numpy as np

from bqlib.answers import checked_diagonal, checked_gram
from bqlib.arrays import Array, Indices
from bqlib.checks import checked_number
from bqlib.designs.design import Request
from bqlib.designs.interpolant import Interpolant
from bqlib.kernels import Kernel
from bqlib.pivots import PIVOT_TOLERANCE, repeat_floor

Score = Callable[[Array, Array], Array]  # of residual (M,) and power (M,), to the score (M,)
ROUNDING = 16 * np.finfo(float).eps  # of k(x, x): the error of a power
BLOCK = 2048  # candidates that are looked at together where the pool comes in blocks
AHEAD = 8  # columns that are multiplied together: that takes the time of some two
LEAST_FEW, MOST_FEW = 256, 2048  # candidates among which the next picks are foreseen
SHARE = 0.02  # of the pool, between these two
LEAST_BYTES = 16e6  # of a basis for it; a smaller one is read from the processor's cache
LEAST_USES = 2  # of what was foreseen, for it to have been worth its time
PAUSE = 4  # picks read one by one where it was not


def scores(candidates: FixedPool | PoolInBlocks, score: Score) -> Array:
    """Score of each candidate (M,)."""
    # What is left at a point that repeats a picked one is rounding: no rule may compare it.
    nothing = candidates.power <= candidates.floors
    candidates.residual[nothing] = candidates.power[nothing] = 0.0
    return score(candidates.residual, candidates.power)


class FixedPool:
    """One pool for all steps: its residual, power and basis are updated from step to step.

    Its points learn of each pick, the `rank`-th from 0, by what an Interpolant knows of it.

    Parameters
    ----------
    kernel : bqlib.kernels.Kernel
    pool : ndarray, shape (M, d)
    residual : ndarray, shape (M,)
        Kernel mean at the pool.
    capacity : int
        Most picks.
    score : callable, optional
        By which the pool is ranked, as in :func:`bqlib.designs.newton.newton_greedy`: then products
        for the next picks are foreseen.
    """

    def __init__(
        self,
        kernel: Kernel,
        pool: Array,
        residual: Array,
        capacity: int,
        score: Score | None = None,
    ):
        self.pool, self.kernel = pool, kernel
        # Copies, as a kernel may hand out its own arrays or the pool's.
        self.residual = np.array(residual)
        self.heights = np.array(checked_diagonal(kernel, pool))
        self.floors = ROUNDING * self.heights
        self.power = self.heights.copy()
        self.basis = np.empty((capacity, len(pool)))
        self._room = self.basis  # for more candidates than there are
        self._foresight = None if score is None else Foresight(self, score)
        self._prepare()

    def _prepare(self) -> None:
        floor = repeat_floor(self.heights)
        # One number for kernels whose height is the same everywhere: it saves a pass a step.
        self._repeat_floor = floor[:1] if np.all(floor == floor[:1]) else floor
        # Room for what a step works out: new arrays would cost it twice the time in a large pool.
        self._product, self._size = np.empty((2, len(self.pool)))

    def look(self, interpolant: Interpolant) -> None:
        pass

    def learn(
        self,
        rank: int,
        x: Array,
        column: Array,
        residual: float,
        power: float,
        i: int | None = None,
    ) -> None:
        """Take in the pick x (d,), the candidate i or a point off the pool."""
        root, product = np.sqrt(power), self._product
        row = self.basis[rank]
        gram = checked_gram(self.kernel, x[None], self.pool)[0]
        if self._foresight is None or i is None:
            np.dot(column, self.basis[:rank], out=product)
        else:
            self._foresight.multiply(rank, i, column, product)
        np.subtract(gram, product, out=row)
        row /= root
        self.residual -= np.multiply(row, residual / root, out=product)
        self.power -= np.multiply(row, row, out=product)
        least = repeat_floor(checked_diagonal(self.kernel, x[None]))
        # From here on it only falls, so that repeats stay without power.
        self.power[np.abs(gram, out=self._size) >= least * self._repeat_floor] = 0.0

    def column(self, interpolant: Interpolant, i: int) -> Array:
        return self.basis[: interpolant.rank, i].copy()

    def catch_up(self, interpolant: Interpolant) -> None:
        """Take in all picks of an interpolant, of which these candidates repeat none."""
        for start in range(0, len(self.pool), BLOCK):
            own = slice(start, start + BLOCK)
            columns = interpolant.columns(self.pool[own])
            self.basis[: interpolant.rank, own] = columns
            self.residual[own] -= interpolant.projections @ columns
            self.power[own] -= np.square(columns, out=columns).sum(axis=0)

    def join(self, other: FixedPool, rank: int) -> None:
        """Take in the candidates of another pool, which has the same `rank` picks."""
        size, end = len(self.pool), len(self.pool) + len(other.pool)
        if end > self._room.shape[1]:
            room = np.empty((len(self._room), end + size // 2))
            room[:rank, :size] = self.basis[:rank]
            self._room = room
        self.basis = self._room[:, :end]
        self.basis[:rank, size:] = other.basis[:rank]
        for name in ("pool", "residual", "power", "heights", "floors"):
            setattr(self, name, np.concatenate([getattr(self, name), getattr(other, name)]))
        self._prepare()

    def part(self, few: Indices, rank: int, more: int) -> FixedPool:
        """Some of the candidates after `rank` picks, with room for more."""
        part = FixedPool(self.kernel, self.pool[few], self.residual[few], rank + more)
        part.power[:] = self.power[few]
        np.take(self.basis[:rank], few, axis=1, out=part.basis[:rank], mode="clip")
        return part


class PoolInBlocks:
    """Residual and power, recomputed at each step, for fresh pools or for a fixed one in blocks."""

    def __init__(self, request: Request):
        self.request = request
        self.pool = request.initial if request.pool is None else request.pool
        self._measure()

    def _measure(self) -> None:
        self.heights = checked_diagonal(self.request.embedding.kernel, self.pool)
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

    def learn(self, *pick: object) -> None:
        pass

    def column(self, interpolant: Interpolant, i: int) -> Array:
        return interpolant.columns(self.pool[i : i + 1])[:, 0]


class Foresight:
    """The products of a pool's basis with the columns of its next picks.

    A step multiplies the whole basis by one column of it, that of its pick, and so is bound by how
    fast memory is read. Several columns together read it once. The picks to come are those that
    the same rule makes among the few candidates that rank highest now; one that it does not make
    after all has cost time, and changes nothing.
    """

    def __init__(self, pool: FixedPool, score: Score):
        self._pool, self._score = pool, score
        self._few = few_of(len(pool.pool))
        self._products = np.empty((AHEAD, len(pool.pool)))
        self._foreseen: dict[int, tuple[int, Array]] = {}  # rank and product of a candidate
        self._uses, self._missed = LEAST_USES, 0

    def multiply(self, rank: int, i: int, column: Array, out: Array) -> None:
        """Put `column` (rank,), that of the pick i, times the basis into `out` (M,)."""
        basis = self._pool.basis[:rank]
        if i in self._foreseen:
            self._uses += 1
            known, product = self._foreseen.pop(i)
            np.dot(column[known:], basis[known:], out=out)
            out += product
            return
        self._missed += 1
        pausing = self._uses < LEAST_USES and self._missed <= PAUSE
        if pausing or basis.nbytes < LEAST_BYTES:
            np.dot(column, basis, out=out)
            return
        picks = self._picks_from(rank, i)
        products = self._products[: len(picks)]
        np.dot(np.ascontiguousarray(basis[:, picks].T), basis, out=products)
        out[:] = products[0]
        self._foreseen = {j: (rank, products[k]) for k, j in enumerate(picks)}
        self._uses = self._missed = 0

    def _picks_from(self, rank: int, i: int) -> list[int]:
        """The pick i and those that would follow it among the candidates of the highest scores."""
        score = self._score(self._pool.residual, self._pool.power)
        few = np.union1d(np.argpartition(score, -self._few)[-self._few :], i)
        part = self._pool.part(few, rank, AHEAD)
        picks, j = [i], int(np.searchsorted(few, i))
        while len(picks) < AHEAD:
            column = part.basis[:rank, j].copy()
            part.learn(rank, part.pool[j], column, part.residual[j], part.power[j])
            rank += 1
            j = int(np.argmax(scores(part, self._score)))
            if part.power[j] <= PIVOT_TOLERANCE * part.heights[j]:
                break
            picks.append(int(few[j]))
        return picks


def few_of(size: int) -> int:
    """How many of the candidates are those among which the next picks are foreseen."""
    return min(size, MOST_FEW, max(LEAST_FEW, int(SHARE * size)))


def candidates_of(
    request: Request, memory: float | None, score: Score | None
) -> FixedPool | PoolInBlocks:
    """The candidates of a request, as the memory allows."""
    embedding, pool = request.embedding, request.pool
    memory = _physical_memory() if memory is None else checked_number(memory, "memory")
    n, dim = request.n, embedding.target.dim
    size = request.candidates.size if pool is None else len(pool)
    least = 8 * (size * (dim + 10) + min(size, BLOCK) * (3 * n + dim) + 2 * n**2)
    if pool is not None and least + 8 * (size + few_of(size)) * (n + AHEAD) <= memory:
        return FixedPool(embedding.kernel, pool, embedding.kernel_mean(pool), n, score)
    if least <= memory:
        return PoolInBlocks(request)
    raise MemoryError(
        f"{size} candidates and n = {n} need {least / 1e9:.3g} GB even in blocks, but only "
        f"{memory / 1e9:.3g} GB are available: use fewer candidates, fewer points or more memory"
    )


def _physical_memory() -> float:
    """Bytes of memory of this machine, infinite where it does not say."""
    try:
        return os.sysconf("SC_PHYS_PAGES") * os.sysconf("SC_PAGE_SIZE")
    except (AttributeError, OSError, ValueError):
        return np.inf
