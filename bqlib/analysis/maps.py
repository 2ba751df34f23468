"""Maps: one number for each cell of a sweep, for heat maps."""

import numpy as np
import xarray as xr

from bqlib.analysis.cells import attrs, ran_to
from bqlib.analysis.comparison import points_needed
from bqlib.analysis.fits import SWEEP_ENDS, label_of
from bqlib.over_seeds import median_interval
from bqlib.schema import (
    DOES_NOT_APPLY,
    FAILED,
    OK,
    POOLS,
    ends_of_sweeps,
    long_name,
    on_all_dims,
    several_pools,
    sizes_of_sets,
)

NOT_REACHED, ENDS, NO_FIT, NO_SIZE = "not reached", "ends early", "no fit", "not made"
MODEL_WORDS = {
    "power_law": "",
    "stretched_exponential": "exp",
    "power_law_with_floor": "floor",
    "none fits": "none fits",
    "undecided": "undecided",
}


def map_of_error(dataset, n, quantity="mmd"):
    """The error at one n, median over seeds, as a map to draw heat maps from.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it, or a selection of it.
    n : int
    quantity : str

    Returns
    -------
    xarray.Dataset
        Over the sweep: ``value``, and ``word``, which says why the value is NaN. If a value has
        a word too, it must not be read without it.

    Raises
    ------
    ValueError
        If the curves lack this n.
    """
    dataset = on_all_dims(dataset, (quantity, "status"))
    if n not in dataset["n"].values:
        raise ValueError(f"n is {n}; the curves have n from 1 to {dataset.sizes['n']}")
    whole, dataset = dataset, dataset.sel(n=n)
    values = dataset[quantity].where(dataset["status"] == OK)
    ended = (values.isnull() & (dataset["status"] == OK)).any("seed")
    about = f"{long_name(dataset, quantity)} at n = {n}"
    sets = sizes_of_sets(dataset)
    made = [n in sets.get(name, (n,)) for name in dataset["algorithm"].values]
    ends = ends_of_sweeps(dataset.attrs)
    shortest = xr.apply_ufunc(
        lambda curves, status: ran_to(curves, status == OK, ends)[0],
        whole[quantity],
        whole["status"],
        input_core_dims=[["seed", "n"], ["seed"]],
        vectorize=True,
    )
    ended_at = xr.where(shortest < n, _in_words(_run_to, shortest), ENDS)
    why = xr.where(xr.DataArray(made, dims="algorithm"), ended_at, NO_SIZE)
    return _map(_median(values).where(~ended), dataset["status"], why, about)


def map_of_points(dataset, error, quantity="mmd"):
    """The n needed for an error, median over seeds, as :func:`map_of_error` gives it."""
    needed = points_needed(dataset, error, quantity)
    status = on_all_dims(dataset, ("status",))["status"]
    about = f"points for {long_name(dataset, quantity)} of {error:g}"
    median = _median(needed)
    return _map(median.where(np.isfinite(median)), status, NOT_REACHED, about)


def map_of_seconds(dataset, error, seconds, quantity="mmd"):
    """The time of trials that reach an error, median over seeds, as :func:`map_of_error` gives it.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it, or a selection of it.
    error : float
    seconds : xarray.DataArray
        As :func:`bqlib.analysis.seconds.trial_seconds` gives it.
    quantity : str

    Raises
    ------
    ValueError
        If the dataset has several pools: seconds are those of one.

    Notes
    -----
    It is the time of whole trials, up to the largest n, because timings have no other. Fewer
    points take less time.
    """
    if POOLS in dataset.dims:
        raise ValueError(f"{several_pools(dataset)}, and give the seconds of its trials")
    reached = np.isfinite(_median(points_needed(dataset, error, quantity)))
    status = on_all_dims(dataset, ("status",))["status"]
    known = seconds.where(status == OK)
    about = (
        f"seconds of trials of {dataset.sizes['n']} points that reach "
        f"{long_name(dataset, quantity)} of {error:g}"
    )
    found = _map(_median(known).where(reached), status, NOT_REACHED, about)
    untimed = reached & found["value"].isnull()
    return found.assign(word=found["word"].where(~untimed, "no time"))


def map_of_rates(rates, window=None):
    """The rate of the power law in one window, as :func:`map_of_error` gives maps.

    Parameters
    ----------
    rates : xarray.Dataset
        As :func:`bqlib.analysis.fits.fit_rates` gives it.
    window : str, optional
        For example "20-200"; the first by default.

    Returns
    -------
    xarray.Dataset
        The value is a of n^-a, the mean over seeds. It is a rate if the curve follows a power
        law. If it follows another model ("exp", "floor"), none ("none fits"), or the data do not
        tell ("undecided"), it is only the mean slope of the curve in the window, and the word
        says so.
    """
    window = label_of(rates) if window is None else window
    fit = rates.sel(window=window, model="power_law", drop=True)
    fitted = fit["n_seeds"] > 0
    words = _in_words(MODEL_WORDS.get, fit["verdict"])
    words = words.where(fitted, _in_words(_why_no_fit, fit["reason"]))
    first, last = window.split("-")
    return _described(fit["rate"].where(fitted), words, f"rate a of n^-a, n = {first} to {last}")


def _in_words(function, values):
    return xr.apply_ufunc(function, values, vectorize=True, output_dtypes=[object])


def _run_to(n):
    return f"run to {n}"


def _why_no_fit(reason):
    last = reason.rpartition("; ")[-1]
    if last.startswith(SWEEP_ENDS):
        return _run_to(last.removeprefix(SWEEP_ENDS))
    for part, word in (
        ("missing", "missing"),
        ("failed", "failed"),
        ("do not apply", "does not apply"),
        (" end", ENDS),
    ):
        if part in last:
            return word
    return NO_FIT


def _median(values):
    return xr.apply_ufunc(
        lambda v: median_interval(np.moveaxis(v, -1, 0))[0],
        values,
        input_core_dims=[["seed"]],
    )


def _map(value, status, word, about):
    """A map; the word of a cell without a value is the status of its trials, or `word`."""
    ran, failed = (status == OK).any("seed"), (status == FAILED).any("seed")
    does_not_apply = (status == DOES_NOT_APPLY).all("seed")
    absent = xr.where(does_not_apply, "does not apply", "missing")
    words = xr.where(ran, word, xr.where(failed, "failed", absent)).astype(object)
    return _described(value, words.where(value.isnull(), ""), about)


def _described(value, word, about):
    return xr.Dataset(
        {
            "value": value.drop_attrs().assign_attrs(attrs(about)),
            "word": word.drop_attrs().assign_attrs(attrs("remark")),
        }
    )
