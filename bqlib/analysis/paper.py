"""The paper's settings in a dataset, and its curves beside the published ones."""

import json

import numpy as np
import xarray as xr

from bqlib import published
from bqlib.analysis.cells import attrs, cells, embedding_of, integrands_of
from bqlib.rates import first_n_within
from bqlib.schema import OK
from bqlib.weights import bq

# Points that the paper draws of each algorithm, and says to be equally good.
SBQ_POINTS, HERDING_POINTS = 8, 20


def papers_cell(dataset):
    """Target, kernel and length-scale of a sweep that have the settings of the published curves.

    Returns
    -------
    dict or None
        Labels for ``dataset.sel``; None if the sweep lacks this cell.
    """
    return next((cell for cell in cells(dataset) if is_papers_cell(dataset, cell)), None)


def is_papers_cell(dataset, cell):
    """Whether a cell has the settings of the curves of Huszar and Duvenaud (2012).

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it.
    cell : dict
        Labels of at least its target, kernel and length-scale.
    """
    kernel = json.loads(dataset.attrs["config"])["kernels"][cell["kernel"]]
    return published.has_papers_settings(cell["target"], kernel, float(cell["lengthscale"]))


def matching_sizes(dataset, cell):
    """For each seed, the least n at which SBQ is as good as 20 points of herding; 0 for none."""
    mmd = dataset["mmd"].sel(cell).transpose("algorithm", "seed", "n")
    sbq, herding = (mmd.sel(algorithm=name).values for name in ("sbq", "herding"))
    sizes = first_n_within(sbq, herding[:, [HERDING_POINTS - 1]])[:, 0]
    return np.where(np.isfinite(sizes), sizes, 0).astype(int)


def bq_weights(dataset, cell, algorithm, n):
    """BQ weights of the first n points of an algorithm in each seed that has them, (S, n)."""
    embedding = embedding_of(dataset, cell)
    points = dataset["points"].sel(cell | {"algorithm": algorithm})
    points = points.transpose("seed", "n", "dim").values[:, :n]
    points = points[~np.isnan(points).any(axis=(1, 2))]
    return np.array([bq(embedding, own).final(n) for own in points])


# Published quantity to our variable and the first n compared: one point is all shrinkage.
_COMPARED = {"mmd": ("mmd", 2), "weight_sum": ("weight_sum", 5), "within_model": ("error", 1)}


def against_published(dataset):
    """How far the curves of a sweep are from those of Huszar and Duvenaud (2012).

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it.

    Returns
    -------
    xarray.Dataset
        Over quantity and algorithm; NaN if nothing is published, or the sweep lacks it. It
        compares our geometric mean over seeds with the published curve, at every n of the latter:
        ``rms_log_difference``, and ``ratio``, ours over theirs at the n where it is farthest from
        one, which is ``ratio_n``. For errors within the model, 29 is added to the published n.

    Raises
    ------
    ValueError
        If no cell of the sweep has the published settings.
    """
    cell = papers_cell(dataset)
    if cell is None:
        raise ValueError("no cell of this sweep has the settings of the published curves")
    within = integrands_of(dataset, within=True)
    about = {
        "rms_log_difference": attrs("root mean square of log(ours / published)"),
        "ratio": attrs("ours / published where it is farthest from one"),
        "ratio_n": attrs("number of points where that is"),
    }
    names = list(dataset["algorithm"].values)
    values = np.full((len(about), len(_COMPARED), len(names)), np.nan)
    for q, (quantity, (name, first)) in enumerate(_COMPARED.items()):
        if name == "error" and not within:
            continue
        ours = dataset[name].sel(cell).where(dataset["status"].sel(cell) == OK)
        if name == "error":
            ours = ours.sel(integrand=within[0])
        means = np.exp(np.log(ours).mean("seed")).transpose("algorithm", "n").values
        for algorithm, (n, theirs) in published.curves(quantity).items():
            inside = (n >= first) & (n <= dataset.sizes["n"])
            if algorithm in names and inside.any():
                a = names.index(algorithm)
                n = n[inside]
                logs = np.log(means[a, n - 1] / theirs[inside])
                worst = np.argmax(np.abs(logs))
                values[:, q, a] = np.sqrt(np.mean(logs**2)), np.exp(logs[worst]), n[worst]
    dims = ("quantity", "algorithm")
    return xr.Dataset(
        {name: (dims, part, about[name]) for name, part in zip(about, values, strict=True)},
        {"quantity": list(_COMPARED), "algorithm": names},
        {"title": "Ours beside the published curves", "config": dataset.attrs["config"]},
    )
