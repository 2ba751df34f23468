"""Plain values of a sweep file: labels, counts, positive numbers."""

import math
import re
from typing import Annotated

from pydantic import AfterValidator

from bqlib.sweep.words import quoted

LARGEST_COUNT = 1_000_000_000  # far more than can run, but small enough to plan
# Programs that read exported tables take these words for missing values, truth values or numbers.
NOT_LABELS = ("nan", "null", "na", "none", "true", "false", "inf", "infinity")


def checked_label(value):
    if not re.fullmatch("[a-z][a-z0-9_]*", value):
        raise ValueError(
            f"{quoted(value)} is not a valid label: start with a letter, then use lower-case "
            "letters, digits and _"
        )
    if value in NOT_LABELS:
        raise ValueError(
            f"{quoted(value)} cannot be a label: programs that read an exported table take it for "
            f"a missing value, a truth value or a number. Choose another, such as {value}_1"
        )
    if len(value) > 64:  # it becomes the name of a folder
        raise ValueError(f"a label has at most 64 characters, this one has {len(value)}")
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


Label = Annotated[str, AfterValidator(checked_label)]
Count = Annotated[int, AfterValidator(_count)]
Positive = Annotated[float, AfterValidator(_positive)]
