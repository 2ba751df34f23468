"""The schema of a dataset of curves: its dimensions, coordinates and variables."""

import json
from collections.abc import Iterable
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np

SCHEMA_VERSION = 1
SWEEP_DIMS = ("target", "kernel", "lengthscale", "algorithm")
TRIAL_DIMS = (*SWEEP_DIMS, "seed")
POOLS = "candidates"  # one more dimension, of merged sweeps whose pools differ
OF_PROBLEM = "of_problem"  # the one kernel of a sweep of problems, each of which has its own
MISSING, OK, FAILED, DOES_NOT_APPLY = 0, 1, 2, 3  # values of status
QUANTILES = (0.1, 0.5, 0.9)  # of the errors over the functions of an integrand


@dataclass(frozen=True)
class Variable:
    """One variable; `dims` are those that follow the sweep's own."""

    dims: tuple[str, ...]
    long_name: str
    units: str = "1"
    dtype: Any = np.float64


_CURVE = ("seed", "n")
VARIABLES = {
    "mmd": Variable(_CURVE, "maximum mean discrepancy to the target"),
    "weight_sum": Variable(_CURVE, "sum of the weights"),
    "weight_l1": Variable(_CURVE, "sum of the absolute weights"),
    "min_weight": Variable(_CURVE, "smallest weight"),
    "duplicates": Variable(_CURVE, "points that repeat an earlier one"),
    "points": Variable(("seed", "n", "dim"), "points in the order they were picked"),
    "weights": Variable(_CURVE, "weights of the points at the largest n"),
    "rank_reached": Variable(("seed",), "number of points at which the curves end"),
    "status": Variable(("seed",), "0 missing, 1 ok, 2 failed, 3 does not apply", dtype=np.int8),
    "reason": Variable(("seed",), "why a trial failed, does not apply or ends early", "", object),
}
# Of sweeps with integrands, and of no other.
ERROR_VARIABLES = {
    "error": Variable((*_CURVE, "integrand"), "absolute error, mean over the functions"),
    "error_quantile": Variable(
        (*_CURVE, "integrand", "quantile"), "absolute error, quantile over the functions"
    ),
    "bound_ratio": Variable(
        (*_CURVE, "integrand"),
        "largest absolute error over norm times MMD; NaN outside the kernel's space",
    ),
}
COORDINATES = {
    "target": ("target", ""),
    "kernel": ("kernel", ""),
    "lengthscale": ("length-scale of the kernel", "units of x"),
    "algorithm": ("algorithm", ""),
    "seed": ("seed of the replication", "1"),
    "n": ("number of points", "1"),
    "dim": ("coordinate of the points", "1"),
}
ERROR_COORDINATES = {
    "integrand": ("family of test functions", ""),
    "quantile": ("share of the functions with a smaller error", "1"),
}


class SchemaError(ValueError):
    """A store does not match the schema; the message lists every difference."""


def versions(attributes: dict[str, Any]) -> dict[str, Any]:
    """Attributes of a dataset of curves that name the software that made it."""
    others = ("Conventions", "title", "config", "config_sha256")
    return {name: value for name, value in attributes.items() if name not in others}


def tables(errors: bool) -> tuple[dict[str, tuple[str, str]], dict[str, Variable]]:
    """Coordinates and variables of a dataset, with or without those of integrands."""
    if errors:
        return COORDINATES | ERROR_COORDINATES, VARIABLES | ERROR_VARIABLES
    return COORDINATES, VARIABLES


def check_schema(dataset: Any, place: Any) -> None:
    """Raise a SchemaError that lists all differences of a dataset of curves from the schema."""
    version = dataset.attrs.get("schema_version")
    if version != SCHEMA_VERSION:
        raise SchemaError(
            f"{place} has schema version {version}, this bqlib reads version {SCHEMA_VERSION}: "
            "open it with the version of bqlib that wrote it, or run the sweep again in another "
            "folder"
        )
    errors = any(name in dataset for name in (*ERROR_COORDINATES, *ERROR_VARIABLES))
    coordinates, variables = tables(errors)
    problems = [f"coordinate {name} is missing" for name in coordinates if name not in dataset]
    if "config" not in dataset.attrs:
        problems.append("attribute config is missing")
    problems += [
        f"coordinate {name} has repeated labels"
        for name in coordinates
        if name in dataset.indexes and dataset.indexes[name].has_duplicates
    ]
    if "n" in dataset and not np.array_equal(dataset["n"], np.arange(1, dataset["n"].size + 1)):
        problems.append("coordinate n is not 1, 2, 3, ...")
    for name, variable in variables.items():
        if name not in dataset:
            problems.append(f"variable {name} is missing")
            continue
        found = dataset[name]
        if found.dims != (*SWEEP_DIMS, *variable.dims):
            problems.append(f"{name} has dims {found.dims}, not {(*SWEEP_DIMS, *variable.dims)}")
        if variable.dtype is not object and found.dtype != variable.dtype:
            problems.append(f"{name} has type {found.dtype}, not {np.dtype(variable.dtype)}")
    if problems:
        raise SchemaError(f"{place} does not match the schema: " + "; ".join(problems))


def sweep_dims(dataset: Any) -> tuple[str, ...]:
    """The dimensions of the cells of a dataset; those of merged sweeps may have several pools."""
    return (POOLS, *SWEEP_DIMS) if POOLS in dataset.dims else SWEEP_DIMS


def of_problems(dataset: Any) -> bool:
    """Whether a dataset is of a sweep of problems, so that its targets name all of them."""
    return bool(dataset["kernel"].values.ravel().tolist() == [OF_PROBLEM])


def several_pools(dataset: Any) -> str:
    """What to say of a dataset with several pools, where only one can be used."""
    first = dataset[POOLS].values.tolist()[0]
    return (
        f"the dataset has several pools: select one label of {POOLS}, for example "
        f".sel({POOLS}={first!r})"
    )


def on_all_dims(dataset: Any, names: Iterable[str]) -> Any:
    """Variables of a dataset with all dimensions of the sweep and the seed.

    Those from which one label was selected have one label; without them, there is no telling
    which trials these are.
    """
    lost = [dim for dim in TRIAL_DIMS if dim not in dataset.coords]
    unknown = [name for name in names if name not in dataset]
    if unknown and set(unknown) <= ERROR_VARIABLES.keys() and not lost:
        raise ValueError(f"the dataset has no {', '.join(unknown)}: its sweep has no integrands")
    if lost or unknown:
        raise ValueError(
            f"the dataset has no {', '.join([*unknown, *lost])}: take one that bqlib.open_results "
            "gave, or a selection of it by sel, isel or squeeze"
        )
    part = dataset[list(names)]
    _, variables = tables(errors=True)
    curves = [name for name in names if name in variables and "n" in variables[name].dims]
    known = {name: variables[name].dims for name in names if name in variables}
    for name, dims in known.items():
        others = [str(dim) for dim in part[name].dims if dim not in (POOLS, *SWEEP_DIMS, *dims)]
        if others:
            raise ValueError(
                f"{name} has the dimension {', '.join(others)} too: select one label of any other "
                "dimension. After where(...), which may spread dimensions over all variables, "
                "choose the values of one: curves.assign(mmd=curves.mmd.where(...))"
            )
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
    part = part.expand_dims([dim for dim in TRIAL_DIMS if dim not in part.dims])
    return part.compute() if part.chunks else part  # as functions of arrays take no Dask arrays


def sizes_of_sets(dataset: Any) -> dict[str, tuple[int, ...]]:
    """The algorithms of a dataset whose points are sets, with the n at which these are made.

    Their curves are NaN at other n. The curves of all other algorithms are those of a sequence,
    whose first n points are the design of n points.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it, or a selection of it that keeps its attributes.

    Returns
    -------
    dict
        Algorithm to its sizes, in rising order.

    Raises
    ------
    SchemaError
        If the attribute has something else for sizes.
    """
    algorithms = json.loads(dataset.attrs.get("config", "{}")).get("algorithms", [])
    found = {a["name"]: a["sizes"] for a in algorithms if a.get("sizes")}
    for name, sizes in found.items():
        if not _are_sizes(sizes):
            raise SchemaError(
                f"the attribute config has sizes of {name} that are no rising whole numbers: "
                f"{sizes!r:.60}. It was changed, or another version of bqlib wrote it"
            )
    return {name: tuple(sizes) for name, sizes in found.items()}


def problems_of(attributes: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The problems of a sweep of problems, by their names, from the attributes of its dataset.

    None of any other dataset.

    Raises
    ------
    SchemaError
        If the attribute `config` holds something else for problems, their n, levels or kernels.
    """
    try:
        found = json.loads(attributes.get("config", "{}")).get("problems", {})
        right = all(
            type(problem.get("n", 1)) is int
            and problem.get("n", 1) >= 1
            and isinstance(problem.get("levels", []), list)
            and isinstance(problem.get("kernel", {}), dict)
            for problem in found.values()
        )
    except (ValueError, AttributeError, TypeError, RecursionError):
        right, found = False, {}
    if not right:
        raise SchemaError(
            "the attribute config has problems of another form. It was changed, or another version "
            "of bqlib wrote it"
        )
    return dict(found)


def ends_of_sweeps(attributes: dict[str, Any]) -> frozenset[int]:
    """The n at which curves of a dataset may end because no more was asked, from its attributes.

    Those are the largest n of each experiment that a merged dataset is made of, and of each
    problem of a sweep of problems. None of any other dataset.
    """
    found = {problem["n"] for problem in problems_of(attributes).values() if "n" in problem}
    for own in json.loads(attributes.get("merged_from", "[]")):
        found |= ({own["n"]} if "n" in own else set()) | ends_of_sweeps(own)
    return frozenset(found)


def _are_sizes(sizes: Any) -> bool:
    if not isinstance(sizes, list) or any(type(size) is not int for size in sizes):
        return False
    return sizes[0] >= 1 and all(a < b for a, b in pairwise(sizes))


def long_name(dataset: Any, quantity: str) -> str:
    """What a quantity is called on an axis."""
    return "MMD" if quantity == "mmd" else dataset[quantity].attrs.get("long_name", quantity)
