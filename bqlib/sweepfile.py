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
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin

import numpy as np
from numpy.typing import ArrayLike
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

from bqlib import embeddings, plugins, registry, yamlfile
from bqlib.candidates import SOURCES, Candidates
from bqlib.checks import checked_cholesky, checked_points
from bqlib.experiment import (
    FREE_TEXT,
    Algorithm,
    Experiment,
    SweepError,
    arguments,
    build_integrand,
    build_kernel,
    build_target,
)
from bqlib.targets import Empirical
from bqlib.yamlfile import place

# Snakemake plans all jobs at once, and a job holds all curves of its seeds.
MOST_JOBS, MOST_SEEDS_PER_JOB = 1_000_000, 10_000
MOST = 1_000_000_000  # of anything that is counted: far beyond what can run, and no trouble to plan


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
    except SystemExit as error:
        problems.append((1, f"a plug-in would have ended bqlib: {plugins.told(error)}"))
    if problems:
        raise SweepError(
            *[f"{path}:{line}: {' '.join(text.split())}" for line, text in sorted(set(problems))]
        )
    experiment = Experiment(
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
    too_large = _too_large(experiment)
    if too_large:
        raise SweepError(f"{path}:{lines['seeds',]}: seeds: {too_large}")
    return experiment


def _too_large(experiment):
    """Why a sweep could not be planned, or an empty text."""
    cells = math.prod(
        len(getattr(experiment, name)) for name in ("targets", "kernels", "lengthscales")
    ) * len(experiment.algorithms)
    jobs = cells * -(-experiment.seeds // experiment.seeds_per_job)
    if jobs > MOST_JOBS:
        return (
            f"{cells} cells with {experiment.seeds} seeds are {jobs} jobs, and a sweep has at most "
            f"{MOST_JOBS}: ask for fewer seeds, or for more of them in a job by seeds_per_job"
        )
    if min(experiment.seeds, experiment.seeds_per_job) > MOST_SEEDS_PER_JOB:
        return f"a job has at most {MOST_SEEDS_PER_JOB} seeds: set seeds_per_job"
    return ""


def read_plugin(name, texts):
    """A plug-in, or what else a sweep may name, with its parameters.

    Parameters
    ----------
    name : str
        As in a sweep; files are taken from the working directory.
    texts : list of str
        ``"parameter=value"``, with values as in a sweep file.

    Returns
    -------
    kind : str
    function : class or function
    parameters : dict

    Raises
    ------
    ValueError
        With everything that is wrong.
    """
    kinds = [k for k in plugins.GROUPS if name in [*registry.PLACES[k], *plugins.entry_points(k)]]
    if plugins.is_place(name):
        kinds = [plugins.kind_of(plugins.absolute(name, "."))]
    if not kinds:
        raise ValueError(f"{_quoted(name)} is unknown; name file.py:name or package.module:name")
    if len(kinds) > 1:
        raise ValueError(f"{name} is several: {', '.join(kinds)}; name its package.module:name")
    content = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"{_quoted(text)} must be parameter=value")
        try:
            content[key] = yamlfile.value(value)
        except yamlfile.UnreadableError as error:
            raise ValueError(f"{key}: {error}") from None
    kind = kinds[0]
    function = registry.find(kind, _resolved(kind, name, "."))
    own = plugins.parameters(kind, function)
    if kind == "kernel":
        takes = inspect.signature(function).parameters
        own |= {key: takes[key] for key in ("lengthscale", "covariance") if key in takes}
    keys = create_model("Plugin", __base__=_Keys, **_field_types(own))
    try:
        values = keys.model_validate(content).model_dump(exclude_unset=True)
    except ValidationError as error:
        raise ValueError("\n".join(f"{place(loc)}: {text}" for loc, text in _told(error))) from None
    return kind, function, arguments(values)


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

    def small_targets(self):
        """Label and target of each; a data set has one point, as all of them take O(M^2) time."""
        for label, target in self.targets.items():
            is_data = isinstance(target, Empirical)
            yield label, Empirical(target.points[:1]) if is_data else target

    def extreme_lengthscales(self):
        """The shortest and the longest, where numbers fail."""
        known = self.lengthscales or [1.0]
        return sorted({min(known), max(known)})

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
    model_elsewhere: ClassVar[dict] = {}

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
    # What a plug-in raised, or the path of a file, may hold what is no UTF-8.
    texts = [message.encode(errors="backslashreplace").decode() for _, message in problems]
    details = [
        InitErrorDetails(
            type=PydanticCustomError("sweep", "{message}", {"message": text}),
            loc=loc,
            input=None,
        )
        for (loc, _), text in zip(problems, texts, strict=True)
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
        return model.model_elsewhere.get(key) or _unknown("key", key, model.model_fields)
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
    if value > MOST:
        raise ValueError(f"must be at most {MOST}, not {value!r:.40}")
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


_PLAIN = {kind: kind for kind in (bool, int, float, str)}
_PLAIN |= {kind | None: kind | None for kind in _PLAIN}
_ARRAY = Annotated[Any, AfterValidator(_array)]


def _field_types(parameters):
    """Pydantic's field definitions for parameters by name, as plugins.parameters gives them.

    Where one has no annotation, it is of the type of its default.
    """
    fields = {}
    for name, parameter in parameters.items():
        if name.startswith("model_") and hasattr(_Keys, name):  # pydantic's own
            raise plugins.PluginError(f'no parameter can be called "{name}": rename it')
        kind, required = parameter.annotation, parameter.default is inspect.Parameter.empty
        if kind is inspect.Parameter.empty and not required:
            kind = type(parameter.default)
        if get_origin(kind) is Literal and all(isinstance(word, str) for word in get_args(kind)):
            kind = Annotated[str, _one_of("word", get_args(kind))]
        elif np.ndarray in (kind, get_origin(kind)) or kind == ArrayLike:
            kind = _ARRAY
        else:
            kind = _PLAIN.get(kind, Annotated[Any, AfterValidator(_number_or_array)])
        fields[name] = (kind, ... if required else parameter.default)
    return fields


def _storable(values, given):
    """Values for a file: all that are `given`, and the defaults that JSON has words for."""
    wrong = [name for name in given if name in values and not _is_plain(values[name])]
    if wrong:
        _fail(*[((name,), "must hold finite numbers") for name in wrong])
    return {name: value for name, value in values.items() if name in given or _is_plain(value)}


def _is_plain(value):
    """Whether JSON can hold it."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


_NOUNS = {"design": "design", "weights": "weight rule"}  # the others are families


def _resolved(kind, name, folder):
    """A registered name as it is, or the place of a plug-in that can be loaded.

    Files are taken from `folder`.
    """
    known = registry.PLACES[kind]
    if name in known:
        return name
    place = name if plugins.is_place(name) else plugins.entry_points(kind).get(name)
    if place is None:
        noun = _NOUNS.get(kind, f"{kind} family")
        also = ", or file.py:name or package.module:name"
        raise ValueError(_unknown(noun, name, [*known, *plugins.entry_points(kind)], also))
    place = plugins.absolute(place, folder)
    plugins.load(kind, place)
    return place


def _family(kind, content, folder):
    """The class or function that ``family`` names, and the content with that name resolved."""
    name = content.get("family")
    if not isinstance(name, str):
        problem = f"must be a text, not {_shown(name)}." if "family" in content else "missing."
        _fail((("family",), f"{problem} Allowed: {', '.join(registry.PLACES[kind])}"))
    try:
        name = _resolved(kind, name, folder)
    except ValueError as error:
        _fail((("family",), str(error)))
    return registry.find(kind, name), content | {"family": name}


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
    model_elsewhere: ClassVar[dict] = dict.fromkeys(
        ("lengthscale", "covariance"),
        'give length-scales in the key "lengthscales"; a "shape" here is multiplied by each',
    )
    family: str


@cache
def _kernel_keys(family):
    fields = _field_types(plugins.parameters("kernel", family))
    if "lengthscale" in inspect.signature(family).parameters:
        fields["shape"] = (Annotated[Any, AfterValidator(_shape)], None)
    return create_model("Kernel", __base__=_KernelKeys, **fields)


@cache
def _target_keys(family):
    fields = _field_types(plugins.parameters("target", family))
    fields |= {name: (str, "") for name in FREE_TEXT}
    return create_model("Target", __base__=_Keys, family=(str, ...), **fields)


def _kernel(content, info: ValidationInfo):
    reading = info.context
    family, content = _family("kernel", content, reading.folder)
    keys = _kernel_keys(family).model_validate(content)
    parameters = keys.model_dump()
    if parameters.get("shape", ...) is None:
        del parameters["shape"]
    takes = inspect.signature(family).parameters
    name = plugins.without_folder(content["family"])
    if np.ndim(parameters.get("shape")) == 2 and "covariance" not in takes:
        _fail((("shape",), f"{name} takes a list of numbers, not a full matrix"))
    if "lengthscale" not in takes and any(scale != 1 for scale in reading.lengthscales):
        raise ValueError(f"{name} has no length-scale: sweep it at lengthscales: [1]")
    if "target" not in takes:
        try:
            build_kernel(parameters, 1.0, None)
        except Exception as error:  # a plug-in's may be any
            _fail(_at_key(content, plugins.told(error)))
    problems = []
    for label, target in reading.small_targets():
        for lengthscale in reading.extreme_lengthscales():
            try:
                with np.errstate(over="raise", invalid="raise", divide="raise"):
                    kernel = build_kernel(parameters, lengthscale, target)
                    prior_variance = embeddings.embed(kernel, target).prior_variance
                _check_owner(embeddings.find(type(kernel), type(target)), kernel, target)
            except (ArithmeticError, np.linalg.LinAlgError):
                prior_variance = math.nan
            except Exception as error:
                problems.append(((), f"with target {label}: {plugins.told(error)}"))
                continue
            if not 0 <= prior_variance < math.inf:
                problem = f"length-scale {lengthscale:g} is beyond what numbers hold"
                problems.append(((), f"with target {label}: {problem}"))
    if problems:
        _fail(*dict.fromkeys(problems))
    return _storable(parameters, keys.model_fields_set)


def _check_owner(embedding, kernel, target):
    """Refuse an embedding that a worker with this pair alone would not know, or not follow."""
    roots = {item.__module__.partition(".")[0] for item in (type(kernel), type(target))}
    if embedding.__module__.partition(".")[0] not in {"bqlib", *roots}:
        raise ValueError(
            f"the embedding of {type(kernel).__name__} with {type(target).__name__} is registered "
            f"in {embedding.__module__}, which has neither; register it for a subclass of its own"
        )
    if "." in embedding.__qualname__ or "<" in embedding.__qualname__:
        raise ValueError(
            f"{embedding.__qualname__} cannot be followed: register a def at the top level"
        )


def _target(value, info: ValidationInfo):
    """(label, content, object) of a target, by name, by path, or written out."""
    reading = info.context
    if isinstance(value, dict):
        return _target_of_sweep(value, reading)
    if not isinstance(value, str):
        raise ValueError(
            "must be the name or path of a target, or {name: ..., family: ...}, "
            f"not {_shown(value)}"
        )
    if plugins.is_place(value):
        raise ValueError(f"give it a name of its own: {{name: ..., family: {_quoted(value)}}}")
    on_shelf = sorted(path.stem for path in reading.shelf.glob("*.json"))
    if value.endswith(".json"):
        path = reading.folder / value
        if not path.is_file():
            raise ValueError(f"there is no file {path}; by name there are: {', '.join(on_shelf)}")
    else:
        path = reading.shelf / f"{value}.json"
        if value not in on_shelf:
            also = ", or the path of a .json file"
            if not on_shelf:
                also += f"; {reading.shelf} has no targets: name another folder by --shelf"
            raise ValueError(_unknown("target", value, on_shelf, also))
    reading.new("targets", _label(path.stem))
    try:
        content, target = read_target(path)
    except SweepError as error:
        _fail(*[((), problem) for problem in error.problems])
    reading.targets[path.stem] = target
    return path.stem, content, target


def read_target(path):
    """(content, object) of a target file; a SweepError has all that is wrong with it."""
    try:
        return _built_target(_read_json(path), path.parent)
    except ValidationError as error:
        told = [f"{path}: {place(loc)}: {message}" for loc, message in _told(error)]
        raise SweepError(*told) from None
    except _BadTargetError as error:
        raise SweepError(f"{path}: {error}") from None


def _target_of_sweep(value, reading):
    named = {"name": value["name"]} if "name" in value else {}
    problems, label = [], None
    try:
        label = _TargetName.model_validate(named).name
        reading.new("targets", label)
    except ValidationError as error:
        problems += _told(error)
    except ValueError as error:
        problems.append((("name",), str(error)))
    try:
        content = {k: v for k, v in value.items() if k != "name"}
        content, target = _built_target(content, reading.folder)
    except ValidationError as error:
        problems += _told(error)
    except _BadTargetError as error:
        problems.append(_at_key(value, str(error)))
    if problems:
        _fail(*problems)
    reading.targets[label] = target
    return label, content, target


class _TargetName(_Keys):
    name: _Label = Field(description="the label that results carry")


class _BadTargetError(Exception):
    """Why a target cannot be made from its parameters."""


def _built_target(content, folder):
    """(content, object) of a target from what its file, or the sweep, says."""
    family, content = _family("target", content, folder)
    keys = _target_keys(family).model_validate(content)
    content = keys.model_dump()
    try:
        target = build_target(content)
        dim = getattr(target, "dim", None)
    except (Exception, SystemExit) as error:  # a plug-in's may be any
        raise _BadTargetError(plugins.told(error)) from None
    if not isinstance(dim, int) or dim < 1:
        raise _BadTargetError(f"{family.__name__} has no dim, a whole number from 1 on")
    content = _storable(content, keys.model_fields_set)
    return {k: v for k, v in content.items() if k not in FREE_TEXT or v}, target


def _read_json(path):
    def unique(pairs):
        for key, _ in pairs:
            if sum(key == other for other, _ in pairs) > 1:
                raise ValueError(f'key "{key}" stands twice')
        return dict(pairs)

    try:
        text = path.read_text(encoding="utf-8")
        content = json.loads(text, object_pairs_hook=unique)
        if "\\u" in text:  # may be half of a letter, which cannot be written again
            json.dumps(content, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise SweepError(
            f"{path} is not JSON: line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    except (OSError, ValueError, RecursionError) as error:
        raise SweepError(f"{path} cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise SweepError(f"{path} must hold one JSON object, not {_shown(content)}")
    return content


def _lengthscale(value, info: ValidationInfo):
    value = info.context.new("lengthscales", float(f"{value:.12g}"))
    info.context.lengthscales.append(value)
    return value


@cache
def _function_keys(kind, function):
    fields = _field_types(plugins.parameters(kind, function))
    return create_model("Function", __base__=_Keys, family=(str, ...), **fields)


def _rule(kind):
    """Validator of a design or weight rule: a name, or a family and its parameters."""

    def check(value, info: ValidationInfo):
        folder = info.context.folder
        if isinstance(value, str):
            value = {"family": value}
            try:
                function, content = _family(kind, value, folder)
            except ValidationError as error:
                raise ValueError(*[message for _, message in _told(error)]) from None
        elif isinstance(value, dict):
            function, content = _family(kind, value, folder)
        else:
            raise ValueError(
                f"must be the name of a {_NOUNS[kind]} or {{family: ..., parameter: ...}}, "
                f"not {_shown(value)}"
            )
        model = _function_keys(kind, function)
        keys = model.model_validate(content)
        return content["family"], {
            name: value
            for name, value in _storable(keys.model_dump(), keys.model_fields_set).items()
            if name in keys.model_fields_set
            and not np.array_equal(value, model.model_fields[name].default)
            and name != "family"
        }

    return BeforeValidator(check)


class _AlgorithmKeys(_Keys):
    name: _Label = Field(description="the label that results carry")
    design: Annotated[Any, _rule("design")] = Field(description="the name of a design")
    weights: Annotated[Any, _rule("weights")] = Field(description="the name of a weight rule")


def _algorithm(value, info: ValidationInfo):
    if isinstance(value, str):
        if value not in registry.ALGORITHMS:
            also = ", or {name: ..., design: ..., weights: ...}"
            raise ValueError(_unknown("algorithm", value, registry.ALGORITHMS, also))
        algorithm = Algorithm(value, *registry.ALGORITHMS[value])
    elif isinstance(value, dict):
        keys = _AlgorithmKeys.model_validate(value, context=info.context)
        (design, of_design), (weights, of_weights) = keys.design, keys.weights
        algorithm = Algorithm(keys.name, design, weights, of_design, of_weights)
        known = registry.ALGORITHMS.get(algorithm.name)
        if known and algorithm != Algorithm(algorithm.name, *known):
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
    **_field_types(inspect.signature(Candidates, eval_str=True).parameters)
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
                draw = replace(candidates, size=1).draw(target, np.random.default_rng(0))
                checked_points(draw, target.dim, "candidates")
            except Exception as error:  # a plug-in's may be any
                problems.append(f"{plugins.told(error)} (target {label})")
    if problems:
        _fail(*[_at_key(content, problem) for problem in problems])
    return candidates


def _integrand(content, info: ValidationInfo):
    reading = info.context
    family, content = _family("integrand", content, reading.folder)
    keys = _function_keys("integrand", family).model_validate(content)
    parameters = keys.model_dump()
    functions = parameters.get("functions")
    if isinstance(functions, int) and functions > MOST:
        _fail((("functions",), f"must be at most {MOST}, not {functions!r:.40}"))
    problems = {}  # the same may go wrong with every pair: it is told once
    for label, target in reading.small_targets():
        for kernel in info.data.get("kernels", {}).values():
            for lengthscale in reading.extreme_lengthscales():
                embedding = embeddings.embed(build_kernel(kernel, lengthscale, target), target)
                function, others = build_integrand(parameters)
                if "functions" in others:
                    others["functions"] = min(others["functions"], 1)
                try:
                    function(embedding, np.random.default_rng(0), **others)
                except Exception as error:  # a plug-in's may be any
                    problems.setdefault(plugins.told(error), label)
    if problems:
        told = [(_at_key(content, problem), label) for problem, label in problems.items()]
        _fail(*[(loc, p if loc else f"with target {label}: {p}") for (loc, p), label in told])
    return _storable(parameters, keys.model_fields_set)


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
    key = message.partition(" ")[0]
    return (key,) if key in content else (), message or "an error without a message"


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
    targets: list[Annotated[Any, BeforeValidator(_target)]] = Field(
        min_length=1, description="a list of targets, by name, by path or written out"
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
    rate_windows: list[Annotated[list[int], AfterValidator(_window)]] = []
    studies: list[Annotated[str, AfterValidator(_study)]] = []
