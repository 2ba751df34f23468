"""One worker's part of a pool, with everything that is carried from step to step."""

from dataclasses import dataclass
from types import SimpleNamespace

import numpy as np
from threadpoolctl import ThreadpoolController

from bqlib.answers import checked_diagonal, checked_gram
from bqlib.designs.newton import best
from bqlib.designs.pools import ROUNDING
from bqlib.designs.sbq import decrement
from bqlib.embeddings import embed
from bqlib.pivots import PIVOT_TOLERANCE, repeat_floor
from bqlib.sharded.drawing import BLOCK, draw_block
from bqlib.sharded.foresight import AHEAD, Choice, Few, Offers, hottest, offers_after

GROUP = 4  # blocks that one part has together; so results do not depend on the number of parts
# Of k(x, x): a candidate that repeats a pick keeps at most 1e-8 of it, so larger ones are none.
REPEAT_POWER = 1e-7


@dataclass(frozen=True)
class Part:
    """What a worker needs to make its part of the pool."""

    target: object
    kernel: object
    candidates: object
    seed: int
    n: int


class _Shard:
    """One worker's part of the pool, in groups of blocks; lives there as a Dask actor."""

    def __init__(self, part, groups):
        self._threads = ThreadpoolController()
        self.embedding = embed(part.kernel, part.target)
        self.part = part
        self.groups = [[self.block(self._draw(b)) for b in blocks] for blocks in groups]
        self.blocks = [block for group in self.groups for block in group]

    def _draw(self, block):
        return draw_block(self.part.target, self.part.candidates, self.part.seed, block)

    def answer(self, lessons, question, *arguments):
        """Learn `lessons`, then answer."""
        with self._threads.limit(limits=1):
            for lesson in lessons:
                self.learn(lesson)
            return getattr(self, question)(*arguments)


class HerdingShard(_Shard):
    def __init__(self, part, groups):
        super().__init__(part, groups)
        self.known = 0

    def block(self, pool):
        return SimpleNamespace(
            pool=pool,
            mean=self.embedding.kernel_mean(pool),
            diagonal=checked_diagonal(self.embedding.kernel, pool),
            visits=np.zeros(len(pool)),
        )

    def learn(self, lesson):
        x = lesson.pick.x[None]
        for block in self.blocks:
            block.visits += checked_gram(self.embedding.kernel, x, block.pool)[0]
        self.known += 1

    def best(self):
        """The best candidate, the first of equals."""
        return max(map(self._best_of_block, self.blocks), key=lambda choice: choice.score)

    def _best_of_block(self, block):
        score = block.mean - (block.visits + 0.5 * block.diagonal) / (self.known + 1)
        i = np.argmax(score)
        return SimpleNamespace(score=score[i], x=block.pool[i])


class NewtonShard(_Shard):
    def __init__(self, part, groups):
        self._work = np.empty(BLOCK)
        super().__init__(part, groups)
        self._bests = [block.best() for block in self.blocks]

    def block(self, pool):
        return _Block(self.embedding, pool, self.part.n)

    def learn(self, lesson):
        self._bests = []
        for block in self.blocks:
            if lesson.ahead is not None:
                block.multiply(lesson.ahead)
            block.learn(lesson.pick, lesson.place, self._work[: len(block.pool)])
            self._bests.append(block.best())  # while the block is in the cache

    def best(self):
        """The best candidate, the first of equals; None where none is of use."""
        scores = np.array([score for score, _ in self._bests])
        block = best(scores)
        return None if block is None else self.blocks[block].choice(*self._bests[block])

    def spent(self):
        """Whether all candidates are."""
        blocks = self.blocks
        return all((block.power <= PIVOT_TOLERANCE * block.heights).all() for block in blocks)

    def offers(self, pick, more):
        """What each group of blocks would pick after `pick`, step by step."""
        few = (Few.joined([block.hottest() for block in group]) for group in self.groups)
        kernel = self.embedding.kernel
        return Offers.best_of([offers_after(kernel, of_group, pick, more) for of_group in few])


class _Block:
    """A block of the pool: its residual, power and basis."""

    def __init__(self, embedding, pool, n):
        self.kernel, self.pool, self.rank = embedding.kernel, pool, 0
        # Copies, as a kernel may hand out its own arrays.
        self.residual = np.array(embedding.kernel_mean(pool))
        self.heights = np.array(checked_diagonal(self.kernel, pool))
        self.power = self.heights.copy()
        self.basis = np.empty((n, len(pool)))
        self._products, self._known = np.empty((AHEAD, len(pool))), 0
        low = REPEAT_POWER * self.heights
        # One number for kernels whose height is the same everywhere: it saves a pass a step.
        self._low = low[:1] if np.all(low == low[:1]) else low
        self._clear()

    def multiply(self, columns):
        """Keep the products of columns (m, rank) with the basis."""
        self._known = columns.shape[1]
        np.dot(columns, self.basis[: self._known], out=self._products[: len(columns)])

    def learn(self, pick, place, product):
        """Take in a pick, whose product is at `place` of those kept, or at none.

        What is in `product` (M,) is overwritten.
        """
        rank, row = self.rank, self.basis[self.rank]
        if place is None:
            np.dot(pick.column, self.basis[:rank], out=product)
        else:
            later = slice(self._known, rank)
            np.dot(pick.column[later], self.basis[later], out=product)
            product += self._products[place]
        gram = checked_gram(self.kernel, pick.x[None], self.pool)[0]
        np.subtract(gram, product, out=row)
        root = np.sqrt(pick.power)
        row /= root
        self.residual -= np.multiply(row, pick.residual / root, out=product)
        self.power -= np.multiply(row, row, out=product)
        self.rank += 1
        self._clear(pick.x, gram)

    def _clear(self, x=None, gram=None):
        """Set residual and power to zero where they are rounding, and where x is repeated."""
        low = np.flatnonzero(self.power <= self._low)
        if not len(low):
            return
        heights = self.heights[low]
        nothing = self.power[low] <= ROUNDING * heights
        if x is not None:
            least = repeat_floor(checked_diagonal(self.kernel, x[None]))
            nothing |= np.abs(gram[low]) >= least * repeat_floor(heights)
        self.residual[low[nothing]] = self.power[low[nothing]] = 0.0

    def best(self):
        """The largest score, and the first candidate that has it."""
        score = decrement(self.residual, self.power)
        i = np.argmax(score)
        return score[i], i

    def choice(self, score, i):
        """What follows from picking a candidate."""
        column = self.basis[: self.rank, i].copy()
        of_pick = (values[i] for values in (self.residual, self.power, self.heights))
        return Choice(score, self.pool[i], column, *of_pick)

    def hottest(self):
        """The candidates among which the picks to come are sought."""
        few = hottest(decrement(self.residual, self.power))
        basis = np.empty((self.rank, len(few)))
        # With "clip" numpy writes at once to where it shall.
        np.take(self.basis[: self.rank], few, axis=1, out=basis, mode="clip")
        return Few(self.pool[few], self.residual[few], self.power[few], basis)
