"""Densities known up to a constant: targets for Stein kernels, by their parameters alone."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.special import expit, log_expit

from bqlib.arrays import Array, read_only, with_read_only_arrays
from bqlib.checks import checked_array, checked_number, checked_points


@dataclass(frozen=True)
class Banana:
    """A bent normal distribution in the plane: x0 is normal, x1 is normal around bend (x0^2 - 1).

    Parameters
    ----------
    bend : float
        How strongly the second coordinate follows the square of the first (default: 0.5).

    Raises
    ------
    ValueError
        If `bend` is not finite. Methods raise it for points of another dimension, NaN or infinity.
    TypeError
        If it is no number.

    Notes
    -----
    It stands for posteriors known up to a constant, and so is not drawn from: pass the candidates
    as an array, or draw them from a box. A density, a score or second derivatives cost O(1) a
    point.

    References
    ----------
    Haario, Saksman and Tamminen, "Adaptive proposal distribution for random walk Metropolis
    algorithm", 1999.

    Examples
    --------
    >>> from bqlib.densities import Banana
    >>> Banana(bend=0.5).score([[1.0, 2.0]])
    array([[ 1., -2.]])
    """

    bend: float = 0.5

    def __post_init__(self) -> None:
        bend = checked_number(self.bend, "bend")
        if not np.isfinite(bend):
            raise ValueError(f"bend is {bend}; it must be finite")
        object.__setattr__(self, "bend", bend)

    @property
    def dim(self) -> int:
        """Dimension of the points, 2."""
        return 2

    def log_density(self, x: ArrayLike) -> Array:
        """Log density up to a constant at x (n, 2), shape (n,)."""
        x = checked_points(x, 2)
        return -(x[:, 0] ** 2 + self._rest(x) ** 2) / 2

    def score(self, x: ArrayLike) -> Array:
        """Gradient of the log density at x (n, 2), shape (n, 2)."""
        x = checked_points(x, 2)
        rest = self._rest(x)
        return np.stack([2 * self.bend * x[:, 0] * rest - x[:, 0], -rest], axis=1)

    def hessian(self, x: ArrayLike) -> Array:
        """Second derivatives of the log density at x (n, 2), shape (n, 2, 2)."""
        x = checked_points(x, 2)
        slope = 2 * self.bend * x[:, 0]
        found = np.empty((len(x), 2, 2))
        found[:, 0, 0] = 2 * self.bend * self._rest(x) - slope**2 - 1
        found[:, 0, 1] = found[:, 1, 0] = slope
        found[:, 1, 1] = -1
        return found

    def _rest(self, x: Array) -> Array:
        return x[:, 1] - self.bend * (x[:, 0] ** 2 - 1)


@dataclass(frozen=True, eq=False)
class LogisticPosterior:
    """Posterior of the coefficients of a logistic regression with a normal prior.

    The log density is sum_i log sigmoid(y_i f_i'x) - |x|^2 / (2 deviation^2), with y_i = 1 for a
    label of 1 and -1 for a label of 0.

    Parameters
    ----------
    features : array_like, shape (m, d)
        f_i, one row for each observation.
    labels : array_like, shape (m,)
        Zeros and ones.
    deviation : float
        Standard deviation of the prior of each coefficient (default: 1).

    Raises
    ------
    ValueError
        If the numbers of rows and labels differ, a number is not finite, a label is neither 0 nor
        1, or `deviation` is not finite and positive. Methods raise it for points of another
        dimension, NaN or infinity.
    TypeError
        If something is no number.

    Notes
    -----
    It is not drawn from: pass the candidates as an array, or draw them from a box. A density or a
    score costs O(m d) a point, second derivatives O(m d^2).

    Examples
    --------
    >>> from bqlib.densities import LogisticPosterior
    >>> LogisticPosterior([[1.0], [2.0]], [1, 0]).score([[0.0]])
    array([[-0.5]])
    """

    features: Array
    labels: Array
    deviation: float = 1.0

    def __init__(self, features: ArrayLike, labels: ArrayLike, deviation: float = 1.0):
        features = checked_points(features, None, "features")
        labels = checked_array(labels, "labels")
        if labels.shape != (len(features),):
            raise ValueError(
                f"labels has shape {labels.shape}; it must have one label for each of the "
                f"{len(features)} rows of features"
            )
        if not np.isin(labels, (0, 1)).all():
            raise ValueError("labels must be zeros and ones")
        deviation = checked_number(deviation, "deviation")
        if not (np.isfinite(deviation) and deviation > 0):
            raise ValueError(f"deviation is {deviation}; it must be finite and positive")
        object.__setattr__(self, "features", read_only(np.array(features)))
        object.__setattr__(self, "labels", read_only(np.array(labels)))
        object.__setattr__(self, "deviation", deviation)

    __setstate__ = with_read_only_arrays

    @property
    def dim(self) -> int:
        """Dimension of the points, the number of features."""
        return self.features.shape[1]

    def log_density(self, x: ArrayLike) -> Array:
        """Log density up to a constant at x (n, d), shape (n,)."""
        x = checked_points(x, self.dim)
        signs = 2 * self.labels - 1
        prior = np.square(x).sum(axis=1) / (2 * self.deviation**2)
        return log_expit(signs * (x @ self.features.T)).sum(axis=1) - prior

    def score(self, x: ArrayLike) -> Array:
        """Gradient of the log density at x (n, d), shape (n, d)."""
        x = checked_points(x, self.dim)
        return (self.labels - expit(x @ self.features.T)) @ self.features - x / self.deviation**2

    def hessian(self, x: ArrayLike) -> Array:
        """Second derivatives of the log density at x (n, d), shape (n, d, d)."""
        x = checked_points(x, self.dim)
        share = expit(x @ self.features.T)
        curvature = np.einsum("nm,mi,mj->nij", share * (1 - share), self.features, self.features)
        return -curvature - np.eye(self.dim) / self.deviation**2
