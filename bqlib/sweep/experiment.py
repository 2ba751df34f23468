"""The sweep as data, and the cells and seeds that it runs."""

import hashlib
import json
from dataclasses import asdict, dataclass, field, replace
from functools import cached_property
from itertools import product

from bqlib.candidates import Candidates
from bqlib.sweep import from_file, plugins, registry
from bqlib.sweep.build import build_target
from bqlib.sweep.spec import Cell, Spec, StudySpec, digest_of_target


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
    problems : dict
        Of a sweep of problems: name to :meth:`bqlib.sweep.problems.Problem.settings`. The targets
        are those of the problems, under their names; kernels, candidates and n are the problems'
        own, and `n` is the largest. Else empty.
    inapplicable : dict
        Of a sweep of problems: algorithm to problem to why the one cannot work on the other.
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
    problems: dict = field(default_factory=dict)
    inapplicable: dict = field(default_factory=dict)

    def cells(self):
        """All cells in which the algorithm can work, the algorithm varying fastest."""
        names = [algorithm.name for algorithm in self.algorithms]
        return [
            Cell(*labels)
            for labels in product(self.targets, self.kernels, self.lengthscales, names)
            if labels[0] not in self.inapplicable.get(labels[-1], ())
        ]

    def blocks(self):
        """First and last seed of each job of a cell; only the last block may be short."""
        return [
            (first, min(first + self.seeds_per_job, self.seeds) - 1)
            for first in range(0, self.seeds, self.seeds_per_job)
        ]

    def trial_count(self):
        """Number of trials, without those of studies."""
        return len(self.cells()) * self.seeds

    def build_targets(self):
        """The target objects by label."""
        return {label: build_target(content) for label, content in self.targets.items()}

    def spec(self, cell):
        """What a worker needs for `cell`, one of :meth:`cells`."""
        return self._specs[cell]

    def unsigned_spec(self, cell):
        """The same for this process alone: without what tells its science and code from others'."""
        (algorithm,) = (a for a in self.algorithms if a.name == cell.algorithm)
        kernel, candidates, n = self.kernels[cell.kernel], self.candidates, self.n
        if self.problems:
            own = self.problems[cell.target]
            kernel, candidates, n = own["kernel"], Candidates(**own["candidates"]), own["n"]
            sizes = tuple(own["sizes"]) if algorithm.sizes else ()
            algorithm = replace(algorithm, sizes=sizes)
        return Spec(
            cell=cell,
            target=self.targets[cell.target],
            target_digest="",
            kernel=kernel,
            algorithm=algorithm,
            candidates=candidates,
            n=n,
            integrands=self.integrands,
            fingerprint="",
        )

    def study(self, name):
        """What a worker needs for a study, one of `studies`."""
        (target, content), (kernel, parameters) = (
            next(iter(choices.items())) for choices in (self.targets, self.kernels)
        )
        study = registry.find("study", name)
        spec = StudySpec(
            name=name,
            cell=(target, kernel, self.lengthscales[0]),
            target=content,
            kernel=parameters,
            candidates=self.candidates,
            n=self.n,
            seeds=min(self.seeds, study.seeds),
            plans=study.plans,
            fingerprint="",
        )
        return replace(spec, fingerprint=spec.code_here())

    def canonical(self, folders=True):
        """The whole sweep in the form of strict JSON; equal sweeps give equal dicts.

        Classes and functions in it, which a sweep file cannot have, are named. Without `folders`,
        data files have their names alone, so that a project that was moved has the same sweep.
        """
        values = asdict(self)
        if not self.problems:
            del values["problems"], values["inapplicable"]
        config = json.loads(json.dumps(values, allow_nan=False, default=plugins.without_folder))
        return config if folders else _without_folders(config)

    def is_stored_as(self, config):
        """Whether a dict of :meth:`canonical` is of this sweep, wherever its data files were."""
        return _without_folders(config) == self.canonical(folders=False)

    @cached_property
    def digest(self):
        """64 hexadecimal digits that change exactly when the digest of a cell or a study does."""
        specs = [*self._specs.values(), *map(self.study, self.studies)]
        text = "\n".join([str(self.blocks()), *(spec.digest for spec in specs)])
        return hashlib.sha256(text.encode()).hexdigest()

    @cached_property
    def _specs(self):
        # A target may be a large data set, so it is digested once and not for each cell.
        digests = {label: digest_of_target(target) for label, target in self.targets.items()}
        specs = {}
        for cell in self.cells():
            spec = replace(self.unsigned_spec(cell), target_digest=digests[cell.target])
            specs[cell] = replace(spec, fingerprint=spec.code_here())
        return specs


def _without_folders(config):
    targets = {
        label: from_file.without_folder(content) if from_file.is_from_file(content) else content
        for label, content in config["targets"].items()
    }
    return config | {"targets": targets}
