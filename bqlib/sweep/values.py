"""Plain values of a sweep file: labels, counts, positive numbers."""

import math
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any

from pydantic import AfterValidator, WithJsonSchema
from pydantic.json_schema import GenerateJsonSchema

from bqlib.sweep.words import quoted

LARGEST_COUNT = 1_000_000_000  # far more than can run, but small enough to plan
_LABEL = "[a-z][a-z0-9_]*"
LONGEST_LABEL = 64  # it becomes the name of a folder
# Programs that read exported tables take these words for missing values, truth values or numbers.
NOT_LABELS = ("nan", "null", "na", "none", "true", "false", "inf", "infinity")


@dataclass(frozen=True)
class Described:
    """Beside a validator: the JSON Schema of what it takes, made only when it is asked for."""

    schema: Callable[[], dict[str, Any]]

    def __get_pydantic_json_schema__(self, *_):
        return self.schema()


class Untitled(GenerateJsonSchema):
    """JSON Schema without titles, which would repeat the names of the keys."""

    def field_title_should_be_set(self, _):
        return False


def checked_label(value):
    if not re.fullmatch(_LABEL, value):
        raise ValueError(
            f"{quoted(value)} is not a valid label: start with a letter, then use lower-case "
            "letters, digits and _"
        )
    if value in NOT_LABELS:
        raise ValueError(
            f"{quoted(value)} cannot be a label: programs that read an exported table take it for "
            f"a missing value, a truth value or a number. Choose another, such as {value}_1"
        )
    if len(value) > LONGEST_LABEL:
        raise ValueError(
            f"a label has at most {LONGEST_LABEL} characters, this one has {len(value)}"
        )
    return value


def _count(value):
    if value < 1:
        raise ValueError(f"must be at least 1, not {value}")
    if value > LARGEST_COUNT:
        raise ValueError(f"must be at most {LARGEST_COUNT}, not {value!r:.40}")
    return value


def _positive(value):
    if not (math.isfinite(value) and value > 0):
        raise ValueError(f"must be a finite positive number, not {value!r}")
    return value


Label = Annotated[
    str,
    AfterValidator(checked_label),
    WithJsonSchema(
        {
            "type": "string",
            "pattern": f"^{_LABEL}$",
            "maxLength": LONGEST_LABEL,
            "not": {"enum": list(NOT_LABELS)},
        }
    ),
]
Count = Annotated[
    int,
    AfterValidator(_count),
    WithJsonSchema({"type": "integer", "minimum": 1, "maximum": LARGEST_COUNT}),
]
Positive = Annotated[
    float, AfterValidator(_positive), WithJsonSchema({"type": "number", "exclusiveMinimum": 0})
]
