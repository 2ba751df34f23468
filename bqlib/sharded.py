"""Designs over a pool that is too large for one machine, divided among Dask workers.

Each worker draws its own part of the pool and keeps it, with everything that is carried from step
to step. A step sends the last pick to all workers and returns the best candidate of each. The pool
consists of blocks, each with its own random stream. So it does not depend on the number of
workers, and a part that is lost with its worker is recomputed from the seed and the picks so far.
"""

import time
from contextlib import ExitStack
from dataclasses import dataclass, replace
from types import SimpleNamespace

import numpy as np
from distributed import CancelledError, KilledWorker
from threadpoolctl import ThreadpoolController

from bqlib.answers import checked_diagonal, checked_gram
from bqlib.candidates import Candidates
from bqlib.checks import checked_count, checked_rng
from bqlib.designs.design import Design
from bqlib.designs.interpolant import Interpolant
from bqlib.designs.newton import stop_reason
from bqlib.designs.screened import ScreenedPool
from bqlib.embeddings import embed
from bqlib.pivots import PIVOT_TOLERANCE
from bqlib.streams import stream
from bqlib.weights import bq, uniform

LOOK_SECONDS = 2  # between two looks whether a worker that does not answer is still there
FIRST_SECONDS = 30  # for the first worker to come, as those of a new cluster may still be starting
PATIENCE_SECONDS = 600  # for a worker to come in the place of one that was lost
MOST_LOSSES = 3  # of one part of the pool, without an answer in between
ACTOR_LOST = "Worker holding Actor was lost"  # as Dask's scheduler says it
# Rows: so few that a step's temporary arrays stay in a processor's cache, and below the 128 kB from
# which malloc, as Dask sets it for its workers, asks the system anew for each.
BLOCK = 16_000


class WorkersLostError(RuntimeError):
    """No workers are left to hold the pool, or a part of it is lost again and again."""


def draw_pool(target, candidates, rng, blocks=None):
    """The pool, or some blocks of it, as the functions below draw it.

    Parameters
    ----------
    target : Target
    candidates : Candidates
        Not fresh.
    rng : int
        Seed of the pool. A generator is refused: each block has a stream of its own.
    blocks : iterable of int, optional
        Which blocks of 16,000 candidates (default: all).

    Returns
    -------
    ndarray, shape (M, d)
        In O(M d) time and memory, if a draw takes O(d).

    Raises
    ------
    ValueError
        If candidates are fresh, or `rng` is negative.
    TypeError
        If candidates are not Candidates, `rng` is not a whole number, or the target has no draws.

    Examples
    --------
    >>> from bqlib import Candidates, Uniform
    >>> from bqlib.sharded import draw_pool
    >>> draw_pool(Uniform([0], [1]), Candidates(20_000), rng=0, blocks=[1]).shape
    (4000, 1)
    """
    _check_candidates(candidates)
    seed = _checked_seed(rng)
    if blocks is None:
        blocks = range(_block_count(candidates))
    return np.concatenate([_draw_block(target, candidates, seed, block) for block in blocks])


def _draw_block(target, candidates, seed, block):
    size = min(BLOCK, candidates.size - block * BLOCK)
    rng = stream(f"candidates/block-{block}", seed)
    return replace(candidates, size=size).draw(target, rng)


def _block_count(candidates):
    return -(-candidates.size // BLOCK)


def sbq(client, target, kernel, n, *, rng, candidates):
    """Sequential Bayesian quadrature over a pool that is divided among workers.

    The points are those of :func:`bqlib.sbq` over ``draw_pool(target, candidates, rng)``, unless
    candidates are equally good up to rounding: then any of these may be picked.

    Parameters
    ----------
    client : distributed.Client
        Its workers hold the pool. Each should have one thread.
    target : Target
        The distribution to summarise, in d dimensions.
    kernel : Kernel
        Defines the MMD. It must have an embedding with the target.
    n : int
        Number of points.
    rng : int
        Seed of the pool. A generator is refused: each block of the pool has a stream of its own.
    candidates : Candidates
        How to draw the pool: any number of candidates, not fresh.

    Returns
    -------
    Design
        With BQ weights. Fewer than n points, with the reason in `stop`, if no remaining candidate
        is numerically distinct from those picked.

    Raises
    ------
    ValueError
        If candidates are fresh, or fewer than n; if n is below 1, or `rng` is negative; if the
        kernel mean is zero at every candidate.
    TypeError
        If candidates are not Candidates, or `rng` is not a whole number; if the pair has no
        embedding.
    WorkersLostError
        If workers are lost and no new ones come, if one part is lost again and again, or if the
        client is closed.

    Notes
    -----
    With M candidates on W workers: O((M n + M d) / W) time a step, and 8 M (n + d + 16) / W bytes
    on each worker, or about half for large n as long as float32 can tell most candidates apart.
    Float64 decides. A lost part costs as much as all steps so far.

    Examples
    --------
    >>> import bqlib
    >>> from distributed import Client
    >>> target, kernel = bqlib.Uniform([0], [1]), bqlib.Brownian()
    >>> with Client(processes=False, dashboard_address=":0") as client:  # doctest: +SKIP
    ...     pool = bqlib.Candidates(50_000)  # or as many as the workers have memory for
    ...     bqlib.sharded.sbq(client, target, kernel, n=10, rng=0, candidates=pool)
    <Design: 10 points (d = 1), bq weights, for Brownian, Uniform>
    """
    embedding = embed(kernel, target)
    n, seed = _checked(candidates, n, rng)
    interpolant = Interpolant(embedding, n)
    points = np.empty((n, target.dim))
    with _Shards(client, _NewtonShard, _Part(target, kernel, candidates, seed, n)) as shards:
        for step in range(n):
            found = [choice for choice in shards.ask("best") if choice is not None]
            if not found:
                spent = all(shards.ask("spent"))
                return Design(embedding, points[:step], bq, stop_reason(step, n, spent))
            pick = max(found, key=lambda choice: choice.score)
            if pick.power <= PIVOT_TOLERANCE * pick.height:
                return Design(embedding, points[:step], bq, stop_reason(step, n, True))
            points[step] = pick.x
            interpolant.add(pick.x, pick.column, pick.residual, pick.power)
            shards.tell(pick)
    return Design(embedding, points, bq)


def herding(client, target, kernel, n, *, rng, candidates):
    """Kernel herding over a pool that is divided among workers.

    The points are those of :func:`bqlib.herding` over ``draw_pool(target, candidates, rng)``.

    Parameters
    ----------
    client : distributed.Client
        Its workers hold the pool. Each should have one thread.
    target : Target
        The distribution to summarise, in d dimensions.
    kernel : Kernel
        Defines the MMD. It must have an embedding with the target.
    n : int
        Number of points.
    rng : int
        Seed of the pool. A generator is refused: each block of the pool has a stream of its own.
    candidates : Candidates
        How to draw the pool: any number of candidates, not fresh.

    Returns
    -------
    Design
        Its n points, with equal weights.

    Raises
    ------
    ValueError
        If candidates are fresh, or fewer than n; if n is below 1, or `rng` is negative.
    TypeError
        If candidates are not Candidates, or `rng` is not a whole number; if the pair has no
        embedding.
    WorkersLostError
        As for :func:`sbq`.

    Notes
    -----
    With M candidates on W workers: O(M d / W) time a step, and 8 M (d + 3) / W bytes on each
    worker.

    Examples
    --------
    >>> import bqlib
    >>> from distributed import Client
    >>> target, kernel, pool = bqlib.Uniform([0], [1]), bqlib.Brownian(), bqlib.Candidates(500)
    >>> with Client(processes=False, dashboard_address=":0") as client:  # doctest: +SKIP
    ...     bqlib.sharded.herding(client, target, kernel, n=10, rng=0, candidates=pool)
    <Design: 10 points (d = 1), uniform weights, for Brownian, Uniform>
    """
    embedding = embed(kernel, target)
    n, seed = _checked(candidates, n, rng)
    points = np.empty((n, target.dim))
    with _Shards(client, _HerdingShard, _Part(target, kernel, candidates, seed, n)) as shards:
        for step in range(n):
            pick = max(shards.ask("best"), key=lambda choice: choice.score)
            points[step] = pick.x
            shards.tell(pick)
    return Design(embedding, points, uniform)


def _checked(candidates, n, rng):
    """The number of points and the seed, if a pool on several workers can have them."""
    _check_candidates(candidates)
    n = checked_count(n, "n", 1)
    if n > candidates.size:
        raise ValueError(f"n is {n}; it must be at most the {candidates.size} candidates")
    return n, _checked_seed(rng)


def _check_candidates(candidates):
    if not isinstance(candidates, Candidates):
        raise TypeError(
            f"candidates are of type {type(candidates).__name__}; the workers draw the pool, so "
            "they must be bqlib.Candidates. For points that you have, use bqlib.sbq or "
            "bqlib.herding"
        )
    if candidates.fresh:
        raise ValueError(
            "candidates.fresh is True; a pool on several workers must be fixed: use fresh=False"
        )


def _checked_seed(rng):
    if isinstance(rng, np.random.Generator):
        raise TypeError(
            "rng is a Generator; the workers draw each block of the pool from a stream of its own, "
            "so it must be a seed such as rng=0"
        )
    checked_rng(rng)
    return checked_count(rng, "rng")


@dataclass(frozen=True)
class _Part:
    """What a worker needs to make its part of the pool."""

    target: object
    kernel: object
    candidates: object
    seed: int
    n: int


@dataclass(frozen=True)
class _Choice:
    """A candidate that a design by Newton basis may pick, and all that follows from picking it."""

    score: float
    x: np.ndarray
    column: np.ndarray
    residual: float
    power: float
    height: float


class _Shard:
    """One worker's part of the pool; lives there as a Dask actor."""

    def __init__(self, part, blocks):
        self._threads = ThreadpoolController()
        self.embedding = embed(part.kernel, part.target)
        self.known = 0
        self.hold([_draw_block(part.target, part.candidates, part.seed, b) for b in blocks], part.n)

    def answer(self, picks, question, *arguments):
        """Learn `picks`, then answer."""
        with self._threads.limit(limits=1):
            for pick in picks:
                self.learn(pick)
                self.known += 1
            return getattr(self, question)(*arguments)


class _NewtonShard(_Shard):
    def hold(self, pools, n):
        self.interpolant = Interpolant(self.embedding, n)
        self.pool = ScreenedPool(self.interpolant, np.concatenate(pools), n, BLOCK)

    def learn(self, pick):
        for learn in (self.pool.learn, self.interpolant.add):
            learn(pick.x, pick.column, pick.residual, pick.power)

    def spent(self):
        return self.pool.spent()

    def best(self):
        """The best candidate, the first of equals; None where none is of use."""
        found = self.pool.best()
        if found is None:
            return None
        few, i, score = found
        of_pick = few.column(self.interpolant, i), few.residual[i], few.power[i], few.heights[i]
        return _Choice(score, few.pool[i], *of_pick)


class _HerdingShard(_Shard):
    def hold(self, pools, n):
        self.blocks = [
            SimpleNamespace(
                pool=pool,
                mean=self.embedding.kernel_mean(pool),
                diagonal=checked_diagonal(self.embedding.kernel, pool),
                visits=np.zeros(len(pool)),
            )
            for pool in pools
        ]

    def learn(self, pick):
        for block in self.blocks:
            block.visits += checked_gram(self.embedding.kernel, pick.x[None], block.pool)[0]

    def best(self):
        """The best candidate of all blocks, the first of equals."""
        return max(map(self.best_of_block, self.blocks), key=lambda choice: choice.score)

    def best_of_block(self, block):
        score = block.mean - (block.visits + 0.5 * block.diagonal) / (self.known + 1)
        i = np.argmax(score)
        return SimpleNamespace(score=score[i], x=block.pool[i])


@dataclass
class _Held:
    """A part of the pool as this process sees it; `actor` is None where it is lost.

    `losses` counts since it last answered, and `why` tells of the last one.
    """

    blocks: list
    worker: str = ""
    future: object = None
    actor: object = None
    known: int = 0
    losses: int = 0
    why: str = ""


class _Shards:
    """All parts of the pool, one on each worker."""

    def __init__(self, client, kind, part):
        self.client, self.kind, self.part = client, kind, part
        self.picks = []
        blocks = range(_block_count(part.candidates))
        end = time.monotonic() + FIRST_SECONDS
        while not (workers := len(self._workers())):
            if time.monotonic() > end:
                raise WorkersLostError(
                    f"the Dask client has no workers, and none came within {FIRST_SECONDS} s: "
                    "start some and run again"
                )
            time.sleep(0.1)
        split = np.array_split(blocks, min(len(blocks), workers))
        self.held = [_Held(own.tolist()) for own in split]

    def __enter__(self):
        self._stack = ExitStack()
        # Actors are called through the current client, whoever made them.
        self._stack.enter_context(self.client.as_current())
        self._stack.callback(
            setattr, self.client, "direct_to_workers", self.client.direct_to_workers
        )
        self.client.direct_to_workers = True  # or each call would go through the scheduler
        return self

    def __exit__(self, *error):
        self.held.clear()  # and so the actors
        self._stack.close()

    def tell(self, pick):
        """Have all parts learn a pick, before they answer the next question."""
        self.picks.append(pick)

    def ask(self, question, *arguments):
        """The answers of all parts, in the order of the pool."""
        answers = {}
        while len(answers) < len(self.held):
            left = [i for i in range(len(self.held)) if i not in answers]
            self._place([self.held[i] for i in left if self.held[i].actor is None])
            asked = {i: self._ask(self.held[i], question, arguments) for i in left}
            for i, call in asked.items():
                held = self.held[i]
                found = call and self._wait(held, call)
                if found is None:
                    self._lose(held)
                else:
                    (answers[i],) = found
                    held.known, held.losses = len(self.picks), 0
        return [answers[i] for i in range(len(self.held))]

    def _ask(self, held, question, arguments):
        try:
            answer = held.actor.answer
        except RuntimeError:  # its worker was lost
            return None
        return answer(self.picks[held.known :], question, *arguments)

    def _wait(self, held, call):
        """The answer to a call in a tuple, or None where the worker was lost."""
        while True:
            try:
                return (call.result(timeout=LOOK_SECONDS),)
            except TimeoutError:
                if call.done():  # by now, or with this as its answer
                    return (call.result(),)
                if held.future.status != "finished":
                    return None
            except OSError as error:
                held.why = f": {error}"
                return None

    def _lose(self, held):
        held.future = held.actor = None
        held.losses += 1
        if held.losses > MOST_LOSSES:
            raise WorkersLostError(
                f"a part of the pool was lost with its worker {held.losses} times in a row"
                f"{held.why}. Check that each worker has enough memory for its part (see the notes "
                "of bqlib.sharded.sbq), and that this process can connect to the workers directly"
            )

    def _place(self, lost):
        """Make parts of the pool on workers that hold none."""
        end = time.monotonic() + PATIENCE_SECONDS
        while lost:
            used = {held.worker for held in self.held if held.actor is not None}
            free = [worker for worker in self._workers() if worker not in used]
            placed = list(zip(lost, free))  # noqa: B905
            for held, worker in placed:
                held.worker, held.known = worker, 0
                held.future = self.client.submit(
                    self.kind,
                    self.part,
                    held.blocks,
                    actor=True,
                    pure=False,
                    workers=[worker],
                )
            for held, _ in placed:
                held.actor = self._made(held)
                if held.actor is None:
                    self._lose(held)
            lost = [held for held in lost if held.actor is None]
            if lost and time.monotonic() > end:
                raise WorkersLostError(
                    f"{len(lost)} parts of the pool have no worker: workers were lost, and no new "
                    f"ones came within {PATIENCE_SECONDS} s. Start workers and run again"
                )
            if lost:
                time.sleep(0.2)

    def _made(self, held):
        """The actor, once it is made; None where its worker was lost before."""
        while True:
            try:
                return held.future.result(timeout=LOOK_SECONDS)
            except TimeoutError:
                if held.future.done():
                    return held.future.result()
                if held.worker not in self._workers():  # Dask would wait for it for ever
                    return None
            except (KilledWorker, CancelledError):
                return None
            except RuntimeError as error:
                if str(error) != ACTOR_LOST:
                    raise
                return None

    def _workers(self):
        if self.client.status not in ("running", "connecting"):
            raise WorkersLostError(
                "the Dask client is closed, or it has lost its scheduler: connect a new client"
            )
        return sorted(self.client.scheduler_info(n_workers=-1).get("workers", {}))
