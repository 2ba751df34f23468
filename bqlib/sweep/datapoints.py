"""What all readers of data files share: limits, what is refused, and in which words."""

import errno
import math
import os
import stat
from collections import Counter
from difflib import get_close_matches

import numpy as np

from bqlib.samples import beside_parameters

MOST_BYTES = 2**31  # of a file, and of its points as float64
MOST_ROWS = 10_000_000
NO_NAMES = "has no names of columns: leave columns out, or save a table (.csv or .parquet)"


class DataFileError(ValueError):
    """A data file has no points to take; the message says why and what to do.

    Attributes
    ----------
    key : {"file", "columns"}
        Which key of a target is wrong.
    """

    def __init__(self, message, key="file"):
        super().__init__(message)
        self.key = key


def read_bytes(path, most=MOST_BYTES, flags=0):
    """The bytes of a regular file; whatever is at the path is opened first and judged then."""
    # Without waiting for whoever writes to a pipe.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK | flags), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "is not a regular file")
        if found.st_size > most:
            raise DataFileError(f"has more than {MOST_BYTES / 2**30:g} GiB, which is the limit")
        data = file.read(found.st_size + 1)
    if len(data) > found.st_size:
        raise DataFileError("grew while it was read: give a file that nobody writes to")
    return data


def refuse_size(shape, what="values"):
    """Refuse an array without points, or of too many, by its shape alone."""
    if min(shape) < 1:
        raise DataFileError(f"holds no {what}: its shape is {in_words(shape)}")
    rows = math.prod(shape[:-1]) if len(shape) > 1 else shape[0]
    if rows > MOST_ROWS:
        raise DataFileError(
            f"holds {rows} points, and the limit is {MOST_ROWS}: thin them, or take every tenth"
        )
    if 8 * math.prod(shape) > MOST_BYTES:
        raise DataFileError(
            f"holds {in_words(shape)} numbers, more than {MOST_BYTES / 2**30:g} GiB, which is the "
            "limit: thin the points"
        )


def in_words(shape):
    return f"({', '.join(map(str, shape))})"


def refuse_array(dtype, shape):
    """Refuse an array that is not one of points, by its type and shape alone."""
    if dtype.kind not in "fiu":
        raise DataFileError(f"holds an array of type {dtype}, and not of numbers")
    if not 1 <= len(shape) <= 3:
        raise DataFileError(
            f"holds an array of shape {in_words(shape)}; it must be (M, d), (M) for points on the "
            "line, or (chains, draws, d)"
        )
    refuse_size(shape)


def points_of(array):
    """Points from an array of one to three dimensions."""
    with np.errstate(over="ignore"):
        values = np.asarray(array, dtype=float)
    if not np.isfinite(values).all():
        where = tuple(np.argwhere(~np.isfinite(values))[0].tolist())
        raise DataFileError(f"holds {values[where]} at index {list(where)}: remove this point")
    return values.reshape(-1, values.shape[-1]) if values.ndim > 1 else values.reshape(-1, 1)


def chosen(names, columns, noun="column"):
    """The names that are taken of those that a table has."""
    counts = Counter(names)
    if columns is None:
        repeated = [name for name, count in counts.items() if count > 1]
        if repeated:
            raise DataFileError(f"has {noun} {quoted(repeated[0])} twice: rename one of them")
        if not names:
            raise DataFileError(f"has no {noun}s")
        if beside := beside_parameters(names):
            raise DataFileError(
                f"has the {noun}s {listed(beside)}, which are no parameters as samplers name them: "
                "name the coordinates with columns"
            )
        return list(names)
    for name in columns:
        if name not in counts:
            near = get_close_matches(name, names, n=1)
            hint = f"; did you mean {quoted(near[0])}?" if near else "."
            raise DataFileError(
                f"has no {noun} {quoted(name)}{hint} It has: {listed(names)}", "columns"
            )
        if counts[name] > 1:
            raise DataFileError(f"has {noun} {quoted(name)} twice: rename one of them", "columns")
    return list(columns)


def quoted(name):
    return f'"{name}"'


def listed(names):
    shown = [str(name) for name in names[:20]]
    return ", ".join(shown) + (f" and {len(names) - 20} more" if len(names) > 20 else "")


def refuse_not_finite(values, name):
    if not np.isfinite(values).all():
        row = int(np.argmin(np.isfinite(values)))
        found = "missing or NaN" if np.isnan(values[row]) else f"{values[row]}"
        raise DataFileError(
            f"column {quoted(name)}, row {row + 1}: is {found} (the first is row 1): remove this "
            "row"
        )
