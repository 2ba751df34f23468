import json

import numpy as np
import paper_sweep
import pytest
import xarray as xr
from synthetic_sweep import power_curves, sweep

import bqlib.access.accessor  # noqa: F401
from bqlib.analysis import comparison, fits, maps, seconds
from bqlib.schema import FAILED, MISSING, TRIAL_DIMS

N = np.arange(1.0, 101)
CELL = {"target": "chen2010_mixture", "kernel": "eq", "lengthscale": 0.5}


@pytest.fixture
def curves():
    """Ten seeds of 1/n and of 1/sqrt(n), without noise."""
    seeds = np.ones((10, 1))
    return sweep({"slow": seeds / np.sqrt(N), "fast": seeds / N}, windows=((5, 50), (5, 100)))


def test_crossover_of_known_curves(curves):
    found = comparison.crossover(curves, "fast", "slow")
    assert dict(found.sizes) == {"target": 1, "kernel": 1, "lengthscale": 1, "seed": 10, "n": 100}
    # 1/m <= 1/sqrt(n) from m = sqrt(n) on.
    expected = np.ceil(np.sqrt(N))
    np.testing.assert_array_equal(found["per_seed"].squeeze(), np.tile(expected, (10, 1)))
    np.testing.assert_array_equal(found["points_needed"].squeeze(), expected)
    for end in ("low", "high"):
        np.testing.assert_array_equal(found[f"points_needed_{end}"].squeeze(), expected)
    assert (found["reached"] == 1).all()
    for values in found.data_vars.values():
        assert values.attrs["long_name"] and values.attrs["units"] == "1"


def test_crossover_beyond_the_curves_is_infinite_and_not_the_last_n(curves):
    found = comparison.crossover(curves, "slow", "fast").squeeze()
    assert found["points_needed"].sel(n=10) == 100
    assert np.isinf(found["points_needed"].sel(n=11))
    assert found["reached"].sel(n=[10, 11]).values.tolist() == [1, 0]


def test_crossover_leaves_out_seeds_that_either_lacks(curves):
    curves["status"].loc[{"algorithm": "slow", "seed": 0}] = FAILED
    curves["status"].loc[{"algorithm": "fast", "seed": 1}] = MISSING
    curves["mmd"].loc[{"algorithm": "fast", "seed": 2}] *= 3
    curves["mmd"].loc[{"algorithm": "slow", "seed": 3, "n": slice(81, None)}] = np.nan
    found = comparison.crossover(curves, "fast", "slow").squeeze()
    assert np.isnan(found["per_seed"].sel(seed=[0, 1])).all()
    assert found["per_seed"].sel(seed=2, n=100) == 30
    assert np.isnan(found["per_seed"].sel(seed=3, n=[81, 100])).all()
    assert found["per_seed"].sel(seed=3, n=80) == 9
    assert found["points_needed"].sel(n=100) == 10
    assert found["reached"].sel(n=100) == 1


def test_a_selection_gives_what_it_selects_of_the_whole(curves):
    whole = comparison.crossover(curves, "fast", "slow")
    part = comparison.crossover(curves.squeeze(), "fast", "slow")
    xr.testing.assert_equal(part, whole)
    xr.testing.assert_equal(
        fits.fit_rates(curves.squeeze()).squeeze(), fits.fit_rates(curves).squeeze()
    )
    with pytest.raises(ValueError, match="has no kernel: take one that"):
        comparison.crossover(curves.squeeze().drop_vars("kernel"), "fast", "slow")
    with pytest.raises(ValueError, match="no algorithm sbq; there are slow, fast"):
        comparison.crossover(curves, "sbq", "slow")
    for n in (slice(10, None), [1, 2, 4]):
        for compare in (fits.fit_rates, lambda d: comparison.points_needed(d, 0.1)):
            with pytest.raises(ValueError, match="has not every n from 1 on"):
                compare(curves.sel(n=n))
    early = comparison.points_needed(curves.sel(n=slice(1, 20)), 0.1).sel(algorithm="fast")
    assert (early == 10).all()
    with pytest.raises(ValueError, match="has no error"):
        comparison.crossover(curves, "fast", "slow", "error")


def test_eight_points_of_sbq_are_as_good_as_twenty_of_herding(tmp_path):
    text = paper_sweep.SWEEP.replace("1500", "10000").replace("120", "20")
    text = text.replace("[10, 20], [20, 20]", "[5, 20]").replace(
        "[iid, herding, herding_bq, sbq]", "[herding, sbq]"
    )
    found = paper_sweep.run(tmp_path, text).bq.crossover("sbq", "herding").squeeze()
    assert (found["per_seed"].sel(n=20) == 8).all()


def test_points_needed(curves):
    curves["status"].loc[{"algorithm": "fast", "seed": 4}] = FAILED
    needed = comparison.points_needed(curves, 0.105).squeeze()
    assert needed.sel(algorithm="slow", seed=0) == 91
    assert needed.sel(algorithm="fast", seed=0) == 10
    assert np.isnan(needed.sel(algorithm="fast", seed=4))
    assert np.isinf(comparison.points_needed(curves, 0.05).squeeze().sel(algorithm="slow")).all()


def test_an_error_of_zero_and_an_n_beyond_the_curves_are_refused(curves):
    with pytest.raises(ValueError, match="error is 0; it must be above zero"):
        comparison.points_needed(curves, 0)
    with pytest.raises(ValueError, match="n is 101; the curves have n from 1 to 100"):
        maps.map_of_error(curves, 101)


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


def test_a_rate_that_is_none_has_the_word_for_it():
    noise = np.random.default_rng(0).standard_normal((10, 100)) * 0.01
    exponential, floor = (
        0.14 * np.exp(-0.5 * np.sqrt(N) + noise),
        np.hypot(1 / N, 0.05) * np.exp(noise),
    )
    half = np.concatenate([exponential[:5], (1 / N * np.exp(noise))[5:]])
    curves = sweep({"exp": exponential, "floor": floor, "undecided": half}, windows=((5, 100),))
    found = maps.map_of_rates(fits.fit_rates(curves)).squeeze()
    assert found["word"].values.tolist() == ["exp", "floor", "undecided"]
    assert found["value"].notnull().all()


def test_seconds_come_from_the_files_beside_the_pieces(tmp_path):
    curves = sweep(
        {"iid": power_curves(0.5, n=20), "sbq": power_curves(1, n=20)}, lengthscales=(0.5, 1.0)
    )
    for folder, cell, block, own in (
        ("a", "chen2010_mixture/eq/0.5/sbq", "0-1", {"0": 1.5, "1": None}),
        ("a", "chen2010_mixture/eq/1/iid", "2-2", {"2": 0.25}),
        ("a", "chen2010_mixture/eq/3/iid", "0-0", {"0": 9}),
        ("b", "chen2010_mixture/eq/0.5/sbq", "0-12", {"0": 7.0, "9": 2.0, "12": 3.0}),
    ):
        path = tmp_path / folder / "timings" / cell / f"seeds-{block}.json"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(json.dumps({"seconds": own}))
    found = seconds.trial_seconds(curves, [tmp_path / "a", tmp_path / "b"])
    assert found.dims == TRIAL_DIMS and found.attrs["units"] == "s"
    sbq = found.sel(CELL | {"algorithm": "sbq"})
    assert sbq.sel(seed=[0, 9]).values.tolist() == [1.5, 2.0]  # the first folder goes first
    assert found.sel(lengthscale=1, algorithm="iid", seed=2).item() == 0.25
    assert found.notnull().sum() == 3
    with pytest.raises(FileNotFoundError, match=r"no timings in .*nowhere"):
        seconds.trial_seconds(curves, tmp_path / "nowhere")


@pytest.mark.parametrize("dim", TRIAL_DIMS)
def test_a_selection_of_nothing_is_refused(curves, dim):
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
