"""Kernel herding."""

from __future__ import annotations

from numpy.typing import ArrayLike

from bqlib.answers import checked_diagonal
from bqlib.arrays import Array, Seed
from bqlib.candidates import Candidates
from bqlib.designs.design import Design, Pool, checked_request
from bqlib.designs.equal_weights import Terms, greedy_with_equal_weights
from bqlib.kernels import Kernel
from bqlib.targets import Target


def herding(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    rng: Seed,
    candidates: Pool = Candidates(),
    initial: ArrayLike | None = None,
    repeats: bool = True,
) -> Design:
    """Kernel herding: each point is the best next one for equal weights.

    Point n + 1 maximises z(x) - sum_m k(x, x_m) / (n + 1) - k(x, x) / (2 (n + 1)), which
    minimises the MMD of n + 1 equally weighted points.

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
        How to draw the pool (default: 10,000 draws from the target), or the pool itself.
    initial : array_like, shape (m, d), optional
        Points to start from; they count among the n.
    repeats : bool
        Whether a candidate may be picked more than once (default: True).

    Returns
    -------
    Design
        With equal weights. Fewer than n points, with the reason in `stop`, if `repeats` is False
        and no other candidate is left.

    Raises
    ------
    ValueError
        If n is below 1 or below the number of initial points or, with a fixed pool, above that of
        initial points and candidates together; if points are not finite arrays (m, d); or if target
        and kernel differ in dimension.
    TypeError
        If `rng` is neither a seed nor a Generator, if the pair has no embedding, or if the target
        cannot be sampled and you pass no candidates.

    Notes
    -----
    O(M d) time a step, O(M n d) with fresh candidates; O(M d) memory. The MMD is O(n^-1/2) in
    general, and O(1/n) if the kernel's space has finite dimension.

    References
    ----------
    Chen, Welling and Smola, "Super-samples from kernel herding", UAI 2010. The k(x, x) term
    matters for kernels whose diagonal is not constant.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib import Brownian, Uniform, herding
    >>> grid = np.linspace(0, 1, 16)[:, None]
    >>> design = herding(Uniform([0], [1]), Brownian(), n=3, rng=0, candidates=grid)
    >>> design.points[:, 0].round(3)
    array([0.467, 0.733, 0.133])
    """
    request = checked_request(target, kernel, n, rng, candidates, initial)
    embedding = request.embedding

    def terms(pool: Array) -> Terms:
        return embedding.kernel_mean(pool), checked_diagonal(embedding.kernel, pool)

    def score(terms: Terms, visits: Array, m: int) -> Array:
        mean, diagonal = terms
        return mean - (visits + 0.5 * diagonal) / (m + 1)

    return greedy_with_equal_weights(request, terms, score, repeats)
