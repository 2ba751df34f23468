"""Values of f as people have them: arrays, or tables whose rows are matched by their index.

Tables are those of pandas, or what has the same attributes; this library does not import pandas.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bqlib.arrays import Array
from bqlib.checks import checked_array

REINDEX = (
    ". If runs failed and left no row, give them NaN: values.reindex(points.index), or "
    "values.reindex(range(n)) where points are an array"
)
MOST_LISTED = 10  # rows in a message


@dataclass(frozen=True, eq=False)
class Outputs:
    """The outputs of f at n points.

    Attributes
    ----------
    columns : ndarray, shape (m, n)
        A row for each output, in the order of the points.
    names : tuple of str
        Of the outputs: the columns of the table they came from, or empty texts.
    single : bool
        Whether they came as one output, with shape (n,) or (n, 1).
    """

    columns: Array
    names: tuple[str, ...]
    single: bool


def outputs_of(values: ArrayLike, points: ArrayLike, n: int, stop: str = "") -> Outputs:
    """Values of one output (n,) or of m outputs (n, m), one row for each of n points.

    Rows of a table are matched by their index with those of `points`, or with 0 to n - 1 if
    `points` is no table. A ValueError says what cannot be matched; `stop` tells it why there are
    only n points. Numbers may be NaN, as which None and the missing values of tables are read.
    """
    if callable(values):
        raise TypeError(
            "values is a function; it must be an array of the values of f: pass "
            "[f(x) for x in points]"
        )
    array = checked_array(values, "values of f", missing_as_nan=True)
    if array.ndim not in (1, 2) or len(array) != n or not array.size:
        raise ValueError(
            f"values of f have shape {array.shape}, but there are {n} points"
            f"{f' ({stop})' if stop else ''}, which need shape ({n},), or ({n}, m) for m outputs"
            f"{REINDEX if _is_table(values) else ''}"
        )
    order = order_of(values, points, n)
    columns = (array[:, None] if array.ndim == 1 else array)[order].T
    return Outputs(columns, _names(values, len(columns)), len(columns) == 1)


def order_of(values: Any, points: Any, n: int) -> Any:
    """Positions of the rows of `values`, if they are a table, in the order of the points."""
    if not _is_table(values):
        return slice(None)
    wanted = points.index.tolist() if _is_table(points) else list(range(n))
    given = values.index.tolist()
    if given == wanted:
        return slice(None)
    place = {label: row for row, label in enumerate(given)}
    of_points, mend = "that of the points", "Give both the same index"
    if not _is_table(points):
        of_points = f"0 to {n - 1}, the numbers of the points"
        mend = "Give each row the number of its point as index"
    advice = f"{mend}; or, if values are in the order of the points, pass values.to_numpy()"
    if len(place) < n or len(set(wanted)) < n:
        raise ValueError(
            "the index of the values, or of the points, has a label more than once, so that rows "
            f"cannot be matched. {advice}"
        )
    missing = [label for label in wanted if label not in place]
    if missing:
        raise ValueError(
            f"the index of the values is not {of_points}: {missing[0]!r} has no value"
            f"{f', nor have {len(missing) - 1} more' if missing[1:] else ''}. {advice}"
        )
    return [place[label] for label in wanted]


def labels_of(points: Any) -> Any:
    """Labels of the rows of a table, shape (n,), or None if points are no table."""
    return np.asarray(points.index) if _is_table(points) else None


def _is_table(object_: Any) -> bool:
    # Lists have an `index` too, which is a function, and labelled arrays may have a coordinate of
    # that name.
    return hasattr(object_, "to_numpy") and hasattr(getattr(object_, "index", None), "tolist")


def _names(values: Any, m: int) -> tuple[str, ...]:
    if hasattr(values, "columns"):
        return tuple(str(column) for column in values.columns)
    name = getattr(values, "name", None)
    return (str(name),) if m == 1 and name is not None else ("",) * m


def without_missing(
    outputs: Outputs, points: Array, missing: str
) -> tuple[Outputs, Array, tuple[int, ...]]:
    """Outputs and points without the points that have no value, and the rows of these.

    Parameters
    ----------
    outputs : Outputs
    points : ndarray, shape (n, d)
    missing : {"refuse", "drop"}
        "refuse": raise a ValueError if a value is NaN. "drop": leave out points where any output
        is NaN. An infinite value raises a ValueError in any case.
    """
    if missing not in ("refuse", "drop"):
        raise ValueError(f'missing is {missing!r}; it must be "refuse" or "drop"')
    bad = np.isnan(outputs.columns).any(axis=0)
    rows = tuple(np.flatnonzero(bad).tolist())
    infinite = np.flatnonzero(np.isinf(outputs.columns).any(axis=0)).tolist()
    problems = []
    if rows and missing == "refuse":
        problems.append(
            f"values of f are NaN at points {listed(rows)}, counted from 0: if these runs failed, "
            'leave the points out with missing="drop"'
        )
    if infinite:
        problems.append(
            f"values of f are infinite at points {listed(infinite)}, counted from 0; they must be "
            "finite: look at these runs, and where they failed set NaN"
        )
    if problems:
        raise ValueError("; ".join(problems))
    if not rows:
        return outputs, points, ()
    if bad.all():
        empty = [bool(np.isnan(column).all()) for column in outputs.columns]
        named = [repr(name) for name, none in zip(outputs.names, empty, strict=True) if none]
        which = f" of {', '.join(named)}" if any(empty) and len(empty) > 1 else ""
        raise ValueError(
            f"all values{which or ' of f'} are NaN; at least one must be a number"
            if any(empty) or len(empty) == 1
            else "each point has a value that is NaN, so that none is left; integrate the outputs "
            "one by one"
        )
    kept = Outputs(outputs.columns[:, ~bad], outputs.names, outputs.single)
    return kept, points[~bad], rows


def listed(rows: Sequence[int]) -> str:
    """The first rows, and how many more there are."""
    more = f" and {len(rows) - MOST_LISTED} more" if len(rows) > MOST_LISTED else ""
    return f"{list(rows[:MOST_LISTED])}{more}"
