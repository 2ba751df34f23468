"""Maps of a sweep: a number for each cell, or a word that says why there is none."""

import numpy as np
import pytest
import xarray as xr
from synthetic_sweep import sweep

from bqlib.analysis import fits, maps
from bqlib.schema import FAILED, MISSING

N = np.arange(1.0, 101)


def test_maps_have_a_number_or_say_why_not():
    curves = sweep(
        {name: np.ones((6, 1)) / N for name in ("good", "short", "failed", "missing")},
        windows=((5, 50), (5, 100)),
    )
    curves["mmd"].loc[{"algorithm": "short", "seed": 2, "n": slice(60, None)}] = np.nan
    curves["status"].loc[{"algorithm": "failed"}] = FAILED
    curves["status"].loc[{"algorithm": "missing"}] = MISSING
    curves["mmd"].loc[{"algorithm": ["failed", "missing"]}] = np.nan

    def said(found):
        found = found.squeeze()
        assert (found["value"].isnull() | (found["word"] == "")).all()
        values = found["value"].values
        return [
            w if np.isnan(v) else round(v, 6)
            for v, w in zip(values, found["word"].values, strict=True)
        ]

    none = ["failed", "missing"]
    assert said(maps.map_of_error(curves, 100)) == [0.01, "ends early", *none]
    assert said(maps.map_of_error(curves, 50)) == [0.02, 0.02, *none]
    assert said(maps.map_of_points(curves, 0.1)) == [10, 10, *none]
    unreached = ["not reached", "not reached", *none]
    assert said(maps.map_of_points(curves, 1e-3)) == unreached
    seconds = xr.full_like(curves["status"], 2.5, dtype=float).where(curves["seed"] != 0)
    assert said(maps.map_of_seconds(curves, 0.1, seconds)) == [2.5, 2.5, *none]
    assert said(maps.map_of_seconds(curves, 1e-3, seconds)) == unreached
    untimed = maps.map_of_seconds(curves, 0.1, seconds.where(seconds["algorithm"] != "good"))
    assert said(untimed) == ["no time", 2.5, *none]
    rates = fits.fit_rates(curves)
    assert said(maps.map_of_rates(rates)) == [1, 1, *none]
    assert said(maps.map_of_rates(rates, "5-100")) == [1, "ends early", *none]
    assert said(maps.map_of_rates(fits.fit_rates(curves, [(5, 9)]))) == ["no fit"] * 2 + none


def test_a_set_has_no_error_where_it_was_not_made():
    curves = sweep(
        {"iid": 1 / N[None], "set": np.where(np.isin(N, [10, 50]), 1 / N, np.nan)[None]},
        algorithms=[{"name": "set", "design": "joint", "sizes": [10, 50]}],
    )
    words = [maps.map_of_error(curves, n)["word"].squeeze().values.tolist() for n in (50, 60)]
    assert words == [["", ""], ["", "not made"]]


def test_a_rate_that_is_none_has_the_word_for_it():
    noise = np.random.default_rng(0).standard_normal((10, 100)) * 0.01
    exponential, floor = (
        0.14 * np.exp(-0.5 * np.sqrt(N) + noise),
        np.hypot(1 / N, 0.05) * np.exp(noise),
    )
    half = np.concatenate([exponential[:5] ** 3, (1 / N * np.exp(noise))[5:]])
    broken = np.where(N < 20, 1 / np.sqrt(N), 20**0.5 / N) * np.exp(noise)
    own = {"exp": exponential, "floor": floor, "undecided": half, "none fits": broken}
    found = maps.map_of_rates(fits.fit_rates(sweep(own, windows=((5, 100),)))).squeeze()
    assert found["word"].values.tolist() == list(own)
    assert found["value"].notnull().all()


def test_an_n_beyond_the_curves_is_refused():
    curves = sweep({"fast": np.ones((10, 1)) / N}, windows=((5, 50),))
    with pytest.raises(ValueError, match="n is 101; the curves have n from 1 to 100"):
        maps.map_of_error(curves, 101)
