"""Embeddings for empirical targets: sums over the data set."""

import numpy as np

from bqlib.embeddings.embedding import Embedding, register
from bqlib.targets import Empirical

SIDE = 1024  # points along a side of a block of the Gram matrix, so that memory stays flat


@register(object, Empirical)
def any_kernel_empirical(kernel, target):
    """Kernel mean sum_j p_j k(x, X_j), for every kernel.

    O(n M) time for n points and O(M^2) once, block by block.
    """
    data, weights = target.points, target.weights

    def kernel_mean(x):
        mean = np.zeros(len(x))
        for rows in _blocks(len(x)):
            for own in _blocks(len(data)):
                mean[rows] += kernel(x[rows], data[own]) @ weights[own]
        return mean

    def kernel_mean_gradient(x):
        gradient = np.zeros(x.shape)
        for rows in _blocks(len(x)):
            for own in _blocks(len(data)):
                gradient[rows] += np.einsum(
                    "nmd,m->nd", kernel.gradient(x[rows], data[own]), weights[own]
                )
        return gradient

    prior_variance = 0.0
    for rows in _blocks(len(data)):
        for own in _blocks(len(data)):
            if own.start >= rows.start:  # the other half of the matrix mirrors this one
                count = 1 if own.start == rows.start else 2
                prior_variance += count * (
                    weights[rows] @ kernel(data[rows], data[own]) @ weights[own]
                )
    return Embedding(kernel, target, kernel_mean, kernel_mean_gradient, float(prior_variance))


def _blocks(n):
    return [slice(start, start + SIDE) for start in range(0, n, SIDE)]
