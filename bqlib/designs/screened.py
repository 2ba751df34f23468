"""A large fixed pool whose basis is kept in float32, while float64 decides.

A step multiplies the whole basis of a pool by one column of it, and so is bound by how fast memory
is read. In float32 that takes a third of the time. Residual and power then have small errors, of
which a :class:`Screen` keeps account for each candidate. So only few candidates can be the best,
and a :class:`ScreenedPool` knows these in float64.
"""

from __future__ import annotations

import numpy as np
from scipy.linalg import solve_triangular

from bqlib.answers import checked_diagonal, checked_gram
from bqlib.arrays import Array, Indices
from bqlib.designs.interpolant import Interpolant
from bqlib.designs.pools import ROUNDING, FixedPool, scores
from bqlib.designs.sbq import decrement
from bqlib.kernels import Kernel
from bqlib.pivots import PIVOT_TOLERANCE, repeat_floor

SAMPLE = 256  # candidates, evenly spaced, that are known in float64 from the start
AT_FIRST = 8  # others that become known together at first; then twice as many
SHARE = 1 / 3  # of the pool; where more have to be known, all are
LEAST_ERROR = 2.0**-22  # four roundings of float32
SAFETY = 4.0  # times the largest error that was measured


class Screen:
    """Residual and power of a pool by a basis in float32, and by how much they may be wrong.

    Parameters
    ----------
    kernel : Kernel
    pool : ndarray, shape (M, d)
    mean : ndarray, shape (M,)
        Kernel mean at the pool.
    capacity : int
        Most picks.
    blocks : list of slice
        Of the pool, in its order: the candidates for which a step is done at once.

    Notes
    -----
    The basis is that of the kernel scaled to height 1. Its rows at x have the errors L^{-1} eta,
    where L is the factor of the picks. If u is the rounding of float32, eta is about u times the
    size of the basis at x. Where these are independent, the errors of power and residual have the
    variances u^2 q B and u^2 A. Here q is the part of k(x, x) that the picks explain, and A and B
    are sums over the picks t. With w_t, the interpolation weights of a pick from those before, and
    c_t, its residual over the root of its pivot, let g_t = (1 + |w_t|^2) / pivot_t. Then B adds
    g_t v_t(x)^2, and A adds g_t c_t^2 abs(k(x_t, x)), as pairs of close picks of opposite weights
    do harm only near to them. `errors` says how much larger than A and q B the errors are; it is
    measured where float64 knows better.
    """

    def __init__(
        self, kernel: Kernel, pool: Array, mean: Array, capacity: int, blocks: list[slice]
    ):
        self.kernel, self.pool, self.blocks = kernel, pool, blocks
        self.residual = mean.copy()
        heights = np.concatenate([checked_diagonal(kernel, pool[own]) for own in blocks])
        self.power = heights.copy()
        # One number for kernels whose height is the same everywhere: it saves passes.
        self.heights = heights[:1].copy() if np.all(heights == heights[0]) else heights
        self.roots = np.sqrt(self.heights)
        self.inverses = np.divide(
            1.0, self.roots, out=np.zeros_like(self.roots), where=self.roots > 0
        )
        largest = np.abs(self.residual).max() / max(np.sqrt(heights.max()), np.finfo(float).tiny)
        self.unit = float(largest) or 1.0  # of residuals, for those that float32 cannot hold
        # Without power, or known in float64.
        self.done = np.broadcast_to(self.heights == 0, len(pool)).copy()
        self.residual_sum, self.power_sum = np.zeros((2, len(pool)), np.float32)  # A and B
        self.bases = [np.empty((capacity, len(pool[own])), np.float32) for own in self.blocks]
        self.roots_of_picks = np.empty(capacity)
        self.errors = np.full(2, LEAST_ERROR)  # of residual and power

    def _at(self, own: slice | Indices) -> list[Array]:
        """Heights, their roots and the inverses of these at some rows."""
        of_all = self.heights, self.roots, self.inverses
        return [values if len(values) == 1 else values[own] for values in of_all]

    def learn(
        self, rank: int, x: Array, column: Array, residual: float, power: float, weights: Array
    ) -> None:
        """Take in the pick x (d,), with its interpolation weights (rank,) from those before."""
        height, root = checked_diagonal(self.kernel, x[None]), np.sqrt(power)
        least, of_pick = repeat_floor(height), np.sqrt(height[0])
        scaled = weights * self.roots_of_picks[:rank]
        self.roots_of_picks[rank] = of_pick
        growth = (height[0] + scaled @ scaled) / power
        step = residual / root
        to_power = np.float32(growth)
        to_residual = np.float32((step / self.unit) ** 2 * growth * root / of_pick)
        factors = (column / root).astype(np.float32)
        for own, basis in zip(self.blocks, self.bases, strict=True):
            heights, roots, inverses = self._at(own)
            gram = checked_gram(self.kernel, x[None], self.pool[own])[0]
            work = np.abs(gram)
            self.done[own] |= work >= least * repeat_floor(heights)
            np.multiply(gram, inverses / root, out=work)
            narrow = work.astype(np.float32)
            row = np.dot(factors, basis[:rank], out=basis[rank])
            np.subtract(narrow, row, out=row)
            np.abs(narrow, out=narrow)
            narrow *= to_residual
            self.residual_sum[own] += narrow
            np.multiply(row, row, out=narrow)
            narrow *= to_power
            self.power_sum[own] += narrow
            np.multiply(row, roots, out=work)
            self.power[own] -= work * work
            work *= step
            self.residual[own] -= work

    def measure(self, rows: Indices, residual: Array, power: Array) -> None:
        """Learn of the errors from what float64 knows at some rows (m,) that have power."""
        heights, roots, _ = self._at(rows)
        explained = np.maximum(1 - power / heights, 0.0)
        of_residual = np.abs(self.residual[rows] - residual) / roots / self.unit
        of_power = np.abs(self.power[rows] - power) / heights
        variances = self.residual_sum[rows], self.power_sum[rows] * explained
        # What float64 rounds is none of these errors.
        wrong = np.maximum(np.array([of_residual, of_power]) - ROUNDING, 0.0)
        found = wrong / np.maximum(np.sqrt(variances), np.finfo(float).tiny)
        self.errors = np.maximum(self.errors, found.max(axis=1, initial=0.0))

    def contenders(self, least: float, row: int) -> tuple[Indices, Array]:
        """Candidates whose score may be above `least`, that of `row`; and how large it may be.

        Or it may be the same, and they come before that row.
        """
        found, bounds = [np.empty(0, dtype=int)], [np.empty(0)]
        of_residual, of_power = SAFETY * self.errors * (self.unit, -1.0)
        for own in self.blocks:
            power, (heights, roots, inverses) = self.power[own], self._at(own)
            variance = power * (inverses * inverses)
            np.subtract(1.0, variance, out=variance)
            variance = variance.astype(np.float32)
            np.abs(variance, out=variance)  # rounding may be below zero
            variance *= self.power_sum[own]
            lowest = np.sqrt(variance, out=variance) * (of_power * heights)
            lowest += power
            np.maximum(lowest, ROUNDING * heights, out=lowest)  # below these, a score is zero
            highest = np.sqrt(self.residual_sum[own]) * (of_residual * roots)
            highest += np.abs(self.residual[own])
            most = decrement(highest, lowest)
            most[self.done[own]] = -np.inf
            if most.max() < least:
                continue
            rows = np.flatnonzero(most >= least)
            bound, rows = most[rows], rows + own.start
            kept = (bound > least) | (rows < row)
            found.append(rows[kept])
            bounds.append(bound[kept])
        return np.concatenate(found), np.concatenate(bounds)


class ScreenedPool:
    """One pool for all steps of SBQ, in float64 only where it matters.

    Some candidates are known in float64. Each step adds those whose score could be the largest by
    what the screen says. Where they become a third of the pool, as the picks come so close to one
    another that float32 has no digits left, all are known, and there is no screen any more.

    Parameters
    ----------
    interpolant : Interpolant
        It takes in each pick after :meth:`learn`.
    pool : ndarray, shape (M, d)
    capacity : int
        Most picks.
    block : int
        For how many candidates a step is done at once.
    """

    def __init__(self, interpolant: Interpolant, pool: Array, capacity: int, block: int):
        self._interpolant, self._pool, self._capacity = interpolant, pool, capacity
        self._kernel, self._block = interpolant.embedding.kernel, block
        starts = range(0, len(pool), block)
        self._blocks = [slice(start, min(start + block, len(pool))) for start in starts]
        self._mean = np.empty(len(pool))
        for own in self._blocks:
            self._mean[own] = interpolant.embedding.kernel_mean(pool[own])
        self._screen: Screen | None = Screen(self._kernel, pool, self._mean, capacity, self._blocks)
        sample = np.linspace(0, len(pool) - 1, min(SAMPLE, len(pool)), dtype=int)
        self._screen.done[sample] = True
        self._known = [self._in_float64(sample)]
        self._rows: list[Indices | range] = [sample]

    def best(self) -> tuple[FixedPool, int, float] | None:
        """The best candidate as one of a FixedPool, and its score; None if no candidate is of use.

        It is the first of equals.
        """
        if self._screen is not None:
            self._measure(self._screen)
            self._know_contenders(*self._screen.contenders(*self._best_known()[:2]))
        score, _, k, i = self._best_known()
        return (self._known[k], i, score) if score > 0 else None

    def spent(self) -> bool:
        """Whether all candidates are redundant."""
        self._know_all()
        return all((pool.power <= PIVOT_TOLERANCE * pool.heights).all() for pool in self._known)

    def learn(self, x: Array, column: Array, residual: float, power: float) -> None:
        """Take in the pick x (d,)."""
        rank = self._interpolant.rank
        for pool in self._known:
            pool.learn(rank, x, column, residual, power)
        if self._screen is not None:
            weights = solve_triangular(self._interpolant.factor, column, lower=True, trans="T")
            self._screen.learn(rank, x, column, residual, power, weights)

    def _measure(self, screen: Screen) -> None:
        """Have the screen learn of its errors, at the first and the latest that are known."""
        for k in {0, len(self._known) - 1}:
            pool, rows = self._known[k], np.asarray(self._rows[k])
            live = pool.power > pool.floors
            screen.measure(rows[live], pool.residual[live], pool.power[live])

    def _know_contenders(self, rows: Indices, most: Array) -> None:
        """Know those of some rows whose scores, of at most `most`, may be the largest."""
        order = np.argsort(-most, kind="stable")
        rows, most, count = rows[order], most[order], AT_FIRST
        # No name here for the screen, as it must be gone before all become known.
        while len(rows) and self._screen is not None:
            self._know(rows[:count])
            least, row, *_ = self._best_known()
            rows, most = rows[count:], most[count:]
            left = (most > least) | ((most == least) & (rows < row))
            rows, most, count = rows[left], most[left], min(2 * count, self._block)

    def _best_known(self) -> tuple[float, int, int, int]:
        """Score and row of the best that is known, and its pool and index there."""
        found = []
        for k, (pool, rows) in enumerate(zip(self._known, self._rows, strict=True)):
            score = scores(pool, decrement)
            i = min(np.flatnonzero(score == score.max()), key=rows.__getitem__)
            found.append((score[i], int(rows[i]), k, int(i)))
        return max(found, key=lambda choice: (choice[0], -choice[1]))

    def _know(self, rows: Indices) -> None:
        if sum(map(len, self._rows)) + len(rows) > SHARE * len(self._pool):
            self._know_all()
        if self._screen is None:
            return
        self._screen.done[rows] = True
        pool = self._in_float64(rows)
        if len(self._rows[-1]) + len(rows) > self._block:
            self._known.append(pool)
            self._rows.append(rows)
        else:
            self._known[-1].join(pool, self._interpolant.rank)
            self._rows[-1] = np.concatenate([self._rows[-1], rows])

    def _know_all(self) -> None:
        if self._screen is None:
            return
        spent = self._screen.done
        for pool, rows in zip(self._known, self._rows, strict=True):
            spent[rows] = pool.power <= pool.floors
        del pool
        self._screen = None  # first, as not all may fit into memory together
        self._known.clear()
        for own in self._blocks:
            pool = self._in_float64(own)
            pool.power[spent[own]] = 0.0
            self._known.append(pool)
        self._rows = [range(own.start, own.stop) for own in self._blocks]

    def _in_float64(self, rows: slice | Indices) -> FixedPool:
        found = FixedPool(self._kernel, self._pool[rows], self._mean[rows], self._capacity)
        found.catch_up(self._interpolant)
        return found
