"""Which algorithm needs fewer points for the same error."""

import numpy as np
import paper_sweep
import pytest
import xarray as xr
from synthetic_sweep import sweep

from bqlib.analysis import comparison, fits
from bqlib.schema import FAILED, MISSING

N = np.arange(1.0, 101)


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
    with pytest.raises(ValueError, match="no algorithm sbq; its algorithms are slow, fast"):
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


def test_points_needed_are_the_first_that_reach_an_error(curves):
    curves["status"].loc[{"algorithm": "fast", "seed": 4}] = FAILED
    needed = comparison.points_needed(curves, 0.105).squeeze()
    assert needed.sel(algorithm="slow", seed=0) == 91
    assert needed.sel(algorithm="fast", seed=0) == 10
    assert np.isnan(needed.sel(algorithm="fast", seed=4))
    assert np.isinf(comparison.points_needed(curves, 0.05).squeeze().sel(algorithm="slow")).all()


def test_an_error_of_zero_or_of_words_is_refused(curves):
    with pytest.raises(ValueError, match=r"error is 0\.0; it must be above 0"):
        comparison.points_needed(curves, 0)
    with pytest.raises(TypeError, match=r"error is '0\.1'; it must be a number"):
        comparison.points_needed(curves, "0.1")
