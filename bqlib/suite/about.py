"""What a submission says of itself: the keys of ``submission.json``."""

import json
import re
from functools import cache
from typing import Annotated

from pydantic import AfterValidator, Field, ValidationError, field_validator

from bqlib.suite.jsonfile import read_json
from bqlib.sweep import registry, yamlfile
from bqlib.sweep.problems import SUITE
from bqlib.sweep.shipped import SUITE_SWEEP
from bqlib.sweep.values import Label, Positive
from bqlib.sweep.words import Keys, problems_in, quoted, unknown

ABOUT = "submission.json"
MOST_BYTES = 64 * 2**10
INFORMATION = ("z", "draws", "score", "pool")
NOBODY = "your name"  # in place of the authors, until they are filled in
KINDS = ("sequence", "set")
WEIGHTS = ("uniform", "bq", "own")
_VERSION = "[A-Za-z0-9][A-Za-z0-9._-]{0,31}"


def _word_of(kind, allowed):
    def check(value):
        if value not in allowed:
            raise ValueError(unknown(kind, value, allowed))
        return value

    return Annotated[str, AfterValidator(check)]


@cache
def _rules_of_suite():
    """Names of the rules that ``bqlib run suite`` compares."""
    rules = yamlfile.read(SUITE_SWEEP)[0]["algorithms"]
    return {rule if isinstance(rule, str) else rule["name"] for rule in rules}


def _method(value):
    if value in registry.ALGORITHMS or value in _rules_of_suite():
        raise ValueError(f"{quoted(value)} is an algorithm of bqlib: choose another label")
    return value


def _version(value):
    if not re.fullmatch(_VERSION, value):
        raise ValueError(
            f"{quoted(value[:40])} is not a valid version: use at most 32 letters, digits, ., _ "
            "and -, such as 1.0, with a letter or a digit first"
        )
    return value


def _text(value):
    for character in value:
        if not (character.isprintable() or character in "\n\t"):
            raise ValueError(f"must not have the character {character!a}, which is no text")
    return value


def _said(value):
    if not value.strip():
        raise ValueError("must not be empty")
    return value


def _each_once(values):
    if len(set(values)) < len(values):
        raise ValueError("names something twice")
    return values


Version = Annotated[str, AfterValidator(_version)]
Text = Annotated[str, AfterValidator(_text)]
Said = Annotated[Text, AfterValidator(_said)]


class About(Keys):
    """The keys of ``submission.json``.

    Attributes
    ----------
    method : str
        A label: the algorithm's name in results.
    version : str
        Of the method.
    authors : list of str
    citation, licence, code : str
        How to cite the method, the licence of the points, and where the method's code is.
    machine : str
        On which machine `seconds` were measured; empty if none were.
    seconds : float or None
        Processor seconds that all points took.
    information : list of {"z", "draws", "score", "pool"}
        What the method used of a problem, besides its kernel: the kernel mean, draws from the
        target, its score, the pool that bqlib's own rules get.
    suite : str
        The suite and its version.
    kind : {"sequence", "set"}
        Whether the first points are the design of a smaller n.
    weights : {"uniform", "bq", "own"}
        Whose weights are scored.
    """

    method: Annotated[Label, AfterValidator(_method)] = Field(
        description="a label: the name that results carry"
    )
    version: Version = Field(description='the version of the method, such as "1.0"')
    authors: Annotated[list[Said], AfterValidator(_each_once)] = Field(
        min_length=1, description="a list of names"
    )
    citation: Text = Field(description='how to cite the method, or ""')
    licence: Said = Field(description='the licence of the points, such as "CC-BY-4.0"')
    code: Text = Field(description='where the code of the method is, or ""')
    machine: Text = ""
    seconds: Positive | None = None
    information: Annotated[list[_word_of("information", INFORMATION)], AfterValidator(_each_once)]
    suite: _word_of("suite", (SUITE,)) = Field(description=f'the suite, "{SUITE}"')
    kind: _word_of("kind", KINDS) = Field(description='"sequence" or "set"')
    weights: _word_of("weights", WEIGHTS) = Field(description='"uniform", "bq" or "own"')

    @field_validator("weights")
    @classmethod
    def _as_the_label_says(cls, value, info):
        if value != "bq" and info.data.get("method", "").endswith("_bq"):
            raise ValueError(
                'must be "bq", as the label of the method ends in _bq: figures write it so'
            )
        return value


def read_about(data, mistakes=None):
    """The content of ``submission.json``, or None with what is wrong with it in `mistakes`.

    Parameters
    ----------
    data : bytes
    mistakes : Mistakes
    """
    tree, text = read_json(data, ABOUT, mistakes)
    return None if tree is None else checked_about(tree, mistakes, text)


def checked_about(tree, mistakes, text=""):
    """As :func:`read_about`, from what was read; `text` tells the lines of keys."""
    try:
        return About.model_validate(tree)
    except ValidationError as error:
        for loc, said in problems_in(error):
            place = ".".join(map(str, loc))
            mistakes.add(ABOUT, _line_of(loc, text), f"{place}: {said}" if place else said)
        return None


def _line_of(loc, text):
    """The line of the key at a location, 1 if there is none."""
    found = loc and re.search(rf"{re.escape(json.dumps(str(loc[0])))}\s*:", text)
    return text.count("\n", 0, found.start()) + 1 if found else 1
