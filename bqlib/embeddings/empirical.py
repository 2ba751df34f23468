"""Embeddings for empirical targets: sums over the data set."""

import numpy as np

from bqlib.answers import checked_diagonal
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
    data, weights = target.points, target.weights

    def kernel_mean(x: Array) -> Array:
        # A block would count its own rows: a kernel that fails at a point fails here, with its row.
        checked_diagonal(kernel, x)
        mean = np.zeros(len(x))
        for rows in _blocks(len(x)):
            for own in _blocks(len(data)):
                mean[rows] += kernel(x[rows], data[own]) @ weights[own]
        return mean

    def kernel_mean_gradient(x: Array) -> Array:
        gradient = np.zeros(x.shape)
        for rows in _blocks(len(x)):
            for own in _blocks(len(data)):
                gradient[rows] += np.einsum(
                    "nmd,m->nd", kernel.gradient(x[rows], data[own]), weights[own]
                )
        return gradient

    checked_diagonal(kernel, data)
    prior_variance = 0.0
    for rows in _blocks(len(data)):
        for own in _blocks(len(data)):
            if own.start >= rows.start:  # the other half of the matrix mirrors this one
                count = 1 if own.start == rows.start else 2
                part = weights[rows] @ kernel(data[rows], data[own]) @ weights[own]
                prior_variance += count * float(part)
    return Embedding(kernel, target, kernel_mean, kernel_mean_gradient, float(prior_variance))


def _blocks(n: int) -> list[slice]:
    return [slice(start, start + SIDE) for start in range(0, n, SIDE)]
