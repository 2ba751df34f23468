from dataclasses import replace

import numpy as np
import pytest
from drawn import titles

import bqlib
from bqlib import plot_against_n, plot_left_out
from bqlib.leave_one_out import LeftOut
from bqlib.posterior import Integral

SIZES = [8, 12, 16]


def drop(name="drop"):
    """An estimate of twelve values, of which seven lie outside their intervals."""
    errors = np.array([0.1, -3.0, 0.5, 2.5, -1.9, 4.0, -2.0, 6.0, 1.0, -5.0, 0.0, 2.1])
    predictions, stds = np.linspace(1, 2, 12), np.linspace(0.01, 0.02, 12)
    left_out = LeftOut(np.arange(20, 32), predictions + stds * errors, predictions, stds)
    return Integral(1.5, 0.1, 1.0, 11.0, name=name, left_out=left_out)


def bars(axes):
    """For each group of values: its places, and the ends of its horizontal bars."""
    for container in axes.containers:
        line, _, (segments,) = container
        yield line.get_xydata(), np.array(segments.get_segments())


def labels(figure):
    return [text.get_text() for text in figure.legends[0].get_texts()]


def test_each_value_is_drawn_with_the_interval_of_its_prediction():
    estimate = drop()
    figure = plot_left_out(estimate)
    (axes,) = figure.axes
    (inside, inner), (outside, outer) = bars(axes)
    assert (len(inside), len(outside)) == (5, 7)
    found, place = estimate.left_out, [0, 2, 4, 8, 10]
    np.testing.assert_array_equal(inside[:, 0], found.predictions[place])
    np.testing.assert_array_equal(inside[:, 1], found.values[place])
    half = 1.96 * found.stds[place]
    np.testing.assert_allclose(inner[:, 0, 0], inside[:, 0] - half)
    np.testing.assert_allclose(inner[:, 1, 0], inside[:, 0] + half)
    # The value lies beyond its bar.
    assert ((outside[:, 1] < outer[:, 0, 0]) | (outside[:, 1] > outer[:, 1, 0])).all()
    diagonal = axes.lines[0].get_xydata()
    np.testing.assert_array_equal(diagonal[:, 0], diagonal[:, 1])


def test_left_out_values_are_named_and_counted():
    figure = plot_left_out(drop())
    (axes,) = figure.axes
    assert titles(figure) == ["Each value, left out"]
    assert axes.get_xlabel() == "predicted from all other values"
    assert axes.get_ylabel() == "value of drop"
    assert labels(figure) == ["value in its 95 % interval", "outside: 7 of 12"]
    # The five that are farthest outside, the farthest first, by their rows among the points given.
    named = [text.get_text() for text in axes.texts]
    assert named == ["row 27", "row 29", "row 25", "row 21", "row 23"]
    # Away from the diagonal: above it on the left, below it on the right
    assert [text.get_ha() for text in axes.texts] == ["right", "left", "right", "left", "right"]
    assert [text.get_position()[1] > 0 for text in axes.texts] == [True, False, True, False, True]
    assert plot_left_out(drop(name="")).axes[0].get_ylabel() == "value of f"


def test_no_row_is_named_if_all_values_lie_inside():
    estimate = drop()
    values = estimate.left_out.predictions + estimate.left_out.stds
    figure = plot_left_out(replace(estimate, left_out=replace(estimate.left_out, values=values)))
    assert labels(figure)[1] == "outside: 0 of 12"
    assert not figure.axes[0].texts


def test_a_row_keeps_its_number_if_runs_before_it_failed():
    box = bqlib.Uniform([0], [1])
    points = bqlib.sobol_points(box, 16, rng=0)
    values = np.sin(3 * points[:, 0])
    values[9] += 1.0
    values[2] = np.nan
    estimate = bqlib.integrate(box, points, values, kernel=bqlib.Matern(1.0), missing="drop")
    figure = plot_left_out(estimate)
    assert sum(len(places) for places, _ in bars(figure.axes[0])) == 15
    assert figure.axes[0].texts[0].get_text() == "row 9"


@pytest.mark.parametrize(
    "estimate",
    [Integral(0.5, 0.1, 1.0, 9.0), 0.5],
    ids=lambda e: type(e).__name__,
)
def test_only_an_estimate_with_left_out_values_can_be_drawn(estimate):
    with pytest.raises(TypeError, match=rf"{type(estimate).__name__}, without left-out values"):
        plot_left_out(estimate)


def test_of_several_estimates_one_must_be_chosen():
    with pytest.raises(TypeError, match="pass one of them"):
        plot_left_out((drop(), drop()))
    with pytest.raises(TypeError, match="estimates is one Integral"):
        plot_against_n([12], drop())


def test_a_dollar_in_a_name_is_no_formula(tmp_path):
    odd = replace(drop(), name=r"$\frac$ per $")
    plot_left_out(odd).savefig(tmp_path / "one.png")
    plot_against_n([12], [odd]).savefig(tmp_path / "two.png")


@pytest.fixture
def settling():
    return [Integral(1 + 1 / n, 2 / n, 1.0, n - 1.0, name="drop") for n in SIZES]


def test_estimates_and_their_intervals_are_drawn_against_n(settling):
    figure = plot_against_n(SIZES, settling, true=1.0)
    (axes,) = figure.axes
    estimate, true = axes.lines
    np.testing.assert_array_equal(
        estimate.get_xydata(), [(n, own.mean) for n, own in zip(SIZES, settling, strict=True)]
    )
    assert set(true.get_ydata()) == {1.0}
    (band,) = axes.collections
    for n, own, bar in zip(SIZES, settling, band.get_segments(), strict=True):
        np.testing.assert_allclose(bar, [(n, end) for end in own.interval(0.95)])
    assert (axes.get_xlabel(), axes.get_ylabel()) == ("number of points", "mean of drop")
    assert set(labels(figure)) == {"estimate and 95 % interval", "true mean"}
    shuffled = plot_against_n(SIZES[::-1], settling[::-1]).axes[0].lines[0]
    np.testing.assert_array_equal(shuffled.get_xydata(), estimate.get_xydata())


def test_a_true_mean_that_is_not_known_has_no_line(settling):
    figure = plot_against_n(SIZES, iter([replace(own, name="") for own in settling]))
    assert len(figure.axes[0].lines) == 1
    assert labels(figure) == ["estimate and 95 % interval"]
    assert figure.axes[0].get_ylabel() == "mean of f"


@pytest.mark.parametrize("sizes", [[], [8, 12], [8, 12, 16, 20]], ids=len)
def test_each_size_needs_its_estimate(sizes, settling):
    with pytest.raises(ValueError, match=rf"there are {len(sizes)} sizes and 3 estimates"):
        plot_against_n(sizes, settling)
    with pytest.raises(ValueError, match=r"there are 0 sizes and 0 estimates"):
        plot_against_n([], [])


def test_estimates_must_be_integrals(settling):
    with pytest.raises(TypeError, match="estimates hold objects of type float"):
        plot_against_n(SIZES, [*settling[:2], 1.0])
    with pytest.raises(TypeError, match="true"):
        plot_against_n(SIZES, settling, true="one")
