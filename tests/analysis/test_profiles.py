"""Points to levels of the problems of a sweep, and the profiles and pairs that come of them."""

import json

import numpy as np
import paper_sweep
import pytest
import xarray as xr
from synthetic_sweep import sweep

from bqlib.analysis import profiles
from bqlib.schema import FAILED, MISSING

N = np.arange(1.0, 101)
LEVELS = [1.0, 0.1, 0.01, 0.001]


def two_rules(**more):
    """Six seeds of 1/sqrt(n) and of 1/n, without noise."""
    seeds = np.ones((6, 1))
    return sweep({"slow": seeds / np.sqrt(N), "fast": seeds / N}, **more)


def with_problems(curves, n=(100, 100)):
    """The same curves, as those of a sweep that names two problems."""
    one = curves.isel(lengthscale=[0])
    found = xr.concat([one.assign_coords(target=[name]) for name in ("a", "b")], "target")
    config = json.loads(curves.attrs["config"])
    (content,) = config["targets"].values()
    config["targets"] = {"a": content, "b": content}
    levels = {"a": LEVELS, "b": [0.5, 0.2, 0.1, 0.05]}
    config["problems"] = {
        name: {"levels": levels[name], "n": largest} for name, largest in zip("ab", n, strict=True)
    }
    return found.assign_attrs(curves.attrs | {"config": json.dumps(config)})


def test_points_to_given_levels_are_the_first_n_that_get_there():
    found = profiles.points_to_levels(two_rules(), LEVELS)
    assert found["points"].dims == ("algorithm", "problem", "level", "seed")
    points = found["points"].isel(seed=0, problem=0)
    assert points.sel(algorithm="slow").values.tolist() == [1, 100, np.inf, np.inf]
    assert points.sel(algorithm="fast").values.tolist() == [1, 10, 100, np.inf]
    assert (found["d"] == 2).all() and (found["n"] == 100).all()
    for name in (*found, "mmd", "level", "d", "n"):
        assert found[name].attrs["long_name"], name


def test_each_cell_is_a_problem_with_51_levels_from_the_largest_to_the_smallest_median():
    curves = two_rules(lengthscales=(0.5, 1.0))
    curves["mmd"].loc[{"lengthscale": 1.0}] *= 3
    curves["mmd"].loc[{"seed": 0}] *= 1.5  # does not change medians
    found = profiles.points_to_levels(curves)
    assert found["problem"].values.tolist() == ["chen2010_mixture, 0.5", "chen2010_mixture, 1"]
    assert found["lengthscale"].values.tolist() == [0.5, 1.0]
    expected = np.geomspace(1, 0.01, 51)
    np.testing.assert_allclose(found["mmd"], [expected, 3 * expected], rtol=1e-12)
    assert np.isinf(found["points"].sel(seed=0, level=51)).all()
    fast = found["points"].sel(seed=1, algorithm="fast")
    assert (fast.sel(level=1) == 1).all() and (fast.sel(level=51) == 100).all()


def test_failed_trials_reach_nothing_missing_ones_are_left_out_and_both_are_told():
    curves = two_rules()
    curves["status"].loc[{"algorithm": "slow", "seed": [0, 1]}] = FAILED
    curves["status"].loc[{"algorithm": "fast", "seed": 2}] = MISSING
    found = profiles.points_to_levels(curves, LEVELS)
    assert np.isinf(found["points"].sel(algorithm="slow", seed=[0, 1])).all()
    assert np.isnan(found["points"].sel(algorithm="fast", seed=2)).all()
    assert found["failed"].squeeze().values.tolist() == [2, 0]
    assert found["missing"].squeeze().values.tolist() == [0, 1]
    assert found["tried"].squeeze().values.tolist() == [6, 5]
    told = profiles.profile(curves, LEVELS, budgets=[0.5, 5, 50])
    # slow: 4 of 6 seeds solve one of 4 levels with 1 point, and another with 100.
    expected = [[4 / 24, 4 / 24, 8 / 24], [5 / 20, 10 / 20, 15 / 20]]
    np.testing.assert_allclose(told["data_profile"], expected)
    np.testing.assert_allclose(told["solved"], [8 / 24, 15 / 20])
    assert told["average_runtime"].squeeze().values[0].tolist() == [51, 150, np.inf, np.inf]
    assert profiles.remarks(told) == [
        "Trials that failed, and count as unsolved: 2.",
        "Trials that are missing, and are left out: 1.",
    ]
    assert profiles.remarks(profiles.profile(two_rules(), LEVELS)) == []


def test_the_performance_profile_compares_average_runtimes():
    found = profiles.profile(two_rules(), LEVELS, factors=[1, 9, 10])
    # Level 1: both; 0.1: 100 against 10 points; 0.01: one alone; 0.001: nobody.
    expected = [[0.25, 0.25, 0.5], [0.75, 0.75, 0.75]]
    np.testing.assert_array_equal(found["performance_profile"], expected)
    assert found["factor"].values.tolist() == [1, 9, 10]
    assert profiles.profile(two_rules())["factor"].values[[0, -1]].tolist() == [1, 100]
    assert profiles.profile(two_rules())["budget"].values[[0, -1]].tolist() == [0.5, 50]


def test_pairs_of_rules_win_tie_and_lose():
    found = profiles.versus(two_rules(), LEVELS)
    pair = found.sel(algorithm="fast", rival="slow")
    shares = [float(pair[name]) for name in ("wins", "ties", "losses", "neither")]
    assert shares == [0.5, 0.25, 0, 0.25]
    assert float(pair["ratio"]) == pytest.approx(0.1) == pytest.approx(float(pair["ratio_low"]))
    assert int(pair["problems"]) == 1
    assert profiles.by_wins(found) == ["fast", "slow"]


def test_named_problems_have_their_own_levels_and_points():
    found = profiles.points_to_levels(with_problems(two_rules(), n=(100, 15)))
    assert found["problem"].values.tolist() == ["a", "b"]
    assert found["mmd"].values.tolist() == [LEVELS, [0.5, 0.2, 0.1, 0.05]]
    assert found["n"].values.tolist() == [100, 15]
    fast = found["points"].sel(algorithm="fast", problem="b", seed=0)
    assert fast.values.tolist() == [2, 5, 10, np.inf]  # 20 points are more than the problem has
    other = profiles.points_to_levels(with_problems(two_rules()), {"b": [0.5], "a": [0.1]})
    assert other["mmd"].values.tolist() == [[0.1], [0.5]]


def test_what_does_not_apply_is_unsolved_in_profiles_and_left_out_of_pairs():
    curves = with_problems(two_rules())
    curves["status"].loc[{"algorithm": "slow", "target": "b"}] = profiles.DOES_NOT_APPLY
    found = profiles.profile(curves)
    assert found["inapplicable"].values.tolist() == [[0, 6], [0, 0]]
    assert found["solved"].values.tolist() == [0.25, 0.875]
    assert profiles.remarks(found) == [
        "Problems to which an algorithm does not apply, and which count as unsolved: slow to 1."
    ]
    pairs = profiles.versus(curves)
    assert pairs["problems"].values.tolist() == [[0, 1], [1, 0]]
    assert pairs["wins"].sel(algorithm="fast", rival="slow") == 0.5
    assert profiles.remarks(pairs) == [
        "Problems to which an algorithm does not apply, and which are left out: slow to 1."
    ]


def test_problems_that_an_algorithm_was_not_run_on_are_left_out_for_all():
    curves = with_problems(two_rules())
    curves["status"].loc[{"algorithm": "slow", "target": "b"}] = MISSING
    found = profiles.profile(curves)
    assert found["problem"].values.tolist() == ["a"]
    assert profiles.remarks(found) == [
        "Problems on which some algorithm was not run, and left out for all: b."
    ]
    assert profiles.versus(curves)["problem"].values.tolist() == ["a"]
    curves["status"].loc[{"algorithm": "fast", "target": "a"}] = MISSING
    with pytest.raises(ValueError, match="no problem on which all algorithms were run"):
        profiles.profile(curves)


@pytest.mark.parametrize("name", ["budgets", "factors"])
def test_a_budget_or_factor_is_a_number(name):
    with pytest.raises(ValueError, match="a budget or a factor is NaN"):
        profiles.profile(two_rules(), LEVELS, **{name: [1.0, np.nan]})
    assert profiles.profile(two_rules(), LEVELS, budgets=5).sizes["budget"] == 1


def test_the_budgets_have_the_powers_of_ten_themselves():
    found = profiles.profile(two_rules(), LEVELS)
    for budget in (1, 10):
        exact = profiles.profile(two_rules(), LEVELS, budgets=[budget])["data_profile"]
        ours = found["data_profile"].sel(budget=budget)
        assert ours.values.tolist() == exact.isel(budget=0).values.tolist()


def test_a_shorter_sweep_that_was_merged_limits_the_points_of_its_problem():
    curves = two_rules(lengthscales=(0.5, 1.0))
    short = {"algorithm": "slow", "lengthscale": 1.0}
    curves["mmd"].loc[short | {"n": slice(31, None)}] = np.nan
    ended = profiles.points_to_levels(curves, LEVELS)
    assert ended["n"].values.tolist() == [100, 100]  # float64 ends it: the others go on
    curves.attrs["merged_from"] = json.dumps([{"n": 30}, {"n": 100}])
    found = profiles.points_to_levels(curves, LEVELS)
    assert found["n"].values.tolist() == [100, 30]
    fast = found["points"].sel(algorithm="fast", seed=0).values.tolist()
    assert fast == [[1, 10, 100, np.inf], [1, 10, np.inf, np.inf]]


def test_seconds_take_the_place_of_points():
    curves = two_rules()
    curves["status"].loc[{"algorithm": "fast", "seed": 0}] = FAILED
    seconds = xr.full_like(curves["status"], 2.0, dtype=float).isel(target=0)
    seconds.loc[{"algorithm": "slow"}] = 1.0
    seconds.loc[{"algorithm": "slow", "seed": 5}] = np.nan
    seconds.loc[{"algorithm": "fast", "seed": 0}] = np.nan
    found = profiles.profile(curves, LEVELS, budgets=[1, 2], seconds=seconds)
    assert found.attrs["of"] == "seconds"
    # slow: 5 seeds of which the time is known reach 2 of 4 levels; fast: 5 of 6 reach 3.
    np.testing.assert_allclose(found["data_profile"], [[0.5, 0.5], [0, 15 / 24]])
    average = found["average_runtime"].squeeze().values
    np.testing.assert_allclose(average, [[1, 1, np.inf, np.inf], [2.4, 2.4, 2.4, np.inf]])
    pair = profiles.versus(curves, LEVELS, seconds=seconds).sel(algorithm="slow", rival="fast")
    assert pair["wins"] == 0.5
    assert pair["ratio"] == 0  # in the seed that failed; 1/2 in the others


def test_seconds_are_a_dataarray_of_positive_numbers_for_all_trials():
    curves = two_rules()
    seconds = xr.full_like(curves["status"], 2.0, dtype=float)
    for found in (profiles.profile, profiles.versus):
        for wrong in (3.0, seconds.values, seconds.expand_dims("n")):
            with pytest.raises(TypeError, match=r"take what curves.bq.seconds\(results\) gives"):
                found(curves, LEVELS, seconds=wrong)
        for value in (0.0, -1.0, np.inf):
            with pytest.raises(ValueError, match="seconds must be positive numbers, or NaN"):
                found(curves, LEVELS, seconds=seconds.where(seconds["seed"] > 0, value))
        with pytest.raises(ValueError, match="seconds lack some trials"):
            found(curves, LEVELS, seconds=seconds.isel(seed=[0, 1]))


def test_problems_without_a_curve_are_left_out_and_named():
    curves = two_rules(lengthscales=(0.5, 1.0))
    curves["status"].loc[{"lengthscale": 1.0}] = FAILED
    found = profiles.profile(curves)
    assert found["problem"].values.tolist() == ["chen2010_mixture, 0.5"]
    assert profiles.remarks(found) == [
        "Problems without a trial that succeeded, and left out: chen2010_mixture, 1."
    ]
    curves["status"][:] = FAILED
    nothing = profiles.profile(curves)
    assert nothing.sizes["problem"] == 0 and np.isnan(nothing["data_profile"]).all()
    assert np.isnan(profiles.versus(curves)["wins"]).all()


def test_levels_must_be_as_many_positive_numbers_for_each_problem():
    curves = with_problems(two_rules())
    with pytest.raises(ValueError, match="levels lack the problem b; the problems are a, b"):
        profiles.points_to_levels(curves, {"a": [0.1]})
    with pytest.raises(ValueError, match="have 1 and 2 levels; each must have as many"):
        profiles.points_to_levels(curves, {"a": [0.1], "b": [0.1, 0.2]})
    with pytest.raises(ValueError, match="a level is not a positive number"):
        profiles.points_to_levels(curves, [0.1, 0.0])


def test_sets_reach_levels_at_their_sizes(tmp_path):
    text = paper_sweep.SWEEP.replace("1500", "60").replace("120", "12")
    text = text.replace("[10, 12], ", "").replace("[20, 12]", "[2, 12]")
    text = text.replace("herding_bq", "joint").replace("seeds: 5", "seeds: 2\nsizes: [4, 12]")
    curves = paper_sweep.run(tmp_path, text)
    found = profiles.points_to_levels(curves)
    points = found["points"].sel(algorithm="joint").values
    assert set(points[np.isfinite(points)].tolist()) == {4.0, 12.0}
    assert found["d"].values.tolist() == [2]
    one = curves.sel(algorithm="sbq", seed=0, lengthscale=0.5)
    assert profiles.points_to_levels(one)["d"].values.tolist() == [2]
