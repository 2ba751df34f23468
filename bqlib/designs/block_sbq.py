"""Sequential Bayesian quadrature in blocks."""

import numpy as np

from bqlib.candidates import Candidates
from bqlib.checks import checked_count
from bqlib.designs.design import Design, checked_request
from bqlib.designs.newton import Interpolant, best, stop_reason
from bqlib.designs.sbq import decrement
from bqlib.weights import PIVOT_TOLERANCE, bq


def block_sbq(
    target,
    kernel,
    n,
    *,
    rng,
    candidates=Candidates(),  # noqa: B008
    initial=None,
    block=5,
):
    """Sequential Bayesian quadrature in blocks: cheap picks, and one fit for each block of them.

    Within a block, each point is where matching pursuit lowers the MMD the most: the earlier
    weights stay as they are. After it, all weights are fitted anew.

    Parameters
    ----------
    target, kernel
        The pair; it must have an embedding.
    n : int
        Number of points.
    rng : numpy.random.Generator or int
    candidates : Candidates or array_like, shape (M, d)
        How to draw the pool, or the pool itself. Fresh candidates are drawn for each block.
    initial : array_like, shape (m, d), optional
        Points to start from; they count among the n.
    block : int
        Number of points between two fits. With 1 and a kernel of constant height the rule is that
        of `omp`.

    Returns
    -------
    Design
        Shorter than n, with `stop` saying so, where float64 cannot tell a further candidate from
        those picked.

    Raises
    ------
    ValueError, TypeError
        If an argument is wrong.

    Notes
    -----
    O(M n / block + M) time a step, O(M n) memory; O(M n) time a block with fresh candidates.

    References
    ----------
    Mallat and Zhang, "Matching pursuits with time-frequency dictionaries", 1993; refits in between
    are their backprojection.
    """
    request = checked_request(target, kernel, n, rng, candidates, initial)
    block = checked_count(block, "block", 1)
    embedding, pool, start = request.embedding, request.pool, len(request.initial)
    fixed = pool is not None
    points = np.empty((n, target.dim))
    points[:start] = request.initial
    interpolant = Interpolant(embedding, n)
    height = kernel.diagonal(request.initial).max(initial=0.0)
    if fixed:
        mean, norms = embedding.kernel_mean(pool), np.array(kernel.diagonal(pool))
        height = max(height, norms.max())
        rows = np.empty((n, len(pool)))
    for x in request.initial:
        column, residual, power = interpolant.at(x)
        if power > PIVOT_TOLERANCE * height:  # else it repeats an earlier one
            if fixed:
                rows[interpolant.rank] = kernel(x[None], pool)[0]
            interpolant.add(x, column, residual, power)
    for m in range(start, n):
        if (m - start) % block == 0:
            if not fixed:
                pool = request.fresh_pool()
                mean, norms = embedding.kernel_mean(pool), np.array(kernel.diagonal(pool))
                height = max(height, norms.max())
                rows = kernel(interpolant.points, pool)
            residual = mean - interpolant.weights @ rows[: interpolant.rank]
        while True:
            i = best(decrement(residual, norms))
            if i is None:
                return Design(embedding, points[:m], bq, stop_reason(m, np.isinf(norms).all()))
            column = interpolant.columns(pool[i : i + 1])[:, 0]
            power = norms[i] - column @ column
            if power > PIVOT_TOLERANCE * height:
                break
            norms[i] = np.inf  # it is spent
        points[m] = pool[i]
        row = kernel(pool[i : i + 1], pool)[0]
        residual -= residual[i] / norms[i] * row
        if fixed:
            rows[interpolant.rank] = row
        interpolant.add(pool[i], column, mean[i] - interpolant.projections @ column, power)
        norms[i] = np.inf
    return Design(embedding, points, bq)
