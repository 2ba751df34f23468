"""The paper's formulas and propositions, each checked with numbers.

These are functions of arrays that return numbers; :mod:`bqlib.claims` judges the paper by them.
docs/errata.md has the derivations.
"""

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from bqlib.arrays import Array
from bqlib.discrepancy import mmd2, spectral_mmd2, witness
from bqlib.embeddings import Embedding
from bqlib.kernels import Kernel
from bqlib.posterior import joint_draws
from bqlib.weights import bq


def variance_and_mmd2(
    embedding: Embedding,
    points: Array,
    weights: Array,
    rng: np.random.Generator,
    draws: int = 200_000,
) -> tuple[float, float, float, float]:
    """Proposition 1: the mean squared error of an estimate over the Gaussian process, three ways.

    Parameters
    ----------
    embedding : Embedding
    points : ndarray, shape (n, d)
    weights : ndarray, shape (n,)
        Any.
    rng : numpy.random.Generator
    draws : int
        Functions drawn from the process, jointly with their integrals.

    Returns
    -------
    formula, spectral, simulated, standard_error : float
        V0 - 2 w'z + w'Kw; the squared MMD by integration over frequency, which shares no step with
        the formula; and the mean of (Z - w'f)^2 over the draws, with its standard error.
    """
    values, integrals = joint_draws(embedding, points, draws, rng)
    squares = np.square(integrals - values @ weights)
    return (
        mmd2(embedding, points, weights),
        spectral_mmd2(embedding, points, weights),
        float(squares.mean()),
        float(squares.std() / np.sqrt(draws)),
    )


def adversary(embedding: Embedding, points: Array) -> tuple[float, float]:
    """The function for which no estimate from these points has an error below the BQ bound.

    Returns
    -------
    largest, ratio : float
        The largest |g| at the points, where g has norm one and is zero up to rounding; and the
        integral of g divided by the MMD of BQ weights, which is one.
    """
    weights = bq(embedding, points).final(len(points))
    g = witness(embedding, points, weights)
    mmd = np.sqrt(mmd2(embedding, points, weights))
    integral = (embedding.prior_variance - weights @ embedding.kernel_mean(points)) / mmd
    return float(np.abs(g(points)).max()), float(integral / mmd)


def printed_herding(embedding: Embedding, pool: Array, n: int) -> Array:
    """Points of the herding rule as it is printed: argmax 2 z(x) - sum_m k(x, x_m) / (n + 1).

    The right rule, :func:`bqlib.herding`, has half the first term.
    """
    mean, visits = embedding.kernel_mean(pool), np.zeros(len(pool))
    points = np.empty((n, pool.shape[1]))
    for m in range(n):
        points[m] = pool[np.argmax(2 * mean - visits / (m + 1))]
        visits += embedding.kernel(points[m : m + 1], pool)[0]
    return points


def printed_herding_variance(embedding: Embedding, points: Array) -> float:
    """Squared MMD of equal weights as it is printed, with half the cross term."""
    n = len(points)
    quadratic = embedding.kernel(points, points).sum() / n**2
    return float(embedding.prior_variance - embedding.kernel_mean(points).mean() + quadratic)


def sbq_with_jitter(embedding: Embedding, pool: Array, n: int, jitter: float) -> Array:
    """Points of SBQ (n, d) with a positive jitter on the diagonal of K, as for noisy f."""
    residual = embedding.kernel_mean(pool).copy()
    power = np.array(embedding.kernel.diagonal(pool))
    basis = np.empty((n, len(pool)))
    points = np.empty((n, pool.shape[1]))
    for m in range(n):
        i = int(np.argmax(residual**2 / (power + jitter)))
        points[m] = pool[i]
        row = embedding.kernel(pool[i : i + 1], pool)[0] - basis[:m, i] @ basis[:m]
        pivot = np.sqrt(power[i] + jitter)
        basis[m] = row / pivot
        residual -= basis[m] * (residual[i] / pivot)
        power -= basis[m] ** 2
    return points


def with_jitter(embedding: Embedding, points: Array, jitter: float) -> tuple[float, float, float]:
    """What a jitter on the diagonal of K does to BQ.

    Returns
    -------
    reported, true, norm2 : float
        V0 - z'(K + jitter I)^{-1} z; the squared MMD of the weights (K + jitter I)^{-1} z; and
        their squared Euclidean norm. reported = true + jitter norm2.
    """
    gram, mean = embedding.kernel(points, points), embedding.kernel_mean(points)
    weights = cho_solve(cho_factor(gram + jitter * np.eye(len(gram)), lower=True), mean)
    reported = embedding.prior_variance - mean @ weights
    return float(reported), mmd2(embedding, points, weights), float(weights @ weights)


def counterexample(coherence: float, n: int) -> tuple[Array, Array]:
    """Atoms that are orthogonal up to `coherence`, and a target, on which Proposition 2 fails.

    Orthonormal e_0, ..., e_n; atoms e_1, ..., e_n and x = r sum_i e_i + q e_0 with q^2 = 1 - n r^2;
    target t = c sum_i e_i - (r n c / q) e_0 with c = q / sqrt(n), of norm one and orthogonal to x.

    Parameters
    ----------
    coherence : float
        r, the largest inner product of two atoms.
    n : int
        With n r^2 < 1.

    Returns
    -------
    gram : ndarray, shape (n + 1, n + 1)
        Of the atoms, x last.
    mean : ndarray, shape (n + 1,)
        Their inner products with the target.
    """
    left = 1 - n * coherence**2
    if not left > 0:
        raise ValueError(f"n is {n}; it must be below 1 / coherence^2 = {coherence**-2:g}")
    c = np.sqrt(left / n)
    atoms = np.eye(n + 1)
    atoms[n, :n], atoms[n, n] = coherence, np.sqrt(left)
    target = np.full(n + 1, c)
    target[n] = -coherence * n * c / np.sqrt(left)
    return atoms @ atoms.T, atoms @ target


def gain_alone_and_after(gram: Array, mean: Array) -> tuple[float, float]:
    """What the last atom gains by itself, and after all the others: s({x}) and s(B + x) - s(B)."""
    alone = mean[-1] ** 2 / gram[-1, -1]
    whole = mean @ np.linalg.solve(gram, mean)
    before = mean[:-1] @ np.linalg.solve(gram[:-1, :-1], mean[:-1])
    return float(alone), float(whole - before)


def eigenvalues_of_a_pair(kernel: Kernel, distances: Array) -> Array:
    """Smallest and largest eigenvalue, and trace, of K for two points on the first axis.

    Parameters
    ----------
    kernel
    distances : ndarray, shape (m,)

    Returns
    -------
    ndarray, shape (m, 3)
    """
    found = []
    for distance in distances:
        points = np.zeros((2, kernel.dim or 2))
        points[1, 0] = distance
        gram = kernel(points, points)
        found.append([*np.linalg.eigvalsh(gram), np.trace(gram)])
    return np.array(found)


def spectral_density(kernel: Kernel, frequencies: Array) -> Array:
    """Spectral density of a stationary kernel in one dimension, relative to that at zero.

    A stationary kernel is characteristic if it is positive at every frequency.

    Parameters
    ----------
    kernel
        With k(0, x) below 1e-16 k(0, 0) for |x| > 40.
    frequencies : ndarray, shape (m,)
        Angular.

    Returns
    -------
    ndarray, shape (m,)

    References
    ----------
    Sriperumbudur, Gretton, Fukumizu, Schoelkopf and Lanckriet, "Hilbert space embeddings and
    metrics on probability measures", JMLR 11, 2010.
    """
    x = np.linspace(-40.0, 40.0, 8001)
    values = kernel(np.zeros((1, 1)), x[:, None])[0]
    return np.cos(np.multiply.outer(frequencies, x)) @ values / values.sum()
