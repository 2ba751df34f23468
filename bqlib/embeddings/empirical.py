"""Embeddings for empirical targets: sums over the data set."""

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

    O(n M) time for n points and O(M^2) once, block by block.
    """
    data, weights, name = target.points, target.weights, type(kernel).__name__

    # A block would count its own rows. So NaN at a point is found by the diagonal, or in the sums.
    def gram(x: Array, y: Array) -> Array:
        return of_shape(kernel(x, y), (len(x), len(y)), x, f"k(x, y) of {name}")

    def kernel_mean(x: Array) -> Array:
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

    checked_diagonal(kernel, data)
    prior_variance = 0.0
    for rows in _blocks(len(data)):
        for own in _blocks(len(data)):
            if own.start >= rows.start:  # the other half of the matrix mirrors this one
                count = 1 if own.start == rows.start else 2
                part = weights[rows] @ gram(data[rows], data[own]) @ weights[own]
                prior_variance += count * float(part)
    return Embedding(kernel, target, kernel_mean, kernel_mean_gradient, float(prior_variance))


def _blocks(n: int) -> list[slice]:
    return [slice(start, start + SIDE) for start in range(0, n, SIDE)]
