"""A rule of a finished sweep of problems as a submission."""

import json

import numpy as np

from bqlib.schema import OK
from bqlib.suite.about import INFORMATION
from bqlib.sweep.problems import problems as problems_of_suite

# What the points of each design use of the target and the pool, beyond the kernel.
USED = {
    **dict.fromkeys(["grid", "halton", "latin_hypercube", "lattice", "sobol"], ()),
    "iid": ("draws",),
    "stein_thinning": ("score", "pool"),
    **dict.fromkeys(["p_greedy", "rpcholesky"], ("pool",)),
    **dict.fromkeys(
        [
            *("block_sbq", "compress", "fp_greedy", "frank_wolfe", "herding", "joint"),
            *("kernel_thinning", "msip", "omp", "recombination", "sbq"),
            "bqlib.designs.first_of_pool:recombination_from_10n",
        ],
        ("z", "pool"),
    ),
}


def information_of(algorithm):
    """What a rule of a sweep uses, in the words of ``submission.json``; None if nobody said.

    Weights that are neither uniform nor BQ use the kernel mean too.

    Parameters
    ----------
    algorithm : dict
        As the config of results has it.
    """
    used = USED.get(algorithm["design"])
    if used is None:
        return None
    used = {*used, *([] if algorithm["weights"] in ("uniform", "bq") else ["z"])}
    return tuple(word for word in INFORMATION if word in used)


def point_sets_of(curves, algorithm):
    """The points that a rule of a sweep of problems has picked, as a submission holds them.

    Parameters
    ----------
    curves : xarray.Dataset
        As :func:`bqlib.open_results` gives it, with one pool.
    algorithm : str

    Returns
    -------
    facts : dict
        ``kind``, ``weights`` and ``information``, as ``submission.json`` has them. Of a design that
        is not bqlib's, the last is empty.
    sets : list of tuple
        For :func:`bqlib.suite.submission.write_submission`. Of a sequence with uniform or BQ
        weights all points are there, and so its whole curve. Of any other rule results keep the
        weights of the largest n alone, so that it is the only one.
    left_out : list of (str, int)
        Problem and seed of each trial that has no points, or that follows one without.

    Raises
    ------
    ValueError
        If the dataset is not of a sweep of problems, has no such algorithm or no points of it, or
        has another version of a problem than this bqlib.

    Notes
    -----
    O(N d) time and memory for N points in all. If the weights of a sequence end before its points
    do, results have no points beyond.
    """
    config = json.loads(curves.attrs["config"])
    problems, algorithms = config.get("problems", {}), {a["name"]: a for a in config["algorithms"]}
    if not problems:
        raise ValueError("the results are not of a sweep with problems of the suite")
    if algorithm not in algorithms:
        raise ValueError(f"there is no algorithm {algorithm}; there are {', '.join(algorithms)}")
    known = problems_of_suite()
    for name, settings in problems.items():
        if name not in known or known[name].sha256 != settings["sha256"]:
            raise ValueError(f"problem {name} is another one in this version of bqlib")
    about = algorithms[algorithm]
    a_set = bool(about["sizes"])
    prefixes = not a_set and about["weights"] in ("uniform", "bq")
    facts = {
        "kind": "set" if a_set else "sequence",
        "weights": about["weights"] if prefixes else "own",
        "information": list(information_of(about) or ()),
    }
    sets, left_out = [], []
    part = curves.sel(algorithm=algorithm).isel(kernel=0, lengthscale=0)
    for name in curves["target"].values.tolist():
        trials = part.sel(target=name).load()
        ran = trials["status"].values == OK
        end = len(ran) if ran.all() else int(ran.argmin())
        left_out += [(name, seed) for seed in range(end, len(ran))]
        for seed in range(end):
            points = trials["points"].values[seed]
            there = ~np.isnan(points[:, 0])
            found = points[there][:, ~np.isnan(points[0])]
            weights = [] if prefixes else [trials["weights"].values[seed][there]]
            sets.append((name, seed, found, *weights))
    if not sets:
        raise ValueError(f"{algorithm} has points on no problem: run the sweep to its end")
    return facts, sets, left_out
