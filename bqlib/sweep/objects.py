"""Sweeps from Python: targets, kernels and rules as objects, or by their names in sweep files."""

import inspect
import re
from collections.abc import Hashable, Iterable, Mapping
from dataclasses import fields, replace
from pathlib import Path

import numpy as np

from bqlib.candidates import Candidates
from bqlib.kernels import Kernel
from bqlib.sweep import plugins, registry, shipped
from bqlib.sweep.file import checked
from bqlib.sweep.words import SweepError

TITLE = "Curves computed in Python"


def experiments_of(
    target, kernel, algorithms, n, seeds, lengthscales, candidates, integrands, rate_windows,
    sizes=None,
):  # fmt: skip
    """Checked sweeps, from objects and names: one for each set of length-scales.

    The parameters are those of :func:`bqlib.curves`.

    Returns
    -------
    list of Experiment
        Equal but for their kernels and length-scales. No label of a kernel is in two of them.

    Raises
    ------
    SweepError
        With all problems.
    """
    targets = _labelled("target", target)
    groups = _kernels(kernel, lengthscales, [item for _, item in targets])
    common = {
        "name": "curves",
        "title": TITLE,
        "targets": _targets(targets),
        "algorithms": [_algorithm(one) for one in _sequence(algorithms)],
        "n": _plain(n),
        "seeds": _plain(seeds),
        "candidates": _candidates(candidates),
        "integrands": _integrands({} if integrands is None else integrands),
        "rate_windows": _lists(rate_windows),
    }
    if sizes is not None:
        given = sizes.ravel().tolist() if isinstance(sizes, np.ndarray) else _sequence(sizes)
        common["sizes"] = [_plain(size) for size in given]
    here = Path.cwd()
    experiments, problems = [], {}
    for scales, kernels in groups.items():
        tree = common | {"kernels": kernels, "lengthscales": list(scales)}
        try:
            experiments.append(
                checked(tree, here, shipped.TARGETS, lambda _: "bqlib.curves", {(): 1})
            )
        except SweepError as error:
            problems |= dict.fromkeys(error.problems)
    if problems:
        raise SweepError(*problems)
    return experiments


def united(experiments):
    """The sweep on whose grid the cells of all these are."""
    kernels, lengthscales = {}, {}
    for experiment in experiments:
        kernels |= experiment.kernels
        lengthscales |= dict.fromkeys(experiment.lengthscales)
    return replace(experiments[0], kernels=kernels, lengthscales=tuple(lengthscales))


def _sequence(given):
    """A list of what was given, be it one or several."""
    several = isinstance(given, Iterable) and not isinstance(given, str | Mapping)
    items = list(given) if several else [given]
    for item in items:
        if isinstance(item, str) and item != item.encode(errors="replace").decode():
            raise SweepError(f"bqlib.curves: {item!r} has characters that UTF-8 cannot hold")
    return items


def _labelled(noun, given):
    """(label or None, item) of each item of a mapping, of a sequence or of one item."""
    if isinstance(given, Mapping) and "family" not in given:
        found = list(given.items())
        wrong = [label for label in given if not isinstance(label, str)]
        if wrong:
            raise SweepError(f"bqlib.curves: {noun}: the label {wrong[0]!r} must be a text")
    else:
        found = [(None, item) for item in _sequence(given)]
    if not found:
        raise SweepError(f"bqlib.curves: {noun}: must not be empty")
    return found


def _targets(labelled):
    """Targets in the form of a sweep file."""
    found, labels = [], set()
    for label, item in labelled:
        if isinstance(item, str):
            if label is not None:
                raise SweepError(
                    f"bqlib.curves: target: {label} is the text {item!r}; a target by name or path "
                    "has its own label: give it without a mapping"
                )
            found.append(item)
            continue
        if isinstance(item, type) or not (isinstance(item, Mapping) or hasattr(item, "dim")):
            raise SweepError(
                f"bqlib.curves: target: is {_described(item)}; it must be a target, such as "
                "bqlib.Uniform([0], [1]), a name or a mapping. For points of your own give "
                "bqlib.Empirical(points)"
            )
        content = _named("target", item) if isinstance(item, Mapping) else _content("target", item)
        if label is None:
            label = content.get("name") or _unused(_label(content.get("family", "")), labels)
        content["name"] = label
        labels.add(content["name"])
        found.append(content)
    return found


def _kernels(kernel, lengthscales, targets):
    """Kernels in the form of a sweep file, by their length-scales: tuple to label to content."""
    given = None if lengthscales is None else tuple(_sequence_of_numbers(lengthscales))
    contents, scales = {}, {}
    for label, item in _labelled("kernel", kernel):
        if isinstance(item, Kernel):
            content, own = _kernel_content(item, targets)
        elif isinstance(item, str | Mapping) or callable(item):
            content = _named("kernel", item if isinstance(item, Mapping) else {"family": item})
            own = None
        else:
            raise SweepError(
                f"bqlib.curves: kernel: is {_described(item)}; it must be a kernel, such as "
                "bqlib.Matern(0.5), or the class or name of one with lengthscales"
            )
        if label is None:
            base = _label(content.get("family", "kernel"))
            same = [name for name, other in contents.items() if other == content]
            label = same[0] if same and own is not None else _unused(base, contents)
        contents[label] = content
        if own is not None:
            scales.setdefault(label, {})[own] = None
    if given is not None and scales.keys() == contents.keys():
        raise SweepError(
            "bqlib.curves: lengthscales: all kernels are objects, which have their own. Leave "
            "lengthscales out, or give the class or the name of a kernel"
        )
    groups = {}
    for label, content in contents.items():
        own = tuple(scales[label]) if label in scales else given or _without_scale(content)
        groups.setdefault(own, {})[label] = content
    return groups


def _without_scale(content):
    """The label 1.0 of a kernel without a length-scale; others need one."""
    family = content.get("family")
    if isinstance(family, str) and family in registry.PLACES["kernel"]:
        family = registry.find("kernel", family)
    if callable(family) and "lengthscale" not in inspect.signature(family).parameters:
        return (1.0,)
    raise SweepError(
        "bqlib.curves: lengthscales: missing: give a list of positive numbers, or a kernel that "
        "has its length-scale, such as bqlib.Matern(0.5)"
    )


def _sequence_of_numbers(values):
    numbers = np.atleast_1d(np.asarray(values, dtype=object)).tolist()
    if not all(isinstance(number, Hashable) for number in numbers):
        raise SweepError("bqlib.curves: lengthscales: must be a list of positive numbers")
    return [_plain(number) for number in numbers]


def _lists(windows):
    """Windows as a sweep file has them; what is of no such form is left to its checks."""
    if isinstance(windows, np.ndarray):
        return windows.tolist()
    if not isinstance(windows, list | tuple):
        return windows
    return [[*map(_plain, one)] if isinstance(one, list | tuple) else one for one in windows]


def _plain(number):
    return number.item() if isinstance(number, np.generic) else number


def _described(item):
    return (
        f"the class {item.__name__}" if isinstance(item, type) else f"of type {type(item).__name__}"
    )


def _content(kind, item):
    """What a sweep file would say of an object; one that it cannot describe stays as it is."""
    name = _registered(kind, type(item))
    if name is None:
        return {"family": _itself(item)}
    family = type(item)
    names = [one for one in inspect.signature(family).parameters if one != "target"]
    values = {one: getattr(item, one) for one in names}
    plain = {
        one: value.tolist() if isinstance(value, np.ndarray) else value
        for one, value in values.items()
        if value is not None
    }
    return {"family": name} | plain


def _kernel_content(kernel, targets):
    """(content, length-scale) of a kernel; the length-scale is 1 if it has not one number."""
    bound = getattr(kernel, "target", None)  # of a sweep's kernel, the target of the cell
    others = bound is not None and not all(target is bound for target in targets)
    if _registered("kernel", type(kernel)) is None or others:
        return {"family": _itself(kernel)}, 1.0
    content = _content("kernel", kernel)
    if "covariance" in content:
        content["shape"] = content.pop("covariance")
    scale = content.pop("lengthscale", 1.0)
    if isinstance(scale, list):
        content["shape"], scale = scale, 1.0
    return content, scale


def _registered(kind, family):
    """The name of a class or function in sweeps, or None."""
    names = registry.PLACES[kind]
    return next((name for name in names if registry.find(kind, name) is family), None)


def _itself(item):
    """A family of one: it makes no new object, but gives `item`."""

    def family():
        return item

    family.__module__, family.__qualname__ = type(item).__module__, type(item).__qualname__
    return family


def _algorithm(given):
    """An algorithm in the form of a sweep file: rules that sweeps know by name have their names."""
    if isinstance(given, Mapping):
        rules = {kind: _rule(kind, given[kind]) for kind in ("design", "weights") if kind in given}
        return {**given, **rules}
    if callable(given):
        name = _registered("design", given)
        if registry.ALGORITHMS.get(name, ("",))[0] == name:
            return name
        raise SweepError(
            f"bqlib.curves: algorithms: {plugins.without_folder(given)} has no weights: give "
            "{'name': ..., 'design': ..., 'weights': ...}"
        )
    return given


def _rule(kind, given):
    if isinstance(given, Mapping):
        return _named(kind, given)
    return (callable(given) and _registered(kind, given)) or given


def _named(kind, content):
    """The content with the name of its family, where sweeps have one for it."""
    content = _plain_values(content)
    if "family" not in content:
        return content
    return content | {"family": _rule(kind, content["family"])}


def _plain_values(content):
    """The content with lists and numbers in place of NumPy's."""
    numpy = np.ndarray | np.generic
    return {k: v.tolist() if isinstance(v, numpy) else v for k, v in content.items()}


def _integrands(given):
    if not isinstance(given, Mapping):
        return given
    return {
        label: _named("integrand", one) if isinstance(one, Mapping) else one
        for label, one in given.items()
    }


def _candidates(candidates):
    """Candidates in the form of a sweep file: what differs from the defaults."""
    if not isinstance(candidates, Candidates | Mapping | None):
        raise SweepError(
            f"bqlib.curves: candidates: is {_described(candidates)}; it must be a "
            "bqlib.Candidates, from which each seed draws a pool of its own"
        )
    if not isinstance(candidates, Candidates):
        return _plain_values(candidates or {})
    given = {field.name: getattr(candidates, field.name) for field in fields(candidates)}
    if given["box"] is not None:
        given["box"] = [list(ends) for ends in given["box"]]
    return {name: value for name, value in given.items() if value != getattr(Candidates, name)}


def _label(family):
    """A label from a family: that of SumKernel or ``"sums.py:SumKernel"`` is sum_kernel."""
    name = family if isinstance(family, str) else getattr(family, "__qualname__", "")
    name = re.sub(r"(?<=[a-z0-9])(?=[A-Z])", "_", re.split(r"[.:]", name)[-1]).lower()
    return re.sub(r"\W|^[^a-z]+", "", name) or "unnamed"


def _unused(label, taken):
    """The label, with a number if it is taken."""
    number = 2
    found = label
    while found in taken:
        found, number = f"{label}_{number}", number + 1
    return found
