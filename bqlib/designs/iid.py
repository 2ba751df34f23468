"""Independent draws from the target."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bqlib.answers import checked_sample
from bqlib.arrays import Seed
from bqlib.designs.design import Design, Pool, checked_request_without_pool
from bqlib.kernels import Kernel
from bqlib.targets import Target
from bqlib.weights import uniform


def iid(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    rng: Seed,
    candidates: Pool | None = None,
    initial: ArrayLike | None = None,
) -> Design:
    """Independent draws from the target: the baseline, where weights are equal.

    Parameters
    ----------
    target, kernel
        The pair. The points do not depend on the kernel.
    n : int
        Number of points.
    rng : numpy.random.Generator or int
        A generator, or the seed of one. Draws the points.
    candidates : optional
        Ignored after validation; accepted so that all designs have the same arguments.
    initial : array_like, shape (m, d), optional
        Points that replace the first m draws.

    Returns
    -------
    Design

    Raises
    ------
    ValueError, TypeError
        If an argument is wrong.

    Notes
    -----
    The mean of MMD^2 is (E k(X, X) - V0) / n exactly. O(n) time.
    """
    request = checked_request_without_pool(target, kernel, n, rng, candidates, initial)
    draws = checked_sample(target, request.n, request.rng)[len(request.initial) :]
    return Design(request.embedding, np.concatenate([request.initial, draws]), uniform)
