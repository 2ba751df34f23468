"""P-greedy points."""

from __future__ import annotations

from numpy.typing import ArrayLike

from bqlib.arrays import Seed
from bqlib.candidates import Candidates
from bqlib.designs.design import Design, Pool, checked_request
from bqlib.designs.newton import newton_greedy
from bqlib.kernels import Kernel
from bqlib.targets import Target


def p_greedy(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    rng: Seed,
    candidates: Pool = Candidates(),
    initial: ArrayLike | None = None,
) -> Design:
    """P-greedy points: each is where the prior variance, given the points before it, is largest.

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
        and kernel differ in dimension.
    TypeError
        If `rng` is neither a seed nor a Generator, if the pair has no embedding, or if the target
        cannot be sampled and you pass no candidates.

    Notes
    -----
    Picks the candidate with the largest power. The target enters by the candidates and the weights
    only: the points fill the pool whatever its density.
    O(M n + M d) time a step and memory; with fresh candidates, n times as much time.

    References
    ----------
    De Marchi, Schaback and Wendland, "Near-optimal data-independent point locations for radial
    basis function interpolation", 2005; Santin and Haasdonk, "Convergence rate of the
    data-independent P-greedy algorithm", 2017.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib import Brownian, Uniform, p_greedy
    >>> grid = np.linspace(0, 1, 16)[:, None]
    >>> design = p_greedy(Uniform([0], [1]), Brownian(), n=3, rng=0, candidates=grid)
    >>> design.points[:, 0].round(3)
    array([1.   , 0.467, 0.733])
    """
    request = checked_request(target, kernel, n, rng, candidates, initial)
    return newton_greedy(request, lambda residual, power: power)
