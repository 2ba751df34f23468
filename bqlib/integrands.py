"""Integrands: test functions whose integrals under a target are known exactly.

A family is a function(embedding, rng, ...) -> Integrands, which draws all its functions at once.
Equal generators give equal functions. If only the kernel or the widths differ, the centres and
coefficients are still the same, so that comparisons are paired.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bqlib.answers import checked_answer, checked_gram, checked_sample
from bqlib.arrays import Array, Seed, total
from bqlib.checks import checked_rng
from bqlib.embeddings import Embedding, embed
from bqlib.kernels import ExponentiatedQuadratic
from bqlib.targets import Empirical, GaussianMixture, Target, Uniform

# Families whose functions lie in the space of the cell's own kernel.
WITHIN_MODEL = ("rkhs_ball",)


@dataclass(frozen=True, eq=False)
class Integrands:
    """F functions and their exact integrals under one target.

    Attributes
    ----------
    evaluate : callable
        Values of all functions at points: (n, d) to (n, F).
    integrals : ndarray, shape (F,)
        Exact, in units of the functions.
    norms : ndarray, shape (F,), optional
        Norms in the space of the embedding's kernel; None for functions that need not lie in it.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib.integrands import Integrands
    >>> cubes = Integrands(lambda x: x**3, np.array([0.25]))  # on [0, 1], with F = 1
    >>> cubes.errors(np.array([[0.5]]), np.array([[1.0]]))
    array([[0.125]])
    """

    evaluate: Callable[[ArrayLike], Array]
    integrals: Array
    norms: Array | None = None

    def errors(self, points: Array, matrix: Array) -> Array:
        """Absolute errors |w'f - integral| of the weights in each row w of a matrix.

        Parameters
        ----------
        points : ndarray, shape (n, d)
        matrix : ndarray, shape (m, n)

        Returns
        -------
        ndarray, shape (m, F)

        Raises
        ------
        ValueError
            If a function is NaN or infinite at a point. The message names the point.

        Notes
        -----
        O(m n F) time, and that of the values.
        """
        shape = (len(points), len(self.integrals))
        if not len(points):
            values = np.zeros(shape)
        else:
            values = checked_answer(self.evaluate(points), shape, points, "evaluate of Integrands")
        return np.abs(matrix @ values - self.integrals)


def of_model(contents: dict[str, dict[str, Any]], *, within: bool) -> list[str]:
    """Labels of the integrands whose functions lie in the kernel's space, or of all others.

    Parameters
    ----------
    contents : dict
        Label to family and parameters, as a sweep holds them.
    within : bool
        True: those whose functions lie in the kernel's space. False: all others.

    Returns
    -------
    list of str
        In their order.

    Raises
    ------
    KeyError
        If the content of a label names no family.

    Notes
    -----
    O(k) time for k labels.

    Examples
    --------
    >>> from bqlib.integrands import of_model
    >>> of_model({"a": {"family": "rkhs_ball"}, "b": {"family": "rough_bumps"}}, within=False)
    ['b']
    """
    return [name for name, c in contents.items() if (c["family"] in WITHIN_MODEL) == within]


def rkhs_ball(
    embedding: Embedding,
    rng: Seed,
    *,
    functions: int = 250,
    terms: int = 10,
    centre_variance: float | None = None,
) -> Integrands:
    r"""Functions of norm one in the space of the embedding's own kernel.

    f = sum_i alpha_i k(., c_i) / norm, with alpha_i from N(0, 1) and `terms` centres c_i for each
    function. Its integral is sum_i alpha_i z(c_i) / norm, with z the kernel mean.

    Parameters
    ----------
    embedding : Embedding
    rng : numpy.random.Generator or int
        A generator, or the seed of one. Draws the functions.
    functions : int
        Number of functions F (default: 250).
    terms : int
        Number of terms of each function (default: 10).
    centre_variance : float, optional
        Centres are drawn from N(0, centre_variance I), by default from the target.

    Returns
    -------
    Integrands
        F functions, their integrals and norms.

    Raises
    ------
    TypeError
        If `rng` is neither a seed nor a Generator, or the target cannot be sampled and you give no
        `centre_variance`.
    ValueError
        If `functions` or `terms` is below 1, or `centre_variance` is not finite and positive.

    Notes
    -----
    O(n F terms d) time and O(n F terms) memory for n points; O(F terms^2 d) once.

    References
    ----------
    With 250 functions, 10 terms and centre_variance 3, the within-model functions of Huszar and
    Duvenaud (2012).

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib import ExponentiatedQuadratic, GaussianMixture, embed
    >>> from bqlib.integrands import rkhs_ball
    >>> normal = GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    >>> embedding = embed(ExponentiatedQuadratic(1.0), normal)
    >>> ball = rkhs_ball(embedding, np.random.default_rng(0), functions=3)
    >>> ball.evaluate([[0.0], [1.0]]).shape, ball.norms
    ((2, 3), array([1., 1., 1.]))
    """
    kernel, target = embedding.kernel, embedding.target
    _check_counts(functions=functions, terms=terms)
    alpha_rng, centre_rng = checked_rng(rng).spawn(2)
    alpha = alpha_rng.standard_normal((functions, terms))
    centres = _centres(target, centre_rng, functions * terms, centre_variance)
    grams = [checked_gram(kernel, own, own) for own in np.split(centres, functions)]
    alpha /= np.sqrt(np.einsum("fi,fij,fj->f", alpha, grams, alpha))[:, None]

    def evaluate(x: ArrayLike) -> Array:
        values = kernel(x, centres).reshape(-1, functions, terms)
        return np.einsum("nft,ft->nf", values, alpha)

    means = embedding.kernel_mean(centres).reshape(functions, terms)
    return Integrands(evaluate, np.einsum("ft,ft->f", means, alpha), np.ones(functions))


def rough_bumps(
    embedding: Embedding,
    rng: Seed,
    *,
    narrowest: float,
    widest: float,
    functions: int = 250,
    terms: int = 10,
    centre_variance: float | None = None,
) -> Integrands:
    r"""Sums of bumps and ridges of many widths and directions, independent of the kernel.

    f(x) = sum_i alpha_i exp(-(x - c_i)' S_i^{-1} (x - c_i) / 2) / sqrt(terms), with alpha_i from
    N(0, 1). Each S_i = Q D Q' has its own rotation Q, uniform over all, and its own widths
    sqrt(D), independent in each direction and uniform in their logarithm from `narrowest` to
    `widest`. A term that is narrow in all directions is a bump, one that is not is a ridge.

    Parameters
    ----------
    embedding : Embedding
        Its target must be a GaussianMixture or an Empirical.
    rng : numpy.random.Generator or int
        A generator, or the seed of one. Draws the functions.
    narrowest, widest : float
        Ends of the range of widths, in the units of x.
    functions : int
        Number of functions F (default: 250).
    terms : int
        Number of terms of each function (default: 10).
    centre_variance : float, optional
        Centres are drawn from N(0, centre_variance I), by default from the target.

    Returns
    -------
    Integrands
        F functions and their integrals.

    Raises
    ------
    TypeError
        If there is no closed form for the target, or `rng` is neither a seed nor a Generator.
    ValueError
        If `functions` or `terms` is below 1, the widths are not positive and finite with
        narrowest <= widest, or `centre_variance` is not finite and positive.

    Notes
    -----
    Under an exponentiated quadratic kernel with covariance L, a term lies in the kernel's space if
    and only if 2 S_i - L is positive definite: it is wider than l / sqrt(2) in all directions.

    Under a mixture of J Gaussians N(m_j, T_j) with weights p_j, a term integrates to
    sum_j p_j |S|^(1/2) |S + T_j|^(-1/2) exp(-(c - m_j)' (S + T_j)^{-1} (c - m_j) / 2).
    O(F terms J d^3) time for the integrals, O(n F terms d^2) for n points.

    Examples
    --------
    >>> from bqlib import ExponentiatedQuadratic, GaussianMixture, embed
    >>> from bqlib.integrands import rough_bumps
    >>> normal = GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    >>> embedding = embed(ExponentiatedQuadratic(1.0), normal)
    >>> bumps = rough_bumps(embedding, 0, narrowest=0.1, widest=1.0, functions=3)
    >>> bumps.evaluate([[0.0], [1.0]]).shape, bumps.integrals.shape
    ((2, 3), (3,))
    """
    target = embedding.target
    _check_counts(functions=functions, terms=terms)
    if not 0 < narrowest <= widest < np.inf:
        raise ValueError(
            f"narrowest is {narrowest:g} and widest {widest:g}; "
            "they must be positive and finite, with narrowest <= widest"
        )
    if not isinstance(target, GaussianMixture | Empirical):
        raise TypeError(
            "rough_bumps has exact integrals under GaussianMixture and Empirical, not under "
            f"{type(target).__name__}"
        )
    alpha_rng, centre_rng, width_rng, turn_rng = checked_rng(rng).spawn(4)
    dim, size = target.dim, functions * terms
    alpha = alpha_rng.standard_normal(size) / np.sqrt(terms)
    centres = _centres(target, centre_rng, size, centre_variance)
    widths = narrowest * (widest / narrowest) ** width_rng.random((size, dim))
    turns = np.linalg.qr(turn_rng.standard_normal((size, dim, dim))).Q
    roots = turns.mT / widths[:, :, None]  # of the inverse of S
    shifts = np.einsum("ikl,il->ik", roots, centres)

    def evaluate(x: ArrayLike) -> Array:
        x = np.asarray(x, dtype=float)
        values = np.zeros((len(x), functions))
        # One term of every function, and one direction of it, at a time: all at once is slower.
        for own in np.arange(size).reshape(functions, terms).T:
            squares = total(np.square(x @ roots[own, k].T - shifts[own, k]) for k in range(dim))
            values += alpha[own] * np.exp(-0.5 * squares)
        return values

    if isinstance(target, Empirical):
        return Integrands(evaluate, target.weights @ evaluate(target.points))
    covariances = (turns * np.square(widths)[:, None, :]) @ turns.mT
    integrals = np.zeros(size)
    for weight, mean, covariance in zip(
        target.weights, target.means, target.covariances, strict=True
    ):
        factors = np.linalg.cholesky(covariances + covariance)
        shrinkage = np.prod(widths / np.diagonal(factors, axis1=1, axis2=2), axis=1)
        white = np.linalg.solve(factors, (centres - mean)[:, :, None])[:, :, 0]
        integrals += weight * shrinkage * np.exp(-0.5 * np.square(white).sum(axis=1))
    return Integrands(evaluate, (alpha * integrals).reshape(functions, terms).sum(axis=1))


def genz_oscillatory(
    embedding: Embedding, rng: Seed, *, difficulty: float, functions: int = 250
) -> Integrands:
    """Waves cos(2 pi u + a'x), with u uniform on [0, 1] and frequencies a that sum to `difficulty`.

    Parameters
    ----------
    embedding : Embedding
        Its target must be a GaussianMixture, a Uniform or an Empirical.
    rng : numpy.random.Generator or int
        A generator, or the seed of one. Draws the functions.
    difficulty : float
        Sum of the frequencies of each function. They are drawn uniformly from [0, 1] and then
        scaled.
    functions : int
        Number of functions F (default: 250).

    Returns
    -------
    Integrands
        F functions and their integrals.

    Raises
    ------
    TypeError
        If there is no closed form for the target, or `rng` is neither a seed nor a Generator.
    ValueError
        If `functions` is below 1, or `difficulty` is not finite and positive.

    Notes
    -----
    The integral is the real part of exp(2 pi i u) times the characteristic function at a.
    O(n F d) time for n points; O(F J d^2) once for a mixture of J Gaussians.

    References
    ----------
    The first family of Genz, "A package for testing multiple integration subroutines", 1987.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib import Brownian, Uniform, embed
    >>> from bqlib.integrands import genz_oscillatory
    >>> embedding = embed(Brownian(), Uniform([0], [1]))
    >>> drawn = genz_oscillatory(embedding, 0, difficulty=3.0, functions=2)
    >>> x = (np.arange(1000)[:, None] + 0.5) / 1000
    >>> (drawn.evaluate(x).mean(axis=0) - drawn.integrals).round(6) + 0.0
    array([0., 0.])
    """
    target = embedding.target
    phases, frequencies = _genz(target, checked_rng(rng), difficulty, functions)

    def evaluate(x: ArrayLike) -> Array:
        return np.cos(phases + np.asarray(x, dtype=float) @ frequencies.T)

    if isinstance(target, GaussianMixture):
        variances = np.einsum("fk,jkl,fl->jf", frequencies, target.covariances, frequencies)
        means = np.exp(-0.5 * variances) * evaluate(target.means)
        return Integrands(evaluate, target.weights @ means)
    if isinstance(target, Uniform):
        decay = np.prod(np.sinc(frequencies * (target.upper - target.lower) / (2 * np.pi)), axis=1)
        return Integrands(evaluate, decay * evaluate((target.lower + target.upper)[None] / 2)[0])
    if isinstance(target, Empirical):
        return Integrands(evaluate, target.weights @ evaluate(target.points))
    raise TypeError(
        "genz_oscillatory has exact integrals under GaussianMixture, Uniform and Empirical, not "
        f"under {type(target).__name__}"
    )


def genz_gaussian_peak(
    embedding: Embedding, rng: Seed, *, difficulty: float, functions: int = 250
) -> Integrands:
    """Peaks exp(-sum_k a_k^2 (x_k - u_k)^2), with u from the target and sum(a) = `difficulty`.

    The integral is the kernel mean of an exponentiated quadratic kernel.

    Parameters
    ----------
    embedding : Embedding
        Its target must have an embedding under :class:`bqlib.ExponentiatedQuadratic`.
    rng : numpy.random.Generator or int
        A generator, or the seed of one. Draws the functions.
    difficulty : float
        Sum of the a_k of each function. They are drawn uniformly from [0, 1] and then scaled.
    functions : int
        Number of functions F (default: 250).

    Returns
    -------
    Integrands
        F functions and their integrals.

    Raises
    ------
    TypeError
        If there is no closed form for the target, or `rng` is neither a seed nor a Generator.
    ValueError
        If `functions` is below 1, or `difficulty` is not finite and positive.

    Notes
    -----
    O(n F d) time for n points; F embeddings once.

    References
    ----------
    The fourth family of Genz (1987), where u is uniform on the unit cube, as here for that target.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib import Brownian, Uniform, embed
    >>> from bqlib.integrands import genz_gaussian_peak
    >>> embedding = embed(Brownian(), Uniform([0], [1]))
    >>> drawn = genz_gaussian_peak(embedding, 0, difficulty=3.0, functions=2)
    >>> x = (np.arange(1000)[:, None] + 0.5) / 1000
    >>> (drawn.evaluate(x).mean(axis=0) - drawn.integrals).round(6) + 0.0
    array([0., 0.])
    """
    target, rng = embedding.target, checked_rng(rng)
    _, rates = _genz(target, rng, difficulty, functions)
    peaks = checked_sample(target, functions, rng)

    def evaluate(x: ArrayLike) -> Array:
        x = np.asarray(x, dtype=float)
        squares = (np.square(rates[:, k] * (x[:, [k]] - peaks[:, k])) for k in range(target.dim))
        return np.exp(-total(squares))

    if isinstance(target, Empirical):
        return Integrands(evaluate, target.weights @ evaluate(target.points))
    kernels = (ExponentiatedQuadratic(1 / (np.sqrt(2) * rate)) for rate in rates)
    means = [
        embed(kernel, target).kernel_mean(peak[None])
        for kernel, peak in zip(kernels, peaks, strict=True)
    ]
    return Integrands(evaluate, np.concatenate(means))


def _genz(
    target: Target, rng: np.random.Generator, difficulty: float, functions: int
) -> tuple[Array, Array]:
    """Phases (F,), and coefficients (F, d) whose rows sum to `difficulty`."""
    _check_counts(functions=functions)
    if not 0 < difficulty < np.inf:
        raise ValueError(f"difficulty is {difficulty:g}; it must be finite and positive")
    phases = 2 * np.pi * rng.random(functions)
    coefficients = rng.random((functions, target.dim))
    return phases, difficulty * coefficients / coefficients.sum(axis=1, keepdims=True)


def _centres(target: Target, rng: np.random.Generator, size: int, variance: float | None) -> Array:
    if variance is None:
        return checked_sample(target, size, rng)
    if not 0 < variance < np.inf:
        raise ValueError(f"centre_variance is {variance:g}; it must be finite and positive")
    return np.sqrt(variance) * rng.standard_normal((size, target.dim))


def _check_counts(**counts: int) -> None:
    for name, value in counts.items():
        if value < 1:
            raise ValueError(f"{name} is {value}; it must be at least 1")
