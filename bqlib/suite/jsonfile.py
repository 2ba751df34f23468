"""JSON that others wrote, as data: no key twice, no constants that JSON lacks."""

import json
from typing import Any

from bqlib.sweep.words import shown


def read_json(data, file, mistakes):
    """What JSON says.

    Parameters
    ----------
    data : bytes
    file : str
        Its name in messages.
    mistakes : Mistakes
        What is wrong joins it.

    Returns
    -------
    tree : dict
        None if it is wrong.
    text : str
    """
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        mistakes.add(file, data[: error.start].count(b"\n") + 1, "is not text in UTF-8")
        return None, ""
    try:
        tree = json.loads(text, object_pairs_hook=_once, parse_constant=_refuse_constant)
    except json.JSONDecodeError as error:
        mistakes.add(file, error.lineno, f"column {error.colno}: is not JSON: {error.msg}")
        return None, text
    except (ValueError, RecursionError) as error:  # a number of thousands of digits, say
        told = "is nested too deeply" if isinstance(error, RecursionError) else str(error)
        mistakes.add(file, 1, told)
        return None, text
    if not isinstance(tree, dict):
        mistakes.add(file, 1, f"must be a mapping, such as {{key: value}}, not {shown(tree)}")
        return None, text
    return tree, text


def _once(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    found: dict[str, Any] = {}
    for key, value in pairs:
        if key != key.encode(errors="replace").decode():  # which no message can hold
            raise ValueError("a key has half of a character, a lone surrogate")
        if key in found:
            raise ValueError(f"{json.dumps(key)[:60]} is there twice")
        found[key] = value
    return found


def _refuse_constant(text):
    raise ValueError(f"{text} is no number of JSON")
