"""Kernel thinning, by the goodpoints package."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bqlib.answers import checked_gram
from bqlib.arrays import Array, Seed
from bqlib.candidates import Candidates
from bqlib.designs.design import Design, Pool, checked_request, requires
from bqlib.kernels import Kernel
from bqlib.targets import Target
from bqlib.weights import uniform

_NEEDS_A_POOL = (
    "kernel_thinning needs a fixed pool and no initial points: use fresh=False, and leave out "
    "initial, unless it has all n points"
)


def _requires(target: Target, kernel: Kernel, n: int, *, candidates: Candidates) -> None:
    """Raise a ValueError if the candidates are fresh."""
    if candidates.fresh:
        raise ValueError(_NEEDS_A_POOL)


@requires(_requires)
def kernel_thinning(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    rng: Seed,
    candidates: Pool = Candidates(),
    initial: ArrayLike | None = None,
) -> Design:
    """Kernel thinning: halve a pool again and again, so that equal weights stay right.

    The points are a set, not a sequence: a smaller thinned set is not a part of a larger one.

    Parameters
    ----------
    target : Target
        The distribution to summarise, in d dimensions.
    kernel : Kernel
        Defines the MMD. It must have an embedding with the target: see :func:`bqlib.embed`.
    n : int
        Number of points, at least the number of initial points.
    rng : numpy.random.Generator or int
        A generator, or the seed of one. Draws the signs of the thinning, and the candidates unless
        they are given as an array.
    candidates : Candidates or array_like, shape (M, d)
        How to draw the pool (default: 10,000 draws from the target), or the pool itself; not fresh.
        It is halved as often as n points allow: of M = 10,000 candidates, n = 300 points use the
        first 9,600, which are halved five times.
    initial : array_like, optional
        Must be empty, as thinning cannot start from given points, or all n points.

    Returns
    -------
    Design
        Its n points, with equal weights.

    Raises
    ------
    ImportError
        If goodpoints is not installed.
    ValueError
        If n is below 1 or below the number of initial points or, with a fixed pool, above that of
        initial points and candidates together; if points are not finite arrays (m, d); or if target
        and kernel differ in dimension. If candidates are fresh, or there are initial points, but
        not n.
    TypeError
        If `rng` is neither a seed nor a Generator, if the pair has no embedding, or if the target
        cannot be sampled and you pass no candidates.

    Notes
    -----
    The result summarises the pool, not the target. Splitting and swapping both use `kernel`.
    O(M^2 d) time, O(M d) memory. The MMD to the pool is O(n^-1) up to logarithms if M is about n^2.

    References
    ----------
    Dwivedi and Mackey, "Kernel thinning", COLT 2021, arXiv:2105.05842.

    Examples
    --------
    >>> import bqlib
    >>> target, kernel = bqlib.Uniform([0], [1]), bqlib.Brownian()
    >>> data = target.sample(256, rng=1)
    >>> design = bqlib.kernel_thinning(  # doctest: +SKIP
    ...     target, kernel, n=16, rng=0, candidates=data
    ... )
    >>> design.points.shape  # doctest: +SKIP
    (16, 1)
    """
    request = checked_request(target, kernel, n, rng, candidates, initial)
    kernel = request.embedding.kernel  # of points in the units of the target
    if len(request.initial) == request.n:
        return Design(request.embedding, request.initial, uniform)
    try:
        from goodpoints import kt  # of an extra
    except ImportError:
        raise ImportError(
            "kernel_thinning needs the package goodpoints: run pip install 'bqlib[thinning]'"
        ) from None
    if request.pool is None or len(request.initial):
        raise ValueError(_NEEDS_A_POOL)
    halvings = (len(request.pool) // n).bit_length() - 1
    pool = request.pool[: n * 2**halvings]

    def values(y: Array, x: Array) -> Array:
        return checked_gram(kernel, np.atleast_2d(y), np.atleast_2d(x))[0]

    seed = int(request.rng.integers(2**31))
    kept = kt.thin(pool, halvings, values, values, seed=seed)
    return Design(request.embedding, pool[kept], uniform)
