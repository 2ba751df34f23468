"""Kernel parameters by marginal likelihood."""

import re
from dataclasses import replace
from functools import partial

import numpy as np
import pytest
from scipy.stats import multivariate_normal

from bqlib import ExponentiatedQuadratic, GaussianMixture, embed, fit_kernel, likelihood, sbq
from bqlib.kernels import Brownian, Matern, RationalQuadratic, Stein
from bqlib.likelihood import NUGGET, profile_likelihood
from bqlib.weights import bq

NORMAL = GaussianMixture([1.0], [[0.0, 0.0]], [np.eye(2)])
KERNELS = [
    ExponentiatedQuadratic(0.5),
    ExponentiatedQuadratic([0.4, 1.5]),
    Matern(0.7, nu=0.5),
    Matern([0.5, 2.0], nu=1.5),
    Matern(0.5, nu=2.5),
    RationalQuadratic([0.5, 1.0], alpha=2.0),
]


def points(n, seed=0):
    return np.random.default_rng(seed).normal(size=(n, 2))


def draw(kernel, x, seed):
    """Values at x of one f from the Gaussian process."""
    values, vectors = np.linalg.eigh(kernel(x, x))
    normal = np.random.default_rng(seed).standard_normal(len(x))
    return vectors @ (np.sqrt(np.maximum(values, 0.0)) * normal)


def scaled(kernel, factors):
    return replace(kernel, lengthscale=kernel.lengthscale * factors)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_gradient_against_differences(kernel):
    x = points(20)
    values = draw(kernel, x, 1)
    kernel = scaled(kernel, 0.8)
    _, gradient = profile_likelihood(kernel, x, values)
    count = np.size(kernel.lengthscale)
    assert gradient.shape == (count,)
    step = 1e-4
    for c in range(count):
        factors = np.exp(step * np.eye(count)[c]) if count > 1 else np.exp(step)
        up, _ = profile_likelihood(scaled(kernel, factors), x, values)
        down, _ = profile_likelihood(scaled(kernel, 1 / factors), x, values)
        np.testing.assert_allclose(gradient[c], (up - down) / (2 * step), rtol=1e-4, atol=1e-4)


def test_likelihood_is_that_of_a_normal_vector():
    x, kernel = points(15), ExponentiatedQuadratic(0.6)
    values = 3.0 * draw(kernel, x, 2)
    gram = kernel(x, x) + NUGGET * np.eye(15)
    variance = values @ np.linalg.solve(gram, values) / 15
    expected = multivariate_normal(np.zeros(15), variance * gram).logpdf(values)
    np.testing.assert_allclose(profile_likelihood(kernel, x, values)[0], expected, rtol=1e-8)


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_fit_finds_the_maximum_and_the_truth_near_it(kernel):
    x = points(60)
    values = 3.0 * draw(kernel, x, 3)
    fit = fit_kernel(scaled(kernel, 3.0), x, values)
    assert fit.stop == ""
    assert type(fit.kernel) is type(kernel)
    ratio = fit.kernel.lengthscale / np.array(kernel.lengthscale)
    assert ((ratio > 0.6) & (ratio < 1.7)).all()
    assert 1.5 < fit.output_scale < 6.0
    # No other length-scales nearby do better, those that made the values among them.
    assert profile_likelihood(kernel, x, values)[0] <= fit.log_likelihood
    for factor in (0.95, 1.05):
        assert profile_likelihood(scaled(fit.kernel, factor), x, values)[0] < fit.log_likelihood


def test_fit_does_not_depend_on_the_start_or_on_repeats():
    x = points(40)
    values = draw(ExponentiatedQuadratic(0.5), x, 4)
    fits = [
        fit_kernel(ExponentiatedQuadratic(0.1), x, values),
        fit_kernel(ExponentiatedQuadratic(4.0), x, values),
        fit_kernel(ExponentiatedQuadratic(0.5), x[[*range(40), 3]], values[[*range(40), 3]]),
    ]
    for fit in fits[1:]:
        np.testing.assert_allclose(fit.kernel.lengthscale, fits[0].kernel.lengthscale, rtol=1e-3)
        np.testing.assert_allclose(fit.output_scale, fits[0].output_scale, rtol=1e-3)


@pytest.mark.parametrize("kernel", [ExponentiatedQuadratic([0.5, 0.9]), Matern(0.5)], ids=repr)
def test_fit_follows_a_change_of_units(kernel):
    x = points(30)
    values = draw(kernel, x, 5)
    fit = fit_kernel(kernel, x, values)
    other = fit_kernel(scaled(kernel, 1000.0), 1000 * x, 10 * values)
    lengthscale = np.array(fit.kernel.lengthscale)
    np.testing.assert_allclose(other.kernel.lengthscale, 1000 * lengthscale, rtol=1e-4)
    np.testing.assert_allclose(other.output_scale, 10 * fit.output_scale, rtol=1e-4)
    # In density scale the output scale takes up the kernel's height: the covariance is the same.
    density = fit_kernel(replace(kernel, scale="density"), x, values)
    assert density.kernel.scale == "density"
    np.testing.assert_allclose(
        density.output_scale**2 * density.kernel(x, x),
        fit.output_scale**2 * fit.kernel(x, x),
        rtol=1e-4,
    )


def test_a_coordinate_without_influence_gets_a_long_lengthscale():
    x = points(40)
    fit = fit_kernel(ExponentiatedQuadratic([1.0, 1.0]), x, np.sin(3 * x[:, 0]))
    first, second = fit.kernel.lengthscale
    assert first < 2 < 20 < second
    edge = float(re.search(r"length-scale of coordinate 1: any above (\S+) fits", fit.stop)[1])
    assert 2 < edge < second and "coordinate 0" not in fit.stop
    flat = fit_kernel(ExponentiatedQuadratic([1.0, 3.0]), x * [1, 0], np.sin(3 * x[:, 0]))
    assert flat.kernel.lengthscale[1] == pytest.approx(3)
    assert "the length-scale of coordinate 1: any fits about as well" in flat.stop


@pytest.mark.parametrize("start", [1e-6, 1.0, 1000.0, 1e9])
def test_the_search_spans_the_points_and_not_the_length_scale_given(start):
    x = np.linspace(0, 10_000, 30)[:, None]
    fit = fit_kernel(ExponentiatedQuadratic(start), x, np.sin(x[:, 0] / 1500))
    assert fit.kernel.lengthscale == pytest.approx(2851, rel=1e-3)
    assert fit.log_likelihood == pytest.approx(176.17, abs=0.01)
    assert "do not tell" not in fit.stop


SPREAD = Matern([0.5, 2.0], nu=1.5)


@pytest.mark.parametrize(
    "kernels",
    [
        [ExponentiatedQuadratic(1e-3), ExponentiatedQuadratic(1.0), ExponentiatedQuadratic(1e4)],
        [Matern([0.5, 2.0]), Matern([1e4, 1e-4]), Matern([1e-3, 1e-3])],
        [RationalQuadratic([0.5, 2.0]), RationalQuadratic([1e4, 1e-4])],
        [
            ExponentiatedQuadratic(covariance=size * np.array([[1.0, 0.4], [0.4, 2.0]]))
            for size in (1e-6, 1.0, 1e9)
        ],
    ],
    ids=repr,
)
def test_a_fit_does_not_depend_on_the_kernel_given(kernels):
    x = points(40)
    values = draw(SPREAD, x, 4)
    first, *others = [fit_kernel(kernel, x, values) for kernel in kernels]
    for other in others:
        size = "lengthscale" if kernels[0].lengthscale is not None else "covariance"
        np.testing.assert_allclose(
            getattr(other.kernel, size), getattr(first.kernel, size), rtol=1e-6
        )
        np.testing.assert_allclose(other.output_scale, first.output_scale, rtol=1e-6)
        assert other.log_likelihood == pytest.approx(first.log_likelihood, abs=1e-6)


def test_a_covariance_keeps_its_shape_and_gets_the_size_of_the_greatest_likelihood():
    shape = np.array([[1.0, 0.4], [0.4, 2.0]])
    x, truth = points(60), ExponentiatedQuadratic(covariance=0.3 * shape)
    values = 3.0 * draw(truth, x, 3)
    fit = fit_kernel(ExponentiatedQuadratic(covariance=100 * shape, scale="density"), x, values)
    size = fit.kernel.covariance[0, 0]
    np.testing.assert_allclose(fit.kernel.covariance, size * shape, rtol=1e-12)
    assert 0.2 < size < 0.45 and fit.kernel.scale == "density"

    def likelihood(covariance):
        gram = ExponentiatedQuadratic(covariance=covariance)(x, x) + NUGGET * np.eye(60)
        variance = values @ np.linalg.solve(gram, values) / 60
        return multivariate_normal(np.zeros(60), variance * gram).logpdf(values)

    assert fit.log_likelihood == pytest.approx(likelihood(size * shape), abs=1e-5)
    for factor in (0.9, 1.1):
        assert likelihood(factor * size * shape) < fit.log_likelihood
    covariance = fit.output_scale**2 * fit.kernel(x, x)
    assert covariance[0, 0] == pytest.approx(
        values
        @ np.linalg.solve(
            ExponentiatedQuadratic(covariance=size * shape)(x, x) + NUGGET * np.eye(60), values
        )
        / 60,
        rel=1e-6,
    )


@pytest.mark.parametrize("start", [1e-3, 1.0, 1e5])
@pytest.mark.parametrize("family", [ExponentiatedQuadratic, Matern])
def test_values_that_tell_no_length_scale_are_said_to(family, start):
    # Points farther apart than f varies: their values are independent.
    x = np.linspace(0, 100, 30)[:, None] + 0.1 * np.random.default_rng(3).random((30, 1))
    values = draw(ExponentiatedQuadratic(0.5), x, 0)
    fit = fit_kernel(family(start), x, values)
    found = re.fullmatch(
        "the values do not tell the length-scale: any below (.*) fits about as well", fit.stop
    )
    edge = float(found[1])
    assert 1 < edge < 20 and fit.kernel.lengthscale <= edge * 1.1
    for factor in (1e-3, 0.1, 0.5, 0.98):
        there, _ = profile_likelihood(family(edge * factor), x, values)
        assert there > fit.log_likelihood - 2
    beyond, _ = profile_likelihood(family(edge * 1.1), x, values)
    assert beyond < fit.log_likelihood - 1.9


@pytest.mark.parametrize("kernel", KERNELS, ids=repr)
def test_one_point_tells_no_length_scale(kernel):
    for x in (points(1), np.repeat(points(1), 3, axis=0)):
        fit = fit_kernel(kernel, x, np.full(len(x), 2.0))
        np.testing.assert_array_equal(fit.kernel.lengthscale, kernel.lengthscale)
        assert fit.output_scale == pytest.approx(2)
        assert (
            fit.stop == "one point does not tell the length-scales: they are those of the "
            "kernel given"
        )


def test_a_fit_reaches_the_longest_length_scale():
    x = np.arange(5.0)[:, None] * [1, 1e-3]
    fit = fit_kernel(KERNELS[1], 1e49 * x, np.sin(x[:, 0]))
    assert fit.kernel.lengthscale.max() <= 1e50


def test_what_deserves_a_second_look():
    x = points(40)
    constant = fit_kernel(ExponentiatedQuadratic(1.0), x, np.ones(40))
    assert "the values do not tell the length-scale: any above" in constant.stop
    smooth = fit_kernel(ExponentiatedQuadratic(1.0), x, 5 + x[:, 0] + np.square(x[:, 1]))
    assert "double precision separates only" in smooth.stop
    assert "ran to" not in smooth.stop


def test_a_fitted_kernel_beside_a_design():
    # The way for a user: points by a guess, then the kernel that the values ask for.
    design = sbq(NORMAL, ExponentiatedQuadratic(1.0), n=40, rng=0)
    values = np.cos(2 * design.points[:, 0])
    fit = fit_kernel(design.embedding.kernel, design.points, values)
    refitted = replace(design, embedding=embed(fit.kernel, NORMAL), rule=bq)
    result = refitted.integrate(values=values, rule=bq)
    assert abs(result.mean - np.exp(-2)) < 3 * result.std
    np.testing.assert_allclose(result.output_scale, fit.output_scale, rtol=1e-3)


def test_a_search_that_ends_early_says_so(monkeypatch):
    few = partial(likelihood.minimize, options={"maxiter": 1})
    monkeypatch.setattr(likelihood, "minimize", few)
    x = points(30)
    fit = fit_kernel(ExponentiatedQuadratic([0.4, 1.5]), x, np.sin(5 * x[:, 0]) + x[:, 1])
    assert "the search ended early: STOP: TOTAL NO. OF ITERATIONS REACHED LIMIT" in fit.stop


@pytest.mark.parametrize(
    ("kernel", "x", "values", "error", "message"),
    [
        (Stein(NORMAL), points(3), np.ones(3), TypeError, "this Stein has no length-scales"),
        (Brownian(), points(3), np.ones(3), TypeError, "this Brownian has no length-scales"),
        (
            KERNELS[0],
            points(3),
            np.ones(2),
            ValueError,
            r"values of f have shape \(2,\); 3 points need shape",
        ),
        (
            KERNELS[0],
            points(3),
            [1.0, 2.0, np.nan],
            ValueError,
            "values of f are NaN or infinite at points \\[2\\]",
        ),
        (
            KERNELS[0],
            points(3),
            np.zeros(3),
            ValueError,
            "all values are zero, so every length-scale",
        ),
        (KERNELS[0], points(3)[:0], [], ValueError, "there are no points"),
        (KERNELS[0], points(3)[[0, 0, 1]], [0, 1, 0], ValueError, "points 0 and 1 are equal, but"),
        (KERNELS[0], points(3) * 1e-52, [1, 2, 3], ValueError, "1e-50: change the unit of length"),
        (KERNELS[0], points(3) * 1e-250, [1, 2, 3], ValueError, "change the unit of length"),
    ],
)
def test_what_cannot_be_fitted(kernel, x, values, error, message):
    with pytest.raises(error, match=message):
        fit_kernel(kernel, x, values)
