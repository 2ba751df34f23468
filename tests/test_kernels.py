"""Kernels: values, gradients and integrals against independent formulas."""

from decimal import Decimal, localcontext
from fractions import Fraction
from functools import partial
from math import factorial

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.integrate import quad
from scipy.special import gamma, kv

from bqlib import (
    Brownian,
    BrownianBridge,
    ExponentiatedQuadratic,
    GaussianMixture,
    IntegratedBrownian,
    Korobov,
    L2Star,
    Matern,
    OnCoordinates,
    Product,
    RationalQuadratic,
    Stein,
    Uniform,
    Unnormalised,
)

NORMAL = GaussianMixture([1.0], [[0.0]], [[[1.0]]])
MIXTURE = GaussianMixture(
    [0.4, 0.6], [[0.2, 0.3], [0.8, 0.1]], [[[0.1, 0.05], [0.05, 0.3]], [[0.2, -0.03], [-0.03, 0.1]]]
)
STATIONARY = [
    ExponentiatedQuadratic(0.5),
    ExponentiatedQuadratic([0.5, 0.3], scale="density"),
    ExponentiatedQuadratic(covariance=[[0.3, 0.1], [0.1, 0.2]]),
    Matern([0.5, 0.8], nu=0.5),
    Matern(0.4, nu=1.5, scale="density"),
    Matern([0.5, 0.8], nu=2.5),
    RationalQuadratic([0.5, 0.7], alpha=0.7),
    RationalQuadratic(0.5, alpha=3.0, scale="density"),
]
UNIT_CUBE = [
    *(Brownian(), BrownianBridge(), IntegratedBrownian(), L2Star()),
    *(Korobov(), Korobov(2), Korobov(3)),
]
OTHERS = [
    Stein(MIXTURE, 0.6),
    Stein(MIXTURE, [0.6, 0.9], beta=-0.3, constant=1.0),
    Stein(MIXTURE, 0.6, units=[0.5, 3.0]),
    ExponentiatedQuadratic(0.5) + 2.0 * Matern(0.3),
    ExponentiatedQuadratic(0.5) * Brownian(),
    OnCoordinates(Matern(0.3), [1]) * OnCoordinates(Brownian(), [0]),
]
KERNELS = STATIONARY + UNIT_CUBE + OTHERS


def name_of(kernel):
    return f"{type(kernel).__name__}{KERNELS.index(kernel)}"


every_kernel = pytest.mark.parametrize("kernel", KERNELS, ids=name_of)
unit_points = arrays(float, (6, 2), elements=st.floats(0, 1), unique=True)


def finite_difference(function, x, step=1e-5):
    """Gradient of a function of points (n, d), on a new last axis."""
    columns = np.eye(x.shape[1]) * step
    return np.stack([(function(x + c) - function(x - c)) / (2 * step) for c in columns], axis=-1)


@every_kernel
def test_gradients_are_those_of_the_values(kernel):
    rng = np.random.default_rng(1)
    x, y = rng.random((4, 2)), rng.random((5, 2))
    assert kernel(x, y).shape == (4, 5)
    assert kernel.gradient(x, y).shape == (4, 5, 2)
    expected = finite_difference(lambda points: kernel(points, y), x)
    np.testing.assert_allclose(kernel.gradient(x, y), expected, rtol=1e-6, atol=1e-7)


@every_kernel
def test_weighted_gradients_are_sums_of_gradients(kernel):
    rng = np.random.default_rng(3)
    x, y, each = rng.random((4, 2)), rng.random((5, 2)), rng.standard_normal((4, 5))
    y[0] = x[0]
    gram, gradient_dot = kernel.with_gradient_dot(x, y)
    np.testing.assert_allclose(gram, kernel(x, y), rtol=1e-14)
    for weights in (each, each[0]):
        expected = (kernel.gradient(x, y) * np.broadcast_to(weights, (4, 5))[..., None]).sum(axis=1)
        np.testing.assert_allclose(gradient_dot(weights), expected, rtol=1e-10, atol=1e-12)


@every_kernel
def test_the_diagonal_and_its_gradient_belong_to_the_matrix(kernel):
    x = np.random.default_rng(2).random((5, 2))
    np.testing.assert_allclose(kernel.diagonal(x), np.diag(kernel(x, x)), rtol=1e-14)
    at_itself = np.einsum("iic->ic", kernel.gradient(x, x))
    expected = finite_difference(kernel.diagonal, x)
    np.testing.assert_allclose(2 * at_itself, expected, rtol=1e-6, atol=1e-7)


@every_kernel
@given(x=unit_points)
def test_gram_matrices_are_symmetric_and_positive_semi_definite(kernel, x):
    gram = kernel(x, x)
    np.testing.assert_array_equal(gram, gram.T)
    np.testing.assert_array_equal(gram, kernel(x, x.copy()))
    eigenvalues = np.linalg.eigvalsh(gram)
    assert eigenvalues[0] >= -1e-13 * np.abs(eigenvalues[-1])


@pytest.mark.parametrize("kernel", STATIONARY, ids=name_of)
@given(
    x=arrays(float, (3, 2), elements=st.integers(-8, 8)),
    shift=arrays(float, 2, elements=st.integers(-1000, 1000)),
)
def test_stationary_kernels_do_not_feel_a_translation(kernel, x, shift):
    moved = kernel(x + shift, x[:1] + shift)
    np.testing.assert_allclose(moved, kernel(x, x[:1]), rtol=1e-9, atol=1e-300)


@every_kernel
def test_no_points_give_an_empty_matrix(kernel):
    x = np.full((3, 2), 0.5)
    assert kernel(x[:0], x).shape == (0, 3)
    assert kernel.gradient(x[:0], x).shape == (0, 3, 2)


@every_kernel
def test_points_of_another_shape_are_refused(kernel):
    x = np.full((3, 2), 0.5)
    with pytest.raises(ValueError, match=r"points have shape \(3, 1\)"):
        kernel(x, x[:, :1])
    with pytest.raises(ValueError, match=r"points have shape \(2,\)"):
        kernel.diagonal(x[0])


# --- Values


def test_exponentiated_quadratic_is_a_gaussian_of_the_difference():
    covariance = np.array([[0.3, 0.1], [0.1, 0.2]])
    difference = np.array([0.7, -0.4])
    expected = np.exp(-0.5 * difference @ np.linalg.solve(covariance, difference))
    x, y = [difference], [[0.0, 0.0]]
    np.testing.assert_allclose(ExponentiatedQuadratic(covariance=covariance)(x, y), expected)
    ard = ExponentiatedQuadratic([0.5, 2.0])
    same = ExponentiatedQuadratic(covariance=np.diag([0.25, 4.0]))
    np.testing.assert_allclose(ard(x, y), same(x, y), rtol=1e-15)
    np.testing.assert_allclose(ExponentiatedQuadratic(0.5)([[3.0]], [[3.5]]), np.exp(-0.5))


def test_close_points_far_from_the_origin_keep_their_digits():
    x, y = np.array([[1e8]]), np.array([[1e8 + 0.5]])
    np.testing.assert_allclose(ExponentiatedQuadratic(0.5)(x, y), np.exp(-0.5), rtol=1e-14)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_matern_is_the_bessel_function_form(nu):
    r = np.array([1e-3, 0.2, 1.0, 4.0])
    rho = np.sqrt(2 * nu) * r / 0.7
    expected = 2 ** (1 - nu) / gamma(nu) * rho**nu * kv(nu, rho)
    np.testing.assert_allclose(Matern(0.7, nu=nu)([[0.0]], r[:, None])[0], expected, rtol=1e-13)


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_matern_is_a_product_over_coordinates(nu):
    x, y = np.random.default_rng(3).random((2, 4, 2))
    parts = [Matern(scale, nu=nu)(x[:, [c]], y[:, [c]]) for c, scale in enumerate([0.4, 1.1])]
    np.testing.assert_allclose(Matern([0.4, 1.1], nu=nu)(x, y), parts[0] * parts[1], rtol=1e-14)


def test_matern_in_many_dimensions_is_zero_far_off_and_a_product_nearby():
    far = Matern(1e-4)(np.zeros((1, 50)), np.ones((1, 50)))
    assert far.tolist() == [[0.0]]
    x = np.random.default_rng(5).random((2, 50))
    parts = [Matern(0.7)(x[:, [c]], x[:, [c]]) for c in range(50)]
    np.testing.assert_allclose(Matern(0.7)(x, x), np.prod(parts, axis=0), rtol=1e-12)


def test_rational_quadratic_from_its_definition_to_its_limit():
    kernel = RationalQuadratic([0.5, 2.0], alpha=1.5)
    value = kernel([[0.0, 0.0]], [[1.0, 1.0]])
    np.testing.assert_allclose(value, (1 + (4 + 0.25) / 3) ** -1.5, rtol=1e-15)
    x = np.linspace(-2, 2, 9)[:, None]
    limit = RationalQuadratic(0.7, alpha=1e9)(x, x)
    np.testing.assert_allclose(limit, ExponentiatedQuadratic(0.7)(x, x), rtol=1e-6)


@pytest.mark.parametrize(
    "alpha, tolerance", [(1e6, 1e-5), (1e12, 1e-11), (1e16, 1e-14), (1e300, 1e-14)]
)
@pytest.mark.parametrize("dim", [1, 2, 5])
def test_rational_quadratic_of_large_alpha_is_exponentiated_quadratic(alpha, tolerance, dim):
    x = np.random.default_rng(6).normal(size=(4, dim))
    kernel = RationalQuadratic(0.7, alpha=alpha, scale="density")
    limit = ExponentiatedQuadratic(0.7, scale="density")
    for of in (lambda k: k(x, x), lambda k: k.diagonal(x), lambda k: k.gradient(x, x)):
        np.testing.assert_allclose(of(kernel), of(limit), rtol=100 * tolerance, atol=tolerance)


def exactly(kernel, differences):
    """Value and gradient of a kernel of height one at x - y = `differences`, with 50 digits."""
    d = differences
    length = Decimal(kernel.lengthscale)
    with localcontext() as context:
        context.prec = 50
        if isinstance(kernel, Matern):
            rate, value, slopes = (2 * Decimal(kernel.nu)).sqrt() / length, Decimal(1), []
            for difference in d:
                r = rate * abs(difference)
                p = {0.5: Decimal(1), 1.5: 1 + r, 2.5: 1 + r + r * r / 3}[kernel.nu]
                q = {0.5: Decimal(1), 1.5: r, 2.5: (r + r * r) / 3}[kernel.nu]
                value *= p * (-r).exp()
                slopes.append(-rate * q / p * (1 if difference > 0 else -1))
            return value, [value * slope for slope in slopes]
        squares = sum(difference**2 for difference in d) / length**2
        base = Decimal(1)
        value = (-squares / 2).exp()
        if isinstance(kernel, RationalQuadratic):
            alpha = Decimal(kernel.alpha)
            base = 1 + squares / (2 * alpha)
            value = (-alpha * base.ln()).exp()
        return value, [-value / base * difference / length**2 for difference in d]


@pytest.mark.parametrize("lengthscale", [1e-3, 0.1, 1.0, 1e3])
@pytest.mark.parametrize(
    "family",
    [
        ExponentiatedQuadratic,
        *[partial(Matern, nu=nu) for nu in (0.5, 1.5, 2.5)],
        *[partial(RationalQuadratic, alpha=alpha) for alpha in (0.5, 1.0, 30.0)],
    ],
)
def test_values_and_gradients_have_the_digits_that_the_page_promises(family, lengthscale):
    kernel = family(lengthscale)
    rng = np.random.default_rng(0)
    for dim in (1, 2, 5):
        x = rng.uniform(-10, 10, (3, dim))
        # Near and far, in length-scales: down to the smallest values of float64
        near = [x + lengthscale * far * rng.standard_normal(x.shape) for far in (1e-6, 1, 15, 200)]
        y = np.concatenate([rng.standard_normal(x.shape), *near])
        values, gradients = kernel(x, y), kernel.gradient(x, y)
        for i, j in np.ndindex(values.shape):
            pairs = zip(x[i].tolist(), y[j].tolist(), strict=True)
            value, gradient = exactly(kernel, [Decimal(a) - Decimal(b) for a, b in pairs])
            found = [values[i, j], *gradients[i, j]]
            for number, expected in zip(found, [value, *gradient], strict=True):
                if min(value, abs(expected)) > Decimal("1e-290"):
                    wrong = abs(Decimal(float(number)) / expected - 1)
                    assert wrong <= Decimal("4e-16") * (10 - value.ln())


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5, "eq", "rq"])
def test_density_scale_integrates_to_one(nu):
    families = {
        "eq": lambda scale: ExponentiatedQuadratic(scale, scale="density"),
        "rq": lambda scale: RationalQuadratic(scale, alpha=2.3, scale="density"),
    }
    make = families.get(nu, lambda scale: Matern(scale, nu=nu, scale="density"))
    kernel = make(0.6)

    def section(t):
        return kernel([[0.0]], [[t]])[0, 0]

    assert 2 * quad(section, 0, np.inf, epsabs=1e-13)[0] == pytest.approx(1, abs=1e-10)

    # In the plane, over the elliptical radius of the kernel or the product of coordinates
    plane = make([0.6, 1.5])
    if nu in families:
        ring = quad(
            lambda r: 2 * np.pi * r * plane([[0, 0]], [[0.6 * r, 0.0]])[0, 0],
            0,
            np.inf,
            epsabs=1e-13,
        )
        assert ring[0] * 0.6 * 1.5 == pytest.approx(1, abs=1e-9)
    else:
        x, y = np.random.default_rng(0).random((2, 3, 2))
        product = kernel(x[:, :1], y[:, :1]) * make(1.5)(x[:, 1:], y[:, 1:])
        np.testing.assert_allclose(plane(x, y), product, rtol=1e-13)


def test_full_covariance_in_density_scale_is_a_normal_density():
    covariance = [[0.3, 0.1], [0.1, 0.2]]
    kernel = ExponentiatedQuadratic(covariance=covariance, scale="density")
    normal = GaussianMixture([1.0], [[0.5, 0.5]], [covariance])
    x = np.random.default_rng(4).random((5, 2))
    np.testing.assert_allclose(kernel(x, [[0.5, 0.5]])[:, 0], normal.density(x), rtol=1e-13)


def test_rational_quadratic_has_no_density_scale_with_heavy_tails():
    kernel = RationalQuadratic(1.0, alpha=1.0, scale="density")
    assert kernel([[0.0]], [[0.0]]) == pytest.approx(1 / (np.pi * np.sqrt(2)))
    with pytest.raises(ValueError, match=r'alpha above 1; use a larger alpha, or scale="unit"'):
        kernel([[0.0, 0.0]], [[0.0, 0.0]])


@pytest.mark.parametrize(
    "kernel, value",
    [
        (Brownian(), 0.3),
        (BrownianBridge(), 0.3 - 0.3 * 0.8),
        (IntegratedBrownian(), quad(lambda t: (0.3 - t) * (0.8 - t), 0, 0.3)[0]),
        (L2Star(), 0.2),
    ],
)
def test_unit_cube_kernels(kernel, value):
    assert kernel([[0.3]], [[0.8]])[0, 0] == pytest.approx(value, rel=1e-14)
    assert kernel([[0.8]], [[0.3]])[0, 0] == pytest.approx(value, rel=1e-14)
    plane = kernel([[0.3, 0.8]], [[0.8, 0.8]])[0, 0]
    assert plane == pytest.approx(value * kernel([[0.8]], [[0.8]])[0, 0], rel=1e-14)


def test_korobov_is_its_fourier_series():
    h = np.arange(1, 200_001)
    for difference in (0.0, 0.3, 0.85):
        series = 1 + 2 * np.sum(np.cos(2 * np.pi * h * difference) / h**2)
        assert Korobov()([[difference]], [[0.0]])[0, 0] == pytest.approx(series, abs=1.1e-5)


PI = Fraction("3.14159265358979323846264338327950288419716939937510")
BERNOULLI = {  # coefficients of B_2, B_4 and B_6, from the highest power of t
    1: (1, -1, Fraction(1, 6)),
    2: (1, -2, 1, 0, Fraction(-1, 30)),
    3: (1, -3, Fraction(5, 2), 0, Fraction(-1, 2), 0, Fraction(1, 42)),
}


def exact_korobov(order, t):
    """Value and derivative in t, by the definition, in fractions."""
    height = (-1) ** (order - 1) * (2 * PI) ** (2 * order) / factorial(2 * order)
    value = slope = Fraction(0)
    for coefficient in BERNOULLI[order]:
        value, slope = value * t + coefficient, slope * t + value
    return 1 + height * value, height * slope


@pytest.mark.parametrize("order", [1, 2, 3])
def test_korobov_has_all_digits_of_its_definition(order):
    ends = 2.0 ** -np.arange(1, 54)
    t = np.concatenate([[0.0, 1e-300], ends, 1 - ends, np.random.default_rng(0).random(200)])
    kernel, zero = Korobov(order), np.zeros((1, 1))
    exact = [exact_korobov(order, Fraction(each)) for each in t.tolist()]
    values, slopes = np.array([[float(each) for each in pair] for pair in exact]).T
    height, steepest = float(exact_korobov(order, Fraction(0))[0]), np.abs(slopes).max()
    errors = kernel(t[:, None], zero)[:, 0] - values
    assert np.abs(errors).max() < 1e-15 * height
    inside = t > 0  # at 0, the kernel of order 1 has no derivative
    errors = kernel.gradient(t[inside, None], zero)[:, 0, 0] - slopes[inside]
    assert np.abs(errors).max() < 2e-15 * steepest
    assert kernel.gradient(zero, zero).item() == 0
    x, y = np.random.default_rng(1).random((2, 20, 2))
    np.testing.assert_array_equal(kernel(x, y), kernel(y, x).T)


def test_korobov_of_order_one_is_the_parabola_bit_for_bit():
    x, y = np.random.default_rng(0).random((2, 50, 1))
    t = np.abs(x - y.T)
    for kernel in (Korobov(), Korobov(1), Korobov(order=np.int64(1))):
        assert kernel.order == 1
        np.testing.assert_array_equal(kernel(x, y), 1 + 2 * np.pi**2 * (t * (t - 1) + 1 / 6))
        slope = 2 * np.pi**2 * (2 * (x - y.T) - np.sign(x - y.T))
        np.testing.assert_array_equal(kernel.gradient(x, y)[:, :, 0], slope)


@pytest.mark.parametrize(
    "order, error, said",
    [
        (0, ValueError, "order is 0; it must be 1, 2 or 3"),
        (4, ValueError, "order is 4; it must be 1, 2 or 3"),
        (1.5, TypeError, "order is 1.5; it must be a whole number"),
        (True, TypeError, "order is True; it must be a whole number"),
        ("2", TypeError, "order is '2'; it must be a whole number"),
    ],
)
def test_other_orders_of_korobov_are_refused(order, error, said):
    with pytest.raises(error, match=said):
        Korobov(order)


@pytest.mark.parametrize("kernel", UNIT_CUBE, ids=name_of)
@pytest.mark.parametrize("outside", [-0.1, 1.1])
def test_unit_cube_kernels_refuse_points_outside(kernel, outside):
    with pytest.raises(ValueError, match=r"is defined only on \[0, 1\]\^d"):
        kernel([[0.5]], [[outside]])


# --- Stein


def test_stein_reference_values():
    # 40-digit values for the standard normal, base (1 + r^2)^(-1/2)
    kernel = Stein(NORMAL)
    pairs = np.array([[0.0, 0.0], [0.5, -1.2], [2.0, 2.3]])
    values = [kernel(pair[:1, None], pair[1:, None])[0, 0] for pair in pairs]
    expected = [1.0, -0.84105277681969530809, 4.9879845794704986077]
    np.testing.assert_allclose(values, expected, rtol=1e-14)


def test_stein_is_the_operator_applied_to_its_base_in_both_arguments():
    kernel = Stein(MIXTURE, [0.6, 0.9], beta=-0.3, constant=2.0)

    def base(x, y):
        return (1 + np.square((x - y) / [0.6, 0.9]).sum()) ** -0.3

    rng = np.random.default_rng(6)
    x, y, step = rng.random(2), rng.random(2), 1e-4
    units = np.eye(2) * step
    grad_x = [(base(x + e, y) - base(x - e, y)) / (2 * step) for e in units]
    grad_y = [(base(x, y + e) - base(x, y - e)) / (2 * step) for e in units]
    mixed = sum(
        base(x + e, y + e) - base(x + e, y - e) - base(x - e, y + e) + base(x - e, y - e)
        for e in units
    ) / (4 * step**2)
    score_x, score_y = MIXTURE.score(np.array([x, y]))
    expected = mixed + score_x @ grad_y + score_y @ grad_x + base(x, y) * score_x @ score_y
    np.testing.assert_allclose(kernel([x], [y])[0, 0], 2 + expected, rtol=1e-6)


def test_stein_in_units_is_that_of_the_target_in_these_units():
    units = np.array([4.0, 0.5])
    scaled = GaussianMixture(
        MIXTURE.weights, MIXTURE.means / units, MIXTURE.covariances / units[:, None] / units
    )
    x, y = np.random.default_rng(3).random((2, 4, 2))
    ours, theirs = (
        Stein(target, [0.6, 0.9], constant=2.0, units=own)
        for target, own in ((MIXTURE, units), (scaled, None))
    )
    np.testing.assert_allclose(ours(x, y), theirs(x / units, y / units), rtol=1e-12)
    np.testing.assert_allclose(ours.diagonal(x), np.diag(ours(x, x)), rtol=1e-12)
    np.testing.assert_array_equal(Stein(MIXTURE, units=2.0).units, [2.0, 2.0])
    there = theirs.gradient(x / units, y / units) / units
    np.testing.assert_allclose(ours.gradient(x, y), there, rtol=1e-10)


def test_stein_scores_a_pool_once_and_notices_a_changed_one():
    calls = []

    def score(x):
        calls.append(len(x))
        return -x

    kernel = Stein(Unnormalised(1, score=score))
    pool = np.linspace(-2, 2, 50)[:, None]
    rows = np.vstack([kernel(pool[i : i + 1], pool) for i in range(5)])
    assert calls.count(50) == 1
    np.testing.assert_allclose(rows, Stein(NORMAL)(pool[:5], pool), rtol=1e-13)
    pool += 1.0
    np.testing.assert_allclose(kernel(pool[:1], pool), Stein(NORMAL)(pool[:1], pool), rtol=1e-13)
    assert calls.count(50) == 2


def test_stein_says_what_it_misses():
    with pytest.raises(TypeError, match="needs the score of its target, but this Uniform has none"):
        Stein(Uniform([0.0], [1.0]))
    with pytest.raises(TypeError, match="this Product has none"):
        Stein(Product([NORMAL, Uniform([0.0], [1.0])]))
    with pytest.raises(TypeError, match="this Unnormalised has none"):
        Stein(Unnormalised(1, log_density=lambda x: -(x[:, 0] ** 4)))
    bare = Stein(Unnormalised(1, score=lambda x: -x))
    with pytest.raises(TypeError, match="give it one with hessian="):
        bare.gradient([[0.0]], [[1.0]])
    flat = Stein(Unnormalised(2, score=lambda x: -x[:, 0]))
    with pytest.raises(ValueError, match=r"returned shape \(1,\) for points of shape \(1, 2\)"):
        flat([[0.0, 0.0]], [[1.0, 1.0]])


# --- Arithmetic


def test_arithmetic_of_kernels():
    a, b = ExponentiatedQuadratic(0.5), Matern([0.3, 0.4])
    x, y = np.random.default_rng(7).random((2, 3, 2))
    np.testing.assert_array_equal((a + b)(x, y), a(x, y) + b(x, y))
    np.testing.assert_array_equal((a * b)(x, y), a(x, y) * b(x, y))
    for scaled in (3 * a, a * 3, np.float64(3) * a):
        np.testing.assert_array_equal(scaled(x, y), 3 * a(x, y))
    assert (a + b).dim == (a * b).dim == (2 * b).dim == 2
    assert (a + a).dim is None


@pytest.mark.parametrize(
    "build, problem",
    [
        (lambda k: -1.0 * k, "the factor is -1.0"),
        (lambda k: 0 * k, "the factor is 0"),
        (lambda k: float("nan") * k, "the factor is nan"),
        (lambda k: k + Matern([1.0, 1.0, 1.0]), r"different dimensions: \[2, 3\]"),
        (lambda k: k * Matern([1.0, 1.0, 1.0]), r"different dimensions: \[2, 3\]"),
        (lambda k: OnCoordinates(k, [0]), "1 coordinates for a kernel of dimension 2"),
        (lambda k: OnCoordinates(k, [0, 0]), "give at least one, all different, counted from 0"),
        (lambda k: OnCoordinates(k, [-1, 0]), "give at least one, all different, counted from 0"),
        (lambda k: OnCoordinates(k, []), "give at least one, all different, counted from 0"),
    ],
)
def test_arithmetic_that_makes_no_kernel(build, problem):
    with pytest.raises(ValueError, match=problem):
        build(ExponentiatedQuadratic([0.5, 0.5]))


@pytest.mark.parametrize("build", [lambda k: k + 1, lambda k: "2" * k, lambda k: k * [1, 2]])
def test_kernels_do_not_mix_with_other_things(build):
    with pytest.raises(TypeError):
        build(ExponentiatedQuadratic(0.5))


def test_a_kernel_on_some_coordinates_needs_them():
    with pytest.raises(ValueError, match="points of dimension 2 have no coordinate 2"):
        OnCoordinates(Matern(1.0), [2])([[0.0, 0.0]], [[0.0, 0.0]])


# --- Bad input


@pytest.mark.parametrize(
    "build, problem",
    [
        (lambda: ExponentiatedQuadratic(), "give exactly one of lengthscale and covariance"),
        (
            lambda: ExponentiatedQuadratic(1.0, np.eye(2)),
            "give exactly one of lengthscale and covariance",
        ),
        (lambda: ExponentiatedQuadratic(1.0, scale="unity"), 'must be "unit" or "density"'),
        (lambda: ExponentiatedQuadratic(covariance=[1.0, 2.0]), "must be a square matrix"),
        (lambda: ExponentiatedQuadratic(covariance=[[1, 2], [0, 1]]), "not symmetric"),
        (lambda: ExponentiatedQuadratic(covariance=[[1, 2], [2, 1]]), "smallest eigenvalue -1"),
        (lambda: ExponentiatedQuadratic(covariance=[[np.nan]]), "holds NaN or infinity"),
        (lambda: Matern(1.0, nu=1.0), "nu is 1.0; it must be 0.5, 1.5 or 2.5"),
        (lambda: Matern(1.0, scale="one"), 'must be "unit" or "density"'),
        (lambda: RationalQuadratic(1.0, alpha=0.0), "alpha is 0.0"),
        (lambda: RationalQuadratic(1.0, alpha=np.inf), "alpha is inf"),
        (lambda: RationalQuadratic(1.0, scale="one"), 'must be "unit" or "density"'),
        (lambda: Stein(NORMAL, beta=0.0), "beta is 0.0; it must be finite and negative"),
        (lambda: Stein(NORMAL, constant=-1.0), "constant is -1.0"),
        (lambda: Stein(NORMAL, constant=1e200), r"constant is 1e\+200; it must lie between 1e-10"),
        (lambda: Stein(NORMAL, [1.0, 1.0]), "2 length-scales for a target of dimension 1"),
        (lambda: Stein(NORMAL, units=[1.0, 1.0]), "2 units for a target of dimension 1"),
        (lambda: Stein(NORMAL, units=0.0), "units is 0.0; it must be finite and positive"),
        (
            lambda: Stein(NORMAL, units=[[1.0]]),
            r"units has shape \(1, 1\); give one number, or one n",
        ),
    ],
)
def test_bad_arguments(build, problem):
    with pytest.raises(ValueError, match=problem):
        build()


@pytest.mark.parametrize(
    "family",
    [ExponentiatedQuadratic, Matern, RationalQuadratic, lambda scale: Stein(NORMAL, scale)],
    ids=["ExponentiatedQuadratic", "Matern", "RationalQuadratic", "Stein"],
)
@pytest.mark.parametrize("lengthscale", [0.0, -1.0, np.nan, np.inf, [1.0, 0.0], [], [[1.0]]])
def test_bad_length_scales(family, lengthscale):
    with pytest.raises(ValueError, match="lengthscale"):
        family(lengthscale)


def test_kernels_add_up_by_sum():
    kernels = [ExponentiatedQuadratic(0.5), Matern(0.4, nu=1.5), ExponentiatedQuadratic(2.0)]
    x = np.random.default_rng(0).random((4, 2))
    for start in ((), (0,), (0.0,)):
        np.testing.assert_array_equal(
            sum(kernels, *start)(x, x), (kernels[0] + kernels[1] + kernels[2])(x, x)
        )
    with pytest.raises(TypeError):
        1 + kernels[0]
    with pytest.raises(TypeError):
        sum(kernels, 1.0)
