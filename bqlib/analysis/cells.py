"""The cells of a dataset of curves, and what belongs to them."""

import json
from itertools import product

from bqlib.embeddings import embed
from bqlib.integrands import of_model
from bqlib.schema import SWEEP_DIMS
from bqlib.sweep.build import build_kernel, build_target


def cells(dataset):
    dims = SWEEP_DIMS[:3]
    for labels in product(*(dataset[dim].values.tolist() for dim in dims)):
        yield dict(zip(dims, labels, strict=True))


def integrands_of(dataset, *, within):
    """Labels of the integrands of a sweep that lie in the kernel's space, or of all others."""
    contents = json.loads(dataset.attrs["config"])["integrands"]
    labels = dataset["integrand"].values.tolist() if contents else []
    return of_model({label: contents[label] for label in labels}, within=within)


def embedding_of(dataset, cell):
    """Embedding of the pair of a cell, by its labels as :func:`papers_cell` gives them."""
    config = json.loads(dataset.attrs["config"])
    target = build_target(config["targets"][cell["target"]])
    return embed(
        build_kernel(config["kernels"][cell["kernel"]], cell["lengthscale"], target), target
    )


def attrs(long_name, units="1"):
    """Attributes of a variable."""
    return {"long_name": long_name, "units": units}
