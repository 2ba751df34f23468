"""Objects from the content of a sweep: targets, kernels, integrands, designs, weight rules."""

import inspect
from functools import partial, update_wrapper

import numpy as np

from bqlib.sweep import from_file, plugins, registry


def build_target(content):
    """The target that the content of a target file describes; its data file is read once."""
    if from_file.is_from_file(content):
        return from_file.target_of(content)
    family = registry.find("target", content["family"])
    return family(**arguments(content, "family", *plugins.FREE_TEXT))


def arguments(content, *other_keys):
    """Keyword arguments from the content of a file, with lists of numbers as arrays."""
    return {
        name: np.array(value) if isinstance(value, list) else value
        for name, value in content.items()
        if name not in other_keys
    }


def build_kernel(parameters, lengthscale, target):
    """The kernel of these parameters (family, shape and others) at one length-scale.

    It gets `target` if its family has a parameter of this name.
    """
    family = registry.find("kernel", parameters["family"])
    takes = inspect.signature(family).parameters
    given = arguments(parameters, "family", "shape")
    if "target" in takes:
        given["target"] = target
    shape = np.array(parameters.get("shape", 1.0), dtype=float)
    if shape.ndim == 2:
        given["covariance"] = lengthscale * shape * lengthscale
    elif "lengthscale" in takes:
        given["lengthscale"] = lengthscale * shape
    return family(**given)


def build_integrand(parameters):
    """The function that these parameters name as their family, and the other parameters.

    Examples
    --------
    >>> from bqlib.sweep.build import build_integrand
    >>> build_integrand({"family": "rkhs_ball", "terms": 10})[1]
    {'terms': 10}
    """
    family = registry.find("integrand", parameters["family"])
    return family, arguments(parameters, "family")


def build_rule(kind, algorithm):
    """The design or weight rule of an algorithm, as `kind` says.

    Parameters
    ----------
    kind : {"design", "weights"}
    algorithm : dict
        The fields of a ``bqlib.sweep.spec.Algorithm``.

    Examples
    --------
    >>> from bqlib.sweep.build import build_rule
    >>> build_rule("weights", {"name": "sbq", "design": "sbq", "weights": "bq"}).__name__
    'bq'
    """
    function = registry.find(kind, algorithm[kind])
    parameters = arguments(algorithm.get(f"{kind}_parameters", {}))
    if not parameters:
        return function
    return update_wrapper(partial(function, **parameters), function)
