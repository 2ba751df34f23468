"""Embeddings for empirical targets: sums over the data set."""

from __future__ import annotations

from copy import copy
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from bqlib.answers import checked_diagonal, of_shape
from bqlib.arrays import Array, Indices, read_only, with_read_only_arrays
from bqlib.checks import checked_number, checked_values
from bqlib.embeddings.embedding import Embedding, embed, find, register
from bqlib.embeddings.half_gram import SIDE, half_gram_sums
from bqlib.kernels import Kernel, ScaledKernel, SumKernel
from bqlib.targets import Empirical, Target


@dataclass(frozen=True, eq=False)
class DataMeans:
    """What costs O(M^2 d) in the embedding of a data set of M points, as numbers.

    :func:`data_means` computes it, and :func:`with_data_means` uses it. It belongs to one kernel
    and one target. It pickles, so that one process can compute it and others use it.

    Attributes
    ----------
    mean : ndarray, shape (M,)
        Kernel mean at the points of the data set, read-only.
    prior_variance : float

    Raises
    ------
    ValueError
        If a number is not finite, or `mean` is not of shape (M,).

    Examples
    --------
    >>> from bqlib import Brownian, Empirical
    >>> from bqlib.embeddings import data_means
    >>> means = data_means(Brownian(), Empirical([[0.5], [1.0]]))
    >>> means.mean, means.prior_variance
    (array([0.5 , 0.75]), 0.625)
    """

    mean: Array
    prior_variance: float

    def __post_init__(self) -> None:
        mean = np.array(self.mean, dtype=float)
        mean = checked_values(mean, mean.size, "the kernel mean at the data")
        object.__setattr__(self, "mean", read_only(mean))
        variance = checked_number(self.prior_variance, "prior_variance")
        if not np.isfinite(variance):
            raise ValueError(f"the prior variance is {variance}; it must be finite")
        object.__setattr__(self, "prior_variance", variance)

    __setstate__ = with_read_only_arrays


def data_means(kernel: Kernel, target: Target) -> DataMeans | None:
    """Kernel mean of a data set at its own points, and its prior variance.

    Parameters
    ----------
    kernel : Kernel
    target : Target

    Returns
    -------
    DataMeans or None
        None if the target is no data set: then its embedding has nothing that is worth keeping.

    Raises
    ------
    TypeError, ValueError
        As :func:`embed`, and where a sum over the data is not finite.

    Notes
    -----
    O(M^2 d) time, O(M) memory for M points.

    Examples
    --------
    >>> from bqlib import Brownian, Empirical, Uniform
    >>> from bqlib.embeddings import data_means
    >>> data_means(Brownian(), Empirical([[0.5], [1.0]])).prior_variance
    0.625
    >>> data_means(Brownian(), Uniform([0.0], [1.0])) is None
    True
    """
    embedding = embed(kernel, target)
    data = _summed_over(kernel, target)
    if data is None:
        return None
    return DataMeans(embedding.kernel_mean(data.points), embedding.prior_variance)


def with_data_means(kernel: Kernel, target: Target, means: DataMeans | None = None) -> Target:
    """A target that is the same, and whose embedding under this kernel object costs O(M).

    The embedding reads the kernel mean at points of the data set in a table, and sums over the data
    only at other points.

    Parameters
    ----------
    kernel : Kernel
    target : Target
    means : DataMeans, optional
        What :func:`data_means` returned for this pair, in this process or another one (default: it
        is computed here).

    Returns
    -------
    Target
        A copy, which shares the arrays. If the target is no data set, the target itself.

    Raises
    ------
    ValueError
        If `means` are of a data set of another size, or of no data set.
    TypeError
        If the pair has no embedding.

    Notes
    -----
    O(M^2 d) time where `means` is not given. An embedding of the copy then costs O(M) time once,
    O(1) for each of its points at which the kernel mean is asked, and O(M d) at other points.

    Examples
    --------
    >>> from bqlib import Brownian, Empirical, embed
    >>> from bqlib.embeddings import data_means, with_data_means
    >>> kernel, target = Brownian(), Empirical([[0.5], [1.0]])
    >>> means = data_means(kernel, target)
    >>> embed(kernel, with_data_means(kernel, target, means)).kernel_mean([[1.0]])
    array([0.75])
    """
    if means is None:
        means = data_means(kernel, target)
        if means is None:
            return target
    data = _summed_over(kernel, target)
    if data is None:
        raise ValueError(
            f"means are of a data set, but the target is of type {type(target).__name__}: leave "
            "them out"
        )
    if len(means.mean) != len(data.points):
        raise ValueError(
            f"means are of {len(means.mean)} points, but the data set has {len(data.points)}: "
            "compute them for this target with data_means(kernel, target)"
        )
    knowing = copy(data)
    object.__setattr__(knowing, "_known", (kernel, means))
    return knowing


def _summed_over(kernel: Any, target: Any) -> Empirical | None:
    """The target, if it is a data set and its embedding is a sum over it."""
    if not isinstance(target, Empirical):
        return None
    return target if find(type(kernel), type(target)) is any_kernel_empirical else None


# Sums and scalings have embeddings with any target, which would be found first.
@register(object, Empirical)
@register(SumKernel, Empirical)
@register(ScaledKernel, Empirical)
def any_kernel_empirical(kernel: Kernel, target: Empirical) -> Embedding:
    """Kernel mean sum_j p_j k(x, X_j), for every kernel.

    O(n M) time for n points, block by block. The prior variance and the kernel mean at all M points
    come from one half of their Gram matrix, in O(M^2) once, when one of them is first asked for.
    A target of :func:`with_data_means` knows them.
    """
    data, weights, name = target.points, target.weights, type(kernel).__name__
    known: DataMeans | None = None
    if target._known is not None and target._known[0] is kernel:
        known = target._known[1]

    # A block would count its own rows. So NaN at a point is found by the diagonal, or in the sums.
    def gram(x: Array, y: Array) -> Array:
        return of_shape(kernel(x, y), (len(x), len(y)), x, f"k(x, y) of {name}")

    def kernel_mean(x: Array) -> Array:
        if known is not None:
            rows = rows_in_data(x)
            mean = known.mean[rows]  # of what is not in the data, any
            off = rows < 0
            mean[off] = sums(x[off])
            return mean
        if x.shape == data.shape and (x == data).all():
            return of_data()[0].copy()
        return sums(x)

    def sums(x: Array) -> Array:
        mean = np.zeros(len(x))
        if not len(x):
            return mean
        checked_diagonal(kernel, x)
        for rows in _blocks(len(x)):
            for own in _blocks(len(data)):
                mean[rows] += gram(x[rows], data[own]) @ weights[own]
        return mean

    def kernel_mean_gradient(x: Array) -> Array:
        gradient = np.zeros(x.shape)
        for rows in _blocks(len(x)):
            for own in _blocks(len(data)):
                slopes = kernel.gradient(x[rows], data[own])
                shape = (len(x[rows]), len(data[own]), x.shape[1])
                slopes = of_shape(slopes, shape, x[rows], f"the gradient of {name}")
                gradient[rows] += np.einsum("nmd,m->nd", slopes, weights[own])
        return gradient

    @cache
    def of_data() -> tuple[Array, float]:
        """Kernel mean at the data (M,), and the prior variance."""
        return half_gram_sums(kernel, data, weights)

    @cache
    def row_of() -> dict[bytes, int]:
        keys = _keys(data)
        # In reverse, so that of equal points the first counts.
        return dict(zip(reversed(keys), range(len(keys) - 1, -1, -1), strict=True))

    def rows_in_data(x: Array) -> Indices:
        """Row of each point in the data, -1 where it is none of them."""
        row = row_of()
        return np.array([row.get(key, -1) for key in _keys(x)], dtype=np.intp)

    checked_diagonal(kernel, data)
    gram(data[:2], data[:3])  # a kernel that returns another shape is told here
    variance = known.prior_variance if known is not None else lambda: of_data()[1]
    return Embedding(kernel, target, kernel_mean, kernel_mean_gradient, variance)


def _keys(points: Array) -> list[bytes]:
    """Bytes that are equal exactly for equal points."""
    alike = np.ascontiguousarray(points) + 0.0  # which has no -0.0
    rows: list[bytes] = alike.view(np.dtype((np.void, alike.itemsize * alike.shape[1])))[
        :, 0
    ].tolist()
    return rows


def _blocks(n: int) -> list[slice]:
    return [slice(start, start + SIDE) for start in range(0, n, SIDE)]
