"""The command line's parser, its output and its exit codes."""

import json
import sys
from contextlib import contextmanager
from pathlib import Path

# Exit codes: BAD_NEWS where the answer is no, NO_ANSWER where there is none.
BAD_NEWS, NO_ANSWER, INTERRUPTED, CLOSED_PIPE = 1, 2, 130, 141
ABOUT = """\
Helpers around sweeps: look at one before it runs, and at its results after. Sweeps themselves are
run by Snakemake: snakemake --profile profiles/local --configfile config/quick.yaml"""
EXIT_CODES = """\
exit codes:
  0  done, and all is well
  1  bad news: a sweep with errors, damaged results, an expectation that is not met
  2  no answer: a wrong command line, or a file that is not there or cannot be read or written"""


class BadNewsError(Exception):
    """The answer is no; the message says why."""


class NoAnswerError(Exception):
    """What was asked for cannot be told; the message says why and what to do."""


COMMANDS = {}
SWEEP = ("sweep", {"help": "the YAML file"})
SHELF = ("--shelf", {"help": "folder of named targets (default: targets/ beside the sweep)"})
RESULTS = ("results", {"help": "the experiment's folder, such as results/quick"})
AS_JSON = ("--json", {"action": "store_true", "dest": "as_json", "help": "print JSON"})


def command(*arguments):
    """Decorator: makes ``_a_name`` the command ``a-name``, with its docstring as the help."""

    def register(function):
        COMMANDS[function.__name__.strip("_").replace("_", "-")] = (function, arguments)
        return function

    return register


def loaded(sweep, shelf):
    """The experiment of a sweep file; a BadNewsError has the SweepError for its cause."""
    from bqlib.sweep.file import load
    from bqlib.sweep.words import SweepError

    if not Path(sweep).is_file():
        found = [*sorted(Path("config").glob("*.yaml")), *sorted(Path().glob("[!.]*.yaml"))]
        others = f"; sweeps here: {', '.join(map(str, found))}" if found else ""
        what = "a folder, and no sweep file" if Path(sweep).is_dir() else "no such file"
        raise NoAnswerError(f"{sweep}: {what}{others}")
    try:
        return load(sweep, shelf)
    except SweepError as error:
        raise BadNewsError(error) from error


@contextmanager
def reading(what, *results):
    """Around what reads results: tells what it raises where they are damaged.

    Any byte may be another, and then what reads it may raise anything.
    """
    from bqlib.results.merge import MergeError
    from bqlib.schema import SchemaError

    try:
        yield
    except (SchemaError, MergeError, ImportError) as error:  # these say what to do
        raise NoAnswerError(error) from None
    except OSError as error:
        if error.errno is not None:  # of the system, which main tells
            raise
        raise NoAnswerError(error) from None
    except Exception as error:
        checks = " or ".join(f"bqlib check {path}" for path in results)
        why = " ".join(str(error).split())
        raise NoAnswerError(
            f"{what} cannot be read ({type(error).__name__}: {why:.200}); to be told what is "
            f"damaged: {checks}"
        ) from error


def print_json(content):
    print(json_text(content))


def json_text(content):
    # Elsewhere escapes would be those of Python, which JSON has not.
    utf8 = (sys.stdout.encoding or "").lower() in ("utf-8", "utf8")
    return json.dumps(content, indent=1, ensure_ascii=not utf8, allow_nan=False)


def counted(count, noun):
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


def no_results(path):
    found = sorted(str(place.parent) for place in Path("results").glob("*/pieces"))
    if not Path(path).exists():
        what = f"{path}: no such folder"
    else:
        what = f"{path}: no results are there yet"
    return what + (f"; results here: {', '.join(found)}" if found else "")
