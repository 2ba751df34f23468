"""Several experiments as one dataset: an outer join that reads values only when they are used."""

import hashlib
import json
import textwrap
from itertools import combinations
from pathlib import Path

import numpy as np
import xarray as xr
from xarray.backends import BackendArray
from xarray.core import indexing

from bqlib.results.lazy import opened, opened_from
from bqlib.results.pools import by_size, pool_labels
from bqlib.schema import DOES_NOT_APPLY, FAILED, MISSING, OK, POOLS, SWEEP_DIMS, TRIAL_DIMS, tables
from bqlib.sweep import registry
from bqlib.sweep.plugins import without_folder
from bqlib.sweep.spec import science_of

TOLERANCE = 1e-6  # of a trial's largest value: machines differ by rounding
SORTED = ("lengthscale", "seed", "dim")  # other labels keep the order of the experiments
MOST_SHOWN = 20  # cells with other values, in an error
_PREFERENCE = {MISSING: 0, DOES_NOT_APPLY: 1, FAILED: 2, OK: 3}
_FILL = {"f": np.nan, "i": MISSING}
_ABOUT_POOLS = {"long_name": "pool of candidates", "units": ""}


class MergeError(ValueError):
    """Experiments that do not make one dataset; the message lists every conflict."""


def merge(datasets, names):
    """Join experiments on the grid of all their labels.

    Curves of another largest n are joined by their first n: `n` goes to the largest, and the
    shorter curves are NaN beyond their own. Experiments whose pools differ get one more dimension,
    ``candidates``, whose labels say what differs: 1000 and 10000 if only the size does.

    Parameters
    ----------
    datasets : sequence of xarray.Dataset
        Two or more, each as :func:`bqlib.open_results` gives one experiment.
    names : sequence of str
        What to call each in an error, such as its path.

    Returns
    -------
    xarray.Dataset
        The same form, loaded lazily. Trials missing from every experiment are NaN, with status
        missing. If several experiments have a trial, the first one in which it succeeded is used,
        or else the first one; of those with different largest n, the longest comes first. For the
        errors of an integrand, only experiments with that integrand count. The attribute
        ``merged_by`` says in a line each how largest n and pools that differ were joined.

    Raises
    ------
    MergeError
        If one label means different things in two experiments, or names plug-ins whose files
        differ or no longer exist; if sets of the same name were made at different sizes; if a
        trial succeeded in two experiments with values that differ by more than 1e-6 of the
        largest; or if a dataset is merged over pools already. The message lists every conflict.

    Notes
    -----
    Reads only the values of trials that two experiments have in common, for one target and kernel
    at a time. Of two with different largest n it compares the points and their MMD, up to the
    smaller n: the weights of ill-conditioned systems round in another way if more points follow.
    """
    joined_already = [name for d, name in zip(datasets, names, strict=True) if POOLS in d.dims]
    if joined_already:
        raise MergeError(
            f"{', '.join(joined_already)} has the dimension {POOLS}, so it is merged already: "
            "merge the single experiments at once"
        )
    configs = [json.loads(dataset.attrs["config"]) for dataset in datasets]
    problems = _conflicts_of_science(configs, names)
    pools = pool_labels([config["candidates"] for config in configs])
    if pools:
        datasets = [
            dataset.assign_coords({POOLS: (POOLS, _as_labels([label]), _ABOUT_POOLS)})
            for dataset, label in zip(datasets, pools, strict=True)
        ]
    cell_dims = (POOLS, *SWEEP_DIMS) if pools else SWEEP_DIMS
    if not problems:
        for (a, ours), (b, theirs) in combinations(zip(datasets, names, strict=True), 2):
            problems += _conflicts_of_values(a, b, f"{ours} and {theirs}")
    if problems:
        raise MergeError("these experiments cannot be merged:\n" + "\n".join(problems))
    errors = any("integrand" in dataset.dims for dataset in datasets)
    coordinates, variables = tables(errors)
    labels = {name: _union(name, datasets) for name in dict.fromkeys((*cell_dims, *coordinates))}
    if pools:
        labels[POOLS] = _as_labels(by_size(pools, configs))
    # For each label of these dimensions, values are taken from one dataset.
    owned_dims = ((*cell_dims, "seed"), (*cell_dims, "seed", "integrand"))
    owners = {d: _owners(datasets, labels, d) for d in owned_dims if set(d) <= set(labels)}
    joined = {}
    for name, variable in variables.items():
        dims = (*cell_dims, *variable.dims)
        having = [(i, dataset) for i, dataset in enumerate(datasets) if name in dataset]
        parts = [(i, d[name].variable, _positions(d, labels, dims)) for i, d in having]
        owned = max((own for own in owners if set(own) <= set(dims)), key=len)
        axes = [dims.index(dim) for dim in owned]
        array = _Joined(parts, owners[owned], axes, tuple(len(labels[dim]) for dim in dims))
        joined[name] = (dims, indexing.LazilyIndexedArray(array), having[0][1][name].attrs)
    coords = {
        name: (name, values, next(d[name].attrs for d in datasets if name in d.coords))
        for name, values in labels.items()
    }
    about = _attributes(datasets, configs)
    if pools:
        settings = {str(k): c["candidates"] for k, c in zip(pools, configs, strict=True)}
        about |= _config_attributes(json.loads(about["config"]) | {"candidates": settings})
    if said := _how(configs, names, pools):
        about["merged_by"] = "\n".join(said)
    dataset = xr.Dataset(joined, coords, about)
    return opened(dataset, [store for own in datasets for store in opened_from(own)])


# An array of its own, written as xarray's page "How to add a new backend" says, with what that page
# documents. Dask arrays make the same datasets; 3 experiments, 2.7 GB in all, merged in 37 times
# the time when reindexed and chosen by `where`, one cell was read in 12 times the time and 4 times
# the bytes, and all in 1.5 times the memory. Blocks of this array under Dask gain nothing (0.9 to
# 1.8 times), and Dask takes a second to load, keeps no values, and is refused by `apply_ufunc`.
class _Joined(BackendArray):
    """One variable of several datasets on one grid.

    Parameters
    ----------
    parts : list of (int, Variable, list of ndarray)
        Number of a dataset, its variable, and where its labels lie along each axis of the grid.
        A variable without an axis of the grid has one label there.
    owner : ndarray of int
        The number of the dataset that values are taken from, or -1.
    axes : list of int
        Those of the grid that `owner` runs over.
    shape : tuple of int
    """

    def __init__(self, parts, owner, axes, shape):
        self.parts, self.owner, self.axes, self.shape = parts, owner, axes, shape
        self.dtype = parts[0][1].dtype
        self.fill = _FILL.get(self.dtype.kind, "")

    def __getitem__(self, key):
        outer = indexing.IndexingSupport.OUTER
        return indexing.explicit_indexing_adapter(key, self.shape, outer, self._read)

    def _read(self, key):
        wanted = [np.atleast_1d(np.arange(n)[k]) for n, k in zip(self.shape, key, strict=True)]
        values = np.full([len(w) for w in wanted], self.fill, dtype=self.dtype)
        owner = self.owner[np.ix_(*(wanted[axis] for axis in self.axes))]
        others = [axis for axis in range(len(self.shape)) if axis not in self.axes]
        for number, variable, positions in self.parts:
            own = [
                _index_in(along, size)[labels]
                for labels, along, size in zip(wanted, positions, self.shape, strict=True)
            ]
            there = [index >= 0 for index in own]
            taken = owner[np.ix_(*(there[axis] for axis in self.axes))] == number
            if not taken.any():
                continue
            lacking = len(there) - variable.ndim  # the axis of pools, which is the first
            found = variable.isel(
                {
                    dim: _as_slice(along[inside])
                    for dim, along, inside in zip(
                        variable.dims, own[lacking:], there[lacking:], strict=True
                    )
                }
            ).values
            index = np.ix_(*there)
            values[index] = np.where(np.expand_dims(taken, others), found, values[index])
        scalars = tuple(0 if isinstance(k, int | np.integer) else slice(None) for k in key)
        return values[scalars]


def _index_in(positions, size):
    """Index along a dataset's axis of each label of the grid's, -1 if the dataset lacks it."""
    inverse = np.full(size, -1)
    inverse[positions] = np.arange(len(positions))
    return inverse


def _as_slice(index):
    """The same selection as a slice if possible: stores read these faster."""
    if len(index) and (np.diff(index) == 1).all():
        return slice(int(index[0]), int(index[-1]) + 1)
    return index


def _union(name, datasets):
    """Labels of all datasets along one dimension, each once."""
    every = [value for d in datasets if name in d.coords for value in d[name].values.tolist()]
    found = list(dict.fromkeys(every))
    return _as_labels(sorted(found) if name in SORTED else found)


def _as_labels(found):
    """Labels as an array; texts are Python's strings."""
    values = np.array(found)
    return values.astype(object) if values.dtype.kind == "U" else values


def _positions(dataset, labels, dims):
    """Index on the grid of each label of a dataset, for each dimension."""
    index = {dim: {label: i for i, label in enumerate(labels[dim].tolist())} for dim in dims}
    return [np.array([index[dim][v] for v in dataset[dim].values.tolist()]) for dim in dims]


def _owners(datasets, labels, dims):
    """Which dataset to take each trial of the grid from; -1 if none has its labels.

    `dims` are those of a trial, maybe with "integrand": datasets without it own nothing.
    """
    owner = np.full([len(labels[dim]) for dim in dims], -1, dtype=np.int16)
    indices = {
        number: np.ix_(*_positions(dataset, labels, dims))
        for number, dataset in enumerate(datasets)
        if set(dims) <= set(dataset.dims)
    }
    count = np.zeros(owner.shape, dtype=np.int16)
    for index in indices.values():
        count[index] += 1
    best = np.full(owner.shape, -1, dtype=np.int8)
    # The longest first; the sort keeps the order of those that are as long.
    for number, index in sorted(indices.items(), key=lambda it: -datasets[it[0]].sizes["n"]):
        preference = np.zeros(owner[index].shape, dtype=np.int8)
        if (count[index] > 1).any():
            status = datasets[number]["status"].transpose(*TRIAL_DIMS).values
            status = status.reshape(preference.shape[: dims.index("seed") + 1])
            for value, rank in _PREFERENCE.items():
                preference[status == value] = rank
        better = preference > best[index]
        owner[index] = np.where(better, number, owner[index])
        best[index] = np.where(better, preference, best[index])
    return owner


def _conflicts_of_science(configs, names):
    """What one label means in one experiment and not in another, in words."""
    if len({bool(config.get("problems")) for config in configs}) > 1:
        listing = [n for config, n in zip(configs, names, strict=True) if config.get("problems")]
        return [
            f"{', '.join(listing)}: has problems, with kernels of their own, and the others have a "
            "grid of targets and kernels: open them separately"
        ]
    problems = []
    for kind in ("problems", "targets", "kernels", "integrands", "algorithms"):
        word = kind.removesuffix("s")
        first = {}
        for config, name in zip(configs, names, strict=True):
            for label, content in _contents(config, kind).items():
                known, known_in = first.setdefault(label, (content, name))
                meanings = _meaning(kind, known), _meaning(kind, content)
                if meanings[0] != meanings[1]:
                    ours, theirs = _difference(*meanings)
                    said = f'{word} "{label}" has {ours} in {known_in}, but {theirs} in {name}'
                    problems.append(said + _about_sizes(*meanings))
                    continue
                problems += [
                    f'{word} "{label}" is {known[key]} in {known_in}, but {content[key]} in '
                    f"{name}: these files differ, or one no longer exists; restore the file that "
                    "both ran, or open the experiments separately"
                    for key in _code_of(kind)
                    if key in content and not _same_code(known[key], content[key])
                ]
    return problems


def _about_sizes(ours, theirs):
    """What would work if only the sizes of sets differ, for a message."""
    if ours.get("sizes") == theirs.get("sizes") or ours | {"sizes": []} != theirs | {"sizes": []}:
        return ""
    common = sorted({*ours["sizes"]} & {*theirs["sizes"]})
    same = f"sizes: {common}" if common else "the same sizes"
    return (
        f": a set is made anew for each n, so a smaller one is no prefix of a larger one; give "
        f"both sweeps {same}, or open them separately"
    )


def _contents(config, kind):
    """Label to what the sweep says of it."""
    if kind == "algorithms":
        # Problems have the sizes of their sets themselves.
        left = {"sizes": []} if config.get("problems") else {}
        return {algorithm["name"]: algorithm | left for algorithm in config[kind]}
    return config.get(kind, {})  # a grid has no problems


def _code_of(kind):
    """Keys of a content that name code, which may be the file of a plug-in."""
    code = {"algorithms": ("design", "weights"), "problems": ()}
    return code.get(kind, ("family",))


def _meaning(kind, content):
    """What a content stands for: equal if the science is equal, up to the code of plug-ins."""
    if kind == "algorithms":
        code = {key: without_folder(content[key]) for key in _code_of(kind)}
        return {"sizes": []} | content | code
    if kind == "problems" or not content:  # the one kernel of all problems is empty
        return content
    return json.loads(science_of(content))


def _same_code(ours, theirs):
    """Whether two names that are equal without their folder stand for the same code.

    Results do not hold the code of plug-ins, so the files are compared as they are now.
    """
    if ours == theirs:
        return True
    try:
        one, other = (Path(name.rpartition(":")[0]).read_bytes() for name in (ours, theirs))
    except OSError:
        return False
    return one == other


def _difference(ours, theirs):
    """What two dicts do not share: the words of the one and of the other."""
    keys = [key for key in {**ours, **theirs} if ours.get(key) != theirs.get(key)]
    return (
        ", ".join(
            f"{key} {textwrap.shorten(json.dumps(one[key]), 100)}" if key in one else f"no {key}"
            for key in keys
        )
        for one in (ours, theirs)
    )


def _conflicts_of_values(a, b, pair):
    """The trials that succeeded in both datasets with different values, in words."""
    common = {dim: [x for x in a[dim].values if x in set(b[dim].values)] for dim in TRIAL_DIMS}
    if not all(common.values()):
        return []
    if POOLS in a.dims and a[POOLS].item() != b[POOLS].item():
        return []
    inner = {d: np.intersect1d(a[d], b[d]) for d in ("integrand", "dim", "n") if d in a and d in b}
    names = [name for name in a.data_vars if name in b and name not in ("status", "reason")]
    sizes = a.sizes["n"], b.sizes["n"]
    designs = {}  # of algorithms, where lengths differ
    if sizes[0] != sizes[1]:
        names = [name for name in names if name in ("mmd", "points")]
        pair = f"{pair}, whose n is {sizes[0]} and {sizes[1]}"
        of_a = _contents(json.loads(a.attrs["config"]), "algorithms")
        designs = {name: content["design"] for name, content in of_a.items()}
    problems = []
    for target in common["target"]:
        for kernel in common["kernel"]:
            block = common | {"target": [target], "kernel": [kernel]}
            ours, theirs = (d[[*names, "status"]].sel(block | inner).load() for d in (a, b))
            both = ((ours["status"] == OK) & (theirs["status"] == OK)).values
            differing = {name: both & _differ(ours[name], theirs[name]) for name in names}
            for cell in np.argwhere(np.any(list(differing.values()), axis=(0, -1))):
                labels = [str(block[d][i]) for d, i in zip(SWEEP_DIMS, cell, strict=True)]
                said = _say(labels, common["seed"], differing, tuple(cell), pair)
                points = "points" in differing and bool(differing["points"][tuple(cell)].any())
                problems.append(said + _about_lengths(designs.get(labels[-1]), points))
    more = len(problems) - MOST_SHOWN
    return problems[:MOST_SHOWN] + ([f"... and {more} more cells"] if more > 0 else [])


def _about_lengths(design, points):
    """What may make common values of designs of different n differ, for a message."""
    if design is None:
        return ""
    if points and design not in registry.PLACES["design"]:
        return (
            ": the first points of the longer design are not those of the shorter one; if its "
            "points are a set, say so by the decorator bqlib.designs.design.point_set"
        )
    return (
        ": this design makes the same first points for each n, so other code or other numbers made "
        "one of them; run both sweeps with the same version, or open them separately"
        if points
        else ": the points are the same, so other code or other numbers made the MMD of one of "
        "them; run both sweeps with the same version, or open them separately"
    )


def _differ(ours, theirs):
    """Whether each trial of a variable has different values in another dataset."""
    x, y = (part.values.reshape(*part.shape[: len(TRIAL_DIMS)], -1) for part in (ours, theirs))
    reach = TOLERANCE * np.nan_to_num(np.abs(x)).max(axis=-1, keepdims=True, initial=0.0)
    same = (np.abs(x - y) <= reach) | (np.isnan(x) & np.isnan(y))
    return ~same.all(axis=-1)


def _say(labels, seeds, differing, cell, pair):
    wrong = np.any([found[cell] for found in differing.values()], axis=0)
    names = [name for name, found in differing.items() if found[cell].any()]
    seeds = ", ".join(str(seed) for seed in np.array(seeds)[wrong])
    return f"{'/'.join(labels)}, seeds {seeds}: different {', '.join(names)} in {pair}"


def _attributes(datasets, configs):
    """Attributes of a merged dataset: what the experiments share, and what each one was."""
    config = dict(configs[0])
    for key in ("targets", "kernels", "integrands"):
        config[key] = {k: v for other in reversed(configs) for k, v in other[key].items()}
    if config.get("problems"):
        found = {k: v for other in reversed(configs) for k, v in other["problems"].items()}
        config |= {"problems": found, "inapplicable": _inapplicable(configs)}
    algorithms = {a["name"]: a for other in reversed(configs) for a in other["algorithms"]}
    for name, known in algorithms.items():
        every = [a.get("sizes", ()) for o in configs for a in o["algorithms"] if a["name"] == name]
        algorithms[name] = known | {"sizes": sorted(set().union(*every))}
    windows = dict.fromkeys(tuple(w) for other in configs for w in other["rate_windows"])
    config |= {
        "name": "+".join(dict.fromkeys(other["name"] for other in configs)),
        "title": "; ".join(dict.fromkeys(other["title"] for other in configs)),
        "lengthscales": sorted({x for other in configs for x in other["lengthscales"]}),
        "algorithms": list(algorithms.values()),
        "seeds": max(other["seeds"] for other in configs),
        "n": max(other["n"] for other in configs),
        "rate_windows": [list(window) for window in windows],
        "studies": [],
    }
    own = [{k: v for k, v in d.attrs.items() if k != "config"} for d in datasets]
    shared = {k: v for k, v in own[0].items() if all(other.get(k) == v for other in own)}
    sizes = [{"n": other["n"]} for other in configs]
    sources = [attributes | size for attributes, size in zip(own, sizes, strict=True)]
    return (
        shared
        | {"title": config["title"]}
        | _config_attributes(config)
        | {"merged_from": json.dumps(sources, sort_keys=True, allow_nan=False)}
    )


def _inapplicable(configs):
    """Algorithm to problem to why it does not apply, of several sweeps of problems."""
    found = {}
    for config in configs:
        for algorithm, reasons in config["inapplicable"].items():
            found[algorithm] = reasons | found.get(algorithm, {})
    return found


def _config_attributes(config):
    text = json.dumps(config, sort_keys=True, allow_nan=False)
    return {"config": text, "config_sha256": hashlib.sha256(text.encode()).hexdigest()}


def _how(configs, names, pools):
    """How largest n and pools that differ were joined, in sentences."""
    said = []
    if len({config["n"] for config in configs}) > 1:
        own = (f"{config['n']} in {name}" for config, name in zip(configs, names, strict=True))
        said.append(f"n is {', '.join(own)}: the shorter curves are NaN beyond their own n")
    if pools:
        own = (f"{label} in {name}" for label, name in zip(pools, names, strict=True))
        said.append(f"candidates are {', '.join(own)}: they are labels of a dimension {POOLS}")
    return said
