"""Greedy designs by the Newton basis: one triangular row for each point picked.

The residual of a candidate x after n points is z(x) minus its interpolant from those points; its
power is the prior variance of f(x) that is left once f is known at them. A greedy design is a
rule that scores candidates by the two.
"""

import numpy as np
from scipy.linalg import solve_triangular

from bqlib.designs.design import Design
from bqlib.weights import PIVOT_TOLERANCE, bq


def newton_greedy(request, score):
    """Pick points one by one, each the candidate with the largest score.

    The design ends before the first pick whose power is at most 1e-12 of the largest k(x, x): from
    there on float64 cannot tell candidates from the points they repeat.

    Parameters
    ----------
    request : Request
    score : callable
        (residual (M,), power (M,)) to scores (M,). Picked candidates have power infinity.

    Returns
    -------
    Design
        With the weight rule :func:`bqlib.weights.bq`.

    Notes
    -----
    Fixed pool: O(M n) time a step, O(M n) memory. Fresh pools: O(M n^2) time a step. Source:
    Mueller and Schaback, "A Newton basis for kernel spaces", 2009.
    """
    pick = _pick_from_fixed if request.pool is not None else _pick_from_fresh
    points = pick(request, score)
    stop = ""
    if len(points) < request.n:
        stop = (
            f"design stops at n = {len(points)}: the next pivot is below {PIVOT_TOLERANCE:g} "
            "of the kernel's height"
        )
    return Design(request.embedding, points, bq, stop)


def _pick_from_fixed(request, score):
    kernel, n, m = request.embedding.kernel, request.n, len(request.initial)
    size = len(request.pool)
    # Initial points ride along as candidates that are taken first.
    nodes = np.concatenate([request.pool, request.initial]) if m else request.pool
    power = kernel.diagonal(nodes)
    floor = PIVOT_TOLERANCE * power.max()
    residual = request.embedding.kernel_mean(nodes)
    basis = np.empty((n, len(nodes)))
    product = np.empty(len(nodes))
    points = np.empty((n, nodes.shape[1]))
    for step in range(n):
        if step < m:
            i = size + step
        else:
            i = int(np.argmax(score(residual[:size], power[:size])))
            if not floor < power[i] < np.inf:
                return points[:step]
        points[step] = nodes[i]
        row = basis[step]
        if not floor < power[i] < np.inf:  # an initial point that repeats an earlier one
            row[:] = 0.0
            continue
        root = np.sqrt(power[i])
        np.dot(basis[:step, i].copy(), basis[:step], out=product)
        np.subtract(kernel(nodes[i : i + 1], nodes)[0], product, out=row)
        row /= root
        residual -= np.multiply(row, residual[i] / root, out=product)
        power -= np.multiply(row, row, out=product)
        power[i] = np.inf
    return points


def _pick_from_fresh(request, score):
    kernel, n, m = request.embedding.kernel, request.n, len(request.initial)
    points = np.empty((n, request.initial.shape[1]))
    factor = np.empty((n, n))
    projections = np.empty(n)
    basis_points = np.empty_like(points)  # the points that are not redundant
    rank = 0
    for step in range(n):
        pool = request.initial[step : step + 1] if step < m else request.fresh_pool()
        power = kernel.diagonal(pool)
        floor = PIVOT_TOLERANCE * power.max()
        rows = solve_triangular(factor[:rank, :rank], kernel(basis_points[:rank], pool), lower=True)
        residual = request.embedding.kernel_mean(pool) - projections[:rank] @ rows
        power -= np.square(rows).sum(axis=0)
        i = 0 if step < m else int(np.argmax(score(residual, power)))
        if power[i] <= floor:
            if step < m:  # an initial point that repeats an earlier one
                points[step] = pool[i]
                continue
            return points[:step]
        points[step] = pool[i]
        basis_points[rank] = pool[i]
        factor[rank, :rank] = rows[:, i]
        factor[rank, rank] = np.sqrt(power[i])
        projections[rank] = residual[i] / factor[rank, rank]
        rank += 1
    return points
