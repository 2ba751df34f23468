"""The sweep file: what it may say, and the words in which it is told what is wrong."""

import inspect
import json
import math
import re
from collections import defaultdict
from dataclasses import dataclass, field, replace
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Annotated, Any, ClassVar

import numpy as np
from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    ValidationError,
    ValidationInfo,
    create_model,
    model_validator,
)
from pydantic_core import InitErrorDetails, PydanticCustomError

from bqlib import embeddings, registry, yamlfile
from bqlib.candidates import SOURCES, Candidates
from bqlib.checks import checked_cholesky
from bqlib.experiment import (
    FREE_TEXT,
    Algorithm,
    Experiment,
    SweepError,
    build_integrand,
    build_kernel,
    build_target,
)
from bqlib.targets import Empirical
from bqlib.yamlfile import place


def read(path, shelf=None):
    """The experiment of a sweep file; see :func:`bqlib.experiment.load`."""
    path = Path(path)
    try:
        tree, lines, problems = yamlfile.read(path)
    except yamlfile.UnreadableError as error:
        raise SweepError(f"{path}:{error.line}: {error}") from None
    reading = _Reading(path.parent, path.parent / "targets" if shelf is None else Path(shelf))
    try:
        sweep = _Sweep.model_validate(tree, context=reading)
    except ValidationError as error:
        problems += [(_line(lines, loc), f"{place(loc)}: {text}") for loc, text in _told(error)]
    if problems:
        raise SweepError(
            *[f"{path}:{line}: {' '.join(text.split())}" for line, text in sorted(set(problems))]
        )
    return Experiment(
        name=sweep.name,
        title=sweep.title or sweep.name,
        targets={label: content for label, content, _ in sweep.targets},
        kernels=sweep.kernels,
        lengthscales=tuple(sweep.lengthscales),
        algorithms=tuple(sweep.algorithms),
        candidates=sweep.candidates,
        integrands=sweep.integrands,
        n=sweep.n,
        seeds=sweep.seeds,
        seeds_per_job=sweep.seeds_per_job,
        rate_windows=tuple(sweep.rate_windows),
        studies=tuple(sweep.studies),
    )


def _line(lines, loc):
    """Line of a location, or of the nearest one around it."""
    while loc not in lines:
        loc = loc[:-1]
    return lines[loc]


@dataclass
class _Reading:
    """What is known while a file is checked from top to bottom."""

    folder: Path
    shelf: Path
    targets: dict = field(default_factory=dict)
    lengthscales: list = field(default_factory=list)
    seen: dict = field(default_factory=lambda: defaultdict(set))

    def new(self, key, value):
        """`value`, or a ValueError if it stands under `key` already."""
        if value in self.seen[key]:
            raise ValueError(f"{json.dumps(value)} is in the list already")
        self.seen[key].add(value)
        return value


class _Keys(BaseModel):
    """A mapping with known keys, whose problems are told in our own words."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    # Keys that people put here, and what to say about them.
    elsewhere: ClassVar[dict] = {}

    @model_validator(mode="wrap")
    @classmethod
    def _reword(cls, value, handler):
        try:
            return handler(value)
        except ValidationError as error:
            _fail(*[(e["loc"], _words(e, cls)) for e in error.errors(include_url=False)])


def _told(error):
    """(location, message) of each problem that a model has reworded."""
    return [
        (tuple(part for part in e["loc"] if part != "[key]"), e["ctx"]["message"])
        for e in error.errors(include_url=False)
    ]


def _fail(*problems):
    """Raise all problems, each (location, message), as pydantic collects them."""
    details = [
        InitErrorDetails(
            type=PydanticCustomError("sweep", "{message}", {"message": message}),
            loc=loc,
            input=None,
        )
        for loc, message in problems
    ]
    raise ValidationError.from_exception_data("sweep", details)


_EXPECTED = {
    "bool_type": "true or false",
    "dict_type": "a mapping, such as {key: value}",
    "float_type": "a number",
    "int_type": "a whole number without point or exponent",
    "list_type": "a list, such as [first, second]",
    "model_type": "a mapping, such as {key: value}",
    "string_type": "a text",
}


def _words(error, model):
    kind = error["type"]
    if kind == "sweep":
        return error["ctx"]["message"]
    if kind == "value_error":
        return str(error["ctx"]["error"])
    if kind == "missing":
        about = model.model_fields[error["loc"][-1]].description
        return f"missing: give {about}" if about else "missing, and it has no default"
    if kind == "extra_forbidden":
        key = error["loc"][-1]
        return model.elsewhere.get(key) or _unknown("key", key, model.model_fields)
    if kind == "too_short":
        return "must not be empty"
    return f"must be {_EXPECTED[kind]}, not {_shown(error['input'])}"


def _unknown(kind, name, allowed, also=""):
    near = get_close_matches(name.lower(), allowed, n=1)
    hint = f'; did you mean "{near[0]}"?' if near else "."
    return f"unknown {kind} {_quoted(name)}{hint} Allowed: {', '.join(allowed) or 'none'}{also}"


def _quoted(text):
    return json.dumps(text, ensure_ascii=False)


def _shown(value):
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {_quoted(value)}"
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else f"{value!r:.40}"


def _label(value):
    if not re.fullmatch("[a-z][a-z0-9_]*", value):
        raise ValueError(
            f"{_quoted(value)} is no label: use lower-case letters, digits and _, a letter first"
        )
    if len(value) > 64:  # it becomes the name of a folder
        raise ValueError(f"a label has at most 64 characters, this one has {len(value)}")
    return value


def _count(value):
    if value < 1:
        raise ValueError(f"must be at least 1, not {value}")
    return value


def _positive(value):
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"must be a finite positive number, not {value!r}")
    return value


def _one_of(kind, allowed):
    def check(value):
        if value not in allowed:
            raise ValueError(_unknown(kind, value, allowed))
        return value

    return AfterValidator(check)


_Label = Annotated[str, AfterValidator(_label)]
_Count = Annotated[int, AfterValidator(_count)]
_Positive = Annotated[float, AfterValidator(_positive)]


def _numbers(value):
    """Nested lists with every number a float, and their shape."""
    if not isinstance(value, list):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"must hold numbers and nothing else; it holds {_shown(value)}")
        try:
            return float(value) + 0.0, ()  # no negative zero
        except OverflowError:
            raise ValueError("holds a number that is too large") from None
    items, shapes = zip(*map(_numbers, value), strict=True) if value else ((), ((),))
    if len(set(shapes)) > 1:
        raise ValueError("its rows must have equal lengths")
    return list(items), (len(value), *shapes[0])


def _array(value):
    if not isinstance(value, list):
        raise ValueError(f"must be a list of numbers, not {_shown(value)}")
    return _numbers(value)[0]


def _number_or_array(value):
    if isinstance(value, str | None | bool):
        return value
    return _numbers(value)[0]


def _field_types(function, omit=()):
    """Pydantic's field definitions for the parameters of a function or class."""
    plain = {kind: kind for kind in (bool, float, float | None, int, str)}
    plain[np.ndarray] = Annotated[Any, AfterValidator(_array)]
    fields = {}
    for name, parameter in inspect.signature(function, eval_str=True).parameters.items():
        if name not in omit:
            required = parameter.default is inspect.Parameter.empty
            kind = plain.get(parameter.annotation, Annotated[Any, AfterValidator(_number_or_array)])
            fields[name] = (kind, ... if required else parameter.default)
    return fields


def _family(kind, content):
    """The class that ``family`` names in the content of a kernel or target."""
    families = registry.PLACES[kind]
    name = content.get("family")
    if not isinstance(name, str):
        problem = f"must be a text, not {_shown(name)}." if "family" in content else "missing."
        _fail((("family",), f"{problem} Allowed: {', '.join(families)}"))
    if name not in families:
        _fail((("family",), _unknown(f"{kind} family", name, families)))
    return registry.find(kind, name)


def _shape(value):
    if value is None:
        return value
    value = _array(value)
    shape = np.array(value)
    if shape.ndim == 2:
        checked_cholesky(shape, "the matrix")
    elif shape.ndim != 1 or not shape.size or not (np.isfinite(shape) & (shape > 0)).all():
        raise ValueError("must be a list of finite positive numbers or a square matrix")
    return value


class _KernelKeys(_Keys):
    elsewhere: ClassVar[dict] = dict.fromkeys(
        ("lengthscale", "covariance"),
        'give length-scales in the key "lengthscales"; a "shape" here is multiplied by each',
    )
    family: str


@cache
def _kernel_keys(family):
    fields = _field_types(family, omit=("target", "lengthscale", "covariance"))
    if "lengthscale" in inspect.signature(family).parameters:
        fields["shape"] = (Annotated[Any, AfterValidator(_shape)], None)
    return create_model("Kernel", __base__=_KernelKeys, **fields)


@cache
def _target_keys(family):
    text = {name: (str, "") for name in FREE_TEXT}
    return create_model("Target", __base__=_Keys, family=(str, ...), **_field_types(family), **text)


def _kernel(content, info: ValidationInfo):
    family = _family("kernel", content)
    parameters = _kernel_keys(family).model_validate(content).model_dump()
    if parameters.get("shape", ...) is None:
        del parameters["shape"]
    reading = info.context
    takes = inspect.signature(family).parameters
    if np.ndim(parameters.get("shape")) == 2 and "covariance" not in takes:
        _fail((("shape",), f"{content['family']} takes a list of numbers, not a full matrix"))
    if "lengthscale" not in takes and any(scale != 1 for scale in reading.lengthscales):
        raise ValueError(f"{content['family']} has no length-scale: sweep it at lengthscales: [1]")
    if "target" not in takes:
        try:
            build_kernel(parameters, 1.0, None)
        except (TypeError, ValueError) as error:
            _fail(_at_key(content, str(error)))
    problems = []
    for label, target in reading.targets.items():
        if isinstance(target, Empirical):
            target = Empirical(target.points[:1])  # one point will do; all take O(M^2) time
        # The extremes are where numbers fail.
        for lengthscale in sorted({f(reading.lengthscales or [1.0]) for f in (min, max)}):
            try:
                with np.errstate(over="raise", invalid="raise", divide="raise"):
                    kernel = build_kernel(parameters, lengthscale, target)
                    prior_variance = embeddings.embed(kernel, target).prior_variance
            except (ArithmeticError, np.linalg.LinAlgError):
                prior_variance = math.nan
            except (TypeError, ValueError) as error:
                problems.append(((), f"with target {label}: {error}"))
                continue
            if not 0 <= prior_variance < math.inf:
                problem = f"length-scale {lengthscale:g} is beyond what numbers hold"
                problems.append(((), f"with target {label}: {problem}"))
    if problems:
        _fail(*problems)
    return parameters


def _target(name, info: ValidationInfo):
    """(label, content, object) of a target, by name or by path."""
    reading = info.context
    on_shelf = sorted(path.stem for path in reading.shelf.glob("*.json"))
    if name.endswith(".json"):
        path = reading.folder / name
        if not path.is_file():
            raise ValueError(f"there is no file {path}; by name there are: {', '.join(on_shelf)}")
    else:
        path = reading.shelf / f"{name}.json"
        if name not in on_shelf:
            also = ", or the path of a .json file"
            raise ValueError(_unknown("target", name, on_shelf, also))
    reading.new("targets", _label(path.stem))
    content = _read_json(path)
    try:
        content = _target_keys(_family("target", content)).model_validate(content).model_dump()
        target = build_target(content)
    except ValidationError as error:
        _fail(*[((), f"{path}: {place(loc)}: {message}") for loc, message in _told(error)])
    except (TypeError, ValueError, RecursionError) as error:
        raise ValueError(f"{path}: {error}") from None
    reading.targets[path.stem] = target
    return path.stem, {k: v for k, v in content.items() if k not in FREE_TEXT or v}, target


def _read_json(path):
    def unique(pairs):
        for key, _ in pairs:
            if sum(key == other for other, _ in pairs) > 1:
                raise ValueError(f'key "{key}" stands twice')
        return dict(pairs)

    try:
        content = json.loads(path.read_text(encoding="utf-8"), object_pairs_hook=unique)
    except json.JSONDecodeError as error:
        raise ValueError(
            f"{path} is not JSON: line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise ValueError(f"{path} cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise ValueError(f"{path} must hold one JSON object, not {_shown(content)}")
    return content


def _lengthscale(value, info: ValidationInfo):
    value = info.context.new("lengthscales", float(f"{value:.12g}"))
    info.context.lengthscales.append(value)
    return value


class _AlgorithmKeys(_Keys):
    name: _Label = Field(description="the label that results carry")
    design: Annotated[str, _one_of("design", registry.PLACES["design"])] = Field(
        description="the name of a design"
    )
    weights: Annotated[str, _one_of("weight rule", registry.PLACES["weights"])] = Field(
        description="the name of a weight rule"
    )


def _algorithm(value, info: ValidationInfo):
    if isinstance(value, str):
        if value not in registry.ALGORITHMS:
            also = ", or {name: ..., design: ..., weights: ...}"
            raise ValueError(_unknown("algorithm", value, registry.ALGORITHMS, also))
        algorithm = Algorithm(value, *registry.ALGORITHMS[value])
    elif isinstance(value, dict):
        algorithm = Algorithm(**_AlgorithmKeys.model_validate(value).model_dump())
        known = registry.ALGORITHMS.get(algorithm.name)
        if known not in (None, (algorithm.design, algorithm.weights)):
            raise ValueError(
                f'"{algorithm.name}" is the name of design {known[0]} with weights {known[1]}; '
                "choose another name"
            )
    else:
        raise ValueError(
            "must be the name of an algorithm or {name: ..., design: ..., weights: ...}, "
            f"not {_shown(value)}"
        )
    info.context.new("algorithms", algorithm.name)
    return algorithm


_CandidatesKeys = create_model(
    "Candidates",
    __base__=_Keys,
    **_field_types(Candidates)
    | {
        "size": (_Count, Candidates.size),
        "source": (Annotated[str, _one_of("source", SOURCES)], Candidates.source),
        "inflation": (_Positive, Candidates.inflation),
    },
)


def _candidates(content, info: ValidationInfo):
    values = _CandidatesKeys.model_validate(content).model_dump(exclude_unset=True)
    if "inflation" in values and values.get("source") != "inflated":
        _fail((("inflation",), 'goes with source "inflated", and only with it'))
    values["box"] = _tuples(values.get("box"))
    problems = []
    try:
        candidates = Candidates(**values)
    except ValueError as error:
        problems.append(str(error))
    else:
        for label, target in info.context.targets.items():
            try:
                replace(candidates, size=1).draw(target, np.random.default_rng(0))
            except (TypeError, ValueError) as error:
                problems.append(f"{error} (target {label})")
    if problems:
        _fail(*[_at_key(content, problem) for problem in problems])
    return candidates


@cache
def _integrand_keys(family):
    fields = _field_types(family, omit=("embedding", "rng"))
    return create_model("Integrand", __base__=_Keys, family=(str, ...), **fields)


def _integrand(content, info: ValidationInfo):
    family = _family("integrand", content)
    parameters = _integrand_keys(family).model_validate(content).model_dump()
    reading = info.context
    problems = {}  # the same may go wrong with every pair: it is told once
    for label, target in reading.targets.items():
        if isinstance(target, Empirical):
            target = Empirical(target.points[:1])
        for kernel in info.data.get("kernels", {}).values():
            for lengthscale in sorted({f(reading.lengthscales or [1.0]) for f in (min, max)}):
                embedding = embeddings.embed(build_kernel(kernel, lengthscale, target), target)
                function, others = build_integrand(parameters)
                others["functions"] = min(others["functions"], 1)
                try:
                    function(embedding, np.random.default_rng(0), **others)
                except (TypeError, ValueError) as error:
                    problems.setdefault(str(error), label)
    if problems:
        told = [(_at_key(content, problem), label) for problem, label in problems.items()]
        _fail(*[(loc, p if loc else f"with target {label}: {p}") for (loc, p), label in told])
    return parameters


def _study(name, info: ValidationInfo):
    if name not in registry.PLACES["study"]:
        raise ValueError(_unknown("study", name, registry.PLACES["study"]))
    reading, kernels = info.context, info.data.get("kernels")
    reading.new("studies", name)
    if reading.targets and reading.lengthscales and kernels:
        target, parameters = next(iter(reading.targets.values())), next(iter(kernels.values()))
        kernel = build_kernel(parameters, reading.lengthscales[0], target)
        try:
            registry.find("study", name).check(target, kernel)
        except (TypeError, ValueError) as error:
            raise ValueError(f"{name} cannot run: {error}") from None
    return name


def _at_key(content, message):
    """The message with its location: the key that it starts with, where it does."""
    key = message.split()[0]
    return (key,) if key in content else (), message


def _tuples(value):
    return tuple(map(_tuples, value)) if isinstance(value, list) else value


def _points(value, info: ValidationInfo):
    candidates = info.data.get("candidates")
    if candidates is not None and not candidates.fresh and value > candidates.size:
        raise ValueError(f"must be at most the {candidates.size} candidates, not {value}")
    return value


def _window(value, info: ValidationInfo):
    if len(value) != 2 or not 1 <= value[0] < value[1]:
        raise ValueError(f"must be [first, last] with 1 <= first < last, not {value}")
    n = info.data.get("n", math.inf)
    if value[1] > n:
        raise ValueError(f"must end at n = {n} or before, not at {value[1]}")
    return info.context.new("rate_windows", tuple(value))


class _Sweep(_Keys):
    """The keys of a sweep file, in the order in which they are checked."""

    name: _Label = Field(description="a label; results land in results/<name>")
    title: str = ""
    targets: list[Annotated[str, AfterValidator(_target)]] = Field(
        min_length=1, description="a list of targets, by name or by path"
    )
    lengthscales: list[Annotated[_Positive, AfterValidator(_lengthscale)]] = Field(
        min_length=1, description="a list of positive numbers"
    )
    kernels: dict[_Label, Annotated[dict[str, Any], AfterValidator(_kernel)]] = Field(
        min_length=1, description="a mapping from labels to kernels"
    )
    algorithms: list[Annotated[Any, BeforeValidator(_algorithm)]] = Field(
        min_length=1, description="a list of algorithms"
    )
    candidates: Annotated[dict[str, Any], AfterValidator(_candidates)] = Field(
        default={}, validate_default=True
    )
    integrands: dict[_Label, Annotated[dict[str, Any], AfterValidator(_integrand)]] = {}
    n: Annotated[_Count, AfterValidator(_points)] = Field(
        description="the largest number of points"
    )
    seeds: _Count = Field(description="the number of replications")
    seeds_per_job: _Count = 10
    rate_windows: list[Annotated[list[int], AfterValidator(_window)]] = Field(
        min_length=1, description="a list of [first, last]"
    )
    studies: list[Annotated[str, AfterValidator(_study)]] = []
