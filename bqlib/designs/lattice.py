"""Rank-1 lattices, mapped to the target."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bqlib.arrays import Array, Indices, Seed
from bqlib.candidates import Candidates
from bqlib.designs.design import Design, Pool, checked_request_without_pool, point_set, requires
from bqlib.designs.unit_cube_map import all_are_initial, cube_dim, from_cube, opened
from bqlib.kernels import Kernel
from bqlib.targets import Target
from bqlib.weights import uniform

TIE = 1e-9  # of the spread of a criterion: such differences are rounding


def requires_lattice(
    target: Target, kernel: Kernel, n: int, *, candidates: Candidates, shift: bool = True
) -> None:
    """Raise an error if there is no lattice of n points, or no map of it to the target."""
    dim = cube_dim(target, "lattice")
    if not isinstance(shift, bool | np.bool_):
        raise TypeError(f"shift is {shift!r}; it must be True or False")
    sizes = lattice_sizes(n, dim)
    if n not in sizes:
        kind = "a Fibonacci number or a power of 2" if dim == 2 else "a power of 2"
        raise ValueError(
            f"n is {n}; a lattice of {dim} coordinates has {kind} as its n: use "
            f"{max(m for m in sizes if m < n)} or {min(m for m in sizes if m > n)}"
        )
    if not shift:
        with np.errstate(invalid="ignore"):  # infinity times zero
            origin = from_cube(target, np.zeros((1, dim)))
        if not np.isfinite(origin).all():
            raise ValueError(
                "without a shift, a lattice has a point at the origin of the unit cube, which the "
                f"map takes to infinity for this {type(target).__name__}: use shift=True"
            )


@point_set
@requires(requires_lattice)
def lattice(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    rng: Seed,
    candidates: Pool | None = None,
    initial: ArrayLike | None = None,
    shift: bool = True,
) -> Design:
    """A rank-1 lattice, mapped to the target: quasi-Monte Carlo for periodic functions.

    The points of the unit cube are i z / n modulo 1 for i = 0, ..., n - 1, with a generating vector
    z of whole numbers. They are a set, not a sequence, and are mapped to the target as by
    :func:`bqlib.sobol`.

    Parameters
    ----------
    target : GaussianMixture, Uniform, Marginals or Product of these
        The distribution to summarise, in d dimensions. A mixture of several components needs one
        more coordinate.
    kernel : Kernel
        Defines the MMD of the design. The points do not depend on it.
    n : int
        Number of points. One coordinate: any n. Two coordinates: a Fibonacci number (1, 2, 3, 5,
        8, 13, 21, 34, 55, 89, ...) or a power of 2. More: a power of 2.
    rng : numpy.random.Generator or int
        A generator, or the seed of one. Draws the shift.
    candidates : Candidates or array_like, shape (M, d), optional
        Ignored after validation; accepted so that all designs have the same arguments.
    initial : array_like, optional
        Must be empty, as the set is made as one, or all n points.
    shift : bool
        Whether one random vector is added to all points, modulo 1 (default: True). Then each point
        alone has the target's distribution. False: nothing is drawn, and the first point is the
        origin, which a target without bounds does not have.

    Returns
    -------
    Design
        Its n points, with equal weights.

    Raises
    ------
    ValueError
        If n is below 1, or below the number of initial points; if points are not finite arrays
        (m, d); or if target and kernel differ in dimension. If there is no lattice of n points:
        the message names the next smaller and larger n. If there are initial points, but not n. If
        the target has no bounds, without a shift.
    TypeError
        If `rng` is neither a seed nor a Generator, if the pair has no embedding, if the target has
        no map from the unit cube, or if `shift` is no bool.

    Notes
    -----
    O(n d log n) time, O(n d) memory. For a Fibonacci number n in two coordinates, z = (1, m), where
    m is the Fibonacci number before n. For other n, z is constructed for this n and d, without a
    table, component by component: each is the odd number that makes the MMD under the product of
    1 + (2 / d) (k_c - 1) the smallest, where k_c is the factor of `Korobov()` in coordinate c. In
    two coordinates this is `Korobov()` itself. Less weight on many coordinates at once keeps those
    of a long vector apart.

    Under a periodic kernel and the uniform distribution on the unit cube, all shifts of a lattice
    have the same MMD, and BQ weights are all equal: with e = MMD^2 of the weights 1 / n, they are
    1 / (n (1 + e)), and have MMD^2 = e / (1 + e).

    References
    ----------
    Sloan and Joe, "Lattice Methods for Multiple Integration", 1994; Nuyens and Cools, "Fast
    component-by-component construction of rank-1 lattice rules with a non-prime number of points",
    2006; the shift: Cranley and Patterson, "Randomization of number theoretic methods for multiple
    integration", 1976.

    Examples
    --------
    >>> from bqlib import Korobov, Uniform, lattice
    >>> square = Uniform([0, 0], [1, 1])
    >>> (5 * lattice(square, Korobov(), n=5, rng=0, shift=False).points).round(12)
    array([[0., 0.],
           [1., 3.],
           [2., 1.],
           [3., 4.],
           [4., 2.]])
    >>> lattice(square, Korobov(), n=60, rng=0)
    Traceback (most recent call last):
        ...
    ValueError: n is 60; a lattice of 2 coordinates has a Fibonacci number or a power of 2 as ...
    """
    request = checked_request_without_pool(target, kernel, n, rng, candidates, initial)
    dim = cube_dim(target, "lattice")
    if all_are_initial(request, "lattice"):
        return Design(request.embedding, request.initial, uniform)
    requires_lattice(target, kernel, request.n, candidates=request.candidates, shift=shift)
    steps = np.arange(request.n)[:, None] * generating_vector(request.n, dim) % request.n
    cube = steps / request.n
    if shift:
        cube = opened((cube + request.rng.random(dim)) % 1)
    return Design(request.embedding, from_cube(target, cube), uniform)


def lattice_sizes(n: int, dim: int) -> set[int]:
    """Sizes of lattices of this many coordinates: those up to n, and a larger one."""
    if dim == 1:
        return {n, n + 1}
    sizes = {2**m for m in range(n.bit_length() + 1)}
    if dim == 2:
        sizes.update(_fibonacci(n))
    return sizes


def _fibonacci(n: int) -> list[int]:
    """1, 2, 3, 5, ... up to the first above n."""
    found = [1, 2]
    while found[-1] <= n:
        found.append(found[-1] + found[-2])
    return found


def generating_vector(n: int, dim: int) -> Indices:
    """The vector z of the lattice i z / n, shape (dim,)."""
    if dim == 1:
        return np.ones(1, dtype=np.intp)
    numbers = [1, *_fibonacci(n)]
    if dim == 2 and n in numbers[1:]:
        return np.array([1, numbers[numbers.index(n, 1) - 1]])
    return _by_components(n, dim)


def _by_components(n: int, dim: int) -> Indices:
    """Of all odd numbers, each component makes the MMD of the first components the smallest.

    n is a power of 2. The units modulo n are, up to their sign, the powers of 5, and so are those
    of each divisor: sums over a power of 5 times another are circular convolutions.
    """
    vector = np.ones(dim, dtype=np.intp)
    if n < 8:
        return vector  # up to its sign, 1 is the only unit
    units = np.ones(1, dtype=np.intp)
    while len(units) < n // 4:
        units = np.concatenate([units, units * pow(5, len(units), n) % n])
    numbers, share = np.minimum(units, n - units), 2 / dim
    factor = _periodic(np.arange(n) / n)
    product = 1 + share * factor
    for c in range(1, dim):
        sums, size = np.zeros(1), 8
        while size <= n:  # the points of the lattice of `size` that are in no smaller one
            group = units[: size // 4] % size
            rows = n // size * group
            spectrum = np.fft.rfft(factor[rows]) * np.fft.rfft(product[rows]).conj()
            sums = np.tile(sums, len(group) // len(sums)) + np.fft.irfft(spectrum, len(group))
            size *= 2
        # The smallest of equals, so that rounding has no choice.
        vector[c] = numbers[sums <= sums.min() + TIE * np.ptp(sums)].min()
        product *= 1 + share * factor[np.arange(n) * vector[c] % n]
    return vector


def _periodic(t: Array) -> Array:
    """What `Korobov()` adds to 1 in one coordinate, at differences t of [0, 1]."""
    return 2 * np.pi**2 * (t * (t - 1) + 1 / 6)
