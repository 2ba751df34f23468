"""Targets in a sweep: by name, by the path of a file, or written out."""

import json
from functools import cache
from typing import Any

from pydantic import (
    ConfigDict,
    Field,
    TypeAdapter,
    ValidationError,
    ValidationInfo,
    create_model,
    model_validator,
)

from bqlib.sweep import from_file, plugins, registry
from bqlib.sweep.build import build_target
from bqlib.sweep.datafile import FORMATS
from bqlib.sweep.datapoints import DataFileError
from bqlib.sweep.families import families_schema, family_of, field_types, storable
from bqlib.sweep.textfile import read_text
from bqlib.sweep.values import Label, checked_label
from bqlib.sweep.words import Keys, SweepError, at_key, fail, problems_in, quoted, shown, unknown
from bqlib.sweep.yamlfile import dotted

MOST_BYTES = 2**24  # of a target file: 400,000 points in the plane, which take seconds to read


class _DataSetKeys(Keys):
    """Points that are written out, or those of a file."""

    model_config = ConfigDict(
        json_schema_extra={"oneOf": [{"required": ["points"]}, {"required": ["file"]}]}
    )
    file: str = Field(default="", description="the path of a data file: " + ", ".join(FORMATS))
    columns: list[str] = Field(default=[], description="the columns of the file that are taken")

    @model_validator(mode="after")
    def _one_of_both(self):
        given = self.model_fields_set
        if "file" not in given and "points" not in given:
            fail((("points",), "missing: give points, or file with the path of a data file"))
        problems = []
        if "file" in given:
            why = "cannot be given beside file: all points of a file have equal weights"
            problems += [((key,), why) for key in ("points", "weights") if key in given]
        elif "columns" in given:
            problems.append((("columns",), "is allowed only with file"))
        if "columns" in given and not self.columns:
            problems.append((("columns",), "must not be empty: leave it out to take all"))
        if len(set(self.columns)) < len(self.columns):
            problems.append((("columns",), "names a column twice"))
        if problems:
            fail(*problems)
        return self


@cache
def _target_keys(family):
    fields = field_types(plugins.parameters("target", family))
    fields |= {name: (str, "") for name in plugins.FREE_TEXT}
    base = Keys
    if family is registry.find("target", from_file.FAMILY):
        base = _DataSetKeys
        fields["points"] = (fields["points"][0], Field(default=None))
    return create_model("Target", __base__=base, family=(Any, ...), **fields)


def checked_target(value, info: ValidationInfo):
    """(label, content, object) of a target, by name, by path, or written out."""
    reading = info.context
    if isinstance(value, dict):
        return _target_of_sweep(value, reading)
    if not isinstance(value, str):
        raise ValueError(
            "must be the name or path of a target, or {name: ..., family: ...}, "
            f"not {shown(value)}"
        )
    if plugins.is_place(value):
        raise ValueError(f"give the target a name: {{name: ..., family: {quoted(value)}}}")
    if value.endswith(tuple(FORMATS)):
        raise ValueError(
            f"give the target a name: {{name: ..., family: {from_file.FAMILY}, "
            f"file: {quoted(value)}}}"
        )
    on_shelf = sorted(path.stem for path in reading.shelf.glob("*.json"))
    if value.endswith(".json"):
        path = reading.folder / value
        if not path.is_file():
            raise ValueError(f"there is no file {path}. Named targets: {', '.join(on_shelf)}")
    else:
        path = reading.shelf / f"{value}.json"
        if value not in on_shelf:
            also = ", or the path of a .json file"
            if not on_shelf:
                also += f"; {reading.shelf} has no targets: give another folder with --shelf"
            raise ValueError(unknown("target", value, on_shelf, also))
    reading.new("targets", checked_label(path.stem))
    try:
        content, target = read_target(path)
    except SweepError as error:
        fail(*[((), problem) for problem in error.problems])
    reading.targets[path.stem] = target
    return path.stem, content, target


def target_schema():
    """JSON Schema of a target by its name or path, or written out."""
    written = families_schema("target", _target_keys)
    name = TypeAdapter(Label).json_schema()
    written = written | {"required": ["name", "family"]}
    written["properties"] = {"name": name} | written["properties"]
    return {"anyOf": [{"type": "string"}, written]}


def read_target(path):
    """(content, object) of a target file; a SweepError has all its problems."""
    try:
        return _built_target(_read_json(path), path.parent)
    except ValidationError as error:
        problems = [f"{path}: {dotted(loc)}: {message}" for loc, message in problems_in(error)]
        raise SweepError(*problems) from None
    except _BadTargetError as error:
        raise SweepError(f"{path}: {error}") from None


def _target_of_sweep(value, reading):
    named = {"name": value["name"]} if "name" in value else {}
    problems, label = [], None
    try:
        label = _TargetName.model_validate(named).name
        reading.new("targets", label)
    except ValidationError as error:
        problems += problems_in(error)
    except ValueError as error:
        problems.append((("name",), str(error)))
    try:
        content = {k: v for k, v in value.items() if k != "name"}
        content, target = _built_target(content, reading.folder)
    except ValidationError as error:
        problems += problems_in(error)
    except _BadTargetError as error:
        problems.append(at_key(value, str(error)))
    if problems:
        fail(*problems)
    reading.targets[label] = target
    return label, content, target


class _TargetName(Keys):
    name: Label = Field(description="the label that results carry")


class _BadTargetError(Exception):
    """A target cannot be made from its parameters; the message says why."""


def _built_target(content, folder):
    """(content, object) of a target from the content of its file or of the sweep."""
    family, content = family_of("target", content, folder)
    keys = _target_keys(family).model_validate(content)
    content = keys.model_dump()
    if isinstance(keys, _DataSetKeys):
        return _built_data_set(content, keys.model_fields_set, folder)
    return _built_family(family, content, keys.model_fields_set)


def _built_data_set(content, given, folder):
    """The same of a data set, whose content has no more keys than are needed."""
    if "file" not in given:
        content = {k: v for k, v in content.items() if k not in ("file", "columns")}
        return _built_family(registry.find("target", content["family"]), content, given)
    texts = {k: content[k] for k in plugins.FREE_TEXT if content[k]}
    wanted = {k: content[k] for k in ("file", "columns") if k in given}
    wanted = {"family": from_file.FAMILY} | wanted  # whatever it was called, such as by its place
    try:
        content, target = from_file.read_target(wanted, folder)
    except DataFileError as error:
        fail(((error.key,), str(error)))
    return content | texts, target


def _built_family(family, content, given):
    try:
        target = build_target(content)
        dim = getattr(target, "dim", None)
    except (Exception, SystemExit) as error:  # a plug-in may raise any
        raise _BadTargetError(plugins.reason_of(error)) from None
    if not isinstance(dim, int) or dim < 1:
        raise _BadTargetError(f"{family.__name__} must have dim, a whole number of at least 1")
    content = storable(content, given)
    return {k: v for k, v in content.items() if k not in plugins.FREE_TEXT or v}, target


def _read_json(path):
    def unique(pairs):
        content = {}
        for key, value in pairs:
            if key in content:
                raise ValueError(f'key "{key}" is given twice')
            content[key] = value
        return content

    try:
        text = read_text(path, MOST_BYTES)
        content = json.loads(text, object_pairs_hook=unique)
        if "\\u" in text:  # may be half of a character, which cannot be written again
            json.dumps(content, ensure_ascii=False).encode()
    except json.JSONDecodeError as error:
        raise SweepError(
            f"{path} is not JSON: line {error.lineno}, column {error.colno}: {error.msg}"
        ) from None
    except OSError as error:
        raise SweepError(f"{path} cannot be read: {error.strerror}") from None
    except (ValueError, RecursionError) as error:
        raise SweepError(f"{path} cannot be read: {error}") from None
    if not isinstance(content, dict):
        raise SweepError(f"{path} must be one JSON object, not {shown(content)}")
    return content
