"""How algorithms and settings compare: n for an error, an error at n, seconds, maps of rates."""

from pathlib import Path

import numpy as np
import xarray as xr

from bqlib import rates as numerics
from bqlib.integrity import timings_used
from bqlib.schema import FAILED, OK, SWEEP_DIMS, TRIAL_DIMS, tables
from bqlib.timings import read_timing

NOT_REACHED, ENDS, NO_FIT = "not reached", "ends early", "no fit"
MODEL_WORDS = {
    "power_law": "",
    "stretched_exponential": "exp",
    "power_law_with_floor": "floor",
    "undecided": "undecided",
}


def on_all_dims(dataset, names):
    """Variables of a dataset with all dimensions of the sweep and the seed.

    Those from which one label was selected have one label; without them, there is no telling
    which trials these are.
    """
    lost = [dim for dim in TRIAL_DIMS if dim not in dataset.coords]
    unknown = [name for name in names if name not in dataset]
    if lost or unknown:
        raise ValueError(
            f"the dataset has no {', '.join([*unknown, *lost])}: take one that bqlib.open_results "
            "gave, or a selection of it by sel, isel or squeeze"
        )
    part = dataset[list(names)]
    _, variables = tables(errors=True)
    curves = [name for name in names if name in variables and "n" in variables[name].dims]
    if any("n" not in part[name].dims for name in curves):
        raise ValueError(
            "the dataset has one n and no curves: select n in what comes out, or by n=slice(1, ...)"
        )
    empty = [dim for dim, size in part.sizes.items() if size == 0]
    if empty:
        raise ValueError(
            f"the dataset has no label left of {', '.join(empty)}: select at least one of each "
            "dimension"
        )
    if "n" in part.dims and not np.array_equal(part["n"], np.arange(1, part.sizes["n"] + 1)):
        raise ValueError(
            "the dataset has not every n from 1 on, without which no n of a curve can be told: "
            "select n in what comes out, or by n=slice(1, ...)"
        )
    return part.expand_dims([dim for dim in TRIAL_DIMS if dim not in part.dims])


def crossover(dataset, one, other, quantity="mmd"):
    """How many points of one algorithm are as good as n points of another.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it, or a selection of it.
    one, other : str
        Algorithms.
    quantity : str
        A variable that falls with n, such as ``"mmd"`` or ``"error"``.

    Returns
    -------
    xarray.Dataset
        ``per_seed`` over the sweep without its algorithm, `seed` and `n`: the first number of
        points at which `one` is at or below the value that `other` has at n, in the same seed.
        It is infinite where `one` does not get there, and NaN where a trial has failed, is missing
        or ends before n. ``points_needed`` is its median over seeds, ``points_needed_low`` and
        ``points_needed_high`` the ends of the 95 % interval of :func:`bqlib.rates.median_interval`;
        ``reached`` is the share of seeds in which `one` gets there.

    Raises
    ------
    ValueError
        If the dataset has no such algorithm or variable.

    Notes
    -----
    O(n log n) for each seed of a cell.
    """
    dataset = on_all_dims(dataset, (quantity, "status"))
    absent = [a for a in (one, other) if a not in dataset["algorithm"].values]
    if absent:
        raise ValueError(
            f"no algorithm {', '.join(absent)}; there are "
            f"{', '.join(dataset['algorithm'].values.tolist())}"
        )
    ours, theirs = (dataset.sel(algorithm=name, drop=True) for name in (one, other))
    both = (ours["status"] == OK) & (theirs["status"] == OK)
    levels = theirs[quantity].where(theirs["status"] == OK).rename(n="level")
    needed = _first_n(ours[quantity], levels).rename(level="n").where(both)
    median, low, high = xr.apply_ufunc(
        lambda values: numerics.median_interval(np.moveaxis(values, -1, 0)),
        needed,
        input_core_dims=[["seed"]],
        output_core_dims=[[], [], []],
    )
    said = f"points of {one} as good as n of {other}"
    found = {
        "per_seed": (needed, said),
        "points_needed": (median, f"{said}, median over seeds"),
        "points_needed_low": (low, f"{said}, lower end of the 95 % interval of the median"),
        "points_needed_high": (high, f"{said}, upper end of the 95 % interval of the median"),
        "reached": (
            np.isfinite(needed).where(needed.notnull()).mean("seed"),
            f"share of seeds in which {one} gets there",
        ),
    }
    return xr.Dataset(
        {name: values.assign_attrs(_about(words)) for name, (values, words) in found.items()},
        attrs={"title": f"{one} beside {other}", "one": one, "other": other, "of": quantity},
    )


def points_needed(dataset, error, quantity="mmd"):
    """The first n at which each trial is at or below an error.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it, or a selection of it.
    error : float
    quantity : str

    Returns
    -------
    xarray.DataArray
        Over the sweep and `seed`: infinite where the trial does not get there, and NaN where it
        has failed or is missing.

    Raises
    ------
    ValueError
        If the error is not above zero.
    """
    dataset = on_all_dims(dataset, (quantity, "status"))
    if not error > 0:
        raise ValueError(f"error is {error}; it must be above zero")
    level = xr.DataArray([float(error)], dims="level")
    needed = _first_n(dataset[quantity], level).isel(level=0).where(dataset["status"] == OK)
    return needed.rename("points_needed").assign_attrs(
        _about(f"points for {quantity} <= {error:g}")
    )


def trial_seconds(dataset, results):
    """Seconds that each trial of a dataset took, from the files of timings beside it.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it, or a selection of it.
    results : path-like, or sequence of path-like
        The folders of results that it was opened from.

    Returns
    -------
    xarray.DataArray
        Over the sweep and `seed`, NaN where no time is known. It is the time of a whole trial, up
        to the largest n, on the machine that ran it.

    Raises
    ------
    FileNotFoundError
        If a folder has no timings.
    """
    folders = [results] if isinstance(results, str | Path) else list(results)
    without = [str(folder) for folder in folders if not Path(folder, "timings").is_dir()]
    if without:
        raise FileNotFoundError(
            f"no timings in {', '.join(without)}: name the folders results/<experiment>"
        )
    sweep = on_all_dims(dataset, ("status",))
    values = {dim: sweep[dim].values.tolist() for dim in TRIAL_DIMS}
    places = {
        dim: {f"{x:.12g}" if dim == "lengthscale" else x: i for i, x in enumerate(labels)}
        for dim, labels in values.items()
    }
    seconds = np.full([len(labels) for labels in values.values()], np.nan)
    for folder in reversed(folders):  # the first has the last word
        for piece in timings_used(folder):
            labels = Path(piece).parent.parts
            cell = [places[dim].get(x) for dim, x in zip(SWEEP_DIMS, labels, strict=True)]
            if None in cell:
                continue
            for seed, value in read_timing(folder, piece)[0].items():
                if seed in places["seed"]:
                    seconds[(*cell, places["seed"][seed])] = value
    about = {"long_name": "time of a trial", "units": "s"}
    return xr.DataArray(
        seconds, {dim: sweep[dim] for dim in TRIAL_DIMS}, TRIAL_DIMS, name="seconds", attrs=about
    )


def map_of_error(dataset, n, quantity="mmd"):
    """The error at one n, median over seeds, as a map that heat maps are drawn from.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it, or a selection of it.
    n : int
    quantity : str

    Returns
    -------
    xarray.Dataset
        Over the sweep: ``value``, and ``word``, what there is to say where it is NaN. A value
        that has a word is not what it seems without it.

    Raises
    ------
    ValueError
        If the curves have no such n.
    """
    dataset = on_all_dims(dataset, (quantity, "status"))
    if n not in dataset["n"].values:
        raise ValueError(f"n is {n}; the curves have n from 1 to {dataset.sizes['n']}")
    dataset = dataset.sel(n=n)
    values = dataset[quantity].where(dataset["status"] == OK)
    ended = (values.isnull() & (dataset["status"] == OK)).any("seed")
    about = f"{long_name(dataset, quantity)} at n = {n}"
    return _map(_median(values).where(~ended), dataset["status"], ENDS, about)


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
        As :func:`trial_seconds` gives it.
    quantity : str

    Notes
    -----
    It is the time of whole trials, up to the largest n: no more is known of a trial. Fewer points
    take less.
    """
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
        As :func:`bqlib.analysis.rates` gives it.
    window : str, optional
        Such as "20-200"; the first by default.

    Returns
    -------
    xarray.Dataset
        The value is a of n^-a, the mean over seeds: a rate where a power law fits best. Where
        another model does ("exp", "floor") or none ("undecided"), it is no more than the mean
        slope of the curve in the window, and the word says so.
    """
    window = rates["window"].values[0] if window is None else window
    fit = rates.sel(window=window, model="power_law", drop=True)
    fitted = fit["n_seeds"] > 0
    words = _in_words(MODEL_WORDS.get, fit["verdict"])
    words = words.where(fitted, _in_words(_why_no_fit, fit["reason"]))
    first, last = window.split("-")
    return _described(fit["rate"].where(fitted), words, f"rate a of n^-a, n = {first} to {last}")


def _in_words(function, values):
    return xr.apply_ufunc(function, values, vectorize=True, output_dtypes=[object])


def _why_no_fit(reason):
    last = reason.rpartition("; ")[-1]
    for part, word in (("missing", "missing"), ("failed", "failed"), (" end", ENDS)):
        if part in last:
            return word
    return NO_FIT


def _first_n(curves, levels):
    return xr.apply_ufunc(
        numerics.first_n_within,
        curves,
        levels,
        input_core_dims=[["n"], ["level"]],
        output_core_dims=[["level"]],
    )


def _median(values):
    return xr.apply_ufunc(
        lambda v: numerics.median_interval(np.moveaxis(v, -1, 0))[0],
        values,
        input_core_dims=[["seed"]],
    )


def _map(value, status, word, about):
    """A map whose cells without a value have the status of their trials for a word, or `word`."""
    ran, failed = (status == OK).any("seed"), (status == FAILED).any("seed")
    words = xr.where(ran, word, xr.where(failed, "failed", "missing")).astype(object)
    return _described(value, words.where(value.isnull(), ""), about)


def _described(value, word, about):
    return xr.Dataset(
        {
            "value": value.drop_attrs().assign_attrs(_about(about)),
            "word": word.drop_attrs().assign_attrs(_about("remark")),
        }
    )


def long_name(dataset, quantity):
    """What a quantity is called on an axis."""
    return "MMD" if quantity == "mmd" else dataset[quantity].attrs.get("long_name", quantity)


def _about(long_name):
    return {"long_name": long_name, "units": "1"}
