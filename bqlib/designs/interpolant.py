"""The interpolant of the kernel mean z from points that come one by one.

The residual of a point x is z(x) minus the interpolant. Its power is the prior variance of f(x)
that remains once f is known at the points.
"""

from __future__ import annotations

from copy import copy

import numpy as np
from scipy.linalg import solve_triangular

from bqlib.answers import checked_diagonal, checked_gradient, checked_gram
from bqlib.arrays import Array, Mask
from bqlib.embeddings import Embedding
from bqlib.pivots import repeats


class Interpolant:
    """The interpolant of z from points that come one by one.

    Attributes
    ----------
    embedding : Embedding
    rank : int
        Number of points taken in.
    points : ndarray, shape (rank, d)
    factor : ndarray, shape (rank, rank)
        Lower Cholesky factor L of their Gram matrix.
    projections : ndarray, shape (rank,)
        L^{-1} z at the points.
    """

    def __init__(self, embedding: Embedding, capacity: int):
        self.embedding = embedding
        self.rank = 0
        self._points = np.empty((capacity, embedding.target.dim))
        self._factor = np.zeros((capacity, capacity))
        self._projections = np.empty(capacity)

    def with_points(self, embedding: Embedding, points: Array) -> Interpolant:
        """The same interpolant, with its points (rank, d) in the coordinates of `embedding`."""
        same = copy(self)
        same.embedding, same._points = embedding, points
        return same

    @property
    def points(self) -> Array:
        return self._points[: self.rank]

    @property
    def factor(self) -> Array:
        return self._factor[: self.rank, : self.rank]

    @property
    def projections(self) -> Array:
        return self._projections[: self.rank]

    @property
    def weights(self) -> Array:
        """K^{-1} z at the points, shape (rank,)."""
        return solve_triangular(self.factor, self.projections, lower=True, trans="T")

    def gram(self, x: Array) -> Array:
        """k(points, x) for x (m, d), shape (rank, m)."""
        return checked_gram(self.embedding.kernel, self.points, x)

    def columns(self, x: Array, gram: Array | None = None) -> Array:
        """Newton basis at x (m, d), shape (rank, m): L^{-1} k(points, x)."""
        return solve_triangular(self.factor, self.gram(x) if gram is None else gram, lower=True)

    def repeated(self, x: Array, gram: Array | None = None) -> Mask:
        """Which of x (m, d) repeat a point, shape (m,)."""
        heights, others = (checked_diagonal(self.embedding.kernel, z) for z in (self.points, x))
        gram = self.gram(x) if gram is None else gram
        return np.any(repeats(gram, heights, others), axis=0)

    def residual_and_power(self, x: Array, columns: Array) -> tuple[Array, Array]:
        """Residual and power at x (m, d) from its `columns`, each of shape (m,)."""
        residual = self.embedding.kernel_mean(x) - self.projections @ columns
        heights = checked_diagonal(self.embedding.kernel, x)
        return residual, heights - np.square(columns).sum(axis=0)

    def gradients(self, x: Array, columns: Array) -> tuple[Array, Array]:
        """Gradients of residual and power at x (m, d) from its `columns`, each (m, d)."""
        kernel = self.embedding.kernel
        slopes = checked_gradient(kernel, x, self.points)
        own = np.einsum("iid->id", checked_gradient(kernel, x, x))  # half the gradient of k(x, x)
        solved = solve_triangular(self.factor, columns, lower=True, trans="T")
        residual = self.embedding.kernel_mean_gradient(x)
        residual = residual - np.einsum("ijd,j->id", slopes, self.weights)
        return residual, 2 * (own - np.einsum("ijd,ji->id", slopes, solved))

    def at(self, x: Array) -> tuple[Array, float, float]:
        """Column (rank,), residual and power at one point x (d,); the power of a repeat is zero."""
        columns = self.columns(x[None])
        residual, power = self.residual_and_power(x[None], columns)
        return columns[:, 0], residual[0], 0.0 if self.repeated(x[None])[0] else power[0]

    def add(self, x: Array, column: Array, residual: float, power: float) -> None:
        """Take in the point x (d,), of positive power."""
        root = np.sqrt(power)
        self._points[self.rank] = x
        self._factor[self.rank, : self.rank] = column
        self._factor[self.rank, self.rank] = root
        self._projections[self.rank] = residual / root
        self.rank += 1
