"""Weight rules: each against its optimality conditions, and what all of them must keep."""

import json
from pathlib import Path

import hypothesis.extra.numpy as arrays
import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import nnls

from bqlib import (
    Brownian,
    BrownianBridge,
    Embedding,
    ExponentiatedQuadratic,
    GaussianMixture,
    IntegratedBrownian,
    Stein,
    Uniform,
    Unnormalised,
    embed,
    herding,
    sbq,
)
from bqlib.discrepancy import mmd2, mmd2_of_prefixes, spectral_mmd2
from bqlib.leading_blocks import nonnegative_solutions
from bqlib.pivots import first_occurrence, not_spent
from bqlib.weights import (
    PrefixWeights,
    bq,
    conditioning,
    final,
    nonnegative,
    simplex,
    sum_to_one,
    uniform,
)

RULES = [uniform, bq, sum_to_one, nonnegative, simplex]
OPTIMAL = RULES[1:]
HERE = Path(__file__).parent


def chen2010():
    path = HERE.parent / "config" / "targets" / "chen2010_mixture.json"
    facts = json.loads(path.read_text())
    return GaussianMixture(facts["weights"], facts["means"], facts["covariances"])


def mixture(dim):
    covariances = [np.eye(dim), 0.25 * np.eye(dim) + 0.1]
    return GaussianMixture([0.4, 0.6], [[-1.0] * dim, [0.75] * dim], covariances)


@pytest.fixture(scope="module")
def paper():
    return embed(ExponentiatedQuadratic(0.5, scale="density"), chen2010())


@pytest.fixture(scope="module")
def sbq400(paper):
    return sbq(paper.target, paper.kernel, 400, rng=0).points


@st.composite
def problems(draw, repeats=True):
    """An embedding and points on a grid, so that some are likely to repeat."""
    n, dim = draw(st.integers(1, 12)), draw(st.integers(1, 3))
    grid = st.integers(-12, 12).map(lambda i: i / 4)
    points = draw(arrays.arrays(float, (n, dim), elements=grid))
    if not repeats:
        points = points[first_occurrence(points) == np.arange(n)]
    lengthscale = draw(st.sampled_from([0.3, 0.5, 1.0]))
    return embed(ExponentiatedQuadratic(lengthscale), mixture(dim)), points


def slopes(embedding, points, weights):
    """Half the gradient of MMD^2 in the weights."""
    return embedding.kernel(points, points) @ weights - embedding.kernel_mean(points)


@pytest.mark.parametrize(
    ("points", "weights", "value"),
    [
        # Best symmetric designs for length-scale 1 and a standard normal: 40-digit root finding.
        ([0.0], [0.70710678118654752440], 0.077350269189625764509),
        (
            [-1.2955579878818205944, 0.0, 1.2955579878818205944],
            [0.24077912241614593257, 0.49905397168220325745, 0.24077912241614593257],
            6.4720558923297626650e-4,
        ),
        (
            [
                -1.7536818340209215422,
                -0.55777817061110301589,
                0.55777817061110301589,
                1.7536818340209215422,
            ],
            [
                0.11273299532556471254,
                0.38474463156026059769,
                0.38474463156026059769,
                0.11273299532556471254,
            ],
            5.3270557358097793604e-5,
        ),
    ],
)
def test_bq_at_known_optima(points, weights, value):
    embedding = embed(ExponentiatedQuadratic(1.0), GaussianMixture([1.0], [[0.0]], [[[1.0]]]))
    points = np.array(points)[:, None]
    found = bq(embedding, points).final(len(points))
    np.testing.assert_allclose(found, weights, rtol=1e-11)
    np.testing.assert_allclose(mmd2(embedding, points, found), value, rtol=1e-10)


@pytest.mark.parametrize("design", ["sbq", "herding"])
def test_point_sets_with_known_digits(paper, design):
    facts = json.loads((HERE / "reference" / "paper_point_sets.json").read_text())[design]
    points = np.array(facts["points"])
    for rule, key in ((uniform, "mmd2_uniform"), (bq, "mmd2_bq")):
        matrix = rule(paper, points).matrix
        values = mmd2_of_prefixes(paper, points, matrix)
        for n, expected in facts["prefixes"].items():
            np.testing.assert_allclose(values[int(n) - 1], expected[key], rtol=1e-12)
            if rule is bq:
                total = matrix[int(n) - 1].sum()
                np.testing.assert_allclose(total, expected["bq_weight_sum"], rtol=1e-12)


def test_every_prefix_of_bq_against_a_direct_solve(paper, sbq400):
    values = mmd2_of_prefixes(paper, sbq400, bq(paper, sbq400).matrix)
    gram, mean = paper.kernel(sbq400, sbq400), paper.kernel_mean(sbq400)
    for n in range(1, 401):
        weights = np.linalg.solve(gram[:n, :n], mean[:n])
        direct = mmd2(paper, sbq400[:n], weights)
        np.testing.assert_allclose(values[n - 1], direct, rtol=1e-9)


@given(problems())
def test_each_rule_meets_its_optimality_conditions(problem):
    embedding, points = problem
    distinct = first_occurrence(points) == np.arange(len(points))
    for rule in OPTIMAL:
        found = rule(embedding, points)
        assert found.stop == ""
        weights = found.final(len(points))
        slope = slopes(embedding, points, weights)[distinct]
        assert not weights[~distinct].any()
        weights = weights[distinct]
        multiplier = 0.0
        if rule in (sum_to_one, simplex):
            np.testing.assert_allclose(weights.sum(), 1.0, rtol=1e-9)
            multiplier = slope @ weights
        if rule in (nonnegative, simplex):
            assert (weights >= 0).all()
            assert (slope[weights == 0] >= multiplier - 1e-9).all()
            slope = slope[weights > 0]
        np.testing.assert_allclose(slope, multiplier, atol=1e-9)


def test_nonnegative_weights_of_every_prefix_against_a_cold_solver(paper, sbq400):
    herded = herding(paper.target, paper.kernel, 120, rng=0).points
    herded = herded[first_occurrence(herded) == np.arange(120)]
    for points in (herded, sbq400[:150]):
        matrix = nonnegative(paper, points).matrix
        factor = np.linalg.cholesky(paper.kernel(points, points))
        projections = np.linalg.solve(factor, paper.kernel_mean(points))
        for n in range(1, len(points) + 1, 7):
            expected, _ = nnls(factor[:n, :n].T, projections[:n])
            np.testing.assert_allclose(matrix[n - 1, :n], expected, atol=1e-11)
        assert (matrix[-1] == 0).any()


@given(problems())
def test_the_order_of_the_rules(problem):
    embedding, points = problem
    value = {
        rule: mmd2(embedding, points, rule(embedding, points).final(len(points))) for rule in RULES
    }
    rounding = 1e-12
    for better, worse in [
        (bq, nonnegative),
        (bq, sum_to_one),
        (sum_to_one, simplex),
        (nonnegative, simplex),
        (simplex, uniform),
    ]:
        assert value[better] <= value[worse] + rounding


@given(problems())
def test_the_weights_of_a_prefix_do_not_depend_on_what_follows(problem):
    embedding, points = problem
    for rule in RULES:
        matrix = rule(embedding, points).matrix
        assert not np.triu(matrix, 1).any()
        for m in range(1, len(points)):
            alone = rule(embedding, points[:m]).matrix
            np.testing.assert_allclose(matrix[:m, :m], alone, atol=1e-9)


@given(problems(repeats=False), st.randoms(use_true_random=False))
def test_permuting_points_permutes_weights(problem, random):
    embedding, points = problem
    order = list(range(len(points)))
    random.shuffle(order)
    for rule in RULES:
        weights = rule(embedding, points).final(len(points))
        permuted = rule(embedding, points[order]).final(len(points))
        np.testing.assert_allclose(permuted, weights[order], atol=1e-8)


@given(problems(repeats=False), st.integers(0, 100))
def test_a_repeated_point_changes_nothing(problem, seed):
    embedding, points = problem
    rng = np.random.default_rng(seed)
    keep = np.sort(np.append(np.arange(len(points)), rng.integers(len(points), size=3)))
    repeated = points[keep]
    first = first_occurrence(repeated) == np.arange(len(repeated))
    for rule in OPTIMAL:
        weights = rule(embedding, points).final(len(points))
        found = rule(embedding, repeated).final(len(repeated))
        np.testing.assert_allclose(found[first], weights, atol=1e-12)
        assert not found[~first].any()
        np.testing.assert_allclose(
            mmd2(embedding, repeated, found), mmd2(embedding, points, weights), rtol=1e-9
        )


@pytest.mark.parametrize("rule", OPTIMAL)
@pytest.mark.parametrize("distance", [1e-5, 1e-7, 1e-9])
def test_a_near_repeat_changes_nothing(paper, sbq400, rule, distance):
    points = sbq400[:40]
    nearby = np.concatenate([points, points[::2] + distance / 2, [[9.0, 9.0]]])
    with_end = rule(paper, np.concatenate([points, [[9.0, 9.0]]])).final(41)
    found = rule(paper, nearby)
    assert found.stop == ""
    weights = found.final(61)
    assert not weights[40:60].any()
    np.testing.assert_allclose(weights[[*range(40), 60]], with_end, atol=1e-14)
    assert conditioning(paper, nearby, weights).duplicates == 20


def test_what_repeats_a_point_that_is_left_out_is_kept():
    embedding = embed(ExponentiatedQuadratic(1.0), mixture(1))
    points = np.array([[0.0], [8e-5], [1.6e-4], [1.0]])  # the first two repeat, the second two too
    weights = bq(embedding, points).final(4)
    assert (weights != 0).tolist() == [True, False, True, True]


@given(problems(repeats=False), st.floats(-3, 3), st.sampled_from([1e-3, 1.0, 1e3]))
def test_weights_follow_a_change_of_units(problem, shift, unit):
    embedding, points = problem
    kernel, target = embedding.kernel, embedding.target
    moved = embed(
        ExponentiatedQuadratic(unit * kernel.lengthscale, scale="density"),
        GaussianMixture(
            target.weights, unit * (target.means + shift), unit**2 * target.covariances
        ),
    )
    height = moved.kernel.height(target.dim)
    for rule in RULES:
        weights = rule(embedding, points).final(len(points))
        other = rule(moved, unit * (points + shift)).final(len(points))
        np.testing.assert_allclose(other, weights, atol=1e-8)
        np.testing.assert_allclose(
            mmd2(moved, unit * (points + shift), weights) / height,
            mmd2(embedding, points, weights),
            rtol=1e-8,
        )


def test_bq_weights_can_have_a_sum_above_one():
    # Two points: each weight is z / (1 + k(x, y)), on both sides of a target of width 0.1.
    narrow = embed(ExponentiatedQuadratic(1.0), GaussianMixture([1.0], [[0.0]], [[[0.01]]]))
    mean = np.exp(-0.5 * 0.8**2 / 1.01) / np.sqrt(1.01)
    weights = bq(narrow, [[-0.8], [0.8]]).final(2)
    np.testing.assert_allclose(weights, mean / (1 + np.exp(-0.5 * 1.6**2)), rtol=1e-12)
    assert weights.sum() == pytest.approx(1.1343, abs=1e-4)


def test_sum_to_one_where_the_kernel_mean_vanishes():
    # As for a Stein kernel: the least MMD with sum one is 1 / (1'K^{-1}1), and 0 is the best of
    # all weights.
    kernel = ExponentiatedQuadratic(1.0)
    embedding = Embedding(kernel, mixture(1), lambda x: np.zeros(len(x)), np.zeros_like, 0.0)
    points = np.array([[0.0], [1.0], [2.5]])
    solved = np.linalg.solve(kernel(points, points), np.ones(3))
    np.testing.assert_allclose(sum_to_one(embedding, points).final(3), solved / solved.sum())
    np.testing.assert_allclose(simplex(embedding, points).final(3), solved / solved.sum())
    assert not bq(embedding, points).final(3).any()
    assert not nonnegative(embedding, points).final(3).any()


def test_weights_stop_where_float64_cannot_tell_points_apart():
    embedding = embed(ExponentiatedQuadratic(2.0, scale="density"), chen2010())
    points = embedding.target.sample(200, np.random.default_rng(0))
    points[3] = points[1]
    for rule in OPTIMAL:
        found = rule(embedding, points)
        rank = len(found.matrix)
        assert 60 < rank < 140
        assert f"stop at n = {rank}" in found.stop
        assert not found.final(200)[rank:].any()
        values = mmd2_of_prefixes(embedding, points[:rank], found.matrix)
        assert (values > 0).all()
    assert uniform(embedding, points).matrix.shape == (200, 200)


def test_no_weights_at_all():
    assert PrefixWeights(np.zeros((0, 0)), "stopped at once").final(2).tolist() == [0.0, 0.0]


def test_nonnegative_weights_on_the_paper_s_problem(paper, sbq400):
    values = np.sqrt(mmd2_of_prefixes(paper, sbq400, nonnegative(paper, sbq400).matrix))
    assert 0.0106 < values[99] < 0.0134
    assert 0.0012 < values[399] < 0.0019


def test_a_slope_that_is_rounding_adds_no_point():
    # The second atom repeats the first up to rounding, which leaves it a slope above tolerance.
    found = nonnegative_solutions(np.ones((2, 2)), np.array([1.0, 1.0 + 1e-12]))
    np.testing.assert_array_equal(found, [[1.0, 0.0], [1.0, 0.0]])


ZERO_AT = {Brownian: [0.0], BrownianBridge: [0.0, 1.0], IntegratedBrownian: [0.0]}


@pytest.mark.parametrize("kernel", ZERO_AT)
@pytest.mark.parametrize("place", [0, 2, 4])
def test_a_point_where_the_kernel_is_zero_changes_no_other_weight(kernel, place):
    embedding = embed(kernel(), Uniform([0], [1]))
    others = np.array([[0.5], [0.2], [0.9], [0.7]])
    zeros = np.array(ZERO_AT[kernel])[:, None]
    points = np.insert(others, [place] * len(zeros), zeros, axis=0)
    zero = np.isin(points[:, 0], zeros)
    for rule in (bq, nonnegative):
        found = rule(embedding, points)
        alone = rule(embedding, others).matrix
        np.testing.assert_array_equal(found.matrix[np.ix_(~zero, ~zero)], alone)
        assert not found.matrix[:, zero].any()
        before = found.matrix[place - 1, ~zero] if place else 0
        assert (found.matrix[np.ix_(zero, ~zero)] == before).all()
        assert found.stop == ""
    assert conditioning(embedding, points, bq(embedding, points).final(len(points))).rank == 4
    nowhere = conditioning(embedding, zeros, np.zeros(len(zeros)))
    assert nowhere.rank == 0 and np.isnan(nowhere.condition_number)


def test_weight_is_free_where_the_kernel_is_zero():
    embedding = embed(Brownian(), Uniform([0], [1]))
    grid = np.linspace(0, 1, 11)[:, None]
    trapezoid = np.array([0.05, *[0.1] * 9, 0.05])
    for rule in (sum_to_one, simplex):
        np.testing.assert_allclose(rule(embedding, grid).final(11), trapezoid, atol=1e-14)
        assert rule(embedding, [[0.0], [0.0]]).matrix.tolist() == [[1, 0], [1, 0]]
        before = rule(embedding, [[0.5], [0.0]]).matrix
        np.testing.assert_allclose(before, [[1, 0], [0.75, 0.25]], atol=1e-14)
    # Where the best weights have a sum above one, what is left of one is negative.
    embedding = embed(IntegratedBrownian(), Uniform([0], [1]))
    weight = bq(embedding, [[0.3]]).final(1)[0]
    assert weight > 1
    np.testing.assert_allclose(
        sum_to_one(embedding, [[0.0], [0.3]]).final(2), [1 - weight, weight], rtol=1e-12
    )
    np.testing.assert_allclose(simplex(embedding, [[0.0], [0.3]]).final(2), [0, 1], rtol=1e-12)


@pytest.mark.parametrize("rule", OPTIMAL)
@pytest.mark.parametrize("ends", [0.5, 2.0])
def test_spent_points_take_no_weight_from_those_after_them(rule, ends):
    embedding = embed(ExponentiatedQuadratic(1.0), mixture(1))
    crowd = np.linspace(-ends, ends, 30)[:, None]
    points = np.concatenate([crowd, crowd, [[2.5], [-2.8]]])  # with repeats, of spent points too
    ended, weights = rule(embedding, points), final(rule, embedding, points)
    assert ended.stop and weights[60:].all()
    kept = not_spent(embedding.kernel, points)
    assert len(kept) > len(ended.matrix) and not np.delete(weights, kept).any()
    np.testing.assert_array_equal(rule(embedding, points[kept]).final(len(kept)), weights[kept])
    before = spectral_mmd2(embedding, points, ended.final(62))
    assert spectral_mmd2(embedding, points, weights) < before / 4
    if ends == 2:  # as well conditioned as points that a design has picked
        assert np.abs(weights).sum() < 1e4 < 1e5 < np.abs(bq(embedding, points).matrix[-1]).sum()


def test_final_weights_are_those_of_the_last_row_where_no_point_is_spent(paper, sbq400):
    for rule in (uniform, bq):
        expected = rule(paper, sbq400[:50]).matrix[-1]
        np.testing.assert_array_equal(final(rule, paper, sbq400[:50]), expected)

    def ends_at_two(embedding, points):
        return PrefixWeights(np.tri(2) / 2, "for reasons of its own")

    assert final(ends_at_two, paper, sbq400[:9]).tolist() == [0.5, 0.5, *[0] * 7]
    crowd = np.linspace(0, 0.01, 9)[:, None] * np.ones(2)
    assert sorted(final(ends_at_two, paper, crowd)) == [*[0] * 7, 0.5, 0.5]
    for points in ([[0.0]] * 9, np.empty((0, 1))):  # of no height, or none at all
        brownian = embed(Brownian(), Uniform([0.0], [1.0]))
        stopped = lambda embedding, points: PrefixWeights(np.empty((0, 0)), "no")  # noqa: E731
        assert not final(stopped, brownian, points).any()


HIGH_SCORE = Unnormalised(1, score=lambda x: -(x**3))


@pytest.mark.parametrize(
    "kernel, target, points",
    [
        (IntegratedBrownian(), Uniform([0.0], [1.0]), [[0.5], [5e-5], [0.9]]),
        (Stein(HIGH_SCORE, constant=1.0), HIGH_SCORE, [[0.0], [0.3], [0.9], [-0.9], [100.0]]),
        (1e-90 * (1e-90 * ExponentiatedQuadratic(1.0)), mixture(1), [[-1.0], [0.0], [1.0]]),
    ],
    ids=["low", "high", "tiny"],
)
def test_a_pivot_is_measured_by_the_height_of_its_own_point(kernel, target, points):
    embedding = embed(kernel, target)
    found = bq(embedding, points)
    assert found.stop == "" and found.final(len(points)).all()
    before = bq(embedding, points[:-1]).matrix  # what comes later changes no row
    np.testing.assert_array_equal(found.matrix[:-1, :-1], before)
    gram = kernel(points, points)
    solved = np.linalg.solve(gram, embedding.kernel_mean(points))
    np.testing.assert_allclose(found.final(len(points)), solved, rtol=1e-9)
    pivots = conditioning(embedding, points, solved).pivots
    np.testing.assert_allclose(
        pivots[:2], [1, 1 - gram[0, 1] / gram[0, 0] * (gram[0, 1] / gram[1, 1])]
    )


def test_final_weights_of_fewer_points_are_refused():
    weights = bq(embed(ExponentiatedQuadratic(1.0), mixture(1)), [[0.0], [1.0]])
    with pytest.raises(ValueError, match="n is 1; it must be at least 2, the number of points"):
        weights.final(1)
    assert weights.final(3).tolist() == [*weights.matrix[1], 0]


def test_conditioning_of_known_points():
    embedding = embed(ExponentiatedQuadratic(1.0, scale="density"), mixture(1))
    points = np.array([[0.0], [0.5], [0.0], [1.5]])
    weights = np.array([0.5, -0.25, 0.0, 1.0])
    found = conditioning(embedding, points, weights)
    gram = embedding.kernel(points, points)[np.ix_([0, 1, 3], [0, 1, 3])]
    second = 1 - np.exp(-0.25)
    third = np.linalg.det(gram) / np.linalg.det(gram[:2, :2]) / gram[0, 0]
    np.testing.assert_allclose(found.pivots, [1.0, second, third], rtol=1e-12)
    np.testing.assert_allclose(found.condition_number, np.linalg.cond(gram), rtol=1e-12)
    assert (found.rank, found.duplicates, found.negative) == (3, 1, 1)
    assert (found.weight_sum, found.weight_l1, found.weight_min) == (1.25, 1.75, -0.25)
    np.testing.assert_allclose(found.weight_l2, np.sqrt(1.3125), rtol=1e-15)


def test_conditioning_shows_the_pivot_that_ends_the_weights():
    embedding = embed(ExponentiatedQuadratic(1.0), mixture(1))
    points = np.arange(0, 2, 0.02)[:, None]
    weights = bq(embedding, points)
    found = conditioning(embedding, points, weights.final(100))
    assert found.rank == len(weights.matrix) < 20
    assert len(found.pivots) == found.rank + 1
    assert found.pivots[-1] < 1e-12 < found.pivots[-2]
