"""Kernels: covariance functions k(x, y), their diagonals and their gradients.

Every kernel is called on two point sets, ``kernel(x, y)``, and has ``diagonal(x)``,
``gradient(x, y)`` and ``dim`` (None where it fits points of any dimension).
"""

from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular
from scipy.spatial.distance import cdist


@dataclass(frozen=True, eq=False)
class ExponentiatedQuadratic:
    r"""Exponentiated quadratic kernel, also called Gaussian, RBF or squared exponential.

    ``k(x, y) = h exp(-(x - y)' L^{-1} (x - y) / 2)`` with height ``h``.

    Parameters
    ----------
    lengthscale : float or array_like, shape (d,), optional
        One length-scale for all coordinates (L = lengthscale**2 I), or one for each
        (L = diag(lengthscale**2)), in the units of x.
    covariance : array_like, shape (d, d), optional
        L itself, symmetric positive definite. Give this or `lengthscale`, not both.
    scale : {"unit", "density"}
        ``"unit"``: h = 1. ``"density"``: h makes k(., y) integrate to one (the convention of
        Huszar and Duvenaud, 2012).

    Raises
    ------
    ValueError
        If a length-scale is not finite and positive, or `covariance` is not symmetric positive
        definite.

    Notes
    -----
    A call costs O(n m d) time and O(n m) memory.

    Examples
    --------
    >>> kernel = ExponentiatedQuadratic(0.5)
    >>> kernel([[0.0, 0.0]], [[0.0, 0.0], [0.5, 0.0]]).round(4)
    array([[1.    , 0.6065]])
    """

    lengthscale: object = None
    covariance: object = None
    scale: str = "unit"

    def __post_init__(self):
        if self.scale not in ("unit", "density"):
            raise ValueError(f'scale is {self.scale!r}; it must be "unit" or "density"')
        if (self.lengthscale is None) == (self.covariance is None):
            raise ValueError("give either lengthscale or covariance, and not both")
        if self.covariance is not None:
            covariance = np.array(self.covariance, dtype=float)
            object.__setattr__(self, "covariance", covariance)
            object.__setattr__(self, "_factor", checked_cholesky(covariance, "covariance"))
            return
        lengthscale = np.array(self.lengthscale, dtype=float)
        if lengthscale.ndim > 1 or lengthscale.size == 0:
            raise ValueError(
                f"lengthscale has shape {lengthscale.shape}; give a number, one number for each "
                "coordinate, or a matrix as covariance="
            )
        if not (np.isfinite(lengthscale).all() and (lengthscale > 0).all()):
            raise ValueError(f"lengthscale is {self.lengthscale}; it must be finite and positive")
        object.__setattr__(
            self, "lengthscale", float(lengthscale) if lengthscale.ndim == 0 else lengthscale
        )

    @property
    def dim(self):
        """Dimension of the points, or None where any will do."""
        if self.covariance is not None:
            return len(self.covariance)
        return len(self.lengthscale) if np.ndim(self.lengthscale) else None

    def __call__(self, x, y):
        """Gram matrix of x (n, d) against y (m, d), shape (n, m)."""
        x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        gram = cdist(self._whiten(x), self._whiten(y), "sqeuclidean")
        gram *= -0.5
        np.exp(gram, out=gram)
        if self.scale == "density":
            gram *= self.height(x.shape[1])
        return gram

    def diagonal(self, x):
        """k(x_i, x_i) for x (n, d), shape (n,)."""
        x = np.asarray(x, dtype=float)
        return np.full(len(x), self.height(x.shape[1]))

    def gradient(self, x, y):
        """Gradient of k(x_i, y_j) in x_i, shape (n, m, d)."""
        x, y = np.asarray(x, dtype=float), np.asarray(y, dtype=float)
        difference = y[None, :, :] - x[:, None, :]
        if self.covariance is None:
            scaled = difference / np.square(self.lengthscale)
        else:
            half = solve_triangular(self._factor, difference.reshape(-1, x.shape[1]).T, lower=True)
            scaled = solve_triangular(self._factor, half, lower=True, trans="T")
            scaled = scaled.T.reshape(difference.shape)
        return scaled * self(x, y)[:, :, None]

    def height(self, dim):
        """k(x, x) for points of dimension `dim`."""
        if self.scale == "unit":
            return 1.0
        if self.covariance is not None:
            root_det = np.prod(np.diag(self._factor))
        else:
            root_det = np.prod(np.broadcast_to(self.lengthscale, dim))
        return float((2 * np.pi) ** (-dim / 2) / root_det)

    def metric(self, dim):
        """The matrix L, shape (dim, dim)."""
        if self.covariance is not None:
            return self.covariance
        return np.diag(np.square(np.broadcast_to(self.lengthscale, dim)))

    def _whiten(self, x):
        if self.covariance is None:
            return x / self.lengthscale
        return solve_triangular(self._factor, x.T, lower=True).T


def checked_cholesky(matrix, name):
    """Lower Cholesky factor of `matrix`, or a ValueError that says why it has none."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name} has shape {matrix.shape}; it must be square")
    if not np.isfinite(matrix).all():
        raise ValueError(f"{name} holds NaN or infinity")
    if not np.allclose(matrix, matrix.T, rtol=1e-12, atol=0):
        raise ValueError(f"{name} is not symmetric")
    try:
        return np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        smallest = np.linalg.eigvalsh(matrix)[0]
        raise ValueError(
            f"{name} is not positive definite (smallest eigenvalue {smallest:.3g})"
        ) from None
