"""The keys of a sweep file: what each of them takes, in the order in which they are checked."""

import inspect
import json
import math
from collections import defaultdict
from dataclasses import dataclass, field, replace
from functools import partial
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import (
    AfterValidator,
    BeforeValidator,
    Field,
    ValidationInfo,
    WithJsonSchema,
    create_model,
)

from bqlib import embeddings
from bqlib.candidates import SOURCES, Candidates
from bqlib.checks import checked_points
from bqlib.designs.design import is_point_set
from bqlib.sweep import plugins, registry
from bqlib.sweep.build import build_integrand, build_kernel
from bqlib.sweep.families import (
    checked_kernel,
    families_schema,
    family_of,
    field_types,
    function_keys,
    kernel_keys,
    one_of,
    rule,
    storable,
)
from bqlib.sweep.problems import SUITE, problems
from bqlib.sweep.spec import Algorithm
from bqlib.sweep.targets import checked_target, target_schema
from bqlib.sweep.values import LARGEST_COUNT, Count, Described, Label, Positive, Untitled
from bqlib.sweep.words import Keys, at_key, fail, shown, unknown
from bqlib.targets import Empirical


@dataclass
class Reading:
    """What is known of a sweep while its keys are checked, one after the other."""

    folder: Path
    shelf: Path
    targets: dict = field(default_factory=dict)
    lengthscales: list = field(default_factory=list)
    seen: dict = field(default_factory=lambda: defaultdict(set))

    def small_targets(self):
        """Label and target of each; a data set keeps one of its M points, as M take O(M^2) time."""
        for label, target in self.targets.items():
            is_data = isinstance(target, Empirical)
            yield label, Empirical(target.points[:1]) if is_data else target

    def extreme_lengthscales(self):
        """The shortest and the longest, which leave the range of float64 first."""
        known = self.lengthscales or [1.0]
        return sorted({min(known), max(known)})

    def new(self, key, value):
        """`value`, or a ValueError if the list under `key` already has it."""
        if value in self.seen[key]:
            raise ValueError(f"{json.dumps(value)} is already in the list")
        self.seen[key].add(value)
        return value


def _lengthscale(value, info: ValidationInfo):
    """A length-scale to 12 significant digits."""
    value = info.context.new("lengthscales", float(f"{value:.12g}"))
    info.context.lengthscales.append(value)
    return value


class _AlgorithmKeys(Keys):
    name: Label = Field(description="the label that results carry")
    design: rule("design") = Field(description="the name of a design")
    weights: rule("weights") = Field(description="the name of a weight rule")


def _algorithm(value, info: ValidationInfo):
    """An :class:`Algorithm` from its name or its keys."""
    if isinstance(value, str):
        if value not in registry.ALGORITHMS:
            also = ", or {name: ..., design: ..., weights: ...}"
            raise ValueError(unknown("algorithm", value, registry.ALGORITHMS, also))
        algorithm = Algorithm(value, *registry.ALGORITHMS[value])
    elif isinstance(value, dict):
        keys = _AlgorithmKeys.model_validate(value, context=info.context)
        (design, of_design), (weights, of_weights) = keys.design, keys.weights
        algorithm = Algorithm(keys.name, design, weights, of_design, of_weights)
        known = registry.ALGORITHMS.get(algorithm.name)
        if known and algorithm != Algorithm(algorithm.name, *known):
            own, its_weights, *parameters = known
            for key, setting in (parameters[0] if parameters else {}).items():
                own += f" ({key}: {setting})"
            raise ValueError(
                f'"{algorithm.name}" is already the name of design {own} with weights '
                f"{its_weights}: choose another name"
            )
    else:
        raise ValueError(
            "must be the name of an algorithm or {name: ..., design: ..., weights: ...}, "
            f"not {shown(value)}"
        )
    info.context.new("algorithms", algorithm.name)
    return algorithm


def _algorithm_schema():
    keys = _AlgorithmKeys.model_json_schema(schema_generator=Untitled)
    return {"anyOf": [{"enum": list(registry.ALGORITHMS)}, keys]}


_CandidatesKeys = create_model(
    "Candidates",
    __base__=Keys,
    **field_types(inspect.signature(Candidates, eval_str=True).parameters)
    | {
        "size": (Count, Candidates.size),
        "source": (one_of("source", SOURCES), Candidates.source),
        "inflation": (Positive, Candidates.inflation),
    },
)


def _candidates_schema():
    return _CandidatesKeys.model_json_schema(schema_generator=Untitled)


def _candidates(content, info: ValidationInfo):
    """The :class:`Candidates`, which can be drawn for every target."""
    values = _CandidatesKeys.model_validate(content).model_dump(exclude_unset=True)
    if "inflation" in values and values.get("source") != "inflated":
        fail((("inflation",), 'is allowed only with source "inflated"'))
    values["box"] = _tuples(values.get("box"))
    problems = []
    try:
        candidates = Candidates(**values)
    except ValueError as error:
        problems.append(str(error))
    else:
        for label, target in info.context.targets.items():
            try:
                draw = replace(candidates, size=1).draw(target, np.random.default_rng(0))
                checked_points(draw, target.dim, "candidates")
            except Exception as error:  # a plug-in may raise any
                problems.append(f"{plugins.reason_of(error)} (target {label})")
                continue
            if candidates.box is not None:
                problems += _outside(candidates.box, label, target, info)
    if problems:
        fail(*[at_key(content, problem) for problem in problems])
    return candidates


def _outside(box, label, target, info):
    """Why kernels are not defined on the whole box of candidates."""
    shortest = info.context.extreme_lengthscales()[0]
    for name, content in info.data.get("kernels", {}).items():
        try:
            build_kernel(content, shortest, target).diagonal(np.array(box, dtype=float).T)
        except Exception as error:  # a plug-in may raise any
            yield f"box {plugins.reason_of(error)} (target {label}, kernel {name})"


def _kernel_schema():
    return families_schema("kernel", kernel_keys)


def _integrand_schema():
    return families_schema("integrand", partial(function_keys, "integrand"))


def _integrand(content, info: ValidationInfo):
    """Family and parameters of integrands that work with every target and kernel."""
    reading = info.context
    family, content = family_of("integrand", content, reading.folder)
    keys = function_keys("integrand", family).model_validate(content)
    parameters = keys.model_dump()
    functions = parameters.get("functions")
    if isinstance(functions, int) and functions > LARGEST_COUNT:
        fail((("functions",), f"must be at most {LARGEST_COUNT}, not {functions!r:.40}"))
    problems = {}  # message to target: every pair may have the same problem
    for label, target in reading.small_targets():
        for kernel in info.data.get("kernels", {}).values():
            for lengthscale in reading.extreme_lengthscales():
                embedding = embeddings.embed(build_kernel(kernel, lengthscale, target), target)
                function, others = build_integrand(parameters)
                if "functions" in others:
                    others["functions"] = min(others["functions"], 1)
                try:
                    function(embedding, np.random.default_rng(0), **others)
                except Exception as error:  # a plug-in may raise any
                    problems.setdefault(plugins.reason_of(error), label)
    if problems:
        located = [(at_key(content, problem), label) for problem, label in problems.items()]
        fail(*[(loc, p if loc else f"with target {label}: {p}") for (loc, p), label in located])
    return storable(parameters, keys.model_fields_set)


def _study(name, info: ValidationInfo):
    """The name of a study that can run on the first target, kernel and length-scale."""
    if name not in registry.PLACES["study"]:
        raise ValueError(unknown("study", name, registry.PLACES["study"]))
    reading, kernels = info.context, info.data.get("kernels")
    reading.new("studies", name)
    if reading.targets and reading.lengthscales and kernels:
        target, parameters = next(iter(reading.targets.values())), next(iter(kernels.values()))
        kernel = build_kernel(parameters, reading.lengthscales[0], target)
        try:
            registry.find("study", name).precondition(target, kernel)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} cannot run: {error}") from None
    return name


def _tuples(value):
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _points(value, info: ValidationInfo):
    candidates = info.data.get("candidates")
    if candidates is not None and not candidates.fresh and value > candidates.size:
        raise ValueError(
            f"must be at most {candidates.size}, the number of candidates, not {value}"
        )
    return value


def _size(value, info: ValidationInfo):
    reading, n = info.context, info.data.get("n", math.inf)
    if value > n:
        raise ValueError(f"must be at most n = {n}, not {value}")
    if value < max(reading.seen["sizes"], default=0):
        raise ValueError(f"must be in rising order, but {value} follows a larger number")
    algorithms = info.data.get("algorithms")
    if algorithms is not None and not any(
        is_point_set(registry.find("design", one.design)) for one in algorithms
    ):
        raise ValueError(
            "is only for designs whose points are a set, such as joint, and this sweep has none: "
            "leave it out. Other designs are measured at every n"
        )
    return reading.new("sizes", value)


def _problems(listed, info: ValidationInfo):
    """Names of problems, each once; the name of the suite stands for all of them."""
    found = []
    for i, word in enumerate(listed):
        name, at, version = word.partition("@")
        known = problems()
        if word == SUITE:
            found += [(i, name) for name in known]
        elif name not in known:
            fail(((i,), unknown("problem", name, known, f", or {SUITE} for all of them")))
        elif at and version != str(known[name].version):
            fail(((i,), f"{name} has version {known[name].version} here, not {version}"))
        else:
            found.append((i, name))
    for i, name in found:
        try:
            info.context.new("problems", name)
        except ValueError as error:
            fail(((i,), str(error)))
    return [name for _, name in found]


def _problems_schema():
    versions = [f"{name}@{problem.version}" for name, problem in problems().items()]
    return {"enum": [SUITE, *problems(), *versions]}


_WINDOW = {
    "type": "array",
    "items": {"type": "integer", "minimum": 1},
    "minItems": 2,
    "maxItems": 2,
}


def _window(value, info: ValidationInfo):
    if len(value) != 2 or not 1 <= value[0] < value[1]:
        raise ValueError(f"must be [first, last] with 1 <= first < last, not {value}")
    n = info.data.get("n", math.inf)
    if value[1] > n:
        raise ValueError(f"must end at n = {n} or before, not at {value[1]}")
    return info.context.new("rate_windows", tuple(value))


_Algorithms = Annotated[
    list[Annotated[Any, BeforeValidator(_algorithm), Described(_algorithm_schema)]],
    Field(min_length=1, description="a list of algorithms"),
]
_Seeds = Annotated[Count, Field(description="the number of replications")]
_SeedsPerJob = Annotated[Count, Field(description="the seeds that one job computes")]
_RateWindows = Annotated[
    list[Annotated[list[int], AfterValidator(_window), WithJsonSchema(_WINDOW)]],
    Field(description="a list of ranges [first, last] of n for rates"),
]


class Sweep(Keys):
    """The keys of a sweep file, in the order in which they are checked."""

    model_elsewhere: ClassVar[dict] = {
        "site": "machines are not set in a sweep: give the site file with --config site=FILE"
    }

    name: Label = Field(description="a label; the results go to results/<name>")
    title: str = Field(default="", description="a text for figures and reports")
    targets: list[Annotated[Any, BeforeValidator(checked_target), Described(target_schema)]] = (
        Field(min_length=1, description="a list of targets, by name, by path or written out")
    )
    lengthscales: list[Annotated[Positive, AfterValidator(_lengthscale)]] = Field(
        min_length=1, description="a list of positive numbers"
    )
    kernels: dict[
        Label,
        Annotated[dict[str, Any], AfterValidator(checked_kernel), Described(_kernel_schema)],
    ] = Field(min_length=1, description="a mapping from labels to kernels")
    algorithms: _Algorithms
    candidates: Annotated[
        dict[str, Any], AfterValidator(_candidates), Described(_candidates_schema)
    ] = Field(default={}, validate_default=True, description="the pool to pick points from")
    integrands: dict[
        Label, Annotated[dict[str, Any], AfterValidator(_integrand), Described(_integrand_schema)]
    ] = Field(default={}, description="a mapping from labels to families of test functions")
    n: Annotated[Count, AfterValidator(_points)] = Field(description="the largest number of points")
    sizes: list[Annotated[Count, AfterValidator(_size)]] = Field(
        default=[], min_length=1, description="the numbers of points of designs that make sets"
    )
    seeds: _Seeds
    seeds_per_job: _SeedsPerJob = 10
    rate_windows: _RateWindows = Field(default=[])
    studies: list[
        Annotated[
            str,
            AfterValidator(_study),
            Described(lambda: {"enum": list(registry.PLACES["study"])}),
        ]
    ] = Field(default=[], description="a list of names of studies")


_ALONE = "cannot be given beside problems, which have their own: leave it out"


class SweepOfProblems(Keys):
    """The keys of a sweep file that lists problems of the suite in place of a grid."""

    model_elsewhere: ClassVar[dict] = Sweep.model_elsewhere | dict.fromkeys(
        ("targets", "lengthscales", "kernels", "candidates", "integrands", "n", "sizes", "studies"),
        _ALONE,
    )

    name: Label = Field(description="a label; the results go to results/<name>")
    title: str = Field(default="", description="a text for figures and reports")
    problems: Annotated[
        list[Annotated[str, Described(_problems_schema)]], AfterValidator(_problems)
    ] = Field(min_length=1, description="a list of problems of the suite, or its name for all")
    algorithms: _Algorithms
    seeds: _Seeds
    seeds_per_job: _SeedsPerJob = 10
    rate_windows: _RateWindows = Field(default=[])
