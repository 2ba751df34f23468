"""Seconds of trials, from the files of timings of their run."""

from pathlib import Path

import numpy as np
import xarray as xr

from bqlib.analysis.cells import attrs
from bqlib.results.layout import Layout, cell_of
from bqlib.results.timings import read_timing
from bqlib.results.used import timings_used
from bqlib.schema import POOLS, SWEEP_DIMS, TRIAL_DIMS, on_all_dims


def trial_seconds(dataset, results):
    """Seconds that each trial of a dataset took, from the files of timings beside it.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it, or a selection of it.
    results : path-like, or sequence of path-like
        The folders of results that the dataset was opened from.

    Returns
    -------
    xarray.DataArray
        Over the sweep and `seed`, NaN if no time is known. It is the time of a whole trial, up to
        the largest n, on the machine that ran it.

    Raises
    ------
    FileNotFoundError
        If a folder has no timings.
    ValueError
        If the dataset has several pools: select one.
    """
    folders = [results] if isinstance(results, str | Path) else list(results)
    without = [str(folder) for folder in folders if not Layout(folder).timings.is_dir()]
    if without:
        raise FileNotFoundError(
            f"no timings in {', '.join(without)}: give the folders results/<experiment>"
        )
    if POOLS in dataset.dims:
        raise ValueError(
            f"the dataset has several pools: select one label of {POOLS}, and give the folder of "
            "its sweep"
        )
    sweep = on_all_dims(dataset, ("status",))
    values = {dim: sweep[dim].values.tolist() for dim in TRIAL_DIMS}
    index = {
        dim: {f"{x:.12g}" if dim == "lengthscale" else x: i for i, x in enumerate(labels)}
        for dim, labels in values.items()
    }
    seconds = np.full([len(labels) for labels in values.values()], np.nan)
    for folder in reversed(folders):  # the first folder counts if several have a time
        for piece in timings_used(folder):
            cell = [index[dim].get(x) for dim, x in zip(SWEEP_DIMS, cell_of(piece), strict=True)]
            if None in cell:
                continue
            for seed, value in read_timing(folder, piece)[0].items():
                if seed in index["seed"]:
                    seconds[(*cell, index["seed"][seed])] = value
    coords = {dim: sweep[dim] for dim in TRIAL_DIMS}
    about = attrs("time of a trial", "s")
    return xr.DataArray(seconds, coords, TRIAL_DIMS, name="seconds", attrs=about)
