"""fP-greedy points."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bqlib.arrays import Seed
from bqlib.candidates import Candidates
from bqlib.designs.design import Design, Pool, checked_request, requires, requires_mean
from bqlib.designs.newton import newton_greedy
from bqlib.kernels import Kernel
from bqlib.targets import Target


@requires(requires_mean)
def fp_greedy(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    rng: Seed,
    candidates: Pool = Candidates(),
    initial: ArrayLike | None = None,
) -> Design:
    """fP-greedy points: each has the largest residual times standard deviation.

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
    Picks the candidate with the largest abs(residual) sqrt(power): between `omp`, which has no
    power, and `p_greedy`, which has no residual. SBQ divides by the power instead. O(M n) time a
    step, O(M n) memory; O(M n^2) time a step with fresh candidates.

    References
    ----------
    Dutta, Farthing, Perracchione and others, "A greedy non-intrusive reduced order model for fluid
    dynamics", 2021; Wenzel, Santin and Haasdonk, "Analysis of target data-dependent greedy kernel
    algorithms", 2023, where it is the beta-greedy rule with beta = 1/2.
    """
    request = checked_request(target, kernel, n, rng, candidates, initial)
    return newton_greedy(request, lambda residual, power: np.abs(residual) * np.sqrt(power))
