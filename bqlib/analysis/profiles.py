"""Points to levels of problems: profiles of algorithms, average runtime, and pairs of algorithms.

A problem is a target, kernel and length-scale of a sweep, or what a sweep names as one. Its levels
are values of the MMD, from high to low.
"""

import json
from collections.abc import Mapping
from itertools import compress, product

import numpy as np
import xarray as xr

from bqlib import profiles
from bqlib.analysis.cells import attrs, ran_to
from bqlib.checks import checked_array
from bqlib.rates import first_n_within
from bqlib.schema import (
    DOES_NOT_APPLY,
    FAILED,
    MISSING,
    OK,
    POOLS,
    SWEEP_DIMS,
    TRIAL_DIMS,
    ends_of_sweeps,
    on_all_dims,
    problems_of,
    several_pools,
    sizes_of_sets,
)
from bqlib.sweep.build import build_target

LEVELS = 51  # of a problem that has none of its own
BUDGETS = 101
DIMS = ("algorithm", "problem", "level", "seed")
_COUNTED = {
    "failed": (FAILED, "trials that failed: they reach no level"),
    "missing": (MISSING, "trials that are missing: they are left out"),
    "inapplicable": (DOES_NOT_APPLY, "trials of an algorithm that does not apply"),
}


def points_to_levels(dataset, levels=None):
    """How many points each trial needs to reach each level of its problem.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it, or a selection of it.
    levels : sequence of float, or mapping, optional
        MMDs for all problems; or a mapping of the name of each problem to its own, as many for
        each. By default those that the sweep names for its problems. If it has none: 51 MMDs,
        log-spaced from the largest to the smallest median over seeds of any algorithm, the first
        of them at n = 1.

    Returns
    -------
    xarray.Dataset
        ``points`` over `algorithm`, `problem`, `level` and `seed`: infinite where a trial does not
        get there, failed, or its algorithm does not apply; NaN if it is missing. ``mmd`` has the
        levels, ``d`` the dimension of each problem, and ``n`` the points counted in each, the
        same for all algorithms. ``status`` is that of each trial. ``tried`` counts the trials of
        each algorithm and problem that are not missing; ``failed``, ``missing`` and
        ``inapplicable`` count those without curves. Problems without levels, because no trial
        succeeded, are left out, and the attribute ``left_out`` names them. So are problems on which
        an algorithm was never run, such as those of one of two merged sweeps: ``not_run_by_all``
        names them.

    Raises
    ------
    ValueError
        If the dataset has several pools, levels that are not positive numbers for each problem, or
        no problem on which all algorithms were run.

    Notes
    -----
    Of merged sweeps with different largest n, a problem counts as many points as the shortest of
    its curves was asked for. Of a set, it is the first of its sizes: fewer points may do. The cost
    is O(n + L log n) for each trial.
    """
    if POOLS in dataset.dims:
        raise ValueError(several_pools(dataset))
    config = json.loads(dataset.attrs.get("config", "{}"))
    curves = on_all_dims(dataset, ("mmd", "status")).transpose(*SWEEP_DIMS, "seed", "n")
    problems = problems_of(dataset.attrs)
    labels, names = _labels_and_names(curves, problems)
    shape = (len(labels), *(curves.sizes[dim] for dim in ("algorithm", "seed", "n")))
    mmd = curves["mmd"].values.reshape(shape).copy()
    status = curves["status"].values.reshape(shape[:3]).copy()
    # Where a run was merged with one of more seeds, these have no status.
    inapplicable = (status == DOES_NOT_APPLY).any(axis=2, keepdims=True)
    status[(status == MISSING) & inapplicable] = DOES_NOT_APPLY
    mmd[status != OK] = np.nan
    largest = _largest(mmd, status, dataset, [problems.get(name) for name in names])
    for own, n in zip(mmd, largest, strict=True):
        own[..., n:] = np.nan
    chosen = _levels(levels, mmd, names, problems)
    known = np.isfinite(chosen).all(axis=1)
    # Problems that an algorithm was never run on would else be counted for the others alone.
    together = (status != MISSING).any(axis=2).all(axis=1)
    if known.any() and not (known & together).any():
        raise ValueError(
            "there is no problem on which all algorithms were run: select some of them, or run the "
            "others on the same problems"
        )
    apart, known = known & ~together, known & together
    points = first_n_within(mmd, chosen[:, None, None])
    points[(status == FAILED) | (status == DOES_NOT_APPLY)] = np.inf
    points[status == MISSING] = np.nan
    counts = {
        name: (("algorithm", "problem"), (status[known] == value).sum(axis=2).T, attrs(about))
        for name, (value, about) in _COUNTED.items()
    }
    tried = (status[known] != MISSING).sum(axis=2).T
    data = {
        "points": (DIMS, points[known].transpose(1, 0, 3, 2), attrs("points to a level")),
        "status": (("problem", "algorithm", "seed"), status[known], attrs("status of the trial")),
        "tried": (("algorithm", "problem"), tried, attrs("trials that are not missing")),
    }
    names = np.array(names, dtype=object)
    own = zip(SWEEP_DIMS, zip(*labels, strict=True), strict=False)  # all but the algorithm
    coords = {
        "algorithm": curves["algorithm"].values,
        "problem": names[known],
        "level": ("level", np.arange(1, chosen.shape[1] + 1), attrs("level, the highest first")),
        "seed": curves["seed"].values,
        **{dim: ("problem", np.array(values)[known]) for dim, values in own},
        "mmd": (("problem", "level"), chosen[known], attrs("MMD of the level")),
        "d": ("problem", _dims(dataset, labels, config)[known], attrs("dimension of the problem")),
        "n": ("problem", largest[known], attrs("points counted")),
    }
    about = {
        "title": "Points to levels",
        "left_out": ", ".join(names[~known & ~apart]),
        "not_run_by_all": ", ".join(names[apart]),
        "of": "points",
    }
    found = xr.Dataset({**data, **counts}, coords, about)
    return found.assign(status=found["status"].transpose("algorithm", "problem", "seed"))


def profile(dataset, levels=None, *, budgets=None, factors=None, seconds=None):
    """Data profile, performance profile and average runtime of each algorithm.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it, or a selection of it.
    levels : sequence of float, or mapping, optional
        As :func:`points_to_levels` takes them.
    budgets : sequence of float, optional
        Points for each dimension of a problem, or seconds. By default 101, log-spaced over all
        that trials can spend, and the powers of ten among them.
    factors : sequence of float, optional
        By default 101 from 1 to the largest n, log-spaced.
    seconds : xarray.DataArray, optional
        Seconds of trials, as :func:`bqlib.analysis.seconds.trial_seconds` gives them. They take the
        place of points. They are those of whole trials, up to the largest n, on the machines that
        ran them.

    Returns
    -------
    xarray.Dataset
        - ``data_profile`` over `algorithm` and `budget`: see :func:`bqlib.profiles.data_profile`;
        - ``average_runtime`` over `algorithm`, `problem` and `level`: see
          :func:`bqlib.profiles.average_runtime`. Trials that do not get there spend as many points
          as are counted in their problem;
        - ``performance_profile`` over `algorithm` and `factor`: see
          :func:`bqlib.profiles.performance_profile`, with average runtimes as costs;
        - ``solved``: the share of problems, levels and seeds that an algorithm solves at all;
        - the counts and coordinates of :func:`points_to_levels`.

    Raises
    ------
    ValueError
        As :func:`points_to_levels` does. If `seconds` lack a trial, or are not positive.
    TypeError
        If `seconds` is not a DataArray over dims of trials.

    Notes
    -----
    With seconds, trials without a known time are left out; a failed one spends the longest time
    known in its problem. The cost is that of :func:`points_to_levels`, and O(N log N) for each
    algorithm with N problems, levels and seeds.
    """
    found = points_to_levels(dataset, levels)
    cost, spent = _cost(found, seconds)
    dims = found["d"].values if seconds is None else np.ones(found.sizes["problem"])
    if budgets is None:
        budgets = _with_powers_of_ten(_log_spaced(*_range(cost, spent, dims)))
    if factors is None:
        factors = _log_spaced(1.0, float(found["n"].max()) if found.sizes["problem"] else 1.0)
    budgets = np.ravel(checked_array(budgets, "budgets"))
    factors = np.ravel(checked_array(factors, "factors"))
    if np.isnan(budgets).any() or np.isnan(factors).any():
        raise ValueError("a budget or a factor is NaN; they must be numbers")
    average = profiles.average_runtime(cost, spent)
    of = "points" if seconds is None else "seconds"
    unit = "points for each dimension" if seconds is None else "seconds"
    solved = profiles.data_profile(cost, dims, np.array([np.inf]))[:, 0]
    values = {
        "data_profile": (
            ("algorithm", "budget"),
            profiles.data_profile(cost, dims, budgets),
            "share of problems, levels and seeds solved within a budget",
        ),
        "performance_profile": (
            ("algorithm", "factor"),
            profiles.performance_profile(average, factors),
            "share of problems and levels on which the average runtime is within a factor of the "
            "best",
        ),
        "average_runtime": (
            ("algorithm", "problem", "level"),
            average,
            f"{of} spent by all seeds for each seed that got there",
        ),
        "solved": (("algorithm",), solved, "share of problems, levels and seeds solved"),
    }
    found = found.drop_vars(["points", "status", "seed"])
    return found.assign(
        {name: (dims, own, attrs(about)) for name, (dims, own, about) in values.items()}
    ).assign_coords(
        budget=("budget", budgets, attrs(unit)),
        factor=("factor", factors, attrs("factor of the best average runtime")),
    ).assign_attrs(title="Profiles", of=of)  # fmt: skip


def versus(dataset, levels=None, *, seconds=None):
    """Wins, ties and losses of each pair of algorithms, and the ratio of their points.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it, or a selection of it.
    levels : sequence of float, or mapping, optional
        As :func:`points_to_levels` takes them.
    seconds : xarray.DataArray, optional
        As :func:`profile` takes them.

    Returns
    -------
    xarray.Dataset
        Over `algorithm` and `rival`: ``wins``, ``ties``, ``losses`` and ``neither``, shares of
        problems, levels and seeds; ``ratio``, the points of the algorithm over those of its rival,
        with the ends ``ratio_low`` and ``ratio_high`` of its 95 % interval; and ``problems``, the
        number of problems that they share. See :func:`bqlib.profiles.versus`. The counts and
        coordinates are those of :func:`points_to_levels`.

    Raises
    ------
    ValueError
        As :func:`points_to_levels` does. If `seconds` lack a trial, or are not positive.
    TypeError
        If `seconds` is not a DataArray over dims of trials.

    Notes
    -----
    A pair is compared on problems to which both apply, and in seeds of which neither is missing.
    Failed trials count: they lose. The cost is that of :func:`points_to_levels`, and O(N log N) for
    each pair with N problems, levels and seeds.
    """
    found = points_to_levels(dataset, levels)
    cost, _ = _cost(found, seconds)
    cost[(found["inapplicable"] > 0).values] = np.nan
    pairs = profiles.versus(cost)
    of = "points" if seconds is None else "seconds"
    about = {
        "wins": f"share on which the algorithm needs fewer {of} than its rival",
        "ties": f"share on which both need as many {of}",
        "losses": f"share on which the algorithm needs more {of} than its rival",
        "neither": "share on which neither gets there",
        "ratio": f"{of} of the algorithm over those of its rival",
        "ratio_low": "lower end of the 95 % interval of the ratio",
        "ratio_high": "upper end of the 95 % interval of the ratio",
        "problems": "number of problems that both share",
    }
    return (
        found.drop_vars(["points", "status", "seed"])
        .assign(
            {
                name: (("algorithm", "rival"), getattr(pairs, name), attrs(words))
                for name, words in about.items()
            }
        )
        .assign_coords(rival=found["algorithm"].values)
        .assign_attrs(title="Pairs of algorithms", of=of)
    )


def by_wins(found):
    """The algorithms of :func:`versus`, ordered by the mean share of their wins less losses."""
    lead = (found["wins"] - found["losses"]).mean("rival").fillna(-np.inf)
    return found["algorithm"].values[np.argsort(-lead.values, kind="stable")].tolist()


def remarks(found, named=str):
    """Sentences on what counts as unsolved, or is left out, in what the functions above gave.

    `named` gives the name of an algorithm as readers know it.
    """
    failed, missing = (int(found[name].sum()) for name in ("failed", "missing"))
    apart = found.attrs["not_run_by_all"]
    apart = f"{apart.count(',') + 1}" if apart.count(",") > 5 else apart
    apply = (found["inapplicable"] > 0).sum("problem")
    pairs = zip(found["algorithm"].values.tolist(), apply.values.tolist(), strict=True)
    names = ", ".join(f"{named(name)} to {count}" for name, count in pairs if count)
    of_pairs = "wins" in found
    said = {
        f"Trials that failed, and count as unsolved: {failed}.": failed,
        f"Trials that are missing, and are left out: {missing}.": missing,
        "Problems to which an algorithm does not apply, and which "
        f"{'are left out' if of_pairs else 'count as unsolved'}: {names}.": names,
        f"Problems on which some algorithm was not run, and left out for all: {apart}.": apart,
        f"Problems without a trial that succeeded, and left out: {found.attrs['left_out']}.": (
            found.attrs["left_out"]
        ),
    }
    return [sentence for sentence, there in said.items() if there]


def _labels_and_names(curves, problems):
    """Labels (target, kernel, length-scale) of each problem, in the order of cells, and names."""
    labels = list(product(*(curves[dim].values.tolist() for dim in SWEEP_DIMS[:3])))
    if problems:
        return labels, [target for target, *_ in labels]
    told = [True, *(curves.sizes[dim] > 1 for dim in SWEEP_DIMS[1:3])]
    words = [(target, kernel, f"{lengthscale:g}") for target, kernel, lengthscale in labels]
    names = [", ".join(compress(own, told)) for own in words]
    return labels, names


def _largest(mmd, status, dataset, problems):
    """The number of points counted in each problem."""
    ends, sets = ends_of_sweeps(dataset.attrs), sizes_of_sets(dataset)
    largest = np.full(len(mmd), mmd.shape[-1])
    names = np.atleast_1d(dataset["algorithm"].values).tolist()
    for p, problem in enumerate(problems):
        if problem:
            largest[p] = min(largest[p], problem["n"])
            continue
        for a, name in enumerate(names):
            if ends and name not in sets:
                shortest, _ = ran_to(mmd[p, a], status[p, a] == OK, ends)
                largest[p] = min(largest[p], shortest)
    return largest


def _levels(levels, mmd, names, problems):
    """Levels of each problem, shape (P, L); NaN for a problem of which nothing is known."""
    own = {name: found["levels"] for name, found in problems.items()}
    if levels is None:
        if set(names) <= own.keys():
            levels = own
        else:
            return np.array([_default_levels(curves) for curves in mmd])
    if not isinstance(levels, Mapping):
        levels = dict.fromkeys(names, levels)
    absent = [name for name in names if name not in levels]
    if absent:
        raise ValueError(
            f"levels lack the problem {', '.join(absent)}; the problems are {', '.join(names)}"
        )
    chosen = [np.ravel(checked_array(levels[name], f"levels of {name}")) for name in names]
    counts = sorted({len(values) for values in chosen})
    if len(counts) > 1 or counts[0] == 0:
        raise ValueError(
            f"the problems have {' and '.join(map(str, counts))} levels; each must have as many, "
            "and at least 1"
        )
    if not all((values > 0).all() and np.isfinite(values).all() for values in chosen):
        raise ValueError("a level is not a positive number; levels are values of the MMD")
    return -np.sort(-np.array(chosen), axis=1)


def _default_levels(mmd):
    """Log-spaced levels of curves (A, S, N): from the medians at n = 1 to the smallest of any n."""
    ran = [own[~np.isnan(own).all(axis=1)] for own in mmd]
    medians = np.array([np.median(own, axis=0) for own in ran if len(own)]).reshape(
        -1, mmd.shape[2]
    )
    positive = medians[medians > 0]
    if not len(positive):
        return np.full(LEVELS, np.nan)
    first = medians[:, 0][medians[:, 0] > 0]  # sets may not have it
    return np.geomspace((first if len(first) else positive).max(), positive.min(), LEVELS)


def _dims(dataset, labels, config):
    """The dimension of each problem: that of the points of its target, or of the target itself."""
    targets = dict.fromkeys(target for target, *_ in labels)
    found = {
        target: _dim_of_points(dataset, target) or build_target(config["targets"][target]).dim
        for target in targets
    }
    return np.array([found[target] for target, *_ in labels])


def _dim_of_points(dataset, target):
    """The number of coordinates of the first point of some trial; 0 if no points are known."""
    if not {"points", "dim"} <= {*dataset, *dataset.dims}:
        return 0
    part = dataset[["points", "status"]]
    part = part.expand_dims([dim for dim in TRIAL_DIMS if dim not in part.dims]).sel(target=target)
    status = part["status"].transpose(*TRIAL_DIMS[1:]).values
    if not (status == OK).any():
        return 0
    place = np.unravel_index((status == OK).argmax(), status.shape)
    first = part["points"].isel(dict(zip(TRIAL_DIMS[1:], place, strict=True))).isel(n=0)
    return int((~np.isnan(first.values)).sum())


def _cost(found, seconds):
    """Points or seconds, shape (A, P, L, S), and what is spent where a level is not reached."""
    points = found["points"].values.copy()
    if seconds is None:
        return points, found["n"].values[:, None, None].astype(float)
    times = _times(found, seconds)
    untimed = (found["status"].values[:, :, None] == OK) & np.isnan(times)
    cost = np.where(np.isfinite(points), times, points)
    longest = np.fmax.reduce(times, axis=(0, 2, 3))[:, None, None]
    return np.where(untimed, np.nan, cost), np.where(np.isnan(times), longest, times)


def _times(found, seconds):
    """Seconds of each trial, shape (A, P, 1, S); NaN where they are not known."""
    if not isinstance(seconds, xr.DataArray) or not {*seconds.dims} <= {*TRIAL_DIMS}:
        raise TypeError(
            "seconds is not a DataArray of trials; take what curves.bq.seconds(results) gives"
        )
    given = seconds.expand_dims([dim for dim in TRIAL_DIMS if dim not in seconds.dims])
    labels = {dim: found[dim] for dim in (*SWEEP_DIMS, "seed")}
    try:
        times = given.sel(labels).transpose("algorithm", "problem", "seed").values[:, :, None]
    except KeyError as error:
        raise ValueError(f"seconds lack some trials of these curves: {error.args[0]}") from None
    if not (np.isnan(times) | ((times > 0) & np.isfinite(times))).all():
        raise ValueError("seconds must be positive numbers, or NaN where they are not known")
    return times


def _range(cost, spent, dims):
    """The smallest and the largest budget that any trial spends."""
    per_dim = np.asarray(dims, dtype=float)[:, None, None]
    finite = (cost / per_dim)[np.isfinite(cost)]
    most = np.nanmax(spent / per_dim, initial=1.0) if spent.size else 1.0
    return (finite.min() if finite.size else most), max(most, finite.max(initial=0.0))


def _log_spaced(low, high):
    values = np.geomspace(low, max(low, high), BUDGETS)
    values[[0, -1]] = low, max(low, high)  # to the last digit
    return values


def _with_powers_of_ten(values):
    """The values, and each power of ten between the first and the last."""
    if not values[0] > 0 or not np.isfinite(values[-1]):
        return values
    powers = 10.0 ** np.arange(np.ceil(np.log10(values[0])), np.floor(np.log10(values[-1])) + 1)
    return np.union1d(values, powers)
