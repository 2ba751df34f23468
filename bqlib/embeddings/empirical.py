"""Embeddings for empirical targets: sums over the data set."""

from functools import cache

import numpy as np

from bqlib.answers import checked_diagonal, of_shape
from bqlib.arrays import Array
from bqlib.embeddings.embedding import Embedding, register
from bqlib.kernels import Kernel
from bqlib.targets import Empirical

SIDE = 1024  # points along a side of a block of the Gram matrix, so that memory stays flat


@register(object, Empirical)
def any_kernel_empirical(kernel: Kernel, target: Empirical) -> Embedding:
    """Kernel mean sum_j p_j k(x, X_j), for every kernel.

    O(n M) time for n points, block by block. The prior variance and the kernel mean at all M points
    come from one half of their Gram matrix, in O(M^2) once, when one of them is first asked for.
    """
    data, weights, name = target.points, target.weights, type(kernel).__name__

    # A block would count its own rows. So NaN at a point is found by the diagonal, or in the sums.
    def gram(x: Array, y: Array) -> Array:
        return of_shape(kernel(x, y), (len(x), len(y)), x, f"k(x, y) of {name}")

    def kernel_mean(x: Array) -> Array:
        if x.shape == data.shape and (x == data).all():
            return of_data()[0].copy()
        checked_diagonal(kernel, x)
        mean = np.zeros(len(x))
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
        mean, prior_variance = np.zeros(len(data)), 0.0
        for rows in _blocks(len(data)):
            for own in _blocks(len(data)):
                if own.start < rows.start:  # this half of the matrix mirrors the other
                    continue
                block = gram(data[rows], data[own])
                part = block @ weights[own]
                mean[rows] += part
                if own.start == rows.start:
                    prior_variance += float(weights[rows] @ part)
                else:
                    mean[own] += weights[rows] @ block
                    prior_variance += 2 * float(weights[rows] @ part)
        return mean, prior_variance

    checked_diagonal(kernel, data)
    gram(data[:2], data[:3])  # a kernel that returns another shape is told here
    return Embedding(kernel, target, kernel_mean, kernel_mean_gradient, lambda: of_data()[1])


def _blocks(n: int) -> list[slice]:
    return [slice(start, start + SIDE) for start in range(0, n, SIDE)]
