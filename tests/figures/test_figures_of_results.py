"""Curves and heat maps of any results."""

import numpy as np
import pytest
import xarray as xr
from drawn import lines, titles
from synthetic_sweep import PAPER, power_curves, sweep

from bqlib.analysis import fits
from bqlib.figures import style
from bqlib.figures.curves import curves
from bqlib.figures.heatmap import heatmap
from bqlib.figures.rate_map import rate_map
from bqlib.schema import FAILED

N = np.arange(1.0, 101)
RATES = {"iid": 0.5, "herding": 1.0, "sbq": 1.5}
NAMES = ("i.i.d.", "herding", "SBQ")
KERNELS = {"kernels": {name: PAPER["kernels"]["eq"] for name in ("k", "l")}}
TWO = {"targets": {name: PAPER["targets"]["chen2010_mixture"] for name in ("one", "two")}}


@pytest.fixture
def results():
    own = {"iid": power_curves(0.5, n=100, rng=1), "sbq": power_curves(1.5, n=100, rng=2)}
    return sweep(own, lengthscales=(0.25, 0.5, 1.0), windows=((10, 100),), **TWO)


def texts(axes):
    return [text.get_text().replace("\n", " ") for text in axes.texts]


# --- Curves


def test_panels_by_default_have_rows_of_targets_and_columns_of_lengthscales(results):
    figure = curves(results)
    assert titles(figure)[:4] == [
        "one, length-scale 0.25", "one, length-scale 0.5", "one, length-scale 1",
        "two, length-scale 0.25",
    ]  # fmt: skip
    for axes in figure.axes:
        assert axes.get_yscale() == "log" and list(lines(axes, "median")) == ["iid", "sbq"]
    line = lines(figure.axes[0], "median")["sbq"]
    own = results["mmd"].sel(target="one", lengthscale=0.25, algorithm="sbq").squeeze()
    np.testing.assert_array_equal(line.get_ydata(), own.median("seed").sel(n=line.get_xdata()))
    assert line.get_color() == style.line_styles(["sbq"])["sbq"]["color"]


@pytest.mark.parametrize(
    "rows, columns, expected",
    [
        ("algorithm", "target", ["i.i.d., one", "i.i.d., two", "SBQ, one", "SBQ, two"]),
        (None, "seed", [f"seed {i}" for i in range(10)]),
        ("target", None, ["one", "two"]),
    ],
)
def test_any_dimension_may_have_the_panels(results, rows, columns, expected):
    part = results.sel(lengthscale=0.5)
    if "target" not in (rows, columns):
        part = part.sel(target="one")
    figure = curves(part, rows=rows, columns=columns)
    assert titles(figure) == expected
    if rows == "algorithm":
        drawn = [name for axes in figure.axes for name in lines(axes, "median")]
        assert drawn == ["iid", "iid", "sbq", "sbq"]


def width_of_titles(figure):
    """The largest part of the room up to the next panel, or to the edge, that a title takes."""
    figure.draw_without_rendering()
    drawn = [axes for axes in figure.axes if axes.axison and axes.get_title(loc="left")]
    boxes = [axes.get_window_extent() for axes in drawn]
    parts = []
    for axes, box in zip(drawn, boxes, strict=True):
        own = axes._left_title.get_window_extent()
        right = [other.x0 for other in boxes if other.x0 > box.x1] + [figure.bbox.x1]
        parts.append(own.width / (min(right) - own.x0))
    return max(parts)


def test_a_title_too_long_for_its_panel_has_two_lines_in_all_panels(results):
    bq = results.sel(target="one").assign_coords(algorithm=["iid", "herding_bq"])
    figure = curves(bq, rows="algorithm")
    assert titles(figure)[2:4] == [
        "i.i.d.\nlength-scale 1",
        "herding, BQ weights\nlength-scale 0.25",
    ]
    assert width_of_titles(figure) < 1


LONG = {"chen2010_mixture": 0, "a_mixture_of_many_gaussians": 0}


@pytest.fixture
def pools(results):
    two = results.sel(lengthscale=[0.5]).assign_coords(target=list(LONG))
    return xr.concat([two, two], "candidates").transpose("candidates", ...)


@pytest.mark.parametrize(
    "labels", [[1000, 10000], ["1000 inflated 2.0 fresh", "10000 target kept"]]
)
def test_titles_of_pools_do_not_run_into_each_other(pools, labels):
    figure = curves(pools.assign_coords(candidates=labels), columns="candidates")
    assert len(titles(figure)) == 4
    assert width_of_titles(figure) < 1


def test_titles_of_narrow_heat_maps_do_not_run_into_each_other():
    names = ("iid", "herding", "herding_bq", "sbq", "sbq_nonnegative")
    own = {name: power_curves(1.0, n=40, seeds=5, rng=1) for name in names}
    targets = {"targets": dict.fromkeys(LONG, TWO["targets"]["one"])}
    found = sweep(own, lengthscales=(0.5, 1.0), windows=((5, 40),), **targets, **KERNELS)
    figure = rate_map(fits.fit_rates(found))
    assert titles(figure)[:3] == ["k\ni.i.d.", "k\nherding", "k\nherding, BQ\nweights"]
    assert width_of_titles(figure) < 1


def test_a_dimension_without_a_place_is_named(results):
    with pytest.raises(ValueError, match="target has several labels but neither rows nor columns"):
        curves(results, rows="lengthscale", columns="algorithm")


@pytest.mark.parametrize("wrong", ["n", "shape", "lengthscale"])
def test_rows_and_columns_must_be_two_dimensions_of_the_curves(results, wrong):
    said = f"rows is {wrong} and columns is lengthscale; they must be two different ones of target"
    with pytest.raises(ValueError, match=said):
        curves(results, rows=wrong, columns="lengthscale")


def test_a_quantity_without_curves_is_refused(results):
    with pytest.raises(ValueError, match="status has one value for all n"):
        curves(results, "status")


def test_failed_seeds_are_said(results):
    results["status"].loc[{"target": "one", "lengthscale": 0.5, "algorithm": "sbq", "seed": 3}] = (
        FAILED
    )
    figure = curves(results.sel(target="one"))
    assert [" ".join(texts(axes)) for axes in figure.axes] == [
        "",
        "SBQ: 1 of 10 seeds failed",
        "",
    ]


# --- Heat maps


def test_white_cells_have_frames_and_their_words_fit():
    own = {name: power_curves(0.5, n=40, rng=1) for name in ("iid", "a_rule_with_a_very_long_name")}
    found = sweep(own, lengthscales=(0.25, 0.5, 1.0), windows=((5, 40),))
    (axes, _) = (figure := heatmap(found, "points", error=1e-9)).axes
    frames = [patch for patch in axes.patches if patch.get_gid() == "empty"]
    assert len(frames) == len(axes.texts) == 6
    figure.draw_without_rendering()
    for text, frame in zip(axes.texts, frames, strict=True):
        assert text.get_text() == "not\nreached"
        own, around = text.get_window_extent(), frame.get_window_extent()
        assert around.x0 < own.x0 and own.x1 < around.x1
    full = heatmap(found, "error", n=40).axes[0]
    assert not [patch for patch in full.patches if patch.get_gid() == "empty"]


@pytest.mark.parametrize("all_of_them", [False, True])
def test_an_infinite_number_is_said_in_a_white_cell(results, all_of_them):
    part = results.sel(target=["one"])
    part["mmd"].loc[{} if all_of_them else {"algorithm": "sbq", "lengthscale": 0.5}] = np.inf
    axes = heatmap(part, "error", n=50).axes[0]
    assert texts(axes).count("inf") == (6 if all_of_them else 1)


def test_each_algorithm_has_a_panel_over_targets_and_lengthscales(results):
    results["status"].loc[{"target": "two", "lengthscale": 1.0, "algorithm": "sbq"}] = FAILED
    figure = heatmap(results, "error", n=50)
    assert titles(figure) == ["i.i.d.", "SBQ"]
    sbq = figure.axes[1]
    expected = (
        results["mmd"]
        .sel(n=50, algorithm="sbq", kernel="eq")
        .median("seed")
        .transpose("target", ...)
    )
    shown = sbq.images[0].get_array()
    np.testing.assert_array_equal(shown[:, :2], expected[:, :2])
    assert np.isnan(shown[1, 2]) or np.ma.getmaskarray(shown)[1, 2]
    assert texts(sbq)[-1] == "failed"
    assert [label.get_text() for label in sbq.get_xticklabels()] == ["0.25", "0.5", "1"]
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["one", "two"]
    assert figure.axes[-1].get_ylabel() == "MMD at n = 50"


@pytest.fixture
def grid():
    """Two targets, two kernels, three length-scales and three algorithms."""
    own = {name: power_curves(rate, n=60, seeds=2) for name, rate in RATES.items()}
    return sweep(own, lengthscales=(0.25, 0.5, 1.0), windows=((10, 60),), **TWO, **KERNELS)


def test_kernels_have_rows_and_algorithms_columns(grid):
    figure = heatmap(grid)
    assert titles(figure) == [f"{kernel}, {name}" for kernel in ("k", "l") for name in NAMES]
    assert [len(axes.images) for axes in figure.axes[:6]] == [1] * 6
    places = figure.axes[0].get_gridspec()
    assert (places.nrows, places.ncols) == (2, 3)
    for axes, rate in zip(figure.axes, list(RATES.values()) * 2, strict=False):
        np.testing.assert_allclose(axes.images[0].get_array(), rate, atol=0.15)


@pytest.mark.parametrize(
    "places, shape, first",
    [
        ({"rows": "algorithm"}, (3, 2), "i.i.d., k"),
        ({"columns": "kernel"}, (3, 2), "i.i.d., k"),
        ({"columns": "target"}, (2, 2), "k, one"),
        ({"y": "algorithm"}, (2, 2), "one, k"),
        ({"x": "kernel", "y": "lengthscale", "rows": "target"}, (2, 3), "one, i.i.d."),
        ({"x": "algorithm", "rows": "lengthscale"}, (3, 2), "length-scale 0.25, k"),
    ],
)
def test_rows_and_columns_of_maps_may_be_chosen(grid, places, shape, first):
    figure = heatmap(grid, "error", n=60, **places)
    found = figure.axes[0].get_gridspec()
    assert ((found.nrows, found.ncols), titles(figure)[0]) == (shape, first)
    assert len(titles(figure)) == np.prod(shape)


@pytest.mark.parametrize(
    "places",
    [
        {"rows": "kernel", "columns": "kernel"},
        {"y": "target", "rows": "target"},
        {"y": "target", "columns": "seed"},
        {"y": "target", "rows": "lengthscale"},
    ],
)
def test_wrong_rows_and_columns_of_maps_are_told_which_are_allowed(grid, places):
    said = "with lengthscale as x and target as y, they must be kernel and algorithm, in either"
    with pytest.raises(ValueError, match=said):
        heatmap(grid, "error", n=60, **places)


def test_a_chosen_row_is_not_folded(results):
    wide = heatmap(results.sel(target="one"), "error", n=9, y="kernel", columns="algorithm")
    assert wide.axes[0].get_gridspec().ncols == 2
    many = sweep({f"a{i}": power_curves(1, n=20, seeds=1) for i in range(9)}, **TWO)
    columns = [
        heatmap(many, "error", n=9, x="kernel", y="target", **chosen).axes[0].get_gridspec().ncols
        for chosen in ({}, {"rows": "lengthscale"}, {"columns": "lengthscale"})
    ]
    assert columns == [9, 9, 1]


def test_a_map_of_many_cells_has_its_numbers_the_way_round_that_leaves_room():
    own = {f"a{i}": power_curves(1, n=20, seeds=1) for i in range(7)}
    many = sweep(own, lengthscales=(0.125, 0.25, 0.5, 1.0, 2.0, 4.0), **TWO, **KERNELS)
    figure = heatmap(many, "error", n=20)
    assert titles(figure) == ["one, k", "one, l", "two, k", "two, l"]
    assert len(texts(figure.axes[0])) == 42
    bare = heatmap(many, "error", n=20, y="target")
    assert len(titles(bare)) == 14 and texts(bare.axes[0]) == []
    for drawn in (figure, bare):
        assert drawn.get_figheight() <= 10
        drawn.draw_without_rendering()


def test_rates_that_are_given_are_drawn(results):
    rates = fits.fit_rates(results, [(20, 100)])
    rates["rate"][:] = 3.0
    figure = heatmap(results, window=(20, 100), rates=rates)
    assert set(np.ravel(figure.axes[0].images[0].get_array())) == {3.0}
    with pytest.raises(ValueError, match="window 10-100 was not fitted"):
        heatmap(results, window=(10, 100), rates=rates)


def test_one_target_gives_one_panel_of_algorithms(results):
    figure = heatmap(results.sel(target="one"), "points", error=0.2)
    assert titles(figure) == []
    assert [label.get_text() for label in figure.axes[0].get_yticklabels()] == ["i.i.d.", "SBQ"]


def test_a_slope_that_is_not_a_rate_is_hatched_and_has_a_word():
    noise = np.exp(0.01 * np.random.default_rng(0).standard_normal((10, 100)))
    own = {"iid": noise / np.sqrt(N), "sbq": noise * np.exp(-np.sqrt(N))}
    found = fits.fit_rates(sweep(own, lengthscales=(0.5, 1.0), windows=((5, 100), (5, 300))))
    figure = rate_map(found)
    axes = figure.axes[0]
    assert texts(axes)[:2] == ["0.50", "0.50"] and texts(axes)[2].endswith("exp")
    hatched = [patch.get_xy() for patch in axes.patches if patch.get_gid() == "hatched"]
    assert hatched == [(-0.5, 0.5), (0.5, 0.5)]
    assert "not shown to be a power law" in figure.get_supxlabel().replace("\n", " ")
    assert " ".join(figure.axes[-1].get_ylabel().split()) == "rate a of n^-a, n = 5 to 100"


def test_cells_without_a_number_have_words(results):
    results["status"][:] = FAILED
    figure = heatmap(results)
    assert {word for axes in figure.axes[:2] for word in texts(axes)} == {"failed"}


def test_many_lengthscales_leave_the_numbers_out(results):
    many = sweep(
        {"sbq": power_curves(1, n=100)}, lengthscales=tuple(np.geomspace(0.1, 9, 30)), **TWO
    )
    many["status"][..., 3, :, :] = FAILED
    figure = heatmap(many, "error", n=100)
    assert texts(figure.axes[0]) == [] and figure.get_supxlabel() == "White: no number."
    assert len(figure.axes[0].get_xticklabels()) <= 12


@pytest.mark.parametrize(
    "kind, options, said",
    [
        ("error", {}, 'kind "error" needs the argument n'),
        ("points", {"n": 3}, 'kind "points" needs the argument error'),
        ("seconds", {"error": 0.1}, 'kind "seconds" needs the argument seconds'),
        ("exponent", {}, 'kind is "exponent"; it must be one of rate, error, points, seconds'),
        ("error", {"n": 3, "x": "seed"}, "x is seed and y is target; they must be two different"),
        ("error", {"n": 3, "y": "lengthscale"}, "x is lengthscale and y is lengthscale"),
    ],
)
def test_a_heat_map_says_what_it_needs(results, kind, options, said):
    with pytest.raises(ValueError, match=said):
        heatmap(results, kind, **options)


def test_a_heat_map_is_of_one_label_of_any_dimension_besides_the_sweeps(results):
    two = results.assign(mmd=results["mmd"].expand_dims(integrand=["a", "b"]))
    with pytest.raises(ValueError, match="select one label of any other dimension"):
        heatmap(two, "error", n=3)
    heatmap(two.sel(integrand="b"), "error", n=3).draw_without_rendering()


def test_seconds_are_drawn_where_the_error_is_reached(results):
    seconds = results["mmd"].isel(n=0, drop=True) * 0 + results["lengthscale"] * 4
    figure = heatmap(
        results.sel(target="one"), "seconds", error=0.1, seconds=seconds.sel(target=["one"])
    )
    assert texts(figure.axes[0]) == ["1", "2", "4", "1", "2", "4"]
    assert "seconds of trials of 100 points" in figure.axes[-1].get_ylabel().replace("\n", " ")
