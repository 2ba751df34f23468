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
    target, kernel
        The pair; it must have an embedding.
    n : int
        Number of points.
    rng : numpy.random.Generator or int
        A generator, or the seed of one. Draws the candidates, unless they are given as an array;
        required in any case.
    candidates : Candidates or array_like, shape (M, d)
        How to draw the pool, or the pool itself.
    initial : array_like, shape (m, d), optional
        Points to start from; they count among the n.

    Returns
    -------
    Design
        Fewer than n points, with the reason in `stop`, if no remaining candidate is numerically
        distinct from those picked.

    Raises
    ------
    ValueError, TypeError
        If an argument is wrong.

    Notes
    -----
    Picks the candidate with the largest power. The target enters by the candidates and the weights
    only: the points fill the pool whatever its density. O(M n) time a step, O(M n) memory;
    O(M n^2) time a step with fresh candidates.

    References
    ----------
    De Marchi, Schaback and Wendland, "Near-optimal data-independent point locations for radial
    basis function interpolation", 2005; Santin and Haasdonk, "Convergence rate of the
    data-independent P-greedy algorithm", 2017.
    """
    request = checked_request(target, kernel, n, rng, candidates, initial)
    return newton_greedy(request, lambda residual, power: power)
