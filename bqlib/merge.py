"""Several experiments as one dataset: an outer join that reads nothing before it is used."""

import hashlib
import json
import textwrap
from itertools import combinations

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from bqlib.experiment import science_of
from bqlib.schema import FAILED, MISSING, OK, SWEEP_DIMS, TRIAL_DIMS, tables

TOLERANCE = 1e-6  # of a trial's largest value: machines differ by rounding
SORTED = ("lengthscale", "seed", "dim")  # other labels keep the order of the experiments
MOST_SHOWN = 20  # cells with other values, in an error
_PREFERENCE = {MISSING: 0, FAILED: 1, OK: 2}
_FILL = {"f": np.nan, "i": MISSING}


class MergeError(ValueError):
    """Experiments that do not make one dataset; the message lists every conflict."""


def merge(datasets, places):
    """Join experiments on the grid of all their labels.

    Parameters
    ----------
    datasets : sequence of xarray.Dataset
        Two or more, each as :func:`bqlib.open_results` gives it.
    places : sequence of str
        What to call each in an error, such as its path.

    Returns
    -------
    xarray.Dataset
        Of the same form. A trial that no experiment has is NaN, with status missing. Of a trial
        that several have, one that succeeded is taken before one that failed, and otherwise that
        of the first experiment. Values are read when they are used.

    Raises
    ------
    MergeError
        If one label means different things in two experiments, their pools or their largest n
        differ, or a trial succeeded in two with values that differ by more than 1e-6 of the
        largest. All conflicts are named.

    Notes
    -----
    Reads the values of the trials that two experiments have in common, for one target and kernel
    at a time, and nothing else.
    """
    configs = [json.loads(dataset.attrs["config"]) for dataset in datasets]
    problems = _conflicts_of_science(configs, places)
    if not problems:
        for (a, place), (b, other) in combinations(zip(datasets, places, strict=True), 2):
            problems += _conflicts_of_values(a, b, f"{place} and {other}")
    if problems:
        raise MergeError("these experiments cannot be merged:\n" + "\n".join(problems))
    errors = any("integrand" in dataset.dims for dataset in datasets)
    coordinates, variables = tables(errors)
    labels = {name: _union(name, datasets) for name in coordinates}
    owner = _owners(datasets, labels)
    joined = {}
    for name, variable in variables.items():
        dims = (*SWEEP_DIMS, *variable.dims)
        having = [(i, dataset) for i, dataset in enumerate(datasets) if name in dataset]
        parts = [(i, d[name].variable, _positions(d, labels, dims)) for i, d in having]
        array = _Joined(parts, owner, tuple(len(labels[dim]) for dim in dims))
        lazy = indexing.CopyOnWriteArray(indexing.LazilyIndexedArray(array))
        joined[name] = (dims, indexing.MemoryCachedArray(lazy), having[0][1][name].attrs)
    coords = {
        name: (name, values, next(d[name].attrs for d in datasets if name in d.coords))
        for name, values in labels.items()
    }
    return xr.Dataset(joined, coords, _attributes(datasets, configs))


class _Joined(BackendArray):
    """One variable of several datasets on one grid.

    Parameters
    ----------
    parts : list of (int, Variable, list of ndarray)
        Number of a dataset, its variable, and where its labels lie along each axis of the grid.
    owner : ndarray of int
        For each trial, over the leading axes, the number of the dataset it is taken from, or -1.
    shape : tuple of int
    """

    def __init__(self, parts, owner, shape):
        self.parts, self.owner, self.shape = parts, owner, shape
        self.dtype = parts[0][1].dtype
        self.fill = _FILL.get(self.dtype.kind, "")

    def __getitem__(self, key):
        outer = indexing.IndexingSupport.OUTER
        return indexing.explicit_indexing_adapter(key, self.shape, outer, self._read)

    def _read(self, key):
        wanted = [np.atleast_1d(np.arange(n)[k]) for n, k in zip(self.shape, key, strict=True)]
        values = np.full([len(w) for w in wanted], self.fill, dtype=self.dtype)
        trials = wanted[: len(TRIAL_DIMS)]
        owner = self.owner[np.ix_(*trials)]
        for number, variable, positions in self.parts:
            own = [_where(w, p, n) for w, p, n in zip(wanted, positions, self.shape, strict=True)]
            there = [index >= 0 for index in own]
            taken = owner[np.ix_(*there[: len(TRIAL_DIMS)])] == number
            if not taken.any():
                continue
            found = variable.isel(
                {
                    dim: _as_slice(index[inside])
                    for dim, index, inside in zip(variable.dims, own, there, strict=True)
                }
            ).values
            place = np.ix_(*there)
            taken = taken.reshape(taken.shape + (1,) * (values.ndim - taken.ndim))
            values[place] = np.where(taken, found, values[place])
        scalars = tuple(0 if isinstance(k, int | np.integer) else slice(None) for k in key)
        return values[scalars]


def _where(wanted, positions, size):
    """Index along a dataset's axis of each wanted place on the grid's, -1 where it has it not."""
    inverse = np.full(size, -1)
    inverse[positions] = np.arange(len(positions))
    return inverse[wanted]


def _as_slice(index):
    """The same selection as a slice where it is one: stores read these faster."""
    if len(index) and (np.diff(index) == 1).all():
        return slice(int(index[0]), int(index[-1]) + 1)
    return index


def _union(name, datasets):
    """Labels of all datasets along one dimension, each once."""
    every = [value for d in datasets if name in d.coords for value in d[name].values.tolist()]
    found = list(dict.fromkeys(every))
    values = np.array(sorted(found) if name in SORTED else found)
    return values.astype(object) if values.dtype.kind == "U" else values


def _positions(dataset, labels, dims):
    places = {dim: {label: i for i, label in enumerate(labels[dim].tolist())} for dim in dims}
    return [np.array([places[dim][v] for v in dataset[dim].values.tolist()]) for dim in dims]


def _owners(datasets, labels):
    """For each trial of the grid, which dataset to take it from; -1 where none has its labels."""
    owner = np.full([len(labels[dim]) for dim in TRIAL_DIMS], -1, dtype=np.int16)
    places = [np.ix_(*_positions(dataset, labels, TRIAL_DIMS)) for dataset in datasets]
    count = np.zeros(owner.shape, dtype=np.int16)
    for place in places:
        count[place] += 1
    best = np.full(owner.shape, -1, dtype=np.int8)
    for number, (dataset, place) in enumerate(zip(datasets, places, strict=True)):
        preference = np.zeros(owner[place].shape, dtype=np.int8)
        if (count[place] > 1).any():
            status = dataset["status"].transpose(*TRIAL_DIMS).values
            for value, rank in _PREFERENCE.items():
                preference[status == value] = rank
        better = preference > best[place]
        owner[place] = np.where(better, number, owner[place])
        best[place] = np.where(better, preference, best[place])
    return owner


def _conflicts_of_science(configs, places):
    """What the same label means in one experiment and not in another, in words."""
    problems = []
    for kind in ("targets", "kernels", "integrands", "algorithms"):
        word = kind.removesuffix("s")
        first = {}
        for config, place in zip(configs, places, strict=True):
            for label, content in _meanings(config, kind).items():
                known, where = first.setdefault(label, (content, place))
                if known != content:
                    ours, theirs = _difference(known, content)
                    problems.append(
                        f'{word} "{label}" has {ours} in {where}, but {theirs} in {place}'
                    )
    for key, advice in (
        ("candidates", "a pool has no dimension of its own: open these apart"),
        ("n", "a curve that ends at a smaller n would look as if float64 had ended it"),
    ):
        for config, place in zip(configs[1:], places[1:], strict=True):
            if config[key] != configs[0][key]:
                ours, theirs = _difference({key: configs[0][key]}, {key: config[key]})
                problems.append(f"{ours} in {places[0]}, but {theirs} in {place}: {advice}")
    return problems


def _meanings(config, kind):
    """Label to what it stands for, equal where the science is."""
    if kind == "algorithms":
        return {algorithm["name"]: algorithm for algorithm in config[kind]}
    return {label: json.loads(science_of(content)) for label, content in config[kind].items()}


def _difference(ours, theirs):
    """What two dicts do not share, in words, of each."""
    keys = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
    return (
        ", ".join(
            f"{key} {textwrap.shorten(json.dumps(one[key]), 100)}" if key in one else f"no {key}"
            for key in keys
        )
        for one in (ours, theirs)
    )


def _conflicts_of_values(a, b, places):
    """The trials that succeeded in both datasets with other values, in words."""
    common = {dim: [x for x in a[dim].values if x in set(b[dim].values)] for dim in TRIAL_DIMS}
    if not all(common.values()):
        return []
    inner = {d: np.intersect1d(a[d], b[d]) for d in ("integrand", "dim") if d in a and d in b}
    names = [name for name in a.data_vars if name in b and name not in ("status", "reason")]
    problems = []
    for target in common["target"]:
        for kernel in common["kernel"]:
            block = common | {"target": [target], "kernel": [kernel]}
            ours, theirs = (d[[*names, "status"]].sel(block | inner).load() for d in (a, b))
            both = ((ours["status"] == OK) & (theirs["status"] == OK)).values
            differing = {name: both & _differ(ours[name], theirs[name]) for name in names}
            for cell in np.argwhere(np.any(list(differing.values()), axis=(0, -1))):
                labels = [str(block[d][i]) for d, i in zip(SWEEP_DIMS, cell, strict=True)]
                problems.append(_say(labels, common["seed"], differing, tuple(cell), places))
    more = len(problems) - MOST_SHOWN
    return problems[:MOST_SHOWN] + ([f"... and {more} more cells"] if more > 0 else [])


def _differ(ours, theirs):
    """Whether each trial of a variable has other values in another dataset."""
    x, y = (part.values.reshape(*part.shape[: len(TRIAL_DIMS)], -1) for part in (ours, theirs))
    reach = TOLERANCE * np.nan_to_num(np.abs(x)).max(axis=-1, keepdims=True)
    same = (np.abs(x - y) <= reach) | (np.isnan(x) & np.isnan(y))
    return ~same.all(axis=-1)


def _say(labels, seeds, differing, cell, places):
    where = np.any([found[cell] for found in differing.values()], axis=0)
    names = [name for name, found in differing.items() if found[cell].any()]
    seeds = ", ".join(str(seed) for seed in np.array(seeds)[where])
    return f"{'/'.join(labels)}, seeds {seeds}: other {', '.join(names)} in {places}"


def _attributes(datasets, configs):
    """Attributes of a merged dataset: what the experiments share, and what each one was."""
    config = dict(configs[0])
    for key in ("targets", "kernels", "integrands"):
        config[key] = {k: v for other in reversed(configs) for k, v in other[key].items()}
    algorithms = {a["name"]: a for other in reversed(configs) for a in other["algorithms"]}
    windows = dict.fromkeys(tuple(w) for other in configs for w in other["rate_windows"])
    config |= {
        "name": "+".join(dict.fromkeys(other["name"] for other in configs)),
        "title": "; ".join(dict.fromkeys(other["title"] for other in configs)),
        "lengthscales": sorted({x for other in configs for x in other["lengthscales"]}),
        "algorithms": list(algorithms.values()),
        "seeds": max(other["seeds"] for other in configs),
        "rate_windows": [list(window) for window in windows],
        "studies": [],
    }
    text = json.dumps(config, sort_keys=True, allow_nan=False)
    own = [{k: v for k, v in d.attrs.items() if k != "config"} for d in datasets]
    shared = {k: v for k, v in own[0].items() if all(other.get(k) == v for other in own)}
    return shared | {
        "title": config["title"],
        "config": text,
        "config_sha256": hashlib.sha256(text.encode()).hexdigest(),
        "merged_from": json.dumps(own, sort_keys=True, allow_nan=False),
    }
