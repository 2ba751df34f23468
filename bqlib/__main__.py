"""The command line: ``bqlib COMMAND``, which docs/cli.md tells of. No command runs a sweep."""

import argparse
import json
import os
import sys
from dataclasses import asdict
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
  2  no answer: a wrong command line, or a file that is not there or cannot be read"""


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


def main(arguments=None):
    """Run one command; return its exit code."""
    chosen = vars(_parser().parse_args(arguments))
    run = chosen.pop("run")
    try:
        code = run(**chosen) or 0
        sys.stdout.flush()
    except NoAnswerError as error:
        print(f"bqlib: {error}", file=sys.stderr)
        return NO_ANSWER
    except BrokenPipeError:  # the reader has seen enough, as `head` has
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())  # for the flush at exit
        return CLOSED_PIPE
    except KeyboardInterrupt:
        return INTERRUPTED
    return code


def _parser():
    form = {"formatter_class": argparse.RawDescriptionHelpFormatter}
    parser = argparse.ArgumentParser("bqlib", description=ABOUT, epilog=EXIT_CODES, **form)
    version = {"action": _Version, "nargs": 0, "dest": argparse.SUPPRESS}
    parser.add_argument("--version", **version, help="print the version and exit")
    commands = parser.add_subparsers(metavar="COMMAND", required=True)
    for name, (function, arguments) in COMMANDS.items():
        about, _, more = function.__doc__.partition("\n")
        more = "\n".join(line.removeprefix("    ") for line in more.strip("\n").splitlines())
        sub = commands.add_parser(
            name,
            help=about[0].lower() + about[1:].rstrip("."),
            description=about,
            epilog=more,
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


def _load(sweep, shelf):
    """The experiment of a sweep file that is there; raises a SweepError."""
    from bqlib.experiment import load

    if not Path(sweep).is_file():
        found = [*sorted(Path("config").glob("*.yaml")), *sorted(Path().glob("*.yaml"))]
        others = f"; sweeps here: {', '.join(map(str, found))}" if found else ""
        raise NoAnswerError(f"{sweep}: no such file{others}")
    return load(sweep, shelf)


def _print_json(content):
    print(json.dumps(content, indent=1, ensure_ascii=False, allow_nan=False))


@command(SWEEP, SHELF, AS_JSON)
def _validate(sweep, shelf, as_json):
    """Check a sweep file and say what it asks for.

    All that is wrong is told at once, each problem with its line.

    examples:
      bqlib validate config/quick.yaml
      bqlib validate --shelf config/targets elsewhere/mine.yaml
    """
    from bqlib.experiment import SweepError

    try:
        experiment = _load(sweep, shelf)
    except SweepError as error:
        if as_json:
            _print_json({"problems": error.problems})
        else:
            print(error, file=sys.stderr)
        return BAD_NEWS
    cells = len(experiment.cells())
    trials, results = cells * experiment.seeds, f"results/{experiment.name}"
    if as_json:
        _print_json({"problems": [], "cells": cells, "trials": trials, "results": results})
    else:
        print(f"{sweep}: {cells} cells, {trials} trials; {results}")


@command(
    SWEEP,
    SHELF,
    ("--workers", {"type": int, "default": 1, "help": "how many there will be (default: 1)"}),
    AS_JSON,
)
def _plan(sweep, shelf, workers, as_json):
    """Count what a sweep has done, and estimate the cost of the rest.

    Costs come from finished trials, or from small ones that are run on the spot, marked with ~.

    examples:
      bqlib plan config/quick.yaml
      bqlib plan --workers 64 config/paper.yaml
    """
    from bqlib.experiment import SweepError
    from bqlib.plan import plan, table

    try:
        experiment = _load(sweep, shelf)
    except SweepError as error:
        print(error, file=sys.stderr)
        return BAD_NEWS
    rows = plan(experiment, Path("results", experiment.name))
    if as_json:
        _print_json([asdict(row) for row in rows])
    else:
        table(rows, workers)


@command(
    (
        "site",
        {
            "nargs": "?",
            "default": "profiles/cluster/site.yaml",
            "help": "the site file (default: profiles/cluster/site.yaml)",
        },
    )
)
def _jobscript(site):
    """Print the job script of a run on a batch system.

    Nothing is submitted.

    examples:
      bqlib jobscript
      bqlib jobscript my-site.yaml
    """
    from bqlib.cluster import ClusterError, job_script, read_site

    if not Path(site).is_file():
        raise NoAnswerError(f"{site}: no such file; name a site file, as in profiles/cluster")
    try:
        print(job_script(read_site(site), "results/NAME").strip())
    except ClusterError as error:
        print(error, file=sys.stderr)
        return BAD_NEWS


@command(RESULTS)
def _retry(results):
    """Have the next run try failed trials again.

    Deletes the pieces that hold them.

    examples:
      bqlib retry results/quick
    """
    from bqlib.timings import retry

    if not Path(results, "pieces").is_dir():
        raise NoAnswerError(f"there are no pieces in {results}: name a folder results/...")
    failed = retry(results)
    for piece, seed, reason in failed:
        print(f"{piece}: seed {seed} had failed: {reason}")
    print(
        f"{len(failed)} failed trials"
        + (": their pieces are deleted, and the next run computes them" if failed else "")
    )


@command(RESULTS, AS_JSON)
def _claims(results, as_json):
    """Say what became of the paper's claims.

    The exit code is 1 if an expectation is not met.

    examples:
      bqlib claims results/paper
      bqlib claims --json results/paper
    """
    from bqlib.claims import as_text, read

    try:
        text = Path(results, "claims.json").read_text(encoding="utf-8")
    except OSError:
        raise NoAnswerError(
            f"there are no claims in {results}: name the folder of a sweep with the paper's "
            "settings and its studies, such as results/paper, after it has run"
        ) from None
    claims, expectations, _ = read(text)
    print(text if as_json else as_text(claims, expectations), end="")
    return BAD_NEWS if any(expectation.met is False for expectation in expectations) else 0


if __name__ == "__main__":
    sys.exit(main())
