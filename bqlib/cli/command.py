"""What the commands share: the record of a command, how it fails, and how it prints.

Slow modules are imported inside the functions that need them, so that ``bqlib --help`` takes 0.1 s.
The comment beside each import gives its time, which ``python -X importtime`` prints.
"""

import json
import sys
from collections.abc import Callable
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bqlib.results.layout import PIECES, RESULTS
from bqlib.running.settings import sweep_file

# Exit codes other than 0; main.EXIT_CODES explains them to users.
PROBLEM, NO_ANSWER, INTERRUPTED, CLOSED_PIPE = 1, 2, 130, 141


@dataclass(frozen=True)
class Command:
    """A command of ``bqlib``.

    Attributes
    ----------
    name : str
    run : callable
        Takes what `arguments` name, prints the answer, and returns the exit code (None is 0).
    summary : str
        What the command does, for the list of commands.
    about : str
        What the command does, for its own help.
    examples : tuple of str
    arguments : tuple of (str, dict)
        Each for ``argparse.ArgumentParser.add_argument``.
    passes_on : bool
        Whether `run` takes the other words of the command line, for Snakemake, as `others`.
    """

    name: str
    run: Callable
    summary: str
    about: str
    examples: tuple[str, ...]
    arguments: tuple[tuple[str, dict], ...]
    passes_on: bool = False


SWEEP_FILE = (
    "sweep",
    {
        "nargs": "?",
        "help": "the sweep file, or the name of one in config/ (default: config)",
    },
)
SHELF = (
    "--shelf",
    {"help": "folder of named targets (default: targets/ beside the sweep file, or bqlib's)"},
)
RESULTS_FOLDER = ("results", {"help": "the folder of results, such as results/quick"})
AS_JSON = ("--json", {"action": "store_true", "dest": "as_json", "help": "print JSON"})


class ProblemError(Exception):
    """The command found a problem; the message names it."""


class NoAnswerError(Exception):
    """The command cannot answer; the message says why and what to do."""


def existing(sweep):
    """The path of a sweep file that is there."""
    sweep = sweep_file(sweep)
    if not sweep.is_file():
        found = [*sorted(Path("config").glob("*.yaml")), *sorted(Path().glob("[!.]*.yaml"))]
        others = f"; sweeps here: {', '.join(map(str, found))}" if found else ""
        raise NoAnswerError(no_file(sweep, "a sweep file") + others)
    return sweep


def loaded(sweep, shelf):
    """The experiment of a sweep file. A ProblemError has the SweepError as its cause."""
    from bqlib.sweep.file import load  # 1.0 s
    from bqlib.sweep.words import SweepError  # 0.2 s

    sweep = existing(sweep)
    try:
        return load(sweep, shelf)
    except SweepError as error:
        raise ProblemError(error) from error


@contextmanager
def reading(what, *results):
    """Report in one line whatever is raised by reading damaged results.

    Any byte can be damaged, so that any exception can be raised.
    """
    from bqlib.results.damage import DamagedError  # 10 ms, and other commands do without
    from bqlib.results.merge import MergeError  # 1.3 s
    from bqlib.schema import SchemaError  # 0.2 s

    try:
        yield
    except (
        DamagedError,
        SchemaError,
        MergeError,
        ImportError,
    ) as error:  # their messages say what to do
        raise NoAnswerError(error) from None
    except OSError as error:
        if error.errno is not None:  # from the operating system: main reports it
            raise
        raise NoAnswerError(error) from None
    except Exception as error:
        checks = " and ".join(f"bqlib check {path}" for path in results)
        why = " ".join(str(error).split())
        raise NoAnswerError(
            f"{what} cannot be read ({type(error).__name__}: {why:.200}); to see what is "
            f"damaged, run: {checks}"
        ) from error


def print_json(content):
    """Print data as JSON."""
    print(json_text(content))


def json_text(content):
    """Data as JSON that the output can encode."""
    # Otherwise the output would replace characters by Python's escapes, which are not valid JSON.
    utf8 = (sys.stdout.encoding or "").lower() in ("utf-8", "utf8")
    return json.dumps(content, indent=1, ensure_ascii=not utf8, allow_nan=False)


def counted(count, noun):
    """A number with its noun, such as "1 file" and "2 files"."""
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def without(package):
    """Message about a command that needs a package which is not installed."""
    return (
        f"this needs {package}, which is not installed: pip install 'bqlib[workflow]', or "
        "'bqlib[workflow,cluster]' for a batch system"
    )


def no_file(path, wanted):
    """Message about a path that is not a file; `wanted` is "a sweep file", for example."""
    return f"{path}: a folder, not {wanted}" if Path(path).is_dir() else f"{path}: no such file"


def no_results(path):
    """Message about a path that holds no results."""
    found = sorted(str(place.parent) for place in RESULTS.glob(f"*/{PIECES}"))
    path = Path(path)
    missing = "no results are there yet" if path.exists() else "no such folder"
    what = "a file, not a folder of results" if path.is_file() else missing
    return f"{path}: {what}" + (f"; results here: {', '.join(found)}" if found else "")
