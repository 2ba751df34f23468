"""Profiles of rules over problems, and the matrix of their pairs."""

import json

import numpy as np
import pytest
import xarray as xr
from drawn import legend, lines, titles
from matplotlib.patches import Rectangle
from synthetic_sweep import power_curves, sweep

import bqlib.access.accessor  # noqa: F401
from bqlib.analysis import profiles
from bqlib.figures import profile, style, versus
from bqlib.figures.mmd import mmd
from bqlib.schema import DOES_NOT_APPLY, FAILED, OF_PROBLEM

RATES = {"iid": 0.5, "herding": 1.0, "sbq": 1.5}


@pytest.fixture(scope="module")
def results():
    own = {name: power_curves(rate, n=60, rng=i) for i, (name, rate) in enumerate(RATES.items())}
    return sweep(own, lengthscales=(0.5, 1.0))


def many(count):
    own = {f"rule_{i}": power_curves(0.3 + i / 20, n=40, seeds=2, rng=i) for i in range(count)}
    return sweep(own)


def names(axes):
    """Text to height of the names beside the ends of lines."""
    found = [text for text in axes.texts if text.get_gid().startswith("name ")]
    return {text.get_text(): text.xyann[1] for text in found}


def test_lines_are_the_profiles(results):
    found = profiles.profile(results)
    figure = profile.profile(results)
    left, right = figure.axes
    for axes, name, dim in (
        (left, "data_profile", "budget"),
        (right, "performance_profile", "factor"),
    ):
        drawn = lines(axes, name)
        assert list(drawn) == list(RATES)
        for algorithm, line in drawn.items():
            np.testing.assert_array_equal(line.get_xdata(), found[dim])
            np.testing.assert_array_equal(line.get_ydata(), found[name].sel(algorithm=algorithm))
            assert line.get_drawstyle() == "steps-post"
            assert line.get_color() == style.line_styles(list(RATES))[algorithm]["color"]
        assert axes.get_xscale() == "log"
        assert list(names(axes)) == ["SBQ", "herding", "i.i.d."]
    assert left.get_xlabel() == "points for each dimension, n/d"
    assert "of 2 problems with 51 levels" in legend(figure) and "Grey" not in legend(figure)


def test_of_many_rules_the_best_are_strong_and_all_have_names_that_do_not_overlap():
    dataset = many(25)
    figure = profile.profile(dataset)
    for axes, name in zip(figure.axes, ("data_profile", "performance_profile"), strict=True):
        grey = {a for a, x in lines(axes, name).items() if x.get_color() == profile.GREY["color"]}
        assert grey == {f"rule_{i}" for i in range(17)}
        heights = np.array(list(names(axes).values()))
        assert len(heights) == 25 and (np.diff(heights) < -profile.GAP + 1e-9).all()
        assert heights.min() >= 0
    assert "Grey: all but the 8 with the largest area" in legend(figure)
    figure = dataset.bq.plot.profile(highlight=["rule_3"])
    drawn = lines(figure.axes[0], "data_profile")
    assert [a for a, x in drawn.items() if x.get_color() != profile.GREY["color"]] == ["rule_3"]
    assert "Grey: the other algorithms." in legend(figure)
    with pytest.raises(ValueError, match="highlight has sbq; the algorithms are rule_0"):
        dataset.bq.plot.profile(highlight=["sbq"])


def test_beyond_thirty_rules_only_strong_lines_have_names():
    figure = profile.profile(many(31))
    assert [len(names(axes)) for axes in figure.axes] == [8, 8]


@pytest.mark.parametrize(
    "ends, expected",
    [
        ([0.9, 0.5, 0.1], [0.9, 0.5, 0.1]),
        ([0.5, 0.5], [0.5 + profile.GAP / 2, 0.5 - profile.GAP / 2]),
        ([0.0, 0.0], [profile.GAP, 0.0]),
        ([], []),
    ],
)
def test_names_move_apart_as_little_as_they_must(ends, expected):
    np.testing.assert_allclose(profile._apart(np.array(ends)), expected, atol=1e-12)


def test_failed_trials_and_seconds_are_told(results):
    dataset = results.copy(deep=True)
    dataset["status"].loc[{"algorithm": "iid", "seed": 0}] = FAILED
    seconds = dataset["status"].astype(float)
    figure = dataset.bq.plot.profile(seconds=seconds)
    assert figure.axes[0].get_xlabel() == "seconds"
    assert "Trials that failed, and count as unsolved: 2." in legend(figure)
    assert "Trials that failed" in legend(dataset.bq.plot.versus())


def test_the_matrix_has_the_rule_with_the_most_wins_first(results):
    found = profiles.versus(results)
    figure = versus.versus(results)
    axes = figure.axes[0]
    order = ["sbq", "herding", "iid"]
    labels = [text.get_text() for text in axes.get_yticklabels()]
    assert labels == ["SBQ", "herding", "i.i.d."]
    wins = found["wins"].sel(algorithm=order, rival=order).values
    lead = wins - found["losses"].sel(algorithm=order, rival=order).values
    np.testing.assert_array_equal(axes.images[0].get_array().filled(np.nan), lead)
    texts = np.array([text.get_text() for text in axes.texts]).reshape(3, 3)
    assert texts[0, 1] == f"{100 * wins[0, 1]:.0f}" and texts[1, 1] == ""
    for count, numbers in ((versus.MOST_WITH_NUMBERS, True), (versus.MOST_WITH_NUMBERS + 1, False)):
        axes = versus.versus(many(count)).axes[0]
        assert bool(axes.texts) == numbers
        assert axes.get_anchor() == "N"  # below are the labels of the columns


def test_the_matrix_of_ratios_frames_what_is_not_certain(results):
    dataset = results.copy(deep=True)
    twin = dataset["mmd"].sel(algorithm="herding").values
    dataset["mmd"].loc[{"algorithm": "iid"}] = np.roll(twin, 1, axis=3)  # other seeds
    axes = dataset.bq.plot.versus(kind="ratio").axes[0]
    framed = [patch.get_xy() for patch in axes.patches if isinstance(patch, Rectangle)]
    assert sorted(framed) == [(0.55, 1.55), (1.55, 0.55)]  # herding and iid
    texts = np.array([text.get_text() for text in axes.texts]).reshape(3, 3)
    ratio = profiles.versus(dataset)["ratio"].sel(algorithm="herding", rival="sbq")
    assert texts[1, 0] in (f"{float(ratio):.2g}", f"{float(ratio):.0f}", "inf")
    with pytest.raises(ValueError, match='kind is "points"; it must be one of wins, ratio'):
        dataset.bq.plot.versus(kind="points")


def test_where_nothing_was_reached_the_figures_are_empty(results):
    dataset = results.copy(deep=True)
    dataset["status"][:] = FAILED
    assert not names(profile.profile(dataset).axes[0])
    assert all(text.get_text() == "" for text in versus.versus(dataset).axes[0].texts)
    assert len(dataset.bq.plot.versus(kind="ratio").axes) == 2


@pytest.fixture(scope="module")
def of_problems(results):
    found = results.isel(lengthscale=[0]).assign_coords(kernel=[OF_PROBLEM], lengthscale=[1.0])
    both = xr.concat([found.assign_coords(target=[name]) for name in ("one", "other")], "target")
    lost = (both["target"] == "other") & (both["algorithm"] == "iid")
    status = both["status"].where(~lost, DOES_NOT_APPLY).transpose(*both["status"].dims)
    mmd = both["mmd"].where(~lost).transpose(*both["mmd"].dims)
    config = json.loads(both.attrs["config"])
    settings = {"kernel": next(iter(config["kernels"].values())), "n": 60}
    config |= {
        "kernels": {OF_PROBLEM: {}},
        "targets": dict.fromkeys(("one", "other"), next(iter(config["targets"].values()))),
        "problems": {"one": settings, "other": settings},
    }
    return both.assign(status=status, mmd=mmd).assign_attrs(config=json.dumps(config))


def test_panels_have_the_names_of_problems_and_say_nothing_of_rules_that_do_not_apply(of_problems):
    figure = mmd(of_problems)
    assert titles(figure) == ["one", "other"]
    assert "A rule has no curve on a problem on which it cannot work." in legend(figure)
    first, second = figure.axes[:2]
    assert set(lines(first, "median")) == set(RATES)
    assert set(lines(second, "median")) == {"herding", "sbq"}


def test_maps_of_problems_have_a_column_for_each_rule_and_a_row_for_each_problem(of_problems):
    axes, *_ = of_problems.bq.plot.heatmap("error", n=20).axes
    assert [text.get_text() for text in axes.get_xticklabels()] == ["i.i.d.", "herding", "SBQ"]
    assert [text.get_text() for text in axes.get_yticklabels()] == ["one", "other"]
    assert "does not apply" in {" ".join(text.get_text().split()) for text in axes.texts}
