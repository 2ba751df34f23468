"""The words of a sweep's errors: what is wrong, what is allowed, what is near."""

import json
from difflib import get_close_matches
from typing import ClassVar

from pydantic import BaseModel, ConfigDict, ValidationError, model_validator
from pydantic_core import InitErrorDetails, PydanticCustomError


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


class Keys(BaseModel):
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
            fail(*[(e["loc"], _words(e, cls)) for e in error.errors(include_url=False)])


def problems_in(error):
    """(location, message) of each problem that a model has reworded."""
    return [
        (tuple(part for part in e["loc"] if part != "[key]"), e["ctx"]["message"])
        for e in error.errors(include_url=False)
    ]


def fail(*problems):
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
        return model.model_elsewhere.get(key) or unknown("key", key, model.model_fields)
    if kind == "too_short":
        return "must not be empty"
    return f"must be {_EXPECTED[kind]}, not {shown(error['input'])}"


def unknown(kind, name, allowed, also=""):
    near = get_close_matches(name.lower(), allowed, n=1)
    hint = f'; did you mean "{near[0]}"?' if near else "."
    return f"unknown {kind} {quoted(name)}{hint} Allowed: {', '.join(allowed) or 'none'}{also}"


def quoted(text):
    return json.dumps(text, ensure_ascii=False)


def shown(value):
    if value is None:
        return "empty"
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, str):
        return f"the text {quoted(value)}"
    if isinstance(value, dict):
        return "a mapping"
    return "a list" if isinstance(value, list) else f"{value!r:.40}"


def at_key(content, message):
    """The message with its location: the key that it starts with, where it does."""
    key = message.partition(" ")[0]
    return (key,) if key in content else (), message or "an error without a message"
