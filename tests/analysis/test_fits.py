"""Rates fitted to the curves of a sweep."""

import numpy as np
import pytest
import xarray as xr
from synthetic_sweep import power_curves, sweep

from bqlib import rates
from bqlib.analysis import fits
from bqlib.schema import FAILED, MISSING

N = np.arange(1.0, 401)


def stretched_curves():
    noise = np.random.default_rng(2).standard_normal((10, 400))
    return 0.14 * np.exp(-0.3 * np.sqrt(N) + 0.01 * noise)


@pytest.fixture(scope="module")
def curves():
    return {
        "iid": power_curves(0.5, rng=1),
        "herding": power_curves(0.92, sd=0.02, rng=2),
        "sbq": stretched_curves(),
    }


@pytest.fixture(scope="module")
def fitted(curves):
    return fits.fit_rates(sweep(curves, lengthscales=(0.5, 1.0)))


def test_rates_lie_over_the_sweep_windows_and_models(fitted):
    assert dict(fitted["rate"].sizes) == {
        "target": 1, "kernel": 1, "lengthscale": 2, "algorithm": 3, "window": 2, "model": 3
    }  # fmt: skip
    assert list(fitted["window"].values) == ["20-400", "100-400"]
    iid = fitted.sel(algorithm="iid", window="20-400", model="power_law")
    assert (iid["rate_low"] < 0.5).all() and (iid["rate_high"] > 0.5).all()
    assert (fitted["n_seeds"] == 10).all()
    assert (fitted["reason"] == "").all()


def test_the_same_curves_give_the_same_numbers_wherever_they_stand(fitted, curves):
    xr.testing.assert_equal(
        fitted.isel(lengthscale=0, drop=True), fitted.isel(lengthscale=1, drop=True)
    )
    alone = fits.fit_rates(sweep({"sbq": curves["sbq"]}))
    xr.testing.assert_equal(alone, fitted.sel(lengthscale=[0.5], algorithm=["sbq"]))


def test_every_variable_and_coordinate_is_described(fitted):
    for name, variable in fitted.variables.items():
        assert variable.attrs.get("long_name"), name
        assert "units" in variable.attrs, name


def test_verdicts_and_the_test_against_1_over_n(fitted):
    wide = fitted.sel(lengthscale=0.5, window="20-400").squeeze()
    assert wide["verdict"].sel(algorithm="sbq") == "stretched_exponential"
    assert wide["exponent"].sel(algorithm="sbq") == pytest.approx(0.5, abs=0.05)
    assert list(wide["faster"].values) == ["not shown", "not shown", "yes"]
    assert list(wide["octave_start"].values) == [100, 200]
    slopes = wide["local_slope"].sel(algorithm="sbq").values
    expected = 0.3 * (np.sqrt([200, 400]) - np.sqrt([100, 200])) / np.log(2)
    np.testing.assert_allclose(slopes, expected, atol=0.03)
    assert (wide["faster_p"].sel(algorithm="herding") > 0.5).all()
    misfit = wide["misfit"].sel(algorithm="sbq")
    assert misfit.sel(model="stretched_exponential") < 0.02 < 0.5 < misfit.sel(model="power_law")
    assert wide["verdict"].sel(algorithm="herding") == "power_law"
    assert (wide["curvature_p"].sel(algorithm=["herding", "sbq"]) < 0.05).values.tolist() == [
        False, True
    ]  # fmt: skip


def test_verdict_and_misfit_are_those_of_the_mean_curve(fitted, curves):
    sizes = rates.log_spaced(20, 400)
    for name, own in curves.items():
        found = rates.verdict(sizes, own[:, sizes - 1])
        stored = fitted.sel(algorithm=name, window="20-400", lengthscale=0.5).squeeze()
        assert stored["verdict"] == found.name
        assert stored["misfit"].values.tolist() == list(found.misfit.values())
        assert (stored["noise"], stored["curvature_p"]) == (found.noise, found.curvature_p)


def test_rows_say_the_misfit_and_the_noise(curves):
    broken = np.where(N <= 90, N**-0.5, 90**0.5 / N) * (curves["sbq"] / curves["sbq"].mean(axis=0))
    fitted = fits.fit_rates(sweep(curves | {"broken": broken}), windows=[(20, 400)])
    said = {row["algorithm"]: (row["model"], row["misfit"]) for row in fits.rate_rows(fitted)}
    for name, (model, misfit) in said.items():
        fit = fitted.sel(algorithm=name).squeeze()
        known = fit["misfit"].sel(model=model) if name != "broken" else fit["misfit"].min()
        assert misfit == f"{100 * known:.1f} % (noise {100 * fit['noise']:.1f} %)"
    assert said["sbq"][0] == "stretched_exponential" and said["broken"][0] == "none fits"
    few = fits.rate_rows(fits.fit_rates(sweep({"broken": broken[:3]}), windows=[(20, 400)]))
    assert few[0]["model"] == "undecided" and "noise" not in few[0]["misfit"]


def test_faster_in_one_octave_only_is_not_shown():
    # n^-0.8 to n = 200, then n^-1.6.
    curve = np.where(N <= 200, N**-0.8, 200**0.8 * N**-1.6)
    noise = np.exp(0.002 * np.random.default_rng(4).standard_normal((10, 400)))
    fitted = fits.fit_rates(sweep({"sbq": curve * noise}), windows=[(20, 400)]).squeeze()
    assert fitted["faster_p"].values[1] < 1e-6
    assert fitted["faster"] == "not shown"


def test_a_window_that_some_curve_does_not_fill_gets_no_numbers(curves):
    dataset = sweep(curves)
    dataset["mmd"].loc[{"algorithm": "sbq", "seed": [1, 4, 7]}] = np.where(
        N <= 391, dataset["mmd"].sel(algorithm="sbq", seed=[1, 4, 7]), np.nan
    )
    fitted = fits.fit_rates(dataset, windows=[(20, 391), (20, 400)]).squeeze()
    short = fitted.sel(algorithm="sbq", window="20-400")
    assert short["reason"] == "3 of 10 curves end before n = 400"
    assert short["n_seeds"] == 0
    for name in ("rate", "exponent", "floor", "local_slope", "faster_p", "misfit", "noise"):
        assert short[name].isnull().all(), name
    assert fitted.sel(algorithm="sbq", window="20-391")["rate"].notnull().any()
    assert (fitted.sel(algorithm="iid")["reason"] == "").all()


def test_failed_and_missing_seeds_are_left_out_and_said(curves):
    dataset = sweep({"iid": curves["iid"]})
    expected = fits.fit_rates(dataset.isel(seed=slice(3, None)))["rate"]
    for seed, value in ((0, FAILED), (1, FAILED), (2, MISSING)):
        dataset["status"].loc[{"seed": seed}] = value
        dataset["mmd"].loc[{"seed": seed}] = np.nan
    fitted = fits.fit_rates(dataset)
    assert (fitted["n_seeds"] == 7).all()
    assert (fitted["reason"] == "1 of 10 seeds missing; 2 of 10 seeds failed").all()
    xr.testing.assert_equal(fitted["rate"], expected)

    dataset["status"][:] = FAILED
    nothing = fits.fit_rates(dataset)
    assert nothing["rate"].isnull().all()
    assert (nothing["reason"] == "10 of 10 seeds failed").all()


def test_few_seeds_give_a_rate_without_an_interval(curves):
    fitted = fits.fit_rates(sweep({"sbq": curves["sbq"][:3]}))
    plain = fitted.sel(model="power_law")
    assert plain["rate"].notnull().all()
    assert plain["rate_low"].isnull().all() and plain["rate_high"].isnull().all()
    assert (fitted["faster"] == "untested").all()
    assert (fitted["verdict"] == "undecided").all()
    said = "no interval and no verdict: they need 5 seeds, there are 3"
    assert (fitted["reason"] == said).all()


@pytest.mark.parametrize(
    "window, reason",
    [((20, 500), "the sweep ends at n = 400"), ((20, 26), "a fit needs at least 8 values of n")],
)
def test_a_window_that_cannot_be_fitted_says_why(curves, window, reason):
    fitted = fits.fit_rates(sweep(curves), windows=[window])
    assert (fitted["reason"] == reason).all()
    assert fitted["rate"].isnull().all()


def as_set(curves, name, sizes):
    """The curves as those of a sweep in which one algorithm makes sets at these sizes alone."""
    dataset = sweep(curves, algorithms=[{"name": name, "design": "joint", "sizes": sizes}])
    elsewhere = (dataset["algorithm"] == name) & ~dataset["n"].isin(sizes)
    return dataset.assign(mmd=dataset["mmd"].where(~elsewhere))


def test_a_set_is_fitted_at_its_sizes(curves):
    sizes = [5, *range(20, 401, 20)]
    found = fits.fit_rates(as_set(curves, "herding", sizes), windows=[(20, 400), (21, 90)])
    whole = fits.fit_rates(sweep(curves), windows=[(20, 400)])
    ours, theirs = (
        one.sel(algorithm="herding", model="power_law", window="20-400")["rate"].squeeze()
        for one in (found, whole)
    )
    assert abs(float(ours) / float(theirs) - 1) < 0.05
    long, short = (found.sel(algorithm="herding", window=w).squeeze() for w in ("20-400", "21-90"))
    assert (
        long["faster"] == "not shown"
        and long["reason"] == "a set: made at 20 sizes from 20 to 400 in this window"
    )
    assert short["reason"] == (
        "a set: made at 3 sizes from 40 to 80 in this window; a fit needs at least 8 values of n"
    )
    others = found.sel(window="20-400").drop_sel(algorithm="herding")
    assert (others["reason"] == "").all()


def test_the_octaves_of_a_set_need_their_sizes(curves):
    sizes = [20, 30, 40, 50, 70, 100, 150, 250, 400]
    found = fits.fit_rates(as_set(curves, "sbq", sizes), windows=[(20, 400)])
    own = found.sel(algorithm="sbq").squeeze()
    assert own["n_seeds"] > 0 and own["faster"] == "untested" and own["local_slope"].isnull().all()


def test_a_window_shorter_than_two_octaves_is_untested(curves):
    fitted = fits.fit_rates(sweep(curves), windows=[(150, 400)])
    assert (fitted["faster"] == "untested").all()
    assert fitted["local_slope"].isnull().all()
    assert fitted["rate"].sel(model="power_law").notnull().all()


def test_all_wrong_windows_are_named(curves):
    with pytest.raises(ValueError) as error:
        fits.fit_rates(sweep(curves), windows=[(20, 400), (0, 10), (30, 20), (1.5, 9), (1, 2, 3)])
    for window in ("[0, 10]", "[30, 20]", "[1.5, 9]", "[1, 2, 3]"):
        assert window in str(error.value)
    assert "[20, 400]" not in str(error.value)


def test_a_sweep_without_windows_has_no_rates(curves):
    fitted = fits.fit_rates(sweep(curves), windows=[])
    assert fitted.sizes["window"] == 0 and fits.rate_rows(fitted) == []


@pytest.mark.parametrize("value", [0.0, np.inf])
def test_a_curve_without_a_logarithm_gets_no_fit(curves, value):
    dataset = sweep(curves)
    dataset["mmd"].loc[{"algorithm": "iid", "seed": [2, 5], "n": 60}] = value
    fitted = fits.fit_rates(dataset)
    bad = fitted.sel(algorithm="iid", window="20-400")
    assert (bad["reason"] == "2 of 10 curves are zero or infinite at some n").all()
    assert bad["rate"].isnull().all() and (bad["n_seeds"] == 0).all()
    assert fitted.sel(algorithm="iid", window="100-400")["n_seeds"].item() == 10
    assert (fitted.sel(algorithm="sbq")["reason"] == "").all()


@pytest.mark.parametrize("windows", [(10, 20), 10, [(np.nan, 20)], [(1, np.inf)], ["12"], "12"])
def test_what_is_no_list_of_windows_is_told_what_one_is(curves, windows):
    with pytest.raises(ValueError, match=r"give a list of windows, for example \[\(20, 200\)\]"):
        fits.fit_rates(sweep(curves), windows)


def test_a_table_has_a_row_of_numbers_for_each_cell(curves):
    broken = curves["iid"].copy()
    broken[0, 300:] = np.nan
    found = fits.fit_rates(sweep(curves | {"<b>": broken}, lengthscales=(0.5, 1.0)))
    table = fits.rate_table(found, (100, 400))
    assert table["window"].unique().tolist() == ["100-400"]
    assert table["algorithm"].tolist() == [*curves, "<b>"] * 2
    assert fits.rate_table(found)["window"].unique().tolist() == ["20-400"]
    table = table.set_index(["lengthscale", "algorithm"])
    for lengthscale in (0.5, 1.0):
        for name in curves:
            row = table.loc[lengthscale, name]
            fit = found.sel(lengthscale=lengthscale, algorithm=name, window="100-400").squeeze()
            assert row["rate"] == fit["rate"].sel(model="power_law")
            assert row["rate_low"] < row["rate"] < row["rate_high"]
            assert row["verdict"] == fit["verdict"] and row["n_seeds"] == 10
            assert f"{100 * row['misfit']:.1f} %" in fits.worded_misfit(fit)
        row = table.loc[lengthscale, "<b>"]
        assert np.isnan(row["rate"]) and row["n_seeds"] == 0
        assert row["reason"] == "1 of 10 curves end before n = 400"
    assert "&lt;b&gt;" in table._repr_html_() and "<b>" not in table._repr_html_()


def test_a_table_of_a_window_that_was_not_fitted_is_refused(fitted, curves):
    with pytest.raises(ValueError, match="window 5-9 was not fitted; those fitted are 20-400, 100"):
        fits.rate_table(fitted, (5, 9))
    without = fits.fit_rates(sweep({"iid": curves["iid"]}, windows=()))
    with pytest.raises(ValueError, match="no rate window: give one, for example window="):
        fits.rate_table(without)


def test_the_misfit_is_that_of_the_model_named_or_the_smallest(fitted):
    found = fitted.isel(target=0, kernel=0, lengthscale=0, algorithm=0, window=0).copy(deep=True)
    found["misfit"][:] = [0.3, 0.1, 0.2]
    for verdict, misfit in {"power_law": "30.0 %", "undecided": "10.0 %"}.items():
        found["verdict"] = verdict
        assert fits.worded_misfit(found).startswith(misfit)


def test_curves_without_their_sweep_are_refused(curves):
    with pytest.raises(ValueError, match="lost its attribute config"):
        fits.fit_rates(sweep({"iid": curves["iid"]}).drop_attrs())


@pytest.mark.parametrize("seeds", [1, 2, 5, 9])
def test_the_fits_of_a_cell_do_not_depend_on_other_cells(seeds):
    """To the last digit: a store may hold the fits of some cells and not of others."""
    own = {str(i): power_curves(0.4 + 0.1 * i, seeds=seeds, n=60, rng=i) for i in range(11)}
    own["3"][0, 50:] = np.nan
    together = fits.fit_rates(sweep(own, windows=((5, 60), (10, 40))))
    for name in own:
        alone = fits.fit_rates(sweep({name: own[name]}, windows=((5, 60), (10, 40))))
        xr.testing.assert_identical(together.sel(algorithm=[name]), alone)
        for variable, values in alone.data_vars.items():
            if values.dtype != object:
                theirs = together[variable].sel(algorithm=[name]).values
                assert theirs.tobytes() == values.values.tobytes(), variable
