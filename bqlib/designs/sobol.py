"""Sobol points, mapped to the target."""

from __future__ import annotations

from numpy.typing import ArrayLike
from scipy.stats import qmc

from bqlib.arrays import Array, Seed
from bqlib.candidates import Candidates
from bqlib.checks import checked_count, checked_rng
from bqlib.designs.design import Design, Pool, checked_request_without_pool, requires
from bqlib.designs.unit_cube_map import cube_dim, from_cube
from bqlib.kernels import Kernel
from bqlib.streams import Spawning
from bqlib.targets import Target
from bqlib.weights import uniform

BITS = 30  # of each coordinate in [0, 1)


def requires_map(target: Target, kernel: Kernel, n: int, *, candidates: Candidates) -> None:
    """Raise an error if the target has no map from the unit cube, or for too many points."""
    _refuse(target, n)


def _refuse(target: Target, n: int) -> None:
    cube_dim(target, "sobol")
    if n > 2**BITS:
        raise ValueError(
            f"n is {n}; a Sobol sequence has at most 2^{BITS} = {2**BITS} points: use a smaller n, "
            "or iid"
        )


@requires(requires_map)
def sobol(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    rng: Seed,
    candidates: Pool | None = None,
    initial: ArrayLike | None = None,
) -> Design:
    """Scrambled Sobol points mapped to the target: quasi-Monte Carlo, where weights are equal.

    A Gaussian uses the normal quantile of each coordinate and the Cholesky factor of the
    covariance. A mixture uses one more coordinate, which picks the component. A box scales the
    coordinates. Marginals use their own quantiles. Each block of a product has its own coordinates.

    Parameters
    ----------
    target : GaussianMixture, Uniform, Marginals or Product of these
        The distribution to summarise, in d dimensions.
    kernel : Kernel
        Defines the MMD of the design. The points do not depend on it.
    n : int
        Number of points, at least the number of initial points.
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
        (m, d); or if target and kernel differ in dimension. If n is above 2^30.
    TypeError
        If `rng` is neither a seed nor a Generator, if the pair has no embedding, or if the target
        has no map from the unit cube.

    Notes
    -----
    O(n d log n) time, O(n d) memory. Each point alone has the target's distribution.

    References
    ----------
    Owen, "Scrambling Sobol' and Niederreiter-Xing points", 1998; Dick and Pillichshammer, "Digital
    Nets and Sequences", 2010.

    Examples
    --------
    >>> from bqlib import Brownian, Uniform, sobol
    >>> design = sobol(Uniform([0], [1]), Brownian(), n=4, rng=0)
    >>> sorted((4 * design.points[:, 0]).astype(int).tolist())  # one in each quarter
    [0, 1, 2, 3]
    """
    request = checked_request_without_pool(target, kernel, n, rng, candidates, initial)
    points = _scrambled(target, request.n, request.rng)
    points[: len(request.initial)] = request.initial
    return Design(request.embedding, points, uniform)


def sobol_points(target: Target, n: int, *, rng: Seed) -> Array:
    """Scrambled Sobol points mapped to the target: those of :func:`sobol`, without a kernel.

    For the same seed, the first n of 2n points are the n points: you can evaluate f at n points
    now, and at the others later.

    Parameters
    ----------
    target : GaussianMixture, Uniform, Marginals or Product of these
        The distribution to summarise, in d dimensions.
    n : int
        Number of points. For powers of two, the points are the most even.
    rng : numpy.random.Generator or int
        A generator, or the seed of one. Scrambles the sequence.

    Returns
    -------
    ndarray, shape (n, d)
        In the units of the target.

    Raises
    ------
    ValueError
        If n is below 1 or above 2^30.
    TypeError
        If `rng` is neither a seed nor a Generator, or if the target has no map from the unit cube.

    Notes
    -----
    O(n d log n) time, O(n d) memory. Each point alone has the target's distribution. A generator
    goes on: two calls with the same one give different points.

    References
    ----------
    Owen, "Scrambling Sobol' and Niederreiter-Xing points", 1998.

    Examples
    --------
    >>> from bqlib import Uniform, sobol_points
    >>> points = sobol_points(Uniform([0], [1]), 4, rng=0)
    >>> sorted((4 * points[:, 0]).astype(int).tolist())  # one in each quarter
    [0, 1, 2, 3]
    >>> bool((sobol_points(Uniform([0], [1]), 8, rng=0)[:4] == points).all())
    True
    """
    return _scrambled(target, checked_count(n, "n", 1), checked_rng(rng))


def _scrambled(target: Target, n: int, rng: Spawning) -> Array:
    """The first n points of the sequence, shape (n, d)."""
    _refuse(target, n)
    # The engine scrambles by children of its generator.
    engine = qmc.Sobol(cube_dim(target, "sobol"), bits=BITS, rng=rng.seeded())
    # A whole power of two, as the engine advises; the middle of each bin, as 0 has no quantile.
    cube = engine.random_base2(max(n - 1, 1).bit_length())[:n] + 0.5 ** (BITS + 1)
    return from_cube(target, cube)
