"""Comparisons of algorithms: points for an error, and points of one for n points of another."""

import numpy as np
import xarray as xr

from bqlib.analysis.cells import attrs
from bqlib.checks import checked_number
from bqlib.over_seeds import median_interval
from bqlib.rates import first_n_within
from bqlib.schema import OK, on_all_dims


def crossover(dataset, one, other, quantity="mmd"):
    """How many points of one algorithm are as good as n points of another.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it, or a selection of it.
    one, other : str
        Algorithms.
    quantity : str
        A variable that falls with n, for example ``"mmd"`` or ``"error"``.

    Returns
    -------
    xarray.Dataset
        Over the sweep without its algorithm, and `n`. ``per_seed``, over `seed` too, is the first
        number of points at which `one` is at or below the value that `other` has at n, in the same
        seed. It is infinite if `one` does not get there, and NaN if a trial failed, is missing or
        ends before n, or if `other` is a set that was not made at n. If `one` is a set, it is the
        first of its sizes: fewer points may do. ``points_needed`` is its median over seeds,
        ``points_needed_low`` and ``points_needed_high`` are the ends of the 95 % interval of
        :func:`bqlib.over_seeds.median_interval`, and ``reached`` is the share of seeds in which
        `one` gets there.

    Raises
    ------
    ValueError
        If the dataset lacks an algorithm or the variable.

    Notes
    -----
    O(n log n) for each seed of a cell.
    """
    dataset = on_all_dims(dataset, (quantity, "status"))
    absent = [a for a in (one, other) if a not in dataset["algorithm"].values]
    if absent:
        raise ValueError(
            f"the dataset has no algorithm {', '.join(absent)}; its algorithms are "
            f"{', '.join(dataset['algorithm'].values.tolist())}"
        )
    ours, theirs = (dataset.sel(algorithm=name, drop=True) for name in (one, other))
    both = (ours["status"] == OK) & (theirs["status"] == OK)
    levels = theirs[quantity].where(theirs["status"] == OK).rename(n="level")
    needed = _first_n(ours[quantity], levels).rename(level="n").where(both)
    median, low, high = xr.apply_ufunc(
        lambda values: median_interval(np.moveaxis(values, -1, 0)),
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
        {name: values.assign_attrs(attrs(words)) for name, (values, words) in found.items()},
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
        Over the sweep and `seed`: infinite if the trial does not get there, and NaN if it failed
        or is missing. Of a set, the first of its sizes: fewer points may do.

    Raises
    ------
    ValueError
        If the error is not above zero.
    TypeError
        If it is not a number.
    """
    dataset = on_all_dims(dataset, (quantity, "status"))
    error = checked_number(error, "error")
    if not error > 0:
        raise ValueError(f"error is {error}; it must be above 0")
    level = xr.DataArray([error], dims="level")
    needed = _first_n(dataset[quantity], level).isel(level=0).where(dataset["status"] == OK)
    return needed.rename("points_needed").assign_attrs(attrs(f"points for {quantity} <= {error:g}"))


def _first_n(curves, levels):
    return xr.apply_ufunc(
        first_n_within,
        curves,
        levels,
        input_core_dims=[["n"], ["level"]],
        output_core_dims=[["level"]],
    )
