"""What a worker gets: a cell or a study as data, with a digest of its science and code."""

import hashlib
import json
import time
from dataclasses import asdict, dataclass, field, replace
from functools import cache, cached_property

from bqlib import embeddings
from bqlib.candidates import Candidates
from bqlib.sweep import from_file, plugins, registry
from bqlib.sweep.blas import one_blas_thread
from bqlib.sweep.build import build_integrand, build_kernel, build_rule, build_target
from bqlib.sweep.fingerprint import definitions, fingerprint
from bqlib.trial import trial


@dataclass(frozen=True)
class Algorithm:
    """A design with a weight rule, under the name that results carry.

    Attributes
    ----------
    name : str
    design, weights : str
        Names in :mod:`bqlib.sweep.registry`, or places of plug-ins.
    design_parameters, weights_parameters : dict
        Parameters that differ from their defaults.
    sizes : tuple of int
        Of a design whose points are a set: the n at which it is made. Else empty: it has all n.
    """

    name: str
    design: str
    weights: str
    design_parameters: dict = field(default_factory=dict)
    weights_parameters: dict = field(default_factory=dict)
    sizes: tuple = ()

    @property
    def tells_prefixes(self):
        """Whether its points at the largest n tell the weights at every n."""
        return not self.sizes and self.weights != "own"

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
    target_digest : str
        Digest of that content, see :func:`digest_of_target`.
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
    target_digest: str
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

    @cached_property
    def _pair(self):
        return self.build()

    def __getstate__(self):
        return {name: value for name, value in vars(self).items() if name != "_pair"}

    def _built(self):
        families = self.target["family"], self.kernel["family"]
        # A user's own class or function may keep a state.
        own = any(not isinstance(name, str) or plugins.is_place(name) for name in families)
        return self.build() if own else self._pair

    def data_means(self):
        """What the trials of all seeds have in common, to be computed once: see :meth:`run`.

        Returns
        -------
        bqlib.embeddings.DataMeans or None
            None where the target is no data set. It is the same for all cells that differ only in
            their algorithm.
        """
        target, kernel = self._built()
        return _timed(embeddings.data_means, kernel, target)[0]

    def run(self, seed, means=None):
        """Run the trial of one seed.

        Parameters
        ----------
        seed : int
        means : bqlib.embeddings.DataMeans, optional
            That of :meth:`data_means`. Without it the trial computes the same numbers itself.

        Returns
        -------
        curves : dict of ndarray
            See :func:`bqlib.trial.trial`.
        seconds : float
            Wall time of the computation.
        """
        target, kernel = self._built()
        integrands = [build_integrand(content) for content in self.integrands.values()]
        design, rule = self.algorithm.build()
        arguments = target, kernel, design, rule, self.candidates, self.n, seed, integrands
        return _timed(trial, *arguments, self.algorithm.sizes, means)

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

        Other cells, the seeds, free text and the way the sweep is written do not change it.
        """
        algorithm = self.algorithm
        science = {
            "cell": asdict(self.cell),
            "target": self.target_digest,
            "kernel": without_folder_of(self.kernel),
            "design": plugins.without_folder(algorithm.design),
            "weights": plugins.without_folder(algorithm.weights),
            "candidates": asdict(self.candidates),
            "n": self.n,
            "code": self.fingerprint,
        }
        for name in ("design_parameters", "weights_parameters", "sizes"):
            if getattr(algorithm, name):
                science[name] = getattr(algorithm, name)
        if self.integrands:
            integrands = self.integrands.items()
            science["integrands"] = [(k, without_folder_of(v)) for k, v in integrands]
        return _short_hash(science)


@dataclass(frozen=True)
class StudySpec:
    """All that a worker needs to run any seed of one study; it pickles.

    Attributes
    ----------
    name : str
        In :mod:`bqlib.sweep.registry`.
    cell : tuple
        Labels of target and kernel, and the length-scale.
    target, kernel : dict
        As in :class:`Spec`.
    candidates : Candidates
    n, seeds : int
    plans : tuple of Algorithm
        The algorithms that the study runs.
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
    plans: tuple
    fingerprint: str

    @cached_property
    def digest(self):
        """16 hexadecimal digits that change exactly when the study's science or its code does."""
        science = asdict(self) | {
            "target": science_of(self.target),
            "kernel": without_folder_of(self.kernel),
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
        rules = tuple((plan.design, plan.weights) for plan in self.plans)
        return study_fingerprint(self.target["family"], self.kernel["family"], self.name, rules)

    def run(self, seed):
        """The arrays of the study for one seed, and the seconds that it took."""
        study = replace(registry.find("study", self.name), plans=self.plans)
        target = build_target(self.target)
        kernel = build_kernel(self.kernel, self.cell[-1], target)
        return _timed(study.measure, target, kernel, self.candidates, self.n, seed)


def science_of(target):
    """The content of a target file as JSON, without the texts for readers.

    Of a data file, its points count, and neither its name nor its format.
    """
    if from_file.is_from_file(target):
        return json.dumps(from_file.science_of(target), sort_keys=True)
    content = {k: v for k, v in target.items() if k not in plugins.FREE_TEXT}
    return json.dumps(without_folder_of(content), sort_keys=True)


def without_folder_of(content):
    return content | {"family": plugins.without_folder(content["family"])}


def digest_of_target(content):
    """16 hexadecimal digits that change exactly when the science of a target's content does."""
    return _short_hash(science_of(content))


def _timed(function, *arguments):
    """What a function returns, and its wall time in seconds on one thread.

    One thread, because workers share the machine and memory limits the speed of most of the work.
    """
    with one_blas_thread():
        start = time.perf_counter()
        return function(*arguments), time.perf_counter() - start


def _short_hash(science):
    text = json.dumps(science, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()[:16]


@cache
def code_fingerprint(target_family, kernel_family, design, weights, integrands):
    """Fingerprint of the code that one algorithm runs on one pair of families and integrands."""
    return _fingerprint_of_pair(
        target_family,
        kernel_family,
        registry.find("design", design),
        registry.find("weights", weights),
        trial,
        *(registry.find("integrand", family) for family in integrands),
    )


@cache
def study_fingerprint(target_family, kernel_family, name, rules):
    """Fingerprint of the code that one study runs on one pair of families.

    `rules` are the names (design, weight rule) of its plans, which its own code does not refer to.
    """
    return _fingerprint_of_pair(
        target_family,
        kernel_family,
        registry.find("study", name).function,
        *(registry.find("design", design) for design, _ in rules),
        *(registry.find("weights", weights) for _, weights in rules),
    )


def _fingerprint_of_pair(target_family, kernel_family, *objects):
    """Fingerprint of a target, a kernel, their embedding and other objects."""
    target_type = registry.find("target", target_family)
    kernel_type = registry.find("kernel", kernel_family)
    embedding = embeddings.find(kernel_type, target_type)
    objects = [*objects, kernel_type, target_type, embedding, Candidates]
    if plugins.is_place(target_family) or plugins.is_place(kernel_family):
        # A plug-in may use other kernels and targets, whose embeddings no code names.
        known = 0
        while known < len(objects):
            known, reached = len(objects), {("builtins", "object"), *definitions(*objects)}
            for types, function in embeddings.pairs().items():
                if function not in objects and {_definition(t) for t in types} <= reached:
                    objects.append(function)
    return fingerprint(*objects)


def _definition(item):
    return item.__module__, item.__qualname__
