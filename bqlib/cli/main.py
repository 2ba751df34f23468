"""The command line's parser, and how a command's outcome becomes output and an exit code."""

import argparse
import os
import shutil
import signal
import sys
import textwrap
from contextlib import suppress
from functools import partial

from bqlib.cli import archive, lists, results, running, suite, sweeps
from bqlib.cli.command import (
    CLOSED_PIPE,
    INTERRUPTED,
    NO_ANSWER,
    PROBLEM,
    NoAnswerError,
    ProblemError,
    without,
)

COMMANDS = (
    *running.COMMANDS,
    *sweeps.COMMANDS,
    *lists.COMMANDS,
    *results.COMMANDS,
    *suite.COMMANDS,
    *archive.COMMANDS,
)  # in the order of the help
ABOUT = """\
Runs sweeps of point-selection rules through Snakemake, and helps before and
after them."""
EXIT_CODES = """\
exit codes:
  0    the command succeeded and found no problem
  1    the command found a problem: errors in a sweep, damaged results,
       failed or missing trials, a failed check
  2    the command could not answer: a wrong command line, or a file that does
       not exist or cannot be read or written
  3    a run is complete, but some trials failed
  130  interrupted by Ctrl-C; by another signal: 128 and its number
  141  the program that reads the output closed the pipe"""


def main(arguments=None):
    """Run one command; return its exit code."""
    _open_outputs()
    if arguments is None:
        _end_in_order()
    try:
        try:
            return _answer(arguments)
        finally:  # also after SystemExit, which the parser raises for --help
            sys.stdout.flush()
            sys.stderr.flush()
    except BrokenPipeError:  # the reader closed the pipe, as `head` does
        return CLOSED_PIPE
    except OSError as error:  # an error without a file name comes from writing the output
        with suppress(OSError):
            why = error.strerror or error
            print(f"bqlib: {error.filename or 'the output'}: {why}", file=sys.stderr)
        return NO_ANSWER
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        _drop_what_cannot_be_written()


def _end_in_order():
    """Have signals that end the process raise SystemExit, so that no part of a file is left."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) == signal.SIG_DFL:  # not so under nohup
            signal.signal(number, lambda number, _: sys.exit(128 + number))


def _answer(arguments):
    words = sys.argv[1:] if arguments is None else list(arguments)
    chosen = _chosen(words)
    run = chosen.pop("run")
    try:
        if "" in words:  # as of an unset variable of a shell; a folder it would be the working one
            raise NoAnswerError("an argument is empty: give it a value, or leave it out")
        return run(**chosen) or 0
    except ProblemError as error:
        print(error, file=sys.stderr)
        return PROBLEM
    except NoAnswerError as error:
        print(f"bqlib: {error}", file=sys.stderr)
        return NO_ANSWER
    except ModuleNotFoundError as error:
        if (error.name or "bqlib").partition(".")[0] == "bqlib":
            raise
        print(f"bqlib: {without(error.name)}", file=sys.stderr)
        return NO_ANSWER
    except ValueError as error:
        if "dask config file" not in str(error):  # which Dask raises as it is loaded
            raise
        print(f"bqlib: {' '.join(str(error).split())}: mend or remove it", file=sys.stderr)
        return NO_ANSWER


def _chosen(words):
    """What a command line chooses, by name; `others` are the words that it leaves for Snakemake."""
    if not any(words[:1] == [command.name] and command.passes_on for command in COMMANDS):
        return vars(parser().parse_args(words))
    # The sweep comes before Snakemake's arguments, whose values are words like any other.
    named = words[1:] and (not words[1].startswith("-") or words[1] in ("-h", "--help"))
    found, others = parser().parse_known_args(words if named else [words[0], "", *words[1:]])
    chosen = vars(found)
    if not named:
        chosen["sweep"] = others.pop(0) if others and running.is_yaml(others[0]) else None
    return chosen | {"others": others}


def _open_outputs():
    """Escape characters that the output cannot encode, and replace outputs that are closed."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")


def _drop_what_cannot_be_written():
    """Keep Python's own flush at exit from reporting the same error again."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def parser():
    """The parser of the whole command line; what it parses has the command's function as `run`."""
    # argparse's own width, which it cannot take below three columns.
    width = max(shutil.get_terminal_size().columns - 2, 20)
    form = {"formatter_class": partial(argparse.RawDescriptionHelpFormatter, width=width)}
    parser = argparse.ArgumentParser("bqlib", description=ABOUT, epilog=EXIT_CODES, **form)
    version = {"action": _Version, "nargs": 0, "dest": argparse.SUPPRESS}
    parser.add_argument("--version", **version, help="print the version and exit")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for command in COMMANDS:
        sub = commands.add_parser(
            command.name,
            help=command.summary,
            description=textwrap.fill(command.about, width),
            epilog="examples:\n" + "\n".join(f"  {example}" for example in command.examples),
            allow_abbrev=not command.passes_on,
            **form,
        )
        for argument, keywords in command.arguments:
            sub.add_argument(argument, **keywords)
        sub.set_defaults(run=command.run)
    return parser


class _Version(argparse.Action):
    def __call__(self, parser, *_):
        from bqlib import __version__  # 0.05 s

        print(f"bqlib {__version__}")
        parser.exit()
