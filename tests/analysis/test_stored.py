"""Rates that a run has fitted are taken from its store, and those of other curves are not."""

import json
import shutil

import numpy as np
import paper_sweep
import pytest
import xarray as xr
from damage import files, flip

import bqlib
from bqlib.analysis import fits
from bqlib.results.damage import DamagedError
from bqlib.results.store import write_dataset
from bqlib.schema import FAILED

SWEEP = """
name: small
targets: [chen2010_mixture]
kernels: {eq: {family: exponentiated_quadratic}}
lengthscales: [0.5, 2]
algorithms: [herding, iid]
candidates: {size: 60}
n: 16
seeds: 5
rate_windows: [[2, 16], [4, 12]]
"""
ANEW = "fitted anew"


@pytest.fixture(scope="module")
def original(tmp_path_factory):
    """A folder of curves and of their rates."""
    folder = tmp_path_factory.mktemp("original")
    curves = paper_sweep.run(folder, SWEEP)
    write_dataset(fits.fit_rates(curves), folder / "rates.zarr")
    return folder


@pytest.fixture
def says_so(monkeypatch):
    """Let each fit that is made, and not taken from a store, say so."""
    monkeypatch.setattr(fits, "_fit", lambda cells, *window: [{"reason": ANEW} for _ in cells])


def taken(rates):
    """Whether each cell and window was taken from the store."""
    return (rates["reason"] != ANEW).values


def test_they_are_what_a_fit_gives_byte_for_byte(original, tmp_path, monkeypatch):
    moved = shutil.copytree(original, tmp_path / "moved")
    chosen = {"algorithm": ["iid"], "lengthscale": 2}
    curves = bqlib.open_results(moved)
    expected = [fits.fit_rates(curves), fits.fit_rates(curves.sel(chosen), [(4, 12)])]
    monkeypatch.setattr(fits, "_numbers", None)  # nothing is fitted from here on
    found = [curves.bq.rates(), curves.sel(chosen).bq.rates([(4, 12)])]
    for ours, theirs in zip(found, expected, strict=True):
        xr.testing.assert_identical(ours, theirs)
        for name, values in theirs.variables.items():
            assert ours[name].dtype == values.dtype
            assert values.dtype == object or ours[name].values.tobytes() == values.values.tobytes()


def change_value(curves):
    curves = curves.copy(deep=True)
    curves["mmd"][0, 0, 0, 1, 3, 7] *= 1 + 1e-15
    return curves


def fail_a_trial(curves):
    curves = curves.copy(deep=True)
    curves["status"][0, 0, 0, 1, 3] = FAILED
    return curves


def make_iid_a_set(curves):
    config = json.loads(curves.attrs["config"])
    [iid] = [one for one in config["algorithms"] if one["name"] == "iid"]
    iid["sizes"] = [1, 2, 5]
    return curves.assign_attrs(config=json.dumps(config))


ONE_CELL = np.ones((1, 1, 2, 2, 2), dtype=bool)
ONE_CELL[0, 0, 0, 1] = False
ALL = np.ones_like(ONE_CELL)
BOTH_OF_IID = ALL.copy()
BOTH_OF_IID[:, :, :, 1] = False
CHANGES = {
    "nothing": (lambda c: c, ALL),
    "labels": (lambda c: c.assign_coords(algorithm=["x", "y"], seed=range(5, 10)), ALL),
    "the order of cells": (lambda c: c.isel(algorithm=[1, 0], lengthscale=[1, 0]), ALL),
    "a value": (change_value, ONE_CELL),
    "a status": (fail_a_trial, ONE_CELL),
    "what a label means": (make_iid_a_set, BOTH_OF_IID),
    "a seed fewer": (lambda c: c.isel(seed=slice(4)), ~ALL),
    "a seed twice": (lambda c: c.isel(seed=[0, 1, 2, 3, 3]), ~ALL),
    "the order of seeds": (lambda c: c.isel(seed=slice(None, None, -1)), ~ALL),
    "a shorter curve": (lambda c: c.sel(n=slice(1, 15)), ~ALL),
}


@pytest.mark.parametrize("changed", CHANGES)
def test_a_fit_is_taken_only_for_its_own_curves(original, changed, says_so):
    change, expected = CHANGES[changed]
    opened = bqlib.open_results(original)
    curves = change(opened)
    curves.encoding = opened.encoding  # as if xarray always kept it
    np.testing.assert_array_equal(taken(curves.bq.rates()), expected)


def test_a_window_that_is_not_stored_is_fitted(original, says_so):
    found = taken(bqlib.open_results(original).bq.rates([(3, 15), (4, 12)]))
    assert found[..., 1].all() and not found[..., 0].any()


def test_merged_curves_take_what_each_experiment_has(original, tmp_path, says_so):
    paper_sweep.run(tmp_path, SWEEP.replace("[0.5, 2]", "[1, 2]"))
    found = bqlib.open_results([tmp_path, original]).bq.rates()
    assert found["lengthscale"].values.tolist() == [0.5, 1, 2]
    np.testing.assert_array_equal(taken(found).all((0, 1, 3, 4)), [True, False, True])


def test_rates_of_other_code_or_libraries_are_not_taken(original, says_so, monkeypatch):
    curves = bqlib.open_results(original)
    assert fits.fingerprint(fits.fit_rates) in curves.bq.rates().attrs["fitted_by"]
    monkeypatch.setattr(fits.scipy, "__version__", "0")
    fits._code.cache_clear()
    try:
        assert not taken(curves.bq.rates()).any()
    finally:
        fits._code.cache_clear()


def test_heat_maps_and_tables_take_them(original, says_so):
    curves = bqlib.open_results(original)
    (image,) = curves.bq.plot.heatmap().axes[0].images
    assert not np.isnan(image.get_array()).any()
    assert (curves.bq.rate_table((4, 12))["rate"] > 0).all()


def test_rates_that_are_damaged_are_told_and_lost_ones_are_fitted(original, tmp_path, says_so):
    folder = shutil.copytree(original, tmp_path / "copy")
    curves = bqlib.open_results(folder)
    flip(files(folder, "rates.zarr/rate/c.*")[0], 20)
    with pytest.raises(DamagedError, match=r"rates.zarr/rate/c\S* is damaged"):
        curves.bq.rates()
    shutil.rmtree(folder / "rates.zarr")
    assert not taken(curves.bq.rates()).any()
