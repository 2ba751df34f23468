"""Embeddings under the rational quadratic kernel, a Gamma mixture of exponentiated quadratics."""

from collections.abc import Callable, Iterable

import numpy as np
from numpy.typing import NDArray
from scipy.special import poch, wofz

from bqlib.arrays import Array, ArrayFunction, polyval, total
from bqlib.checks import LONGEST
from bqlib.embeddings.embedding import Embed, Embedding, embed_by_blocks, register
from bqlib.embeddings.exponentiated_quadratic import (
    exponentiated_quadratic_gaussian_mixture,
    exponentiated_quadratic_uniform,
)
from bqlib.kernels import ExponentiatedQuadratic, RationalQuadratic
from bqlib.targets import GaussianMixture, Product, Target, Uniform

ComplexArray = NDArray[np.complex128]


@register(RationalQuadratic, GaussianMixture)
def rational_quadratic_gaussian_mixture(
    kernel: RationalQuadratic, target: GaussianMixture
) -> Embedding:
    """See :func:`mix_over_lengthscales`; closed form for alpha = 1 in one dimension."""
    if kernel.alpha == 1 and target.dim == 1:
        return cauchy_gaussian_mixture(kernel, target)
    return mix_over_lengthscales(kernel, target, exponentiated_quadratic_gaussian_mixture)


@register(RationalQuadratic, Uniform)
def rational_quadratic_uniform(kernel: RationalQuadratic, target: Uniform) -> Embedding:
    """See :func:`mix_over_lengthscales`; closed form for alpha = 1 in one dimension."""
    if kernel.alpha == 1 and target.dim == 1:
        return cauchy_uniform(kernel, target)
    return mix_over_lengthscales(kernel, target, exponentiated_quadratic_uniform)


@register(RationalQuadratic, Product)
def rational_quadratic_product(kernel: RationalQuadratic, target: Product) -> Embedding:
    """See :func:`mix_over_lengthscales`: each of its parts factorises over the blocks."""
    return mix_over_lengthscales(kernel, target, embed_by_blocks)


def mix_over_lengthscales(
    kernel: RationalQuadratic, target: Target, embed_part: Embed
) -> Embedding:
    """Kernel mean as the Gamma mean of exponentiated quadratic ones, by quadrature.

    The kernel is E exp(-tau r^2 / 2) for tau ~ Gamma(alpha, rate alpha), so its mean is that of
    exponentiated quadratic kernels with length-scales l / sqrt(tau). About 90 nodes (alpha = 1)
    give an error below 1e-14 k(x, x), also for length-scales down to a hundredth of the target's
    standard deviation, where Gauss-Laguerre rules of that size have no digit right.
    """
    if not 0.1 <= kernel.alpha <= 1e6:
        raise ValueError(
            f"alpha is {kernel.alpha:g}; an embedding needs alpha between 0.1 and 1e6. Above, use "
            "ExponentiatedQuadratic, which is the same kernel to 6 digits"
        )
    height = kernel.height(target.dim)
    precisions, weights = gamma_rule(kernel.alpha)
    # The longest have no weight that counts, and would leave the range of float64.
    lengthscales = (np.minimum(kernel.lengthscale / np.sqrt(tau), LONGEST) for tau in precisions)
    parts = [embed_part(ExponentiatedQuadratic(own), target) for own in lengthscales]

    def mix(values: Iterable[Array]) -> Array:
        return height * total(w * value for w, value in zip(weights, values, strict=True))

    return Embedding(
        kernel,
        target,
        lambda x: mix(part.kernel_mean(x) for part in parts),
        lambda x: mix(part.kernel_mean_gradient(x) for part in parts),
        float(mix(np.array(part.prior_variance) for part in parts)),
    )


def gamma_rule(alpha: float) -> tuple[Array, Array]:
    """Nodes and weights for the mean of a smooth function of tau ~ Gamma(alpha, rate alpha).

    The trapezoidal rule in u, where log tau = u - exp(-(u + 15)): evenly spaced in log tau down
    to tau = e^-15, from where the kernel at 2000 length-scales gets its value, and falling off
    doubly exponentially below.
    Source: Takahasi and Mori, "Double exponential formulas for numerical integration", 1974.
    """
    step = min(0.24, 0.4 / np.sqrt(alpha))
    reach = 30 / np.sqrt(alpha)  # the density of log tau is narrow, about 1 / sqrt(alpha)
    u = np.arange(max(-24, -reach), min(8, reach), step)
    fall = np.exp(-(u + 15))
    log_tau = u - fall
    log_weights = alpha * (log_tau - np.exp(log_tau)) + np.log1p(fall)
    log_weights -= log_weights.max()
    kept = log_weights > -42  # below it, nothing adds to a sum of order one
    weights = np.exp(log_weights[kept])
    return np.exp(log_tau[kept]), weights / weights.sum()


def cauchy_gaussian_mixture(kernel: RationalQuadratic, target: GaussianMixture) -> Embedding:
    """Closed form for alpha = 1 in one dimension, by the Faddeeva function w.

    With c = sqrt(2) l, the kernel c^2 / (c^2 + r^2) is the real part of a Laplace transform, and
    its mean at distance u from a Gaussian's is sqrt(pi / 2) c / s Re w((u + i c) / (sqrt(2) s)).
    """
    height = kernel.height(1)
    c = np.sqrt(2) * float(np.squeeze(kernel.lengthscale))
    means = target.means[:, 0]
    deviations = np.sqrt(target.covariances[:, 0, 0])

    def argument(u: Array, s: Array) -> ComplexArray:
        return (u + 1j * c) / (np.sqrt(2) * s)

    def mean(u: Array, s: Array) -> Array:
        return np.sqrt(np.pi / 2) * c / s * wofz(argument(u, s)).real

    def slope(u: Array, s: Array) -> Array:
        return np.sqrt(np.pi) * c / (2 * s**2) * faddeeva_derivative(argument(u, s)).real

    def over_components(function: Callable[[Array, Array], Array]) -> ArrayFunction:
        return lambda x: height * (function(x - means, deviations) @ target.weights)

    pairs = mean(means[:, None] - means, np.hypot(deviations[:, None], deviations))
    return Embedding(
        kernel,
        target,
        over_components(mean),
        lambda x: over_components(slope)(x)[:, None],
        float(height * (target.weights @ pairs @ target.weights)),
    )


def faddeeva_derivative(z: ComplexArray) -> ComplexArray:
    """w'(z) = 2i / sqrt(pi) - 2 z w(z), by its asymptotic series where the two terms cancel."""
    derivative = 2j / np.sqrt(np.pi) - 2 * z * wofz(z)
    far = np.abs(z) > 8
    series = [(2 * k + 1) * poch(0.5, k) for k in range(20)]
    inverse = 1 / z[far] ** 2
    derivative[far] = -1j / np.sqrt(np.pi) * inverse * polyval(inverse, series)
    return derivative


def cauchy_uniform(kernel: RationalQuadratic, target: Uniform) -> Embedding:
    """Closed form for alpha = 1 in one dimension, by the arc tangent."""
    height = kernel.height(1)
    c = np.sqrt(2) * float(np.squeeze(kernel.lengthscale))
    (lower,), (upper,) = target.lower, target.upper
    width = (upper - lower) / c

    def ends(x: Array) -> tuple[Array, Array]:
        return (x[:, 0] - lower) / c, (upper - x[:, 0]) / c

    def kernel_mean(x: Array) -> Array:
        left, right = ends(x)
        # atan(left) + atan(right), as one angle so that it does not cancel outside the box
        return height * np.arctan2(width, 1 - left * right) / width

    def kernel_mean_gradient(x: Array) -> Array:
        left, right = ends(x)
        slope = (right - left) / ((1 + left**2) * (1 + right**2)) / c
        return height * slope[:, None]

    variance = 2 / width**2 * (width * np.arctan(width) - np.log1p(width**2) / 2)
    return Embedding(kernel, target, kernel_mean, kernel_mean_gradient, float(height * variance))
