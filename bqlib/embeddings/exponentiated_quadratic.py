"""Embeddings under the exponentiated quadratic kernel."""

from collections.abc import Iterator
from typing import Any

import numpy as np
from scipy.special import erf, erfcx

from bqlib.arrays import Array, solve_lower, total
from bqlib.embeddings.embedding import Embedding, embed_by_blocks, register
from bqlib.embeddings.quadrature import (
    LEGENDRE_NODES,
    LEGENDRE_WEIGHTS,
    double_mean_on_interval,
)
from bqlib.kernels import ExponentiatedQuadratic
from bqlib.targets import GaussianMixture, Product, Uniform


@register(ExponentiatedQuadratic, GaussianMixture)
def exponentiated_quadratic_gaussian_mixture(
    kernel: ExponentiatedQuadratic, target: GaussianMixture
) -> Embedding:
    """Kernel mean |L|^(1/2) sum_j p_j |L + S_j|^(-1/2) exp(-(x-m_j)'(L+S_j)^-1(x-m_j)/2).

    The product of two Gaussian densities integrates to a Gaussian density; V0 is the same sum
    over pairs of components with L + S_i + S_j. O(n J d^2) for n points, O(J^2 d^3) once.
    """
    metric = kernel.metric(target.dim)
    height = kernel.height(target.dim)
    root = np.diag(np.linalg.cholesky(metric))

    def shrinkage(factors: Any) -> Array:
        # |L|^(1/2) |L + S|^(-1/2), factor by factor so that no determinant overflows.
        return np.prod(root / np.diagonal(factors, axis1=-2, axis2=-1), axis=-1)

    factors: Any = np.linalg.cholesky(metric + target.covariances)
    heights = height * target.weights * shrinkage(factors)

    def terms(x: Array) -> Iterator[tuple[Array, Array, Array]]:
        for factor, mean, height in zip(factors, target.means, heights, strict=True):
            white = solve_lower(factor, (x - mean).T)
            yield factor, white, height * np.exp(-0.5 * np.square(white).sum(axis=0))

    def kernel_mean(x: Array) -> Array:
        return total(term for _, _, term in terms(x))

    def kernel_mean_with_gradient(x: Array) -> tuple[Array, Array]:
        mean, slopes = np.zeros(()), np.zeros(())
        for factor, white, term in terms(x):
            mean = mean + term
            slopes = slopes - term * solve_lower(factor, white, transposed=True)
        return mean, slopes.T

    pair_covariances = metric + target.covariances[:, None] + target.covariances[None]
    pair_factors = np.linalg.cholesky(pair_covariances)
    difference = target.means[:, None] - target.means[None]
    white = np.linalg.solve(pair_factors, difference[..., None])[..., 0]
    pairs = shrinkage(pair_factors) * np.exp(-0.5 * np.square(white).sum(axis=-1))
    return Embedding(
        kernel,
        target,
        kernel_mean,
        lambda x: kernel_mean_with_gradient(x)[1],
        float(height * (target.weights @ pairs @ target.weights)),
        kernel_mean_with_gradient,
    )


@register(ExponentiatedQuadratic, Uniform)
def exponentiated_quadratic_uniform(kernel: ExponentiatedQuadratic, target: Uniform) -> Embedding:
    """Kernel mean by the error function, in each coordinate. O(n d) for n points.

    If the box is short compared with the length-scale, differences of error functions cancel, and
    Gauss-Legendre quadrature of the kernel is used instead.
    """
    if target.dim > 1 or kernel.lengthscale is None:
        return embed_by_blocks(kernel, target)
    height = kernel.height(1)
    unit = np.sqrt(2) * float(np.squeeze(kernel.lengthscale))
    (lower,), (upper,) = target.lower, target.upper
    width = (upper - lower) / unit

    def ends(x: Array) -> tuple[Array, Array]:
        return (x[:, 0] - lower) / unit, (upper - x[:, 0]) / unit

    def kernel_mean(x: Array) -> Array:
        left, right = ends(x)
        near = -np.minimum(left, right)  # distance to the box, where it is positive
        mean = np.sqrt(np.pi) / 2 * (erf(left) + erf(right)) / width
        outside = near > 0
        # The exponent of the kernel grows by `change` from one end of the box to the other.
        change = width * (2 * near + width)
        far = outside & (change >= 1)
        p = near[far]
        tails = erfcx(p) - np.exp(-change[far]) * erfcx(p + width)
        mean[far] = np.sqrt(np.pi) / 2 * np.exp(-(p**2)) * tails / width
        flat = outside & (change < 1)
        distances = near[flat, None] + width * LEGENDRE_NODES
        mean[flat] = np.exp(-(distances**2)) @ LEGENDRE_WEIGHTS
        return height * mean

    def kernel_mean_gradient(x: Array) -> Array:
        # (k(x - lower) - k(upper - x)) / (upper - lower), as one difference of exponents
        left, right = ends(x)
        change = (left - right) * width  # left^2 - right^2
        least = np.minimum(left**2, right**2)
        slope = np.sign(change) * np.exp(-least) * np.expm1(-np.abs(change)) / (upper - lower)
        return height * slope[:, None]

    if width < 2:
        variance = double_mean_on_interval(lambda r: np.exp(-(r**2)), width)
    else:
        variance = (np.sqrt(np.pi) * width * erf(width) + np.expm1(-(width**2))) / width**2
    return Embedding(kernel, target, kernel_mean, kernel_mean_gradient, float(height * variance))


register(ExponentiatedQuadratic, Product)(embed_by_blocks)
