"""Halton points, mapped to the target."""

from __future__ import annotations

from functools import partial

from numpy.typing import ArrayLike
from scipy.stats import qmc

from bqlib.arrays import Seed
from bqlib.designs.design import Design, Pool, checked_request_without_pool, requires
from bqlib.designs.unit_cube_map import cube_dim, from_cube, opened, requires_map_of
from bqlib.kernels import Kernel
from bqlib.targets import Target
from bqlib.weights import uniform


@requires(partial(requires_map_of, "halton"))
def halton(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    rng: Seed,
    candidates: Pool | None = None,
    initial: ArrayLike | None = None,
) -> Design:
    """Scrambled Halton points mapped to the target: a sequence that is even at every length.

    The coordinates have the primes as bases. They are mapped to the target as by
    :func:`bqlib.sobol`.

    Parameters
    ----------
    target : GaussianMixture, Uniform, Marginals or Product of these
        The distribution to summarise, in d dimensions.
    kernel : Kernel
        Defines the MMD of the design. The points do not depend on it.
    n : int
        Number of points, at least the number of initial points. No length is better than others.
    rng : numpy.random.Generator or int
        A generator, or the seed of one. Scrambles the sequence.
    candidates : Candidates or array_like, shape (M, d), optional
        Ignored after validation; accepted so that all designs have the same arguments.
    initial : array_like, shape (m, d), optional
        Points that replace the first m.

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
        has no map from the unit cube.

    Notes
    -----
    O(n d) time and memory. Each point alone has the target's distribution. The digits of a
    coordinate are permuted at random, each by a permutation of its own.

    References
    ----------
    Halton, "On the efficiency of certain quasi-random sequences of points in evaluating
    multi-dimensional integrals", 1960; Owen, "A randomized Halton algorithm in R", 2017.

    Examples
    --------
    >>> from bqlib import Korobov, Uniform, halton
    >>> design = halton(Uniform([0, 0], [1, 1]), Korobov(), n=6, rng=0)
    >>> sorted((3 * design.points[:, 1]).astype(int).tolist())  # two in each third
    [0, 0, 1, 1, 2, 2]
    """
    request = checked_request_without_pool(target, kernel, n, rng, candidates, initial)
    # The engine draws from children of its generator.
    engine = qmc.Halton(cube_dim(target, "halton"), rng=request.rng.seeded())
    points = from_cube(target, opened(engine.random(request.n)))
    points[: len(request.initial)] = request.initial
    return Design(request.embedding, points, uniform)
