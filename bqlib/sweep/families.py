"""Names and parameters in a sweep: families of kernels, designs, weight rules and integrands."""

import inspect
import json
import math
from functools import cache, partial
from typing import Annotated, Any, ClassVar, Literal, get_args, get_origin

import numpy as np
from numpy.typing import ArrayLike
from pydantic import (
    AfterValidator,
    BeforeValidator,
    ValidationError,
    ValidationInfo,
    WithJsonSchema,
    create_model,
)

from bqlib import embeddings
from bqlib.checks import checked_covariance
from bqlib.sweep import plugins, registry, yamlfile
from bqlib.sweep.build import arguments, build_kernel
from bqlib.sweep.values import Described, Untitled
from bqlib.sweep.words import Keys, at_key, fail, problems_in, quoted, shown, unknown
from bqlib.sweep.yamlfile import dotted
from bqlib.targets import Empirical


def read_plugin(name, texts):
    """A plug-in, or a registered family, design or weight rule, with its parameters.

    Parameters
    ----------
    name : str
        As in a sweep; the path of a file is relative to the working directory.
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
        With all problems.
    """
    kinds = [k for k in plugins.KINDS if name in [*registry.PLACES[k], *plugins.entry_points(k)]]
    if plugins.is_place(name):
        kinds = [plugins.kind_of(plugins.absolute(name, "."))]
    if not kinds:
        raise ValueError(
            f"{quoted(name)} is not registered: write file.py:name or package.module:name"
        )
    if len(kinds) > 1:
        nouns = " and ".join(plugins.KINDS[kind].noun for kind in kinds)
        raise ValueError(f"{quoted(name)} is {nouns}: write package.module:name")
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
            "\n".join(f"{dotted(loc)}: {text}" for loc, text in problems_in(error))
        ) from None
    return kind, function, arguments(values)


def one_of(noun, allowed):
    """Type of a text that must be among those allowed; `noun` says what it is."""

    def allowed_only(value):
        if value not in allowed:
            raise ValueError(unknown(noun, value, allowed))
        return value

    return Annotated[str, AfterValidator(allowed_only), WithJsonSchema({"enum": list(allowed)})]


def _numbers(value):
    """Nested lists with every number a float, and their shape."""
    if not isinstance(value, list):
        if isinstance(value, bool) or not isinstance(value, int | float):
            raise ValueError(f"must contain only numbers, not {shown(value)}")
        try:
            return float(value) + 0.0, ()  # no negative zero
        except OverflowError:
            raise ValueError("contains a number that is too large") from None
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
_ARRAY = Annotated[Any, AfterValidator(_array), WithJsonSchema({"type": "array"})]


def field_types(parameters):
    """Pydantic's field definitions for parameters by name, as plugins.parameters gives them.

    A parameter without an annotation has the type of its default.
    """
    fields = {}
    for name, parameter in parameters.items():
        if name.startswith("model_") and hasattr(Keys, name):  # pydantic's own
            raise plugins.PluginError(f'no parameter can be called "{name}": rename it')
        kind, required = parameter.annotation, parameter.default is inspect.Parameter.empty
        if kind is inspect.Parameter.empty and not required:
            kind = type(parameter.default)
        if get_origin(kind) is Literal and all(isinstance(word, str) for word in get_args(kind)):
            kind = one_of("value", get_args(kind))
        elif np.ndarray in (kind, get_origin(kind)) or kind == ArrayLike:
            kind = _ARRAY
        else:
            kind = _PLAIN.get(kind, Annotated[Any, AfterValidator(_number_or_array)])
        fields[name] = (kind, ... if required else parameter.default)
    return fields


def storable(values, given):
    """Values for a file: all that are `given`, and the defaults that JSON can hold."""
    own = given - {"family"}  # which may be a class or a function
    wrong = [name for name in own if name in values and not _is_plain(values[name])]
    if wrong:
        fail(*[((name,), "must contain only finite numbers") for name in wrong])
    return {name: value for name, value in values.items() if name in given or _is_plain(value)}


def _is_plain(value):
    """Whether JSON can hold it."""
    try:
        json.dumps(value, allow_nan=False)
    except (TypeError, ValueError):
        return False
    return True


def resolved(kind, name, folder):
    """A registered name as it is, or the place of a plug-in, which is loaded.

    The path of a file is relative to `folder`.
    """
    known = registry.PLACES[kind]
    if name in known:
        return name
    places = [name] if plugins.is_place(name) else plugins.entry_points(kind).get(name, [])
    if not places:
        also = ", or file.py:name or package.module:name"
        offered = [*known, *plugins.entry_points(kind)]
        raise ValueError(unknown(plugins.KINDS[kind].named, name, offered, also))
    if len(places) > 1:
        raise ValueError(f"several packages offer {quoted(name)}: write {' or '.join(places)}")
    place = plugins.absolute(places[0], folder)
    plugins.load(kind, place)
    return place


def family_of(kind, content, folder):
    """The class or function that ``family`` names or is, and the content with its place."""
    name = content.get("family")
    if callable(name):
        problem = plugins.KINDS[kind].positional and plugins.misfit(kind, name)
        if problem:
            fail((("family",), f"{plugins.without_folder(name)} {problem}"))
        return name, content
    if not isinstance(name, str):
        problem = f"must be a text, not {shown(name)}." if "family" in content else "missing."
        fail((("family",), f"{problem} Allowed: {', '.join(registry.PLACES[kind])}"))
    try:
        name = resolved(kind, name, folder)
    except ValueError as error:
        fail((("family",), str(error)))
    return registry.find(kind, name), content | {"family": name}


def names_schema(kind):
    """JSON Schema of the names of a kind: registered ones, and places of plug-ins."""
    known = [*registry.PLACES[kind], *plugins.entry_points(kind)]
    return {"anyOf": [{"enum": known}, {"type": "string", "pattern": plugins.PLACE.pattern}]}


def families_schema(kind, keys):
    """JSON Schema of a mapping with the name of a family and its parameters.

    `keys` gives the model of a family. The parameters of plug-ins are not known here.
    """
    branches = []
    for name in registry.PLACES[kind]:
        known = keys(registry.find(kind, name)).model_json_schema(schema_generator=Untitled)
        known["properties"]["family"] = {"const": name}
        named = {"properties": {"family": {"const": name}}, "required": ["family"]}
        branches.append({"if": named, "then": known})
    return {
        "type": "object",
        "properties": {"family": names_schema(kind)},
        "required": ["family"],
        "allOf": branches,
    }


def _shape(value):
    if value is None:
        return value
    value = _array(value)
    shape = np.array(value)
    if shape.ndim == 2:
        checked_covariance(shape, "the matrix")
    elif shape.ndim != 1 or not shape.size or not (np.isfinite(shape) & (shape > 0)).all():
        raise ValueError("must be a list of finite positive numbers or a square matrix")
    return value


class _KernelKeys(Keys):
    model_elsewhere: ClassVar[dict] = dict.fromkeys(
        ("lengthscale", "covariance"),
        'set length-scales with the key "lengthscales"; each of them multiplies a "shape" here',
    )
    family: Any


@cache
def kernel_keys(family):
    """Pydantic's model of ``family`` and the parameters of a kernel."""
    fields = field_types(plugins.parameters("kernel", family))
    if "lengthscale" in inspect.signature(family).parameters:
        fields["shape"] = (
            Annotated[Any, AfterValidator(_shape), WithJsonSchema({"type": ["array", "null"]})],
            None,
        )
    return create_model("Kernel", __base__=_KernelKeys, **fields)


def checked_kernel(content, info: ValidationInfo):
    """Family and parameters of a kernel that has an embedding with every target."""
    reading = info.context
    family, content = family_of("kernel", content, reading.folder)
    keys = kernel_keys(family).model_validate(content)
    parameters = keys.model_dump()
    if parameters.get("shape", ...) is None:
        del parameters["shape"]
    takes = inspect.signature(family).parameters
    name = plugins.without_folder(content["family"])
    if np.ndim(parameters.get("shape")) == 2 and "covariance" not in takes:
        fail((("shape",), f"{name} takes a list of numbers, not a full matrix"))
    if "lengthscale" not in takes and any(scale != 1 for scale in reading.lengthscales):
        raise ValueError(f"{name} has no length-scale: write lengthscales: [1]")
    if "target" not in takes:
        try:
            build_kernel(parameters, 1.0, None)
        except Exception as error:  # a plug-in may raise any
            fail(at_key(content, plugins.reason_of(error)))
    problems = []
    shortest = reading.extreme_lengthscales()[0]
    for label, target in reading.targets.items():
        if isinstance(target, Empirical):  # its embedding is asked of one of its points only
            try:
                build_kernel(parameters, shortest, target).diagonal(target.points)
            except Exception as error:
                problems.append(((), f"with target {label}: {plugins.reason_of(error)}"))
    for label, target in reading.small_targets():
        for lengthscale in reading.extreme_lengthscales():
            try:
                with np.errstate(over="raise", invalid="raise", divide="raise"):
                    kernel = build_kernel(parameters, lengthscale, target)
                    prior_variance = embeddings.embed(kernel, target).prior_variance
                if not callable(content["family"]):
                    _require_followed(embeddings.find(type(kernel), type(target)), kernel, target)
            except (ArithmeticError, np.linalg.LinAlgError):
                prior_variance = math.nan
            except Exception as error:
                problems.append(((), f"with target {label}: {plugins.reason_of(error)}"))
                continue
            if not 0 <= prior_variance < math.inf:
                problem = f"length-scale {lengthscale:g} is outside the range of float64"
                problems.append(((), f"with target {label}: {problem}"))
    if problems:
        fail(*dict.fromkeys(problems))
    return storable(parameters, keys.model_fields_set)


def _require_followed(embedding, kernel, target):
    """Refuse an embedding that a worker does not load, or that no fingerprint covers."""
    roots = {item.__module__.partition(".")[0] for item in (type(kernel), type(target))}
    if embedding.__module__.partition(".")[0] not in {"bqlib", *roots}:
        raise ValueError(
            f"the embedding of {type(kernel).__name__} with {type(target).__name__} is registered "
            f"in {embedding.__module__}, which defines neither: register it for a subclass that is "
            "defined there"
        )
    if "." in embedding.__qualname__ or "<" in embedding.__qualname__:
        raise ValueError(
            f"the embedding {embedding.__qualname__} must be a def at the top level of its module, "
            "so that changes of its code are seen"
        )


@cache
def function_keys(kind, function):
    """Pydantic's model of ``family`` and the parameters of a function."""
    fields = field_types(plugins.parameters(kind, function))
    return create_model("Function", __base__=Keys, family=(Any, ...), **fields)


def rule(kind):
    """Type of a design or weight rule: a name, or a family and its parameters."""

    def read(value, info: ValidationInfo):
        folder = info.context.folder
        if isinstance(value, str) or callable(value):
            value = {"family": value}
            try:
                function, content = family_of(kind, value, folder)
            except ValidationError as error:
                raise ValueError(*[message for _, message in problems_in(error)]) from None
        elif isinstance(value, dict):
            function, content = family_of(kind, value, folder)
        else:
            raise ValueError(
                f"must be the name of {plugins.KINDS[kind].noun} or "
                "{family: ..., parameter: ...}, "
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

    def schema():
        families = families_schema(kind, partial(function_keys, kind))
        return {"anyOf": [names_schema(kind), families]}

    return Annotated[Any, BeforeValidator(read), Described(schema)]
