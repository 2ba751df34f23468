"""Recombination: positive weights that integrate features exactly."""

import numpy as np
import pytest
from scipy.optimize import nnls

import bqlib
from bqlib import (
    Brownian,
    Candidates,
    Empirical,
    ExponentiatedQuadratic,
    GaussianMixture,
    Korobov,
    Matern,
    Product,
    Stein,
    Uniform,
    Unnormalised,
    embed,
    mmd,
)
from bqlib.checks import checked_rng
from bqlib.designs.recombination import OF_DATA, RELEVANT, vertex
from bqlib.weights import nonnegative, simplex, uniform

SQUARE, LINE = Uniform([0.0, 0.0], [1.0, 1.0]), Uniform([0.0], [1.0])
NORMAL = GaussianMixture([1.0], [[0.0, 0.0]], [np.eye(2)])
POOL = NORMAL.sample(600, np.random.default_rng(0))


def made(n=20, target=NORMAL, kernel=None, rng=0, **options):
    kernel = kernel or ExponentiatedQuadratic(0.5)
    return bqlib.recombination(target, kernel, n, rng=rng, **{"candidates": POOL} | options)


def features_of(design, n, seed, landmarks=10):
    """Features as functions, and their means, for a design whose candidates were given."""
    target, kernel = design.embedding.target, design.embedding.kernel
    own = target.sample(landmarks * n, checked_rng(seed))
    values, vectors = np.linalg.eigh(kernel(own, own))
    values, vectors = values[-n + 1 :], vectors[:, -n + 1 :]
    kept = values > RELEVANT * values[-1]
    basis = vectors[:, kept] / np.sqrt(values[kept])
    return lambda x: kernel(x, own) @ basis, basis.T @ design.embedding.kernel_mean(own)


@pytest.mark.parametrize("n", [2, 7, 40])
@pytest.mark.parametrize(
    "target, kernel, candidates",
    [
        (NORMAL, ExponentiatedQuadratic(0.5), POOL),
        (SQUARE, Korobov(), SQUARE.sample(400, 1)),
        (Uniform([0.0, -1.0], [2.0, 1.0]), Matern(0.7, nu=1.5), 2 * SQUARE.sample(800, 1) - [0, 1]),
        (NORMAL, Stein(NORMAL, constant=1.0), POOL),
        (Empirical(POOL), Matern(0.7), POOL),
    ],
)
def test_features_are_integrated_by_few_positive_weights(target, kernel, candidates, n):
    design = made(n, target, kernel, rng=3, candidates=candidates)
    assert len(design.points) <= n and len(design.weights) == len(design.points)
    assert design.weights.min() > 0 and design.weights.sum() == pytest.approx(1, abs=1e-12)
    np.testing.assert_array_equal(candidates[design.rows], design.points)
    features, means = features_of(design, n, 3)
    np.testing.assert_allclose(design.weights @ features(design.points), means, rtol=0, atol=1e-12)
    # Equal weights on the same points do not.
    equal = uniform(design.embedding, design.points).final(len(design.points))
    assert np.abs(equal @ features(design.points) - means).max() > 1e-3


def test_the_mean_of_the_pool_takes_the_place_of_that_of_the_target():
    design = made(15, mean="pool", rng=4)
    features, means = features_of(design, 15, 4)
    found = design.weights @ features(design.points)
    np.testing.assert_allclose(found, features(POOL).mean(axis=0), rtol=0, atol=1e-12)
    assert np.abs(found - means).max() > 1e-3 and design.stop == ""
    assert design.weights.min() > 0


def test_the_vertex_is_that_of_least_cost():
    # By hand: the mean .5 of x at 0, .25, 1 with costs 0, 1, 0 needs the outer two; with the
    # middle one for nothing, it and the last.
    x, mean = np.array([[0.0, 0.25, 1.0]]), np.array([0.5])
    rows, weights = vertex(x, mean, np.array([0.0, 1.0, 0.0]))
    assert rows.tolist() == [0, 2] and weights == pytest.approx([0.5, 0.5], abs=1e-15)
    rows, weights = vertex(x, mean, np.array([3.0, 1.0, 3.0]))
    assert rows.tolist() == [1, 2] and weights == pytest.approx([2 / 3, 1 / 3], abs=1e-15)
    # No other weights with these means are cheaper: convex combinations with any that nnls finds.
    rng = np.random.default_rng(5)
    features, cost = rng.normal(size=(6, 80)), rng.random(80)
    rows, weights = vertex(features, features.mean(axis=1), cost)
    assert len(rows) == 7
    for _ in range(20):
        few = rng.choice(80, 40, replace=False)
        matrix = np.vstack([features[:, few], np.ones(40)])
        other, missed = nnls(matrix, np.append(features.mean(axis=1), 1.0))
        if missed < 1e-10:
            assert cost[rows] @ weights <= cost[few] @ other + 1e-9


def test_a_feature_that_is_zero_at_all_candidates_is_no_constraint():
    rows, weights = vertex(np.zeros((1, 4)), np.zeros(1), np.array([2.0, 1.0, 3.0, 4.0]))
    assert rows.tolist() == [1] and weights == pytest.approx([1.0], abs=1e-15)


@pytest.mark.parametrize(
    "n, exact, better, of_pool",
    [(20, 0.480, 0.266, 0.266), (40, 0.166, 0.110, 0.112), (80, 0.0549, 0.0405, 0.0408)],
)
def test_the_published_errors_of_the_authors(n, exact, better, of_pool):
    # Squared errors of Hayakawa, Oberhauser and Lyons' experiments, d = 2, s = 1: see
    # bqlib/data/hayakawa2022.json. The spread of one trial is 14, 11 and 8 % for `exact`.
    means = []
    for mean, size, rule in (
        ("exact", 10 * n, None),
        ("exact", 10 * n, nonnegative),
        ("pool", n * n, nonnegative),
    ):
        found = []
        for seed in range(160 // n):
            design = made(n, SQUARE, Korobov(), seed, candidates=Candidates(size), mean=mean)
            weights = design.weights
            if rule is not None:
                weights = rule(design.embedding, design.points).final(n)
            found.append(mmd(design.embedding, design.points, weights) ** 2)
        means.append(np.mean(found))
    assert means[0] == pytest.approx(exact, rel=0.15)
    assert means[1:] == pytest.approx([better, of_pool], rel=0.07)


def test_more_landmarks_are_other_features():
    assert made(10, landmarks=3).rows.tolist() != made(10).rows.tolist()
    design = made(10, landmarks=3, rng=6)
    features, means = features_of(design, 10, 6, landmarks=3)
    np.testing.assert_allclose(design.weights @ features(design.points), means, atol=1e-12)


def test_one_point_is_the_candidate_that_leaves_least():
    # Without features, what is left is k(x, x) = x.
    design = made(1, LINE, Brownian(), candidates=[[0.5], [0.2], [0.8]])
    assert design.points.tolist() == [[0.2]]
    assert design.weights == pytest.approx([1.0], abs=1e-15)


def test_candidates_that_repeat_are_taken_once():
    design = made(20, candidates=np.concatenate([POOL, POOL]))
    assert len(np.unique(design.points, axis=0)) == len(design.points) == 20
    lattice = np.stack(np.meshgrid(*[np.arange(12) / 12] * 2), axis=-1).reshape(-1, 2)
    regular = made(20, SQUARE, Korobov(), candidates=np.concatenate([lattice, lattice]))
    assert len(np.unique(regular.points, axis=0)) == len(regular.points) <= 20


def test_a_smooth_kernel_has_fewer_features_than_points():
    design = made(60, kernel=ExponentiatedQuadratic(5.0), candidates=Candidates(5000))
    reached = len(design.points)
    assert 10 < reached < 60
    assert design.stop == (
        f"recombination ends with {reached} of 60 points, which integrate the {reached - 1} "
        "features that float64 can tell apart and the constant"
    )


@pytest.mark.parametrize("target", [Empirical(POOL), Product([Empirical(POOL[:, :1]), LINE])])
def test_exactness_over_data_is_said_to_be_no_more_than_that(target):
    pool = POOL if isinstance(target, Empirical) else target.sample(600, 1)
    design = made(10, target, candidates=pool)
    assert design.stop == OF_DATA and len(design.points) == 10
    assert OF_DATA == (
        "the features are integrated exactly over the data, not over the distribution behind them"
    )
    assert made(10).stop == "" and made(10, target, candidates=pool, mean="pool").stop == ""


def test_exactness_over_data_is_not_over_their_distribution():
    data = NORMAL.sample(200, 5)
    design = made(10, Empirical(data), candidates=data)
    features, means = features_of(design, 10, 0)
    own = Empirical(data).sample(100, checked_rng(0))
    kernel = design.embedding.kernel
    values, vectors = np.linalg.eigh(kernel(own, own))
    basis = vectors[:, -9:] / np.sqrt(values[-9:])
    true = basis.T @ embed(kernel, NORMAL).kernel_mean(own)
    assert np.abs(features(data).mean(axis=0) - means).max() < 1e-12
    assert np.abs(design.weights @ (kernel(design.points, own) @ basis) - true).max() > 1e-3


def test_a_density_without_its_constant_has_landmarks_among_the_candidates():
    target = Unnormalised(2, score=lambda x: -x)
    kernel = Stein(target, constant=1.0)
    design = made(20, target, kernel)
    assert len(design.points) == 20 and design.weights.min() > 0
    draws = bqlib.iid(NORMAL, Stein(NORMAL, constant=1.0), 20, rng=0)
    one, other = (mmd(d.embedding, d.points, d.weights) for d in (design, draws))
    assert one < other / 1.5
    with pytest.raises(TypeError, match="cannot be sampled: pass the candidates"):
        made(20, target, kernel, candidates=Candidates(300))


def test_a_rerun_is_the_same_and_another_seed_is_not():
    first, again, other = (made(rng=seed) for seed in (1, 1, 2))
    np.testing.assert_array_equal(first.rows, again.rows)
    np.testing.assert_array_equal(first.weights, again.weights)
    assert first.rows.tolist() != other.rows.tolist()


def test_given_points_get_simplex_weights():
    design = made(5, initial=POOL[:5])
    assert design.rule is simplex and design.rows.tolist() == []


def test_too_few_candidates_are_told():
    with pytest.raises(ValueError, match="on the 30 distinct candidates integrate 24 features"):
        made(25, candidates=POOL[:30])
    with pytest.raises(
        ValueError, match=r"features and the constant \(infeasible\): use more cand"
    ):
        made(25, candidates=POOL[:30])
    assert len(made(25, candidates=POOL[:30], mean="pool").points) <= 25


@pytest.mark.parametrize(
    "options, said",
    [
        ({"initial": [[0.0, 0.0]]}, "1 initial points of n = 20; recombination cannot start from"),
        ({"candidates": Candidates(50, fresh=True)}, "it needs one pool"),
        ({"landmarks": 0}, "landmarks is 0; it must be at least 1"),
        ({"mean": "data"}, "mean is 'data'; it must be one of exact, pool"),
    ],
)
def test_what_it_cannot_do_is_told(options, said):
    with pytest.raises(ValueError, match=said):
        made(**options)
    if "initial" in options:
        return
    # A sweep asks this before it runs.
    asked = {"n": 20, "candidates": Candidates(600)} | options
    with pytest.raises(ValueError, match=said):
        bqlib.recombination.requires(NORMAL, ExponentiatedQuadratic(0.5), **asked)


@pytest.mark.parametrize("unit", [1e-8, 1e-3, 1e6])
def test_the_unit_of_length_changes_nothing(unit):
    made = []
    for length in (1.0, unit):
        square = Uniform([0.0, 0.0], [length, length])
        kernel = ExponentiatedQuadratic(0.3 * length, scale="density")
        candidates = length * SQUARE.sample(2000, 1)
        made.append(bqlib.recombination(square, kernel, 20, rng=2, candidates=candidates))
    np.testing.assert_array_equal(made[0].rows, made[1].rows)
    np.testing.assert_allclose(made[0].weights, made[1].weights, rtol=1e-6)


@pytest.mark.parametrize("mean", ["exact", "pool"])
@pytest.mark.parametrize("size", [1, 2, 3])
def test_repeats_among_many_candidates_count_once(size, mean):
    data = Empirical(np.random.default_rng(size).normal(size=(size, 2)))
    design = bqlib.recombination(data, ExponentiatedQuadratic(0.7), 5, rng=0, mean=mean)
    assert len(design.points) == len(np.unique(design.points, axis=0)) <= size
    assert design.weights.sum() == pytest.approx(1, abs=1e-12)
    if mean == "exact":
        assert np.isnan(bqlib.mmd(design.embedding, design.points, design.weights))  # no distance
