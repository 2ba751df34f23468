"""Rates of convergence: fits over seeds for every cell and window of n."""

import hashlib
import json
from functools import cache
from itertools import product

import numpy as np
import scipy
import xarray as xr

from bqlib.analysis.cells import attrs, ran_to
from bqlib.checks import checked_number
from bqlib.over_seeds import FEWEST_SEEDS, holm, mean_interval, p_greater
from bqlib.rates import FEWEST_SIZES, MODELS, local_slopes, log_spaced, verdicts
from bqlib.results.lazy import TEXT
from bqlib.schema import (
    COORDINATES,
    DOES_NOT_APPLY,
    FAILED,
    MISSING,
    OK,
    POOLS,
    ends_of_sweeps,
    on_all_dims,
    sizes_of_sets,
    sweep_dims,
)
from bqlib.sweep.fingerprint import fingerprint

LEVEL = 0.05  # of the test for faster than 1/n
OCTAVES = ("first", "last")
A_SET = "a set: "  # how the reason of a set starts
SWEEP_ENDS = "the sweep ends at n = "
NUMBERS = ("seeds", "power law n^-a", "A - c n^b", "model", "misfit", "faster than 1/n")
_ABOUT = COORDINATES | {POOLS: ("pool of candidates", "")}
_LEFT_OUT = (
    (MISSING, "missing"),
    (FAILED, "failed"),
    (DOES_NOT_APPLY, "of a rule that does not apply"),
)


def fit_rates(dataset, windows=None, known=()):
    """Fit rates of convergence to the MMD curves of a sweep.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it, or a selection of it.
    windows : sequence of (int, int), optional
        Ranges of n to fit on, both ends included. By default the `rate_windows` of the sweep,
        which were fixed before it ran.
    known : sequence of xarray.Dataset, optional
        What this function gave before. A fit is taken from there if the same code made it, with
        the same numpy and scipy, of the same curves.

    Returns
    -------
    xarray.Dataset
        Over the dimensions of the sweep, `window`, and some of:

        - `model`: ``rate`` with its interval, and ``misfit``, the largest residual of log MMD of
          the mean curve. ``verdict`` is the model named by :func:`bqlib.rates.verdict`, "none
          fits" if every model misses by more than noise and 4 %, or "undecided" if the data do
          not tell. ``noise`` is what the seeds' noise adds to a misfit, and ``curvature_p`` the
          p-value that the curves bend in log-log axes. ``exponent`` and ``floor`` belong to one
          model each.
        - `octave`: the last two doublings of n in the window. ``local_slope`` is
          log2(e_n / e_2n), and ``faster_p`` its Holm-adjusted one-sided p-value against 1.
          ``faster`` is "yes" if it is at most 0.05 in both octaves, "not shown" if it is not, and
          "untested" for fewer than 5 seeds, a window shorter than two octaves, or a set that is
          not made at the n of these octaves.

        Intervals are 95 %, by a bootstrap over seeds. If values are NaN or seeds are excluded,
        ``reason`` says why. ``curves_sha256`` is the digest of the curves that were fitted.

    Raises
    ------
    ValueError
        If a window is not a pair of integers 1 <= first < last.

    Notes
    -----
    If the curve of one seed ends inside a window, the window has no fit: the other seeds are not
    a fair sample. Where the points of a design are a set, such as those of `joint`, a fit takes its
    sizes in the window, of which it needs 8, and ``reason`` says so.
    Missing and failed seeds are excluded, and ``reason`` counts them. The numbers
    hold only for their window; no finite window proves a rate. The cost is about 5 ms for each
    cell and window of 5 seeds.
    """
    config = _config(dataset)
    windows = _checked(config["rate_windows"], windows)
    sizes_of = sizes_of_sets(dataset)
    names = dataset["algorithm"].values.tolist()
    ends = ends_of_sweeps(dataset.attrs)
    dataset = on_all_dims(dataset, ("mmd", "status"))
    dims = sweep_dims(dataset)
    mmd = dataset["mmd"].transpose(*dims, "seed", "n").values
    status = dataset["status"].transpose(*dims, "seed").values
    result = _empty(dataset, windows)
    arrays = {name: result[name].values for name in _VARIABLES}  # these are written below
    known = {key: fit for rates in known for key, fit in _fits_in(rates)}
    labels = result["window"].values.tolist()
    to_fit = {window: {} for window in windows}
    for cell in np.ndindex(mmd.shape[:-2]):
        sizes = sizes_of.get(names[cell[-1]], ())
        # Of a shorter sweep that was merged, as it was: its own store may have the fit.
        reach = len(mmd[cell].T) if sizes else ran_to(mmd[cell], status[cell] == OK, ends)[1]
        curves = mmd[cell][:, :reach], status[cell], sizes
        digest = _digest(*curves)
        arrays["curves_sha256"][cell] = digest
        for w, window in enumerate(windows):
            if (digest, labels[w]) in known:
                _write(arrays, (*cell, w), known[digest, labels[w]])
            else:
                to_fit[window][(*cell, w)] = curves
    for window, cells in to_fit.items():
        for place, fit in zip(cells, _fit(list(cells.values()), *window), strict=True):
            _write(arrays, place, fit)
    return result


def _write(arrays, place, fit):
    for name, value in fit.items():
        arrays[name][place] = value


def _config(dataset):
    """The sweep of a dataset of curves."""
    if "config" not in dataset.attrs:
        raise ValueError(
            "the dataset has lost its attribute config, which says what its algorithms are: keep "
            "the attributes, for example with xarray.set_options(keep_attrs=True)"
        )
    return json.loads(dataset.attrs["config"])


def windows_of(dataset):
    """The windows in which the sweep of a dataset fits rates."""
    return [tuple(window) for window in _config(dataset)["rate_windows"]]


@cache
def _code():
    """What a fit depends on besides its curves: the code, and the libraries that round for it."""
    return f"{fingerprint(fit_rates)}, numpy {np.__version__}, scipy {scipy.__version__}"


def _digest(mmd, status, sizes):
    """Digest of all that :func:`_fit` depends on, apart from the window and the code."""
    found = hashlib.sha256(repr((mmd.shape, sizes)).encode())
    for values in (mmd, status):
        found.update(np.ascontiguousarray(values, dtype=np.float64))
    return found.hexdigest()


def _fits_in(rates):
    """The fits that rates hold, if the same code made them: (digest, window) and the values."""
    labels = {"model": list(MODELS), "octave": list(OCTAVES)}
    same = rates.attrs.get("fitted_by") == _code() and _VARIABLES.keys() <= set(rates)
    if not same or any(rates[dim].values.tolist() != own for dim, own in labels.items()):
        return
    rates = rates.transpose(*sweep_dims(rates), "window", ...)
    values = {name: rates[name].values for name in _VARIABLES}
    windows = rates["window"].values.tolist()
    for index, digest in np.ndenumerate(values["curves_sha256"]):
        yield (digest, windows[index[-1]]), {name: own[index] for name, own in values.items()}


def rate_rows(found):
    """The rates of :func:`fit_rates` as rows of text, one for each cell and window with a fit.

    Sets without a fit have a row too, as their sizes may be too few.
    """
    rows, dims = [], (*sweep_dims(found), "window")
    for labels in product(*(found[dim].values.tolist() for dim in dims)):
        labels = dict(zip(dims, labels, strict=True))
        fit = found.sel(labels)
        told = {name: value for name, value in labels.items() if found.sizes[name] > 1}
        if not int(fit["n_seeds"]):
            if fit["reason"].item().startswith(A_SET):
                rows.append(told | dict.fromkeys(NUMBERS, "-") | {"remarks": fit["reason"].item()})
            continue
        power = fit.sel(model="power_law")
        rows.append(
            told
            | {
                "seeds": int(fit["n_seeds"]),
                "power law n^-a": worded(power, "rate"),
                "A - c n^b": worded(fit, "exponent"),
                "model": fit["verdict"].item(),
                "misfit": worded_misfit(fit),
                "faster than 1/n": fit["faster"].item(),
                "remarks": fit["reason"].item(),
            }
        )
    return rows


def rate_table(found, window=None):
    """The rates of :func:`fit_rates` in one window, as a table of numbers with a row for each cell.

    Parameters
    ----------
    found : xarray.Dataset
        As :func:`fit_rates` gives it.
    window : (int, int), optional
        By default the first window of `found`.

    Returns
    -------
    pandas.DataFrame
        Columns: the labels of the sweep and of the window; ``rate``, a of n^-a, with the ends
        ``rate_low`` and ``rate_high`` of its 95 % interval; ``verdict``, the model that the curve
        follows; ``misfit``, that of this model, or the smallest if none is named, and ``noise``;
        ``n_seeds``; and ``reason``, why numbers are missing. If the verdict is not
        ``power_law``, the rate is only the mean slope of the curve in the window.

    Raises
    ------
    ValueError
        If `found` lacks the window, or has none.
    """
    fit = found.sel(window=label_of(found, window))
    power = fit.sel(model="power_law", drop=True)
    columns = {
        **{name: power[name] for name in ("rate", "rate_low", "rate_high")},
        "verdict": fit["verdict"],
        "misfit": _misfit(fit),
        **{name: fit[name] for name in ("noise", "n_seeds", "reason")},
    }
    dims = sweep_dims(fit)
    table = xr.Dataset(columns).to_dataframe(dim_order=dims).reset_index()
    return table[[*dims, "window", *columns]]


def label_of(found, window=None):
    """The label of a window (first, last) in rates of :func:`fit_rates`, or of their first one.

    Raises
    ------
    ValueError
        If the rates lack the window, or have none.
    """
    windows = found["window"].values.tolist()
    if not windows:
        raise ValueError("the sweep has no rate window: give one, for example window=(20, 200)")
    label = windows[0] if window is None else "-".join(f"{end:.0f}" for end in window)
    if label not in windows:
        raise ValueError(f"window {label} was not fitted; those fitted are {', '.join(windows)}")
    return label


def _misfit(fit):
    """The misfit of the model named, or the smallest if none is."""
    misfits = fit["misfit"]
    named = misfits.where(misfits["model"] == fit["verdict"]).max("model")
    return named.fillna(misfits.min("model"))


def worded(fit, name, digits=3):
    """A number of a fit and the ends of its interval, for example "0.918 [0.917, 0.920]"."""
    mean, low, high = (float(fit[f"{name}{end}"]) for end in ("", "_low", "_high"))
    if np.isnan(low):
        return f"{mean:.{digits}f}"
    return f"{mean:.{digits}f} [{low:.{digits}f}, {high:.{digits}f}]"


def worded_misfit(fit):
    """The misfit of the model named, or the smallest if none is, for example "2.1 % (noise 0.8 %)".

    Noise is NaN, and not said, for fewer than 5 seeds.
    """
    noise = float(fit["noise"])
    return f"{100 * float(_misfit(fit)):.1f} %" + (
        "" if np.isnan(noise) else f" (noise {100 * noise:.1f} %)"
    )


def _fit(cells, first, last):
    """All that is said of each cell in one window, from (curves (S, N), status of seeds, sizes).

    What is said of a cell depends on nothing else, or fits that are taken from a store would not be
    those made anew. Cells with the same sizes and number of seeds are fitted at once.
    """
    found, alike = [], {}
    for k, (mmd, status, sizes) in enumerate(cells):
        curves = mmd[status == OK]
        inside = [n for n in sizes if first <= n <= last]
        known = np.array(inside if sizes else range(first, last + 1), dtype=int)
        reasons, fits = _say(curves, status, known, last)
        if sizes:
            ends = f" from {inside[0]} to {inside[-1]}" if inside else ""
            reasons.insert(0, f"{A_SET}made at {len(inside)} sizes{ends} in this window")
        found.append({"reason": "; ".join(reasons)})
        if fits:
            fitted = known if sizes else log_spaced(first, last)
            alike.setdefault((*curves.shape, *fitted.tolist()), []).append((k, curves))
    for (seeds, _, *fitted), own in alike.items():
        curves = np.array([curves for _, curves in own])
        numbers = _numbers(curves, np.array(fitted), first, last)
        for i, (k, _) in enumerate(own):
            found[k] |= {"n_seeds": seeds} | {name: values[i] for name, values in numbers.items()}
    return found


def _numbers(curves, sizes, first, last):
    """All numbers of some cells in one window, from the curves (C, S, N) of their seeds."""
    count, seeds = curves.shape[:2]
    # Sums round by the order in memory, which must not depend on how many cells stand side by side:
    # here the seed runs fastest, and with one seed n does.
    errors = curves[..., sizes - 1] if seeds > 1 else curves[..., sizes - 1].copy(order="C")
    together = errors.reshape(count * seeds, len(sizes))
    fits = {name: fit(sizes, together) for name, fit in MODELS.items()}
    judged = verdicts(sizes, errors)

    def intervals(values):  # of one number for each curve
        return mean_interval(values.reshape(count, seeds).T)

    unknown = (np.full(count, np.nan),) * 3
    rates = [intervals(fit["rate"]) if "rate" in fit else unknown for fit in fits.values()]
    return {
        "verdict": [own.name for own in judged],
        "misfit": [list(own.misfit.values()) for own in judged],
        "noise": [own.noise for own in judged],
        "curvature_p": [own.curvature_p for own in judged],
        **_named_interval("exponent", intervals(fits["stretched_exponential"]["exponent"])),
        **_named_interval("floor", intervals(fits["power_law_with_floor"]["floor"])),
        **_named_interval("rate", np.transpose(rates, (1, 2, 0))),
        **_octave_numbers(curves, first, last),
    }


def _named_interval(name, values):
    return dict(zip((name, f"{name}_low", f"{name}_high"), values, strict=True))


def _octave_numbers(curves, first, last):
    """Slopes over the last two doublings of n in a window, and whether they are above 1."""
    count, seeds, largest = curves.shape
    faster = np.full(count, "untested", dtype=object)
    starts = _octaves(first, last)
    if starts is None:
        return {"faster": faster}
    n = np.arange(1, largest + 1)
    inside = np.where((first <= n) & (n <= last), curves, np.nan)  # it can be zero elsewhere
    slopes = local_slopes(inside)[..., starts - 1].transpose(1, 2, 0)
    known = ~np.isnan(slopes).any(axis=(0, 1))  # a set may not be made at these n
    numbers = np.full((4, len(starts), count), np.nan)
    numbers[:3, :, known] = mean_interval(slopes[..., known])
    if seeds >= FEWEST_SEEDS and known.any():
        p = holm(p_greater(slopes[..., known], 1.0))
        numbers[3][:, known] = p
        faster[known] = np.where((p <= LEVEL).all(axis=0), "yes", "not shown")
    *intervals, p = numbers.transpose(0, 2, 1)
    return _named_interval("local_slope", intervals) | {"faster_p": p, "faster": faster}


def _octaves(first, last):
    """The n at which the last two doublings of n in a window start, or None if it lacks two."""
    starts = np.array([last // 4, last // 2])
    return starts if starts[0] >= first else None


def _say(curves, status, sizes, last):
    """Remarks on the fit at the sizes in a window, and whether it can be fitted."""
    total, ran = len(status), len(curves)
    counts = [(int((status == value).sum()), word) for value, word in _LEFT_OUT]
    reasons = [f"{count} of {total} seeds {word}" for count, word in counts if count]
    if ran == 0:
        return reasons, False
    if last > curves.shape[1]:
        return [*reasons, f"{SWEEP_ENDS}{curves.shape[1]}"], False
    if len(sizes) < FEWEST_SIZES:
        return [*reasons, f"a fit needs at least {FEWEST_SIZES} values of n"], False
    window = curves[:, sizes - 1]
    short = int(np.isnan(window).any(axis=1).sum())
    if short:
        return [*reasons, f"{short} of {ran} curves end before n = {last}"], False
    flat = int(((window <= 0) | np.isinf(window)).any(axis=1).sum())
    if flat:  # they have no logarithms
        return [*reasons, f"{flat} of {ran} curves are zero or infinite at some n"], False
    if ran < FEWEST_SEEDS:
        reasons.append(
            f"no interval and no verdict: they need {FEWEST_SEEDS} seeds, there are {ran}"
        )
    return reasons, True


def _checked(default, windows):
    windows = default if windows is None else windows
    windows = list(windows) if np.iterable(windows) else [windows]
    wrong = [
        str(list(window) if np.iterable(window) and not isinstance(window, str) else window)
        for window in windows
        if not _is_window(window)
    ]
    if wrong:
        raise ValueError(
            f"these windows are not [first, last] with integers 1 <= first < last: "
            f"{', '.join(wrong)}; give a list of windows, for example [(20, 200)]"
        )
    return [(int(first), int(last)) for first, last in windows]


def _is_window(window):
    try:
        first, last = (checked_number(bound, "bound") for bound in window)
    except (TypeError, ValueError):
        return False
    return first.is_integer() and last.is_integer() and 1 <= first < last


def _empty(dataset, windows):
    """The dataset of :func:`fit_rates`, without values."""
    own = sweep_dims(dataset)
    labels = {
        **{name: dataset[name].values for name in own},
        "window": np.array([f"{first}-{last}" for first, last in windows], dtype=object),
        "model": np.array(list(MODELS), dtype=object),
        "octave": np.array(OCTAVES, dtype=object),
    }
    about = {
        **{name: _ABOUT[name] for name in own},
        "window": ("values of n fitted, first and last", ""),
        "model": ("model of the curve", ""),
        "octave": ("doubling of n: the last but one and the last of the window", ""),
    }
    coords = {name: (name, values, attrs(*about[name])) for name, values in labels.items()}
    octaves = [_octaves(*window) for window in windows]
    octaves = [(0, 0) if starts is None else starts for starts in octaves]
    coords["octave_start"] = (
        ("window", "octave"),
        np.array(octaves, dtype=np.int64).reshape(-1, len(OCTAVES)),
        attrs("n at the start of the octave; 0 where the window has not two"),
    )
    data = {}
    for name, (dims, fill, long_name, units) in _VARIABLES.items():
        dims = (*own, "window", *dims)
        dtype = TEXT if isinstance(fill, str) else np.asarray(fill).dtype
        shape = [len(labels[dim]) for dim in dims]
        data[name] = (dims, np.full(shape, fill, dtype=dtype), attrs(long_name, units))
    attributes = {"title": "Rates of convergence", "config": dataset.attrs["config"]}
    attributes["fitted_by"] = _code()
    return xr.Dataset(data, coords, attributes)


def _with_interval(name, dims, long_name):
    return {
        name: (dims, np.nan, f"{long_name}, mean over seeds", "1"),
        f"{name}_low": (dims, np.nan, f"{long_name}, lower end of the 95 % interval", "1"),
        f"{name}_high": (dims, np.nan, f"{long_name}, upper end of the 95 % interval", "1"),
    }


# Dimensions after the sweep's and the window, value if nothing is known, long name, units.
_VARIABLES = {
    **_with_interval("rate", ("model",), "rate a of a model with n^-a"),
    **_with_interval("exponent", (), "exponent b of the model C exp(-c n^b)"),
    **_with_interval("floor", (), "floor of the model power_law_with_floor"),
    "misfit": (("model",), np.nan, "largest residual of log MMD of the mean curve", "1"),
    "noise": ((), np.nan, "what noise between seeds adds to a misfit, at 99 %", "1"),
    "curvature_p": ((), np.nan, "p-value that the curves bend in log-log axes", "1"),
    "verdict": ((), "", "model that the mean curve follows, none fits or undecided", ""),
    **_with_interval("local_slope", ("octave",), "log2(MMD at n / MMD at 2 n)"),
    "faster_p": (("octave",), np.nan, "p-value of local_slope > 1, adjusted by Holm", "1"),
    "faster": ((), "", "faster than 1/n in both octaves: yes, not shown or untested", ""),
    "n_seeds": ((), 0, "number of seeds fitted", "1"),
    "reason": ((), "", "why values are missing or seeds are left out", ""),
    "curves_sha256": ((), "", "sha256 of the curves that were fitted, of all seeds", ""),
}
