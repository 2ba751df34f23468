"""The exponentiated quadratic kernel."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import squareform

from bqlib.arrays import Array, ArrayFunction, read_only, solve_lower, with_read_only_arrays
from bqlib.checks import checked_covariance, checked_lengthscale
from bqlib.kernels.kernel import (
    Kernel,
    checked_scale,
    density_height,
    dim_of,
    scaled_squares,
    take,
    weighted_differences,
)


@dataclass(frozen=True, eq=False, init=False)
class ExponentiatedQuadratic(Kernel):
    r"""Exponentiated quadratic kernel, also called Gaussian, RBF or squared exponential.

    ``k(x, y) = h exp(-(x - y)' L^{-1} (x - y) / 2)`` with height ``h``.

    Parameters
    ----------
    lengthscale : float or array_like, shape (d,), optional
        One length-scale for all coordinates (L = lengthscale**2 I), or one for each
        (L = diag(lengthscale**2)), in the units of x.
    covariance : array_like, shape (d, d), optional
        The matrix L, symmetric positive definite. Give this or `lengthscale`, not both.
    scale : {"unit", "density"}
        ``"unit"`` (default): h = 1. ``"density"``: h makes k(., y) integrate to one (the convention
        of Huszar and Duvenaud, 2012).

    Raises
    ------
    ValueError
        If a length-scale is not finite and positive, or `covariance` is not symmetric positive
        definite. A call raises it for points of another dimension, NaN or infinity.

    Notes
    -----
    A call costs O(n m d) time and O(n m) memory, with a full covariance O(d^2 (n + m)) more.

    References
    ----------
    Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, section 4.2.1.

    Examples
    --------
    >>> from bqlib import ExponentiatedQuadratic
    >>> kernel = ExponentiatedQuadratic(0.5)
    >>> kernel([[0.0, 0.0]], [[0.0, 0.0], [0.5, 0.0]]).round(4)
    array([[1.    , 0.6065]])
    """

    lengthscale: float | Array | None
    covariance: Array | None
    scale: str
    _factor: Array = field(init=False, repr=False)  # of the covariance, where that is given

    def __init__(
        self,
        lengthscale: ArrayLike | None = None,
        covariance: ArrayLike | None = None,
        scale: str = "unit",
    ):
        if (lengthscale is None) == (covariance is None):
            raise ValueError("give exactly one of lengthscale and covariance")
        object.__setattr__(self, "scale", checked_scale(scale))
        object.__setattr__(self, "lengthscale", None)
        object.__setattr__(self, "covariance", None)
        if lengthscale is not None:
            object.__setattr__(self, "lengthscale", checked_lengthscale(lengthscale))
        if covariance is not None:
            matrix, factor = checked_covariance(covariance, "covariance")
            object.__setattr__(self, "covariance", read_only(matrix))
            object.__setattr__(self, "_factor", read_only(factor))

    __setstate__ = with_read_only_arrays

    @property
    def dim(self) -> int | None:
        """Dimension of the points, or None for any dimension."""
        return len(self._factor) if self.lengthscale is None else dim_of(self.lengthscale)

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Gram matrix of x (n, d) against y (m, d), shape (n, m)."""
        x, y = self._points(x, y)
        if x is y and len(x) > 1:  # one half of the matrix says all
            gram = squareform(self._values(x), checks=False)
            np.fill_diagonal(gram, self.height(x.shape[1]))
            return gram
        return self._values(x, y)

    def _values(self, *sets: Array) -> Array:
        """k of all pairs (n, m) of two sets of points, or of those in one, as pdist has them."""
        if self.lengthscale is not None:
            values = scaled_squares(*sets, lengthscale=self.lengthscale)
        else:
            white = [solve_lower(self._factor, points.T).T for points in sets]
            values = scaled_squares(*white, lengthscale=1.0)
        values *= -0.5
        np.exp(values, out=values)
        if self.scale == "density":
            values *= self.height(sets[0].shape[1])
        return values

    def diagonal(self, x: ArrayLike) -> Array:
        """k(x_i, x_i) for x (n, d), shape (n,)."""
        (x,) = self._points(x)
        return np.full(len(x), self.height(x.shape[1]))

    def gradient(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Gradient of k(x_i, y_j) in x_i for x (n, d) and y (m, d), shape (n, m, d)."""
        x, y = self._points(x, y)
        difference = y[None, :, :] - x[:, None, :]
        if self.lengthscale is not None:
            scaled = difference / np.square(self.lengthscale)
        else:
            half = solve_lower(self._factor, difference.reshape(-1, x.shape[1]).T)
            scaled = solve_lower(self._factor, half, transposed=True).T.reshape(difference.shape)
        return scaled * self(x, y)[:, :, None]

    def with_gradient_dot(self, x: ArrayLike, y: ArrayLike) -> tuple[Array, ArrayFunction]:
        """As ``Kernel.with_gradient_dot(x, y)``, in O(n m) memory."""
        x, y = self._points(x, y)
        gram = self(x, y)

        def gradient_dot(weights: Array) -> Array:
            differences = weighted_differences(gram * weights, x, y)
            if self.lengthscale is not None:
                return differences / np.square(self.lengthscale)
            half = solve_lower(self._factor, differences.T)
            return solve_lower(self._factor, half, transposed=True).T

        return gram, gradient_dot

    def in_lengthscales(self, x: Array) -> Array:
        """x (n, d) in coordinates in which L is the unit matrix, about the same origin."""
        if self.lengthscale is not None:
            return x / self.lengthscale
        return solve_lower(self._factor, x.T).T

    def height(self, dim: int) -> float:
        """k(x, x) for points of dimension `dim`."""
        if self.scale == "unit":
            return 1.0
        if self.lengthscale is None:
            scales = np.diag(self._factor)
        else:
            scales = np.full(dim, self.lengthscale)
        return density_height((2 * np.pi) ** (-dim / 2), scales)

    def metric(self, dim: int) -> Array:
        """The matrix L, shape (dim, dim)."""
        if self.lengthscale is not None:
            return np.diag(np.square(np.broadcast_to(self.lengthscale, dim)))
        assert self.covariance is not None
        return self.covariance

    def block(self, coordinates: Sequence[int]) -> Kernel:
        """The factor of this kernel that acts on some coordinates."""
        if self.lengthscale is None:
            raise ValueError(
                "an ExponentiatedQuadratic with covariance= is not a product over coordinates, "
                "which this target needs; use lengthscale=, with one number for each coordinate"
            )
        return ExponentiatedQuadratic(take(self.lengthscale, coordinates), scale=self.scale)
