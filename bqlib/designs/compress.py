"""Compress++."""

from __future__ import annotations

from functools import partial
from typing import Any

import numpy as np

from bqlib.arrays import Array, Indices, Seed
from bqlib.candidates import Candidates
from bqlib.checks import checked_count
from bqlib.designs.design import Design, Pool, checked_request, point_set, requires
from bqlib.designs.halving import design_by, evenly, halve, requires_pool, thinned
from bqlib.embeddings import Embedding
from bqlib.kernels import Kernel
from bqlib.streams import Spawning
from bqlib.targets import Target

OVERSAMPLING = 4


def _requires(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    candidates: Candidates,
    oversampling: int = OVERSAMPLING,
    **parameters: Any,
) -> None:
    """Raise an error for what :func:`compress` cannot work with at any seed."""
    requires_pool(target, kernel, n, candidates=candidates)
    checked_count(oversampling, "oversampling")


@point_set
@requires(_requires)
def compress(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    rng: Seed,
    candidates: Pool = Candidates(),
    initial: Any = None,
    repeats: bool = True,
    oversampling: int = OVERSAMPLING,
) -> Design:
    """Compress++: kernel thinning in time near-linear in the pool, by halving its quarters.

    The points are a set, not a sequence: a smaller thinned set is not a part of a larger one.

    Parameters
    ----------
    target : Target
        The distribution to summarise, in d dimensions.
    kernel : Kernel
        Defines the MMD. It must have an embedding with the target: see :func:`bqlib.embed`.
    n : int
        Number of points.
    rng : numpy.random.Generator or int
        A generator, or the seed of one. Draws the signs of the halvings, and the candidates unless
        they are given as an array.
    candidates : Candidates or array_like, shape (M, d)
        How to draw the pool (default: 10,000 draws from the target), or the pool itself; not fresh.
        Draws of a Markov chain may stay in their order.
    initial : array_like, optional
        Must be empty, as thinning cannot start from given points, or all n points.
    repeats : bool
        Whether points may be equal (default: True). False needs n distinct candidates.
    oversampling : int
        The pool is compressed to n 2^oversampling points, which are thinned to n (default: 4).
        Each one more takes up to four times as long, and comes closer to the pool.

    Returns
    -------
    Design
        Its n points, with equal weights.

    Raises
    ------
    ValueError
        If n is below 1 or below the number of initial points or, with a fixed pool, above that of
        initial points and candidates together; if points are not finite arrays (m, d); or if target
        and kernel differ in dimension. If candidates are fresh, or there are initial points, but
        not n, or fewer than n distinct candidates, without `repeats`. If `oversampling` is
        negative.
    TypeError
        If `rng` is neither a seed nor a Generator, if the pair has no embedding, or if the target
        cannot be sampled and you pass no candidates.

    Notes
    -----
    To compress a set, its quarters are compressed in the same way, joined, and halved; parts of
    about n 2^oversampling / 2^q points stay whole, with the largest q such that the pool has 4^q of
    them. These are filled by evenly spaced candidates. What remains is thinned by
    :func:`kernel_thinning`, and so is a pool of less than 2 n 2^oversampling points.

    O(4^oversampling n^2 d log M) time, and O(2^oversampling n M d) more to compare with a
    target that is a data set of M points; O(M d) memory.

    References
    ----------
    Shetty, Dwivedi and Mackey, "Distribution compression in near-linear time", ICLR 2022.

    Examples
    --------
    >>> import bqlib
    >>> target, kernel = bqlib.Uniform([0], [1]), bqlib.Brownian()
    >>> data = target.sample(4096, rng=1)
    >>> design = bqlib.compress(target, kernel, n=16, rng=0, candidates=data)
    >>> bool((data[design.rows] == design.points).all())
    True
    """
    request = checked_request(target, kernel, n, rng, candidates, initial)
    oversampling = checked_count(oversampling, "oversampling")
    thin = partial(_compressed, oversampling=oversampling, repeats=repeats)
    return design_by(thin, request, repeats)


def _compressed(
    embedding: Embedding, pool: Array, n: int, rng: Spawning, oversampling: int, repeats: bool
) -> Indices:
    """Rows of n points of a pool (M, d): thinned from n 2^oversampling that it is compressed to."""
    size = n * 2**oversampling
    levels = max(min(len(pool) // size, size).bit_length() - 1, 0)
    part = -(-size // 2**levels)  # points; up to one more where parts are not whole
    while part * 4**levels > len(pool) and levels:
        levels -= 1
        part = -(-size // 2**levels)
    if levels == 0:
        return thinned(embedding, pool, n, rng, repeats)
    parts = np.split(evenly(len(pool), part * 4**levels), 4**levels)
    while len(parts) > 1:
        joined = [np.concatenate(parts[i : i + 4]) for i in range(0, len(parts), 4)]
        halves = [halve(embedding.kernel, pool[rows], rng) for rows in joined]
        # Their errors are each other's opposites: only a random one has none in the mean.
        parts = [rows[pair[rng.integers(2)]] for rows, pair in zip(joined, halves, strict=True)]
    rows = parts[0]
    if not repeats and len(np.unique(pool[rows], axis=0)) < n:
        return thinned(embedding, pool, n, rng, repeats)
    return rows[thinned(embedding, pool[rows], n, rng, repeats)]
