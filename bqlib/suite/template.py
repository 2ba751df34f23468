"""An empty submission to fill in, with what a method may want to know of the problems."""

import errno
import json
import os
from pathlib import Path

from pydantic import ValidationError

from bqlib.streams import stream
from bqlib.suite.about import ABOUT, NOBODY, About
from bqlib.suite.submission import shapes_of_suite, table_of
from bqlib.suite.table import MOST_SEEDS, POINTS
from bqlib.sweep.problems import SUITE
from bqlib.sweep.problems import problems as problems_of_suite
from bqlib.sweep.words import problems_in

README, PROBLEMS, POOLS = "README.txt", "problems.json", "pools"
_README = """\
An empty submission to the suite {suite}. Fill in two files; bqlib reads no other.
{about}: who made the points and how. kind is "sequence" if the first points are the
  design of a smaller n, else "set". weights are "uniform" or "bq", which bqlib computes, or "own".
  information names what the method used: "z" (kernel mean), "draws", "score", "pool", or nothing.
{points}: a row for each point. problem, seed (0, 1, ...), n (points in the set), index (1 to n),
  x_1, x_2, ... (empty beyond the problem's own), and with weights "own" a last column weight.
  A sequence with uniform or bq weights lists its largest n; every prefix is scored.
{problems} has the problems: target, kernel, dimension and largest n. A Matern kernel is a
  product over coordinates, not a function of the distance.{pools}
To check and score it: bqlib score .     To leave problems or seeds out is allowed.
"""
_OF_POOLS = "\n{pools}/PROBLEM/SEED.csv are the pools from which bqlib's rules pick at each seed."


def write_template(folder, method, pools=False, seeds=5):
    """Write a valid submission without points: a file to fill in, and a table without rows.

    Parameters
    ----------
    folder : path-like
        It is made if it is missing.
    method : str
        A label, such as ``"kmeans"``.
    pools : bool
        Whether to write the pools that bqlib's own rules pick from: about 17 MB a seed.
    seeds : int
        Number of seeds that get pools: 0 to seeds - 1.

    Returns
    -------
    list of Path
        The files.

    Raises
    ------
    ValueError
        If `method` is not a label that a submission may have, or there are too many seeds.
    FileExistsError
        If one of the files is there already.
    OSError
        If a file cannot be written. No file of the template is left then.

    Notes
    -----
    O(M d) time for M points of all pools.

    Examples
    --------
    >>> import tempfile
    >>> from bqlib.suite.template import write_template
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     files = write_template(folder, "kmeans")
    >>> [file.name for file in files]
    ['README.txt', 'problems.json', 'submission.json', 'points.csv']
    """
    if not 1 <= seeds <= MOST_SEEDS:
        raise ValueError(f"seeds is {seeds}; it must be a whole number from 1 to {MOST_SEEDS}")
    about = {
        "method": method,
        "version": "1",
        "authors": [NOBODY],
        "citation": "",
        "licence": "CC-BY-4.0",
        "code": "",
        "information": ["pool"] if pools else [],
        "suite": SUITE,
        "kind": "sequence",
        "weights": "bq",
    }
    try:
        About.model_validate(about)
    except ValidationError as error:
        raise ValueError("; ".join(text for _, text in problems_in(error))) from None
    dim = max(dim for dim, _ in shapes_of_suite().values())
    names = {"suite": SUITE, "about": ABOUT, "points": POINTS, "problems": PROBLEMS}
    of_pools = _OF_POOLS.format(pools=POOLS) if pools else ""
    texts = {
        README: _README.format(**names, pools=of_pools),
        PROBLEMS: json.dumps(_definitions(), indent=1) + "\n",
        ABOUT: json.dumps(about, indent=1) + "\n",
        POINTS: table_of([], own=False, dim=dim),
    }
    folder = Path(folder)
    for name in [*texts, *([POOLS] if pools else [])]:
        if os.path.lexists(folder / name):
            raise FileExistsError(
                errno.EEXIST, f"has {name} already: give another folder", str(folder)
            )
    written = []
    try:
        for name, text in texts.items():
            written.append(_new_file(folder / name, text))
        for name in problems_of_suite() if pools else ():
            for seed in range(seeds):
                path = folder / POOLS / name / f"{seed}.csv"
                written.append(_new_file(path, _pool(name, seed)))
    except BaseException:  # a part of a template could not be told from a whole one
        for path in written:
            path.unlink()
        raise
    return written


def pool_of(problem, seed):
    """The pool that the rules of bqlib get on a problem at a seed.

    Parameters
    ----------
    problem : str
        A name.
    seed : int

    Returns
    -------
    ndarray, shape (M, d)

    Notes
    -----
    O(M d) time and memory.

    Examples
    --------
    >>> from bqlib.suite.template import pool_of
    >>> pool_of("normal_2d_eq", 0).shape
    (5000, 2)
    """
    found = problems_of_suite()[problem]
    target, _ = found.build()
    return found.candidates.draw(target, stream("candidates", seed))


def _definitions():
    """What a method may know of each problem, as JSON."""
    return {
        name: {
            "version": problem.version,
            "sha256": problem.sha256,
            "dim": shapes_of_suite()[name][0],
            "n": problem.n,
            "target": problem.target,
            "kernel": problem.kernel,
            "candidates": problem.settings()["candidates"],
        }
        for name, problem in problems_of_suite().items()
    }


def _pool(name, seed):
    points = pool_of(name, seed)
    head = ",".join(f"x_{k + 1}" for k in range(points.shape[1]))
    rows = (",".join(map(repr, point)) for point in points.tolist())
    return "\n".join([head, *rows]) + "\n"


def _new_file(path, text):
    path.parent.mkdir(parents=True, exist_ok=True)
    with open(path, "x", encoding="utf-8", newline="\n") as file:
        try:
            file.write(text)
            file.flush()
        except BaseException:
            path.unlink()
            raise
    return path
