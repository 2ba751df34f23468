import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.testing import assert_allclose, assert_array_equal

from bqlib import Empirical, ExponentiatedQuadratic, GaussianMixture, Matern, Uniform, embed, mmd
from bqlib.integrands import WITHIN_MODEL
from bqlib.kernels import Brownian
from bqlib.sweep.registry import PLACES, find
from bqlib.targets import Product

MIXTURE = GaussianMixture(
    [0.3, 0.7],
    [[-1.0, 0.5], [1.0, -0.5]],
    [[[0.6, 0.3], [0.3, 0.4]], [[0.2, -0.1], [-0.1, 0.5]]],
)
LINE = GaussianMixture([0.4, 0.6], [[-1.0], [1.5]], [[[0.3]], [[1.2]]])
FAMILIES = {
    "genz_gaussian_peak": {"difficulty": 3.0},
    "genz_oscillatory": {"difficulty": 3.0},
    "rkhs_ball": {},
    "rough_bumps": {"narrowest": 0.2, "widest": 2.0},
}


def draw(family, embedding, seed=0, **parameters):
    rng = np.random.default_rng(seed)
    return find("integrand", family)(embedding, rng, **(FAMILIES[family] | parameters))


def grid(target, step):
    """Points of the trapezoid rule, which is exact to rounding for smooth functions, and weights.

    The density is below 1e-16 outside.
    """
    axis = np.arange(-11, 11, step)
    axes = np.meshgrid(*[axis] * target.dim, indexing="ij")
    points = np.stack([a.ravel() for a in axes], axis=1)
    return points, target.density(points) * step**target.dim


def test_every_family_is_known_here():
    assert set(PLACES["integrand"]) == set(FAMILIES)
    assert set(WITHIN_MODEL) <= set(FAMILIES)


@pytest.mark.parametrize("family", FAMILIES)
@pytest.mark.parametrize("target, step", [(LINE, 0.02), (MIXTURE, 0.06)])
def test_integrals_are_exact(family, target, step):
    embedding = embed(ExponentiatedQuadratic(0.5, scale="density"), target)
    drawn = draw(family, embedding, functions=7)
    points, weights = grid(target, step)
    assert_allclose(weights @ drawn.evaluate(points), drawn.integrals, rtol=1e-12, atol=1e-13)


@pytest.mark.parametrize("family", ["genz_gaussian_peak", "genz_oscillatory"])
def test_integrals_over_a_box_are_exact(family):
    box = Uniform([-1.0, 0.5], [2.0, 1.5])
    drawn = draw(family, embed(ExponentiatedQuadratic(0.5), box), functions=7)
    nodes, weights = np.polynomial.legendre.leggauss(40)
    axes = np.meshgrid(0.5 + 1.5 * nodes, 1 + 0.5 * nodes, indexing="ij")
    points = np.stack([a.ravel() for a in axes], axis=1)
    means = np.outer(weights, weights).ravel() / 4 @ drawn.evaluate(points)
    assert_allclose(means, drawn.integrals, rtol=1e-12, atol=1e-14)


def test_centres_are_normal_where_their_variance_is_given():
    embedding = embed(ExponentiatedQuadratic(0.5), LINE)
    drawn = draw("rkhs_ball", embedding, functions=4000, terms=1, centre_variance=3.0)
    line = np.linspace(-8, 8, 1601)[:, None]
    peaks = line[np.abs(drawn.evaluate(line)).argmax(axis=0), 0]
    assert abs(peaks.mean()) < 0.1
    assert peaks.var() == pytest.approx(3.0, rel=0.07)


@pytest.mark.parametrize("family", FAMILIES)
def test_integrals_over_a_data_set_are_its_means(family):
    points = np.random.default_rng(1).standard_normal((40, 2))
    weights = np.arange(1.0, 41) / np.arange(1.0, 41).sum()
    embedding = embed(ExponentiatedQuadratic(0.5), Empirical(points, weights))
    drawn = draw(family, embedding, functions=5)
    assert_allclose(weights @ drawn.evaluate(points), drawn.integrals, rtol=1e-12, atol=1e-14)


@pytest.mark.parametrize(
    "kernel, target",
    [
        (ExponentiatedQuadratic(0.7, scale="density"), LINE),
        (Matern(0.7, nu=1.5), LINE),
        (Brownian(), Uniform([0.0], [1.0])),
    ],
)
def test_functions_of_the_ball_have_norm_one(kernel, target):
    drawn = draw("rkhs_ball", embed(kernel, target), functions=6, terms=3)
    assert_array_equal(drawn.norms, 1.0)
    # Interpolants of f have norms that rise to that of f as their points fill the line.
    lower, upper = (0.002, 1) if isinstance(target, Uniform) else (-7, 7)
    points = np.linspace(lower, upper, 400)[:, None]
    values = drawn.evaluate(points)
    gram = kernel(points, points) + 1e-9 * np.eye(400)
    norms = np.sqrt(np.einsum("nf,nf->f", values, np.linalg.solve(gram, values)))
    assert (norms < 1.000001).all() and (norms > 0.995).all()


def test_one_term_is_a_kernel_of_norm_one():
    kernel = ExponentiatedQuadratic(0.5, scale="density")
    drawn = draw("rkhs_ball", embed(kernel, LINE), functions=20, terms=1)
    peaks = np.abs(drawn.evaluate(np.linspace(-6, 6, 60001)[:, None])).max(axis=0)
    assert_allclose(peaks, np.sqrt(kernel.height(1)), rtol=1e-6)


def test_bumps_of_one_width_are_kernels_of_that_length_scale():
    # The two families draw the same coefficients and centres, and differ in their norms alone.
    embedding = embed(ExponentiatedQuadratic(0.4), MIXTURE)
    bumps = draw("rough_bumps", embedding, narrowest=0.4, widest=0.4)
    ball = draw("rkhs_ball", embedding)
    points = MIXTURE.sample(50, np.random.default_rng(3))
    ratio = bumps.integrals / ball.integrals
    assert_allclose(bumps.evaluate(points), ratio * ball.evaluate(points), rtol=1e-9, atol=1e-12)


def test_widths_are_uniform_in_their_logarithm_and_directions_over_the_circle():
    # The curvature of a single bump at its centre is -alpha S^-1: read S off the functions.
    drawn = draw(
        "rough_bumps", embed(ExponentiatedQuadratic(1.0), MIXTURE), functions=1000, terms=1,
        narrowest=0.1, widest=2.0,
    )  # fmt: skip
    centres = MIXTURE.sample(1000, np.random.default_rng(0).spawn(2)[1])
    h = 1e-3

    def at(*offset):
        return np.diag(drawn.evaluate(centres + h * np.array(offset)))

    middle = at(0, 0)
    second = {
        (0, 0): at(1, 0) + at(-1, 0) - 2 * middle,
        (1, 1): at(0, 1) + at(0, -1) - 2 * middle,
        (0, 1): (at(1, 1) + at(-1, -1) - at(1, -1) - at(-1, 1)) / 4,
    }
    precision = np.empty((1000, 2, 2))
    for (i, j), value in second.items():
        precision[:, i, j] = precision[:, j, i] = -value / h**2 / middle
    values, vectors = np.linalg.eigh(precision)
    shares = np.log(values**-0.5 / 0.1) / np.log(20)
    # Of two independent uniform numbers, the smaller has mean 1/3 and the larger 2/3.
    assert_allclose(shares.mean(axis=0), [2 / 3, 1 / 3], atol=0.03)
    assert shares.min() > -1e-3 and shares.max() < 1 + 1e-3
    angles = 2 * np.arctan2(vectors[:, 1, 0], vectors[:, 0, 0])
    assert np.abs(np.exp(1j * angles).mean()) < 0.1


@given(st.integers(0, 2**31))
def test_no_error_of_the_ball_is_above_the_mmd(seed):
    embedding = embed(ExponentiatedQuadratic(0.5), MIXTURE)
    rng = np.random.default_rng(seed)
    points, weights = rng.normal(0, 2, (6, 2)), rng.normal(0, 1, 6)
    drawn = draw("rkhs_ball", embedding, seed, functions=30, terms=2)
    bound = mmd(embedding, points, weights)
    assert drawn.errors(points, weights[None]).max() <= bound * (1 + 1e-9)


def test_errors_are_those_of_each_row_of_weights():
    drawn = draw("rough_bumps", embed(ExponentiatedQuadratic(0.5), LINE), functions=3)
    matrix = np.array([[1.0, 0.0], [0.25, -0.5]])
    values = drawn.evaluate([[0.1], [0.7]])
    expected = [values[0], 0.25 * values[0] - 0.5 * values[1]] - drawn.integrals
    assert_allclose(drawn.errors([[0.1], [0.7]], matrix), np.abs(expected), rtol=1e-12)


@pytest.mark.parametrize("family", FAMILIES)
def test_equal_generators_give_equal_functions(family):
    embedding = embed(ExponentiatedQuadratic(0.5), MIXTURE)
    points = MIXTURE.sample(5, np.random.default_rng(0))
    first, again, other = (draw(family, embedding, seed) for seed in (4, 4, 5))
    assert_array_equal(first.evaluate(points), again.evaluate(points))
    assert_array_equal(first.integrals, again.integrals)
    assert not np.isclose(first.integrals, other.integrals).any()


@pytest.mark.parametrize(
    "family, parameters, told",
    [
        ("rkhs_ball", {"functions": 0}, "functions is 0; it must be at least 1"),
        ("rough_bumps", {"terms": 0}, "terms is 0; it must be at least 1"),
        ("rkhs_ball", {"centre_variance": 0.0}, "centre_variance is 0; it must be finite"),
        (
            "rough_bumps",
            {"narrowest": 3.0},
            "narrowest is 3 and widest 2; they must be pos.* narrowest <= widest",
        ),
        ("rough_bumps", {"narrowest": 0.0}, "narrowest is 0 and"),
        ("rough_bumps", {"widest": np.inf}, "narrowest is 0.2 and widest inf"),
        ("genz_oscillatory", {"difficulty": -1.0}, "difficulty is -1; it must be"),
        ("genz_gaussian_peak", {"functions": -1}, "functions is -1; it must be"),
    ],
)
def test_parameters_out_of_range_are_told(family, parameters, told):
    with pytest.raises(ValueError, match=told):
        draw(family, embed(ExponentiatedQuadratic(0.5), LINE), **parameters)


@pytest.mark.parametrize(
    "family, target, told",
    [
        ("rough_bumps", Uniform([0.0], [1.0]), "GaussianMixture and Empirical, not under Uniform"),
        ("genz_oscillatory", Product([LINE]), "Uniform and Empirical, not under Product"),
    ],
)
def test_targets_without_a_closed_form_are_told(family, target, told):
    with pytest.raises(TypeError, match=told):
        draw(family, embed(ExponentiatedQuadratic(0.5), target))
