"""The accessor `bq` of datasets."""

import subprocess
import sys

import pandas as pd
import pytest
import xarray as xr
from matplotlib import pyplot as plt
from synthetic_sweep import power_curves, sweep

import bqlib.access.accessor  # noqa: F401
from bqlib.analysis import comparison, fits, profiles
from bqlib.schema import OK, TRIAL_DIMS


def test_it_is_the_functions_with_the_dataset_first():
    curves = sweep({"iid": power_curves(0.5), "sbq": power_curves(1)})
    xr.testing.assert_identical(curves.bq.rates(), fits.fit_rates(curves))
    xr.testing.assert_identical(curves.bq.rates([(20, 99)]), fits.fit_rates(curves, [(20, 99)]))
    pd.testing.assert_frame_equal(
        curves.bq.rate_table((20, 99)),
        fits.rate_table(fits.fit_rates(curves, [(20, 99)])),
    )
    xr.testing.assert_identical(
        curves.bq.crossover("sbq", "iid"), comparison.crossover(curves, "sbq", "iid")
    )
    xr.testing.assert_identical(curves.bq.points_needed(0.1), comparison.points_needed(curves, 0.1))
    xr.testing.assert_identical(
        curves.bq.points_to_levels([0.1]), profiles.points_to_levels(curves, [0.1])
    )
    xr.testing.assert_identical(
        curves.bq.profile(budgets=[1, 2], factors=[1]),
        profiles.profile(curves, budgets=[1, 2], factors=[1]),
    )
    xr.testing.assert_identical(curves.bq.versus([0.1]), profiles.versus(curves, [0.1]))
    assert len(curves.bq.plot.curves().axes) == 1
    (drawn,) = curves.bq.plot.heatmap("error", n=50, y="target").axes[0].images
    assert drawn.get_array().shape == (1, 1)


def test_tables_and_heat_maps_fit_no_rate_a_second_time(monkeypatch):
    curves = sweep({"iid": power_curves(0.5), "sbq": power_curves(1)})
    given = []
    fit = fits._fit
    monkeypatch.setattr(
        fits, "_fit", lambda cells, *at: given.append(len(cells)) or fit(cells, *at)
    )
    found = curves.bq.rates()
    found["rate"][:] = 0.0  # their user may write into them
    curves.bq.rate_table((100, 400))
    (image,) = curves.bq.plot.heatmap(y="target", x="algorithm").axes[0].images
    assert image.get_array().round(1).tolist() == [[0.5, 1.0]]
    assert sum(given) == 4  # two cells in two windows
    curves["mmd"][..., 30] *= 1.01  # and into the curves, which are then fitted anew
    assert (curves.bq.rates()["rate"] != 0).all()
    assert sum(given) == 8


CHANGES = {
    "where": lambda curves: curves.where(curves["status"] == OK),
    "where drop": lambda curves: curves.where(curves["algorithm"] != "none", drop=True),
    "concat": lambda curves: xr.concat(
        [curves.sel(algorithm=[name]) for name in ("iid", "sbq")], "algorithm"
    ),
    "merge": lambda curves: xr.merge([curves[["mmd", "status"]], curves[["reason"]]]),
    "sel": lambda curves: curves.sel(target="chen2010_mixture").squeeze(),
    "transpose": lambda curves: curves.transpose(..., "target", "algorithm"),
    "chunk": lambda curves: curves.chunk(algorithm=1),
}


@pytest.fixture(scope="module")
def small():
    """Curves, and what two functions find in them."""
    curves = {name: power_curves(rate, seeds=5, n=40) for name, rate in (("iid", 0.5), ("sbq", 1))}
    curves = sweep(curves, windows=((5, 40),))
    return curves, curves.bq.rate_table(), curves.bq.crossover("sbq", "iid").squeeze()


@pytest.mark.parametrize("change", CHANGES)
def test_it_works_on_what_xarray_made_of_curves(small, change):
    curves, table, crossed = small
    changed = CHANGES[change](curves)
    pd.testing.assert_frame_equal(changed.bq.rate_table(), table)
    found = changed.bq.crossover("sbq", "iid").squeeze()
    xr.testing.assert_equal(found.transpose(*crossed.dims), crossed)


def test_figures_of_chunked_curves_are_drawn(small):
    chunked = small[0].chunk(algorithm=1)
    assert len(chunked.bq.plot.curves().axes) == 1
    assert chunked.bq.plot.heatmap("error", n=9, y="target").axes[0].images
    plt.close("all")


OPENING = """
import sys
import bqlib
assert "xarray" not in sys.modules
try:
    bqlib.open_results("nowhere")
except FileNotFoundError:
    pass
else:
    raise AssertionError("results of nowhere were opened")
import xarray
xarray.Dataset.bq, xarray.Dataset().bq.plot
assert "matplotlib" not in sys.modules
"""


def test_it_is_there_once_results_are_opened_and_not_before():
    subprocess.run([sys.executable, "-c", OPENING], check=True)


@pytest.mark.parametrize("dim", TRIAL_DIMS)
def test_a_selection_of_nothing_is_refused(dim):
    curves = sweep({"slow": power_curves(0.5), "fast": power_curves(1)})
    for use in (
        lambda d: d.bq.rates(),
        lambda d: d.bq.crossover("fast", "slow"),
        lambda d: d.bq.points_needed(0.1),
        lambda d: d.bq.plot.curves(),
        lambda d: d.bq.plot.heatmap("error", n=5),
    ):
        with pytest.raises(ValueError, match=f"no label left of {dim}: select at least one"):
            use(curves.isel({dim: []}))
        with pytest.raises(ValueError, match="no label left of n"):
            use(curves.isel(n=[]))
        with pytest.raises(ValueError, match="the dataset has one n and no curves"):
            use(curves.isel(n=0))
