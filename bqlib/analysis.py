"""What the curves of a sweep say: its dataset in, a dataset of results out."""

import json

import numpy as np
import xarray as xr

from bqlib import rates as numerics

FAILED, OK = 2, 1  # values of `status`; 0 is a trial that was never run


def rates(dataset, windows=None):
    """Fit rates of convergence to the MMD curves of a sweep.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it.
    windows : sequence of (int, int), optional
        Ranges of n to fit on, both ends included. By default the `rate_windows` of the sweep,
        which were fixed before it ran.

    Returns
    -------
    xarray.Dataset
        Over target, kernel, lengthscale, algorithm, `window` and `model`. `rate` is the mean over
        seeds, `rate_low` and `rate_high` its 95 % interval by a bootstrap over seeds. Where
        something is NaN, or some seeds are left out, `reason` says why.

    Raises
    ------
    ValueError
        If a window is not a rising pair of sizes with at least 8 integers.

    Notes
    -----
    A window that the curve of some seed does not fill gets no rate: the seeds that do fill it
    are not a fair sample. Seeds that are missing or failed are left out, and said.
    """
    windows = checked_windows(_config(dataset)["rate_windows"] if windows is None else windows)
    cells = ["target", "kernel", "lengthscale", "algorithm"]
    mmd = dataset["mmd"].transpose(*cells, "seed", "n")
    status = dataset["status"].transpose(*cells, "seed").values
    models = ["power_law"]
    shape = (*mmd.shape[:4], len(windows), len(models))
    rate, low, high = (np.full(shape, np.nan) for _ in range(3))
    n_seeds = np.zeros(shape, dtype=np.int64)
    reason = np.full(shape, "", dtype=object)
    curves = mmd.values
    for cell in np.ndindex(*mmd.shape[:4]):
        for w, (a, b) in enumerate(windows):
            at = (*cell, w, 0)
            sizes = numerics.log_spaced(a, b)
            errors, reason[at] = _window(curves[cell], status[cell], a, b)
            if errors is None:
                continue
            n_seeds[at] = len(errors)
            fitted, _, _ = numerics.power_law(sizes, errors[:, sizes - 1])
            rate[at], low[at], high[at] = numerics.mean_interval(fitted)
    dims = (*cells, "window", "model")
    labels = [f"{a}-{b}" for a, b in windows]
    return xr.Dataset(
        {
            "rate": (dims, rate, _about("rate a of the fit MMD = C n^-a, mean over seeds")),
            "rate_low": (dims, low, _about("lower end of the 95 % interval of the rate")),
            "rate_high": (dims, high, _about("upper end of the 95 % interval of the rate")),
            "n_seeds": (dims, n_seeds, _about("number of seeds fitted")),
            "reason": (dims, reason, _about("why a value is missing or seeds are left out")),
        },
        coords={
            **{name: dataset[name] for name in cells},
            "window": ("window", np.array(labels, dtype=object), _about("range of n fitted")),
            "model": ("model", np.array(models, dtype=object), _about("model of the curve")),
        },
        attrs={"title": "Rates of convergence", "interval": "95 %, bootstrap over seeds"},
    )


def checked_windows(windows):
    """The windows as pairs of integers.

    Raises
    ------
    ValueError
        Naming every window that is not a rising pair of sizes with at least 8 integers.
    """
    problems = []
    for window in windows:
        a, b = window if len(window) == 2 else (0, 0)
        if not (a == int(a) and b == int(b) and a >= 1 and b - a + 1 >= numerics.FEWEST_SIZES):
            problems.append(
                f"window {list(window)} must be [a, b] with integers 1 <= a < b and at least "
                f"{numerics.FEWEST_SIZES} sizes"
            )
    if problems:
        raise ValueError("; ".join(problems))
    return [(int(a), int(b)) for a, b in windows]


def _window(curves, status, a, b):
    """The curves (S, N) of the seeds that ran, and what to say.

    None instead of the curves where the window cannot be fitted.
    """
    total = len(curves)
    notes = []
    for value, word in ((0, "missing"), (FAILED, "failed")):
        count = int((status == value).sum())
        if count:
            notes.append(f"{count} of {total} seeds {word}")
    curves = curves[status == OK]
    if len(curves) == 0:
        return None, "; ".join(notes)
    if b > curves.shape[1]:
        notes.append(f"the sweep ends at n = {curves.shape[1]}")
        return None, "; ".join(notes)
    short = int(np.isnan(curves[:, a - 1 : b]).any(axis=1).sum())
    if short:
        notes.append(f"{short} of {len(curves)} curves end before n = {b}")
        return None, "; ".join(notes)
    if len(curves) < numerics.FEWEST_SEEDS:
        notes.append(f"{len(curves)} seeds: an interval needs {numerics.FEWEST_SEEDS}")
    return curves, "; ".join(notes)


def _config(dataset):
    return json.loads(dataset.attrs["config"])


def _about(long_name, units="1"):
    return {"long_name": long_name, "units": units}
