"""The cells of a dataset of curves, their embeddings and integrands, as its sweep defines them."""

import json
from itertools import product

import numpy as np

from bqlib.embeddings import embed
from bqlib.integrands import of_model
from bqlib.known_best import best_known_curve
from bqlib.schema import POOLS, SWEEP_DIMS, several_pools
from bqlib.sweep import registry
from bqlib.sweep.build import build_kernel, build_target


def cells(dataset):
    """Labels of target, kernel and length-scale of each cell, for ``dataset.sel``.

    Raises
    ------
    ValueError
        If the dataset has several pools.
    """
    if POOLS in dataset.dims:
        raise ValueError(several_pools(dataset))
    dims = SWEEP_DIMS[:3]
    for labels in product(*(dataset[dim].values.tolist() for dim in dims)):
        yield dict(zip(dims, labels, strict=True))


def ran_to(curves, ran, ends):
    """The n that the shortest and the longest seed of a cell were run to.

    Parameters
    ----------
    curves : ndarray, shape (S, N)
    ran : ndarray of bool, shape (S,)
        Which trials succeeded.
    ends : collection of int
        Where sweeps end, as :func:`bqlib.schema.ends_of_sweeps` gives it.

    Returns
    -------
    shortest, longest : int
        N unless all curves that end before N do so where a sweep ends.
    """
    largest = curves.shape[1]
    known = ~np.isnan(curves[ran])
    lengths = np.where(known.any(axis=1), largest - known[:, ::-1].argmax(axis=1), 0)
    if not len(lengths) or not {*lengths.tolist()} <= {*ends, largest}:
        return largest, largest
    return int(lengths.min()), int(lengths.max())


def integrands_of(dataset, *, within):
    """Labels of the integrands that lie within the kernel's space, or of all others."""
    contents = json.loads(dataset.attrs["config"])["integrands"]
    labels = dataset["integrand"].values.tolist() if contents else []
    return of_model({label: contents[label] for label in labels}, within=within)


def kernel_of(config, cell):
    """Family and parameters of the kernel of a cell, from the config of its dataset."""
    if config.get("problems"):
        return config["problems"][cell["target"]]["kernel"]
    return config["kernels"][cell["kernel"]]


def embedding_of(dataset, cell):
    """Embedding of the target and kernel of a cell, which is as :func:`cells` gives it."""
    config = json.loads(dataset.attrs["config"])
    target = build_target(config["targets"][cell["target"]])
    return embed(build_kernel(kernel_of(config, cell), cell["lengthscale"], target), target)


def best_known_of(dataset, cell):
    """(n, MMD) of the best designs known for a cell, or None.

    Only targets and kernels of bqlib itself have any: no plug-in is loaded for it.
    """
    config = json.loads(dataset.attrs["config"])
    content, kernel = config["targets"][cell["target"]], kernel_of(config, cell)
    try:
        if content["family"] not in ("gaussian_mixture", "uniform"):
            return None
        if kernel["family"] not in registry.PLACES["kernel"]:
            return None
        target = build_target(content)
        return best_known_curve(target, build_kernel(kernel, cell["lengthscale"], target))
    except (TypeError, ValueError):  # parameters of another version: nothing is known of these
        return None


def attrs(long_name, units="1"):
    """Attributes that describe a variable."""
    return {"long_name": long_name, "units": units}
