"""Designs: what all have in common, and what each promises."""

import inspect
import json
import pickle
import re
from dataclasses import replace
from functools import partial

import numpy as np
import pandas
import pytest
from scipy import stats
from scipy.spatial.distance import pdist

import bqlib
from bqlib import (
    Brownian,
    Candidates,
    Design,
    Empirical,
    ExponentiatedQuadratic,
    GaussianMixture,
    IntegratedBrownian,
    Marginals,
    Matern,
    Product,
    Stein,
    Uniform,
    Unnormalised,
    embed,
    sbq,
    sharded,
    sobol_points,
)
from bqlib.designs.interpolant import Interpolant
from bqlib.discrepancy import mmd2, mmd2_of_prefixes
from bqlib.kernels import ProductKernel
from bqlib.streams import stream
from bqlib.sweep import registry
from bqlib.weights import bq, sum_to_one, uniform

TARGET = GaussianMixture(
    [0.5, 0.3, 0.2],
    [[0.0, 0.0], [2.0, 1.0], [-1.0, 2.0]],
    [np.eye(2), [[0.5, 0.2], [0.2, 0.4]], 0.3 * np.eye(2)],
)
KERNEL = ExponentiatedQuadratic(0.6)
POOL = TARGET.sample(400, np.random.default_rng(0))
SETS = ["compress", "joint", "kernel_thinning", "msip", "recombination"]  # not sequences
CUBE_SETS = ["grid", "latin_hypercube", "lattice"]  # see test_unit_cube_designs.py
ALL = sorted(
    {*registry.PLACES["design"]} - {*SETS, *CUBE_SETS, "stein_thinning"}  # which has its own kernel
)
FREE = ["halton", "iid", "sobol"]  # they look at no candidates
RANDOM = [*FREE, "rpcholesky"]
NEWTON = ["sbq", "omp", "p_greedy", "fp_greedy", "rpcholesky"]
GREEDY = [name for name in ALL if name not in RANDOM]
DISTINCT = [*NEWTON, "block_sbq"]


def make(name, n=30, target=TARGET, kernel=KERNEL, candidates=POOL, rng=1, **options):
    return getattr(bqlib, name)(target, kernel, n, rng=rng, candidates=candidates, **options)


@pytest.fixture(scope="module")
def paper(request):
    """The paper's target."""
    path = request.config.rootpath / "config" / "targets" / "chen2010_mixture.json"
    numbers = json.loads(path.read_text())
    return GaussianMixture(*(numbers[key] for key in ("weights", "means", "covariances")))


PAPER_KERNEL = ExponentiatedQuadratic(0.5, scale="density")


def curve(design, rule=None):
    rule = rule or design.rule
    matrix = rule(design.embedding, design.points).matrix
    return np.sqrt(mmd2_of_prefixes(design.embedding, design.points[: len(matrix)], matrix))


# --- What all have in common ---------------------------------------------------------------------


@pytest.mark.parametrize("name", ALL)
def test_a_longer_design_starts_with_the_shorter_one(name):
    short, long = make(name, 12), make(name, 30)
    assert short.points.shape == (12, 2) and long.points.shape == (30, 2)
    np.testing.assert_array_equal(short.points, long.points[:12])
    assert short.stop == long.stop == ""
    assert long.weights.shape == (30,) and np.isfinite(long.weights).all()


@pytest.mark.parametrize("name", [name for name in ALL if name not in ("rpcholesky", "block_sbq")])
def test_going_on_from_a_design_equals_one_longer_run(name):
    whole = make(name, 30)
    again = make(name, 30, initial=whole.points[:13])
    np.testing.assert_array_equal(again.points, whole.points)


def test_going_on_at_the_end_of_a_block_equals_one_longer_run():
    whole = make("block_sbq", 30, block=5)
    np.testing.assert_array_equal(
        make("block_sbq", 30, block=5, initial=whole.points[:15]).points, whole.points
    )


@pytest.mark.parametrize("name", [name for name in ALL if name not in FREE])
def test_points_come_from_the_pool(name):
    pool = {tuple(x) for x in POOL}
    points = make(name, 40).points
    assert {tuple(x) for x in points} <= pool
    if name in DISTINCT:
        assert len(np.unique(points, axis=0)) == 40


@pytest.mark.parametrize("name", [*ALL, *SETS])
def test_rows_are_those_of_the_candidates_given(name):
    pool = np.concatenate([POOL, POOL[:100]])
    table = pandas.DataFrame(pool, index=[f"run {i}" for i in range(500)])
    start = TARGET.sample(3, rng=1) if name in ALL else None
    for candidates, initial in ((pool, None), (table, start)):
        design = make(name, 20, candidates=candidates, initial=initial)
        if name in (*FREE, "joint", "msip"):
            assert design.rows is None and design.labels is None
            continue
        given = 0 if initial is None else len(initial)
        assert len(design.rows) == 20 - given
        np.testing.assert_array_equal(pool[design.rows], design.points[given:])
        if candidates is table:
            np.testing.assert_array_equal(table.loc[design.labels], design.points[given:])
        with pytest.raises(ValueError, match="read-only"):
            design.rows[0] = 1
    for drawn in (Candidates(50), Candidates(50, fresh=True)):
        if name in (*ALL, "joint") or not drawn.fresh:
            assert make(name, 5, candidates=drawn).rows is None


def test_points_off_the_candidates_have_no_rows():
    assert make("sbq", 5, refine=2).rows is None
    assert make("sbq", 5, initial=POOL[:5]).rows.tolist() == []


@pytest.mark.parametrize("name", GREEDY)
def test_the_order_of_the_pool_does_not_matter(name):
    shuffled = POOL[np.random.default_rng(3).permutation(len(POOL))]
    # A wide kernel and a point off the pool, as candidates tie for some rules otherwise.
    designs = (
        make(name, 15, TARGET, ExponentiatedQuadratic(1.5), pool, initial=[[0.1, 0.2]])
        for pool in (POOL, shuffled)
    )
    np.testing.assert_array_equal(*(design.points for design in designs))


@pytest.mark.parametrize("name", GREEDY)
def test_the_units_of_the_problem_do_not_matter(name):
    shift, factor = np.array([3.0, -7.0]), 4.0  # a power of two, so that picks are bit for bit
    moved = GaussianMixture(
        TARGET.weights, factor * TARGET.means + shift, factor**2 * TARGET.covariances
    )
    there = make(name, 25, moved, ExponentiatedQuadratic(0.6 * factor), factor * POOL + shift)
    np.testing.assert_allclose(there.points, factor * make(name, 25).points + shift, rtol=1e-12)


@pytest.mark.parametrize("name", GREEDY)
def test_candidates_that_repeat_are_harmless(name):
    doubled = np.concatenate([POOL, POOL[::-1]])
    np.testing.assert_array_equal(make(name).points, make(name, candidates=doubled).points)


@pytest.mark.parametrize("distance", [3e-5, 1e-6, 1e-7, 1e-9])
@pytest.mark.parametrize("name", [name for name in DISTINCT if name in GREEDY])
def test_candidates_that_nearly_repeat_are_harmless(name, distance):
    alone = make(name, 60)
    nearby = POOL + KERNEL.lengthscale * distance * np.random.default_rng(4).uniform(
        size=POOL.shape
    )
    made = make(name, 60, candidates=np.concatenate([POOL, nearby]))
    # Which of two is picked is rounding; where the pair is, is not.
    assert made.stop == "" and np.abs(made.points - alone.points).max() < distance
    np.testing.assert_allclose(curve(made), curve(alone), rtol=10 * distance)
    assert np.abs(made.weights).sum() < 1.01 * np.abs(alone.weights).sum()


def test_near_repeats_are_left_out_of_a_pool_in_blocks_and_of_fresh_ones():
    pool = np.concatenate([POOL, POOL + 1e-6])
    whole, blocks = (make("sbq", 40, candidates=pool, memory=memory) for memory in (None, 1e6))
    np.testing.assert_array_equal(blocks.points, whole.points)
    for name in DISTINCT:
        fresh = Candidates(size=300, source="box", box=[(0, 3e-4), (0, 3e-4)], fresh=True)
        made = make(name, 40, candidates=fresh, initial=[[1e-4, 2e-4]])
        assert len(made.points) > 1 and pdist(made.points).min() > 0.999e-4 * KERNEL.lengthscale


@pytest.mark.parametrize("name", [*DISTINCT, "joint"])
def test_initial_points_may_nearly_repeat(name):
    initial = [[0.0, 0.0], [1.0, 1.0], [3e-6, 0.0]]
    design, alone = make(name, 20, initial=initial), make(name, 19, initial=initial[:2])
    np.testing.assert_array_equal(design.points[:3], initial)
    assert design.stop == "" and design.weights[2] == 0
    if name in GREEDY:
        np.testing.assert_array_equal(design.points[3:], alone.points[2:])


def test_refined_picks_do_not_repeat():
    design = make("sbq", 60, candidates=POOL[:80], refine=3)
    assert design.stop == "" and pdist(design.points).min() > 0.999e-4 * KERNEL.lengthscale


@pytest.mark.parametrize("name", [name for name in ALL if name not in FREE])
def test_initial_points_may_repeat(name):
    initial = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    design = make(name, 20, initial=initial)
    np.testing.assert_array_equal(design.points[:3], initial)
    assert np.isfinite(curve(design)).all()


@pytest.mark.parametrize("name", [*ALL, *SETS])
def test_initial_points_may_be_all(name):
    initial = TARGET.sample(7, np.random.default_rng(5))
    for candidates in (Candidates(), Candidates(fresh=True), POOL[:3]):
        design = make(name, 7, candidates=candidates, initial=initial)
        np.testing.assert_array_equal(design.points, initial)
        assert design.stop == ""
    if name in (*ALL, "joint", "msip"):
        assert design.rule is make(name, 8, initial=initial).rule
    with pytest.raises(ValueError, match=r"candidates have shape \(50, 3\)"):
        make(name, 7, candidates=np.zeros((50, 3)), initial=initial)
    with pytest.raises(ValueError, match="already 7 initial points: n must be at least 7"):
        make(name, 6, initial=initial)


def test_what_only_draws_candidates_needs_no_draws_where_all_points_are_initial():
    target = Unnormalised(1, score=lambda x: -x)  # cannot be drawn from
    kernel, initial = Stein(target, constant=1.0), [[0.0], [1.0]]
    design = sbq(target, kernel, 2, rng=0, initial=initial)
    np.testing.assert_array_equal(design.points, initial)
    with pytest.raises(TypeError, match="Unnormalised"):
        sbq(target, kernel, 3, rng=0, initial=initial)


def test_a_design_of_any_points_has_bq_weights():
    embedding = embed(KERNEL, TARGET)
    design = Design(embedding, POOL[:5])
    assert design.rule is bq and design.stop == ""
    np.testing.assert_array_equal(design.weights, bq(embedding, POOL[:5]).final(5))
    assert pickle.loads(pickle.dumps(design)).rule is bq


def test_a_design_takes_a_table_of_inputs_by_their_names():
    inputs = Marginals({"a": stats.norm(3, 1), "b": stats.uniform(0, 5)})
    points = sobol_points(inputs, 6, rng=0)
    table = pandas.DataFrame(points[:, ::-1], columns=["b", "a"])
    np.testing.assert_array_equal(Design(embed(KERNEL, inputs), table).points, points)
    with pytest.raises(ValueError, match="points of the design are a table with the columns"):
        Design(embed(KERNEL, inputs), table.rename(columns={"a": "c"}))


@pytest.mark.parametrize("name", ALL)
def test_fresh_pools(name):
    fresh = Candidates(size=150, fresh=True)
    first, again = (make(name, 20, candidates=fresh) for _ in range(2))
    np.testing.assert_array_equal(first.points, again.points)
    if name not in FREE:
        assert not {tuple(x) for x in first.points} & {tuple(x) for x in POOL}
        # As good as a fixed pool of that size, within a factor that chance does not reach.
        fixed = curve(make(name, 20, candidates=POOL[:150]))[-1]
        assert curve(first)[-1] < 2 * fixed


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "options, said",
    [
        ({"n": 0}, "n is 0; it must be at least 1"),
        ({"n": -1}, "n is -1; it must be at least 1"),
        ({"n": 2, "initial": np.zeros((3, 2))}, "already 3 initial points: n must be at least 3"),
        ({"rng": -1}, "rng is -1; it must be at least 0"),
        ({"initial": [[np.nan, 0.0]]}, "NaN"),
        ({"initial": [[0.0, 0.0, 0.0]]}, r"\(1, 3\)"),
        ({"kernel": ExponentiatedQuadratic([1.0, 1.0, 1.0])}, "dimension"),
    ],
)
def test_bad_arguments_are_told(name, options, said):
    with pytest.raises(ValueError, match=said):
        make(name, **options)


@pytest.mark.parametrize("name", ALL)
@pytest.mark.parametrize(
    "options, said",
    [
        ({"n": True}, "n is True; it must be a whole number"),
        ({"n": 2.5}, "n is 2.5; it must be a whole number"),
        ({"rng": None}, "rng is required so that the result can be reproduced: pass a seed"),
        ({"rng": "a"}, "rng is 'a'; it must be a seed"),
        ({"target": KERNEL, "kernel": TARGET}, "which is target, kernel for a design, and kernel"),
        ({"kernel": TARGET}, "the kernel is of type GaussianMixture; it must be a bqlib.kernels"),
        ({"target": TARGET.density}, "the target is of type method; .* use bqlib.Unnormalised"),
    ],
)
def test_arguments_of_a_wrong_type_are_told(name, options, said):
    with pytest.raises(TypeError, match=said):
        make(name, **options)


def test_rng_has_no_default():
    # A design with a fixed pool draws nothing, and is called in the same way.
    public = [getattr(bqlib, name) for name in bqlib.__all__] + [sharded.sbq, sharded.herding]
    methods = [getattr(found, name, None) for found in public for name in ("sample", "draw")]
    functions = [found for found in [*public, *methods] if inspect.isfunction(found)]
    parameters = [inspect.signature(function).parameters for function in functions]
    defaults = [taken["rng"].default for taken in parameters if "rng" in taken]
    assert len(defaults) >= 20 and set(defaults) == {inspect.Parameter.empty}


@pytest.mark.parametrize("name", [*DISTINCT, "joint"])
def test_a_design_without_a_point_is_refused_with_the_reason(name):
    kernel = Stein(TARGET)  # its mean is zero: whatever the points, the best weights are zero
    if name in ("p_greedy", "rpcholesky"):  # these do not look at the mean
        assert len(make(name, 5, kernel=kernel).points) == 5
        return
    with pytest.raises(ValueError, match=r"no point could be picked \(design stops at n = 0 of 5"):
        make(name, 5, kernel=kernel)


@pytest.mark.parametrize("name", ["iid", "herding", "frank_wolfe"])
def test_designs_with_weights_of_sum_one_take_a_stein_kernel_without_constant(name):
    design = make(name, 5, kernel=Stein(TARGET))
    assert len(design.points) == 5 and design.weights.sum() == pytest.approx(1, abs=1e-12)


def test_a_design_shows_what_it_is_in_one_line():
    assert repr(make("herding", 7)) == (
        "<Design: 7 points (d = 2), uniform weights, for ExponentiatedQuadratic, GaussianMixture>"
    )
    assert "partial weights" in repr(replace(make("herding", 7), rule=partial(uniform)))
    shown = repr(make("sbq", 100, kernel=ExponentiatedQuadratic(5.0)))
    assert "points (d = 2), bq weights" in shown and "of 100: the next pivot is below" in shown


@pytest.mark.parametrize("name", FREE)
def test_candidates_that_are_not_looked_at_are_checked(name):
    np.testing.assert_array_equal(make(name).points, make(name, candidates=None).points)
    np.testing.assert_array_equal(make(name).points, make(name, candidates=Candidates(3)).points)
    with pytest.raises(ValueError, match=r"candidates have shape \(50, 3\)"):
        make(name, candidates=np.zeros((50, 3)))


@pytest.mark.parametrize("name", [name for name in ALL if name not in FREE])
@pytest.mark.parametrize(
    "candidates, said",
    [
        (POOL[:10], "0 initial . 10 candidates"),
        (np.full((50, 2), np.inf), "NaN or inf"),
        (np.zeros((50, 3)), r"\(50, 3\)"),
    ],
)
def test_bad_candidates_are_told(name, candidates, said):
    with pytest.raises(ValueError, match=said):
        make(name, candidates=candidates)


# --- Each rule by its definition -----------------------------------------------------------------


def test_each_pick_of_sbq_lowers_the_variance_the_most():
    pool = POOL[:40]
    embedding, points = embed(KERNEL, TARGET), make("sbq", 8, candidates=pool).points

    def variance(x):
        z = embedding.kernel_mean(x)
        return embedding.prior_variance - z @ np.linalg.solve(KERNEL(x, x), z)

    for m in range(8):
        others = [x for x in pool if not (points[:m] == x).all(axis=1).any()]
        best = min(variance(np.vstack([points[:m], x])) for x in others)
        assert variance(points[: m + 1]) == pytest.approx(best, rel=1e-10)


NORMAL = GaussianMixture([1.0], [[0.0, 0.0]], [np.eye(2)])


@pytest.mark.parametrize(
    "target, kernel",
    [(TARGET, KERNEL), (NORMAL, 2.0 * Matern(0.5, nu=1.5)), (TARGET, Stein(TARGET))],
)
def test_each_pick_of_herding_is_best_for_equal_weights(target, kernel):
    pool = POOL[:40]
    embedding = embed(kernel, target)
    points = make("herding", 8, target, kernel, pool).points
    for m in range(8):
        weights = np.full(m + 1, 1 / (m + 1))
        best = min(mmd2(embedding, np.vstack([points[:m], x]), weights) for x in pool)
        found = mmd2(embedding, points[: m + 1], weights)
        assert found == pytest.approx(best, rel=1e-9, abs=1e-14)


@pytest.mark.parametrize(
    "name, score",
    [
        ("omp", lambda residual, power: np.abs(residual)),
        ("p_greedy", lambda residual, power: power),
        ("fp_greedy", lambda residual, power: np.abs(residual) * np.sqrt(power)),
    ],
)
def test_relatives_of_sbq_pick_by_residual_and_power(name, score):
    pool, embedding = POOL[:60], embed(KERNEL, TARGET)
    points = make(name, 10, candidates=pool).points
    for m in range(10):
        rows = np.linalg.solve(KERNEL(points[:m], points[:m]), KERNEL(points[:m], pool))
        residual = embedding.kernel_mean(pool) - embedding.kernel_mean(points[:m]) @ rows
        power = 1 - np.einsum("ij,ij->j", KERNEL(points[:m], pool), rows)
        best = score(residual, np.maximum(power, 0)).max()
        i = int(np.flatnonzero((pool == points[m]).all(axis=1))[0])
        assert score(residual, power)[i] == pytest.approx(best, rel=1e-9)


def test_rpcholesky_draws_by_power():
    pool, kernel = POOL[:4], ExponentiatedQuadratic(1.5)
    first = POOL[:1]
    power = 1 - np.square(kernel(first, pool)[0])
    counts = np.zeros(4)
    for seed in range(2000):
        drawn = make("rpcholesky", 2, kernel=kernel, candidates=pool, initial=first, rng=seed)
        counts += (pool == drawn.points[1]).all(axis=1)
    expected = 2000 * power / power.sum()
    assert counts[0] == 0
    assert (np.square(counts - expected)[1:] / expected[1:]).sum() < 13.8  # chi2(2), 0.1 %


def test_frank_wolfe_steps_by_exact_line_search():
    design = make("frank_wolfe", 25)
    matrix = design.rule(design.embedding, design.points).matrix
    np.testing.assert_allclose(matrix.sum(axis=1), 1, rtol=1e-12)
    assert (matrix >= 0).all() and (np.diff(curve(design)) <= 1e-12).all()
    for m in (3, 11):  # no other step from the weights before is better
        before = np.append(matrix[m - 1, :m], 0.0)
        vertex = np.eye(m + 1)[m]
        steps = [(1 - s) * before + s * vertex for s in np.linspace(0, 1, 1001)]
        best = min(mmd2(design.embedding, design.points[: m + 1], w) for w in steps)
        found = mmd2(design.embedding, design.points[: m + 1], matrix[m, : m + 1])
        assert found <= best + 1e-15


def test_a_block_of_one_is_omp():
    np.testing.assert_array_equal(make("block_sbq", block=1).points, make("omp").points)


def test_sobol_points_follow_the_target():
    points = make("sobol", 1024).points
    embedding = embed(KERNEL, TARGET)
    equal = np.full(1024, 1 / 1024)
    iid = np.sqrt((1 - embedding.prior_variance) / 1024)
    assert np.sqrt(mmd2(embedding, points, equal)) < iid / 4
    box = Uniform([0.0, -1.0], [2.0, 3.0])
    inside = make("sobol", 64, box).points
    assert (inside >= box.lower).all() and (inside <= box.upper).all()


def test_more_points_than_a_sobol_sequence_has_are_refused():
    with pytest.raises(ValueError, match="n is 2147483648; a Sobol sequence has at most 2\\^30"):
        make("sobol", 2**31)


@pytest.mark.parametrize(
    "target",
    [
        TARGET,
        Uniform([1.0, 2.0], [4.0, 8.0]),
        Marginals([stats.expon(), stats.norm(7, 2)]),
        Product([GaussianMixture([1.0], [[5.0]], [[[4.0]]]), Uniform([0.0], [2.0])]),
    ],
    ids=lambda target: type(target).__name__,
)
def test_sobol_points_need_no_kernel(target):
    points = sobol_points(target, 24, rng=7)
    assert points.shape == (24, 2)
    np.testing.assert_array_equal(points, make("sobol", 24, target, rng=7).points)
    np.testing.assert_array_equal(sobol_points(target, 48, rng=7)[:24], points)
    assert not np.isin(sobol_points(target, 24, rng=8), points).any()
    rng = np.random.default_rng(7)
    np.testing.assert_array_equal(sobol_points(target, 24, rng=rng), points)
    assert not np.isin(sobol_points(target, 24, rng=rng), points).any()


@pytest.mark.parametrize(
    "target, n, rng, error, said",
    [
        (TARGET, 0, 0, ValueError, "n is 0; it must be at least 1"),
        (TARGET, 2.5, 0, TypeError, "n is 2.5; it must be a whole number"),
        (TARGET, 2**31, 0, ValueError, "a Sobol sequence has at most 2^30"),
        (TARGET, 4, None, TypeError, "rng is required"),
        (Empirical(POOL), 4, 0, TypeError, "to Empirical; it works for GaussianMixture, Uniform"),
        (Unnormalised(1, score=np.negative), 4, 0, TypeError, "use sbq or herding, which need a k"),
        (KERNEL, 4, 0, TypeError, "cannot map the unit cube to ExponentiatedQuadratic"),
    ],
    ids=str,
)
def test_what_sobol_points_cannot_be(target, n, rng, error, said):
    with pytest.raises(error, match=re.escape(said)):
        sobol_points(target, n, rng=rng)


def test_sobol_points_of_a_product_are_those_of_its_blocks():
    box, one = Uniform([0.0, -1.0], [2.0, 3.0]), GaussianMixture([1.0], [[5.0]], [[[4.0]]])
    target = Product([box, one, TARGET])
    points = make("sobol", 1024, target, ExponentiatedQuadratic(1.0), None).points
    assert points.shape == (1024, 5)
    parts = points[:, :2], points[:, 2:3], points[:, 3:]
    for block, part in zip(target.blocks, parts, strict=True):
        embedding = embed(KERNEL, block)
        iid = (1 - embedding.prior_variance) / 1024
        assert mmd2(embedding, part, np.full(1024, 1 / 1024)) < iid / 16
    with pytest.raises(TypeError, match="cannot map the unit cube to Empirical; it works for"):
        make("sobol", 5, Product([box, Empirical([[0.0]])]), candidates=None)


def test_refined_picks_are_no_worse_than_the_pool(paper):
    pool = Candidates(size=300).draw(paper, stream("candidates", 0))
    plain = make("sbq", 15, paper, PAPER_KERNEL, pool)
    refined = make("sbq", 15, paper, PAPER_KERNEL, pool, refine=3)
    first = slice(0, 1)
    assert curve(refined)[first] <= curve(plain)[first]
    assert curve(refined)[-1] < curve(plain)[-1]
    assert not {tuple(x) for x in refined.points} & {tuple(x) for x in pool}


@pytest.mark.parametrize("kernel", [KERNEL, Matern(0.5, nu=2.5) * KERNEL, Stein(TARGET)])
def test_climbs_know_the_gradients_of_residual_and_power(kernel):
    target = TARGET if not isinstance(kernel, ProductKernel) else Empirical(POOL[:50])
    interpolant, h = Interpolant(embed(kernel, target), 5), 1e-5
    for x in POOL[:5]:
        interpolant.add(x, *interpolant.at(x))
    x = POOL[10:13]
    found = interpolant.gradients(x, interpolant.columns(x))
    for c, step in enumerate(h * np.eye(2)):
        up, down = (
            interpolant.residual_and_power(y, interpolant.columns(y)) for y in (x + step, x - step)
        )
        for slope, above, below in zip(found, up, down, strict=True):
            np.testing.assert_allclose(slope[:, c], (above - below) / (2 * h), rtol=1e-5, atol=1e-8)


@pytest.mark.parametrize("name", DISTINCT)
def test_a_candidate_without_variance_is_never_picked(name):
    # Brownian motion is zero at 0, and so are residual and power there.
    pool = np.linspace(0, 1, 11)[:, None]
    points = make(name, 10, Uniform([0.0], [1.0]), Brownian(), pool).points
    np.testing.assert_array_equal(np.sort(points, axis=0), pool[1:])


@pytest.mark.parametrize(
    "name, options",
    [
        *((name, {}) for name in DISTINCT),
        *((name, {"initial": [[0.5], [5e-5]]}) for name in DISTINCT),
        ("sbq", {"memory": 650}),
    ],
)
def test_a_low_candidate_is_no_spent_one(name, options):
    pool = np.array([[0.5], [5e-5], [0.9]])  # of heights from 4e-14 to 0.2
    design = make(name, 3, Uniform([0.0], [1.0]), IntegratedBrownian(), pool, **options)
    assert design.stop == "" and design.weights.all()


def test_weights_of_a_design_go_on_after_a_spent_initial_point():
    crowd = np.linspace(0, 0.1, 30)[:, None] * np.ones(2)
    design = make("sbq", 40, initial=crowd)
    assert 0 < np.count_nonzero(design.weights[:30]) < 30 and design.weights[30:].all()
    found = design.integrate(lambda x: np.cos(x[0]), rule=sum_to_one)
    assert found.std < 0.5 and found.freedom > 10


def test_the_weights_of_a_design_cannot_be_changed():
    with pytest.raises(ValueError, match="read-only"):
        make("sbq", 5).weights[0] = 1.0


# --- The paper's problem, and problems with known answers -----------------------------------------


@pytest.mark.parametrize(
    "name, rule, expected",
    [
        ("sbq", bq, 0.01158),
        ("omp", bq, 0.0120),
        ("p_greedy", bq, 0.042),
        ("rpcholesky", bq, 0.026),
        ("frank_wolfe", None, 0.021),
        ("sobol", bq, 0.030),
        ("iid", bq, 0.036),
        ("herding", uniform, 0.0224),
    ],
)
def test_the_papers_problem_at_100_points(paper, name, rule, expected):
    pool = Candidates().draw(paper, stream("candidates", 0))
    design = make(name, 100, paper, PAPER_KERNEL, pool)
    assert curve(design, rule)[-1] == pytest.approx(expected, rel=0.3)


def test_sbq_is_near_the_optimum_for_brownian_motion():
    grid = np.linspace(0, 1, 2001)[:, None]
    mmd = curve(make("sbq", 100, Uniform([0.0], [1.0]), Brownian(), grid))
    n = np.arange(1, 101)
    ratio = mmd * np.sqrt(3) * (2 * n + 1)
    assert (ratio > 1 - 1e-9).all() and (ratio < 1.2).all()


@pytest.mark.parametrize("nu, slope", [(0.5, -1), (1.5, -2), (2.5, -3)])
def test_sbq_has_the_best_rate_for_matern_kernels(nu, slope):
    grid = np.linspace(0, 1, 4001)[:, None]
    mmd = curve(make("sbq", 128, Uniform([0.0], [1.0]), Matern(0.3, nu=nu), grid))
    n = np.unique(np.geomspace(16, 128, 20).astype(int))
    assert np.polyfit(np.log(n), np.log(mmd[n - 1]), 1)[0] == pytest.approx(slope, abs=0.15)


def test_stein_points_need_no_normalised_density():
    kernel = Stein(TARGET, constant=1.0)
    design = make("sbq", 30, kernel=kernel)
    exact = make("sbq", 30)
    # Both are good for the target: compare in the kernel whose mean is known.
    embedding = exact.embedding
    stein = mmd2(embedding, design.points, design.weights / design.weights.sum())
    iid = (1 - embedding.prior_variance) / 30
    assert stein < iid / 4


def test_a_data_set_can_be_summarised():
    data = Empirical(POOL)
    design = make("sbq", 40, data, candidates=POOL)
    assert curve(design)[-1] < 0.2 * curve(make("iid", 40, data))[-1]
