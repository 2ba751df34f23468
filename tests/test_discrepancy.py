"""Discrepancies: the quadratic form against the spectral integral, scipy and exact algebra."""

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import qmc

from bqlib import ExponentiatedQuadratic, GaussianMixture, embed
from bqlib.discrepancy import mmd, mmd2, mmd2_of_prefixes, spectral_mmd2, witness
from bqlib.kernels import Brownian, L2Star, Matern
from bqlib.targets import Uniform
from bqlib.weights import bq, sum_to_one, uniform


def normal(dim=1):
    return GaussianMixture([1.0], np.zeros((1, dim)), np.eye(dim)[None])


def mixture(dim):
    covariances = [np.eye(dim), 0.25 * np.eye(dim) + 0.1]
    return GaussianMixture([0.4, 0.6], [[-1.0] * dim, [0.75] * dim], covariances)


@st.composite
def weighted_points(draw, most_dim=3):
    """An embedding, points and any weights."""
    n, dim = draw(st.integers(1, 8)), draw(st.integers(1, most_dim))
    coordinates, signed = st.floats(-3, 3), st.floats(-1, 1)
    points = draw(arrays.arrays(float, (n, dim), elements=coordinates))
    weights = draw(arrays.arrays(float, n, elements=signed))
    lengthscale = draw(arrays.arrays(float, dim, elements=st.floats(0.3, 2.0)))
    return embed(ExponentiatedQuadratic(lengthscale), mixture(dim)), points, weights


def gauss_hermite(count):
    """Nodes (count, 1) and weights that integrate polynomials under a standard normal."""
    nodes, weights = np.polynomial.hermite_e.hermegauss(count)
    return nodes[:, None], weights / np.sqrt(2 * np.pi)


def test_a_small_mmd_to_its_last_digit():
    # 60 digits in mpmath for these nodes and weights, length-scale 1, standard normal.
    nodes = 0.75 * np.arange(-6, 7)[:, None]
    half = [
        1.169749676926142e-05,
        0.00026631596501341167,
        0.003319879748896178,
        0.02381100927740174,
        0.0971299223175468,
        0.2258627374707531,
    ]
    weights = np.array([*half, 0.29919654844686755, *half[::-1]])
    exact = 7.8585533007473453e-11
    embedding = embed(ExponentiatedQuadratic(1.0), normal())
    np.testing.assert_allclose(spectral_mmd2(embedding, nodes, weights), exact, rtol=3e-12)
    # The quadratic form has lost ten digits by cancellation, no more and no fewer.
    assert 1e-9 < abs(mmd2(embedding, nodes, weights) / exact - 1) < 1e-4


@settings(max_examples=20)
@given(weighted_points(most_dim=2))
def test_quadratic_form_and_spectral_integral_agree(problem):
    embedding, points, weights = problem
    np.testing.assert_allclose(
        mmd2(embedding, points, weights), spectral_mmd2(embedding, points, weights), rtol=1e-9
    )


def test_spectral_mmd_with_a_full_covariance():
    covariance = [[1.0, 0.3, 0.0], [0.3, 0.8, 0.1], [0.0, 0.1, 1.2]]
    embedding = embed(ExponentiatedQuadratic(covariance=covariance, scale="density"), mixture(3))
    points = np.random.default_rng(0).normal(size=(10, 3))
    weights = bq(embedding, points).final(10)
    np.testing.assert_allclose(
        spectral_mmd2(embedding, points, weights), mmd2(embedding, points, weights), rtol=1e-12
    )


def test_spectral_mmd_refuses_what_it_cannot_do():
    points, weights = np.zeros((1, 1)), np.ones(1)
    matern = embed(Matern(1.0), Uniform([0.0], [1.0]))
    with pytest.raises(TypeError, match="not for Matern with Uniform; use mmd2 for other pairs"):
        spectral_mmd2(matern, points, weights)
    with pytest.raises(ValueError, match="not for d = 4"):
        spectral_mmd2(embed(ExponentiatedQuadratic(1.0), normal(4)), np.zeros((1, 4)), weights)


def test_mmd_below_rounding_is_nan_and_never_wrong_above_it():
    embedding = embed(ExponentiatedQuadratic(1.0), normal())
    lost = 0
    for count in range(4, 30):
        points = np.linspace(-6, 6, count)[:, None]
        weights = np.exp(-0.5 * points[:, 0] ** 2)
        weights /= weights.sum()
        value, exact = mmd2(embedding, points, weights), spectral_mmd2(embedding, points, weights)
        assert np.isnan(mmd(embedding, points, weights)) == np.isnan(value)
        assert exact > 0
        if np.isnan(value):
            lost += 1
            assert exact < 2e-14
            with pytest.raises(ValueError, match="below the rounding error"):
                witness(embedding, points, weights)
        else:
            np.testing.assert_allclose(value, exact, rtol=0.4)
    assert 3 < lost < 20


@given(weighted_points())
def test_prefixes_one_by_one(problem):
    embedding, points, _ = problem
    matrix = uniform(embedding, points).matrix
    found = mmd2_of_prefixes(embedding, points, matrix)
    for m in range(1, len(points) + 1):
        alone = mmd(embedding, points[:m], matrix[m - 1, :m])
        np.testing.assert_allclose(np.sqrt(found[m - 1]), alone, rtol=1e-12)


@pytest.mark.parametrize("dim", [1, 3])
def test_l2_star_discrepancy(dim):
    points = np.random.default_rng(dim).random((20, dim))
    embedding = embed(L2Star(), Uniform(np.zeros(dim), np.ones(dim)))
    np.testing.assert_allclose(
        mmd(embedding, points, np.full(20, 1 / 20)),
        qmc.discrepancy(points, method="L2-star"),
        rtol=1e-12,
    )


@pytest.mark.parametrize("n", [1, 2, 10, 50])
def test_best_rule_for_brownian_motion(n):
    # Nodes 2i / (2n + 1) with equal weights 2 / (2n + 1), and MMD^2 = 1 / (3 (2n + 1)^2).
    embedding = embed(Brownian(), Uniform([0.0], [1.0]))
    points = 2 * np.arange(1, n + 1)[:, None] / (2 * n + 1)
    weights = bq(embedding, points).final(n)
    np.testing.assert_allclose(weights, 2 / (2 * n + 1), rtol=1e-10)
    np.testing.assert_allclose(
        mmd2(embedding, points, weights), 1 / (3 * (2 * n + 1) ** 2), rtol=1e-9
    )
    rng = np.random.default_rng(n)
    for _ in range(5):
        other = np.sort(np.clip(points + 0.2 / n * rng.normal(size=(n, 1)), 1e-3, 1), axis=0)
        assert mmd2(embedding, other, bq(embedding, other).final(n)) > 1 / (3 * (2 * n + 1) ** 2)


def test_mean_mmd2_of_independent_points():
    # E MMD^2 = (E k(X, X) - V0) / n exactly.
    embedding = embed(ExponentiatedQuadratic(0.7), mixture(2))
    rng = np.random.default_rng(1)
    n, repeats = 4, 2000
    values = [
        mmd2(embedding, embedding.target.sample(n, rng), np.full(n, 1 / n)) for _ in range(repeats)
    ]
    error = np.std(values) / np.sqrt(repeats)
    assert abs(np.mean(values) - (1 - embedding.prior_variance) / n) < 4 * error


@given(weighted_points(most_dim=1))
def test_expected_squared_error_over_gaussian_processes(problem):
    # Proposition 1 of Huszar and Duvenaud (2012), for any weights: the variance of the integral
    # minus w'f, with the integral as a sum over many nodes rather than by closed forms.
    _, points, weights = problem
    embedding = embed(ExponentiatedQuadratic(1.0), normal())
    nodes, masses = gauss_hermite(60)
    everywhere = np.concatenate([nodes, points])
    signed = np.concatenate([masses, -weights])
    expected = signed @ embedding.kernel(everywhere, everywhere) @ signed
    np.testing.assert_allclose(mmd2(embedding, points, weights), expected, rtol=1e-9)


@given(weighted_points(), st.integers(0, 1000))
def test_error_is_at_most_norm_times_mmd(problem, seed):
    embedding, points, weights = problem
    rng = np.random.default_rng(seed)
    centres = rng.normal(scale=2.0, size=(5, points.shape[1]))
    alpha = rng.normal(size=5)
    norm = np.sqrt(alpha @ embedding.kernel(centres, centres) @ alpha)
    error = alpha @ (embedding.kernel_mean(centres) - embedding.kernel(centres, points) @ weights)
    assert abs(error) <= norm * mmd(embedding, points, weights) * (1 + 1e-9)


@given(weighted_points(most_dim=1))
def test_the_witness_attains_the_mmd(problem):
    _, points, weights = problem
    embedding = embed(ExponentiatedQuadratic(1.0), normal())
    function = witness(embedding, points, weights)
    nodes, masses = gauss_hermite(60)
    error = masses @ function(nodes) - weights @ function(points)
    np.testing.assert_allclose(error, mmd(embedding, points, weights), rtol=1e-9)


def test_the_minimax_adversary_vanishes_at_the_points():
    embedding = embed(ExponentiatedQuadratic(0.8), mixture(2))
    points = embedding.target.sample(12, np.random.default_rng(2))
    weights = bq(embedding, points).final(12)
    adversary = witness(embedding, points, weights)
    smallest = mmd(embedding, points, weights)
    np.testing.assert_allclose(adversary(points), 0.0, atol=1e-12)
    integral = (embedding.prior_variance - weights @ embedding.kernel_mean(points)) / smallest
    np.testing.assert_allclose(integral, smallest, rtol=1e-9)
    # Any weights whatever see only zeros, and err on it by as much.
    for other in (uniform, sum_to_one):
        assert mmd(embedding, points, other(embedding, points).final(12)) > smallest


@given(st.floats(1e-8, 1.0), st.integers(0, 100))
def test_what_noise_on_the_diagonal_adds(noise, seed):
    # V0 - z'(K + c I)^{-1} z = MMD^2(w) + c |w|^2 for w = (K + c I)^{-1} z: the posterior
    # variance under noise is not the MMD^2 of its weights.
    embedding = embed(ExponentiatedQuadratic(0.8), mixture(2))
    points = embedding.target.sample(10, np.random.default_rng(seed))
    mean = embedding.kernel_mean(points)
    weights = np.linalg.solve(embedding.kernel(points, points) + noise * np.eye(10), mean)
    noisy = embedding.prior_variance - mean @ weights
    exact = mmd2(embedding, points, weights)
    np.testing.assert_allclose(exact + noise * weights @ weights, noisy, atol=1e-12)
    assert exact >= mmd2(embedding, points, bq(embedding, points).final(10)) - 1e-12


def test_no_points_have_the_prior_variance_by_spectrum_too():
    embedding = embed(ExponentiatedQuadratic(1.0), normal())
    found = spectral_mmd2(embedding, np.empty((0, 1)), [])
    np.testing.assert_allclose(found, embedding.prior_variance, rtol=1e-12)


def test_the_mmd_has_the_unit_of_the_root_of_the_kernel():
    target, points, weights = Uniform([0.0], [1.0]), [[0.2], [0.7]], [0.4, 0.5]
    kernel = ExponentiatedQuadratic(0.5)
    single, double = (mmd(embed(own, target), points, weights) for own in (kernel, 2.0 * kernel))
    assert double == pytest.approx(np.sqrt(2) * single, rel=1e-12)
