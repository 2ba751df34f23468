"""The sweep as data: one YAML file, checked as a whole, and the cells and seeds it asks for.

:func:`load` reads a sweep file and gives an :class:`Experiment`, or one :class:`SweepError` that
names every problem with its line. config/README.md says how a sweep is written.
"""

import hashlib
import inspect
import json
import time
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property, partial, update_wrapper
from itertools import product

import numpy as np

from bqlib import embeddings, plugins, registry
from bqlib.candidates import Candidates

# Keys of a target file that are words for people, not science.
FREE_TEXT = ("name", "about", "source", "licence")


class SweepError(ValueError):
    """A sweep file that cannot be run.

    Attributes
    ----------
    problems : tuple of str
        All that is wrong, each as ``path:line: message``; the error's text has one a line.
    """

    def __init__(self, *problems):
        super().__init__(*problems)
        self.problems = problems

    def __str__(self):
        return "\n".join(self.problems)


@dataclass(frozen=True)
class Algorithm:
    """A design with a weight rule, under the name that results carry.

    Attributes
    ----------
    name : str
    design, weights : str
        Names in :mod:`bqlib.registry`, or places of plug-ins.
    design_parameters, weights_parameters : dict
        Those of the two that differ from their defaults.
    """

    name: str
    design: str
    weights: str
    design_parameters: dict = field(default_factory=dict)
    weights_parameters: dict = field(default_factory=dict)

    def build(self):
        """The functions (design, weight rule)."""
        return build_rule("design", asdict(self)), build_rule("weights", asdict(self))


@dataclass(frozen=True)
class Cell:
    """One combination of the sweep, by its labels: the work of one job for each block of seeds."""

    target: str
    kernel: str
    lengthscale: float
    algorithm: str


@dataclass(frozen=True)
class Spec:
    """All that a worker needs to run any seed of one cell; it pickles.

    Attributes
    ----------
    cell : Cell
    target : dict
        Content of the target file.
    kernel : dict
        Family and parameters of the kernel, without its length-scale.
    algorithm : Algorithm
    candidates : Candidates
    n : int
        Largest number of points.
    integrands : dict
        Label to family and parameters.
    fingerprint : str
        Of the code behind the names above.
    """

    cell: Cell
    target: dict
    kernel: dict
    algorithm: Algorithm
    candidates: Candidates
    n: int
    integrands: dict
    fingerprint: str

    def build(self):
        """The objects (target, kernel)."""
        target = build_target(self.target)
        return target, build_kernel(self.kernel, self.cell.lengthscale, target)

    def run(self, seed):
        """One trial: see :func:`bqlib.trial.run`."""
        from bqlib import trial

        return trial.run(self, seed)

    def build_integrands(self):
        """The (function, parameters) of each integrand, in their order."""
        return [build_integrand(content) for content in self.integrands.values()]

    def code_here(self):
        """Fingerprint of the code that the names stand for in this process."""
        families = {content["family"] for content in self.integrands.values()}
        return code_fingerprint(
            self.target["family"],
            self.kernel["family"],
            self.algorithm.design,
            self.algorithm.weights,
            tuple(sorted(families)),
        )

    @cached_property
    def digest(self):
        """16 hexadecimal digits that change exactly when the cell, its science or its code changes.

        Other cells, the seeds, free text and the way the sweep was written leave it as it is.
        """
        return _digest(self, science_of(self.target))


@dataclass(frozen=True)
class StudySpec:
    """All that a worker needs to run any seed of one study; it pickles.

    Attributes
    ----------
    name : str
        In :mod:`bqlib.registry`.
    cell : tuple
        Labels of target and kernel, and the length-scale.
    target, kernel : dict
        As in :class:`Spec`.
    candidates : Candidates
    n, seeds : int
    fingerprint : str
        Of the code behind the names above.
    """

    name: str
    cell: tuple
    target: dict
    kernel: dict
    candidates: Candidates
    n: int
    seeds: int
    fingerprint: str

    @cached_property
    def digest(self):
        """16 hexadecimal digits that change exactly when the study's science or its code does."""
        science = asdict(self) | {
            "target": science_of(self.target),
            "kernel": _without_folder(self.kernel),
        }
        return _short_hash(science)

    def about(self):
        """Attributes of the study's dataset."""
        target, kernel, lengthscale = self.cell
        return {
            "title": f"Study {self.name}",
            "study": self.name,
            "target": target,
            "kernel": kernel,
            "lengthscale": lengthscale,
            "candidates": self.candidates.size,
            "largest_n": self.n,
            "digest": self.digest,
        }

    def code_here(self):
        """Fingerprint of the code that the names stand for in this process."""
        return study_fingerprint(self.target["family"], self.kernel["family"], self.name)

    def run(self, seed):
        """The arrays of the study for one seed, and the seconds that it took."""
        from threadpoolctl import threadpool_limits

        study = registry.find("study", self.name)
        target = build_target(self.target)
        kernel = build_kernel(self.kernel, self.cell[-1], target)
        with threadpool_limits(1):
            start = time.perf_counter()
            found = study.run(target, kernel, self.candidates, self.n, seed)
            return found, time.perf_counter() - start


def science_of(target):
    """The content of a target file as JSON, without what is there for people."""
    content = {k: v for k, v in target.items() if k not in FREE_TEXT}
    return json.dumps(_without_folder(content), sort_keys=True)


def _without_folder(content):
    return content | {"family": plugins.without_folder(content["family"])}


def _digest(spec, target):
    algorithm = spec.algorithm
    science = {
        "cell": asdict(spec.cell),
        "target": target,
        "kernel": _without_folder(spec.kernel),
        "design": plugins.without_folder(algorithm.design),
        "weights": plugins.without_folder(algorithm.weights),
        "candidates": asdict(spec.candidates),
        "n": spec.n,
        "code": spec.fingerprint,
    }
    for name in ("design_parameters", "weights_parameters"):
        if getattr(algorithm, name):
            science[name] = getattr(algorithm, name)
    if spec.integrands:
        science["integrands"] = [(k, _without_folder(v)) for k, v in spec.integrands.items()]
    return _short_hash(science)


def _short_hash(science):
    text = json.dumps(science, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@dataclass(frozen=True)
class Experiment:
    """A checked sweep.

    Attributes
    ----------
    name, title : str
    targets : dict
        Label to the content of the target file.
    kernels : dict
        Label to family and parameters, defaults filled in.
    lengthscales : tuple of float
        To 12 significant digits, in the order given.
    algorithms : tuple of Algorithm
    candidates : Candidates
    integrands : dict
        Label to family and parameters, defaults filled in; often empty.
    n : int
        Largest number of points.
    seeds : int
        Number of replications: seeds 0 to seeds - 1.
    seeds_per_job : int
    rate_windows : tuple of (int, int)
        First and last number of points of each window in which rates are fitted.
    studies : tuple of str
        Names of studies, run at the first target, kernel and length-scale.
    """

    name: str
    title: str
    targets: dict
    kernels: dict
    lengthscales: tuple
    algorithms: tuple
    candidates: Candidates
    integrands: dict
    n: int
    seeds: int
    seeds_per_job: int
    rate_windows: tuple
    studies: tuple = ()

    def cells(self):
        """All cells, the algorithm varying fastest."""
        names = [algorithm.name for algorithm in self.algorithms]
        return [
            Cell(*labels)
            for labels in product(self.targets, self.kernels, self.lengthscales, names)
        ]

    def blocks(self):
        """First and last seed of each job of a cell; only the last block may be short.

        More seeds keep the full blocks as they are, so that finished jobs stay finished.
        """
        return [
            (first, min(first + self.seeds_per_job, self.seeds) - 1)
            for first in range(0, self.seeds, self.seeds_per_job)
        ]

    def build_targets(self):
        """The target objects by label."""
        return {label: build_target(content) for label, content in self.targets.items()}

    def spec(self, cell):
        """What a worker needs for `cell`, one of :meth:`cells`."""
        return self._specs[cell]

    def study(self, name):
        """What a worker needs for a study, one of `studies`."""
        (target, content), (kernel, parameters) = (
            next(iter(choices.items())) for choices in (self.targets, self.kernels)
        )
        code = study_fingerprint(content["family"], parameters["family"], name)
        seeds = min(self.seeds, registry.find("study", name).seeds)
        cell = (target, kernel, self.lengthscales[0])
        return StudySpec(name, cell, content, parameters, self.candidates, self.n, seeds, code)

    def canonical(self):
        """The whole sweep as strict JSON would hold it; equal sweeps give equal dicts."""
        return json.loads(json.dumps(asdict(self), allow_nan=False))

    @cached_property
    def _specs(self):
        algorithms = {algorithm.name: algorithm for algorithm in self.algorithms}
        science = {label: science_of(target) for label, target in self.targets.items()}
        specs = {}
        for cell in self.cells():
            target, kernel = self.targets[cell.target], self.kernels[cell.kernel]
            algorithm = algorithms[cell.algorithm]
            spec = Spec(
                cell, target, kernel, algorithm, self.candidates, self.n, self.integrands, ""
            )
            spec = replace(spec, fingerprint=spec.code_here())
            # A target may be a large data set: write it out once, not for each cell.
            vars(spec)["digest"] = _digest(spec, science[cell.target])
            specs[cell] = spec
        return specs


def piece_name(cell, block):
    """Path of the file that holds one block of seeds of a cell, below the folder of pieces.

    Examples
    --------
    >>> piece_name(Cell("chen2010_mixture", "eq", 0.5, "sbq"), (0, 9))
    'chen2010_mixture/eq/0.5/sbq/seeds-0-9.zarr.zip'
    """
    first, last = block
    return (
        f"{cell.target}/{cell.kernel}/{cell.lengthscale:.12g}/{cell.algorithm}/"
        f"seeds-{first}-{last}.zarr.zip"
    )


def build_target(content):
    """The target that the content of a target file describes."""
    family = registry.find("target", content["family"])
    return family(**arguments(content, "family", *FREE_TEXT))


def arguments(content, *other_keys):
    """Keyword arguments from the content of a file: lists of numbers are arrays."""
    return {
        name: np.array(value) if isinstance(value, list) else value
        for name, value in content.items()
        if name not in other_keys
    }


def build_kernel(parameters, lengthscale, target):
    """The kernel of these parameters (family, shape and others) at one length-scale.

    `target` goes to the kernels that are made for one.
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
    """The function of :mod:`bqlib.integrands` that these parameters name, and the others of them.

    Examples
    --------
    >>> build_integrand({"family": "rkhs_ball", "terms": 10})[1]
    {'terms': 10}
    """
    family = registry.find("integrand", parameters["family"])
    return family, arguments(parameters, "family")


def build_rule(kind, algorithm):
    """The design or weight rule, as `kind` says, of an algorithm as a sweep's config holds it.

    Examples
    --------
    >>> build_rule("weights", {"name": "sbq", "design": "sbq", "weights": "bq"}).__name__
    'bq'
    """
    function = registry.find(kind, algorithm[kind])
    parameters = arguments(algorithm.get(f"{kind}_parameters", {}))
    if not parameters:
        return function
    return update_wrapper(partial(function, **parameters), function)


@cache
def code_fingerprint(target_family, kernel_family, design, weights, integrands):
    """Fingerprint of the code that one algorithm runs on one pair of families and integrands."""
    from bqlib.trial import trial

    return _fingerprint_of_pair(
        target_family,
        kernel_family,
        registry.find("design", design),
        registry.find("weights", weights),
        trial,
        *(registry.find("integrand", family) for family in integrands),
    )


@cache
def study_fingerprint(target_family, kernel_family, name):
    """Fingerprint of the code that one study runs on one pair of families."""
    return _fingerprint_of_pair(target_family, kernel_family, registry.find("study", name).run)


def _fingerprint_of_pair(target_family, kernel_family, *objects):
    """Fingerprint of a target, a kernel and their embedding, beside other objects."""
    from bqlib.fingerprint import definitions, fingerprint

    target_type = registry.find("target", target_family)
    kernel_type = registry.find("kernel", kernel_family)
    embedding = embeddings.find(kernel_type, target_type)
    objects = [*objects, kernel_type, target_type, embedding, Candidates]
    if plugins.is_place(target_family) or plugins.is_place(kernel_family):
        # A plug-in may be made of others, whose embeddings no code names.
        known = 0
        while known < len(objects):
            known, reached = len(objects), {("builtins", "object"), *definitions(*objects)}
            for types, function in embeddings.pairs().items():
                if function not in objects and {_place(t) for t in types} <= reached:
                    objects.append(function)
    return fingerprint(*objects)


def _place(item):
    return item.__module__, item.__qualname__


def load(path, shelf=None):
    """Read and check a sweep file.

    Parameters
    ----------
    path : str or Path
        The YAML file.
    shelf : str or Path, optional
        Folder of the targets that a sweep may call by name: ``targets/`` beside the file.

    Returns
    -------
    Experiment

    Raises
    ------
    SweepError
        With everything that is wrong.
    """
    from bqlib.sweepfile import read  # here, so that workers load neither pydantic nor YAML

    return read(path, shelf)
