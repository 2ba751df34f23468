import numpy as np
import pytest
from drawn import legend, lines, notes, titles
from synthetic_sweep import PAPER, power_curves, sweep

from bqlib.figures.mmd import mmd
from bqlib.schema import FAILED, MISSING, OK


@pytest.fixture(scope="module")
def curves():
    return {
        "iid": power_curves(0.5, n=100, rng=1),
        "herding": power_curves(0.9, n=100, rng=2),
        "sbq": power_curves(1.5, n=100, rng=3),
    }


def test_each_lengthscale_has_a_panel_with_medians_and_bands(curves):
    figure = mmd(sweep(curves, lengthscales=(0.25, 0.5, 1.0)))
    assert titles(figure) == ["length-scale 0.25", "length-scale 0.5", "length-scale 1"]
    for axes in figure.axes:
        assert axes.get_xscale() == axes.get_yscale() == "log"
        median = lines(axes, "median")
        assert list(median) == ["iid", "herding", "sbq"]
        x, y = median["sbq"].get_data()
        assert (x[0], x[-1]) == (1, 100)
        np.testing.assert_array_equal(y, np.median(curves["sbq"][:, x - 1], axis=0))
        band = axes.collections[2].get_paths()[0].vertices
        assert band[:, 1].min() == curves["sbq"][:, -1].min()
        assert notes(axes) == ""
    words = [text.get_text() for text in figure.legends[0].get_texts()]
    assert words == ["i.i.d.", "herding", "SBQ"]
    assert "median of 10 seeds" in legend(figure)


def test_the_published_curves_stand_only_behind_the_papers_panel(curves):
    figure = mmd(sweep(curves, lengthscales=(0.25, 0.5)))
    ours, paper = figure.axes
    assert lines(ours, "published") == {}
    assert set(lines(paper, "published")) == {"iid", "herding", "sbq"}
    thin, thick = lines(paper, "published")["sbq"], lines(paper, "median")["sbq"]
    assert thin.get_zorder() < thick.get_zorder() and thin.get_linewidth() < thick.get_linewidth()
    assert thin.get_xdata().max() <= 100
    assert "published" in legend(figure)


def test_other_settings_have_no_published_curves(curves):
    kernels = {"eq": {"family": "exponentiated_quadratic", "scale": "unit"}}
    figure = mmd(sweep(curves, kernels=kernels))
    assert lines(figure.axes[0], "published") == {}
    assert "published" not in legend(figure)


def test_a_curve_that_ends_early_is_marked_and_said(curves):
    dataset = sweep(curves)
    dataset["mmd"].loc[{"algorithm": "sbq", "n": slice(81, None)}] = np.nan
    dataset["mmd"].loc[{"algorithm": "herding", "seed": [2, 3], "n": slice(61, None)}] = np.nan
    axes = mmd(dataset).axes[0]
    assert set(lines(axes, "end")) == {"herding", "sbq"}
    assert lines(axes, "end")["sbq"].get_xdata()[0] == 80
    assert lines(axes, "median")["herding"].get_xdata()[-1] == 60
    assert "SBQ ends at n = 80 (float64)" in notes(axes)
    assert "herding ends at n = 60 in 2 of 10 seeds (float64)" in notes(axes)


def test_failed_and_missing_seeds_are_said(curves):
    dataset = sweep(curves)
    dataset["status"].loc[{"algorithm": "sbq", "seed": [0, 1]}] = FAILED
    dataset["status"].loc[{"algorithm": "iid"}] = MISSING
    dataset["mmd"] = dataset["mmd"].where(dataset["status"] == OK)
    axes = mmd(dataset).axes[0]
    assert "SBQ: 2 of 10 seeds failed" in notes(axes)
    assert "i.i.d.: 10 of 10 seeds missing" in notes(axes)
    assert set(lines(axes, "median")) == {"herding", "sbq"}
    np.testing.assert_array_equal(
        lines(axes, "median")["sbq"].get_ydata()[-1], np.median(curves["sbq"][2:, -1])
    )


def test_targets_and_kernels_have_rows_of_their_own(curves):
    kernels = PAPER["kernels"] | {"unit": {"family": "exponentiated_quadratic", "scale": "unit"}}
    figure = mmd(sweep(curves, lengthscales=(0.5, 1.0), kernels=kernels))
    assert titles(figure)[0] == "chen2010_mixture, eq\nlength-scale 0.5"
    assert titles(figure)[3] == "chen2010_mixture, unit\nlength-scale 1"
    assert [bool(lines(axes, "published")) for axes in figure.axes] == [
        True, False, False, False
    ]  # fmt: skip


@pytest.mark.parametrize("lengthscales, algorithms", [(1, 1), (2, 12), (4, 2), (5, 4), (6, 12)])
def test_any_number_of_panels_and_algorithms_draws(lengthscales, algorithms):
    names = ["iid", "herding", "herding_bq", "sbq", *"abcdefgh"][:algorithms]
    dataset = sweep(
        {name: power_curves(1.0, n=20, seeds=2, rng=i) for i, name in enumerate(names)},
        lengthscales=[0.25 * (i + 1) for i in range(lengthscales)],
    )
    figure = mmd(dataset)
    assert len(titles(figure)) == lengthscales
    figure.draw_without_rendering()


def test_one_seed_is_said_to_be_one(curves):
    assert legend(mmd(sweep({"sbq": curves["sbq"][:1]}))).startswith("One seed.\n")


def test_a_sweep_without_results_draws_and_says_what_is_missing(curves):
    dataset = sweep(curves)
    dataset["status"][:] = MISSING
    dataset["mmd"][:] = np.nan
    figure = mmd(dataset)
    figure.draw_without_rendering()
    assert notes(figure.axes[0]).count("10 of 10 seeds missing") == 3


def test_a_set_has_a_marker_at_each_of_its_sizes(curves):
    sizes = [5, 20, 90]
    config = {"name": "sbq", "design": "joint", "sizes": sizes}
    dataset = sweep(curves, algorithms=[config])
    dataset["mmd"].loc[{"algorithm": "sbq", "n": ~dataset["n"].isin(sizes)}] = np.nan
    figure = mmd(dataset)
    (axes,) = figure.axes
    drawn = lines(axes, "median")
    x, y = drawn["sbq"].get_data()
    assert x.tolist() == sizes and drawn["sbq"].get_markevery() is None
    np.testing.assert_array_equal(y, np.median(curves["sbq"][:, np.array(sizes) - 1], axis=0))
    assert drawn["sbq"].get_linewidth() < drawn["iid"].get_linewidth()
    assert lines(axes, "end") == {} and notes(axes) == ""
    assert "sets, which are made anew for each n" in legend(figure)
    dataset["mmd"].loc[{"algorithm": "sbq", "n": 90, "seed": 0}] = np.nan
    (axes,) = mmd(dataset).axes
    assert "ends at n = 20 in 1 of 10 seeds" in notes(axes).replace("\N{NO-BREAK SPACE}", " ")
    assert "sets" not in legend(mmd(sweep(curves)))


def test_the_best_designs_known_are_dotted_where_there_are_any(curves):
    best, other = mmd(sweep(curves, lengthscales=(0.5, 1.0))).axes
    (line,) = lines(best, "best known").values()
    assert line.get_xdata().tolist() == [5, 10, 20, 50, 100]  # up to the largest n
    assert line.get_ydata()[1] == pytest.approx(0.0839, abs=1e-4)
    assert lines(other, "best known") == {}
    target = {"unit": {"family": "uniform", "lower": [0.0], "upper": [1.0]}}
    kernel = {"brownian": {"family": "brownian"}}
    figure = mmd(sweep(curves, targets=target, kernels=kernel))
    (line,) = lines(figure.axes[0], "best known").values()
    assert line.get_xdata().tolist() == list(range(1, 101))
    assert "Dotted" in legend(figure)
    assert "Dotted" not in legend(mmd(sweep(curves, lengthscales=(1.0,))))


def test_a_selection_below_the_sizes_of_a_set_is_drawn_without_it(curves):
    dataset = sweep(curves, algorithms=[{"name": "sbq", "design": "joint", "sizes": [50, 100]}])
    (axes,) = mmd(dataset.sel(n=slice(1, 20))).axes
    assert set(lines(axes, "median")) == {"iid", "herding"}


def test_problems_of_another_version_have_no_best_designs(curves):
    target = {"one": {"family": "gaussian_mixture", "weights": [1.0], "tails": 3}}
    assert lines(mmd(sweep(curves, targets=target)).axes[0], "best known") == {}
