"""The messages of a sweep's errors: what is wrong, what is allowed, which name is close."""

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
        Each as ``path:line: message``; the error's text has one per line.
    """

    def __init__(self, *problems):
        super().__init__(*problems)
        self.problems = problems

    def __str__(self):
        return "\n".join(self.problems)


class Keys(BaseModel):
    """A mapping with known keys, whose problems get messages of our own."""

    model_config = ConfigDict(extra="forbid", strict=True, frozen=True)

    # Keys that belong elsewhere, each with its message.
    model_elsewhere: ClassVar[dict] = {}

    @model_validator(mode="wrap")
    @classmethod
    def _reword(cls, value, handler):
        try:
            return handler(value)
        except ValidationError as error:
            fail(*[(e["loc"], _message(e, cls)) for e in error.errors(include_url=False)])


def problems_in(error):
    """(location, message) of each problem that a model found."""
    return [
        (tuple(part for part in e["loc"] if part != "[key]"), e["ctx"]["message"])
        for e in error.errors(include_url=False)
    ]


def fail(*problems):
    """Raise all problems, each (location, message), as pydantic collects them."""
    # The message of a plug-in, or the path of a file, may contain characters that are not UTF-8.
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


def _message(error, model):
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
    """The message about a name that is not among those `allowed`."""
    near = get_close_matches(name.lower(), allowed, n=1)
    hint = f'; did you mean "{near[0]}"?' if near else "."
    return f"unknown {kind} {quoted(name)}{hint} Allowed: {', '.join(allowed) or 'none'}{also}"


def quoted(text):
    return json.dumps(text, ensure_ascii=False)


def shown(value):
    """A value as messages show it."""
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
    """(location, message) of a message that may start with a key of `content`."""
    key = message.partition(" ")[0]
    return (key,) if key in content else (), message or "an error without a message"
