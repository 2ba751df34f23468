"""Names and parameters in a sweep: families of kernels, designs, weight rules and integrands."""

import inspect
import json
import math
from functools import cache
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin

import numpy as np
from numpy.typing import ArrayLike
from pydantic import AfterValidator, BeforeValidator, ValidationError, ValidationInfo, create_model

from bqlib import embeddings
from bqlib.checks import checked_cholesky
from bqlib.sweep import plugins, registry, yamlfile
from bqlib.sweep.build import arguments, build_kernel
from bqlib.sweep.words import Keys, at_key, fail, problems_in, quoted, shown, unknown
from bqlib.sweep.yamlfile import place


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
        raise ValueError(f"{quoted(name)} is unknown; name file.py:name or package.module:name")
    if len(kinds) > 1:
        raise ValueError(f"{name} is several: {', '.join(kinds)}; name its package.module:name")
    content = {}
    for text in texts:
        key, equals, value = text.partition("=")
        if not equals:
            raise ValueError(f"{quoted(text)} must be parameter=value")
        try:
            content[key] = yamlfile.value(value)
        except yamlfile.UnreadableError as error:
            raise ValueError(f"{key}: {error}") from None
    kind = kinds[0]
    function = registry.find(kind, resolved(kind, name, "."))
    own = plugins.parameters(kind, function)
    if kind == "kernel":
        takes = inspect.signature(function).parameters
        own |= {key: takes[key] for key in ("lengthscale", "covariance") if key in takes}
    keys = create_model("Plugin", __base__=Keys, **field_types(own))
    try:
        values = keys.model_validate(content).model_dump(exclude_unset=True)
    except ValidationError as error:
        raise ValueError(
            "\n".join(f"{place(loc)}: {text}" for loc, text in problems_in(error))
        ) from None
    return kind, function, arguments(values)


def one_of(kind, allowed):
    def check(value):
        if value not in allowed:
            raise ValueError(unknown(kind, value, allowed))
        return value

    return AfterValidator(check)


def _numbers(value):
    """Nested lists with every number a float, and their shape."""
    if not isinstance(value, list):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"must hold numbers and nothing else; it holds {shown(value)}")
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
        raise ValueError(f"must be a list of numbers, not {shown(value)}")
    return _numbers(value)[0]


def _number_or_array(value):
    if isinstance(value, str | None | bool):
        return value
    return _numbers(value)[0]


_PLAIN = {kind: kind for kind in (bool, int, float, str)}
_PLAIN |= {kind | None: kind | None for kind in _PLAIN}
_ARRAY = Annotated[Any, AfterValidator(_array)]


def field_types(parameters):
    """Pydantic's field definitions for parameters by name, as plugins.parameters gives them.

    Where one has no annotation, it is of the type of its default.
    """
    fields = {}
    for name, parameter in parameters.items():
        if name.startswith("model_") and hasattr(Keys, name):  # pydantic's own
            raise plugins.PluginError(f'no parameter can be called "{name}": rename it')
        kind, required = parameter.annotation, parameter.default is inspect.Parameter.empty
        if kind is inspect.Parameter.empty and not required:
            kind = type(parameter.default)
        if get_origin(kind) is Literal and all(isinstance(word, str) for word in get_args(kind)):
            kind = Annotated[str, one_of("word", get_args(kind))]
        elif np.ndarray in (kind, get_origin(kind)) or kind == ArrayLike:
            kind = _ARRAY
        else:
            kind = _PLAIN.get(kind, Annotated[Any, AfterValidator(_number_or_array)])
        fields[name] = (kind, ... if required else parameter.default)
    return fields


def storable(values, given):
    """Values for a file: all that are `given`, and the defaults that JSON has words for."""
    wrong = [name for name in given if name in values and not _is_plain(values[name])]
    if wrong:
        fail(*[((name,), "must hold finite numbers") for name in wrong])
    return {name: value for name, value in values.items() if name in given or _is_plain(value)}


def _is_plain(value):
    """Whether JSON can hold it."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


NOUNS = {"design": "design", "weights": "weight rule"}  # the others are families


def resolved(kind, name, folder):
    """A registered name as it is, or the place of a plug-in that can be loaded.

    Files are taken from `folder`.
    """
    known = registry.PLACES[kind]
    if name in known:
        return name
    place = name if plugins.is_place(name) else plugins.entry_points(kind).get(name)
    if place is None:
        noun = NOUNS.get(kind, f"{kind} family")
        also = ", or file.py:name or package.module:name"
        raise ValueError(unknown(noun, name, [*known, *plugins.entry_points(kind)], also))
    place = plugins.absolute(place, folder)
    plugins.load(kind, place)
    return place


def family_of(kind, content, folder):
    """The class or function that ``family`` names, and the content with that name resolved."""
    name = content.get("family")
    if not isinstance(name, str):
        problem = f"must be a text, not {shown(name)}." if "family" in content else "missing."
        fail((("family",), f"{problem} Allowed: {', '.join(registry.PLACES[kind])}"))
    try:
        name = resolved(kind, name, folder)
    except ValueError as error:
        fail((("family",), str(error)))
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


class _KernelKeys(Keys):
    model_elsewhere: ClassVar[dict] = dict.fromkeys(
        ("lengthscale", "covariance"),
        'give length-scales in the key "lengthscales"; a "shape" here is multiplied by each',
    )
    family: str


@cache
def _kernel_keys(family):
    fields = field_types(plugins.parameters("kernel", family))
    if "lengthscale" in inspect.signature(family).parameters:
        fields["shape"] = (Annotated[Any, AfterValidator(_shape)], None)
    return create_model("Kernel", __base__=_KernelKeys, **fields)


def checked_kernel(content, info: ValidationInfo):
    reading = info.context
    family, content = family_of("kernel", content, reading.folder)
    keys = _kernel_keys(family).model_validate(content)
    parameters = keys.model_dump()
    if parameters.get("shape", ...) is None:
        del parameters["shape"]
    takes = inspect.signature(family).parameters
    name = plugins.without_folder(content["family"])
    if np.ndim(parameters.get("shape")) == 2 and "covariance" not in takes:
        fail((("shape",), f"{name} takes a list of numbers, not a full matrix"))
    if "lengthscale" not in takes and any(scale != 1 for scale in reading.lengthscales):
        raise ValueError(f"{name} has no length-scale: sweep it at lengthscales: [1]")
    if "target" not in takes:
        try:
            build_kernel(parameters, 1.0, None)
        except Exception as error:  # a plug-in's may be any
            fail(at_key(content, plugins.told(error)))
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
        fail(*dict.fromkeys(problems))
    return storable(parameters, keys.model_fields_set)


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


@cache
def function_keys(kind, function):
    fields = field_types(plugins.parameters(kind, function))
    return create_model("Function", __base__=Keys, family=(str, ...), **fields)


def rule(kind):
    """Validator of a design or weight rule: a name, or a family and its parameters."""

    def check(value, info: ValidationInfo):
        folder = info.context.folder
        if isinstance(value, str):
            value = {"family": value}
            try:
                function, content = family_of(kind, value, folder)
            except ValidationError as error:
                raise ValueError(*[message for _, message in problems_in(error)]) from None
        elif isinstance(value, dict):
            function, content = family_of(kind, value, folder)
        else:
            raise ValueError(
                f"must be the name of a {NOUNS[kind]} or {{family: ..., parameter: ...}}, "
                f"not {shown(value)}"
            )
        model = function_keys(kind, function)
        keys = model.model_validate(content)
        return content["family"], {
            name: value
            for name, value in storable(keys.model_dump(), keys.model_fields_set).items()
            if name in keys.model_fields_set
            and not np.array_equal(value, model.model_fields[name].default)
            and name != "family"
        }

    return BeforeValidator(check)
