"""Sums over a data set at its own points, against sums over the whole Gram matrix."""

import numpy as np
import pytest

from bqlib import (
    Empirical,
    ExponentiatedQuadratic,
    GaussianMixture,
    Matern,
    RationalQuadratic,
    Stein,
    embed,
)
from bqlib.embeddings import half_gram
from bqlib.embeddings.half_gram import COLUMNS, ROWS, half_gram_sums, near_order

NORMAL = GaussianMixture([1.0], [[0.0, 0.0]], [np.eye(2)])
KERNELS = [
    *[ExponentiatedQuadratic(own) for own in (0.01, 0.3, 5.0)],
    ExponentiatedQuadratic([0.3, 2.0], scale="density"),
    ExponentiatedQuadratic(covariance=[[0.3, 0.2], [0.2, 0.25]], scale="density"),
    *[Matern(0.4, nu=nu) for nu in (0.5, 1.5, 2.5)],
    Matern([0.3, 2.0], nu=1.5, scale="density"),
    Matern(1e-4, nu=2.5),  # with rho far beyond where exp(-rho) is zero
    RationalQuadratic(0.4, alpha=2.0),
    Stein(NORMAL, 0.7, constant=1.0),
    Matern(0.4, nu=1.5) + ExponentiatedQuadratic(0.3),
]


def drawn(size, dim=2, shift=0.0):
    rng = np.random.default_rng(size)
    return rng.normal(size=(size, dim)) + shift, rng.dirichlet(np.ones(size))


def assert_like_the_whole_matrix(kernel, points, weights):
    gram = kernel(points, points)
    mean, variance = half_gram_sums(kernel, points, weights)
    np.testing.assert_allclose(mean, gram @ weights, rtol=1e-14)
    assert variance == pytest.approx(weights @ gram @ weights, rel=1e-14)


@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("size", [1, 2, ROWS, ROWS + 1, ROWS + COLUMNS + 70])
def test_sums_are_those_of_the_whole_matrix(kernel, size):
    assert_like_the_whole_matrix(kernel, *drawn(size))


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
@pytest.mark.parametrize("dim", [1, 8, 9, 17])  # up to eight coordinates have one exponential
def test_matern_in_many_dimensions(nu, dim):
    for lengthscale in (0.5, 1e-4):
        assert_like_the_whole_matrix(Matern(lengthscale, nu=nu), *drawn(ROWS + 60, dim))


@pytest.mark.parametrize("kernel", [ExponentiatedQuadratic(0.3), Matern(0.3, nu=2.5)])
def test_data_far_from_the_origin_lose_no_digits(kernel):
    # Steps of 1/64, so that the shift rounds nothing.
    points, weights = np.round(drawn(700)[0] * 64) / 64, drawn(700)[1]
    here, there = (half_gram_sums(kernel, points + shift, weights)[0] for shift in (0.0, 2.0**30))
    np.testing.assert_array_equal(here, there)
    assert_like_the_whole_matrix(kernel, points, weights)


@pytest.mark.parametrize("kind", [ExponentiatedQuadratic, Matern])
def test_coordinates_of_wide_rows_would_lose_digits(kind, monkeypatch):
    points, weights = drawn(900, dim=1)
    kernel = kind(1e-3)
    gram = kernel(points, points) @ weights
    np.testing.assert_allclose(half_gram_sums(kernel, points, weights)[0], gram, rtol=1e-14)
    monkeypatch.setattr(half_gram, "WIDEST", np.inf)
    lossy, _ = half_gram_sums(kernel, points, weights)
    assert np.abs(lossy / gram - 1).max() > 1e-13


@pytest.mark.parametrize(
    "kernel", [ExponentiatedQuadratic(0.3), Matern(0.3), RationalQuadratic(0.4, alpha=2.0)]
)
def test_equal_points_count_as_one_with_the_sum_of_their_weights(kernel, monkeypatch):
    points, _ = drawn(60)
    which = np.random.default_rng(0).integers(60, size=1000)
    repeated, weights = points[which], np.full(1000, 1e-3)
    assert_like_the_whole_matrix(kernel, repeated, weights)
    mean, _ = half_gram_sums(kernel, repeated, weights)
    assert len(np.unique(mean)) == len(np.unique(which))  # of equal points, to the last digit
    worked_out = []
    block = type(kernel).__call__
    monkeypatch.setattr(type(kernel), "__call__", lambda *a: worked_out.append(a) or block(*a))
    half_gram_sums(kernel, repeated, weights)
    assert not worked_out or [len(x) for _, x, _ in worked_out] == [len(np.unique(which))]


def test_a_subclass_with_other_values_is_asked_for_them():
    class Halved(Matern):
        def __call__(self, x, y):
            return 0.5 * super().__call__(x, y)

    class Lower(ExponentiatedQuadratic):
        def height(self, dim):
            return 0.5

    points, weights = drawn(300)
    for kernel in (Halved(0.4, nu=1.5), Lower(0.4, scale="density")):
        assert_like_the_whole_matrix(kernel, points, weights)


def test_a_rerun_gives_the_same_bytes():
    points, weights = drawn(1500)
    for kernel in (ExponentiatedQuadratic(0.3), Matern(0.3, nu=1.5)):
        first, again = (half_gram_sums(kernel, points, weights) for _ in range(2))
        assert first[0].tobytes() == again[0].tobytes() and first[1] == again[1]


def test_an_order_has_each_point_once_and_neighbours_together():
    points, _ = drawn(1000)
    order = near_order(points, 100)
    assert np.array_equal(np.sort(order), np.arange(1000))
    near = [np.ptp(points[order[i : i + 100]], axis=0).max() for i in range(0, 1000, 100)]
    assert np.median(near) < 0.5 * np.ptp(points, axis=0).max()


def test_known_digits_of_two_points():
    # z = (1 + k) / 2 and V0 = (1 + k) / 2 for two points at which k(x, y) = k.
    for kernel, k in [
        (ExponentiatedQuadratic(1.0), np.exp(-0.5)),
        (Matern(1.0, nu=1.5), (1 + np.sqrt(3)) * np.exp(-np.sqrt(3))),
        (Matern(1.0, nu=2.5), (1 + np.sqrt(5) + 5 / 3) * np.exp(-np.sqrt(5))),
        (Matern(1.0, nu=0.5), np.exp(-1)),
    ]:
        embedding = embed(kernel, Empirical([[3.0], [4.0]]))
        assert embedding.prior_variance == pytest.approx((1 + k) / 2, rel=4e-16)
