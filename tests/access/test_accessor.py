import subprocess
import sys

import numpy as np
import xarray as xr
from synthetic_sweep import power_curves, sweep

import bqlib.access.accessor  # noqa: F401
from bqlib.analysis import comparison, fits


def test_it_is_the_functions_with_the_dataset_first():
    curves = sweep({"iid": power_curves(0.5), "sbq": power_curves(1)})
    xr.testing.assert_identical(curves.bq.rates(), fits.fit_rates(curves))
    xr.testing.assert_identical(curves.bq.rates([(20, 99)]), fits.fit_rates(curves, [(20, 99)]))
    xr.testing.assert_identical(
        curves.bq.crossover("sbq", "iid"), comparison.crossover(curves, "sbq", "iid")
    )
    xr.testing.assert_identical(curves.bq.points_needed(0.1), comparison.points_needed(curves, 0.1))
    assert len(curves.bq.plot.curves().axes) == 1
    assert (
        np.prod(
            curves.bq.plot.heatmap("error", n=50, y="target").axes[0].images[0].get_array().shape
        )
        == 1
    )


def test_it_is_there_once_results_are_opened_and_not_before():
    code = (
        "import bqlib, sys; assert 'xarray' not in sys.modules; bqlib.open_results\n"
        "try: bqlib.open_results('nowhere')\n"
        "except FileNotFoundError: import xarray; xarray.Dataset.bq; xarray.Dataset().bq.plot\n"
        "assert 'matplotlib' not in sys.modules"
    )
    subprocess.run([sys.executable, "-c", code], check=True)
