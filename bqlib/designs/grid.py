"""The mid-points of a regular grid in one dimension, mapped to the target."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bqlib.arrays import Seed
from bqlib.candidates import Candidates
from bqlib.designs.design import Design, Pool, checked_request_without_pool, point_set, requires
from bqlib.designs.unit_cube_map import all_are_initial, cube_dim, from_cube
from bqlib.kernels import Kernel
from bqlib.targets import Target
from bqlib.weights import uniform


def requires_one_coordinate(
    target: Target, kernel: Kernel, n: int, *, candidates: Candidates
) -> None:
    """Raise an error unless the target is the map of one coordinate."""
    dim = cube_dim(target, "grid")
    if dim > 1:
        mixture = " (one of them picks the component)" * (dim > target.dim)
        raise ValueError(
            f"grid has points of one coordinate, but {type(target).__name__} of dimension "
            f"{target.dim} needs {dim}{mixture}: use lattice or latin_hypercube"
        )


@point_set
@requires(requires_one_coordinate)
def grid(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    rng: Seed,
    candidates: Pool | None = None,
    initial: ArrayLike | None = None,
) -> Design:
    """The mid-points of n cells of equal probability, in one dimension.

    These are the quantiles at (2 i - 1) / (2 n), in rising order. They are a set, not a sequence.

    Parameters
    ----------
    target : GaussianMixture of one component, Uniform, Marginals or Product, in one dimension
        The distribution to summarise.
    kernel : Kernel
        Defines the MMD of the design. The points do not depend on it.
    n : int
        Number of points.
    rng : numpy.random.Generator or int
        A generator, or the seed of one. Nothing is drawn: all seeds give the same points.
    candidates : Candidates or array_like, shape (M, 1), optional
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
        (m, 1); or if target and kernel differ in dimension. If the target needs more than one
        coordinate. If there are initial points, but not n.
    TypeError
        If `rng` is neither a seed nor a Generator, if the pair has no embedding, or if the target
        has no map from the unit cube.

    Notes
    -----
    O(n) time and memory. Of all sets of n points of [0, 1], this one has the least star
    discrepancy, 1 / (2 n). Under the uniform distribution on [0, 1] and a periodic kernel, every
    shift of the grid has the same MMD: for `Korobov()`, MMD^2 is pi^2 / (3 n^2).

    References
    ----------
    Niederreiter, "Random Number Generation and Quasi-Monte Carlo Methods", 1992, theorem 2.6.

    Examples
    --------
    >>> from bqlib import Korobov, Uniform, grid
    >>> grid(Uniform([0], [1]), Korobov(), n=4, rng=0).points[:, 0]
    array([0.125, 0.375, 0.625, 0.875])
    """
    request = checked_request_without_pool(target, kernel, n, rng, candidates, initial)
    requires_one_coordinate(target, kernel, request.n, candidates=request.candidates)
    if all_are_initial(request, "grid"):
        return Design(request.embedding, request.initial, uniform)
    cube = (np.arange(request.n)[:, None] + 0.5) / request.n
    return Design(request.embedding, from_cube(target, cube), uniform)
