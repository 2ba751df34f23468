"""Embeddings under the rational quadratic kernel, a Gamma mixture of exponentiated quadratics."""

from collections.abc import Callable
from functools import cache

import numpy as np
from scipy.linalg import eigh_tridiagonal
from scipy.optimize import brentq
from scipy.special import gammainccinv, gammaincinv, gammaln, loggamma, wofz

from bqlib.arrays import Array, total
from bqlib.checks import CHANGE_UNITS, LONGEST
from bqlib.embeddings.embedding import Embed, Embedding, embed_by_blocks, register
from bqlib.embeddings.exponentiated_quadratic import (
    exponentiated_quadratic_gaussian_mixture,
    exponentiated_quadratic_uniform,
)
from bqlib.kernels import ExponentiatedQuadratic, RationalQuadratic
from bqlib.targets import Empirical, GaussianMixture, Product, Target, Uniform

STRIDE = 1.5  # of levels of distance, in log r^2


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
    exponentiated quadratic kernels with length-scales l / sqrt(tau). All terms are positive, and
    :func:`gamma_rule` has the same small relative error at every r, so the mean has it too,
    whatever the target. How small tau must become follows from the distance of each point from the
    target, in steps, so the value at a point does not depend on the points beside it.
    """
    if not 0.1 <= kernel.alpha <= 1e6:
        raise ValueError(
            f"alpha is {kernel.alpha:g}; an embedding needs alpha between 0.1 and 1e6. Above, use "
            "ExponentiatedQuadratic, which is the same kernel to 6 digits"
        )
    height = kernel.height(target.dim)
    lower, upper = bulk(target)
    centre, half = (lower + upper) / 2, (upper - lower) / 2

    @cache
    def part(tau: float) -> Embedding:
        own = kernel.lengthscale / np.sqrt(tau)
        if np.max(own) > LONGEST:
            raise ValueError(
                f"the embedding of RationalQuadratic needs length-scales up to {np.max(own):.1g} "
                "here; they must be below 1e50. Distances and length-scales below 1e46 never need "
                f"more: {CHANGE_UNITS}"
            )
        return embed_part(ExponentiatedQuadratic(own), target)

    @cache
    def rule(level: int) -> list[tuple[float, Embedding]]:
        precisions, weights = gamma_rule(kernel.alpha, level)
        pairs = zip(weights.tolist(), precisions.tolist(), strict=True)
        return [(height * w, part(tau)) for w, tau in pairs]

    def levels(distances: Array) -> Array:
        """Level of the rule for distances in each coordinate (the last axis)."""
        squares = np.square(distances / kernel.lengthscale).sum(axis=-1)
        return np.ceil(np.log(kernel.alpha + squares) / STRIDE).astype(int)

    def mix(function: Callable[[Embedding, Array], Array], x: Array, result: Array) -> Array:
        own = levels(np.abs(x - centre) + half)
        for level in np.unique(own).tolist():
            rows = own == level
            result[rows] = total(w * function(part, x[rows]) for w, part in rule(level))
        return result

    return Embedding(
        kernel,
        target,
        lambda x: mix(lambda part, own: part.kernel_mean(own), x, np.empty(len(x))),
        lambda x: mix(lambda part, own: part.kernel_mean_gradient(own), x, np.empty(x.shape)),
        sum(w * part.prior_variance for w, part in rule(int(levels(2 * half)))),
    )


def bulk(target: Target) -> tuple[Array, Array]:
    """Ends of a box around what counts of a target: here only its order of magnitude matters."""
    match target:
        case GaussianMixture():
            deviations = np.sqrt(np.diagonal(target.covariances, axis1=1, axis2=2))
            lower, upper = target.means - deviations, target.means + deviations
            return lower.min(axis=0), upper.max(axis=0)
        case Uniform():
            return target.lower, target.upper
        case Product():
            lowers, uppers = zip(*(bulk(block) for block in target.blocks), strict=True)
            return np.concatenate(lowers), np.concatenate(uppers)
        case _:  # a data set, or a target of the user's own
            points = target.points if isinstance(target, Empirical) else target.sample(256, rng=0)
            return points.min(axis=0), points.max(axis=0)


@cache
def gamma_step(alpha: float) -> float:
    """Step in log tau for which the trapezoidal rule is exact to float64.

    At every distance r the integrand is a Gamma density of log tau, shifted. By Poisson's formula,
    the relative error of the rule with step h is then at most 2 |Gamma(alpha + 2 pi i / h)| /
    Gamma(alpha) and what is much smaller. It is 1e-17 here, for alpha + 1, as in gradients.
    """

    def excess(log_step: float) -> float:
        frequency = 2 * np.pi / np.exp(log_step)
        return float(loggamma(alpha + 1 + 1j * frequency).real - gammaln(alpha + 1) + 39.8)

    return float(np.exp(brentq(excess, np.log(0.1 / np.sqrt(alpha + 1)), 0.0)))


def gamma_rule(alpha: float, level: int) -> tuple[Array, Array]:
    """Nodes and weights for the mean of a smooth function of tau ~ Gamma(alpha, rate alpha).

    For functions such as exp(-tau r^2 / 2) with alpha + r^2 up to exp(STRIDE level): relative error
    below 1e-15, small values too. The trapezoidal rule in log tau, see :func:`gamma_step`. Its
    upper end leaves out a share of 1e-18. Below its lower end, the function hardly bends, and
    :func:`geometric_rule` sums all further nodes down to tau = 0.
    """
    step = gamma_step(alpha)
    last = np.log(gammainccinv(alpha, 1e-18) / alpha)
    negligible = gammaincinv(alpha, 1e-18)  # a share of 1e-18 is below, at every distance
    first = np.log(max(0.5, negligible)) - STRIDE * level
    log_tau = step * np.arange(np.floor(first / step), np.ceil(last / step) + 1)
    tau = np.exp(log_tau)
    weights = np.exp(alpha * (log_tau - np.expm1(log_tau)))
    if negligible < 0.5:
        nodes, shares = geometric_rule(alpha, step)
        end = log_tau[0] - step
        tail = np.exp(end) * nodes
        tau = np.concatenate([tail, tau])
        weights = np.concatenate([shares * np.exp(alpha * (end + 1 - tail)), weights])
    held = weights > 0  # below, float64 has no number
    return tau[held], weights[held] / weights.sum()


@cache
def geometric_rule(alpha: float, step: float, size: int = 10) -> tuple[Array, Array]:
    """Gauss rule for the sum over j >= 0 of q^(alpha j) f(q^j), with q = exp(-step).

    Its nodes are the zeros of a little q-Jacobi polynomial, found as eigenvalues.
    Source: Koekoek, Lesky and Swarttouw, "Hypergeometric orthogonal polynomials and their
    q-analogues", 2010, section 14.12, with b = 1 and a = q^(alpha - 1).
    """

    def gap(power: Array) -> Array:
        return np.asarray(-np.expm1(-step * power))  # 1 - q^power

    n = np.arange(size, dtype=np.float64)
    up = np.exp(-step * n) * gap(n + alpha) ** 2 / (gap(2 * n + alpha) * gap(2 * n + alpha + 1))
    m = n[1:]
    down = np.zeros(size)
    down[1:] = np.exp(-step * (m + alpha - 1)) * gap(m) ** 2
    down[1:] /= gap(2 * m + alpha - 1) * gap(2 * m + alpha)
    nodes, vectors = eigh_tridiagonal(up + down, np.sqrt(up[:-1] * down[1:]))
    return nodes, vectors[0] ** 2 / -np.expm1(-step * alpha)


def cauchy_gaussian_mixture(kernel: RationalQuadratic, target: GaussianMixture) -> Embedding:
    """Closed form for alpha = 1 in one dimension, by the Faddeeva function w.

    With c = sqrt(2) l, the kernel c^2 / (c^2 + r^2) is the real part of a Laplace transform, and
    its mean at distance u from a Gaussian's is sqrt(pi / 2) c / s Re w((u + i c) / (sqrt(2) s)).
    Its derivative cancels, so the gradient is that of :func:`mix_over_lengthscales`.
    """
    height = kernel.height(1)
    c = np.sqrt(2) * float(np.squeeze(kernel.lengthscale))
    means = target.means[:, 0]
    deviations = np.sqrt(target.covariances[:, 0, 0])

    def mean(u: Array, s: Array) -> Array:
        return np.sqrt(np.pi / 2) * c / s * wofz((u + 1j * c) / (np.sqrt(2) * s)).real

    @cache
    def mixed() -> Embedding:
        return mix_over_lengthscales(kernel, target, exponentiated_quadratic_gaussian_mixture)

    pairs = mean(means[:, None] - means, np.hypot(deviations[:, None], deviations))
    return Embedding(
        kernel,
        target,
        lambda x: height * (mean(x - means, deviations) @ target.weights),
        lambda x: mixed().kernel_mean_gradient(x),
        float(height * (target.weights @ pairs @ target.weights)),
    )


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
