"""The names that a sweep may use, and where the code behind each lives.

A place is ``"module:attribute"`` and is imported when it is asked for.
"""

from importlib import import_module

PLACES = {
    "target": {"gaussian_mixture": "bqlib.targets:GaussianMixture"},
    "kernel": {"exponentiated_quadratic": "bqlib.kernels:ExponentiatedQuadratic"},
    "design": {
        "herding": "bqlib.designs.herding:herding",
        "iid": "bqlib.designs.iid:iid",
        "sbq": "bqlib.designs.sbq:sbq",
    },
    "weights": {"bq": "bqlib.weights:bq", "uniform": "bqlib.weights:uniform"},
}

# An algorithm is a design with a weight rule.
ALGORITHMS = {
    "herding": ("herding", "uniform"),
    "herding_bq": ("herding", "bq"),
    "iid": ("iid", "uniform"),
    "iid_bq": ("iid", "bq"),
    "sbq": ("sbq", "bq"),
}


def find(kind, name):
    """The class or function of that kind and name, such as ``find("design", "sbq")``."""
    module, attribute = PLACES[kind][name].split(":")
    return getattr(import_module(module), attribute)
