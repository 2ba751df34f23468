"""Independent draws from the target."""

import numpy as np

from bqlib.designs.design import NO_POOL, Design, checked_request
from bqlib.weights import uniform


def iid(target, kernel, n, *, rng, candidates=None, initial=None):
    """Independent draws from the target, with equal weights: the baseline.

    Parameters
    ----------
    target, kernel
        The pair. The points do not depend on the kernel.
    n : int
        Number of points.
    rng : numpy.random.Generator or int
    candidates : optional
        Not used: there so that every design is called in one way.
    initial : array_like, shape (m, d), optional
        Points to take the place of the first m draws.

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
    request = checked_request(target, kernel, n, rng, NO_POOL, initial)
    draws = target.sample(n, request.rng)[len(request.initial) :]
    return Design(request.embedding, np.concatenate([request.initial, draws]), uniform)
