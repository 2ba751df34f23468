"""Discrepancies: how far weighted points are from their target."""

import numpy as np


def mmd2_of_prefixes(embedding, points, matrix):
    """Squared MMD to the embedding's target of every prefix of `points`.

    Parameters
    ----------
    embedding : Embedding
    points : ndarray, shape (n, d)
    matrix : ndarray, shape (n, n)
        Row m - 1: the weights of the first m points, zero after them.

    Returns
    -------
    ndarray, shape (n,)
        V0 - 2 w'z + w'Kw for each row w, the MMD of the weights as they are. NaN where the
        result is at most 5 eps (V0 + |w|'|K||w|): there, float64 has cancelled every digit.

    Notes
    -----
    O(n^3) time, O(n^2) memory.
    """
    gram = embedding.kernel(points, points)
    linear = matrix @ embedding.kernel_mean(points)
    quadratic = np.einsum("ij,ij->i", matrix @ gram, matrix)
    mmd2 = embedding.prior_variance - 2 * linear + quadratic
    absolute = np.abs(matrix)
    magnitude = np.einsum("ij,ij->i", absolute @ np.abs(gram), absolute)
    mmd2[mmd2 <= 5 * np.finfo(float).eps * (embedding.prior_variance + magnitude)] = np.nan
    return mmd2
