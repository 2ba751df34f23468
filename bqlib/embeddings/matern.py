"""Embeddings under the Matern kernel, from one-dimensional ones for each coordinate."""

from collections.abc import Sequence
from math import comb, factorial

import numpy as np
from scipy.special import erfc, erfcx, gammainc

from bqlib.arrays import Array, Mask, polyval, product_gradient, total
from bqlib.embeddings.embedding import Embedding, embed_by_blocks, register
from bqlib.embeddings.quadrature import (
    LAGUERRE_NODES,
    LAGUERRE_WEIGHTS,
    double_mean_on_interval,
)
from bqlib.kernels.matern import MATERN_SLOPE, MATERN_VALUE, Matern
from bqlib.targets import GaussianMixture, Product, Uniform

LAGUERRE_FROM = 2.8  # moments by recursion have 14 digits below, those by quadrature above
STEP, TERMS = 0.12, 14  # of the power series of a gradient, for 16 digits


@register(Matern, GaussianMixture)
def matern_gaussian_mixture(kernel: Matern, target: GaussianMixture) -> Embedding:
    """Kernel mean by erfcx, in each coordinate of each component. O(n J d) for n points.

    The covariances must be diagonal: no closed form exists if the coordinates of a component depend
    on each other.
    """
    off_diagonal = target.covariances * (1 - np.eye(target.dim))
    if off_diagonal.any():
        j = int(np.argmax(off_diagonal.any(axis=(1, 2))))
        raise ValueError(
            "Matern has closed forms only for a GaussianMixture with diagonal covariances, and "
            f"that of component {j} is not diagonal; use diagonal covariances, or the kernel "
            "ExponentiatedQuadratic or RationalQuadratic, or the target "
            "Empirical(target.sample(n, rng))"
        )
    height = kernel.height(target.dim)
    rates = kernel.rates(target.dim)
    deviations = np.sqrt(np.diagonal(target.covariances, axis1=1, axis2=2))
    value, slope = MATERN_VALUE[kernel.nu], MATERN_SLOPE[kernel.nu]

    def means(u: Array, deviations: Array) -> Array:
        """Kernel mean at distance u from the mean, in each coordinate (the last axis)."""
        return one_sided(value, u, deviations, rates) + one_sided(value, -u, deviations, rates)

    def slopes(u: Array, deviations: Array) -> Array:
        right, left = (one_sided(slope, side, deviations, rates) for side in (u, -u))
        difference = right - left
        near, series = odd_part(slope, u, deviations, rates)
        difference[near] = series[near]
        return -rates * difference

    def kernel_mean(x: Array) -> Array:
        components = zip(target.weights, target.means, deviations, strict=True)
        return height * total(w * np.prod(means(x - m, s), axis=-1) for w, m, s in components)

    def kernel_mean_gradient(x: Array) -> Array:
        components = zip(target.weights, target.means, deviations, strict=True)
        return height * total(
            w * product_gradient(means(x - m, s).T, slopes(x - m, s).T) for w, m, s in components
        )

    # The difference of two independent components is Gaussian again.
    differences = target.means[:, None] - target.means[None]
    pairs = means(differences, np.hypot(deviations[:, None], deviations[None])).prod(axis=-1)
    prior_variance = float(height * (target.weights @ pairs @ target.weights))
    return Embedding(kernel, target, kernel_mean, kernel_mean_gradient, prior_variance)


def one_sided(coefficients: Sequence[float], u: Array, deviation: Array, rate: Array) -> Array:
    """E[P(rate R) exp(-rate R); R > 0] for R ~ N(u, deviation^2), element by element.

    P is a polynomial of degree 2 or less. With b = rate deviation and
    a = (b - u / deviation) / sqrt 2, the moments of the tilted Gaussian follow from erfc(a). They
    cancel like a^(2 degree) for large a. There Gauss-Laguerre quadrature with the tilted rate is
    used instead. Either is good to 3e-14.
    """
    u, deviation, rate = np.broadcast_arrays(u, deviation, rate)
    b = rate * deviation
    standard = u / deviation
    a = (b - standard) / np.sqrt(2)
    density = np.exp(-0.5 * standard**2)
    moment = np.empty(a.shape)

    tail = a >= (LAGUERRE_FROM if len(coefficients) > 1 else np.inf)
    if tail.any():
        tilt = np.sqrt(2) * a[tail][:, None]
        polynomial = polyval(LAGUERRE_NODES * (b[tail][:, None] / tilt), coefficients)
        integrand = polynomial * np.exp(-0.5 * (LAGUERRE_NODES / tilt) ** 2)
        moment[tail] = density[tail] / np.sqrt(2 * np.pi) * (integrand @ LAGUERRE_WEIGHTS)
        moment[tail] /= tilt[:, 0]

    low = a < -5  # where erfcx would overflow in the end
    mass = np.empty(a.shape)
    mass[low] = 0.5 * np.exp((0.5 * b**2 - rate * u)[low]) * erfc(a[low])
    mass[~low] = 0.5 * density[~low] * erfcx(a[~low])
    direct = ~tail
    a, b, density, mass = a[direct], b[direct], density[direct], mass[direct]
    centre = -np.sqrt(2) * b * a
    moments = [mass]
    if len(coefficients) > 1:
        moments.append(centre * mass + b * density / np.sqrt(2 * np.pi))
    if len(coefficients) > 2:
        moments.append(centre * moments[1] + b**2 * mass)
    moment[direct] = total(p * m for p, m in zip(coefficients, moments, strict=True))
    return moment


def odd_part(
    coefficients: Sequence[float], u: Array, deviation: Array, rate: Array
) -> tuple[Mask, Array]:
    """Where one_sided(u) - one_sided(-u) cancels, and its power series in u, exact there.

    With U = u / s and b = rate s, it is sqrt(2 / pi) exp(-U^2 / 2) times the integral of
    P(b t) exp(-t^2 / 2 - b t) sinh(U t) over t > 0. All terms of its series in U are positive, and
    from one to the next they fall by U^2 / b^2 for large b, by U^2 / (2 j + 3) for small b.
    """
    b = np.asarray(rate * deviation)[..., None]
    unit = 1 + b
    # The trapezoidal rule in log t: exact to float64, as the integrand is analytic in a wide strip.
    t = np.exp(STEP * np.arange(-183, 46))
    density = STEP * t * np.exp(-0.5 * (t / unit) ** 2 - (b / unit) * t)
    density *= polyval(b / unit * t, coefficients) / unit
    powers = np.array([t ** (2 * j + 1) / factorial(2 * j + 1) for j in range(TERMS)])
    scaled = u / deviation / unit[..., 0]
    near = np.abs(scaled) <= 0.25
    small = np.where(near, scaled, 0.0)
    moments = np.moveaxis(density @ powers.T, -1, 0)
    series = small * polyval(small**2, list(moments))
    return near, np.sqrt(2 / np.pi) * np.exp(-0.5 * (u / deviation) ** 2) * series


@register(Matern, Uniform)
def matern_uniform(kernel: Matern, target: Uniform) -> Embedding:
    """Kernel mean by integrals of P(rho) exp(-rho) in each coordinate. O(n d) for n points."""
    if target.dim > 1:
        return embed_by_blocks(kernel, target)
    height = kernel.height(1)
    (rate,), (lower,), (upper,) = kernel.rates(1), target.lower, target.upper
    value = MATERN_VALUE[kernel.nu]
    width = rate * (upper - lower)

    def kernel_mean(x: Array) -> Array:
        left, right = rate * (x[:, 0] - lower), rate * (upper - x[:, 0])
        here = np.zeros(())
        inside = segment(value, here, np.clip(left, 0, width))
        inside += segment(value, here, np.clip(right, 0, width))
        near = -np.minimum(left, right)
        outside = segment(value, np.maximum(near, 0), width)
        return height * np.where(near > 0, outside, inside) / width

    def kernel_mean_gradient(x: Array) -> Array:
        left, right = rate * np.abs(x[:, 0] - lower), rate * np.abs(upper - x[:, 0])
        # k(x - lower) - k(upper - x), the integral of the kernel's slope between the two
        slope = segment(MATERN_SLOPE[kernel.nu], np.minimum(left, right), np.abs(right - left))
        return height * (np.sign(right - left) * slope)[:, None] / (upper - lower)

    if width < 4:
        variance = double_mean_on_interval(lambda rho: polyval(rho, value) * np.exp(-rho), width)
    else:
        tail = np.exp(-width)
        variance = (2 / width**2) * {
            0.5: width - 1 + tail,
            1.5: 2 * width - 3 + (3 + width) * tail,
            2.5: 8 * width / 3 - 5 + (15 + 7 * width + width**2) * tail / 3,
        }[kernel.nu]
    return Embedding(kernel, target, kernel_mean, kernel_mean_gradient, float(height * variance))


def segment(coefficients: Sequence[float], start: Array, length: Array) -> Array:
    """Integral of P(t) exp(-t) from `start` to `start` + `length`, element by element.

    As exp(-start) times the integral of P(start + t) exp(-t) from 0 to `length`, so that a short
    segment far out keeps its digits.
    """
    tail = np.exp(-length)
    moments = [-np.expm1(-length)]
    for k in range(1, len(coefficients)):
        # For a short segment the difference cancels, and an incomplete Gamma function is used.
        short = factorial(k) * gammainc(k + 1, length)
        moments.append(np.where(length < 1, short, k * moments[-1] - length**k * tail))
    taylor = [
        polyval(start, [comb(k, i) * p for k, p in enumerate(coefficients) if k >= i])
        for i in range(len(coefficients))
    ]
    return np.exp(-start) * total(c * m for c, m in zip(taylor, moments, strict=True))


register(Matern, Product)(embed_by_blocks)
