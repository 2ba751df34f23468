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
    "initial"
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
    target, kernel
        The pair; it must have an embedding.
    n : int
        Number of points.
    rng : numpy.random.Generator or int
        A generator, or the seed of one. Draws the signs of the thinning, and the candidates unless
        they are given as an array.
    candidates : Candidates or array_like, shape (M, d)
        How to draw the pool, or the pool itself; not fresh. The first n 2^m candidates are thinned,
        where m is as large as the pool allows.
    initial : None
        Thinning cannot start from given points.

    Returns
    -------
    Design

    Raises
    ------
    ImportError
        If goodpoints is not installed.
    ValueError, TypeError
        If an argument is wrong.

    Notes
    -----
    The result summarises the pool, not the target. Splitting and swapping both use `kernel`. O(M^2)
    time, O(M) memory. The MMD to the pool is O(n^-1) up to logarithms if M is about n^2.

    References
    ----------
    Dwivedi and Mackey, "Kernel thinning", COLT 2021, arXiv:2105.05842.
    """
    try:
        from goodpoints import kt  # of an extra
    except ImportError:
        raise ImportError(
            "kernel_thinning needs the package goodpoints: run pip install 'bqlib[thinning]'"
        ) from None
    request = checked_request(target, kernel, n, rng, candidates, initial)
    if request.pool is None or len(request.initial):
        raise ValueError(_NEEDS_A_POOL)
    halvings = (len(request.pool) // n).bit_length() - 1
    pool = request.pool[: n * 2**halvings]

    def values(y: Array, x: Array) -> Array:
        return checked_gram(kernel, np.atleast_2d(y), np.atleast_2d(x))[0]

    seed = int(request.rng.integers(2**31))
    kept = kt.thin(pool, halvings, values, values, seed=seed)
    return Design(request.embedding, pool[kept], uniform)
