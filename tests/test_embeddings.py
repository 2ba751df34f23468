"""Embeddings: known digits, quadrature, and what kernel means must keep."""

import copy
import json
import pickle
import tracemalloc
from decimal import Decimal
from functools import partial
from itertools import pairwise
from math import prod
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.integrate import quad

import bqlib
from bqlib import (
    Brownian,
    BrownianBridge,
    Empirical,
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
    embed,
)
from bqlib.embeddings import DataMeans, Embedding, data_means, find, register, with_data_means
from bqlib.embeddings.empirical import SIDE
from bqlib.embeddings.matern import LAGUERRE_FROM
from bqlib.embeddings.rational_quadratic import STRIDE, gamma_rule, geometric_rule
from bqlib.kernels import ProductKernel, UnitCubeKernel

HERE = Path(__file__).parent
CASES = json.loads((HERE / "reference" / "embeddings.json").read_text())["cases"]
EXTREME = json.loads((HERE / "reference" / "extreme_length_scales.json").read_text())


def normal(mean, deviation):
    return GaussianMixture([1.0], [[mean]], [[[deviation**2]]])


def diagonal_mixture(weights, means, deviations):
    return GaussianMixture(weights, means, [np.diag(np.square(s)) for s in deviations])


FULL = GaussianMixture(
    [0.4, 0.6], [[0.2, 0.3], [0.8, 0.1]], [[[0.1, 0.05], [0.05, 0.3]], [[0.2, -0.03], [-0.03, 0.1]]]
)
DIAGONAL = diagonal_mixture([0.4, 0.6], [[0.2, 0.3], [0.8, 0.1]], [[0.3, 0.5], [0.4, 0.2]])
SQUARE = Uniform([0.0, 0.0], [1.0, 1.0])
BLOCKS = Product([normal(0.4, 0.3), Uniform([-0.5], [0.8])])
DATA = Empirical(np.random.default_rng(0).random((40, 2)))

EQ = ExponentiatedQuadratic([0.5, 0.3], scale="density")
FULL_EQ = ExponentiatedQuadratic(covariance=[[0.3, 0.1], [0.1, 0.2]])
MATERNS = [Matern([0.5, 0.8], nu=nu, scale="density") for nu in (0.5, 1.5, 2.5)]
RQ = RationalQuadratic([0.5, 0.7], alpha=1.7, scale="density")
UNIT_CUBE = [
    *(Brownian(), BrownianBridge(), IntegratedBrownian(), L2Star()),
    *(Korobov(), Korobov(2), Korobov(3)),
]
FACTORS = OnCoordinates(Matern(0.3), [1]) * OnCoordinates(ExponentiatedQuadratic(0.4), [0])

PAIRS = [
    *[(kernel, target) for kernel in (EQ, FULL_EQ, RQ) for target in (FULL, DATA)],
    *[(kernel, target) for kernel in (EQ, RQ, *MATERNS) for target in (SQUARE, BLOCKS)],
    *[(kernel, DIAGONAL) for kernel in MATERNS],
    *[(kernel, SQUARE) for kernel in UNIT_CUBE],
    (Matern(0.4), DATA),
    (EQ + 2.0 * Matern(0.4), DIAGONAL),
    (FACTORS, BLOCKS),
    (3.0 * FACTORS, SQUARE),
    (OnCoordinates(Matern(0.3), [1]), BLOCKS),
    (Stein(FULL, 0.7, constant=2.0), FULL),
    (Stein(FULL, 0.7), DATA),
]
one_dimensional = pytest.mark.parametrize(
    "kernel",
    [
        ExponentiatedQuadratic(0.6, scale="density"),
        Matern(0.6, nu=0.5),
        Matern(0.6, nu=1.5),
        Matern(0.6, nu=2.5, scale="density"),
        RationalQuadratic(0.6, alpha=1.0, scale="density"),
        RationalQuadratic(0.6, alpha=2.5),
    ],
    ids=lambda kernel: f"{type(kernel).__name__}-{getattr(kernel, 'nu', '')}",
)


def pair_name(part):
    return type(part).__name__


def finite_difference(function, x, step=1e-5):
    columns = np.eye(x.shape[1]) * step
    return np.stack([(function(x + c) - function(x - c)) / (2 * step) for c in columns], axis=-1)


def quadrature_of(target):
    """Nodes and weights of a quadrature rule for a target."""
    if isinstance(target, GaussianMixture):
        t, w = np.polynomial.hermite_e.hermegauss(60)
        parts = []
        for weight, mean, covariance in zip(
            target.weights, target.means, target.covariances, strict=True
        ):
            factor = np.linalg.cholesky(covariance)
            grid, mass = tensor([t] * target.dim, [w / w.sum()] * target.dim)
            parts.append((mean + grid @ factor.T, weight * mass))
        return tuple(np.concatenate(part) for part in zip(*parts, strict=True))
    if isinstance(target, Uniform):
        t, w = np.polynomial.legendre.leggauss(60)
        nodes = [a + (b - a) * (t + 1) / 2 for a, b in zip(target.lower, target.upper, strict=True)]
        return tensor(nodes, [w / 2] * target.dim)
    if isinstance(target, Empirical):
        return target.points, target.weights
    rules = [quadrature_of(block) for block in target.blocks]
    return tensor([nodes[:, 0] for nodes, _ in rules], [weights for _, weights in rules])


def tensor(nodes, weights):
    grid = np.stack(np.meshgrid(*nodes, indexing="ij"), axis=-1).reshape(-1, len(nodes))
    mass = np.stack(np.meshgrid(*weights, indexing="ij"), axis=-1).reshape(-1, len(nodes))
    return grid, mass.prod(axis=1)


# --- Known digits


def build(facts):
    facts = dict(facts)
    if "name" in facts:
        path = HERE.parent / "config" / "targets" / f"{facts['name']}.json"
        facts = json.loads(path.read_text())
        return GaussianMixture(facts["weights"], facts["means"], facts["covariances"])
    if "deviations" in facts:
        facts["covariances"] = [np.diag(np.square(s)) for s in facts.pop("deviations")]
    return getattr(bqlib, facts.pop("family"))(**facts)


@pytest.mark.parametrize("case", CASES.values(), ids=CASES)
def test_reference_values(case):
    kernel, target = build(case["kernel"]), build(case["target"])
    embedding = embed(kernel, target)
    mean = embedding.kernel_mean(np.array(case["points"]))
    expected = np.array(case["kernel_mean"], dtype=float)
    np.testing.assert_allclose(mean, expected, rtol=1e-13, atol=0)
    assert embedding.prior_variance == pytest.approx(float(case["prior_variance"]), rel=1e-13)


def extreme_name(case):
    target = case["target"]
    dim = len(target.get("means", [[0.0]])[0])
    return "-".join([*map(str, case["kernel"].values()), target["family"], str(dim)])


def documented_errors():
    """Relative errors of z, its gradient and V0 in the table of the page on embeddings."""
    page = (HERE.parent / "docs" / "embeddings.md").read_text(encoding="utf-8")
    table = page.split("| | z | gradient of z | V0 |\n|---|---|---|---|\n")[1].split("\n\n")[0]
    rows = [line.strip("| ").split(" | ") for line in table.splitlines()]
    return {row[0]: [float(cell) for cell in row[1:]] for row in rows}


@pytest.mark.parametrize("case", EXTREME["cases"], ids=extreme_name)
def test_extreme_length_scales_and_points_far_out(case):
    # The errors that the page on embeddings promises, row by row
    promised = documented_errors()[f"`{case['kernel']['family']}`"]
    embedding = embed(build(case["kernel"]), build(case["target"]))
    points = np.zeros((len(EXTREME["points"]), embedding.target.dim))
    points[:, 0] = EXTREME["points"]
    found = {
        "kernel_mean": embedding.kernel_mean(points),
        "kernel_mean_gradient": embedding.kernel_mean_gradient(points)[:, 0],
        "prior_variance": np.array([embedding.prior_variance]),
    }
    for (name, values), tolerance in zip(found.items(), promised, strict=True):
        expected = np.atleast_1d(np.array(case[name], dtype=float))
        held = np.abs(expected) > 1e-290  # float64 has no digits below
        np.testing.assert_allclose(
            values[held], expected[held], rtol=tolerance, atol=0, err_msg=name
        )


@pytest.mark.parametrize("dim", [2, 5])
@pytest.mark.parametrize(
    "case", [c for c in EXTREME["cases"] if c["kernel"]["family"] == "Matern"], ids=extreme_name
)
def test_errors_do_not_add_up_over_coordinates(case, dim):
    facts = case["target"]
    if facts["family"] == "Uniform":
        target = Uniform(facts["lower"] * dim, facts["upper"] * dim)
    else:
        target = GaussianMixture([1.0], [[0.0] * dim], [np.eye(dim)])
    embedding = embed(build(case["kernel"]), target)
    rows = np.random.default_rng(0).integers(0, len(EXTREME["points"]), (30, dim))
    points = np.array(EXTREME["points"])[rows]
    # In Decimal, as a factor alone may be below float64
    names = ("kernel_mean", "kernel_mean_gradient")
    means, slopes = (list(map(Decimal, case[name])) for name in names)
    factors = [[means[c] for c in row] for row in rows]
    mean = [prod(row) for row in factors]
    slope = [
        [prod([*row[:c], slopes[i[c]], *row[c + 1 :]]) for c in range(dim)]
        for row, i in zip(factors, rows, strict=True)
    ]
    for found, expected, promised in zip(
        (embedding.kernel_mean(points), embedding.kernel_mean_gradient(points)),
        (np.array(mean, dtype=float), np.array(slope, dtype=float)),
        documented_errors()["`Matern`"][:2],
        strict=True,
    ):
        held = np.abs(expected) > 1e-290
        np.testing.assert_allclose(found[held], expected[held], rtol=promised, atol=0)


def mmd2_of_best_weights(embedding, points):
    mean = embedding.kernel_mean(points)
    gram = embedding.kernel(points, points)
    return embedding.prior_variance - mean @ np.linalg.solve(gram, mean)


@pytest.mark.parametrize(
    "first, n, optimum",
    [
        (0.29521288681508810699, 2, 0.10551868962048640905),
        (0.055435022507236397096, 10, 0.0079866724271024693214),
    ],
)
def test_optimal_design_for_matern_one_half(first, n, optimum):
    # From the closed form for the Ornstein-Uhlenbeck process, minimised with 40 digits
    points = np.linspace(first, 1 - first, n)[:, None]
    mmd2 = mmd2_of_best_weights(embed(Matern(0.2, nu=0.5), Uniform([0.0], [1.0])), points)
    assert mmd2 == pytest.approx(optimum, rel=1e-11)


@pytest.mark.parametrize("n", [1, 4])
def test_lattices_under_korobov(n):
    # Equal weights: pi^2 / (3 n^2) = c; the best weights: c / (1 + c).
    points = np.arange(n)[:, None] / n
    embedding = embed(Korobov(), Uniform([0.0], [1.0]))
    equal = 1 - 2 + embedding.kernel(points, points).mean()
    c = np.pi**2 / (3 * n**2)
    assert equal == pytest.approx(c, rel=1e-13)
    assert mmd2_of_best_weights(embedding, points) == pytest.approx(c / (1 + c), rel=1e-13)


# --- Every pair against its definition


@pytest.mark.parametrize("kernel, target", PAIRS, ids=pair_name)
def test_gradients_are_those_of_the_kernel_mean(kernel, target):
    embedding = embed(kernel, target)
    x = np.random.default_rng(1).random((6, 2))
    gradient = embedding.kernel_mean_gradient(x)
    assert gradient.shape == (6, 2)
    expected = finite_difference(embedding.kernel_mean, x)
    np.testing.assert_allclose(gradient, expected, rtol=1e-6, atol=1e-7)
    mean, same = embedding.kernel_mean_with_gradient(x)
    np.testing.assert_array_equal(mean, embedding.kernel_mean(x))
    np.testing.assert_array_equal(same, gradient)
    mean, slopes = embedding.kernel_mean_with_gradient(x[:0])
    assert mean.shape == (0,) and slopes.shape == (0, 2)


def rough(kernel):
    """Whether quadrature on a fixed grid meets a kink of the kernel."""
    return not isinstance(kernel, ExponentiatedQuadratic | RationalQuadratic | Stein)


@pytest.mark.parametrize("kernel, target", PAIRS, ids=pair_name)
def test_kernel_mean_and_prior_variance_are_expectations(kernel, target):
    embedding = embed(kernel, target)
    nodes, weights = quadrature_of(target)
    tolerance = 3e-3 if rough(kernel) else 1e-6
    x = np.random.default_rng(2).random((4, 2))
    mean = embedding.kernel_mean(x)
    assert mean.shape == (4,)
    scale = kernel.diagonal(x).max()
    np.testing.assert_allclose(mean, kernel(x, nodes) @ weights, atol=tolerance * scale)
    # The kernel mean is smoother than the kernel, so that this is sharp for every pair.
    expected = weights @ embedding.kernel_mean(nodes)
    assert embedding.prior_variance == pytest.approx(expected, rel=1e-5, abs=1e-9)


@one_dimensional
@pytest.mark.parametrize("x", [-0.7, 0.3, 2.9])
def test_kernel_means_in_one_dimension_by_adaptive_quadrature(kernel, x):
    # Split at the kink of the kernel
    target = normal(0.4, 0.8)
    expected = sum(
        quad(
            lambda t: kernel([[x]], [[t]])[0, 0] * target.density([[t]])[0],
            *ends,
            epsabs=1e-13,
            epsrel=1e-12,
        )[0]
        for ends in ((-9.0, x), (x, 9.0))
    )
    assert embed(kernel, target).kernel_mean([[x]])[0] == pytest.approx(expected, rel=1e-10)

    box = Uniform([-0.5], [1.5])
    cuts = sorted({-0.5, 1.5, min(max(x, -0.5), 1.5)})
    expected = sum(
        quad(lambda t: kernel([[x]], [[t]])[0, 0] / 2, *ends, epsabs=1e-14, epsrel=1e-12)[0]
        for ends in pairwise(cuts)
    )
    assert embed(kernel, box).kernel_mean([[x]])[0] == pytest.approx(expected, rel=1e-10)


# --- What kernel means must keep


@one_dimensional
@pytest.mark.parametrize("target", [normal(0.4, 0.8), Uniform([-0.5], [1.5])], ids=pair_name)
@given(shift=st.floats(-50, 50), factor=st.floats(0.01, 100))
def test_kernel_and_target_move_and_stretch_together(kernel, target, shift, factor):
    settings = {"scale": "unit"} | {
        name: getattr(kernel, name) for name in ("nu", "alpha") if hasattr(kernel, name)
    }
    x = np.array([[-1.0], [0.2], [2.5]])
    here = embed(type(kernel)(0.6, **settings), target)
    if isinstance(target, Uniform):
        moved = Uniform(shift + factor * target.lower, shift + factor * target.upper)
    else:
        moved = normal(shift + factor * 0.4, factor * 0.8)
    there = embed(type(kernel)(factor * 0.6, **settings), moved)
    # The shift costs digits of x.
    tolerance = 1e-12 * (1 + abs(shift) / factor)
    mean = there.kernel_mean(shift + factor * x)
    np.testing.assert_allclose(mean, here.kernel_mean(x), rtol=tolerance)
    assert there.prior_variance == pytest.approx(here.prior_variance, rel=1e-11 + tolerance)


@pytest.mark.parametrize("kernel", [EQ, FULL_EQ, RQ, *MATERNS], ids=pair_name)
def test_a_mixture_is_the_weighted_sum_of_its_components(kernel):
    weights, means, deviations = (
        [0.2, 0.0, 0.8],
        [[0, 0], [9, 9], [1, -1]],
        [[1, 2], [1, 1], [0.1, 3]],
    )
    mixture = embed(kernel, diagonal_mixture(weights, means, deviations))
    parts = [
        embed(kernel, diagonal_mixture([1.0], [m], [s]))
        for m, s in zip(means, deviations, strict=True)
    ]
    x = np.random.default_rng(3).normal(size=(5, 2))
    for name in ("kernel_mean", "kernel_mean_gradient"):
        expected = sum(w * getattr(part, name)(x) for w, part in zip(weights, parts, strict=True))
        np.testing.assert_allclose(getattr(mixture, name)(x), expected, rtol=1e-12, atol=1e-15)
    # A component of weight zero leaves no trace.
    rest = diagonal_mixture([0.2, 0.8], [means[0], means[2]], [deviations[0], deviations[2]])
    assert mixture.prior_variance == pytest.approx(embed(kernel, rest).prior_variance, rel=1e-13)


@pytest.mark.parametrize("kernel", [EQ, *MATERNS], ids=pair_name)
def test_a_product_of_targets_is_the_mixture_or_box_it_equals(kernel):
    x = np.random.default_rng(4).random((5, 2))
    same = [
        (Product([normal(0.3, 0.4), normal(-1.0, 2.0)]), [[0.3, -1.0]], [[0.4, 2.0]]),
        (Product([Uniform([0.0], [1.0]), Uniform([-1.0], [0.5])]), None, None),
    ]
    for product, means, deviations in same:
        joint = Uniform([0.0, -1.0], [1.0, 0.5])
        if means:
            joint = diagonal_mixture([1.0], means, deviations)
        a, b = embed(kernel, product), embed(kernel, joint)
        np.testing.assert_allclose(a.kernel_mean(x), b.kernel_mean(x), rtol=1e-13)
        np.testing.assert_allclose(
            a.kernel_mean_gradient(x), b.kernel_mean_gradient(x), rtol=1e-11, atol=1e-15
        )
        assert a.prior_variance == pytest.approx(b.prior_variance, rel=1e-13)


def test_exponentiated_quadratic_in_density_scale_convolves():
    # Its kernel mean is the density of the target with the metric added to each covariance.
    embedding = embed(ExponentiatedQuadratic([0.5, 0.3], scale="density"), FULL)
    wider = GaussianMixture(FULL.weights, FULL.means, FULL.covariances + np.diag([0.25, 0.09]))
    x = np.random.default_rng(5).normal(size=(6, 2))
    np.testing.assert_allclose(embedding.kernel_mean(x), wider.density(x), rtol=1e-13)


@pytest.mark.parametrize("alpha", [0.1, 0.5, 1.0, 3.0, 100.0, 1e6])
@pytest.mark.parametrize("further", [0, 3, 20])
def test_gamma_rule_gives_the_kernel_at_every_distance_of_its_level(alpha, further):
    level = int(np.ceil(np.log(alpha + 1) / STRIDE)) + further
    tau, weights = gamma_rule(alpha, level)
    assert weights @ tau == pytest.approx(1, rel=1e-14)
    assert weights @ tau**2 == pytest.approx(1 + 1 / alpha, rel=1e-12)
    # Laplace transform (1 + t / alpha)^-alpha, for t = r^2 / 2
    t = np.geomspace(1e-6, np.exp(STRIDE * level) - alpha, 40) / 2
    expected = np.exp(-alpha * np.log1p(t / alpha))
    t, expected = t[expected > 1e-280], expected[expected > 1e-280]
    np.testing.assert_allclose(np.exp(-np.outer(t, tau)) @ weights, expected, rtol=2e-13)


@pytest.mark.parametrize("distance, nodes", [(5, 55), (1e6, 160)])
def test_the_documented_cost_of_a_rational_quadratic_kernel_mean(distance, nodes):
    level = int(np.ceil(np.log(1 + distance**2) / STRIDE))
    assert len(gamma_rule(1.0, level)[0]) == pytest.approx(nodes, rel=0.1)


@pytest.mark.parametrize("alpha, step", [(0.1, 0.2), (1.0, 0.216), (0.3, 0.02), (7.0, 0.17)])
def test_the_geometric_rule_is_exact_for_polynomials(alpha, step):
    nodes, shares = geometric_rule(alpha, step)
    assert (shares > 0).all() and (nodes > 0).all() and (nodes < 1).all()
    for power in range(2 * len(nodes)):
        assert shares @ nodes**power == pytest.approx(1 / -np.expm1(-step * (alpha + power)))


def test_a_rational_quadratic_kernel_mean_does_not_depend_on_the_other_points():
    embedding = embed(RationalQuadratic([1e-3, 0.4], alpha=0.7), FULL)
    x = np.array([[0.1, 0.2], [3.0, 0.0], [-1e3, 2.0], [0.0, 1e6]])
    for function in (embedding.kernel_mean, embedding.kernel_mean_gradient):
        alone = np.concatenate([function(row[None]) for row in x])
        np.testing.assert_allclose(function(x), alone, rtol=1e-15)


@pytest.mark.parametrize("target", [FULL, BLOCKS, SQUARE, DATA, Product([DATA, normal(0, 1)])])
def test_far_out_a_rational_quadratic_kernel_mean_is_the_kernel(target):
    kernel = RationalQuadratic(1e-4, alpha=0.3)
    x = np.full((1, target.dim), 1e9)
    here = np.full((1, target.dim), 0.3)
    expected = kernel(x, here)[0]
    np.testing.assert_allclose(embed(kernel, target).kernel_mean(x), expected, rtol=3e-9)


def test_full_covariances_turn_with_the_axes_under_a_short_rational_quadratic_kernel():
    turn = np.array([[0.6, -0.8], [0.8, 0.6]])
    axes = diagonal_mixture([1.0], [[0.0, 0.0]], [[1.0, 0.01]])
    turned = GaussianMixture([1.0], [[0.0, 0.0]], turn @ axes.covariances @ turn.T)
    kernel = RationalQuadratic(1e-3, alpha=0.5)
    straight, oblique = embed(kernel, axes), embed(kernel, turned)
    assert oblique.prior_variance == pytest.approx(straight.prior_variance, rel=1e-11)
    x = np.array([[0.0, 0.0], [0.5, 0.1], [4.0, -3.0]])
    found, expected = oblique.kernel_mean(x @ turn.T), straight.kernel_mean(x)
    np.testing.assert_allclose(found, expected, rtol=1e-11)


def test_a_rational_quadratic_embedding_has_as_many_terms_as_the_docstring_says():
    levels = [int(np.ceil(np.log(1 + distance**2) / STRIDE)) for distance in (1, 10, 1e6)]
    terms = [len(gamma_rule(1.0, level)[0]) for level in levels]
    said = "{} terms if points are up to 1 length-scale from the target, {} if up to 10, and {} if"
    assert said.format(*terms) in " ".join(RationalQuadratic.__doc__.split())


def test_a_rational_quadratic_embedding_beyond_the_range_of_lengths_is_refused():
    embedding = embed(RationalQuadratic(1.0, alpha=0.5), SQUARE)
    with pytest.raises(ValueError, match=r"length-scales up to .* below 1e50.* below 1e46 never"):
        embedding.kernel_mean([[1e50, 0.0]])
    assert embedding.kernel_mean([[1e46, 0.0]]) == pytest.approx(1e-46, rel=1e-12)


@pytest.mark.parametrize("alpha", [0.1, 0.15, 0.195])
def test_the_heaviest_tails_that_an_embedding_takes(alpha):
    kernel, target = RationalQuadratic(1.0, alpha=alpha), Uniform([0], [1])
    for x in (0.3, 20.0):
        expected = quad(lambda y: kernel([[x]], [[y]])[0, 0], 0, 1, epsabs=0, epsrel=1e-12)[0]  # noqa: B023
        assert embed(kernel, target).kernel_mean([[x]])[0] == pytest.approx(expected, rel=1e-10)


def test_the_cauchy_closed_form_meets_the_mixture_of_length_scales():
    x = np.array([[-300.0], [-2.0], [0.1], [0.9], [40.0]])
    for target in (
        diagonal_mixture([0.3, 0.7], [[0.0], [1.0]], [[1.0], [0.05]]),
        Uniform([0], [1]),
    ):
        closed = embed(RationalQuadratic(0.4, alpha=1.0), target)
        mixed = embed(RationalQuadratic(0.4, alpha=1.0 + 1e-13), target)
        np.testing.assert_allclose(closed.kernel_mean(x), mixed.kernel_mean(x), rtol=1e-11)
        np.testing.assert_allclose(
            closed.kernel_mean_gradient(x), mixed.kernel_mean_gradient(x), rtol=1e-10
        )
        assert closed.prior_variance == pytest.approx(mixed.prior_variance, rel=1e-12)


# --- Where formulas change hands


@pytest.mark.parametrize(
    "family",
    [ExponentiatedQuadratic, *[partial(Matern, nu=nu) for nu in (0.5, 1.5, 2.5)]],
    ids=["eq", "matern12", "matern32", "matern52"],
)
def test_prior_variance_on_a_box_is_smooth_in_the_length_scale(family):
    box = Uniform([0.0], [1.0])
    scales = np.geomspace(0.05, 20, 2001)
    values = [embed(family(scale), box).prior_variance for scale in scales]
    # Fourth differences of a smooth function on this grid are about (3e-3)^4 = 8e-11.
    assert np.abs(np.diff(values, 4)).max() < 3e-10


@one_dimensional
@pytest.mark.parametrize("width", [1e-9, 1e-3, 1.0, 30.0])
def test_kernel_mean_is_continuous_across_the_ends_of_the_box(kernel, width):
    embedding = embed(kernel, Uniform([0.0], [width]))
    for end in (0.0, width):
        step = 1e-14 * width
        below, at, above = embedding.kernel_mean([[end - step], [end], [end + step]])
        assert below == pytest.approx(at, rel=1e-12) and above == pytest.approx(at, rel=1e-12)


@one_dimensional
def test_a_tiny_box_is_a_point(kernel):
    width = 1e-9
    embedding = embed(kernel, Uniform([-width / 2], [width / 2]))
    x = np.array([[-3.0], [-0.4], [0.2], [5.0]])
    np.testing.assert_allclose(embedding.kernel_mean(x), kernel(x, [[0.0]])[:, 0], rtol=1e-7)
    slope = kernel.gradient(x, np.zeros((1, 1)))[:, 0]
    np.testing.assert_allclose(embedding.kernel_mean_gradient(x), slope, rtol=1e-6)
    assert embedding.prior_variance == pytest.approx(kernel.diagonal(x)[0], rel=1e-8)


@one_dimensional
def test_far_from_the_target_the_kernel_mean_is_small_positive_and_falling(kernel):
    distance = np.array([5.0, 10.0, 15.0])
    for target in (normal(0.0, 0.5), Uniform([-0.5], [0.5])):
        embedding = embed(kernel, target)
        right = embedding.kernel_mean(distance[:, None])
        np.testing.assert_allclose(right, embedding.kernel_mean(-distance[:, None]), rtol=1e-12)
        assert (right > 0).all() and (np.diff(right) < 0).all()
        assert (embedding.kernel_mean_gradient(distance[:, None]) < 0).all()
        # Nothing overflows where everything has underflowed.
        assert np.isfinite(embedding.kernel_mean([[1e6], [-1e6]])).all()
        assert np.isfinite(embedding.kernel_mean_gradient([[1e6], [-1e6]])).all()


@pytest.mark.parametrize("nu", [0.5, 1.5, 2.5])
def test_matern_with_a_gaussian_is_smooth_where_its_formulas_meet(nu):
    # Across a = 2.8 (Gauss-Laguerre) and a = -5 (erfc): compare with a shift far below the digits.
    for lengthscale in (0.3, 1.0, 10.0):
        embedding = embed(Matern(lengthscale, nu=nu), normal(0.0, 1.0))
        rate = np.sqrt(2 * nu) / lengthscale
        for a in (LAGUERRE_FROM, -5.0):
            u = rate - a * np.sqrt(2)
            x = np.array([[u - 1e-9], [u + 1e-9], [-u - 1e-9], [-u + 1e-9]])
            mean, gradient = embedding.kernel_mean(x), embedding.kernel_mean_gradient(x)[:, 0]
            jumps = np.log(mean[1::2] / mean[::2]) - 2e-9 * gradient[::2] / mean[::2]
            np.testing.assert_allclose(jumps, 0, atol=1e-12)


def test_short_length_scales_do_not_overflow():
    # exp(s^2 / (2 l^2)) is beyond float64 here; the kernel mean is near 2 l / sqrt(2 nu) p(x).
    for nu, integral in ((0.5, 2.0), (1.5, 4 / np.sqrt(3)), (2.5, 16 / (3 * np.sqrt(5)))):
        embedding = embed(Matern(1e-5, nu=nu), normal(0.0, 1.0))
        x = np.array([[0.0], [2.0], [-6.0]])
        expected = 1e-5 * integral * normal(0.0, 1.0).density(x)
        np.testing.assert_allclose(embedding.kernel_mean(x), expected, rtol=1e-8)


# --- Stein, empirical targets and arithmetic


def test_stein_kernels_have_mean_c_under_their_target():
    quartic = Unnormalised(1, score=lambda x: -(x**3))
    kernel = Stein(quartic, 0.8, constant=0.0)
    t = np.linspace(-6, 6, 2001)[:, None]
    density = np.exp(-(t[:, 0] ** 4) / 4)
    mean = kernel([[0.3], [1.7]], t) @ (density / density.sum())
    np.testing.assert_allclose(mean, 0, atol=1e-12)
    embedding = embed(kernel, quartic)
    np.testing.assert_array_equal(embedding.kernel_mean([[0.3], [1.7]]), [0.0, 0.0])
    np.testing.assert_array_equal(embedding.kernel_mean_gradient([[0.3]]), [[0.0]])
    assert embedding.prior_variance == 0.0
    shifted = embed(Stein(quartic, 0.8, constant=2.5), quartic)
    np.testing.assert_array_equal(shifted.kernel_mean([[0.3], [1.7]]), [2.5, 2.5])
    assert shifted.prior_variance == 2.5


def test_empirical_embeddings_are_sums_over_the_data():
    rng = np.random.default_rng(6)
    points = rng.random((SIDE + 300, 2))
    weights = rng.dirichlet(np.ones(len(points)))
    kernel = Matern([0.4, 0.7], nu=1.5)
    embedding = embed(kernel, Empirical(points, weights))
    gram = kernel(points, points)
    np.testing.assert_allclose(embedding.kernel_mean(points), gram @ weights, rtol=1e-13)
    assert embedding.prior_variance == pytest.approx(weights @ gram @ weights, rel=1e-13)


@pytest.mark.parametrize(
    "kernel", [EQ, Matern(0.4, nu=1.5), EQ + 2.0 * Matern(0.4), 2.0 * EQ, Stein(FULL, 0.7)]
)
def test_the_means_of_a_data_set_are_read_where_points_are_its_own(kernel):
    rng = np.random.default_rng(9)
    points = np.append(rng.random((30, 2)), [[0.0, -0.0], [0.0, 0.0], [0.5, 0.0]], axis=0)
    target = Empirical(points, rng.dirichlet(np.ones(33)))
    means = pickle.loads(pickle.dumps(data_means(kernel, target)))
    plain, read = embed(kernel, target), embed(kernel, with_data_means(kernel, target, means))
    mixed = np.concatenate([points[5:8], rng.random((4, 2)), -points[[30]], points[[32, 31]]])
    np.testing.assert_allclose(read.kernel_mean(mixed), plain.kernel_mean(mixed), rtol=1e-13)
    slopes = plain.kernel_mean_gradient(mixed)
    np.testing.assert_array_equal(read.kernel_mean_gradient(mixed), slopes)
    assert read.prior_variance == plain.prior_variance

    told = DataMeans(np.arange(33.0), 7.0)  # so that it shows what is read
    read = embed(kernel, with_data_means(kernel, target, told))
    found = read.kernel_mean(mixed)
    assert found[[0, 1, 2, 7, 8, 9]].tolist() == [5.0, 6.0, 7.0, 30.0, 32.0, 30.0]
    np.testing.assert_allclose(found[3:7], plain.kernel_mean(mixed)[3:7], rtol=1e-13)
    assert read.prior_variance == 7.0
    again = pickle.loads(pickle.dumps(read))
    assert again.prior_variance == 7.0 and again.kernel_mean(points[:1]) == 0.0
    # They are of one kernel and one target: the others do not know them.
    assert embed(kernel, target).prior_variance == plain.prior_variance
    other = ExponentiatedQuadratic(0.3)
    assert embed(other, read.target).prior_variance == embed(other, target).prior_variance


def test_only_a_data_set_has_means():
    assert data_means(EQ, FULL) is None
    assert with_data_means(EQ, FULL) is FULL
    with pytest.raises(ValueError, match="the prior variance is nan; it must be finite"):
        DataMeans(np.ones(2), np.nan)
    with pytest.raises(ValueError, match="the kernel mean at the data are NaN or infinite at p"):
        DataMeans([1.0, np.inf], 1.0)
    with pytest.raises(ValueError, match=r"have shape \(2, 2\); 4 points need shape \(4,\)"):
        DataMeans(np.ones((2, 2)), 1.0)


@pytest.mark.parametrize("copied", [copy.deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_embeddings_can_be_kept_in_files(copied):
    points = np.random.default_rng(8).random((5, 2))
    for kernel in (EQ, EQ + 2.0 * MATERNS[1]):
        embedding = embed(kernel, DIAGONAL)
        again = copied(copied(embedding))
        np.testing.assert_array_equal(again.kernel_mean(points), embedding.kernel_mean(points))
        assert again.prior_variance == embedding.prior_variance


def test_an_embedding_made_by_hand_is_not_taken_for_that_of_its_pair():
    ours = embed(EQ, DIAGONAL)
    by_hand = Embedding(EQ, DIAGONAL, lambda x: 0 * x[:, 0], lambda x: 0 * x, 2.0)
    assert copy.deepcopy(by_hand).prior_variance == 2.0 != ours.prior_variance
    with pytest.raises((AttributeError, pickle.PicklingError)):
        pickle.dumps(by_hand)


def test_empirical_embeddings_keep_their_memory_flat():
    target = Empirical(np.random.default_rng(7).random((4 * SIDE, 2)))
    tracemalloc.start()
    embedding = embed(ExponentiatedQuadratic(0.5), target)
    embedding.kernel_mean(target.points)
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    whole = 8 * (4 * SIDE) ** 2
    assert peak < whole / 4


def test_embeddings_of_sums_and_scalings_follow_from_the_parts():
    a, b = embed(EQ, DIAGONAL), embed(MATERNS[1], DIAGONAL)
    both = embed(EQ + 2.0 * MATERNS[1], DIAGONAL)
    x = np.random.default_rng(8).random((4, 2))
    np.testing.assert_allclose(both.kernel_mean(x), a.kernel_mean(x) + 2 * b.kernel_mean(x))
    expected = a.kernel_mean_gradient(x) + 2 * b.kernel_mean_gradient(x)
    np.testing.assert_allclose(both.kernel_mean_gradient(x), expected)
    assert both.prior_variance == pytest.approx(a.prior_variance + 2 * b.prior_variance)


def test_kernels_on_different_coordinates_take_the_blocks_they_see():
    target = Product([FULL, Uniform([0.0], [2.0]), normal(0.0, 1.0)])
    on_full, on_rest = FULL_EQ, Matern([0.3, 0.8])
    embedding = embed(OnCoordinates(on_full, [0, 1]) * OnCoordinates(on_rest, [3, 2]), target)
    x = np.random.default_rng(9).random((4, 4))
    rest = Product([normal(0.0, 1.0), Uniform([0.0], [2.0])])
    parts = embed(on_full, FULL), embed(on_rest, rest)
    expected = parts[0].kernel_mean(x[:, :2]) * parts[1].kernel_mean(x[:, [3, 2]])
    np.testing.assert_allclose(embedding.kernel_mean(x), expected, rtol=1e-14)
    expected = finite_difference(embedding.kernel_mean, x)
    np.testing.assert_allclose(embedding.kernel_mean_gradient(x), expected, atol=1e-8)


def test_scalings_and_sums_may_be_factors_of_a_product():
    first, *second = Matern(0.3), ExponentiatedQuadratic(0.4), Brownian()
    seen = [OnCoordinates(kernel, [1]) for kernel in second]
    found = embed((2.0 * OnCoordinates(first, [0])) * (seen[0] + seen[1]), SQUARE)
    side = Uniform([0.0], [1.0])
    a, b, c = (embed(kernel, side) for kernel in (first, *second))
    x = np.random.default_rng(0).random((5, 2))
    expected = 2 * a.kernel_mean(x[:, :1]) * (b.kernel_mean(x[:, 1:]) + c.kernel_mean(x[:, 1:]))
    np.testing.assert_allclose(found.kernel_mean(x), expected, rtol=1e-13)
    variance = 2 * a.prior_variance * (b.prior_variance + c.prior_variance)
    assert found.prior_variance == pytest.approx(variance, rel=1e-13)


# --- Pairs without a closed form


@pytest.mark.parametrize(
    "kernel, target, problem",
    [
        (Matern(0.5), FULL, "component 0 is not diagonal; use diagonal cov.* Empirical"),
        (Matern(0.5) + EQ, FULL, "component 0 is not diagonal"),
        (FULL_EQ, SQUARE, "covariance= is not a product over coordinates.* use lengthscale="),
        (FULL_EQ, BLOCKS, "covariance= is not a product over coordinates"),
        (RationalQuadratic(0.5, alpha=0.05), FULL, "alpha between 0.1 and 1e6"),
        (RationalQuadratic(0.5, alpha=1e7), SQUARE, "alpha between 0.1 and 1e6"),
        (RationalQuadratic(0.5, alpha=1.0, scale="density"), FULL, "alpha above 1"),
        (Brownian(), Uniform([0.0], [2.0]), "the target is another box: rescale the points, or"),
        (Stein(FULL), DIAGONAL, r"make it with Stein\(target\) from the same target"),
        (Matern([0.5] * 3), SQUARE, "for points of dimension 3, the target has dimension 2"),
        (EQ * MATERNS[0], SQUARE, r"they share \[0, 1\]; put each factor in OnCoordinates"),
        (FACTORS * OnCoordinates(Brownian(), [0]), SQUARE, r"they share \[0\]"),
        (ProductKernel(*FACTORS.parts, FACTORS.parts[0]), SQUARE, r"they share \[1\]"),
        (OnCoordinates(Matern(0.5), [0]), Product([FULL]), r"which are \[\(0, 1\)\]"),
        (OnCoordinates(Matern(0.5), [2]), SQUARE, r"which are \[\(0,\), \(1,\)\]"),
    ],
)
def test_parameters_that_leave_no_closed_form(kernel, target, problem):
    with pytest.raises(ValueError, match=problem):
        embed(kernel, target)


def test_a_product_of_one_kernel_is_that_kernel():
    found, alone = (embed(kernel, SQUARE) for kernel in (ProductKernel(EQ), EQ))
    assert found.prior_variance == alone.prior_variance


@pytest.mark.parametrize(
    "kernel, target, problem",
    [
        (
            EQ,
            Unnormalised(2, score=np.negative),
            "Unnormalised has one with: ScaledKernel, Stein, Sum",
        ),
        (Brownian(), FULL, "Brownian has one with: .*Uniform.*GaussianMixture has one with: Exp"),
        (FACTORS, FULL, "ProductKernel has one with: Empirical, Marginals, Product, Unif"),
    ],
)
def test_pairs_without_an_embedding_name_those_that_have_one(kernel, target, problem):
    with pytest.raises(TypeError, match=problem):
        embed(kernel, target)


def test_points_of_another_shape_are_refused():
    embedding = embed(EQ, FULL)
    with pytest.raises(
        ValueError, match=r"points have shape \(2,\); they must have shape \(n, 2\)"
    ):
        embedding.kernel_mean([0.0, 1.0])
    with pytest.raises(ValueError, match=r"points have shape \(1, 3\)"):
        embedding.kernel_mean_gradient([[0.0, 1.0, 2.0]])


def test_a_subclass_has_the_embedding_of_its_parent_until_it_has_its_own(monkeypatch):
    class Narrow(Matern):
        pass

    assert find(Narrow, Uniform) is find(Matern, Uniform)
    monkeypatch.setattr(bqlib.embeddings.embedding, "_pairs", {})

    @register(Narrow, Uniform)
    def narrow(kernel, target):
        return "its own"

    assert embed(Narrow(0.5), SQUARE) == "its own"


class Bent(UnitCubeKernel):
    def _value(self, x, y):
        return 1 + x * y

    def _slope(self, x, y):
        return y + 0 * x


def test_a_kernel_on_the_unit_cube_of_ones_own_needs_an_embedding_of_its_own():
    for target in (SQUARE, Product([Uniform([0.0], [1.0])])):
        with pytest.raises(TypeError, match="no closed-form embedding for Bent with Uniform"):
            embed(Bent(), target)
    tied = type("Tied", (BrownianBridge,), {})()
    assert embed(tied, SQUARE).prior_variance == embed(BrownianBridge(), SQUARE).prior_variance


@pytest.mark.parametrize("function", [bqlib.weights.bq, bqlib.weights.uniform])
def test_what_is_no_embedding_is_refused(function):
    with pytest.raises(TypeError, match=r"type Uniform; it must be a bqlib.Embedding: use emb"):
        function(Uniform([0], [1]), [[0.5]])


def test_what_is_known_of_all_data_is_found_once_and_only_when_asked():
    asked = []

    class Counted(ExponentiatedQuadratic):
        def __call__(self, x, y):
            asked.append(len(x) * len(y))
            return super().__call__(x, y)

    points = np.random.default_rng(0).normal(size=(1500, 2))
    weights = np.random.default_rng(1).dirichlet(np.ones(1500))
    embedding = embed(Counted(0.7), Empirical(points, weights))
    assert sum(asked) < 10
    gram = ExponentiatedQuadratic(0.7)(points, points)
    np.testing.assert_allclose(embedding.kernel_mean(points), gram @ weights, rtol=1e-13)
    assert embedding.prior_variance == pytest.approx(weights @ gram @ weights, rel=1e-13)
    of_data = sum(asked)
    assert of_data < 0.9 * 1500**2  # blocks of 1024: not quite half
    embedding.kernel_mean(points), embedding.prior_variance
    assert sum(asked) == of_data
    np.testing.assert_allclose(
        embedding.kernel_mean(points[::-1]), gram[::-1] @ weights, rtol=1e-13
    )
    mean = embedding.kernel_mean(points)
    mean[:] = 0.0  # the caller's own
    assert (embedding.kernel_mean(points) > 0).all()


def test_a_prior_variance_may_be_computed_later():
    asked = []
    later = Embedding(
        EQ, DIAGONAL, lambda x: 0 * x[:, 0], lambda x: 0 * x, lambda: asked.append(1) or 2
    )
    assert not asked
    assert later.prior_variance == 2.0 and later.prior_variance == 2.0 and asked == [1]
    wrong = Embedding(EQ, DIAGONAL, lambda x: 0 * x[:, 0], lambda x: 0 * x, lambda: np.nan)
    with pytest.raises(
        ValueError, match=r"the prior variance of ExponentiatedQuadratic under .* nan"
    ):
        _ = wrong.prior_variance
