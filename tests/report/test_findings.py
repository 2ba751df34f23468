import json

import numpy as np
import pytest
import xarray as xr
from synthetic_sweep import power_curves, sweep

from bqlib.analysis.fits import fit_rates
from bqlib.report.findings import best_rows, best_rules, headline
from bqlib.schema import FAILED

ALGORITHMS = [
    {"name": "draws", "design": "iid", "weights": "uniform"},
    {"name": "herding", "design": "herding", "weights": "uniform"},
    {"name": "sbq", "design": "sbq", "weights": "bq"},
]


def made(seeds=6, scales=(0.5, 1.0, 2.0), **rates):
    """Curves of three rules, 10 % apart between seeds."""
    rates = {"draws": 0.5, "herding": 0.9, "sbq": 1.2} | rates
    curves = {
        name: power_curves(rate, seeds=seeds, n=100, rng=i)
        for i, (name, rate) in enumerate(rates.items())
    }
    return sweep(curves, lengthscales=scales, windows=((10, 100),), algorithms=ALGORITHMS)


def scaled(data, factor, **where):
    """The same with the MMD of some cells multiplied."""
    data["mmd"].loc[where] = data["mmd"].loc[where] * factor
    return data


def test_the_best_rule_has_its_median_its_rate_and_its_leads():
    data = made(scales=(0.5,))
    rates = fit_rates(data)
    (best,) = best_rules(data, rates)
    at_end = data["mmd"].isel(n=-1).squeeze()
    means = np.exp(np.log(at_end).mean("seed"))
    assert (best.rule, best.n) == ("sbq", 100)
    assert best.mmd == pytest.approx(float(means.sel(algorithm="sbq")))
    ratio = at_end.sel(algorithm="herding") / at_end.sel(algorithm="sbq")
    assert best.over_next.rule == "herding" and best.over_iid.rule == "draws"
    assert best.over_next.ratio == pytest.approx(float(np.exp(np.log(ratio).mean())))
    assert best.over_next.low < best.over_next.ratio < best.over_next.high
    assert best.over_next.certain and not best.over_next.untested
    assert best.over_next.ratio == pytest.approx(float(means.sel(algorithm="herding") / best.mmd))
    power = rates["rate"].sel(algorithm="sbq", model="power_law").item()
    assert best.rate[0] == power == pytest.approx(1.2, abs=0.1)
    assert best.rate[1].startswith(f"{power:.2f} [")


def test_length_scales_with_the_same_best_rule_share_a_row():
    data = scaled(made(), 1e-2, lengthscale=2.0, algorithm="herding")
    rows = best_rows(best_rules(data))
    assert [(row["lengthscale"], row["best rule"]) for row in rows] == [
        ("0.5 to 1", "sbq"), ("2", "herding"),
    ]  # fmt: skip
    assert rows[0]["next best"] == "herding" and rows[1]["next best"] == "sbq"
    assert rows[0]["rate a"] == "-" and rows[0]["not certain"] == "-"
    assert "target" not in rows[0] and "kernel" not in rows[0]
    found = best_rules(data)
    assert headline(found, 100) == (
        "Smallest MMD at n = 100, of 3 settings: sbq in 2 (2 certain), herding in 1 (1 certain)."
    )
    cell = {"target": "chen2010_mixture", "kernel": "eq", "lengthscale": 0.5}
    assert headline(found, cell).startswith("sbq has the smallest MMD at length-scale 0.5: ")


def test_a_rule_that_is_as_good_makes_a_lead_uncertain():
    data = made()
    level = data["mmd"].sel(algorithm="sbq", lengthscale=1.0).values
    data["mmd"].loc[{"algorithm": "herding", "lengthscale": 1.0}] = level[..., ::-1, :] * 1.001
    found = best_rules(data)
    (row,) = best_rows(found)
    assert row["not certain"] == "at 1"
    assert headline(found, 100).endswith("of 3 settings: sbq in 3 (2 certain).")
    cell = {"target": "chen2010_mixture", "kernel": "eq", "lengthscale": 1.0}
    assert "times as large (not certain); that of draws" in headline(found, cell)


def test_the_best_rule_never_lags_behind_the_next_one():
    """The medians of these seeds say that herding is best, and their geometric means sbq."""
    data = made(seeds=5, scales=(0.5,))
    seeds = {
        "herding": [1e-3, 1e-3, 0.9e-3, 3e-3, 3e-3],
        "sbq": [1.1e-3, 1.1e-3, 0.5e-3, 2e-3, 1e-3],
    }
    for name, values in seeds.items():
        data["mmd"].loc[{"algorithm": name, "n": 100}] = np.array(values)
    assert np.median(seeds["herding"]) < np.median(seeds["sbq"])
    (best,) = best_rules(data)
    assert best.rule == "sbq" and best.over_next.ratio > 1


def test_a_curve_that_ends_early_counts_with_its_end():
    data = made(scales=(0.5,))
    data["mmd"].loc[{"algorithm": "sbq", "seed": 2}].values[..., 60:] = np.nan
    (best,) = best_rules(data)
    expected = float(np.exp(np.log(data["mmd"].sel(algorithm="sbq", n=60)).mean()))
    assert (best.rule, best.n, best.mmd) == ("sbq", 60, pytest.approx(expected))
    (row,) = best_rows([best])
    assert row["MMD at n = 100"] == f"{expected:.3g} (ends at 60)"


def test_sets_count_at_their_largest_size():
    data = made(scales=(0.5,))
    other = [n for n in range(1, 101) if n not in (10, 50)]
    data["mmd"].loc[{"algorithm": "sbq", "n": other}] = np.nan
    (best,) = best_rules(data)
    assert (best.rule, best.n) == ("sbq", 50)
    data["mmd"].loc[{"algorithm": "sbq"}] *= 5
    (best,) = best_rules(data)
    assert best.over_next.rule == "sbq" and best.over_next.n == 50
    (row,) = best_rows([best])
    assert row["next best"] == "sbq (ends at 50)"
    assert "that of sbq (ends at 50) is" in headline([best], 100)


def test_failed_seeds_and_rules_do_not_count():
    data = made(scales=(0.5,))
    data["status"].loc[{"algorithm": "sbq"}] = FAILED
    data["status"].loc[{"algorithm": "herding", "seed": 0}] = FAILED
    data["mmd"].loc[{"algorithm": "herding", "seed": 0}] = np.nan
    (best,) = best_rules(data)
    ran = data["mmd"].sel(algorithm="herding", n=100, seed=slice(1, None))
    assert (best.rule, best.mmd) == ("herding", pytest.approx(float(np.exp(np.log(ran).mean()))))
    data["status"].values[:] = FAILED
    assert best_rules(data) == [] and best_rows([]) == []
    assert headline([]) == "No trial succeeded."


def test_few_seeds_have_no_intervals_and_a_single_rule_no_lead():
    found = best_rules(made(seeds=4, scales=(0.5,)))
    (row,) = best_rows(found)
    assert "[" not in row["lead over next"] and float(row["lead over next"]) > 1
    assert row["not certain"] == "needs 5 seeds"
    assert headline(found, 100).count("times as large (not certain: needs 5 seeds)") == 2
    alone = made(scales=(0.5,)).sel(algorithm=["sbq"])
    (row,) = best_rows(best_rules(alone))
    assert row["next best"] == row["lead over next"] == row["lead over i.i.d."] == "-"
    assert row["not certain"] == "-"
    several = best_rules(made().sel(algorithm=["sbq"]))
    assert headline(several, 100) == "Smallest MMD at n = 100, of 3 settings: sbq in 3."


def test_leads_without_an_interval_are_not_certain():
    found = best_rules(made(seeds=4))
    (row,) = best_rows(found)
    assert row["not certain"] == "needs 5 seeds"
    assert headline(found, 100) == (
        "Smallest MMD at n = 100, of 3 settings: sbq in 3. Whether a lead is certain needs 5 seeds."
    )
    data = made(seeds=5)  # one seed fails at one length-scale, and two rules are close at another
    where = {"algorithm": "herding", "lengthscale": 2.0, "seed": 0}
    data["status"].loc[where], data["mmd"].loc[where] = FAILED, np.nan
    level = data["mmd"].sel(algorithm="sbq", lengthscale=1.0).values
    data["mmd"].loc[{"algorithm": "herding", "lengthscale": 1.0}] = level[..., ::-1, :] * 1.001
    found = best_rules(data)
    (row,) = best_rows(found)
    assert row["not certain"] == "at 1; needs 5 seeds at 2"
    assert headline(found, 100).endswith("sbq in 3 (1 certain).")


def test_a_seed_without_an_error_is_best_and_has_no_lead():
    data = scaled(made(scales=(0.5,)), 0.0, algorithm="sbq", seed=0)
    (best,) = best_rules(data)
    assert (best.rule, best.mmd) == ("sbq", 0.0)
    (row,) = best_rows([best])
    assert row["lead over next"] == "-" and row["not certain"] == "yes"


def test_a_mean_slope_is_not_called_a_rate():
    data = made(scales=(0.5,))
    n = data["n"].values
    data["mmd"].loc[{"algorithm": "sbq"}] *= np.exp(-((n / 10) ** 0.9))
    (row,) = best_rows(best_rules(data, fit_rates(data)))
    assert row["best rule"] == "sbq" and row["rate a"].endswith("] (slope)")
    plain = made(scales=(0.5,))
    (row,) = best_rows(best_rules(plain, fit_rates(plain)))
    assert row["rate a"].endswith("]")


def test_without_independent_draws_no_lead_over_them_is_named():
    data = made(scales=(0.5,))
    config = json.loads(data.attrs["config"])
    config["algorithms"][0]["weights"] = "bq"
    data.attrs["config"] = json.dumps(config)
    (best,) = best_rules(data)
    assert best.over_iid is None


def test_of_problems_with_other_n_each_counts_at_its_own():
    data = made()
    pair = xr.concat([data.assign_coords(target=[name]) for name in ("short", "long")], "target")
    pair = pair.isel(lengthscale=[0])
    ended = (pair["target"] == "short") & (pair["n"] > 50)
    pair = pair.assign(mmd=pair["mmd"].where(~ended))
    config = json.loads(data.attrs["config"]) | {
        "problems": {"short": {"n": 50}, "long": {"n": 100}}
    }
    found = best_rules(pair.assign_attrs(config=json.dumps(config)))
    assert [(best.n, best.asked) for best in found] == [(50, 50), (100, 100)]
    rows = best_rows(found)
    assert all("ends" not in row["MMD at the largest n"] for row in rows)
    assert headline(found).startswith("Smallest MMD at the largest n, of 2 settings: ")
