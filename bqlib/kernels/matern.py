"""Matern kernels."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import gamma

import numpy as np
from numpy.typing import ArrayLike

from bqlib.arrays import Array, ArrayFunction, polyval, with_read_only_arrays
from bqlib.checks import checked_lengthscale, checked_number
from bqlib.kernels.kernel import Kernel, checked_scale, density_height, dim_of, take

# A Matern kernel is P(rho) exp(-rho) in each coordinate, with rho = sqrt(2 nu) |x - y| / l. These
# are the coefficients of P, and those of D in its derivative, -D(rho) exp(-rho).
MATERN_VALUE: dict[float, tuple[float, ...]] = {
    0.5: (1.0,),
    1.5: (1.0, 1.0),
    2.5: (1.0, 1.0, 1 / 3),
}
MATERN_SLOPE: dict[float, tuple[float, ...]] = {
    0.5: (1.0,),
    1.5: (0.0, 1.0),
    2.5: (0.0, 1 / 3, 1 / 3),
}

TOGETHER = 8  # coordinates whose polynomials are multiplied before any exp(-rho): below 1e61
FARTHEST = 1e4  # a rho for which exp(-rho) is zero since long; more could overflow in a product


@dataclass(frozen=True, eq=False, init=False)
class Matern(Kernel):
    r"""Matern kernel, as a product over coordinates.

    With rho_c = sqrt(2 nu) |x_c - y_c| / l_c, the factor of coordinate c is exp(-rho_c) for
    nu = 1/2, (1 + rho_c) exp(-rho_c) for 3/2 and (1 + rho_c + rho_c^2 / 3) exp(-rho_c) for 5/2.
    In more than one dimension this is not the kernel of the Euclidean distance |x - y|, which
    has no closed-form kernel means.

    Parameters
    ----------
    lengthscale : float or array_like, shape (d,)
        One for all coordinates, or one for each, in the units of x.
    nu : {0.5, 1.5, 2.5}
        Smoothness: sample paths are nu - 1/2 times differentiable (default: 2.5).
    scale : {"unit", "density"}
        ``"unit"`` (default): k(x, x) = 1. ``"density"``: k(., y) integrates to one.

    Raises
    ------
    ValueError
        If a length-scale is not finite and positive, `nu` is not 0.5, 1.5 or 2.5, or `scale` is
        another word. A call raises it for points of another dimension, NaN or infinity.

    Notes
    -----
    A call costs O(n m d) time and O(n m) memory. Relative error of values and gradients: at most
    4e-16 (10 + log(k(x, x) / k(x, y))).

    References
    ----------
    Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, section 4.2.1.

    Examples
    --------
    >>> from bqlib import Matern
    >>> Matern(1.0, nu=0.5)([[0.0, 0.0]], [[1.0, 1.0]]).round(6)
    array([[0.135335]])
    """

    lengthscale: float | Array
    nu: float
    scale: str

    def __init__(self, lengthscale: ArrayLike, nu: float = 2.5, scale: str = "unit"):
        object.__setattr__(self, "scale", checked_scale(scale))
        object.__setattr__(self, "nu", checked_number(nu, "nu"))
        if self.nu not in MATERN_VALUE:
            raise ValueError(f"nu is {self.nu}; it must be 0.5, 1.5 or 2.5")
        object.__setattr__(self, "lengthscale", checked_lengthscale(lengthscale))

    __setstate__ = with_read_only_arrays

    @property
    def dim(self) -> int | None:
        """Dimension of the points, or None for any dimension."""
        return dim_of(self.lengthscale)

    def rates(self, dim: int) -> Array:
        """sqrt(2 nu) / l_c for each coordinate, shape (dim,)."""
        return np.sqrt(2 * self.nu) / np.broadcast_to(self.lengthscale, dim)

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Gram matrix of x (n, d) against y (m, d), shape (n, m)."""
        x, y = self._points(x, y)
        gram = np.full((len(x), len(y)), self.height(x.shape[1]))
        total = np.zeros_like(gram)
        for c, rate in enumerate(self.rates(x.shape[1])):
            rho = np.abs(x[:, c, None] - y[None, :, c])
            rho *= rate
            np.minimum(rho, FARTHEST, out=rho)
            total += rho
            if self.nu > 0.5:
                gram *= polyval(rho, MATERN_VALUE[self.nu])
            if c % TOGETHER == TOGETHER - 1 or c == x.shape[1] - 1:
                np.negative(total, out=total)
                gram *= np.exp(total, out=total)
                total[:] = 0.0
        return gram

    def diagonal(self, x: ArrayLike) -> Array:
        """k(x_i, x_i) for x (n, d), shape (n,)."""
        (x,) = self._points(x)
        return np.full(len(x), self.height(x.shape[1]))

    def gradient(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Gradient of k(x_i, y_j) in x_i for x (n, d) and y (m, d), shape (n, m, d).

        Zero at x_i = y_j.
        """
        x, y = self._points(x, y)
        rates = self.rates(x.shape[1])
        difference = y[None, :, :] - x[:, None, :]
        rho = rates * np.abs(difference)
        relative = polyval(rho, MATERN_SLOPE[self.nu]) / polyval(rho, MATERN_VALUE[self.nu])
        return self(x, y)[:, :, None] * (rates * np.sign(difference) * relative)

    def with_gradient_dot(self, x: ArrayLike, y: ArrayLike) -> tuple[Array, ArrayFunction]:
        """As ``Kernel.with_gradient_dot(x, y)``, in O(n m) memory."""
        x, y = self._points(x, y)
        gram = self(x, y)

        def gradient_dot(weights: Array) -> Array:
            weighted, found = gram * weights, np.empty(x.shape)
            for c, rate in enumerate(self.rates(x.shape[1])):
                difference = y[None, :, c] - x[:, c, None]
                rho = rate * np.abs(difference)
                slope = polyval(rho, MATERN_SLOPE[self.nu]) / polyval(rho, MATERN_VALUE[self.nu])
                slope *= np.sign(difference)
                found[:, c] = rate * np.einsum("ij,ij->i", weighted, slope)
            return found

        return gram, gradient_dot

    def height(self, dim: int) -> float:
        """k(x, x) for points of dimension `dim`."""
        if self.scale == "unit":
            return 1.0
        # P(rho) exp(-rho) integrates to 2 sum_k k! p_k over the line.
        integral = 2 * sum(gamma(k + 1) * p for k, p in enumerate(MATERN_VALUE[self.nu]))
        return density_height(1.0, integral / self.rates(dim))

    def block(self, coordinates: Sequence[int]) -> Kernel:
        """The factor of this kernel that acts on some coordinates."""
        return Matern(take(self.lengthscale, coordinates), self.nu, self.scale)
