"""Sequential Bayesian quadrature in blocks."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bqlib.answers import checked_diagonal, checked_gram
from bqlib.arrays import Seed
from bqlib.candidates import Candidates
from bqlib.checks import checked_count
from bqlib.designs.design import Design, Pool, checked_request, requires, requires_mean
from bqlib.designs.interpolant import Interpolant
from bqlib.designs.newton import best, stop_reason
from bqlib.designs.sbq import decrement
from bqlib.kernels import Kernel
from bqlib.pivots import PIVOT_TOLERANCE, repeats
from bqlib.targets import Target
from bqlib.weights import bq


def _requires(
    target: Target, kernel: Kernel, n: int, *, candidates: Candidates, block: int = 5
) -> None:
    """Raise an error for what :func:`block_sbq` cannot work with at any seed."""
    requires_mean(target, kernel, n, candidates=candidates)
    checked_count(block, "block", 1)


@requires(_requires)
def block_sbq(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    rng: Seed,
    candidates: Pool = Candidates(),
    initial: ArrayLike | None = None,
    block: int = 5,
) -> Design:
    """Sequential Bayesian quadrature in blocks: cheap picks, and one fit after each block.

    Within a block the weights of earlier points do not change, and matching pursuit picks the point
    that lowers the MMD most. After the block all weights are fitted again.

    Parameters
    ----------
    target : Target
        The distribution to summarise, in d dimensions.
    kernel : Kernel
        Defines the MMD. It must have an embedding with the target: see :func:`bqlib.embed`.
    n : int
        Number of points, at least the number of initial points.
    rng : numpy.random.Generator or int
        A generator, or the seed of one. Draws the candidates, unless they are given as an array;
        required in any case.
    candidates : Candidates or array_like, shape (M, d)
        How to draw the pool (default: 10,000 draws from the target), or the pool itself. Fresh
        candidates are drawn for each block.
    initial : array_like, shape (m, d), optional
        Points to start from; they count among the n.
    block : int
        Number of points between two fits (default: 5). With 1 and a kernel of constant k(x, x) this
        is `omp`.

    Returns
    -------
    Design
        With BQ weights. Fewer than n points, with the reason in `stop`, if no remaining candidate
        is numerically distinct from those picked.

    Raises
    ------
    ValueError
        If n is below 1 or below the number of initial points or, with a fixed pool, above that of
        initial points and candidates together; if points are not finite arrays (m, d); or if target
        and kernel differ in dimension. If the kernel mean is zero at every candidate, as no point
        can be picked then. If `block` is below 1.
    TypeError
        If `rng` is neither a seed nor a Generator, if the pair has no embedding, or if the target
        cannot be sampled and you pass no candidates.

    Notes
    -----
    O(M n / block + M d + n^2) time a step, O(M n + M d) memory; O(M n d) time a block with fresh
    candidates.

    References
    ----------
    Mallat and Zhang, "Matching pursuits with time-frequency dictionaries", 1993; refits in between
    are their backprojection.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib import Brownian, Uniform, block_sbq
    >>> grid = np.linspace(0, 1, 16)[:, None]
    >>> design = block_sbq(Uniform([0], [1]), Brownian(), n=3, rng=0, candidates=grid)
    >>> design.points[:, 0].round(3)
    array([0.667, 0.2  , 0.6  ])
    """
    request = checked_request(target, kernel, n, rng, candidates, initial)
    kernel = request.embedding.kernel  # of points in the units of the target
    block = checked_count(block, "block", 1)
    embedding, fixed, start = request.embedding, request.pool, len(request.initial)
    points = np.empty((n, target.dim))
    points[:start] = request.initial
    picks: list[int] = []
    interpolant = Interpolant(embedding, n)
    if fixed is not None:
        pool, rows = fixed, np.empty((n, len(fixed)))
        mean, heights = embedding.kernel_mean(pool), checked_diagonal(kernel, pool)
        norms = heights.copy()
    for x, height in zip(request.initial, checked_diagonal(kernel, request.initial), strict=True):
        column, here, power = interpolant.at(x)
        if power > PIVOT_TOLERANCE * height:  # else it repeats an earlier one
            if fixed is not None:
                row = rows[interpolant.rank] = checked_gram(kernel, x[None], pool)[0]
                norms[repeats(row[None], checked_diagonal(kernel, x[None]), heights)[0]] = np.inf
            interpolant.add(x, column, here, power)
    for m in range(start, n):
        if (m - start) % block == 0:
            if fixed is None:
                pool = request.fresh_pool()
                mean, heights = embedding.kernel_mean(pool), checked_diagonal(kernel, pool)
                norms = heights.copy()
                rows = checked_gram(kernel, interpolant.points, pool)
                norms[interpolant.repeated(pool, rows)] = np.inf
            residual = mean - interpolant.weights @ rows[: interpolant.rank]
        while True:
            i = best(decrement(residual, norms))
            if i is None:
                stop = stop_reason(m, n, bool(np.isinf(norms).all()))
                return request.design(points[:m], bq, picks, stop)
            column = interpolant.columns(pool[i : i + 1])[:, 0]
            power = norms[i] - column @ column
            if power > PIVOT_TOLERANCE * heights[i]:
                break
            norms[i] = np.inf  # it is spent
        points[m] = pool[i]
        picks.append(i)
        row = checked_gram(kernel, pool[i : i + 1], pool)[0]
        residual -= residual[i] / norms[i] * row
        if fixed is not None:
            rows[interpolant.rank] = row
        interpolant.add(pool[i], column, mean[i] - interpolant.projections @ column, power)
        norms[repeats(row[None], heights[i : i + 1], heights)[0]] = np.inf
    return request.design(points, bq, picks)
