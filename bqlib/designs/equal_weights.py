"""Greedy designs with equal weights: herding and its relatives."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import numpy as np

from bqlib.answers import checked_gram
from bqlib.arrays import Array, Mask
from bqlib.designs.design import Design, Request
from bqlib.weights import uniform

Terms = tuple[Array, Array]  # of each candidate of a pool, (M,) each: what does not change
Score = Callable[[Terms, Array, int], Array]  # of these, the sum of k at all points so far, and m


def greedy_with_equal_weights(
    request: Request, terms: Callable[[Array], Terms], score: Score, repeats: bool
) -> Design:
    """Pick points one by one: after m points, the candidate with the largest score.

    `terms` takes a pool (M, d). Without `repeats`, no candidate that equals an earlier point is
    picked; the design ends where none is left.
    """
    kernel, n, initial = request.embedding.kernel, request.n, request.initial
    points = np.empty((n, request.embedding.target.dim))
    points[: len(initial)] = initial
    rows: list[int] = []
    pool = request.pool
    if pool is not None:
        known, visits = terms(pool), checked_gram(kernel, initial, pool).sum(axis=0)
        taken = equal_to(pool, initial)
    for m in range(len(initial), n):
        if request.pool is None:
            pool = request.fresh_pool()
            known, visits = terms(pool), checked_gram(kernel, points[:m], pool).sum(axis=0)
            taken = equal_to(pool, () if repeats else points[:m])
        assert pool is not None
        scores = score(known, visits, m)
        if not repeats:
            if taken.all():
                stop = f"design stops at n = {m} of {n}: every candidate is picked already"
                return request.design(points[:m], uniform, rows, stop)
            scores[taken] = -np.inf
        rows.append(int(np.argmax(scores)))
        points[m] = pool[rows[-1]]
        if request.pool is not None:
            visits += checked_gram(kernel, points[m : m + 1], pool)[0]
            if not repeats:
                taken |= equal_to(pool, points[m : m + 1])
    return request.design(points, uniform, rows)


def equal_to(pool: Array, points: Iterable[Array]) -> Mask:
    """Which candidates (M,) equal one of some points."""
    equal = np.zeros(len(pool), dtype=bool)
    for x in points:
        equal |= (pool == x).all(axis=1)
    return equal
