import numpy as np
import pytest
from drawn import legend

from bqlib.figures import panels, style

INCHES = {"width": 6.0, "height": 2.0, "margin": 1.0}


def shown(places):
    """Whether each panel is drawn, by its row and column."""
    grid = places[0, 0].get_gridspec()
    seen = np.zeros((grid.nrows, grid.ncols), dtype=bool)
    for axes in places[0, 0].figure.axes:
        place = axes.get_subplotspec()
        seen[place.rowspan.start, place.colspan.start] = axes.axison
    return seen.tolist()


def test_spare_panels_of_each_group_are_not_drawn():
    figure, places = panels.grid(3, 2, groups=2, **INCHES)
    assert places.shape == (2, 3)
    assert shown(places) == [[True, True], [True, False]] * 2
    assert figure.get_size_inches().tolist() == [6.0, 4 * 2.0 + 1.0]


@pytest.mark.parametrize(
    "count, columns, groups, below",
    [(1, 1, 1, [0]), (4, 2, 1, [2, 3]), (5, 3, 1, [2, 3, 4]), (2, 2, 3, [4, 5])],
)
def test_the_lowest_panel_of_each_column_names_and_numbers_its_axis(count, columns, groups, below):
    _, places = panels.grid(count, columns, groups=groups, xlabel="x", **INCHES)
    for i, axes in enumerate(places.flat):
        assert axes.get_xlabel() == ("x" if i in below else "")
        assert axes.xaxis.get_tick_params()["labelbottom"] is (i in below)


def test_a_panel_above_a_spare_one_names_its_axis_in_each_group():
    _, places = panels.grid(3, 2, groups=2, **INCHES)
    named = [bool(axes.get_xlabel()) for axes in places.flat]
    assert named == [False, True, False, False, True, True]


def test_the_first_panel_of_each_row_names_its_axis():
    _, places = panels.grid(4, 3, ylabel="y", **INCHES)
    assert [axes.get_ylabel() for axes in places.flat] == ["y", "", "", "y"]


@pytest.mark.parametrize(
    "seeds, said",
    [
        (1, "One seed."),
        (4, "Lines: mean of 4 seeds."),
        (5, "Lines: mean of 5 seeds. Bands: 95 % interval of the mean."),
    ],
)
def test_an_interval_is_said_where_there_are_seeds_for_one(seeds, said):
    assert panels.about_means(seeds) == said


def test_a_legend_has_its_sentences_above_its_lines():
    figure, _ = panels.grid(1, 1, **INCHES)
    panels.legend(figure, "One.", "Two.", handles=panels.handles(style.line_styles(["sbq", "iid"])))
    assert legend(figure) == "One.\nTwo."
    assert [text.get_text() for text in figure.legends[0].get_texts()] == ["SBQ", "i.i.d."]


@pytest.mark.parametrize("width", [4.0, 6.0, 9.0])
@pytest.mark.parametrize("letters", [3, 12, 21, 32])
def test_a_legend_fits_into_its_figure(width, letters):
    figure = style.figure(width, 4.0)
    figure.subplots()
    label = "recombination of some draws, BQ weights"[:letters]
    looks = style.line_styles([f"{i}{label}" for i in range(7)])
    sentence = "Lines with markers: median of 5 seeds. Bands: smallest to largest value. " * 2
    panels.legend(figure, sentence, handles=panels.handles(looks))
    figure.canvas.draw()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0 and box.x1 <= figure.bbox.x1
