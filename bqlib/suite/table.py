"""The table of a submission: ``points.csv`` as point sets, or what is wrong with it by row.

The table is plain: commas, ASCII, no quotes. So a row is a line, and each is read on its own.
"""

import codecs
import io
import re
from dataclasses import dataclass
from difflib import get_close_matches

import numpy as np

from bqlib.arrays import Array
from bqlib.checks import LONGEST

POINTS = "points.csv"
MOST_BYTES = 200 * 10**6
MOST_ROWS = 3_000_000
MOST_NUMBERS = 30_000_000  # coordinates and weights, which are kept in memory
MOST_SEEDS = 100
LONGEST_ROW, LONGEST_CELL = 4096, 64  # bytes
HEAD = ("problem", "seed", "n", "index")
_COUNT = re.compile(rb"0|[1-9][0-9]{0,8}")
_NUMBER_TEXT = rb"[+-]?(?:[0-9]+(?:\.[0-9]*)?|\.[0-9]+)(?:[eE][+-]?[0-9]+)?"
_NUMBER = re.compile(_NUMBER_TEXT)


@dataclass(frozen=True, eq=False)
class PointSet:
    """The points of one problem, seed and n.

    Attributes
    ----------
    points : ndarray, shape (n, d)
    weights : ndarray, shape (n,), or None
        None where the weights are a rule of bqlib.
    line : int
        The line of its first point in the table.
    """

    points: Array
    weights: Array | None
    line: int = 0


def read_table(data, shapes, own, mistakes):
    """The point sets in a table.

    Parameters
    ----------
    data : bytes
    shapes : dict of str to (int, int)
        Name of each problem to its dimension and its largest n.
    own : bool
        Whether the table has weights.
    mistakes : Mistakes
        What is wrong joins it.

    Returns
    -------
    dict of (str, int, int) to PointSet
        By problem, seed and n. Sets with mistakes are left out.
    """
    data = data.removeprefix(codecs.BOM_UTF8)
    if data.count(b"\n") > MOST_ROWS + 1:
        mistakes.add(POINTS, 0, f"has more than {MOST_ROWS:,} rows, which is the limit")
        return {}
    stream = io.BytesIO(data)  # which shares the bytes
    columns = _columns_of(stream.readline(LONGEST_ROW + 1), shapes, own, mistakes)
    if columns is None:
        return {}
    reader = _Reader(shapes, columns, own, mistakes)
    for number, line in enumerate(stream, start=2):
        reader.take(number, line)
        if reader.numbers > MOST_NUMBERS:
            mistakes.add(POINTS, number, f"has more than {MOST_NUMBERS:,} numbers up to here")
            return {}
    reader.close()
    return reader.sets


def columns_of_table(dim, own):
    """The names of the columns of a table whose points have at most `dim` coordinates."""
    return [*HEAD, *(f"x_{k}" for k in range(1, dim + 1)), *(["weight"] if own else [])]


def _columns_of(line, shapes, own, mistakes):
    """Number of the coordinates' columns, or None if the first row is wrong."""

    def wrong(text):
        mistakes.add(POINTS, 1, text)

    allowed = f"the columns must be {', '.join(HEAD)}, x_1, x_2, ..."
    allowed += ", weight, in this order" if own else ", in this order"
    if not line.strip():
        return wrong(f"is empty: {allowed}")
    if len(line) > LONGEST_ROW:
        return wrong(f"is longer than {LONGEST_ROW} bytes: {allowed}")
    if b'"' in line:
        return wrong("has quotes: write the table without them")
    if line.startswith((b"\xff\xfe", b"\xfe\xff")):
        return wrong("is UTF-16: write the table as ASCII or UTF-8")
    if b"," not in line and (b";" in line or b"\t" in line):
        return wrong("has semicolons or tabs between its cells: use commas")
    if b"\r" in line.rstrip(b"\r\n"):
        return wrong("has lines that end in CR alone: end them in LF or CRLF")
    names = [_shown(cell) for cell in _cells(line)]
    repeated = [name for i, name in enumerate(names) if name in names[:i]]
    if repeated:
        return wrong(f"has the column {repeated[0]} twice: {allowed}")
    if not own and '"weight"' in names:
        return wrong(
            'has the column "weight", but the weights are ours: leave it out, or say "own"'
        )
    most = max(dim for dim, _ in shapes.values())
    dim = len(names) - len(HEAD) - own
    if dim > most:
        return wrong(f"has {len(names)} columns, but no problem has more than {most} coordinates")
    expected = [_shown(name.encode()) for name in columns_of_table(max(dim, 1), own)]
    if names != expected:
        pairs = zip(names, expected, strict=False)
        at = next((i for i, (name, other) in enumerate(pairs) if name != other), None)
        found = f"column {at + 1} is {names[at]}" if at is not None else f"ends at {names[-1]}"
        without = columns_of_table(len(names) - len(HEAD), own=False)
        if own and names == [_shown(name.encode()) for name in without]:
            found = 'has no last column "weight", but the weights are your own'
        return wrong(f"{found}: {allowed}")
    return dim


class _Reader:
    """Reads a table row by row.

    The rows of a set follow one another, so only one set is open at any time.
    """

    def __init__(self, shapes, columns, own, mistakes):
        self.shapes, self.columns, self.own, self.mistakes = shapes, columns, own, mistakes
        self.numbers = 0  # that are kept
        self.sets, self.started = {}, {}  # started: the line of each set that began, right or wrong
        self._patterns = {
            dim: re.compile(rb",".join([_NUMBER_TEXT] * dim)) for dim, _ in shapes.values()
        }
        # Of the set that is open: its cells and what they mean, its rows, the next index.
        self._named, self._key, self._rows, self._next = None, None, [], 1
        self._line, self._end, self._broken = 0, 0, False

    def take(self, number, line):
        """Take in a row."""
        before = self.mistakes.count
        cells = self._cells_of(number, line)
        if cells is None:
            self._next, self._broken = self._next + 1, True
            return
        if cells[:3] != self._named:
            self.close()
            self._named, self._key = cells[:3], self._begun(number, cells)
            self._rows, self._next, self._line, self._broken = [], 1, number, False
        if self._key is None:  # which is told once
            return
        self._end = number
        self._index(number, cells[3])
        values = self._values(number, cells)
        if self.mistakes.count > before:
            self._broken = True
        else:
            self._rows.append(values)

    def close(self):
        """End the set that is open: it must be whole."""
        if self._key is None or self._broken:
            return
        problem, seed, n = self._key
        if self._next <= n:
            self._wrong(
                self._end,
                f"problem {problem}, seed {seed}, n {n} ends after {self._next - 1} of {n} rows",
            )
            return
        rows = np.array(self._rows)
        if self._too_large(rows) or self.mistakes.count:
            return
        self.numbers += rows.size
        dim = self.shapes[problem][0]
        weights = rows[:, dim].copy() if self.own else None
        self.sets[self._key] = PointSet(rows[:, :dim].copy(), weights, self._line)

    def _wrong(self, number, text):
        self.mistakes.add(POINTS, number, text)

    def _cells_of(self, number, line):
        """The cells of a row, or None if it has not the right form."""
        if len(line) > LONGEST_ROW:
            return self._wrong(number, f"is longer than {LONGEST_ROW} bytes")
        cells = _cells(line)
        count = len(HEAD) + self.columns + self.own
        if cells == [b""]:
            return self._wrong(number, "is blank: remove this line")
        if b'"' in line:
            return self._wrong(number, "has quotes: write the table without them")
        if len(cells) != count:
            told = f"has {len(cells)} cells, but the table has {count} columns"
            comma = "; numbers have a decimal point, and cells no commas" * (len(cells) > count)
            return self._wrong(number, told + comma)
        return cells

    def _begun(self, number, cells):
        """Problem, seed and n of the set that begins with a row, or None if they are wrong."""
        name = cells[0].decode("ascii", "replace")
        if name not in self.shapes:
            told = f"column problem: {_shown(cells[0])} is no problem of the suite"
            bare = name.partition("@")[0]
            near = [bare] if bare in self.shapes else get_close_matches(name[:64], self.shapes, 1)
            self._wrong(
                number,
                f'{told}; did you mean "{near[0]}"?'
                if near
                else f"{told}: bqlib submission-template writes a list of them",
            )
            return None
        seed = self._count(number, "seed", cells[1], 0, MOST_SEEDS - 1)
        n = self._count(number, "n", cells[2], 1, self.shapes[name][1])
        if seed is None or n is None:
            return None
        key = name, seed, n
        if key in self.started:
            self._wrong(
                number,
                f"problem {name}, seed {seed}, n {n} began at line {self.started[key]}: its rows "
                "must follow one another, and each must be there once",
            )
            return None
        self.started[key] = number
        return key

    def _index(self, number, cell):
        n = self._key[2]
        if cell != b"%d" % self._next or self._next > n:
            index = self._count(number, "index", cell, 1, n)
            if index is None:
                self._next += 1
                return
            follows = f"{self._next} must follow" if self._next <= n else "the set is whole"
            self._wrong(number, f"column index: is {index}, but {follows}")
            self._next = index
        self._next += 1

    def _count(self, number, column, cell, least, most):
        """A whole number in a cell, or None with what is wrong."""
        if _COUNT.fullmatch(cell):
            value = int(cell)
            if least <= value <= most:
                return value
        self._wrong(
            number,
            f"column {column}: {_shown(cell)} is not allowed; it must be a whole number from "
            f"{least} to {most}",
        )
        return None

    def _values(self, number, cells):
        """Coordinates and weight of a row, or None with what is wrong."""
        dim = self.shapes[self._key[0]][0]
        start, end = len(HEAD), len(HEAD) + dim
        if dim > self.columns:
            self._wrong(
                number,
                f"problem {self._key[0]} has {dim} coordinates, but the table has columns for "
                f"{self.columns}",
            )
            return None
        beyond = cells[end : len(HEAD) + self.columns]
        if any(beyond):
            at = next(k for k, cell in enumerate(beyond) if cell)
            self._wrong(
                number,
                f"column x_{dim + at + 1}: {_shown(beyond[at])} must be empty, as problem "
                f"{self._key[0]} has {dim} coordinates",
            )
            return None
        numbers = cells[start:end] + (cells[-1:] if self.own else [])
        joined = b",".join(cells[start:end])
        right = self._patterns[dim].fullmatch(joined) and max(map(len, numbers)) <= LONGEST_CELL
        if right and (not self.own or _NUMBER.fullmatch(cells[-1])):
            return list(map(float, numbers))
        for k, cell in enumerate(numbers):
            if _NUMBER.fullmatch(cell) and len(cell) <= LONGEST_CELL:
                continue
            if self.mistakes.full:  # in a large table this saves half of the time
                self.mistakes.count += 1
            else:
                self._wrong(number, f"column {self._name(k, dim)}: {_no_number(cell)}")
        return None

    def _name(self, k, dim):
        return f"x_{k + 1}" if k < dim else "weight"

    def _too_large(self, rows):
        """Whether a set has numbers that are too large; each is told."""
        wrong = np.argwhere(~(np.abs(rows) <= LONGEST))
        dim = self.shapes[self._key[0]][0]
        for i, k in wrong.tolist():
            self._wrong(
                self._line + i,
                f"column {self._name(k, dim)}: is {rows[i, k]:g}; it must lie between -1e50 and "
                "1e50",
            )
        return len(wrong)


def _cells(line):
    return line.removesuffix(b"\n").removesuffix(b"\r").split(b",")


def _no_number(cell):
    if not cell:
        return "is empty; it must be a number"
    if len(cell) > LONGEST_CELL:
        return f"{_shown(cell)}... has more than {LONGEST_CELL} characters"
    return f"{_shown(cell)} is not a number such as 0.25, -3 or 1e-5"


def _shown(cell):
    """A cell in quotes, with escapes for all but plain characters."""
    text = cell[:40].decode("latin-1").encode("unicode_escape").decode("ascii")
    return f'"{text}"'
