"""Kernel thinning."""

from __future__ import annotations

from functools import partial

from numpy.typing import ArrayLike

from bqlib.arrays import Seed
from bqlib.candidates import Candidates
from bqlib.designs.design import Design, Pool, checked_request, point_set, requires
from bqlib.designs.halving import design_by, requires_pool, thinned
from bqlib.kernels import Kernel
from bqlib.targets import Target


@point_set
@requires(requires_pool)
def kernel_thinning(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    rng: Seed,
    candidates: Pool = Candidates(),
    initial: ArrayLike | None = None,
    repeats: bool = True,
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
        not n. If there are fewer than n distinct candidates, without `repeats`.
    TypeError
        If `rng` is neither a seed nor a Generator, if the pair has no embedding, or if the target
        cannot be sampled and you pass no candidates.

    Notes
    -----
    Of the M candidates, n 2^m evenly spaced ones are halved m times, with the largest m that M
    allows: for M = 10,000 and n = 300, 9,600 are halved five times. Each of the 2^m parts
    summarises the pool. The part with the smallest MMD to the target is taken, or n evenly spaced
    candidates if theirs is smaller. Then each of its points in turn is exchanged for the candidate
    that gives the smallest MMD to the target, until no exchange helps, at most ten times each; the
    published rule does this once.

    O(M^2 d) time, O(M + n^2) memory, and one kernel mean at the pool. The MMD to the pool is
    O(n^-1) up to logarithms if M is about n^2. For larger pools, see :func:`compress`.

    References
    ----------
    Dwivedi and Mackey, "Kernel thinning", COLT 2021; Dwivedi and Mackey, "Generalized kernel
    thinning", ICLR 2022.

    Examples
    --------
    >>> import bqlib
    >>> target, kernel = bqlib.Uniform([0], [1]), bqlib.Brownian()
    >>> data = target.sample(256, rng=1)
    >>> design = bqlib.kernel_thinning(target, kernel, n=16, rng=0, candidates=data)
    >>> design.points.shape
    (16, 1)
    >>> first = bqlib.Design(design.embedding, data[:16], bqlib.weights.uniform)
    >>> one, other = (bqlib.mmd(d.embedding, d.points, d.weights) for d in (design, first))
    >>> one < other / 3
    True
    """
    request = checked_request(target, kernel, n, rng, candidates, initial)
    return design_by(partial(thinned, repeats=repeats), request, repeats)
