"""Latin hypercube samples, mapped to the target."""

from __future__ import annotations

from functools import partial

from numpy.typing import ArrayLike
from scipy.stats import qmc

from bqlib.arrays import Seed
from bqlib.designs.design import Design, Pool, checked_request_without_pool, point_set, requires
from bqlib.designs.unit_cube_map import (
    all_are_initial,
    cube_dim,
    from_cube,
    opened,
    requires_map_of,
)
from bqlib.kernels import Kernel
from bqlib.targets import Target
from bqlib.weights import uniform


@point_set
@requires(partial(requires_map_of, "latin_hypercube"))
def latin_hypercube(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    rng: Seed,
    candidates: Pool | None = None,
    initial: ArrayLike | None = None,
) -> Design:
    """A Latin hypercube sample: each coordinate has one point in each of n equal strata.

    The points are a set, not a sequence. They are mapped to the target as by :func:`bqlib.sobol`.

    Parameters
    ----------
    target : GaussianMixture, Uniform, Marginals or Product of these
        The distribution to summarise, in d dimensions.
    kernel : Kernel
        Defines the MMD of the design. The points do not depend on it.
    n : int
        Number of points.
    rng : numpy.random.Generator or int
        A generator, or the seed of one. Draws the order of the strata, and the points in them.
    candidates : Candidates or array_like, shape (M, d), optional
        Ignored after validation; accepted so that all designs have the same arguments.
    initial : array_like, optional
        Must be empty, as the set is made as one, or all n points.

    Returns
    -------
    Design
        Its n points, with equal weights.

    Raises
    ------
    ValueError
        If n is below 1, or below the number of initial points; if points are not finite arrays
        (m, d); or if target and kernel differ in dimension. If there are initial points, but not n.
    TypeError
        If `rng` is neither a seed nor a Generator, if the pair has no embedding, or if the target
        has no map from the unit cube.

    Notes
    -----
    O(n d) time and memory. Each point alone has the target's distribution. Equal weights have a
    small error for f that is a sum of functions of one coordinate each; of products of coordinates
    the sample knows no more than independent draws do.

    References
    ----------
    McKay, Beckman and Conover, "A comparison of three methods for selecting values of input
    variables in the analysis of output from a computer code", 1979.

    Examples
    --------
    >>> from bqlib import Korobov, Uniform, latin_hypercube
    >>> design = latin_hypercube(Uniform([0, 0], [1, 1]), Korobov(), n=5, rng=0)
    >>> [sorted(column.tolist()) for column in (5 * design.points).astype(int).T]
    [[0, 1, 2, 3, 4], [0, 1, 2, 3, 4]]
    """
    request = checked_request_without_pool(target, kernel, n, rng, candidates, initial)
    dim = cube_dim(target, "latin_hypercube")
    if all_are_initial(request, "latin_hypercube"):
        return Design(request.embedding, request.initial, uniform)
    # The engine draws from children of its generator.
    cube = qmc.LatinHypercube(dim, rng=request.rng.seeded()).random(request.n)
    return Design(request.embedding, from_cube(target, opened(cube)), uniform)
