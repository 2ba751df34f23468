"""Plain values of a sweep file: labels, counts, positive numbers."""

import math
import re
from typing import Annotated

from pydantic import AfterValidator

from bqlib.sweep.words import quoted

MOST = 1_000_000_000  # of anything that is counted: far beyond what can run, and no trouble to plan


def checked_label(value):
    if not re.fullmatch("[a-z][a-z0-9_]*", value):
        raise ValueError(
            f"{quoted(value)} is no label: use lower-case letters, digits and _, a letter first"
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


Label = Annotated[str, AfterValidator(checked_label)]
Count = Annotated[int, AfterValidator(_count)]
Positive = Annotated[float, AfterValidator(_positive)]
