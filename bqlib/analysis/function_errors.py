"""Errors of single functions, recomputed from the stored points."""

import json

import numpy as np
import xarray as xr

from bqlib.analysis.cells import attrs, cells, embedding_of, integrands_of
from bqlib.analysis.paper import papers_cell
from bqlib.streams import stream
from bqlib.sweep.build import build_integrand, build_rule
from bqlib.sweep.spec import Algorithm


def function_errors(dataset, functions=10, seed=0):
    """Errors of single functions of the kernel's space, recomputed from the stored points.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it, of a sweep with integrands of the kernel's space.
    functions : int
        How many of the functions; the first ones are taken.
    seed : int

    Returns
    -------
    xarray.Dataset
        Of one cell: that of Huszar and Duvenaud (2012) if the sweep has it, and else the first.
        ``error``, over algorithm, function and n, is the absolute error of a function over its
        norm. ``mmd``, over algorithm and n, is its bound. Sets, and
        algorithms with weights of their own, are left out: their stored points do not tell the
        weights at every n.

    Notes
    -----
    O(n^3) for each algorithm.
    """
    config = json.loads(dataset.attrs["config"])
    cell = papers_cell(dataset) or next(cells(dataset))
    label, *_ = integrands_of(dataset, within=True)
    embedding = embedding_of(dataset, cell)
    family, parameters = build_integrand(config["integrands"][label])
    drawn = family(embedding, stream(f"integrand/{family.__name__}", seed), **parameters)
    rules = {
        a["name"]: build_rule("weights", a)
        for a in config["algorithms"]
        if Algorithm(**a).tells_prefixes
    }
    names = [name for name in dataset["algorithm"].values if name in rules]
    runs = dataset[["mmd", "points"]].sel(cell | {"seed": seed, "algorithm": names}).compute()
    size = min(functions, len(drawn.integrals))
    errors = np.full((runs.sizes["algorithm"], size, runs.sizes["n"]), np.nan)
    for i, algorithm in enumerate(runs["algorithm"].values):
        points = runs["points"].sel(algorithm=algorithm).values[:, : embedding.target.dim]
        points = points[~np.isnan(points).any(axis=1)]
        if len(points):
            matrix = rules[algorithm](embedding, points).matrix
            every = drawn.errors(points[: len(matrix)], matrix) / drawn.norms
            errors[i, :, : len(matrix)] = every[:, :size].T
    about = attrs("absolute error over the norm of the function")
    return xr.Dataset(
        {"error": (("algorithm", "function", "n"), errors, about), "mmd": runs["mmd"]},
        {"function": np.arange(size), "integrand": np.array(label, dtype=object)},
        {"title": "Errors of single functions", "config": dataset.attrs["config"]},
    )
