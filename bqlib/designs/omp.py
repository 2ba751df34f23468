"""Orthogonal matching pursuit."""

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
def omp(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    rng: Seed,
    candidates: Pool = Candidates(),
    initial: ArrayLike | None = None,
) -> Design:
    """Orthogonal matching pursuit: each point is where the kernel mean is interpolated worst.

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
        and kernel differ in dimension. If the kernel mean is zero at every candidate, as no point
        can be picked then.
    TypeError
        If `rng` is neither a seed nor a Generator, if the pair has no embedding, or if the target
        cannot be sampled and you pass no candidates.

    Notes
    -----
    Picks the candidate with the largest abs(residual); SBQ takes the power into account as well.
    O(M n + M d) time a step and memory; with fresh candidates, n times as much time.

    References
    ----------
    Pati, Rezaiifar and Krishnaprasad, "Orthogonal matching pursuit", Asilomar 1993. Among
    kernel methods it is the f-greedy rule, with the kernel mean as f. Rates: Siegel and Xu,
    "Optimal convergence rates for the orthogonal greedy algorithm", 2022.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib import Brownian, Uniform, omp
    >>> grid = np.linspace(0, 1, 16)[:, None]
    >>> design = omp(Uniform([0], [1]), Brownian(), n=3, rng=0, candidates=grid)
    >>> design.points[:, 0].round(3)
    array([1.   , 0.467, 0.733])
    """
    request = checked_request(target, kernel, n, rng, candidates, initial)
    return newton_greedy(request, lambda residual, power: np.abs(residual))
