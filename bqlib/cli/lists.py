"""Commands that list targets and algorithms."""

import inspect
import re
from pathlib import Path

from bqlib.cli.command import AS_JSON, BadNewsError, NoAnswerError, command, print_json


@command(
    (
        "--shelf",
        {"default": "config/targets", "help": "folder of named targets (default: config/targets)"},
    ),
    AS_JSON,
)
def _targets(shelf, as_json):
    """List the targets that a sweep may call by name.

    The exit code is 1 if a file among them is none.

    examples:
      bqlib targets
      bqlib targets --json
    """
    from bqlib.results.text import aligned
    from bqlib.sweep.plugins import without_folder
    from bqlib.sweep.targets import read_target

    files = sorted(Path(shelf).glob("*.json"))
    if not files:
        raise NoAnswerError(f"{shelf}: no targets are there; name their folder with --shelf")
    rows, bad = [], []
    for file in files:
        try:
            content, target = read_target(file)
        except ValueError as error:
            bad.append(str(error))
            continue
        family, about = without_folder(content["family"]), ("about", "source")
        rows.append(
            {"name": file.stem, "family": family, "dim": target.dim}
            | {key: content.get(key, "") for key in about}
        )
    if as_json:
        print_json(rows)
    elif rows:
        columns = ("name", "family", "dim")
        print(aligned([{key: row[key] for key in columns} for row in rows], ["dim"]))
        for row in rows:
            print(f"\n{row['name']}: {row['about']}\n  source: {row['source'] or 'not told'}")
    if bad:
        raise BadNewsError("\n".join(bad))
    return 0


@command(AS_JSON)
def _algorithms(as_json):
    """List the algorithms that a sweep may call by name.

    The cost is that of a design, and of weights for every number of points up to n; M is the number
    of candidates. A sweep may also join a design and weights of its own choice under a new name.

    examples:
      bqlib algorithms
      bqlib algorithms --json | jq -r .[].name
    """
    from bqlib.results.text import aligned
    from bqlib.sweep import registry

    rows = []
    for name, (design, weights) in registry.ALGORITHMS.items():
        made, weighed = registry.find("design", design), registry.find("weights", weights)
        cost = f"{_cost(made)} + {_cost(weighed)}"
        about = inspect.getdoc(made).splitlines()[0]
        rows.append(
            {"name": name, "design": design, "weights": weights, "cost": cost, "points": about}
        )
    if as_json:
        print_json(rows)
    else:
        print(aligned(rows))


def _cost(function):
    """What a docstring says of the time that a function takes."""
    said = " ".join(inspect.getdoc(function).split())
    return "".join(re.search(r"(O\([^()]*\)) time( a step|)", said).groups())
