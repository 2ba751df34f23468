"""The definition of an entry of an archive: its files, its problems and its scores."""

import json
import re
from typing import Annotated

from pydantic import AfterValidator, ValidationError, model_validator

import bqlib
from bqlib.results.damage import sha256_of
from bqlib.results.layout import CURVES, HEAD
from bqlib.suite.about import ABOUT, Version
from bqlib.suite.jsonfile import read_json
from bqlib.suite.table import POINTS
from bqlib.sweep.problems import SUITE
from bqlib.sweep.problems import problems as problems_of_suite
from bqlib.sweep.values import Count, Label
from bqlib.sweep.words import Keys, fail, problems_in, quoted

DEFINITION = "entry.json"
MOST_BYTES = 2**20
SCHEMA_VERSION = 1
SUBMITTED_FILES = (ABOUT, POINTS)
_FILE = re.compile(
    rf"{re.escape(ABOUT)}|{re.escape(POINTS)}|"
    rf"{re.escape(CURVES)}/([a-z0-9_]+/)?({re.escape(HEAD)}|c(\.[0-9]{{1,9}})*)"
)


def _matching(pattern, what):
    def check(value):
        if not re.fullmatch(pattern, value):
            raise ValueError(f"{quoted(value[:80])} is not {what}")
        return value

    return Annotated[str, AfterValidator(check)]


def _natural(value):
    if not 0 <= value <= 2**53:
        raise ValueError(f"must be a whole number from 0 on, not {value!r:.40}")
    return value


def _mmd(value):
    if value is not None and not 0 < value < float("inf"):
        raise ValueError(f"must be an MMD, or null if seeds have no n in common, not {value!r:.40}")
    return value


def _version_of_schema(value):
    if value != SCHEMA_VERSION:
        raise ValueError(f"is {value!r:.40}; this bqlib reads {SCHEMA_VERSION}")
    return value


def _suite(value):
    if value != SUITE:
        raise ValueError(f"is {quoted(value[:80])}, not {SUITE}")
    return value


def _both_submitted(value):
    lacking = [name for name in SUBMITTED_FILES if name not in value]
    if lacking:
        raise ValueError(f"lacks {' and '.join(lacking)}")
    return value


Sum = _matching("[0-9a-f]{64}", "a sha256")
Natural = Annotated[int, AfterValidator(_natural)]


class File(Keys):
    """What a file of an entry must be."""

    sha256: Sum
    bytes: Natural


class Scored(Keys):
    """A problem as it was scored, see :func:`bqlib.suite.scores.table_of_scores`."""

    version: Count
    sha256: Sum
    seeds: Count
    n: Count
    mmd: Annotated[float | None, AfterValidator(_mmd)]
    levels: Natural
    of_levels: Count

    @model_validator(mode="after")
    def _no_more_than_all(self):
        if self.levels > self.of_levels:
            fail((("levels",), f"must be at most of_levels = {self.of_levels}, not {self.levels}"))
        return self


class Definition(Keys):
    """The content of ``entry.json``.

    Attributes
    ----------
    schema_version : int
    suite, method, version : str
    bqlib_version : str
        Of the bqlib that scored the points.
    files : dict of str to File
        Path below the entry to sha256 and size.
    problems : dict of str to Scored
        Name of each problem that was entered to its version and sha256, and to the scores.
    """

    schema_version: Annotated[int, AfterValidator(_version_of_schema)]
    suite: Annotated[str, AfterValidator(_suite)]
    method: Label
    version: Version
    bqlib_version: _matching("[0-9A-Za-z.+!-]{1,64}", "a version of bqlib")
    files: Annotated[
        dict[_matching(_FILE, "a file of an entry"), File], AfterValidator(_both_submitted)
    ]
    problems: dict[Label, Scored]

    @property
    def name(self):
        """The name of the entry's folder."""
        return name_of(self)


def name_of(about):
    """Name of the folder of a method and version; as a label has no dash, no two share it."""
    return f"{about.method}-{about.version}"


def definition_of(about, files, scores):
    """The definition of an entry.

    Parameters
    ----------
    about : bqlib.suite.about.About
    files : dict of str to bytes
        Path below the entry to content.
    scores : list of dict
        As :func:`bqlib.suite.scores.table_of_scores` gives them.
    """
    suite = problems_of_suite()
    return Definition.model_validate(
        {
            "schema_version": SCHEMA_VERSION,
            "suite": about.suite,
            "method": about.method,
            "version": about.version,
            "bqlib_version": bqlib.__version__,
            "files": {
                path: {"sha256": sha256_of(data), "bytes": len(data)}
                for path, data in sorted(files.items())
            },
            "problems": {
                row["problem"]: {
                    "version": suite[row["problem"]].version,
                    "sha256": suite[row["problem"]].sha256,
                    **{key: row[key] for key in ("seeds", "n", "mmd", "levels", "of_levels")},
                }
                for row in scores
            },
        }
    )


def text_of(definition):
    """The text of ``entry.json``."""
    return json.dumps(definition.model_dump(), indent=1, allow_nan=False) + "\n"


def read_definition(data, mistakes):
    """The definition in the bytes of ``entry.json``; None with what is wrong in `mistakes`."""
    tree, _ = read_json(data, DEFINITION, mistakes)
    if tree is None:
        return None
    try:
        return Definition.model_validate(tree)
    except ValidationError as error:
        for loc, said in problems_in(error):
            place = ".".join(str(part)[:80] for part in loc)
            mistakes.add(DEFINITION, 0, f"{place}: {said}" if place else said)
        return None
