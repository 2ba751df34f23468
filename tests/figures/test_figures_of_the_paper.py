import numpy as np
import paper_sweep
import pytest
from drawn import legend, words

from bqlib.analysis import cells, paper
from bqlib.figures.bq_illustration import bq_illustration
from bqlib.figures.samples import samples
from bqlib.figures.slopes import slopes
from bqlib.figures.weight_histogram import weight_histogram
from bqlib.rates import local_slopes


@pytest.fixture(scope="module")
def curves(tmp_path_factory):
    return paper_sweep.run(tmp_path_factory.mktemp("paper")).compute()


def drawn(axes, kind, gid):
    (found,) = [artist for artist in getattr(axes, kind) if artist.get_gid() == gid]
    return found


def test_the_papers_cell_is_found_by_its_settings(curves):
    cell = {"target": "chen2010_mixture", "kernel": "eq_density", "lengthscale": 0.5}
    assert paper.papers_cell(curves) == cell
    assert paper.papers_cell(curves.assign_coords(lengthscale=[0.6])) is None
    prior_variance = cells.embedding_of(curves, cell).prior_variance
    assert prior_variance == pytest.approx(0.0207787540403523, rel=1e-13)


def test_samples_are_the_first_of_each_and_sized_by_weight(curves):
    figure = samples(curves)
    axes = figure.axes[0]
    sbq, herding = (drawn(axes, "collections", name) for name in ("sbq", "herding"))
    first = curves.squeeze().isel(seed=0).points
    np.testing.assert_array_equal(sbq.get_offsets(), first.sel(algorithm="sbq")[:8])
    np.testing.assert_array_equal(herding.get_offsets(), first.sel(algorithm="herding")[:20])
    area = sbq.get_sizes()
    assert area[0] > area[-1] > 0 and len(herding.get_sizes()) == 1
    sizes = paper.matching_sizes(curves, paper.papers_cell(curves))
    assert f"n = 8 in {(sizes == 8).sum()} of 5 seeds" in words(figure)
    figure.draw_without_rendering()


def test_the_size_that_matches_herding_is_the_first(curves):
    cell = paper.papers_cell(curves)
    mmd = curves.mmd.copy(deep=True)
    mmd.loc[{"algorithm": "herding", "n": 20}] = 0.1
    mmd.loc[{"algorithm": "sbq"}] = 0.2
    mmd.loc[{"algorithm": "sbq", "seed": [0, 1], "n": [7, 9]}] = 0.1
    sizes = paper.matching_sizes(curves.assign(mmd=mmd), cell)
    assert sizes.tolist() == [7, 7, 0, 0, 0]


def test_histograms_hold_every_weight_and_say_their_sums(curves):
    figure = weight_histogram(curves)
    cell = paper.papers_cell(curves)
    for axes, algorithm in zip(figure.axes, ("sbq", "herding"), strict=True):
        weights = paper.bq_weights(curves, cell, algorithm, 100)
        bars = np.array([patch.get_height() for patch in axes.patches if patch.get_gid() != "ours"])
        assert bars.sum() == 100
        assert weights.shape == (5, 100)
        assert f"sum {weights.sum(axis=1).mean():.3f}" in words(figure)
    # The weights of the whole design are stored, so they can be compared where they are the same.
    whole = paper.bq_weights(curves, cell, "sbq", 120)
    np.testing.assert_allclose(
        whole, curves.weights.sel(algorithm="sbq").squeeze().values, rtol=1e-9, atol=1e-15
    )
    figure.draw_without_rendering()


def test_fewer_points_than_the_papers_are_drawn_without_its_bars(curves):
    figure = weight_histogram(curves.isel(n=slice(30)))
    assert "published" not in words(figure)
    samples(curves.isel(n=slice(12))).draw_without_rendering()


def test_the_illustration_is_a_posterior_that_holds_its_truth():
    figure = bq_illustration()
    left, right = figure.axes
    samples_drawn = drawn(left, "lines", "samples")
    (mean,) = [line for line in left.lines if line.get_label() == "posterior mean of f"]
    at = np.interp(samples_drawn.get_xdata(), mean.get_xdata(), mean.get_ydata())
    np.testing.assert_allclose(at, samples_drawn.get_ydata(), atol=1e-3)
    z, height = drawn(right, "lines", "posterior").get_data()
    assert np.trapezoid(height, z) == pytest.approx(1, abs=1e-3)
    figure.draw_without_rendering()


def test_slopes_are_means_over_seeds(curves):
    figure = slopes(curves)
    upper, lower = figure.axes
    line = upper.lines[3]
    own = local_slopes(curves.mmd.sel(algorithm="sbq").squeeze().values).mean(axis=0)
    np.testing.assert_allclose(line.get_ydata(), own[line.get_xdata() - 1])
    line = lower.lines[3]
    own = np.exp(np.log(curves.mmd.sel(algorithm="sbq").squeeze().values).mean(axis=0))
    n = line.get_xdata()
    np.testing.assert_allclose(line.get_ydata(), n * own[n - 1])
    assert legend(figure) == "Lines: mean of 5 seeds. Bands: 95 % interval of the mean."
    figure.draw_without_rendering()


def test_slopes_leave_out_what_is_not_there(curves):
    gone = curves.copy(deep=True)
    gone["status"].loc[{"algorithm": "sbq"}] = 0
    gone["mmd"].loc[{"algorithm": "sbq"}] = np.nan
    gone["mmd"].loc[{"algorithm": "iid", "n": slice(60, None)}] = np.nan
    upper, _ = slopes(gone).axes
    assert len(upper.lines) == 3 + 2  # and two guides
    assert upper.lines[0].get_xdata().max() == 29
