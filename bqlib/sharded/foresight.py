"""The picks to come of a design by Newton basis, as far as some candidates can tell.

A step multiplies the whole basis by one column of it, that of its pick, and so is bound by how
fast memory is read. Several columns together read it once: those of the picks to come, which a few
candidates foretell. Each group of blocks plays ahead among its own best candidates. What it would
pick, it offers; and what would be picked of all that is offered, is foreseen. A pick that does not
come after all has cost time, and changes nothing.
"""

from dataclasses import dataclass

import numpy as np

from bqlib.designs.newton import best
from bqlib.designs.pools import FixedPool, scores
from bqlib.designs.sbq import decrement
from bqlib.pivots import PIVOT_TOLERANCE

AHEAD = 8  # columns that are multiplied together: that takes the time of two or three
OFFERS = 32  # candidates that are compared for each of these
HOT = 0.06  # of the candidates of a block, among which its group plays ahead
SAMPLED = 8  # each so many candidates of a block says which scores are high
LEAST_BYTES = 4e8  # of the basis of the whole pool; a smaller one is read faster than it is asked
LEAST_USES = 2  # of what was foreseen, for it to have been worth its time
PAUSE = 4  # picks that are learned one by one where it was not


@dataclass(frozen=True)
class Choice:
    """A candidate that a design by Newton basis may pick, and all that follows from picking it."""

    score: float
    x: np.ndarray
    column: np.ndarray
    residual: float
    power: float
    height: float


@dataclass(frozen=True)
class Lesson:
    """A pick that a part shall learn.

    Its product with the basis is at `place` of the products foreseen, or at none of them. `ahead`
    are the columns (m, rank) to multiply first, if any.
    """

    pick: Choice
    place: int | None = None
    ahead: np.ndarray | None = None


@dataclass(frozen=True)
class Few:
    """Some candidates: points (m, d), residual (m,), power (m,) and basis (rank, m)."""

    pool: np.ndarray
    residual: np.ndarray
    power: np.ndarray
    basis: np.ndarray

    @classmethod
    def joined(cls, parts):
        """All candidates of several."""
        join = np.concatenate
        return cls(
            join([part.pool for part in parts]),
            join([part.residual for part in parts]),
            join([part.power for part in parts]),
            join([part.basis for part in parts], axis=1),
        )

    def __getitem__(self, few):
        return Few(self.pool[few], self.residual[few], self.power[few], self.basis[:, few])

    def sequence(self, kernel, pick, more):
        """What would be picked after `pick` from these alone: scores then, and indices."""
        rank = len(self.basis)
        pool = FixedPool(kernel, self.pool, self.residual, rank + more)
        pool.power[:], pool.basis[:rank] = self.power, self.basis
        score, indices = [], []
        for known in range(rank, rank + more):
            pool.learn(known, pick.x, pick.column, pick.residual, pick.power)
            values = scores(pool, decrement)
            i = best(values)
            if i is None or pool.power[i] <= PIVOT_TOLERANCE * pool.heights[i]:
                break
            column = pool.basis[: known + 1, i].copy()
            pick = Choice(
                values[i], pool.pool[i], column, pool.residual[i], pool.power[i], pool.heights[i]
            )
            score.append(values[i])
            indices.append(i)
        return np.array(score), np.array(indices, dtype=int)


def hottest(score):
    """Indices of about the candidates of the highest scores (M,), in their order."""
    sample = score[::SAMPLED]  # says well enough from where on
    few = max(1, int(HOT * len(sample)))
    return np.flatnonzero(score >= np.partition(sample, -few)[-few])


@dataclass(frozen=True)
class Offers:
    """What groups of blocks would pick: candidates (m), in which step (m,), at which score (m,)."""

    few: Few
    steps: np.ndarray
    scores: np.ndarray

    @classmethod
    def best_of(cls, several):
        """The best of each step, as equal ones in the order of the pool."""
        few = Few.joined([offers.few for offers in several])
        steps, scores = (
            np.concatenate([getattr(offers, name) for offers in several])
            for name in ("steps", "scores")
        )
        order = np.lexsort((-scores, steps))
        place = np.arange(len(order)) - np.searchsorted(steps[order], steps[order])
        kept = order[place < OFFERS]
        return cls(few[kept], steps[kept], scores[kept])


def offers_after(kernel, few, pick, more):
    """What would be picked in the `more` steps after `pick` from these few alone."""
    scores, indices = few.sequence(kernel, pick, more)
    return Offers(few[indices], np.arange(len(indices)), scores)


class Foresight:
    """Which products the parts of the pool have already.

    `ask` puts a question to all of them. The design learns `last` picks at most.
    """

    def __init__(self, kernel, size, last, ask):
        self._kernel, self._size, self._last, self._ask = kernel, size, last, ask
        self._places = {}  # of the points foreseen
        self._uses, self._missed = LEAST_USES, 0

    def lesson(self, pick):
        """What the parts are told of a pick."""
        rank = len(pick.column)
        place = self._places.pop(pick.x.tobytes(), None)
        if place is not None:
            self._uses += 1
            return Lesson(pick, place)
        self._missed += 1
        pausing = self._uses < LEAST_USES and self._missed <= PAUSE
        more = min(AHEAD, self._last - rank) - 1
        if pausing or more < 1 or 8 * self._size * rank < LEAST_BYTES:
            return Lesson(pick)
        few = Offers.best_of(self._ask("offers", pick, more)).few
        _, following = few.sequence(self._kernel, pick, more)
        points = [pick.x, *few.pool[following]]
        self._places = {points[i].tobytes(): i for i in range(1, len(points))}
        self._uses = self._missed = 0
        return Lesson(pick, 0, np.array([pick.column, *few.basis.T[following]]))
