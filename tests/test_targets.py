"""Targets: densities, derivatives and samples against each other and against known digits."""

import json
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import dblquad
from scipy.stats import multivariate_normal

from bqlib import Empirical, GaussianMixture, Product, Uniform, Unnormalised

CHEN2010 = Path(__file__).parent.parent / "config" / "targets" / "chen2010_mixture.json"
MIXTURE = GaussianMixture(
    [0.35, 0.65],
    [[-0.5, 0.25], [1.0, -1.5]],
    [[[0.8, 0.3], [0.3, 0.5]], [[0.2, -0.1], [-0.1, 0.9]]],
)
NORMAL = GaussianMixture([1.0], [[2.0]], [[[0.25]]])
BOX = Uniform([-1.0, 2.0], [0.5, 4.0])
PRODUCT = Product([NORMAL, MIXTURE])
DATA = Empirical([[0.0, 1.0], [2.0, 3.0], [4.0, 5.0]], [0.5, 0.0, 0.5])
SAMPLED = [MIXTURE, NORMAL, BOX, PRODUCT, DATA, Product([BOX, DATA, NORMAL])]


def finite_difference(function, x, step=1e-5):
    columns = np.eye(x.shape[1]) * step
    return np.stack([(function(x + c) - function(x - c)) / (2 * step) for c in columns], axis=-1)


def kind(target):
    return type(target).__name__


@pytest.mark.parametrize("target", SAMPLED, ids=kind)
def test_a_sample_starts_with_the_shorter_sample(target):
    long = target.sample(500, np.random.default_rng(3))
    assert long.shape == (500, target.dim)
    for m in (1, 7, 499):
        np.testing.assert_array_equal(target.sample(m, np.random.default_rng(3)), long[:m])


@pytest.mark.parametrize("target", SAMPLED, ids=kind)
def test_a_second_sample_by_the_same_generator_differs(target):
    rng = np.random.default_rng(3)
    assert (target.sample(50, rng) != target.sample(50, rng)).any()


def test_sample_moments():
    # Standard errors of 40000 draws: the bounds are five of them.
    rng = np.random.default_rng(0)
    x = MIXTURE.sample(40_000, rng)
    mean = MIXTURE.weights @ MIXTURE.means
    second = np.einsum(
        "j,jcd->cd",
        MIXTURE.weights,
        MIXTURE.covariances + MIXTURE.means[:, :, None] * MIXTURE.means[:, None, :],
    )
    covariance = second - np.outer(mean, mean)
    assert (np.abs(x.mean(axis=0) - mean) < 5 * np.sqrt(np.diag(covariance) / 40_000)).all()
    np.testing.assert_allclose(np.cov(x.T), covariance, atol=0.05)

    u = BOX.sample(40_000, rng)
    assert (u >= BOX.lower).all() and (u <= BOX.upper).all()
    np.testing.assert_allclose(u.mean(axis=0), [-0.25, 3.0], atol=5 * 0.6 / 200)

    independent = PRODUCT.sample(40_000, rng)
    np.testing.assert_allclose(independent[:, 0].mean(), 2.0, atol=5 * 0.5 / 200)
    assert np.abs(np.corrcoef(independent.T)[0, 1:]).max() < 5 / 200

    drawn = DATA.sample(4000, rng)
    assert set(drawn[:, 0]) == {0.0, 4.0}  # never the point of weight zero
    assert drawn[:, 0].mean() == pytest.approx(2.0, abs=5 * 2 / np.sqrt(4000))


@pytest.mark.parametrize("target", [MIXTURE, NORMAL, PRODUCT], ids=kind)
def test_density_score_and_hessian_are_derivatives_of_each_other(target):
    x = target.sample(6, np.random.default_rng(1))
    np.testing.assert_allclose(np.log(target.density(x)), target.log_density(x), rtol=1e-13)
    score, hessian = target.score(x), target.hessian(x)
    np.testing.assert_allclose(score, finite_difference(target.log_density, x), atol=1e-7)
    np.testing.assert_allclose(hessian, finite_difference(target.score, x), atol=1e-6)


def test_mixture_density_is_the_sum_of_normal_densities():
    x = MIXTURE.sample(20, np.random.default_rng(2))
    parts = zip(MIXTURE.weights, MIXTURE.means, MIXTURE.covariances, strict=True)
    expected = sum(w * multivariate_normal(m, c).pdf(x) for w, m, c in parts)
    np.testing.assert_allclose(MIXTURE.density(x), expected, rtol=1e-12)


@pytest.mark.parametrize("target", [BOX, Product([NORMAL, Uniform([-1.0], [2.0])])], ids=kind)
def test_densities_integrate_to_one(target):
    lower = [-1.0, 2.0] if target is BOX else [-2.0, -1.0]
    upper = [0.5, 4.0] if target is BOX else [6.0, 2.0]
    total = dblquad(
        lambda v, u: target.density(np.array([[u, v]]))[0], lower[0], upper[0], lower[1], upper[1]
    )[0]
    assert total == pytest.approx(1, abs=1e-8)


def test_score_of_the_paper_mixture():
    # 40-digit values
    facts = json.loads(CHEN2010.read_text())
    target = GaussianMixture(facts["weights"], facts["means"], facts["covariances"])
    score = target.score([[0.0, 0.0], [-1.0, 3.2], [2.2, -2.7]])
    expected = [
        [-0.59498954353947526769, -1.6044533308653124239],
        [0.050944647601032197687, 0.18545833354174375787],
        [0.45020264959889186821, -0.37565360805890546669],
    ]
    np.testing.assert_allclose(score, expected, rtol=1e-13)


def test_far_from_everything_the_logarithm_still_has_its_digits():
    x = np.array([[1e4, -1e4]])
    assert MIXTURE.density(x) == 0
    parts = zip(MIXTURE.weights, MIXTURE.means, MIXTURE.covariances, strict=True)
    logs = [np.log(w) + multivariate_normal(m, c).logpdf(x[0]) for w, m, c in parts]
    np.testing.assert_allclose(MIXTURE.log_density(x), max(logs), rtol=1e-13)
    nearest = int(np.argmax(logs))
    pull = np.linalg.solve(MIXTURE.covariances[nearest], MIXTURE.means[nearest] - x[0])
    np.testing.assert_allclose(MIXTURE.score(x)[0], pull, rtol=1e-13)
    np.testing.assert_allclose(
        MIXTURE.hessian(x)[0], -np.linalg.inv(MIXTURE.covariances[nearest]), rtol=1e-13
    )


def test_a_component_of_weight_zero_is_not_there():
    with_ghost = GaussianMixture(
        [0.35, 0.0, 0.65],
        np.insert(MIXTURE.means, 1, 50.0, axis=0),
        np.insert(MIXTURE.covariances, 1, np.eye(2), axis=0),
    )
    x = np.array([[0.0, 0.0], [50.0, 50.0], [1e3, 0.0]])
    for name in ("density", "log_density", "score", "hessian"):
        with_it, without = getattr(with_ghost, name)(x), getattr(MIXTURE, name)(x)
        np.testing.assert_allclose(with_it, without, rtol=1e-13)
    assert with_ghost.sample(2000, np.random.default_rng(0)).max() < 20


def test_uniform_outside_its_box():
    x = [[0.0, 3.0], [0.0, 5.0], [-1.0, 2.0]]
    np.testing.assert_allclose(BOX.density(x), [1 / 3, 0, 1 / 3])
    np.testing.assert_array_equal(np.isinf(BOX.log_density(x)), [False, True, False])


def test_product_joins_its_blocks():
    x = PRODUCT.sample(5, np.random.default_rng(4))
    expected = NORMAL.density(x[:, :1]) * MIXTURE.density(x[:, 1:])
    np.testing.assert_allclose(PRODUCT.density(x), expected, rtol=1e-13)
    assert PRODUCT.dim == 3
    half = Product([NORMAL, Uniform([0.0], [1.0])])
    assert half.score is None and half.hessian is None and half.inflated is None


def test_inflation_multiplies_covariances():
    np.testing.assert_array_equal(MIXTURE.inflated(3.0).covariances, 3 * MIXTURE.covariances)
    blocks = PRODUCT.inflated(3.0).blocks
    np.testing.assert_array_equal(blocks[0].covariances, 3 * NORMAL.covariances)


def test_unnormalised_keeps_what_it_was_given_and_cannot_be_sampled():
    target = Unnormalised(2, log_density=lambda x: -(x**4).sum(axis=1))
    np.testing.assert_array_equal(target.log_density(np.ones((3, 2))), [-2.0] * 3)
    assert target.score is None
    for block in (target, Product([NORMAL, target])):
        with pytest.raises(TypeError, match=r'Unnormalised target cannot be sampled.*source="box"'):
            block.sample(3, np.random.default_rng(0))


ONE = np.ones((1, 1, 1))


@pytest.mark.parametrize(
    "build, problem",
    [
        (lambda: GaussianMixture([], [], []), "weights have shape"),
        (lambda: GaussianMixture([[1.0]], [[0.0]], ONE), "weights have shape"),
        (lambda: GaussianMixture([1.0], [0.0], ONE), "means have shape"),
        (lambda: GaussianMixture([0.5, 0.5], [[0.0]], ONE), "means have shape"),
        (lambda: GaussianMixture([1.0], [[0.0]], [1.0]), "covariances have shape"),
        (lambda: GaussianMixture([0.9], [[0.0]], ONE), "weights sum to 0.9"),
        (lambda: GaussianMixture([np.nan], [[0.0]], ONE), "weights must be finite"),
        (
            lambda: GaussianMixture([1.5, -0.5], [[np.inf], [0.0]], [[[1.0]], [[-1.0]]]),
            "weights must be finite and not negative; means hold NaN or infinity, first in row 0: "
            r"\[inf\]; covariance of component 1 is not positive definite",
        ),
        (lambda: GaussianMixture([1.0], [[0, 0]], [[[1, 1], [0, 1]]]), "is not symmetric"),
        (lambda: Uniform([0.0], [1.0, 2.0]), r"lower has shape \(1,\) and upper \(2,\)"),
        (lambda: Uniform(0.0, 1.0), "both must have one number for each coordinate"),
        (lambda: Uniform([0.0, 1.0], [1.0, 1.0]), "lower is 1 and upper 1 in coordinate 1"),
        (lambda: Uniform([0.0], [np.inf]), "NaN or infinite"),
        (lambda: Product([]), "at least one block"),
        (lambda: Empirical([1.0, 2.0]), r"points have shape \(2,\)"),
        (lambda: Empirical(np.empty((0, 2))), r"points have shape \(0, 2\)"),
        (lambda: Empirical([[1.0]], [0.5, 0.5]), r"weights have shape \(2,\)"),
        (
            lambda: Empirical([[np.nan]], [0.5]),
            r"weights sum to 0.5.*points hold NaN or infinity, first in row 0: \[nan\]",
        ),
        (lambda: Unnormalised(1), "needs log_density=, score= or both"),
        (lambda: Unnormalised(0, score=np.negative), "dim is 0"),
    ],
)
def test_bad_arguments(build, problem):
    with pytest.raises(ValueError, match=problem):
        build()


def test_arguments_of_a_wrong_kind():
    with pytest.raises(TypeError, match=r"dim is 1\.5; it must be a whole number"):
        Unnormalised(1.5, score=np.negative)
    with pytest.raises(TypeError, match="these are not: float"):
        Product([NORMAL, 1.0])
    with pytest.raises(TypeError, match="score is of type list; it must be a function"):
        Unnormalised(1, score=[1.0])
