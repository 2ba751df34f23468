"""Randomly pivoted Cholesky."""

from __future__ import annotations

from numpy.typing import ArrayLike

from bqlib.arrays import Array, Seed
from bqlib.candidates import Candidates
from bqlib.designs.design import Design, Pool, checked_request
from bqlib.designs.newton import newton_greedy
from bqlib.kernels import Kernel
from bqlib.targets import Target


def rpcholesky(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    rng: Seed,
    candidates: Pool = Candidates(),
    initial: ArrayLike | None = None,
) -> Design:
    """Randomly pivoted Cholesky: each point is drawn with probability proportional to its power.

    Parameters
    ----------
    target, kernel
        The pair; it must have an embedding.
    n : int
        Number of points.
    rng : numpy.random.Generator or int
        A generator, or the seed of one. Draws the picks, and the candidates unless they are given
        as an array.
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
    Unlike `p_greedy` it follows the density of the candidates. O(M n) time a step, O(M n) memory;
    O(M n^2) time a step with fresh candidates.

    References
    ----------
    Chen, Epperly, Tropp and Webber, "Randomly pivoted Cholesky", 2025; as a quadrature: Epperly and
    Moreno, "Kernel quadrature with randomly pivoted Cholesky", NeurIPS 2023.
    """
    request = checked_request(target, kernel, n, rng, candidates, initial)

    def draw(power: Array) -> int | None:
        total = power.sum()
        return int(request.rng.choice(len(power), p=power / total)) if total > 0 else None

    return newton_greedy(request, lambda residual, power: power, draw)
