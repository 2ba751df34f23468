"""Leave-one-out errors: what a Gaussian process says of each value from all others."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from scipy.linalg import cho_factor, cho_solve
from scipy.special import ndtr, stdtr

from bqlib.arrays import Array


@dataclass(frozen=True, eq=False)
class LeftOut:
    """Values of f, and what the model predicts for each from all others.

    Attributes
    ----------
    rows : ndarray, shape (n,)
        Labels of the points, if they were a table, or their numbers, counted from 0.
    values : ndarray, shape (n,)
        f at the points.
    predictions : ndarray, shape (n,)
        Of each value, from all others.
    stds : ndarray, shape (n,)
        Standard deviations of the predictions, under the parameters that fit all values best.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib.leave_one_out import LeftOut
    >>> one = np.ones(1)
    >>> LeftOut(rows=np.array([0]), values=3 * one, predictions=one, stds=one).standardised
    array([2.])
    """

    rows: Any
    values: Array
    predictions: Array
    stds: Array

    @property
    def standardised(self) -> Array:
        """(value - prediction) / std, shape (n,): about standard normal if the model is right."""
        return (self.values - self.predictions) / self.stds

    def surprises(self, freedom: float) -> Array:
        """Chances (n,) of errors that are at least as large, two-sided, if the model is right.

        `freedom` is that of the output scale. The scale is fitted again without the value itself,
        which may have made it large.
        """
        errors = np.abs(self.standardised)
        if np.isinf(freedom):
            return 2 * ndtr(-errors)
        left = np.maximum(freedom - np.square(errors), 0.0)  # rounding where one value is all
        with np.errstate(divide="ignore"):
            return 2 * stdtr(freedom - 1, -errors * np.sqrt((freedom - 1) / left))

    @property
    def excess(self) -> float:
        """Root of the sum of squared errors over that of their variances: one if they agree.

        Values that are hard to predict count most, as those beyond which nothing is known.
        """
        errors = self.values - self.predictions
        return float(np.sqrt(np.square(errors).sum() / np.square(self.stds).sum()))


def left_out(covariance: Array, values: Array, scale: float, constant: bool, rows: Any) -> LeftOut:
    """Leave-one-out predictions from one inverse.

    Parameters
    ----------
    covariance : ndarray, shape (n, n)
        Of the values, positive definite, noise included, at unit output scale.
    values : ndarray, shape (n,)
    scale : float
        The output scale.
    constant : bool
        Whether the mean of f is an unknown constant, and not zero.
    rows : ndarray, shape (n,)

    Notes
    -----
    With Q = K^{-1}, or K^{-1} - K^{-1} 1 1' K^{-1} / 1' K^{-1} 1 for an unknown constant, the error
    of value i is (Q f)_i / Q_ii and its variance 1 / Q_ii: Dubrule, "Cross validation of kriging
    in a unique neighborhood", 1983. O(n^3) time, O(n^2) memory.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib.leave_one_out import left_out
    >>> found = left_out(np.eye(3), np.array([1.0, 2.0, 6.0]), 1.0, True, np.arange(3))
    >>> found.predictions  # each is the mean of the others
    array([4. , 3.5, 1.5])
    """
    inverse = cho_solve(cho_factor(covariance, lower=True), np.eye(len(values)))
    if constant:
        ones = inverse.sum(axis=0)
        inverse -= np.outer(ones, ones) / ones.sum()
    diagonal = np.diag(inverse)
    errors = inverse @ values / diagonal
    return LeftOut(rows, values, values - errors, scale / np.sqrt(diagonal))
