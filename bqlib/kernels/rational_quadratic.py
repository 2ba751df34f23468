"""The rational quadratic kernel."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import poch

from bqlib.arrays import Array, ArrayFunction, with_read_only_arrays
from bqlib.checks import checked_lengthscale, checked_number
from bqlib.kernels.kernel import (
    Kernel,
    checked_scale,
    density_height,
    dim_of,
    scaled_squares,
    weighted_differences,
)


@dataclass(frozen=True, eq=False, init=False)
class RationalQuadratic(Kernel):
    r"""Rational quadratic kernel, k(x, y) = h (1 + |x - y|^2 / (2 alpha l^2))^(-alpha).

    A Gamma mixture of exponentiated quadratic kernels; alpha = 1 is the Cauchy kernel.

    Parameters
    ----------
    lengthscale : float or array_like, shape (d,)
        One for all coordinates, or one for each, in the units of x.
    alpha : float
        Weight of large length-scales: the tail is r^(-2 alpha), and alpha to infinity gives the
        exponentiated quadratic kernel (default: 1).
    scale : {"unit", "density"}
        ``"unit"`` (default): h = 1. ``"density"``: k(., y) integrates to one, for alpha > d / 2
        only.

    Raises
    ------
    ValueError
        If a length-scale or `alpha` is not finite and positive, or `scale` is another word. A call
        raises it for points of another dimension, NaN or infinity; an embedding, for `alpha`
        outside [0.1, 1e6].

    Notes
    -----
    A call costs O(n m d) time and O(n m) memory.

    An embedding costs much more than that of :class:`ExponentiatedQuadratic`, because it is a sum
    of such embeddings. For alpha = 1 it has 40 terms if points are up to 1 length-scale from the
    target, 61 if up to 10, and 165 if up to 10^6. In one dimension, alpha = 1 has a closed form
    instead.

    References
    ----------
    Rasmussen and Williams, "Gaussian Processes for Machine Learning", 2006, section 4.2.1.

    Examples
    --------
    >>> from bqlib import RationalQuadratic
    >>> RationalQuadratic(1.0, alpha=1.0)([[0.0]], [[1.0], [2.0]]).round(6)
    array([[0.666667, 0.333333]])
    """

    lengthscale: float | Array
    alpha: float
    scale: str

    def __init__(self, lengthscale: ArrayLike, alpha: float = 1.0, scale: str = "unit"):
        object.__setattr__(self, "scale", checked_scale(scale))
        object.__setattr__(self, "alpha", checked_number(alpha, "alpha"))
        if not (np.isfinite(self.alpha) and self.alpha > 0):
            raise ValueError(f"alpha is {self.alpha}; it must be finite and positive")
        object.__setattr__(self, "lengthscale", checked_lengthscale(lengthscale))

    __setstate__ = with_read_only_arrays

    @property
    def dim(self) -> int | None:
        """Dimension of the points, or None for any dimension."""
        return dim_of(self.lengthscale)

    def __call__(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Gram matrix of x (n, d) against y (m, d), shape (n, m)."""
        x, y = self._points(x, y)
        return self.height(x.shape[1]) * np.exp(-self.alpha * self._log_base(x, y))

    def diagonal(self, x: ArrayLike) -> Array:
        """k(x_i, x_i) for x (n, d), shape (n,)."""
        (x,) = self._points(x)
        return np.full(len(x), self.height(x.shape[1]))

    def gradient(self, x: ArrayLike, y: ArrayLike) -> Array:
        """Gradient of k(x_i, y_j) in x_i for x (n, d) and y (m, d), shape (n, m, d)."""
        x, y = self._points(x, y)
        difference = y[None, :, :] - x[:, None, :]
        slope = self.height(x.shape[1]) * np.exp(-(self.alpha + 1) * self._log_base(x, y))
        return slope[:, :, None] * difference / np.square(self.lengthscale)

    def with_gradient_dot(self, x: ArrayLike, y: ArrayLike) -> tuple[Array, ArrayFunction]:
        """As ``Kernel.with_gradient_dot(x, y)``, in O(n m) memory."""
        x, y = self._points(x, y)
        gram = self(x, y)

        def gradient_dot(weights: Array) -> Array:
            base = 1 + scaled_squares(x, y, lengthscale=self.lengthscale) / (2 * self.alpha)
            slope = gram / base
            return weighted_differences(slope * weights, x, y) / np.square(self.lengthscale)

        return gram, gradient_dot

    def _log_base(self, x: Array, y: Array) -> Array:
        # Not the base itself: where alpha is large, it rounds to one.
        return np.log1p(scaled_squares(x, y, lengthscale=self.lengthscale) / (2 * self.alpha))

    def height(self, dim: int) -> float:
        """k(x, x) for points of dimension `dim`."""
        if self.scale == "unit":
            return 1.0
        if self.alpha <= dim / 2:
            raise ValueError(
                f"alpha is {self.alpha}: in dimension {dim} the kernel has an integral only for "
                f'alpha above {dim / 2:g}; use a larger alpha, or scale="unit"'
            )
        # alpha^(d/2) Gamma(alpha - d/2) / Gamma(alpha), factor by factor: for large alpha each is
        # near one, and a difference of log Gammas would have no digit left.
        ratio = np.prod(self.alpha / (self.alpha - np.arange(1, dim // 2 + 1)))
        if dim % 2:
            ratio *= np.sqrt(self.alpha) / poch(self.alpha - dim / 2, 0.5)
        integral = (2 * np.pi) ** (dim / 2) * ratio
        return density_height(1 / integral, np.broadcast_to(self.lengthscale, dim))
