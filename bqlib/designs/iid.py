"""Independent draws from the target."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bqlib.answers import checked_sample
from bqlib.arrays import Seed
from bqlib.candidates import Candidates
from bqlib.designs.design import Design, Pool, checked_request_without_pool, requires
from bqlib.kernels import Kernel
from bqlib.targets import Target
from bqlib.weights import uniform


def _requires(target: Target, kernel: Kernel, n: int, *, candidates: Candidates) -> None:
    cannot = f"it draws from the target, and {type(target).__name__} cannot be drawn from"
    if not hasattr(target, "sample"):
        raise TypeError(cannot)
    try:
        target.sample(1, np.random.default_rng(0))
    except TypeError:
        raise TypeError(cannot) from None


@requires(_requires)
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
    target : Target
        The distribution to summarise, in d dimensions.
    kernel : Kernel
        Defines the MMD of the design. The points do not depend on it.
    n : int
        Number of points, at least the number of initial points.
    rng : numpy.random.Generator or int
        A generator, or the seed of one. Draws the points.
    candidates : Candidates or array_like, shape (M, d), optional
        Ignored after validation; accepted so that all designs have the same arguments.
    initial : array_like, shape (m, d), optional
        Points that replace the first m draws.

    Returns
    -------
    Design
        Its n points, with equal weights.

    Raises
    ------
    ValueError
        If n is below 1, or below the number of initial points; if points are not finite arrays
        (m, d); or if target and kernel differ in dimension.
    TypeError
        If `rng` is neither a seed nor a Generator, if the pair has no embedding, or if the target
        cannot be sampled.

    Notes
    -----
    The mean of MMD^2 is (E k(X, X) - V0) / n exactly. O(n d) time and
    memory, if a draw takes O(d).

    References
    ----------
    The mean of MMD^2: Gretton, Borgwardt, Rasch, Schölkopf and Smola, "A kernel two-sample test",
    2012.

    Examples
    --------
    >>> from bqlib import Brownian, Uniform, iid
    >>> design = iid(Uniform([0], [1]), Brownian(), n=3, rng=0)
    >>> design.points[:, 0].round(3)
    array([0.637, 0.27 , 0.041])
    """
    request = checked_request_without_pool(target, kernel, n, rng, candidates, initial)
    draws = checked_sample(target, request.n, request.rng)[len(request.initial) :]
    return Design(request.embedding, np.concatenate([request.initial, draws]), uniform)
