"""The designs: each asks the parts of the pool, and decides what is picked."""

import numpy as np

from bqlib.checks import checked_count
from bqlib.designs.design import Design
from bqlib.designs.newton import stop_reason
from bqlib.embeddings import embed
from bqlib.pivots import PIVOT_TOLERANCE
from bqlib.sharded.drawing import check_candidates, checked_seed
from bqlib.sharded.foresight import Foresight, Lesson
from bqlib.sharded.parts import Parts
from bqlib.sharded.shards import HerdingShard, NewtonShard, Part
from bqlib.weights import bq, uniform


def sbq(client, target, kernel, n, *, rng, candidates):
    """Sequential Bayesian quadrature over a pool that is divided among workers.

    The points are those of :func:`bqlib.sbq` over ``draw_pool(target, candidates, rng)``.

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
    With M candidates on W workers: O((M n + M d) / W) time a step, and 8 M (n + d + 12) / W bytes
    on each worker. In a large pool, a step reads less than that: picks are foreseen, and several
    are multiplied together. A lost part costs as much as all steps so far.

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
    points = np.empty((n, target.dim))
    with Parts(client, NewtonShard, Part(target, kernel, candidates, seed, n)) as parts:
        foresight = Foresight(embedding.kernel, candidates.size, n - 1, parts.ask)
        for step in range(n):
            found = [choice for choice in parts.ask("best") if choice is not None]
            if not found:
                spent = all(parts.ask("spent"))
                return Design(embedding, points[:step], bq, stop_reason(step, n, spent))
            pick = max(found, key=lambda choice: choice.score)
            if pick.power <= PIVOT_TOLERANCE * pick.height:
                return Design(embedding, points[:step], bq, stop_reason(step, n, True))
            points[step] = pick.x
            if step < n - 1:
                parts.tell(foresight.lesson(pick))
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
    with Parts(client, HerdingShard, Part(target, kernel, candidates, seed, n)) as parts:
        for step in range(n):
            pick = max(parts.ask("best"), key=lambda choice: choice.score)
            points[step] = pick.x
            parts.tell(Lesson(pick))
    return Design(embedding, points, uniform)


def _checked(candidates, n, rng):
    """The number of points and the seed, if a pool on several workers can have them."""
    check_candidates(candidates)
    n = checked_count(n, "n", 1)
    if n > candidates.size:
        raise ValueError(f"n is {n}; it must be at most the {candidates.size} candidates")
    return n, checked_seed(rng)
