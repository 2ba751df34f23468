"""Sums, scalings and products of kernels, and kernels that use only some coordinates."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike

from bqlib.arrays import Array, ArrayFunction, total
from bqlib.checks import checked_count, checked_height
from bqlib.kernels.kernel import Kernel


@dataclass(frozen=True, eq=False, init=False)
class SumKernel(Kernel):
    """Sum of kernels, written ``k1 + k2``.

    Parameters
    ----------
    *parts : Kernel
        The terms.

    Raises
    ------
    ValueError
        If they are for points of different dimensions.

    Notes
    -----
    A call costs as much as those of its parts together: O(n m d) time for each in most cases.

    Examples
    --------
    >>> from bqlib import Brownian, Matern
    >>> kernel = Matern(0.5) + Brownian()
    >>> kernel([[0.5]], [[0.5]])
    array([[1.5]])
    """

    parts: tuple[Kernel, ...]
    _dim: int | None = field(init=False, repr=False)

    def __init__(self, *parts: Kernel):
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "_dim", _common_dim(parts))

    @property
    def dim(self) -> int | None:
        """Dimension of the points, or None for any dimension."""
        return self._dim

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Gram matrix of x (n, d) against y (m, d), shape (n, m)."""
        return total(part(x, y) for part in self.parts)

    def diagonal(self, x: ArrayLike) -> Array:
        """k(x_i, x_i) for x (n, d), shape (n,)."""
        return total(part.diagonal(x) for part in self.parts)

    def gradient(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Gradient of k(x_i, y_j) in x_i for x (n, d) and y (m, d), shape (n, m, d)."""
        return total(part.gradient(x, y) for part in self.parts)

    def with_gradient_dot(self, x: ArrayLike, y: ArrayLike) -> tuple[Array, ArrayFunction]:
        """As ``Kernel.with_gradient_dot(x, y)``, from those of the parts."""
        grams, dots = zip(*(part.with_gradient_dot(x, y) for part in self.parts), strict=True)
        return total(grams), lambda weights: total(dot(weights) for dot in dots)

    def domain(self, dim: int) -> tuple[Array, Array]:
        """Lower and upper ends, each (dim,), of the box where the kernel is defined."""
        return _common_domain(self.parts, dim)


@dataclass(frozen=True, eq=False, init=False)
class ScaledKernel(Kernel):
    """A kernel times a positive number, written ``2.0 * k``.

    Parameters
    ----------
    kernel : Kernel
    factor : float
        Between 1e-100 and 1e100.

    Raises
    ------
    ValueError
        If `factor` is not in this range.
    TypeError
        If `factor` is not a number.

    Notes
    -----
    A call costs as much as one of the kernel, O(n m d) time for most, and O(n m).

    Examples
    --------
    >>> from bqlib import Brownian
    >>> kernel = 2.0 * Brownian()
    >>> kernel([[0.5]], [[0.5]])
    array([[1.]])
    """

    kernel: Kernel
    factor: float

    def __init__(self, kernel: Kernel, factor: float):
        object.__setattr__(self, "kernel", kernel)
        object.__setattr__(self, "factor", checked_height(factor, "the factor"))

    @property
    def dim(self) -> int | None:
        """Dimension of the points, or None for any dimension."""
        return self.kernel.dim

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Gram matrix of x (n, d) against y (m, d), shape (n, m)."""
        return self.factor * self.kernel(x, y)

    def diagonal(self, x: ArrayLike) -> Array:
        """k(x_i, x_i) for x (n, d), shape (n,)."""
        return self.factor * self.kernel.diagonal(x)

    def gradient(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Gradient of k(x_i, y_j) in x_i for x (n, d) and y (m, d), shape (n, m, d)."""
        return self.factor * self.kernel.gradient(x, y)

    def with_gradient_dot(self, x: ArrayLike, y: ArrayLike) -> tuple[Array, ArrayFunction]:
        """As ``Kernel.with_gradient_dot(x, y)``, from that of the kernel."""
        gram, dot = self.kernel.with_gradient_dot(x, y)
        return self.factor * gram, lambda weights: self.factor * dot(weights)

    def domain(self, dim: int) -> tuple[Array, Array]:
        """Lower and upper ends, each (dim,), of the box where the kernel is defined."""
        return self.kernel.domain(dim)


@dataclass(frozen=True, eq=False, init=False)
class ProductKernel(Kernel):
    """Product of kernels, written ``k1 * k2``.

    It has an embedding if its factors use different coordinates (:class:`OnCoordinates`) that are
    independent under the target.

    Parameters
    ----------
    *parts : Kernel
        The factors.

    Raises
    ------
    ValueError
        If they are for points of different dimensions.

    Notes
    -----
    A call costs as much as those of its parts together: O(n m d) time for each in most cases.

    Examples
    --------
    >>> from bqlib import Brownian, Matern
    >>> kernel = Matern(0.5) * Brownian()
    >>> kernel([[0.5]], [[0.5]])
    array([[0.5]])
    """

    parts: tuple[Kernel, ...]
    _dim: int | None = field(init=False, repr=False)

    def __init__(self, *parts: Kernel):
        object.__setattr__(self, "parts", parts)
        object.__setattr__(self, "_dim", _common_dim(parts))

    @property
    def dim(self) -> int | None:
        """Dimension of the points, or None for any dimension."""
        return self._dim

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Gram matrix of x (n, d) against y (m, d), shape (n, m)."""
        return np.prod([part(x, y) for part in self.parts], axis=0)

    def diagonal(self, x: ArrayLike) -> Array:
        """k(x_i, x_i) for x (n, d), shape (n,)."""
        return np.prod([part.diagonal(x) for part in self.parts], axis=0)

    def gradient(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Gradient of k(x_i, y_j) in x_i for x (n, d) and y (m, d), shape (n, m, d)."""
        values = np.array([part(x, y) for part in self.parts])
        return total(
            np.prod(np.delete(values, i, axis=0), axis=0)[:, :, None] * part.gradient(x, y)
            for i, part in enumerate(self.parts)
        )

    def with_gradient_dot(self, x: ArrayLike, y: ArrayLike) -> tuple[Array, ArrayFunction]:
        """As ``Kernel.with_gradient_dot(x, y)``, from those of the parts."""
        grams, dots = zip(*(part.with_gradient_dot(x, y) for part in self.parts), strict=True)

        def gradient_dot(weights: Array) -> Array:
            others = (np.prod([*grams[:i], *grams[i + 1 :]], axis=0) for i in range(len(grams)))
            return total(dot(weights * rest) for dot, rest in zip(dots, others, strict=True))

        return np.prod(grams, axis=0), gradient_dot

    def domain(self, dim: int) -> tuple[Array, Array]:
        """Lower and upper ends, each (dim,), of the box where the kernel is defined."""
        return _common_domain(self.parts, dim)


@dataclass(frozen=True, eq=False, init=False)
class OnCoordinates(Kernel):
    """A kernel that uses only some coordinates of the points.

    Parameters
    ----------
    kernel : Kernel
        For points of as many dimensions as there are coordinates.
    coordinates : sequence of int
        The coordinates that it uses, counted from 0, in the order in which `kernel` gets them.

    Raises
    ------
    ValueError
        If a coordinate is negative or repeated, or their number is not the kernel's dimension. The
        kernel raises it for points that lack a coordinate.
    TypeError
        If a coordinate is not a whole number.

    Notes
    -----
    A call costs as much as that of `kernel`, O(n m c) time for most kernels and c coordinates.

    Examples
    --------
    >>> from bqlib import Brownian, Matern, OnCoordinates
    >>> kernel = OnCoordinates(Matern(0.5), [0]) * OnCoordinates(Brownian(), [1])
    >>> kernel([[0.0, 0.5]], [[0.0, 0.2]])
    array([[0.2]])
    """

    kernel: Kernel
    coordinates: tuple[int, ...]

    dim = None

    def __init__(self, kernel: Kernel, coordinates: Sequence[int]):
        own = tuple(checked_count(c, "a coordinate", None) for c in coordinates)
        if not own or min(own) < 0 or len(set(own)) < len(own):
            raise ValueError(
                f"coordinates are {own}; give at least one, all different, counted from 0"
            )
        if kernel.dim not in (None, len(own)):
            raise ValueError(
                f"there are {len(own)} coordinates for a kernel of dimension {kernel.dim}; give "
                "one for each dimension"
            )
        object.__setattr__(self, "kernel", kernel)
        object.__setattr__(self, "coordinates", own)

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Gram matrix of x (n, d) against y (m, d), shape (n, m)."""
        x, y = self._points(x, y)
        return self.kernel(x[:, self.coordinates], y[:, self.coordinates])

    def diagonal(self, x: ArrayLike) -> Array:
        """k(x_i, x_i) for x (n, d), shape (n,)."""
        (x,) = self._points(x)
        return self.kernel.diagonal(x[:, self.coordinates])

    def gradient(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Gradient of k(x_i, y_j) in x_i for x (n, d) and y (m, d), shape (n, m, d)."""
        x, y = self._points(x, y)
        gradient = np.zeros((len(x), len(y), x.shape[1]))
        part = self.kernel.gradient(x[:, self.coordinates], y[:, self.coordinates])
        gradient[:, :, self.coordinates] = part
        return gradient

    def with_gradient_dot(self, x: ArrayLike, y: ArrayLike) -> tuple[Array, ArrayFunction]:
        """As ``Kernel.with_gradient_dot(x, y)``, from that of the kernel."""
        x, y = self._points(x, y)
        own = list(self.coordinates)
        gram, dot = self.kernel.with_gradient_dot(x[:, own], y[:, own])

        def gradient_dot(weights: Array) -> Array:
            found = np.zeros(x.shape)
            found[:, own] = dot(weights)
            return found

        return gram, gradient_dot

    def domain(self, dim: int) -> tuple[Array, Array]:
        """Lower and upper ends, each (dim,), of the box where the kernel is defined."""
        lower, upper = super().domain(dim)
        seen = list(self.coordinates)
        lower[seen], upper[seen] = self.kernel.domain(len(seen))
        return lower, upper

    def _points(self, *sets: ArrayLike) -> list[Array]:
        checked = super()._points(*sets)
        dim, last = checked[0].shape[1], max(self.coordinates)
        if last >= dim:
            raise ValueError(
                f"points of dimension {dim} have no coordinate {last}; coordinates are counted "
                "from 0"
            )
        return checked


def _common_dim(kernels: Sequence[Kernel]) -> int | None:
    dims = {kernel.dim for kernel in kernels if kernel.dim is not None}
    if len(dims) > 1:
        raise ValueError(
            f"the kernels are for points of different dimensions: {sorted(dims)}; all must be equal"
        )
    return dims.pop() if dims else None


def _common_domain(kernels: Sequence[Kernel], dim: int) -> tuple[Array, Array]:
    lower, upper = zip(*(kernel.domain(dim) for kernel in kernels), strict=True)
    return np.max(lower, axis=0), np.min(upper, axis=0)
