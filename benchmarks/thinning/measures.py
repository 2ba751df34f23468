"""How well weighted points summarise draws, in plain numpy: no code that is measured."""

import numpy as np
from scipy.spatial.distance import cdist, pdist

CHUNK = 100  # rows of a matrix of kernel values at a time
SUBSET = 1000  # draws whose distances have the median


def median_distance(x):
    """The median distance of SUBSET evenly spaced points, all of x (m, d) if there are fewer."""
    rows = np.linspace(0, len(x) - 1, min(SUBSET, len(x)), dtype=int)
    return float(np.median(pdist(x[rows])))


def absolute_deviation(x):
    """The mean absolute deviation of each column of x (m, d): the scale of stein_thinning."""
    return np.abs(x - x.mean(axis=0)).mean(axis=0)


def stein_kernel(x, y, score_x, score_y):
    """The Stein kernel on (1 + |x - y|^2)^(-1/2) between x (n, d) and y (m, d), shape (n, m)."""
    squares = cdist(x, y, "sqeuclidean")
    base = 1 + squares
    at_x = (x * score_x).sum(axis=1)[:, None] - score_x @ y.T
    at_y = x @ score_y.T - (y * score_y).sum(axis=1)
    inner = score_x @ score_y.T
    return -3 * squares / base**2.5 + (x.shape[1] + at_x - at_y) / base**1.5 + inner / base**0.5


def ksd(x, scores, weights, scale):
    """The kernel Stein discrepancy of weighted points, in the units and the kernel above."""
    x, scores, total = x / scale, scores * scale, 0.0
    for first in range(0, len(x), CHUNK):
        part = slice(first, first + CHUNK)
        total += weights[part] @ stein_kernel(x[part], x, scores[part], scores) @ weights
    return float(np.sqrt(total))


def gaussian(x, y, lengthscale):
    return np.exp(cdist(x, y, "sqeuclidean") / (-2 * lengthscale**2))


def mean_of_pairs(pool, lengthscale):
    """The mean of the Gaussian kernel over all pairs of a pool (m, d), each point with itself."""
    parts = range(0, len(pool), CHUNK)
    return (
        sum(gaussian(pool[i : i + CHUNK], pool, lengthscale).sum() for i in parts) / len(pool) ** 2
    )


def mmd(pool, points, weights, lengthscale, pairs):
    """The MMD of weighted points to a pool; `pairs` is that of :func:`mean_of_pairs`."""
    means = gaussian(points, pool, lengthscale).mean(axis=1)
    squared = (
        pairs - 2 * weights @ means + weights @ gaussian(points, points, lengthscale) @ weights
    )
    return float(np.sqrt(max(squared, 0.0)))
