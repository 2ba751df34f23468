import pickle

import numpy as np
import pytest

from bqlib import (
    Brownian,
    Candidates,
    Design,
    Empirical,
    ExponentiatedQuadratic,
    GaussianMixture,
    embed,
    herding,
    iid,
    joint,
    kernel_thinning,
    mmd,
    sbq,
)
from bqlib.designs.design import point_set
from bqlib.designs.own_weights import OwnWeights, own
from bqlib.embeddings import DataMeans, data_means
from bqlib.integrands import rkhs_ball, rough_bumps
from bqlib.schema import QUANTILES
from bqlib.streams import stream
from bqlib.sweep.registry import ALGORITHMS, SETS
from bqlib.sweep.spec import Algorithm
from bqlib.trial import trial
from bqlib.weights import PrefixWeights, bq, uniform

TARGET = GaussianMixture([0.4, 0.6], [[0.0, 1.0], [2.0, -1.0]], [np.eye(2), 0.5 * np.eye(2)])
KERNEL = ExponentiatedQuadratic(0.7)
POOL = Candidates(size=300)
INTEGRANDS = [(rkhs_ball, {"functions": 40}), (rough_bumps, {"narrowest": 0.1, "widest": 2.0})]


def test_curves_are_those_of_the_library():
    curves = trial(TARGET, KERNEL, sbq, bq, POOL, 30, seed=4)
    pool = POOL.draw(TARGET, stream("candidates", 4))
    design = sbq(TARGET, KERNEL, 30, rng=0, candidates=pool)
    np.testing.assert_array_equal(curves["points"], design.points)
    np.testing.assert_array_equal(curves["weights"], design.weights)
    embedding = embed(KERNEL, TARGET)
    for n in (1, 7, 30):
        x = design.points[:n]
        w = np.linalg.solve(KERNEL(x, x), embedding.kernel_mean(x))
        mmd2 = embedding.prior_variance - w @ embedding.kernel_mean(x)
        assert curves["mmd"][n - 1] == pytest.approx(np.sqrt(mmd2), rel=1e-9)
        assert curves["weight_sum"][n - 1] == pytest.approx(w.sum(), rel=1e-9)
        assert curves["weight_l1"][n - 1] == pytest.approx(np.abs(w).sum(), rel=1e-9)
        assert curves["min_weight"][n - 1] == pytest.approx(w.min(), rel=1e-7)
    assert curves["rank_reached"] == 30 and curves["reason"] == ""


def test_points_picked_under_another_kernel_are_measured_under_the_cells():
    def wide(target, kernel, n, *, rng, candidates):
        return sbq(target, ExponentiatedQuadratic(5.0), n, rng=rng, candidates=candidates)

    for rule in (bq, uniform):
        curves = trial(TARGET, KERNEL, wide, rule, POOL, 6, seed=4)
        own = rule(embed(KERNEL, TARGET), curves["points"]).matrix[-1]
        np.testing.assert_array_equal(curves["weights"], own)
        true = mmd(embed(KERNEL, TARGET), curves["points"], own)
        assert curves["mmd"][-1] == pytest.approx(true, rel=1e-9)


def test_weights_of_the_first_points_use_no_later_ones():
    def later(embedding, points):
        return PrefixWeights(np.ones((len(points), len(points))))

    with pytest.raises(ValueError, match="weights of the first points use later points"):
        trial(TARGET, KERNEL, iid, later, POOL, 6, seed=4)


def test_algorithms_share_the_pool_of_a_seed_and_no_other():
    def points(design, seed):
        return trial(TARGET, KERNEL, design, uniform, POOL, 20, seed)["points"]

    pool = {tuple(x) for x in POOL.draw(TARGET, stream("candidates", 1))}
    assert {tuple(x) for x in points(sbq, 1)} <= pool
    assert {tuple(x) for x in points(herding, 1)} <= pool
    assert not {tuple(x) for x in points(herding, 2)} & pool
    assert not {tuple(x) for x in points(iid, 1)} & pool


def test_a_rerun_is_bit_identical_and_a_longer_run_starts_alike():
    short, again = (trial(TARGET, KERNEL, herding, bq, POOL, 20, 7) for _ in range(2))
    longer = trial(TARGET, KERNEL, herding, bq, POOL, 40, 7)
    for name, values in short.items():
        np.testing.assert_array_equal(values, again[name])
    np.testing.assert_array_equal(short["points"], longer["points"][:20])
    np.testing.assert_allclose(short["mmd"], longer["mmd"][:20], rtol=1e-9)


def test_curves_that_end_early_say_so():
    wide = ExponentiatedQuadratic(30.0)
    curves = trial(TARGET, wide, sbq, bq, POOL, 50, 0)
    rank = int(curves["rank_reached"])
    assert 3 < rank < 50 and f"n = {rank}" in curves["reason"]
    assert np.isfinite(curves["points"][:rank]).all() and np.isnan(curves["points"][rank:]).all()
    assert np.isnan(curves["mmd"][rank:]).all()
    repeated = trial(TARGET, KERNEL, herding, uniform, Candidates(size=25), 25, 0)
    assert repeated["duplicates"][-1] == 25 - len(np.unique(repeated["points"], axis=0)) > 0


@pytest.mark.parametrize("seed", range(4))
def test_curves_that_end_early_are_those_of_the_points_stored(seed):
    """To the last bit, though weights near the end are large and round in many ways."""
    curves = trial(TARGET, ExponentiatedQuadratic(3.0), iid, bq, POOL, 200, seed)
    stored = curves["points"][: int(curves["rank_reached"])]
    assert 20 < len(stored) < 100 and "weights stop at n" in curves["reason"]

    def again(target, kernel, n, *, rng, candidates):
        return Design(embed(kernel, target), stored, uniform, "has no more")

    short = trial(TARGET, ExponentiatedQuadratic(3.0), again, bq, POOL, 200, seed)
    for name in ("mmd", "weight_l1", "weights", "points"):
        np.testing.assert_array_equal(short[name], curves[name], err_msg=name)


def test_a_rule_without_any_weights_has_no_curve():
    def none(embedding, points):
        return PrefixWeights(np.empty((0, 0)), "weights stop at n = 0")

    curves = trial(TARGET, KERNEL, iid, none, POOL, 5, 0)
    assert np.isnan(curves["mmd"]).all() and curves["rank_reached"] == 0
    assert curves["reason"] == "weights stop at n = 0"


def test_fresh_pools_are_shared_too():
    fresh = Candidates(size=50, fresh=True)
    first = trial(TARGET, KERNEL, herding, uniform, fresh, 10, 5)["points"][0]
    embedding = embed(KERNEL, TARGET)
    pool = fresh.draw(TARGET, stream("candidates", 5))
    np.testing.assert_array_equal(first, pool[np.argmax(embedding.kernel_mean(pool))])


@pytest.mark.parametrize("design, rule", [(sbq, bq), (herding, uniform), (iid, uniform)])
def test_errors_are_those_of_the_same_functions_for_all_algorithms(design, rule):
    curves = trial(TARGET, KERNEL, design, rule, POOL, 30, 4, INTEGRANDS)
    embedding = embed(KERNEL, TARGET)
    for i, (family, parameters) in enumerate(INTEGRANDS):
        rng = stream(f"integrand/{family.__name__}", 4)
        functions = family(embedding, rng, **parameters)
        for n in (1, 7, 30):
            points = curves["points"][:n]
            weights = rule(embedding, points).matrix[-1]
            errors = np.abs(weights @ functions.evaluate(points) - functions.integrals)
            assert curves["error"][n - 1, i] == pytest.approx(errors.mean(), rel=1e-8)
            np.testing.assert_allclose(
                curves["error_quantile"][n - 1, i], np.quantile(errors, QUANTILES), rtol=1e-7
            )
            if family is rkhs_ball:
                ratio = errors.max() / curves["mmd"][n - 1]
                assert curves["bound_ratio"][n - 1, i] == pytest.approx(ratio, rel=1e-8)
    assert (curves["bound_ratio"][:, 0] > 0).all() and (curves["bound_ratio"][:, 0] <= 1).all()
    assert np.isnan(curves["bound_ratio"][:, 1]).all()


def test_integrands_change_no_other_curve():
    plain = trial(TARGET, KERNEL, sbq, bq, POOL, 20, 3)
    curves = trial(TARGET, KERNEL, sbq, bq, POOL, 20, 3, INTEGRANDS)
    assert set(curves) - set(plain) == {"error", "error_quantile", "bound_ratio"}
    for name, values in plain.items():
        np.testing.assert_array_equal(values, curves[name])


def test_errors_end_with_the_curves():
    curves = trial(TARGET, ExponentiatedQuadratic(30.0), sbq, bq, POOL, 50, 0, INTEGRANDS)
    rank = int(curves["rank_reached"])
    for name in ("error", "error_quantile"):
        assert np.isfinite(curves[name][:rank]).all() and np.isnan(curves[name][rank:]).all()


@pytest.mark.parametrize("least", [0.0, 1e-14])
def test_a_first_point_where_the_kernel_is_all_but_zero(least):
    target = Empirical([[least], [0.3], [0.6], [0.9]])
    curves = trial(target, Brownian(), iid, bq, POOL, 6, 0, [(rkhs_ball, {"functions": 4})])
    assert curves["rank_reached"] == 6 and curves["reason"] == ""
    assert curves["points"][0] == least and (curves["weights"][0] == 0) == (least == 0)
    # Whatever its weight, later points count.
    assert np.isfinite(curves["error"]).all() and curves["mmd"][5] < curves["mmd"][0]


def test_a_rule_that_changes_its_points_does_not_change_those_stored():
    def shifting(embedding, points):
        points += 1
        return uniform(embedding, points)

    expected, found = (trial(TARGET, KERNEL, iid, r, POOL, 9, 0) for r in (uniform, shifting))
    np.testing.assert_array_equal(found["points"], expected["points"])
    np.testing.assert_array_equal(found["mmd"], expected["mmd"])


def given(embedding, points=None):
    """A weight rule or an integrand that returns what it is given."""
    return points


def points_alone(target, kernel, n, *, rng, candidates):
    """A design that returns its points."""
    return candidates[:n]


@pytest.mark.parametrize(
    ("design", "rule", "integrands", "said"),
    [
        (points_alone, bq, (), "points_alone returned .* type ndarray; it must .*design.Design"),
        (iid, given, (), r"given returned .* type ndarray; it must return a bqlib.weights.Prefix"),
        (iid, bq, [(given, {})], r"given returned .* type Generator; it must .*ands.Integrands"),
    ],
)
def test_what_a_function_of_ones_own_must_return_is_told(design, rule, integrands, said):
    with pytest.raises(TypeError, match=said):
        trial(TARGET, KERNEL, design, rule, POOL, 5, 0, integrands)


SIZES = (4, 9, 20)


def test_a_set_is_made_anew_at_each_size():
    curves = trial(TARGET, KERNEL, kernel_thinning, uniform, POOL, 30, 4, INTEGRANDS, SIZES)
    pool = POOL.draw(TARGET, stream("candidates", 4))
    for n in SIZES:
        rng = stream("design/kernel_thinning", 4)
        made = kernel_thinning(TARGET, KERNEL, n, rng=rng, candidates=pool)
        assert curves["mmd"][n - 1] == mmd(made.embedding, made.points, made.weights)
        assert curves["weight_sum"][n - 1] == pytest.approx(1)
        assert curves["min_weight"][n - 1] == 1 / n
    assert curves["points"][:20].tolist() == made.points.tolist()
    assert np.isnan(curves["points"][20:]).all() and curves["rank_reached"] == 20
    assert curves["weights"][:20].tolist() == [1 / 20] * 20
    elsewhere = np.delete(np.arange(30), np.array(SIZES) - 1)
    for name in ("mmd", "weight_l1", "duplicates", "error", "error_quantile", "bound_ratio"):
        assert np.isnan(curves[name][elsewhere]).all()
        assert len(curves[name]) == 30
    assert (curves["bound_ratio"][np.array(SIZES) - 1, 0] <= 1).all()


def test_a_size_does_not_depend_on_the_others():
    first, second = (
        trial(TARGET, KERNEL, kernel_thinning, bq, POOL, 30, 4, sizes=sizes)
        for sizes in ((9,), SIZES)
    )
    assert first["mmd"][8] == second["mmd"][8]


def test_a_set_says_at_which_size_it_stopped():
    target = Empirical([[0.0, 0.0], [1.0, 1.0], [2.0, 0.0]])
    curves = trial(target, KERNEL, joint, bq, Candidates(10), 8, 0, sizes=(2, 8))
    assert "at n = 8: " in curves["reason"] and "at n = 2" not in curves["reason"]
    reached = np.isfinite(curves["weights"]).sum()
    assert reached <= 3 and curves["rank_reached"] == 8


def test_a_set_must_not_have_more_points_than_it_may():
    def greedy(target, kernel, n, *, rng, candidates):
        return iid(target, kernel, n + 1, rng=rng)

    with pytest.raises(ValueError, match=r"has 4 points; it must have at most 3"):
        trial(TARGET, KERNEL, greedy, uniform, POOL, 5, 0, sizes=(3,))


def test_own_weights_are_those_of_the_design():
    def weighted(target, kernel, n, *, rng, candidates):
        made = iid(target, kernel, n, rng=rng)
        return Design(made.embedding, made.points, OwnWeights(np.arange(n) / 10))

    curves = trial(TARGET, KERNEL, weighted, own, POOL, 4, 0, sizes=(2, 4))
    assert curves["weights"].tolist() == [0.0, 0.1, 0.2, 0.3]
    assert curves["weight_sum"][[1, 3]] == pytest.approx([0.1, 0.6])
    ours, theirs = (trial(TARGET, KERNEL, herding, rule, POOL, 9, 0) for rule in (own, uniform))
    assert ours["mmd"].tolist() == theirs["mmd"].tolist()


def test_a_size_that_fails_leaves_the_others():
    @point_set
    def few(target, kernel, n, *, rng, candidates):
        if n > 5:
            raise ValueError(f"there are no {n} such points")
        return iid(target, kernel, n, rng=rng)

    curves = trial(TARGET, KERNEL, few, uniform, POOL, 20, 0, sizes=(2, 5, 20))
    assert np.flatnonzero(np.isfinite(curves["mmd"])).tolist() == [1, 4]
    assert curves["rank_reached"] == 5
    assert curves["reason"] == "at n = 20: there are no 20 such points"
    assert np.isfinite(curves["points"][:5]).all() and np.isnan(curves["points"][5:]).all()
    with pytest.raises(ValueError, match=r"at n = 6: .*; at n = 20: "):
        trial(TARGET, KERNEL, few, uniform, POOL, 20, 0, sizes=(6, 20))


def test_weights_found_with_points_belong_to_a_set():
    def unmarked(target, kernel, n, *, rng, candidates):
        made = iid(target, kernel, n, rng=rng)
        return Design(made.embedding, made.points, OwnWeights(np.ones(n) / n))

    with pytest.raises(ValueError, match="by the decorator"):
        trial(TARGET, KERNEL, unmarked, own, POOL, 4, 0)


def test_what_a_design_does_to_its_candidates_changes_no_other_size():
    @point_set
    def rough(target, kernel, n, *, rng, candidates):
        points = candidates[:n].copy()
        candidates += 100.0
        return Design(embed(kernel, target), points, uniform)

    alone, second = (
        trial(TARGET, KERNEL, rough, uniform, POOL, 9, 0, sizes=sizes)["mmd"][8]
        for sizes in ((9,), (4, 9))
    )
    assert alone == second


@pytest.mark.parametrize("stop", ["", "tired"])
def test_a_sequence_with_fewer_points_has_a_reason(stop):
    def short(target, kernel, n, *, rng, candidates):
        return Design(embed(kernel, target), candidates[: n - 1], uniform, stop)

    curves = trial(TARGET, KERNEL, short, uniform, POOL, 5, 0)
    assert curves["rank_reached"] == 4 and np.isnan(curves["mmd"][4])
    assert curves["reason"] == (stop or "the design has 4 of 5 points, and does not say why")


def test_a_set_with_fewer_points_says_why():
    def short(target, kernel, n, *, rng, candidates):
        return iid(target, kernel, n - 1, rng=rng)

    with pytest.raises(ValueError, match=r"has 3 of 4 points, but its stop is empty"):
        trial(TARGET, KERNEL, short, uniform, POOL, 5, 0, sizes=(4,))


class Counted(ExponentiatedQuadratic):
    """A kernel that says how many of the points it is asked about are of a data set, both sides."""

    def __call__(self, x, y):
        inside = [sum(map(DATA_ROWS.__contains__, map(tuple, points))) for points in (x, y)]
        ASKED.append(tuple(inside))
        return super().__call__(x, y)


DATA = Empirical(
    np.append(np.random.default_rng(5).normal(size=(90, 2)), [[0.0, -0.0]] * 2, axis=0)
)
DATA_ROWS = set(map(tuple, DATA.points))
ASKED = []
NEEDS_MORE = {  # than a data set: quantiles, a score, or one dimension
    *("sobol", "halton", "latin_hypercube", "lattice", "grid", "stein_thinning"),
}


@pytest.mark.parametrize("name", [n for n, a in ALGORITHMS.items() if a[0] not in NEEDS_MORE])
def test_with_its_means_a_data_set_is_not_summed_over_at_its_own_points(name):
    facts = ALGORITHMS[name]
    algorithm = Algorithm(name, facts[0], facts[1], *facts[2:])
    design, rule = algorithm.build()
    kernel = Counted(0.7)
    rkhs = [(rkhs_ball, {"functions": 5})]
    arguments = DATA, kernel, design, rule, Candidates(50), 12, 1, rkhs
    sizes = (4, 12) if facts[0] in SETS else ()
    alone = trial(*arguments, sizes=sizes)
    means = pickle.loads(pickle.dumps(data_means(kernel, DATA)))
    ASKED.clear()
    given = trial(*arguments, sizes=sizes, means=means)
    # Rules that move points start at some of the data, where no table has the gradient.
    allowed = 12 if facts[0] in ("joint", "msip") else 0
    assert not [pair for pair in ASKED if pair[1] == len(DATA.points) and pair[0] > allowed]
    assert ASKED
    for column, values in alone.items():
        np.testing.assert_array_equal(given[column], values, err_msg=column)
    assert np.isfinite(given["mmd"]).any()


def test_a_data_set_that_is_not_handed_over_is_summed_over_once():
    ASKED.clear()
    sizes = (4, 8, 12)
    trial(DATA, Counted(0.7), kernel_thinning, uniform, Candidates(50), 12, 1, sizes=sizes)
    assert [min(pair) for pair in ASKED if min(pair) > 50] == [len(DATA_ROWS)]


@pytest.mark.parametrize(
    "target, means, words",
    [
        (DATA, DataMeans(np.ones(3), 1.0), "means are of 3 points, but the data set has 92"),
        (TARGET, DataMeans(np.ones(3), 1.0), "but the target is of type GaussianMixture"),
    ],
)
def test_means_of_something_else_are_refused(target, means, words):
    with pytest.raises(ValueError, match=words):
        trial(target, KERNEL, sbq, bq, POOL, 5, seed=0, means=means)
