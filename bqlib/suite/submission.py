"""Submissions: points of anybody's method on the problems of the suite, read and checked.

All that is in a submission is data. It is opened without following links, measured, read once, and
nothing in it is run or becomes a path.
"""

import errno
import hashlib
import json
import os
import re
import stat
from bisect import bisect_right
from dataclasses import dataclass
from functools import cache
from itertools import accumulate, groupby
from pathlib import Path

import numpy as np

from bqlib.checks import checked_array
from bqlib.results.files import write_atomically
from bqlib.suite import about as about_file
from bqlib.suite import table
from bqlib.suite.about import ABOUT, About, checked_about, read_about
from bqlib.suite.mistakes import Mistakes, SubmissionError
from bqlib.suite.table import MOST_SEEDS, POINTS, columns_of_table, read_table
from bqlib.sweep.problems import problems as problems_of_suite


@dataclass(frozen=True, eq=False)
class Submission:
    """Points of a method on problems of the suite.

    Attributes
    ----------
    about : bqlib.suite.about.About
        The method.
    sets : dict
        Problem to seed to n to :class:`bqlib.suite.table.PointSet`, in the order of the suite and
        rising order of seeds and n. Of a sequence without weights of its own, the largest n alone.
    sha256 : dict of str to str
        Of each of the two files, by its name.
    """

    about: About
    sets: dict
    sha256: dict

    @property
    def seeds(self):
        """The largest number of seeds of any problem."""
        return max((len(seeds) for seeds in self.sets.values()), default=0)


def read_submission(folder):
    """Read and check a submission.

    Parameters
    ----------
    folder : path-like
        With the files ``submission.json`` and ``points.csv``; others are not looked at.

    Returns
    -------
    Submission
        Valid, but maybe without any points.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If there is no such folder.
    SubmissionError
        If it cannot be scored: the message tells by file and line what is wrong and what is
        allowed.

    Notes
    -----
    O(B) time and memory for B bytes: 200 MB take about 20 s and 0.7 GB.
    """
    mistakes = Mistakes()
    here = os.open(folder, os.O_RDONLY | os.O_DIRECTORY)
    try:
        data = {
            name: bytes_of(here, name, most, mistakes)
            for name, most in ((ABOUT, about_file.MOST_BYTES), (POINTS, table.MOST_BYTES))
        }
    finally:
        os.close(here)
    mistakes.refuse()
    return checked(data[ABOUT], data[POINTS])


def checked(of_about, of_points):
    """The submission in the bytes of its two files; raises as :func:`read_submission`."""
    mistakes = Mistakes()
    about = read_about(of_about, mistakes)
    if about is None:
        mistakes.refuse()
    suite = problems_of_suite()
    found = read_table(of_points, shapes_of_suite(), about.weights == "own", mistakes)
    if not mistakes.count:
        _check_order(found, about, mistakes)
        _check_domains(found, suite, mistakes)
    mistakes.refuse()
    sets = {name: {} for name in suite if any(key[0] == name for key in found)}
    for name, seed, n in sorted(found):
        sets[name].setdefault(seed, {})[n] = found[name, seed, n]
    names = {ABOUT: of_about, POINTS: of_points}
    sums = {name: hashlib.sha256(data).hexdigest() for name, data in names.items()}
    return Submission(about, sets, sums)


def write_submission(folder, about, sets):
    """Write points as a submission, once they have passed all checks of one.

    Parameters
    ----------
    folder : path-like
        It is made if it is missing.
    about : dict or About
        The content of ``submission.json``.
    sets : iterable of tuple
        ``(problem, seed, points)`` or, with weights of your own, ``(problem, seed, points,
        weights)``: name of a problem, whole number, array (n, d), array (n,).

    Returns
    -------
    Submission

    Raises
    ------
    FileExistsError
        If one of the two files is there already.
    SubmissionError
        If it could not be scored. Nothing is written then.
    TypeError
        If points or weights are no real numbers.

    Notes
    -----
    O(N d) time and memory for N points in all.

    Examples
    --------
    >>> import tempfile
    >>> import numpy as np
    >>> from bqlib.suite.submission import write_submission
    >>> about = {
    ...     "method": "midpoints", "version": "1", "authors": ["A. Author"], "citation": "",
    ...     "licence": "CC0-1.0", "code": "", "information": [], "suite": "bqbench-1",
    ...     "kind": "set", "weights": "uniform",
    ... }
    >>> points = (np.arange(16)[:, None] + 0.5) / 16
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     found = write_submission(folder, about, [("box_1d_brownian", 0, points)])
    >>> found.sets["box_1d_brownian"][0][16].points.shape
    (16, 1)
    """
    folder = Path(folder)
    there = [name for name in (ABOUT, POINTS) if os.path.lexists(folder / name)]
    if there:
        raise FileExistsError(
            errno.EEXIST, f"{there[0]} is there already: give another folder", str(folder)
        )
    mistakes = Mistakes()
    content = about.model_dump() if isinstance(about, About) else dict(about)
    content = {key: value for key, value in content.items() if value is not None}
    text = json.dumps(content, indent=1, ensure_ascii=False)
    if checked_about(content, mistakes, text) is None:
        mistakes.refuse()
    sets = list(sets)
    data = (text + "\n").encode(), table_of(sets, content["weights"] == "own").encode()
    try:
        submission = checked(*data)
    except SubmissionError as error:
        raise SubmissionError(*(_of_set(text, sets) for text in error.problems)) from None
    write_atomically(folder / ABOUT, data[0])
    write_atomically(folder / POINTS, data[1])
    return submission


def _of_set(problem, sets):
    """A message about a line of a table that was not written, with the point set of the line."""
    found = re.match(rf"{re.escape(POINTS)}:([0-9]+): ", problem)
    ends = accumulate((len(points) for _, _, points, *_ in sets), initial=2)
    at = bisect_right(list(ends), int(found[1])) - 1 if found else -1
    if not 0 <= at < len(sets):
        return problem
    name, seed, points, *_ = sets[at]
    return f"{problem} (problem {name}, seed {seed}, {len(points)} points)"


def table_of(sets, own, dim=1):
    """The text of ``points.csv`` with point sets as :func:`write_submission` takes them.

    `dim` is the least number of columns of coordinates.
    """
    rows = []
    for name, seed, points, *weights in sets:
        points = checked_array(points, f"the points of problem {name}, seed {seed}")
        if points.ndim != 2:
            raise ValueError(
                f"the points of problem {name}, seed {seed} have shape {points.shape}; they must "
                "have shape (n, d)"
            )
        own_name = f"the weights of problem {name}, seed {seed}"
        given = checked_array(weights[0], own_name) if weights else None
        if (given is not None) != own or (own and given.shape != points.shape[:1]):
            raise ValueError(
                f'problem {name}, seed {seed}: with weights "own", and only then, each set must '
                "have one weight for each point"
            )
        rows.append((name, seed, points, given))
        dim = max(dim, points.shape[1])
    lines = [",".join(columns_of_table(dim, own))]
    for name, seed, points, given in rows:
        blank = "," * (dim - points.shape[1])
        start = f"{name},{seed},{len(points)}"
        for i, point in enumerate(points.tolist()):
            end = f",{given[i].item()!r}" if own else ""
            lines.append(f"{start},{i + 1},{','.join(map(repr, point))}{blank}{end}")
    return "\n".join(lines) + "\n"


@cache
def shapes_of_suite():
    """Name of each problem of the suite to its dimension and its largest n."""
    suite = problems_of_suite().values()
    return {problem.name: (problem.build()[0].dim, problem.n) for problem in suite}


def bytes_of(here, name, most, mistakes):
    """The bytes of a file in an open folder; what is at the name is opened first, judged then."""
    flags = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
    try:
        file = os.open(name, flags, dir_fd=here)
    except OSError as error:
        told = {
            errno.ENOENT: "is missing",
            errno.ELOOP: "is a link: put the file itself there",
        }.get(error.errno, f"cannot be opened: {error.strerror}")
        mistakes.add(name, 0, told)
        return None
    try:
        found = os.fstat(file)
        if not stat.S_ISREG(found.st_mode):
            mistakes.add(name, 0, "is not a regular file")
        elif found.st_size > most:
            mistakes.add(name, 0, f"has {found.st_size:,} bytes; the limit is {most:,}")
        else:
            # Without a buffer, which would take as much memory again.
            with open(file, "rb", buffering=0, closefd=False) as opened:
                data = opened.read(found.st_size + 1)
            if len(data) == found.st_size:
                return data
            mistakes.add(name, 0, "changed while it was read: let nobody write to it")
    finally:
        os.close(file)
    return None


def _check_order(found, about, mistakes):
    """Check seeds and, of a sequence, that its sets are prefixes of the largest."""

    def wrong(line, text):
        mistakes.add(POINTS, line, text)

    by_seed = {}
    for (name, seed, n), points in found.items():
        by_seed.setdefault(name, {}).setdefault(seed, {})[n] = points
    for name, seeds in by_seed.items():
        missing = next(seed for seed in range(MOST_SEEDS + 1) if seed not in seeds)
        beyond = [seed for seed in seeds if seed > missing]
        if beyond:
            first = min(points.line for points in seeds[min(beyond)].values())
            wrong(first, f"problem {name} has seed {min(beyond)}, but no seed {missing}")
        if about.kind == "set":
            continue
        for seed, sets in seeds.items():
            largest = sets[max(sets)]
            for n, points in sets.items():
                if n == len(largest.points):
                    continue
                if about.weights != "own":
                    wrong(
                        points.line,
                        f"problem {name}, seed {seed} has n {n} and {max(sets)}: a sequence with "
                        f"{about.weights} weights lists its largest n alone, as each prefix is "
                        'scored; for sets of their own, say "set" in submission.json',
                    )
                    continue
                other = (points.points != largest.points[:n]).any(axis=1)
                if other.any():
                    i = int(other.argmax())
                    wrong(
                        points.line + i,
                        f"problem {name}, seed {seed}, n {n}: this is not point {i + 1} of n "
                        f"{max(sets)} (line {largest.line + i}), but the kind is a sequence; for "
                        'sets of their own, say "set" in submission.json',
                    )


def _check_domains(found, suite, mistakes):
    """Check that kernels are defined at all points."""
    for name, keys in groupby(sorted(found), key=lambda key: key[0]):
        _, kernel = suite[name].build()
        lower, upper = kernel.domain(shapes_of_suite()[name][0])
        for key in keys:
            points = found[key].points
            for i, k in np.argwhere((points < lower) | (points > upper)).tolist():
                mistakes.add(
                    POINTS,
                    found[key].line + i,
                    f"column x_{k + 1}: {points[i, k].item()!r} lies outside [{lower[k]:g}, "
                    f"{upper[k]:g}], where the kernel of problem {name} is defined",
                )
