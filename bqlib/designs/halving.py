"""Kernel halving, and how halved sets are thinned: shared by kernel thinning and Compress++.

A set is halved by a self-balancing walk: of each two points that follow each other, one goes to
either half, so that the sums of the kernel over both halves stay close.
"""

from __future__ import annotations

from collections.abc import Callable
from math import log
from typing import Any

import numpy as np

from bqlib.answers import checked_diagonal, checked_gram
from bqlib.arrays import Array, Indices
from bqlib.candidates import Candidates
from bqlib.designs.design import Design, Request
from bqlib.embeddings import Embedding
from bqlib.kernels import Kernel
from bqlib.pivots import first_occurrence
from bqlib.streams import Spawning
from bqlib.targets import Target
from bqlib.weights import uniform

Thin = Callable[[Embedding, Array, int, Spawning], Indices]  # of a pool, to the rows of n points
DELTA = 0.5  # probability that a step of a walk is not balanced, over all its steps
PAIRS = 64  # whose signs are found one by one, after one product for all of them
PASSES = 10  # through all points, at most
COLUMNS = 2048  # of a Gram matrix at a time, so that it stays in a processor's cache


def requires_pool(
    target: Target, kernel: Kernel, n: int, *, candidates: Candidates, **parameters: Any
) -> None:
    """Raise a ValueError if the candidates are fresh."""
    if candidates.fresh:
        raise ValueError("it needs one pool, of which it keeps a part: use fresh=False")


def design_by(thin: Thin, request: Request, repeats: bool) -> Design:
    """The design of the points that are left of the pool of a request, with equal weights."""
    if len(request.initial) == request.n:
        return request.design(request.initial, uniform, [])
    if len(request.initial):
        raise ValueError(
            f"there are {len(request.initial)} initial points of n = {request.n}; thinning cannot "
            "start from given points: leave out initial, or give all n"
        )
    kernel, pool = request.embedding.kernel, request.pool
    requires_pool(request.embedding.target, kernel, request.n, candidates=request.candidates)
    assert pool is not None
    distinct = request.n if repeats else len(np.unique(pool, axis=0))
    if distinct < request.n:
        raise ValueError(
            f"n is {request.n}, but only {distinct} candidates are distinct: use a smaller n, or "
            "repeats=True"
        )
    # Halving asks for parts of the Gram matrix: here a bad answer is named by its row in the pool.
    checked_diagonal(kernel, pool)
    checked_gram(kernel, pool[:1], pool)
    rows = thin(request.embedding, pool, request.n, request.rng)
    return request.design(pool[rows], uniform, rows)


def evenly(size: int, count: int) -> Indices:
    """`count` rows of `size` rows, evenly spaced and as far from both ends."""
    return (np.arange(count) * size + size // 2) // count


def halve(kernel: Kernel, points: Array, rng: Spawning) -> tuple[Indices, Indices]:
    """Rows of the two halves of points (2m, d), each in their order.

    With f_i = k(x, .) - k(y, .) for the i-th two points, the sign of f_i in the sum of all is
    drawn, so that it mostly points against the sum so far. O(m^2 d) time, O(m) memory.

    Source: Dwivedi and Mackey, "Generalized kernel thinning", 2022, algorithm 1.
    """
    pairs = len(points) // 2
    signs, uniforms = np.empty(2 * pairs), rng.random(pairs)
    spread = 2 * log(2 * pairs / DELTA)
    variance = 0.0  # bound on that of the walk, as a sub-Gaussian one
    for start in range(0, 2 * pairs, 2 * PAIRS):
        block = points[start : start + 2 * PAIRS]
        sums = np.zeros(len(block))
        for left in range(0, start, COLUMNS):
            own = slice(left, min(left + COLUMNS, start))
            sums += checked_gram(kernel, block, points[own]) @ signs[own]
        pulls = sums[0::2] - sums[1::2]
        differences = checked_gram(kernel, block, block)
        differences = differences[0::2] - differences[1::2]
        inner = differences[:, 0::2] - differences[:, 1::2]
        chosen = signs[start : start + len(block) : 2]  # a view
        for i, (pull, square) in enumerate(
            zip(pulls.tolist(), np.diag(inner).tolist(), strict=True)
        ):
            pull += float(inner[i, :i] @ chosen[:i])
            # Where two points are equal, or equal up to rounding, either sign will do.
            threshold = max((square * variance * spread) ** 0.5, square) if square > 0 else 0.0
            if threshold > 0:
                variance += square * max(1 + (square - 2 * threshold) * variance / threshold**2, 0)
            against = uniforms[start // 2 + i] * 2 * threshold <= threshold - pull
            chosen[i] = 1.0 if against else -1.0
        signs[start + 1 : start + len(block) : 2] = -chosen
    return np.flatnonzero(signs > 0), np.flatnonzero(signs < 0)


def thinned(
    embedding: Embedding, pool: Array, n: int, rng: Spawning, repeats: bool = True
) -> Indices:
    """Rows of n points of a pool (M, d), by kernel thinning to the target of the embedding.

    Evenly spaced rows are halved as often as n points allow; of all parts, and n evenly spaced
    rows, the one nearest to the target is taken. Then its points are exchanged for better ones of
    the pool; without `repeats`, only for such that are not there yet. O(M^2 d) time, O(M + n^2)
    memory, and the kernel mean at the pool.
    """
    kernel = embedding.kernel
    halvings = (len(pool) // n).bit_length() - 1
    parts = [evenly(len(pool), n * 2**halvings)]
    for _ in range(halvings):
        parts = [part[half] for part in parts for half in halve(kernel, pool[part], rng)]
    distinct, which = np.unique(first_occurrence(pool), return_inverse=True)
    mean = embedding.kernel_mean(pool[distinct])[which]
    parts.append(evenly(len(pool), n))

    def distance(part: Indices) -> float:  # MMD^2, but for the prior variance
        gram = checked_gram(kernel, pool[part], pool[part])
        return float(gram.mean() - 2 * mean[part].mean())

    return _exchanged(kernel, pool, mean, min(parts, key=distance), repeats)


def _exchanged(kernel: Kernel, pool: Array, mean: Array, rows: Indices, repeats: bool) -> Indices:
    """The rows after each was exchanged, in turn, for the one that gives the smallest MMD.

    Again and again, until no exchange helps: the published rule goes through them once.
    """
    rows, n = rows.copy(), len(rows)
    first = np.arange(len(pool)) if repeats else first_occurrence(pool)
    counts = np.bincount(first[rows], minlength=len(pool))  # of each distinct point
    own = checked_diagonal(kernel, pool) - 2 * n * mean
    sums = np.zeros(len(pool))
    for left in range(0, n, PAIRS):
        sums += checked_gram(kernel, pool[rows[left : left + PAIRS]], pool).sum(axis=0)
    for _ in range(PASSES):
        before = rows.copy()
        for i in range(n):
            column = checked_gram(kernel, pool[rows[i : i + 1]], pool)[0]
            sums -= column
            counts[first[rows[i]]] -= 1
            change = own + 2 * sums
            if not repeats:
                change[counts[first] > 0] = np.inf
            best = int(np.argmin(change))
            if best != rows[i]:
                column = checked_gram(kernel, pool[best : best + 1], pool)[0]
            rows[i] = best
            counts[first[best]] += 1
            sums += column
        if (rows == before).all():
            break
    return rows
