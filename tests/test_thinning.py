"""Thinning: subsets of draws, their rows, and what is said of wrong input."""

import pickle
import re
from functools import partial
from pathlib import Path

import numpy as np
import pandas
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.spatial.distance import pdist

import bqlib
from bqlib import GaussianMixture, mmd, thin
from bqlib.sweep import registry

COVARIANCE = np.array([[1.0, 2.4], [2.4, 9.0]])
NORMAL = GaussianMixture([1.0], [[1.0, -2.0]], [COVARIANCE])


def metropolis(size, seed=0):
    """A chain whose repeats are normal, as half of its proposals are refused."""
    rng = np.random.default_rng(seed)
    x, chain = np.array([1.0, -2.0]), np.empty((size, 2))
    for i in range(size):
        proposed = x + rng.normal(size=2) * [1.5, 4.5]
        log_ratio = np.subtract(*NORMAL.log_density(np.array([proposed, x])))
        x = proposed if np.log(rng.random()) < log_ratio else x
        chain[i] = x
    return chain


CHAIN = metropolis(1200)
SCORES = NORMAL.score(CHAIN)
PICKING = sorted(
    {*registry.PLACES["design"]}
    - {"iid", "sobol", "halton", "latin_hypercube", "lattice", "grid", "joint", "msip"}
)


def thinned(name, samples=CHAIN, scores=None, n=30, **more):
    if name == "stein_thinning":
        scores = NORMAL  # which has the log densities and Hessians that it needs
    return thin(samples, n, scores, **{"design": getattr(bqlib, name), "rng": 1} | more)


def ksd(design):
    """The discrepancy under the default kernel."""
    kernel = thin(CHAIN, 2, SCORES, rng=0).embedding.kernel
    gram = kernel(design.points, design.points)
    return np.sqrt(design.weights @ gram @ design.weights)


# --- Rows


@given(
    name=st.sampled_from(PICKING),
    data=st.lists(st.tuples(*[st.integers(-3, 3)] * 2), min_size=2, max_size=40),
    n=st.integers(1, 12),
    scored=st.booleans(),
    repeats=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_rows_of_the_samples_are_the_points(name, data, n, scored, repeats, seed):
    samples = np.array(data, dtype=float)
    distinct = len(np.unique(samples, axis=0))
    if distinct < 2:
        return
    if name == "frank_wolfe":
        repeats = True  # it has no other way
    if np.ptp(samples, axis=0).min() == 0:
        scored = False
        name = "herding" if name == "stein_thinning" else name
    if name == "recombination":
        scored = False  # few points seldom have the means of the posterior
    scores = NORMAL.score if scored or name == "stein_thinning" else None
    size = min(n, distinct)
    design = thinned(name, samples, scores, size, repeats=repeats, rng=seed)
    np.testing.assert_array_equal(samples[design.rows], design.points)
    assert design.labels is None and 1 <= len(design.points) <= size
    assert len(design.points) == size or design.stop
    assert repeats or len(np.unique(design.points, axis=0)) == len(design.points)
    assert np.isfinite(design.weights).all()


@pytest.mark.parametrize("name", PICKING)
def test_chains_and_tables_give_the_same_rows(name):
    design = thinned(name, scores=SCORES)
    assert (np.diff(CHAIN, axis=0) == 0).all(axis=1).any()
    chains = thinned(name, CHAIN.reshape(4, 300, 2), SCORES.reshape(4, 300, 2))
    np.testing.assert_array_equal(chains.rows, design.rows)
    chain, draw = chains.labels.T
    np.testing.assert_array_equal(CHAIN.reshape(4, 300, 2)[chain, draw], chains.points)
    table = pandas.DataFrame(CHAIN, columns=["a", "b"], index=[f"t{i}" for i in range(1200)])
    of_table = thinned(name, table, pandas.DataFrame(SCORES, table.index, table.columns))
    np.testing.assert_array_equal(of_table.rows, design.rows)
    np.testing.assert_array_equal(table.loc[of_table.labels], design.points)
    again = pickle.loads(pickle.dumps(of_table))
    np.testing.assert_array_equal(again.rows, design.rows)
    with pytest.raises(ValueError, match="read-only"):
        of_table.rows[0] = 3


@pytest.mark.parametrize("name", PICKING)
def test_the_units_of_the_draws_do_not_matter(name):
    factor = np.array([4.0, 0.125])  # powers of two, so that picks are bit for bit

    there = SCORES / factor
    if name == "stein_thinning":
        there = GaussianMixture(
            [1.0], NORMAL.means * factor, [factor[:, None] * COVARIANCE * factor]
        )
        there = bqlib.Unnormalised(2, there.log_density, there.score, there.hessian)
    design = thin(CHAIN, 30, NORMAL, design=getattr(bqlib, name), rng=1)
    other = thin(CHAIN * factor, 30, there, design=getattr(bqlib, name), rng=1)
    np.testing.assert_array_equal(other.rows, design.rows)


# --- What is picked


def test_without_scores_the_draws_are_summarised():
    equal = np.full(30, 1 / 30)
    design = thin(CHAIN, 30, rng=0)
    every = CHAIN[20::40]
    ours, theirs = (mmd(design.embedding, points, equal) for points in (design.points, every))
    assert ours < theirs / 5
    for name in ("herding", "kernel_thinning", "sbq"):
        other = thinned(name)
        assert mmd(design.embedding, other.points, other.weights) < theirs / 4
    assert repr(design) == (
        "<Design: 30 points (d = 2), uniform weights, for ExponentiatedQuadratic, Empirical>"
    )


def test_the_kernel_names_what_was_chosen():
    deviations = CHAIN.std(axis=0)
    expected = bqlib.median_lengthscale(CHAIN / deviations) * deviations
    kernel = thin(CHAIN, 5, rng=0).embedding.kernel
    np.testing.assert_allclose(kernel.lengthscale, expected)
    stein = thin(CHAIN, 5, SCORES, rng=0).embedding.kernel
    expected = bqlib.median_lengthscale(CHAIN / deviations)
    assert stein.lengthscale == pytest.approx(expected, rel=1e-12)
    np.testing.assert_allclose(stein.units, deviations, rtol=1e-12)
    assert f"units={stein.units!r}" in repr(stein)
    plain = thin(CHAIN, 5, lengthscale=2.0, units=[1.0, 3.0], rng=0).embedding.kernel
    np.testing.assert_array_equal(plain.lengthscale, [2.0, 6.0])


def test_scores_thin_to_the_posterior_and_not_to_the_draws():
    # Draws of a distribution that is twice as wide.
    wide = GaussianMixture([1.0], NORMAL.means, 4 * NORMAL.covariances).sample(3000, rng=0)
    equal = np.full(100, 0.01)
    deviations = np.sqrt(np.diag(NORMAL.covariances[0]))
    found = {}
    for scores in (None, NORMAL.score):
        design = thin(wide, 100, scores, rng=0)
        assert design.weights.tolist() == equal.tolist()
        found[scores] = design.points.std(axis=0) / deviations
    assert (found[None] > 1.8).all() and (np.abs(found[NORMAL.score] - 1) < 0.15).all()


@pytest.mark.parametrize("scores", [-SCORES, lambda x: -NORMAL.score(x)])
def test_scores_of_the_wrong_sign_are_told(scores):
    with pytest.warns(UserWarning, match=r"has mean 2\.\d+ and.* -2\. Check the sign of"):
        thin(CHAIN, 5, scores, rng=0)


def test_log_densities_that_rise_to_both_ends_are_told():
    draws = np.random.default_rng(0).beta(0.5, 0.5, size=(2000, 1))
    with pytest.warns(UserWarning, match="above zero at 100% of them"):
        thin(draws, 5, -0.5 / draws + 0.5 / (1 - draws), rng=0)


def test_draws_of_something_else_have_no_warning(recwarn):
    rng = np.random.default_rng(0)
    narrow, far = (mean + rng.normal(size=(500, 2)) / 10 for mean in ([1.0, -2.0], [30.0, 9.0]))
    for draws in (narrow, far, narrow[:3], np.vstack([narrow, far])):
        thin(draws, 2, NORMAL.score, rng=0)
    modes = GaussianMixture([0.5, 0.5], [[-9.0], [9.0]], [[[1.0]], [[1.0]]])
    thin(modes.sample(500, rng=0), 2, modes.score, rng=0)
    assert not recwarn.list


def test_weights_lower_the_discrepancy():
    plain = thin(CHAIN, 60, SCORES, rng=0)
    best = thin(CHAIN, 60, SCORES, design=bqlib.sbq, rng=0)
    positive = thin(CHAIN, 60, SCORES, design=bqlib.sbq, weights=bqlib.weights.simplex, rng=0)
    assert best.rule is bqlib.weights.sum_to_one and best.weights.sum() == pytest.approx(1)
    assert positive.weights.min() >= 0 and positive.weights.sum() == pytest.approx(1)
    of = {"plain": ksd(plain), "best": ksd(best), "positive": ksd(positive)}
    assert of["best"] < of["positive"] < 0.6 * of["plain"]
    weighed = thin(CHAIN, 60, SCORES, weights=bqlib.weights.bq, rng=0)
    assert weighed.weights.sum() == pytest.approx(1, abs=0.01)


def test_regularised_points_do_not_fall_between_modes():
    modes = GaussianMixture([0.8, 0.2], [[-3.0], [3.0]], [[[1.0]], [[1.0]]])
    draws = modes.sample(2000, rng=0)
    regularised = thin(draws, 100, modes, design=bqlib.stein_thinning, rng=0)
    plain = thin(draws, 100, modes.score, rng=0)
    arrays = {
        "score": modes.score(draws),
        "log_density": modes.log_density(draws),
        "hessian": modes.hessian(draws),
    }
    again = thin(draws, 100, arrays, design=bqlib.stein_thinning, rng=0)
    assert again.rows.tolist() == regularised.rows.tolist()
    between = [int((np.abs(d.points) < 0.5).sum()) for d in (plain, regularised)]
    assert between[1] < between[0]


def test_integrals_of_a_thinned_chain():
    design = thin(CHAIN, 80, SCORES, design=bqlib.sbq, rng=0)
    result = design.integrate(lambda x: x[0])
    lower, upper = result.interval(0.95)
    assert lower < 1.0 < upper and upper - lower < 0.05


def test_a_design_may_have_its_options():
    exchanged = partial(bqlib.kernel_thinning, repeats=False)
    for scores in (None, SCORES):
        for name, design in (
            ("kernel_thinning", exchanged),
            ("sbq", partial(bqlib.sbq, memory=1e9)),
        ):
            found = thin(CHAIN, 20, scores, design=design, rng=1)
            options = {"repeats": False} if name == "kernel_thinning" else {}
            assert (
                found.rows.tolist() == thinned(name, scores=scores, n=20, **options).rows.tolist()
            )
    no_hessian = bqlib.Unnormalised(2, NORMAL.log_density, NORMAL.score)
    design = partial(bqlib.stein_thinning, laplace=False)
    assert len(thin(CHAIN, 9, no_hessian, design=design, rng=0).rows) == 9


def plugin(target, kernel, n, *, rng, candidates):
    """A design as somebody may write it, without rows or with wrong ones."""
    return bqlib.Design(bqlib.embed(kernel, target), candidates[5 : 5 + n], rows=range(n))


def test_rows_are_found_by_the_points_whatever_a_design_says():
    for scores in (None, SCORES):
        design = thin(CHAIN, 7, scores, design=plugin, rng=0)
        np.testing.assert_array_equal(CHAIN[design.rows], design.points)
        assert design.weights.sum() == pytest.approx(1)


def test_only_what_a_design_needs_is_asked_of_a_target():
    asked = []

    def hessian(x):
        asked.append(len(x))
        return NORMAL.hessian(x)

    target = bqlib.Unnormalised(2, lambda x: np.full(len(x), -np.inf), NORMAL.score, hessian)
    thin(CHAIN, 5, target, rng=0)
    thin(CHAIN, 5, target, design=partial(bqlib.stein_thinning, laplace=False, entropy=0), rng=0)
    assert not asked
    thin(CHAIN, 5, target, design=partial(bqlib.stein_thinning, entropy=0), rng=0)
    assert asked == [len(np.unique(CHAIN, axis=0))]


def test_scores_that_have_a_dim_are_no_target():
    class Tensor(np.ndarray):
        def dim(self):
            return self.ndim

    def score(x):
        return NORMAL.score(x)

    score.dim = 2
    expected = thin(CHAIN, 5, SCORES, rng=0).rows.tolist()
    assert thin(CHAIN, 5, SCORES.view(Tensor), rng=0).rows.tolist() == expected
    assert thin(CHAIN, 5, score, rng=0).rows.tolist() == expected


def test_a_column_of_rounding_does_not_count():
    noise = 1 + 1.1e-16 * np.random.default_rng(0).integers(-1, 2, len(CHAIN))
    found = thin(np.column_stack([CHAIN, noise]), 10, rng=0)
    lengthscale = found.embedding.kernel.lengthscale
    np.testing.assert_allclose(lengthscale[2] / lengthscale[0], 1 / CHAIN[:, 0].std())


def test_an_interval_may_be_too_narrow_as_the_page_says():
    page = (Path(__file__).parents[1] / "docs" / "thinning.md").read_text(encoding="utf-8")
    code = re.findall("```python\n(.*?)```", page, re.DOTALL)
    names = {}
    exec("".join(code[:2]) + code[2].partition("positive =")[0], names)
    result = names["best"].integrate(values=names["values"])
    assert result.mean == pytest.approx(names["best"].weights @ names["values"])
    assert result.interval(0.95)[1] < 1.0 < result.mean + 0.1


def test_other_points_need_a_function():
    design = thin(CHAIN, 10, SCORES, rng=0)
    with pytest.raises(ValueError, match="scores were given at the draws, but are needed at anoth"):
        mmd(design.embedding, [[0.123, 0.456]], [1.0])
    design = thin(CHAIN, 10, NORMAL.score, rng=0)
    assert mmd(design.embedding, [[0.123, 0.456]], [1.0]) > 0


def test_a_score_function_is_called_once_for_each_distinct_draw():
    asked = []

    def score(x):
        asked.append(len(x))
        return NORMAL.score(x)

    thin(CHAIN, 30, score, rng=0)
    assert asked == [len(np.unique(CHAIN, axis=0))]


def test_zeros_of_either_sign_are_one_draw():
    draws = np.array([[0.0, 1.0], [-0.0, 1.0], [2.0, 3.0]])
    assert len(np.unique(thin(draws, 2, -draws, repeats=False, rng=0).rows)) == 2
    with pytest.raises(ValueError, match="of 3 draws only 2 are distinct; n must be at most 2"):
        thin(draws, 3, rng=0)


# --- The median heuristic


def test_the_median_is_that_of_all_pairs_or_of_a_stated_part():
    few = CHAIN[:700]  # with repeats
    distinct = np.unique(few, axis=0)
    found = bqlib.median_lengthscale(few)
    assert found == pytest.approx(np.median(pdist(distinct)), rel=1e-14)
    said = f"median distance between all of {len(distinct)} distinct points"
    assert len(distinct) < 700 and repr(found) == f"{float(found)!r} ({said})"
    many = NORMAL.sample(3001, rng=1)
    found = bqlib.median_lengthscale(many)
    distances = pdist(many[(np.arange(1000) * 3001 + 1500) // 1000])
    assert found == pytest.approx(np.median(distances), rel=1e-14)
    assert repr(found).endswith("between 1000 evenly spaced ones of 3001 distinct points)")
    assert bqlib.median_lengthscale(np.tile([[0.0], [1.0]], (1000, 1))) == 1.0
    tiny = bqlib.median_lengthscale(1e-200 * many)
    assert tiny == pytest.approx(1e-200 * found, rel=1e-14)
    again = pickle.loads(pickle.dumps(found))
    assert (again, repr(again)) == (found, repr(found)) and str(round(found, 2)) == f"{found:.2f}"


@pytest.mark.parametrize(
    "points, said",
    [
        (np.ones((5, 2)), "there are 5 points, of which 1 are distinct"),
        ([[1.0]], "there are 1 points, of which 1 are distinct"),
        ([1.0, 2.0], r"points have shape \(2,\)"),
        ([[np.nan], [1.0]], "NaN or infinity, first in row 0"),
        (np.empty((0, 2)), "there are 0 points, of which 0 are distinct"),
    ],
)
def test_the_median_needs_distances(points, said):
    with pytest.raises(ValueError, match=said):
        bqlib.median_lengthscale(points)


# --- Wrong input


@pytest.mark.parametrize(
    "change, error, said",
    [
        ({"n": 0}, ValueError, "n is 0; it must be at least 1"),
        ({"n": 2.0}, TypeError, "n is 2.0; it must be a whole number"),
        ({"n": 5000}, ValueError, r"n is 5000, but of 1200 draws only \d+ are distinct"),
        ({"n": 5, "samples": NORMAL.sample(4, rng=0)}, ValueError, "there are 4 draws; n must be"),
        ({"samples": np.ones((50, 2))}, ValueError, "all 50 draws are equal, .* the chain moved"),
        (
            {"design": "herding"},
            TypeError,
            "design is 'herding'; it must be a function, such as bqlib",
        ),
        ({"design": bqlib.iid}, TypeError, "cannot be sampled"),
        ({"design": bqlib.joint, "scores": None}, TypeError, "joint picks no draws"),
        ({"scores": bqlib.Uniform([0, 0], [1, 1])}, TypeError, "this Uniform has no score"),
        ({"scores": {"lp": SCORES}}, ValueError, r"have the keys \['lp'\]; they must have score"),
        (
            {"scores": {"score": SCORES, "log_density": SCORES}},
            ValueError,
            r"log densities have shape \(1200, 2\), but samples .* of shape \(1200,\), or a fu",
        ),
        (
            {"scores": bqlib.Unnormalised(1, score=np.sin)},
            ValueError,
            "has dimension 1 and samples",
        ),
        (
            {"units": [1.0, 2.0, 3.0]},
            ValueError,
            "units has 3 numbers; give one, or 2, the dimension",
        ),
        ({"units": 0.0}, ValueError, "units is 0.0; it must be finite and positive"),
        ({"lengthscale": -1.0}, ValueError, "lengthscale is -1.0"),
        (
            {"lengthscale": [1.0, 2.0, 3.0], "scores": None},
            ValueError,
            "lengthscale has 3 numbers; give one, or 2",
        ),
        ({"weights": "bq"}, TypeError, "weights is 'bq'; it must be a rule of bqlib.weights"),
        ({"design": lambda *a, **k: None}, TypeError, "returned NoneType; it must return a Design"),
        ({"samples": CHAIN * [1.0, 1e-200]}, ValueError, "between 1e-50 and 1e50"),
        ({"design": bqlib.stein_thinning}, TypeError, "log_density .* and hessian"),
        (
            {"samples": CHAIN * [1.0, 0.0], "scores": NORMAL.score},
            ValueError,
            "the same number in column 1",
        ),
        ({"design": bqlib.frank_wolfe, "repeats": False}, ValueError, "keeps a draw twice"),
    ],
)
def test_what_is_wrong_is_told(change, error, said):
    arguments = {"samples": CHAIN, "n": 40, "scores": SCORES, "rng": 0} | change
    with pytest.raises(error, match=said):
        thin(**arguments)


def test_a_column_that_does_not_vary_needs_no_unit_without_scores():
    still = CHAIN * [1.0, 0.0]
    np.testing.assert_array_equal(
        thin(still, 10, rng=0).rows, thin(still, 10, units=[CHAIN[:, 0].std(), 7.0], rng=0).rows
    )
