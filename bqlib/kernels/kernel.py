"""What all kernels share: arithmetic, and the checks of points and of scales."""

from __future__ import annotations

import math
from abc import ABC, abstractmethod
from collections.abc import Sequence
from numbers import Real

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import cdist, pdist

from bqlib.answers import checked_gradient
from bqlib.arrays import Array, ArrayFunction
from bqlib.checks import LONGEST, SHORTEST, checked_points


class Kernel(ABC):
    """A covariance function. A kernel of your own needs the abstract methods of this class.

    A kernel defined only on a box also needs its own :meth:`domain`.
    """

    __array_ufunc__ = None  # so that numpy numbers, too, leave `number * kernel` to the kernel

    @property
    @abstractmethod
    def dim(self) -> int | None:
        """Dimension of the points, or None for any dimension."""

    @abstractmethod
    def __call__(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Gram matrix of x (n, d) against y (m, d), shape (n, m)."""

    @abstractmethod
    def diagonal(self, x: ArrayLike) -> Array:
        """k(x_i, x_i) for x (n, d), shape (n,)."""

    @abstractmethod
    def gradient(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Gradient of k(x_i, y_j) in x_i for x (n, d) and y (m, d), shape (n, m, d)."""

    def with_gradient_dot(self, x: ArrayLike, y: ArrayLike) -> tuple[Array, ArrayFunction]:
        """k(x, y) (n, m), and sum_j w_ij gradient(x, y)[i, j] (n, d) as a function of w.

        The weights w have shape (n, m), or (m,) if they are the same for all i. Do not change the
        matrix before the last call of the function, which may use it. O(n m d) time. This version
        calls :meth:`gradient` and takes O(n m d) memory; kernels that need less have their own.
        """
        x, y = self._points(x, y)

        def gradient_dot(weights: Array) -> Array:
            slopes = checked_gradient(self, x, y)
            return np.einsum("ijd,ij->id", slopes, np.broadcast_to(weights, slopes.shape[:2]))

        return self(x, y), gradient_dot

    def domain(self, dim: int) -> tuple[Array, Array]:
        """Lower and upper ends, each (dim,), of the box where the kernel is defined."""
        return np.full(dim, -LONGEST), np.full(dim, LONGEST)

    def __add__(self, other: Kernel) -> Kernel:
        from bqlib.kernels.algebra import SumKernel  # the one natural circle

        return SumKernel(self, other) if isinstance(other, Kernel) else NotImplemented

    def __radd__(self, other: float) -> Kernel:
        # Python's sum starts at 0.
        return self if isinstance(other, Real) and other == 0 else NotImplemented

    def __mul__(self, other: Kernel | float) -> Kernel:
        from bqlib.kernels.algebra import ProductKernel, ScaledKernel  # as above: a circle

        if isinstance(other, Kernel):
            return ProductKernel(self, other)
        if isinstance(other, Real) or (isinstance(other, np.ndarray) and other.ndim == 0):
            return ScaledKernel(self, other)
        return NotImplemented

    __rmul__ = __mul__

    def _points(self, *sets: ArrayLike) -> list[Array]:
        """The point sets as float arrays, all of one dimension that fits the kernel."""
        first = checked_points(sets[0], self.dim)
        return [first, *(checked_points(points, first.shape[1]) for points in sets[1:])]


def checked_scale(scale: str) -> str:
    if scale not in ("unit", "density"):
        raise ValueError(f'scale is {scale!r}; it must be "unit" or "density"')
    return scale


def density_height(height: float, scales: Array) -> float:
    """Height of a density of this height at unit scales, at other scales in its coordinates."""
    volume = math.prod(scales.tolist())  # for so few of them numpy takes several times as long
    height = float(height) / volume if volume else math.inf
    if not SHORTEST**2 <= height <= LONGEST**2:
        raise ValueError(
            f"as a density in dimension {len(scales)} this kernel has height {height:g}, out of "
            'the range of float64: change the unit of length or use scale="unit"'
        )
    return height


def dim_of(lengthscale: float | Array) -> int | None:
    """Number of length-scales, or None for one that serves all coordinates."""
    return len(lengthscale) if isinstance(lengthscale, np.ndarray) else None


def take(lengthscale: float | Array, coordinates: Sequence[int]) -> float | Array:
    """The length-scales of some coordinates."""
    return lengthscale[list(coordinates)] if isinstance(lengthscale, np.ndarray) else lengthscale


def weighted_differences(weights: Array, x: Array, y: Array) -> Array:
    """sum_j w_ij (y_j - x_i) for weights (n, m), shape (n, d), as one matrix product.

    Its rounding is that of the extent of y, not of the differences, so y is centred.
    """
    centre = y.mean(axis=0) if len(y) else 0.0
    sums = weights @ np.column_stack([y - centre, np.ones(len(y))])
    return sums[:, :-1] - (x - centre) * sums[:, -1:]


def scaled_squares(*sets: Array, lengthscale: float | Array) -> Array:
    """|(x_i - y_j) / lengthscale|^2, from differences (never |x|^2 - 2xy + |y|^2).

    Shape (n, m) for two sets of points. Of one set (n, d), those of its pairs, (n (n - 1) / 2,).
    """
    distances = cdist if len(sets) == 2 else pdist
    if isinstance(lengthscale, np.ndarray):
        return distances(*sets, "sqeuclidean", w=1 / np.square(lengthscale))
    squares: Array = distances(*sets, "sqeuclidean")
    squares /= lengthscale**2
    return squares


def recalled(
    known: list[tuple[Array, Array]], x: Array, function: ArrayFunction
) -> tuple[Array, list[tuple[Array, Array]]]:
    """function(x), and what to know at the next call: the last two sets of points, and theirs.

    Designs call row after row against one pool and, in between, against a part of it.
    """
    if len(x) == 1:
        return function(x), known
    same = [pair for pair in known if np.array_equal(pair[0], x)]
    latest = same[0] if same else (x.copy(), function(x))
    others = [pair for pair in known if pair is not latest]
    return latest[1], [latest, *others[:1]]
