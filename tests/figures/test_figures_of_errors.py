"""Figures of errors and of the sum of the weights, and what is computed for them."""

import numpy as np
import paper_sweep
import pytest
import xarray as xr
from drawn import lines, titles, words

from bqlib import published
from bqlib.analysis import function_errors, paper
from bqlib.figures.error_bound import error_bound
from bqlib.figures.out_of_model import out_of_model
from bqlib.figures.weight_sum import weight_sum
from bqlib.figures.within_model import within_model
from bqlib.schema import FAILED, MISSING

SWEEP = """
name: errors
targets: [chen2010_mixture]
kernels:
  eq_density: {family: exponentiated_quadratic, scale: density}
lengthscales: [1, 0.5]
algorithms: [iid, herding, herding_bq, sbq]
candidates: {size: 300}
integrands:
  within: {family: rkhs_ball, functions: 20, centre_variance: 3}
  smooth: {family: rough_bumps, functions: 20, narrowest: 0.5, widest: 2}
  a_rough_one: {family: rough_bumps, functions: 20, narrowest: 0.05, widest: 2}
n: 40
seeds: 3
rate_windows: [[10, 40]]
"""
CELL = {"target": "chen2010_mixture", "kernel": "eq_density", "lengthscale": 0.5}


@pytest.fixture(scope="module")
def curves(tmp_path_factory):
    return paper_sweep.run(tmp_path_factory.mktemp("errors"), SWEEP).compute()


@pytest.fixture(scope="module")
def errors(curves):
    return function_errors.function_errors(curves, functions=4, seed=1)


def elsewhere(curves):
    """The same curves at length-scales that are not the paper's."""
    return curves.assign_coords(lengthscale=[1.0, 0.6])


# --- Errors of single functions


def test_single_functions_are_those_that_the_errors_are_means_of(curves):
    every = function_errors.function_errors(curves, functions=100, seed=1)
    assert dict(every.sizes) == {"algorithm": 4, "function": 20, "n": 40}
    assert {name: every[name].item() for name in CELL} == CELL
    own = curves.sel(CELL | {"seed": 1, "integrand": "within"})
    xr.testing.assert_allclose(
        every["error"].mean("function").drop_vars([*CELL, "seed", "integrand"]),
        own["error"].drop_vars([*CELL, "seed", "integrand"]),
        rtol=1e-9,
    )
    np.testing.assert_array_equal(every["mmd"], own["mmd"])
    ratios = (every["error"] / every["mmd"]).max("function")
    np.testing.assert_allclose(ratios, own["bound_ratio"], rtol=1e-9)


def test_single_functions_of_a_sweep_without_the_papers_cell_are_of_its_first(curves):
    others = elsewhere(curves).isel(lengthscale=[0])
    found = function_errors.function_errors(others, functions=2)
    assert found["lengthscale"] == 1.0


def test_functions_end_with_the_points(curves):
    short = curves.copy(deep=True)
    short["points"].loc[{"algorithm": "sbq", "n": slice(31, None)}] = np.nan
    short["points"].loc[{"algorithm": "iid"}] = np.nan
    found = function_errors.function_errors(short, functions=2)
    finite = np.isfinite(found["error"]).sum("n").transpose("algorithm", "function").values
    assert finite.tolist() == [[0, 0], [40, 40], [40, 40], [30, 30]]


# --- Beside the published curves


def test_ratios_compare_a_sweep_with_the_published_curves(curves):
    n = 400
    of = {"mmd": ("mmd", 1.1), "weight_sum": ("weight_sum", 0.9), "within_model": ("error", 1.2)}
    longer = curves.reindex(n=np.arange(1, n + 1))
    for quantity, (name, factor) in of.items():
        for algorithm, (at, value) in published.curves(quantity).items():
            place = CELL | {"algorithm": algorithm, "n": at[at <= n]}
            shape = (1, -1, 1) if name == "error" else (1, -1)
            spread = np.array([0.8, 1.0, 1.25]).reshape(3, *shape[1:])
            longer[name].loc[place] = spread * factor * value[at <= n].reshape(shape)
    longer["mmd"].loc[CELL | {"algorithm": "sbq", "n": [1, 7]}] *= 1.5  # n = 1 is not compared
    found = paper.against_published(longer)
    np.testing.assert_allclose(found["ratio"].sel(quantity="within_model"), 1.2)
    np.testing.assert_allclose(
        found["rms_log_difference"].sel(quantity="within_model"), np.log(1.2)
    )
    assert found["ratio"].sel(quantity="weight_sum", algorithm="herding_bq") == pytest.approx(0.9)
    assert np.isnan(found["ratio"].sel(quantity="weight_sum", algorithm="sbq"))
    mmd = found.sel(quantity="mmd", algorithm="sbq")
    assert (mmd["ratio"], mmd["ratio_n"]) == (pytest.approx(1.65), 7)
    sizes = len(published.curves("mmd")["sbq"][0]) - 1
    logs = np.log([1.65] + [1.1] * (sizes - 1))
    assert mmd["rms_log_difference"] == pytest.approx(np.sqrt(np.mean(logs**2)))


def test_failed_seeds_do_not_count_against_the_published_curves(curves):
    marred = curves.copy(deep=True)
    marred["status"].loc[{"seed": 2}] = FAILED
    marred["mmd"].loc[{"seed": 2}] = 1e6
    found = paper.against_published(marred)
    expected = paper.against_published(curves.sel(seed=[0, 1]))
    xr.testing.assert_allclose(found, expected)


def test_other_settings_have_no_published_curves(curves):
    with pytest.raises(ValueError, match="no cell of this sweep"):
        paper.against_published(elsewhere(curves))


# --- Figures


def test_errors_within_the_model_have_the_published_curves_behind_them_twice(curves):
    figure = within_model(curves)
    assert titles(figure) == ["length-scale 1", "length-scale 0.5"]
    other, paper = figure.axes
    assert not lines(other, "published") and not lines(other, "printed")
    shifted, printed = lines(paper, "published"), lines(paper, "printed")
    assert set(shifted) == set(printed) == {"iid", "herding", "herding_bq", "sbq"}
    n, value = published.curves("within_model")["sbq"]
    np.testing.assert_array_equal(shifted["sbq"].get_xdata(), n[n <= 40])
    np.testing.assert_array_equal(printed["sbq"].get_xdata(), (n - 29)[n - 29 <= 40])
    np.testing.assert_array_equal(printed["sbq"].get_ydata(), value[n - 29 <= 40])
    assert "Solid: with n + 29" in words(figure)
    own = curves["error"].sel(CELL | {"integrand": "within", "algorithm": "sbq"}).median("seed")
    x, y = lines(paper, "median")["sbq"].get_data()
    np.testing.assert_array_equal(y, own.sel(n=x))
    figure.draw_without_rendering()


def test_errors_outside_the_model_stand_beside_the_weights(curves):
    figure = out_of_model(curves)
    assert titles(figure) == [
        f"length-scale {scale}\n{what}"
        for scale in ("1", "0.5")
        for what in ("smooth: widths 0.5 to 2", "a rough one: widths 0.05 to 2", "weights")
    ]
    top, (smooth, rough, weights) = figure.axes[:3], figure.axes[3:]
    assert not any(lines(axes, "published") for axes in [*top, weights])
    for axes, label in ((smooth, "smooth"), (rough, "a_rough_one")):
        ratios = []
        for algorithm, line in lines(axes, "published").items():
            n, value = published.curves("out_of_model")[algorithm]
            inside = n + 29 <= 40
            np.testing.assert_array_equal(line.get_xdata(), (n + 29)[inside])
            ratios += list(line.get_ydata() / value[inside])
            own = curves["error"].sel(CELL | {"integrand": label, "algorithm": algorithm})
            x, y = lines(axes, "median")[algorithm].get_data()
            np.testing.assert_array_equal(y, own.median("seed").sel(n=x))
        np.testing.assert_allclose(ratios, ratios[0])  # one factor for all four
    own = curves["weight_l1"].sel(CELL | {"algorithm": "sbq"}).median("seed")
    x, y = lines(weights, "median")["sbq"].get_data()
    np.testing.assert_array_equal(y, own.sel(n=x))
    figure.draw_without_rendering()


def test_the_sum_of_weights_is_of_bq_weights_alone(curves):
    figure = weight_sum(curves)
    left, right = figure.axes
    assert titles(figure)[0] == "length-scale 0.5"
    assert set(lines(left, "median")) == {"herding_bq", "sbq"}
    (crosses,) = lines(left, "published").values()
    n, value = published.curves("weight_sum")["herding_bq"]
    np.testing.assert_array_equal(crosses.get_ydata(), value[n <= 40])
    names = [text.get_text() for text in right.texts if text.get_gid() == "name"]
    assert names == ["1", "0.5"]
    figure.draw_without_rendering()
    assert titles(weight_sum(elsewhere(curves)))[0] == "length-scale 1"


def test_errors_stay_below_the_bound_that_is_drawn(curves, errors):
    figure = error_bound(curves, errors)
    assert titles(figure) == ["i.i.d.", "herding", "herding, BQ weights", "SBQ"]
    for axes, algorithm in zip(figure.axes, errors["algorithm"].values, strict=True):
        (bound,) = lines(axes, "bound").values()
        single = [line for line in axes.lines if line.get_gid() is None]
        assert len(single) == 4
        assert all((line.get_ydata() < bound.get_ydata()).all() for line in single)
        ratio = curves["bound_ratio"].sel(CELL | {"integrand": "within", "algorithm": algorithm})
        assert f"largest error: {float(ratio.max()):.2f} of its bound" in {
            text.get_text() for text in axes.texts
        }
    assert set(lines(figure.axes[3], "published")) == {"sbq"}
    assert "square of the MMD" in words(figure) and "seed 1" in words(figure)
    figure.draw_without_rendering()


@pytest.mark.parametrize("draw", [within_model, out_of_model, weight_sum, error_bound])
def test_missing_and_failed_trials_leave_gaps_and_no_claim(curves, draw):
    gone = curves.copy(deep=True)
    gone["status"].loc[{"algorithm": "sbq"}] = MISSING
    gone["status"].loc[{"algorithm": "herding_bq", "seed": 0}] = FAILED
    for name in gone.data_vars:
        if gone[name].dtype == float:
            gone[name] = gone[name].where(gone["status"] == 1)
    more = [function_errors.function_errors(gone)] if draw is error_bound else []
    figure = draw(gone, *more)
    figure.draw_without_rendering()
    if draw is error_bound:
        assert [text.get_text() for text in figure.axes[3].texts] == [""]
    else:
        assert "SBQ: 3 of 3 seeds missing" in words(figure)
        assert "herding, BQ weights: 1 of 3 seeds failed" in " ".join(words(figure).split())


def test_nothing_is_said_of_published_curves_elsewhere(curves):
    others = elsewhere(curves)
    errors = function_errors.function_errors(others, functions=1)
    for figure in (
        within_model(others), out_of_model(others), weight_sum(others), error_bound(others, errors)
    ):  # fmt: skip
        assert "ublished" not in words(figure)
