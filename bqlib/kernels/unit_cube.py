"""Kernels on the unit cube."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import factorial

import numpy as np
from numpy.typing import ArrayLike

from bqlib.arrays import Array, polyval, product_gradient
from bqlib.checks import checked_count
from bqlib.kernels.kernel import Kernel


class UnitCubeKernel(Kernel):
    """A product over coordinates of one kernel on [0, 1], for points of any dimension.

    Each subclass has the kernel on [0, 1], ``_value(x, y)``, and its derivative in x,
    ``_slope(x, y)``, for arrays that broadcast. A call costs O(n m d) time.
    """

    dim = None

    @abstractmethod
    def _value(self, x: Array, y: Array) -> Array: ...

    @abstractmethod
    def _slope(self, x: Array, y: Array) -> Array: ...

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Gram matrix of x (n, d) against y (m, d), shape (n, m)."""
        x, y = self._points(x, y)
        gram = np.ones((len(x), len(y)))
        for c in range(x.shape[1]):
            gram *= self._value(x[:, c, None], y[None, :, c])
        return gram

    def diagonal(self, x: ArrayLike) -> Array:
        """k(x_i, x_i) for x (n, d), shape (n,)."""
        (x,) = self._points(x)
        return np.prod(self._value(x, x), axis=1)

    def gradient(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Gradient of k(x_i, y_j) in x_i for x (n, d) and y (m, d), shape (n, m, d)."""
        x, y = self._points(x, y)
        columns = x.T[:, :, None], y.T[:, None, :]
        return product_gradient(self._value(*columns), self._slope(*columns))

    def domain(self, dim: int) -> tuple[Array, Array]:
        """Lower and upper ends, each (dim,), of the box where the kernel is defined."""
        return np.zeros(dim), np.ones(dim)

    def block(self, coordinates: Sequence[int]) -> Kernel:
        """The factor of this kernel that acts on some coordinates."""
        return self

    def _points(self, *sets: ArrayLike) -> list[Array]:
        checked = super()._points(*sets)
        for points in checked:
            if points.size and not (points.min() >= 0 and points.max() <= 1):
                raise ValueError(
                    f"{type(self).__name__} is defined only on [0, 1]^d, but a point lies outside: "
                    "rescale the points"
                )
        return checked


@dataclass(frozen=True, eq=False)
class Brownian(UnitCubeKernel):
    """Brownian motion on [0, 1]: min(x, y) in each coordinate (d > 1: the Brownian sheet).

    Under the uniform distribution in one dimension the best n points are 2 i / (2 n + 1), and the
    least MMD^2 is 1 / (3 (2 n + 1)^2).

    Raises
    ------
    ValueError
        If a point lies outside [0, 1]^d, or is NaN. An embedding raises it for a target other than
        the uniform distribution on [0, 1]^d and data in it.

    Notes
    -----
    A call costs O(n m d) time and O(n m) memory.

    References
    ----------
    Ritter, "Average-Case Analysis of Numerical Problems", 2000.

    Examples
    --------
    >>> from bqlib import Brownian
    >>> Brownian()([[0.5, 0.5]], [[0.2, 0.8]])
    array([[0.1]])
    """

    def _value(self, x: Array, y: Array) -> Array:
        return np.minimum(x, y)

    def _slope(self, x: Array, y: Array) -> Array:
        return np.heaviside(y - x, 0.5)


@dataclass(frozen=True, eq=False)
class BrownianBridge(UnitCubeKernel):
    """Brownian bridge, tied to zero at 0 and 1: min(x, y) - x y in each coordinate.

    Raises
    ------
    ValueError
        If a point lies outside [0, 1]^d, or is NaN. An embedding raises it for a target other than
        the uniform distribution on [0, 1]^d and data in it.

    Notes
    -----
    A call costs O(n m d) time and O(n m) memory.

    References
    ----------
    Ritter, "Average-Case Analysis of Numerical Problems", 2000.

    Examples
    --------
    >>> from bqlib import BrownianBridge
    >>> BrownianBridge()([[0.5]], [[0.25]])
    array([[0.125]])
    """

    def _value(self, x: Array, y: Array) -> Array:
        return np.minimum(x, y) - x * y

    def _slope(self, x: Array, y: Array) -> Array:
        return np.heaviside(y - x, 0.5) - y


@dataclass(frozen=True, eq=False)
class IntegratedBrownian(UnitCubeKernel):
    """Integral of Brownian motion from 0: m^2 (3 M - m) / 6, m = min(x, y), M = max(x, y).

    Raises
    ------
    ValueError
        If a point lies outside [0, 1]^d, or is NaN. An embedding raises it for a target other than
        the uniform distribution on [0, 1]^d and data in it.

    Notes
    -----
    A call costs O(n m d) time and O(n m) memory.

    References
    ----------
    Ritter, "Average-Case Analysis of Numerical Problems", 2000.

    Examples
    --------
    >>> from bqlib import IntegratedBrownian
    >>> IntegratedBrownian()([[1.0]], [[0.5]]).round(6)
    array([[0.104167]])
    """

    def _value(self, x: Array, y: Array) -> Array:
        low, high = np.minimum(x, y), np.maximum(x, y)
        return low**2 * (3 * high - low) / 6

    def _slope(self, x: Array, y: Array) -> Array:
        low = np.minimum(x, y)
        return low * y - low**2 / 2


@dataclass(frozen=True, eq=False)
class L2Star(UnitCubeKernel):
    """The kernel 1 - max(x, y) in each coordinate, whose MMD is the L2-star discrepancy.

    Equal weights on n points have, under the uniform distribution on the unit cube, exactly the
    MMD that ``scipy.stats.qmc.discrepancy(points, method="L2-star")`` gives.

    Raises
    ------
    ValueError
        If a point lies outside [0, 1]^d, or is NaN. An embedding raises it for a target other than
        the uniform distribution on [0, 1]^d and data in it.

    Notes
    -----
    A call costs O(n m d) time and O(n m) memory.

    References
    ----------
    Warnock, "Computational investigations of low-discrepancy point sets", 1972.

    Examples
    --------
    >>> from bqlib import L2Star
    >>> L2Star()([[0.5]], [[0.25]])
    array([[0.5]])
    """

    def _value(self, x: Array, y: Array) -> Array:
        return 1 - np.maximum(x, y)

    def _slope(self, x: Array, y: Array) -> Array:
        return -np.heaviside(x - y, 0.5)


# The Korobov kernel of order s is 1 + c_s P_s(t (t - 1)) in each coordinate, with t = |x - y|.
# These are c_s = (2 pi)^(2 s) / (2 s)! and the coefficients of P_s, which is the Bernoulli
# polynomial B_2s up to its sign. In t (t - 1) it has no cancellation near t = 0 and t = 1.
KOROBOV_HEIGHT = {s: (2 * np.pi) ** (2 * s) / factorial(2 * s) for s in (1, 2, 3)}
KOROBOV_VALUE: dict[int, tuple[float, ...]] = {
    1: (1 / 6, 1.0),
    2: (1 / 30, 0.0, -1.0),
    3: (1 / 42, 0.0, -0.5, 1.0),
}
KOROBOV_SLOPE: dict[int, tuple[float, ...]] = {1: (1.0,), 2: (0.0, -2.0), 3: (0.0, -1.0, 3.0)}


@dataclass(frozen=True, eq=False)
class Korobov(UnitCubeKernel):
    """Korobov kernel of order s: a periodic kernel, by a Bernoulli polynomial in each coordinate.

    The factor of a coordinate is 1 + (-1)^(s-1) (2 pi)^(2s) / (2s)! B_2s({x - y}), where {t} is the
    fractional part. For order 1 it is 1 + 2 pi^2 B_2({x - y}), with B_2(t) = t^2 - t + 1/6. As a
    series it is 1 + 2 sum_h cos(2 pi h (x - y)) / h^(2s), over h = 1, 2, ...

    Parameters
    ----------
    order : {1, 2, 3}
        How many square-integrable derivatives f has in each coordinate (default: 1).

    Raises
    ------
    ValueError
        If `order` is another whole number, or if a point lies outside [0, 1]^d, or is NaN. An
        embedding raises it for a target other than the uniform distribution on [0, 1]^d and data
        in it.
    TypeError
        If `order` is no whole number.

    Notes
    -----
    A call costs O(n m d) time and O(n m) memory. In one coordinate, the error of a value is at most
    1e-15 k(x, x). The kernel mean under the uniform distribution is 1.

    References
    ----------
    Sloan and Joe, "Lattice Methods for Multiple Integration", 1994.

    Examples
    --------
    >>> from bqlib import Korobov
    >>> Korobov()([[0.25]], [[0.25]]).round(6)
    array([[4.289868]])
    >>> Korobov(order=3)([[0.25]], [[0.75]]).round(6)
    array([[-0.971102]])
    """

    order: int = 1

    def __post_init__(self) -> None:
        object.__setattr__(self, "order", checked_count(self.order, "order", least=None))
        if self.order not in KOROBOV_VALUE:
            raise ValueError(f"order is {self.order}; it must be 1, 2 or 3")

    def _value(self, x: Array, y: Array) -> Array:
        t = np.abs(x - y)
        value: Array = polyval(t * (t - 1), KOROBOV_VALUE[self.order])
        value *= KOROBOV_HEIGHT[self.order]
        value += 1
        return value

    def _slope(self, x: Array, y: Array) -> Array:
        t = np.abs(x - y)
        outer = KOROBOV_HEIGHT[self.order] * polyval(t * (t - 1), KOROBOV_SLOPE[self.order])
        return outer * (2 * (x - y) - np.sign(x - y))
