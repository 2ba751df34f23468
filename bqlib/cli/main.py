"""The command line's parser, and how a command's outcome becomes output and an exit code."""

import argparse
import inspect
import os
import sys
from contextlib import suppress

from bqlib.cli import lists, results, sweeps  # noqa: F401, as they register their commands
from bqlib.cli.command import (
    ABOUT,
    BAD_NEWS,
    CLOSED_PIPE,
    COMMANDS,
    EXIT_CODES,
    INTERRUPTED,
    NO_ANSWER,
    BadNewsError,
    NoAnswerError,
)


def main(arguments=None):
    """Run one command; return its exit code."""
    _open_outputs()
    try:
        try:
            return _answer(arguments)
        finally:  # also where the parser has ended it, as --help does
            sys.stdout.flush()
            sys.stderr.flush()
    except BrokenPipeError:  # the reader has seen enough, as `head` has
        return CLOSED_PIPE
    except OSError as error:  # without the name of a file it is that of the output
        with suppress(OSError):
            why = error.strerror or error
            print(f"bqlib: {error.filename or 'the answer'}: {why}", file=sys.stderr)
        return NO_ANSWER
    except KeyboardInterrupt:
        return INTERRUPTED
    finally:
        _drop_what_cannot_be_written()


def _answer(arguments):
    chosen = vars(parser().parse_args(arguments))
    run = chosen.pop("run")
    try:
        return run(**chosen) or 0
    except BadNewsError as error:
        print(error, file=sys.stderr)
        return BAD_NEWS
    except NoAnswerError as error:
        print(f"bqlib: {error}", file=sys.stderr)
        return NO_ANSWER


def _open_outputs():
    """Let output be written whatever letters it has, and be lost where the user closed it."""
    for name in ("stdout", "stderr"):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, "w", encoding="utf-8"))  # noqa: SIM115
    if hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")


def _drop_what_cannot_be_written():
    """Or Python's own flush at exit would complain of it."""
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())


def parser():
    form = {"formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = argparse.ArgumentParser("bqlib", description=ABOUT, epilog=EXIT_CODES, **form)
    version = {"action": _Version, "nargs": 0, "dest": argparse.SUPPRESS}
    parser.add_argument("--version", **version, help="print the version and exit")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (function, arguments) in COMMANDS.items():
        about, examples = inspect.getdoc(function).split("\n\nexamples:\n")
        first = about.splitlines()[0]
        sub = commands.add_parser(
            name,
            help=first[0].lower() + first[1:].rstrip("."),
            description=about,
            epilog=f"examples:\n{examples}",
            **form,
        )
        for argument, keywords in arguments:
            sub.add_argument(argument, **keywords)
        sub.set_defaults(run=function)
    return parser


class _Version(argparse.Action):
    def __call__(self, parser, *_):
        from bqlib import __version__

        print(f"bqlib {__version__}")
        parser.exit()
