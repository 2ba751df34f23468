"""Greedy designs by the Newton basis: one triangular row for each point picked.

A greedy design picks each candidate by its residual and power, which are those of
:mod:`bqlib.designs.interpolant` from the points picked so far. Candidates that repeat a point,
exactly or nearly, are left out: see :mod:`bqlib.weights`.
"""

from collections.abc import Callable

import numpy as np

from bqlib.answers import checked_diagonal
from bqlib.arrays import Array
from bqlib.designs.design import Design, Request
from bqlib.designs.interpolant import Interpolant
from bqlib.designs.pools import Score, candidates_of, scores
from bqlib.pivots import PIVOT_TOLERANCE
from bqlib.weights import bq


def newton_greedy(
    request: Request,
    score: Score,
    choose: Callable[[Array], int | None] | None = None,
    refine: Callable[[Interpolant, Array, Array, Array], Array] | None = None,
    memory: float | None = None,
) -> Design:
    """Pick points one by one from the candidates.

    The design ends when the chosen candidate has a power of at most 1e-12 k(x, x). Then double
    precision cannot separate it from the points picked, and the scores have become noise. The
    design also ends when no candidate lowers the MMD.

    Parameters
    ----------
    request : Request
    score : callable
        (residual (M,), power (M,)) to the score of each candidate (M,). Residual and power are both
        zero if the power is only rounding.
    choose : callable, optional
        Scores (M,) to the index of a candidate, or to None to end the design. Default:
        :func:`best`.
    refine : callable, optional
        (interpolant, pool (M, d), residual, power) to a point (d,) of positive power, which is
        picked instead of the chosen candidate.
    memory : float, optional
        Memory limit in bytes, not counting the candidates (default: all memory of the machine).
        Above it the basis is recomputed at each step, block by block.

    Returns
    -------
    Design
        With the weight rule :func:`bqlib.weights.bq`.

    Raises
    ------
    MemoryError
        If `memory` does not suffice even for one block.

    Notes
    -----
    Fixed pool: O(M n) time a step, O(M n) memory. Fresh pools, and a pool in blocks: O(M n^2) time
    a step, O(M + n^2) memory. Source: Mueller and Schaback, "A Newton basis for kernel spaces",
    2009.
    """
    embedding, n, initial = request.embedding, request.n, request.initial
    # Picks off the pool, or drawn, cannot be foreseen.
    foresee = choose is None and refine is None
    candidates = candidates_of(request, memory, score if foresee else None)
    choose = choose or best
    interpolant = Interpolant(embedding, n)
    points = np.empty((n, embedding.target.dim))
    points[: len(initial)] = initial
    for x, height in zip(initial, checked_diagonal(embedding.kernel, initial), strict=True):
        column, residual, power = interpolant.at(x)
        if power > PIVOT_TOLERANCE * height:  # else it repeats an earlier one
            candidates.learn(interpolant.rank, x, column, residual, power)
            interpolant.add(x, column, residual, power)
    rows: list[int] = []
    for step in range(len(initial), n):
        candidates.look(interpolant)
        i = choose(scores(candidates, score))
        chosen = slice(None) if i is None else i
        floor = PIVOT_TOLERANCE * candidates.heights[chosen]
        spent = bool(np.all(candidates.power[chosen] <= floor))
        if i is None or spent:
            stop = stop_reason(step, n, spent)
            return request.design(points[:step], bq, rows if refine is None else None, stop)
        power = candidates.power[i]
        if refine is None:
            x, residual = candidates.pool[i], candidates.residual[i]
            column = candidates.column(interpolant, i)
            rows.append(i)
        else:
            x = refine(interpolant, candidates.pool, candidates.residual, candidates.power)
            column, residual, power = interpolant.at(x)
            i = None
        points[step] = x
        candidates.learn(interpolant.rank, x, column, residual, power, i)
        interpolant.add(x, column, residual, power)
    return request.design(points, bq, rows if refine is None else None)


def best(score: Array) -> int | None:
    """Index of the largest score, or None if no score is positive."""
    i = int(np.argmax(score))
    return i if score[i] > 0 else None


def stop_reason(n: int, asked: int, spent: bool) -> str:
    """Why a greedy design ends at n points: the next candidate is redundant, or none is useful."""
    if spent:
        return (
            f"design stops at n = {n} of {asked}: the next pivot is below {PIVOT_TOLERANCE:g} of "
            "the kernel's height"
        )
    return f"design stops at n = {n} of {asked}: no further candidate lowers the MMD"
