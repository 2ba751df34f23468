"""Embeddings: closed-form kernel means of (kernel, target) pairs.

One function for each pair, registered with :func:`register`; :func:`embed` finds it.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from scipy.linalg import solve_triangular

from bqlib.kernels import ExponentiatedQuadratic
from bqlib.targets import GaussianMixture


@dataclass(frozen=True, eq=False)
class Embedding:
    """A target seen through a kernel: all that quadrature needs to know of the two.

    Attributes
    ----------
    kernel, target
        The pair this belongs to: every MMD computed from it refers to this target.
    kernel_mean : callable
        z(x) = E k(x, X), X from the target: (n, d) to (n,).
    kernel_mean_gradient : callable
        Gradient of z: (n, d) to (n, d).
    prior_variance : float
        V0 = E k(X, X'), the variance of the integral before any evaluation.
    """

    kernel: object
    target: object
    kernel_mean: Callable
    kernel_mean_gradient: Callable
    prior_variance: float


_pairs = {}


def register(kernel_type, target_type):
    """Decorator: make a function(kernel, target) -> Embedding the one for this pair of types."""

    def keep(function):
        _pairs[kernel_type, target_type] = function
        return function

    return keep


def find(kernel_type, target_type):
    """The function registered for a pair of types, or a TypeError that names those that work."""
    if (kernel_type, target_type) not in _pairs:
        with_kernel = [t.__name__ for k, t in _pairs if k is kernel_type]
        with_target = [k.__name__ for k, t in _pairs if t is target_type]
        raise TypeError(
            f"no closed-form embedding for {kernel_type.__name__} with {target_type.__name__}; "
            f"{kernel_type.__name__} has one with: {', '.join(with_kernel) or 'no target'}; "
            f"{target_type.__name__} has one with: {', '.join(with_target) or 'no kernel'}"
        )
    return _pairs[kernel_type, target_type]


def embed(kernel, target):
    """Embedding of `target` under `kernel`, in closed form.

    Raises
    ------
    TypeError
        If the pair has no closed form here; the message names the pairs that have.
    ValueError
        If kernel and target differ in dimension.

    Examples
    --------
    >>> normal = GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    >>> embedding = embed(ExponentiatedQuadratic(1.0), normal)
    >>> round(embedding.prior_variance, 6)
    0.57735
    """
    function = find(type(kernel), type(target))
    if kernel.dim is not None and kernel.dim != target.dim:
        raise ValueError(
            f"the kernel is for points of dimension {kernel.dim}, the target has dimension "
            f"{target.dim}"
        )
    return function(kernel, target)


@register(ExponentiatedQuadratic, GaussianMixture)
def exponentiated_quadratic_gaussian_mixture(kernel, target):
    """Kernel mean |L|^(1/2) sum_j p_j |L + S_j|^(-1/2) exp(-(x-m_j)'(L+S_j)^-1(x-m_j)/2).

    The product of two Gaussian densities integrates to a Gaussian density; V0 is the same sum
    over pairs of components with L + S_i + S_j. O(n J d^2) for n points, O(J^2 d^3) once.
    """
    dim = target.dim
    metric = kernel.metric(dim)
    # In density scale |L|^(1/2) cancels against the kernel's height.
    amplitude = kernel.height(dim) * np.prod(np.diag(np.linalg.cholesky(metric)))
    factors = np.linalg.cholesky(metric + target.covariances)
    heights = amplitude * target.weights / np.prod(np.einsum("jii->ji", factors), axis=1)

    def terms(x):
        for factor, mean, height in zip(factors, target.means, heights, strict=True):
            white = solve_triangular(factor, (x - mean).T, lower=True)
            yield factor, white, height * np.exp(-0.5 * np.square(white).sum(axis=0))

    def kernel_mean(x):
        return sum(term for _, _, term in terms(np.asarray(x, dtype=float)))

    def kernel_mean_gradient(x):
        return sum(
            -term[:, None] * solve_triangular(factor, white, lower=True, trans="T").T
            for factor, white, term in terms(np.asarray(x, dtype=float))
        )

    pair_covariances = metric + target.covariances[:, None] + target.covariances[None]
    pair_factors = np.linalg.cholesky(pair_covariances)
    difference = target.means[:, None] - target.means[None]
    white = np.linalg.solve(pair_factors, difference[..., None])[..., 0]
    pairs = np.exp(-0.5 * np.square(white).sum(axis=-1))
    pairs /= np.prod(np.einsum("ijkk->ijk", pair_factors), axis=-1)
    prior_variance = float(amplitude * (target.weights @ pairs @ target.weights))
    return Embedding(kernel, target, kernel_mean, kernel_mean_gradient, prior_variance)
