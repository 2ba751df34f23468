"""The posterior of kernel parameters."""

from dataclasses import replace

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from bqlib import ExponentiatedQuadratic, Matern, kernel_posterior
from bqlib.kernel_posterior import LEAST, NUGGET_PLACE, Values, _Search, family_of, solution
from bqlib.likelihood import NUGGET

RNG = np.random.default_rng(0)
X = RNG.random((12, 2))
F = np.sin(4 * X[:, 0]) + X[:, 1]
NOISE = 0.01 + 0.1 * RNG.random(12)
KERNELS = [
    Matern([1.0, 2.0], nu=1.5),
    Matern(1.0, nu=0.5),
    ExponentiatedQuadratic([1.0, 1.0]),
    ExponentiatedQuadratic(covariance=[[1.0, 0.3], [0.3, 2.0]]),
]


def posterior(kernels, values):
    families = [family_of(kernel, values.points) for kernel in kernels]
    return kernel_posterior.kernel_posterior(families, values)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
@pytest.mark.parametrize("noise", [None, NOISE], ids=["exact", "noisy"])
@pytest.mark.parametrize("constant", [True, False])
def test_gradient_against_differences(kernel, noise, constant):
    search = _Search(family_of(kernel, X), Values(X, F, noise, constant))
    t = search.places + 0.3 * np.cos(np.arange(len(search.places)))
    value, gradient = search.negative(t)
    assert value == pytest.approx(-search.value(t))
    step = 1e-5 * np.eye(len(t))
    found = [(search.value(t - e) - search.value(t + e)) / 2e-5 for e in step]
    np.testing.assert_allclose(gradient, found, rtol=1e-5, atol=1e-6)


def test_the_likelihood_of_noisy_values_is_that_of_their_contrasts():
    """The density of all differences does not hang on the constant (restricted likelihood)."""
    search = _Search(family_of(KERNELS[0], X), Values(X, F, NOISE, True))
    contrasts = np.eye(12)[1:] - np.eye(12)[0]

    def log_density(t):
        kernel, nugget, variance = KERNELS[0], np.exp(t[2]), np.exp(t[3])
        gram = replace(kernel, lengthscale=np.exp(t[:2]))(X, X)
        full = variance * (gram + (nugget + NUGGET) * np.eye(12)) + np.diag(NOISE)
        law = multivariate_normal(cov=contrasts @ full @ contrasts.T)
        return (
            law.logpdf(contrasts @ F) - 0.5 * np.square((t - search.places) / search.spreads).sum()
        )

    one, other = search.places, search.places + np.array([0.5, -0.4, 1.0, 0.3])
    expected = log_density(other) - log_density(one)
    assert search.value(other) - search.value(one) == pytest.approx(expected)


def test_without_noise_the_output_scale_is_integrated_out():
    """Over log a^2 with a flat prior, by quadrature."""
    search = _Search(family_of(KERNELS[0], X), Values(X, F, None, True))

    def log_density(t):
        gram = replace(KERNELS[0], lengthscale=np.exp(t[:2]))(X, X)
        gram = gram + (np.exp(t[2]) + NUGGET) * np.eye(12)
        found = solution(gram, Values(X, F, None, True))
        log_scales = np.linspace(-12, 12, 4001)
        exponents = -0.5 * 11 * log_scales - 0.5 * found.misfit * np.exp(-log_scales)
        total = np.log(np.exp(exponents - exponents.max()).sum()) + exponents.max()
        total -= 0.5 * np.linalg.slogdet(gram)[1] + 0.5 * np.log(found.information)
        return total - 0.5 * np.square((t - search.places) / search.spreads).sum()

    one, other = search.places, search.places + np.array([0.5, -0.4, 1.0])
    expected = log_density(other) - log_density(one)
    assert search.value(other) - search.value(one) == pytest.approx(expected, rel=1e-6)


def test_moments_and_evidence_are_those_of_a_fine_grid():
    """One length-scale and the nugget, in two dimensions of parameters."""
    kernels = [Matern(1.0, nu=0.5), ExponentiatedQuadratic(1.0)]
    values = Values(X, F, None, True)
    found = posterior(kernels, values)
    evidence, means = [], []
    for kernel in kernels:
        search = _Search(family_of(kernel, X), values)
        lengths = search.places[0] + np.linspace(-4, 4, 41)
        nuggets = NUGGET_PLACE + np.linspace(-9, 7, 41)
        density = np.array([[search.value(np.array([u, v])) for v in nuggets] for u in lengths])
        density = np.exp(density - 20.0)
        evidence.append(density.sum())
        means.append(density.sum(axis=1) @ lengths / density.sum())
    np.testing.assert_allclose(found.shares, np.array(evidence) / sum(evidence), atol=0.06)
    for nu, mean in zip((0.5, None), means, strict=True):
        own = [p for p in found.points if getattr(p.kernel, "nu", None) == nu]
        weights = np.array([p.weight for p in own])
        logs = np.log([p.kernel.lengthscale for p in own])
        assert weights @ logs / weights.sum() == pytest.approx(mean, abs=0.1)


def test_weights_sum_to_one_and_points_without_weight_are_left_out():
    found = posterior(KERNELS[:3], Values(X, F, None, True))
    weights = np.array([point.weight for point in found.points])
    assert weights.sum() == pytest.approx(1)
    assert weights.min() > 0.9 * LEAST
    again = posterior(KERNELS[:3], Values(X, F, None, True))
    assert [p.weight for p in again.points] == weights.tolist()


def test_units_and_orders_of_coordinates_do_not_matter():
    kernel = Matern([1.0, 1.0], nu=2.5)
    one = posterior([kernel], Values(X, F, None, True)).best
    other = posterior([kernel], Values(1e6 * X[:, ::-1], F, None, True)).best
    np.testing.assert_allclose(
        other.kernel.lengthscale, 1e6 * one.kernel.lengthscale[::-1], rtol=1e-3
    )


def test_length_scales_that_the_values_tell_are_found():
    """Of a function that varies fast in one coordinate and not at all in the other."""
    x = np.random.default_rng(1).random((60, 2))
    found = posterior(
        [ExponentiatedQuadratic([1.0, 1.0])], Values(x, np.sin(9 * x[:, 0]), None, True)
    )
    fast, slow = found.best.kernel.lengthscale
    assert 0.1 < fast < 0.5
    assert slow > 3
    assert not found.flat
    assert found.best.nugget < 1e-4


def test_few_values_in_many_dimensions_stay_near_the_prior():
    """Ten values in eight dimensions: by likelihood alone, length-scales go to the ends."""
    x = np.random.default_rng(2).random((10, 8))
    found = posterior([Matern(np.ones(8), nu=2.5)], Values(x, np.sin(x.sum(axis=1)), None, True))
    assert found.flat
    for point in found.points:
        shift = np.log(point.kernel.lengthscale) - family_of(Matern(np.ones(8)), x).places
        assert np.abs(shift).max() < 8


def test_noise_among_the_values_is_found_in_the_nugget():
    rng = np.random.default_rng(3)
    x = rng.random((60, 1))
    noisy = np.sin(6 * x[:, 0]) + 0.3 * rng.standard_normal(60)
    clean = posterior([Matern(1.0)], Values(x, np.sin(6 * x[:, 0]), None, True)).best
    found = posterior([Matern(1.0)], Values(x, noisy, None, True)).best
    assert found.nugget > 0.01 > 100 * clean.nugget
