"""The command line: ``bqlib COMMAND``, which docs/cli.md tells of. No command runs a sweep."""

import argparse
import inspect
import json
import os
import re
import sys
from contextlib import contextmanager, suppress
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
  2  no answer: a wrong command line, or a file that is not there or cannot be read or written"""


class BadNewsError(Exception):
    """The answer is no; the message says why."""


class NoAnswerError(Exception):
    """What was asked for cannot be told; the message says why and what to do."""


COMMANDS = {}
SWEEP = ("sweep", {"help": "the YAML file"})
SHELF = ("--shelf", {"help": "folder of named targets (default: targets/ beside the sweep)"})
RESULTS = ("results", {"help": "the experiment's folder, such as results/quick"})
SUFFIXES = (".csv", ".parquet", ".nc")  # of exports
AS_JSON = ("--json", {"action": "store_true", "dest": "as_json", "help": "print JSON"})


def command(*arguments):
    """Decorator: makes ``_a_name`` the command ``a-name``, with its docstring as the help."""

    def register(function):
        COMMANDS[function.__name__.strip("_").replace("_", "-")] = (function, arguments)
        return function

    return register


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
    chosen = vars(_parser().parse_args(arguments))
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


def _parser():
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


def _load(sweep, shelf):
    """The experiment of a sweep file; a BadNewsError has the SweepError for its cause."""
    from bqlib.experiment import SweepError, load

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
def _reading(what, *results):
    """Around what reads results: tells what it raises where they are damaged.

    Any byte may be another, and then what reads it may raise anything.
    """
    from bqlib.merge import MergeError
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


def _print_json(content):
    print(_json(content))


def _json(content):
    # Elsewhere escapes would be those of Python, which JSON has not.
    utf8 = (sys.stdout.encoding or "").lower() in ("utf-8", "utf8")
    return json.dumps(content, indent=1, ensure_ascii=not utf8, allow_nan=False)


def _counted(count, noun):
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"


@command(SWEEP, SHELF, AS_JSON)
def _validate(sweep, shelf, as_json):
    """Check a sweep file and say what it asks for.

    All that is wrong is told at once, each problem with its line.

    examples:
      bqlib validate config/quick.yaml
      bqlib validate --shelf config/targets elsewhere/mine.yaml
    """
    try:
        experiment = _load(sweep, shelf)
    except BadNewsError as error:
        if not as_json:
            raise
        _print_json({"problems": error.__cause__.problems})
        return BAD_NEWS
    cells, studies = len(experiment.cells()), len(experiment.studies)
    asked = {"cells": cells, "trials": cells * experiment.seeds, "studies": studies}
    results = f"results/{experiment.name}"
    if as_json:
        _print_json({"problems": [], **asked, "results": results})
    else:
        counts = ", ".join(f"{count} {what}" for what, count in asked.items() if count)
        print(f"{sweep}: {counts}; {results}")


def _workers(text):
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(f"{text} is no number of workers: give 1 or more")
    return int(text)


@command(
    SWEEP,
    SHELF,
    ("--workers", {"type": _workers, "default": 1, "help": "how many there will be (default: 1)"}),
    AS_JSON,
)
def _plan(sweep, shelf, workers, as_json):
    """Count what a sweep has done, and estimate the cost of the rest.

    Costs come from finished trials, or from small ones that are run on the spot, marked with ~.

    examples:
      bqlib plan config/quick.yaml
      bqlib plan --workers 64 config/paper.yaml
    """
    from bqlib.plan import as_text, plan

    experiment = _load(sweep, shelf)
    try:
        rows = plan(experiment, Path("results", experiment.name))
    except MemoryError:
        raise NoAnswerError(
            f"{sweep}: even a small part of a trial takes more memory than this machine has: ask "
            "for fewer points, candidates or functions"
        ) from None
    if as_json:
        _print_json([asdict(row) for row in rows])
    else:
        print(as_text(rows, workers))
        if experiment.studies:
            print(f"studies, not counted here: {', '.join(experiment.studies)}")


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
        what = "a folder" if Path(site).is_dir() else "no such file"
        raise NoAnswerError(f"{site}: {what}; name a site file, as in profiles/cluster")
    try:
        print(job_script(read_site(site), "results/NAME").strip())
    except ClusterError as error:
        raise BadNewsError(error) from None


@command(("path", {"help": "a folder of results, or a sweep file"}), SHELF, AS_JSON)
def _show(path, shelf, as_json):
    """Show what results hold, or what a sweep asks for.

    Of results: how many trials ran, failed or ended early and why, the MMD, the rates and the
    verdicts. Of a sweep: its cells. The exit code is 1 if a trial failed or is missing.

    examples:
      bqlib show results/quick
      bqlib show --json results/quick | jq .trials
      bqlib show config/quick.yaml
    """
    if Path(path).is_file() or Path(path).suffix == ".yaml":
        return _show_sweep(path, shelf, as_json)
    if not Path(path).exists():
        raise NoAnswerError(_no_results(path))
    from bqlib.summary import as_text, summary

    with _reading(path, path):
        about = summary(path)
        text = _json(about) + "\n" if as_json else as_text(about)
    print(text, end="")
    return BAD_NEWS if about["trials"]["failed"] or about["trials"]["missing"] else 0


def _show_sweep(path, shelf, as_json):
    from bqlib.text import aligned

    experiment = _load(path, shelf)
    if as_json:
        _print_json(experiment.canonical())
        return 0
    print(f"{experiment.title}\nresults/{experiment.name}\n")
    print(aligned([asdict(cell) for cell in experiment.cells()], ["lengthscale"]))
    studies = ", ".join(experiment.studies)
    print(
        f"\n{len(experiment.cells())} cells, each for n = 1 to {experiment.n} and "
        f"{experiment.seeds} seeds; studies: {studies or 'none'}"
    )
    return 0


def _no_results(path):
    found = sorted(str(place.parent) for place in Path("results").glob("*/pieces"))
    if not Path(path).exists():
        what = f"{path}: no such folder"
    else:
        what = f"{path}: no results are there yet"
    return what + (f"; results here: {', '.join(found)}" if found else "")


def _are_results(path):
    from bqlib.integrity import MANIFEST, PARTS

    return any(Path(path, part).exists() for part in (*PARTS, MANIFEST))


@command(("path", {"help": "a folder of results, or one store"}), AS_JSON)
def _check(path, as_json):
    """Check that results are as their run wrote them.

    Compares every file with the sha256 that was recorded of it, and names what is missing, damaged,
    cut short, in the place of another or of another schema. Where a run has not finished, stores
    are checked by the checksums in them. The exit code is 1 if something is wrong.

    examples:
      bqlib check results/quick
      bqlib check results/quick/curves.zarr
      (cd results/quick && sha256sum --check --quiet manifest-sha256.txt)
    """
    from bqlib.integrity import MANIFEST, check

    try:
        checked = check(path)
    except FileNotFoundError:
        raise NoAnswerError(_no_results(path)) from None
    if as_json:
        _print_json(asdict(checked))
        return BAD_NEWS if checked.faults else 0
    folder = Path(path)
    if Path(path, "zarr.json").exists():  # one store, which is in a folder of results, or alone
        folder = Path(path).parent
    for fault in checked.faults:
        print(f"{folder / fault.path}: {fault.what}")
    how = f"compared with {MANIFEST}" if checked.recorded else f"there is no {MANIFEST} yet"
    if not checked.recorded and any(fault.path == MANIFEST for fault in checked.faults):
        how = f"without {MANIFEST}"
    print(
        f"{path}: {_counted(checked.files, 'file')}, {checked.bytes / 1e6:.1f} MB ({how}): "
        + (_counted(len(checked.faults), "fault") if checked.faults else "all as written")
    )
    if checked.unused:
        print(
            f"{len(checked.unused)} pieces are not in the curves, as the sweep asks for others; "
            f"they can be deleted: {', '.join(checked.unused)}"
        )
    folder = folder.parent if folder.name == "studies" else folder
    if any(not fault.foreign for fault in checked.faults) and _are_results(folder):
        print(f"to have them made anew: bqlib retry --damaged {folder}, then run the sweep again")
    if any(fault.foreign for fault in checked.faults):
        print("to read what another schema version wrote: use the bqlib that wrote it")
    return BAD_NEWS if checked.faults else 0


@command(
    RESULTS,
    (
        "--damaged",
        {"action": "store_true", "help": "also delete what bqlib check finds to be damaged"},
    ),
    (
        "--sweep",
        {"help": "also delete what another sweep than this file's, or other code, has made"},
    ),
    SHELF,
)
def _retry(results, damaged, sweep, shelf):
    """Have the next run try failed trials again.

    Deletes the pieces that hold them, and what was gathered from these.

    examples:
      bqlib retry results/quick
      bqlib retry --damaged results/quick
      bqlib retry --sweep config/quick.yaml results/quick
    """
    from bqlib.integrity import all_failed, check, delete, outdated
    from bqlib.run import RunError, lock

    if not _are_results(results):
        raise NoAnswerError(_no_results(results))
    experiment = _load(sweep, shelf) if sweep else None
    try:
        held = lock(Path(results))
    except RunError as error:
        raise NoAnswerError(error) from None
    with held:
        failed = all_failed(results)
        paths = [f"pieces/{piece}" for piece, _, _ in failed]
        for piece, seed, reason in failed:
            print(f"{piece}: seed {seed} had failed: {reason}")
        if damaged:
            faults = [fault for fault in check(results).faults if not fault.foreign]
            paths += [fault.path for fault in faults]
            for fault in faults:
                print(f"{fault.path}: {fault.what}")
        if experiment:
            with _reading(results, results):
                others = outdated(results, experiment)
            paths += others
            for path in others:
                print(f"{path}: of another sweep or other code")
        deleted = delete(results, paths)
    files = f"{_counted(deleted, 'file')} deleted; the next run makes them anew"
    failures = _counted(len(failed), "failed trial")
    print(f"{failures}; {files if deleted else 'nothing to delete'}")
    return 0


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
    from bqlib.plugins import without_folder
    from bqlib.sweepfile import read_target
    from bqlib.text import aligned

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
        _print_json(rows)
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
    from bqlib import registry
    from bqlib.text import aligned

    rows = []
    for name, (design, weights) in registry.ALGORITHMS.items():
        made, weighed = registry.find("design", design), registry.find("weights", weights)
        cost = f"{_cost(made)} + {_cost(weighed)}"
        about = inspect.getdoc(made).splitlines()[0]
        rows.append(
            {"name": name, "design": design, "weights": weights, "cost": cost, "points": about}
        )
    if as_json:
        _print_json(rows)
    else:
        print(aligned(rows))


def _cost(function):
    """What a docstring says of the time that a function takes."""
    said = " ".join(inspect.getdoc(function).split())
    return "".join(re.search(r"(O\([^()]*\)) time( a step|)", said).groups())


@command(
    ("results", {"nargs": "+", "help": "folders of results; several are merged"}),
    ("file", {"help": f"the file to write, which ends in {', '.join(SUFFIXES)}"}),
    ("--points", {"action": "store_true", "help": "also the points and their weights"}),
)
def _export(results, file, points):
    """Write results as CSV, Parquet or NetCDF.

    A table has a row for each cell, seed and number of points; a NetCDF file has the form of the
    dataset that bqlib.open_results gives.

    examples:
      bqlib export results/quick quick.csv
      bqlib export --points results/quick quick.parquet
      bqlib export results/monday results/tuesday both.nc
    """
    from bqlib import export, open_results

    for path in results:
        if not Path(path).exists():
            raise NoAnswerError(_no_results(path))
    if Path(file).suffix.lower() not in SUFFIXES:
        raise NoAnswerError(f"{file}: must end in {', '.join(SUFFIXES)}")
    with _reading(" or ".join(results), *results):
        rows, missing = export(open_results(results), file, points=points)
    left_out = f"; {missing} missing trials left out" if missing else ""
    print(f"{file}: {rows} rows{left_out}")


@command(RESULTS, AS_JSON)
def _claims(results, as_json):
    """Say what became of the paper's claims.

    The exit code is 1 if an expectation is not met.

    examples:
      bqlib claims results/paper
      bqlib claims --json results/paper
    """
    from bqlib.claims import as_text, read

    if not Path(results).exists():
        raise NoAnswerError(_no_results(results))
    path = Path(results, "claims.json")
    if not path.exists():
        raise NoAnswerError(
            f"there are no claims in {results}: name the folder of a sweep with the paper's "
            "settings and its studies, such as results/paper, after it has run"
        )
    with _reading(path, results):
        written = path.read_text(encoding="utf-8")
        claims, expectations, _ = read(written)
        text = as_text(claims, expectations)
    if as_json:
        _print_json(json.loads(written))
    else:
        print(text, end="")
    return BAD_NEWS if any(expectation.met is False for expectation in expectations) else 0


@command(
    ("name", {"help": "file.py:name, package.module:name, or a name as in a sweep"}),
    ("parameters", {"nargs": "*", "metavar": "parameter=value", "help": "as in a sweep"}),
)
def _check_plugin(name, parameters):
    """Test a target, kernel, design, weight rule or integrand of your own.

    Says in a sentence each what holds and what fails of all that sweeps rely on, with numbers.
    Exits with 1 if anything fails. docs/plugins.md tells of plug-ins.

    examples:
      bqlib check-plugin config/ring.py:Ring radius=2
      bqlib check-plugin mypackage.designs:spread
    """
    from bqlib.contract import check
    from bqlib.plugins import PluginError
    from bqlib.sweepfile import read_plugin

    try:
        kind, function, values = read_plugin(name, parameters)
    except PluginError as error:
        raise BadNewsError(error) from None
    except ValueError as error:
        raise NoAnswerError(error) from None
    findings = check(kind, function, values)
    for finding in findings:
        print(f"{'ok  ' if finding.passed else 'FAIL'} {finding.text}")
    failed = sum(not finding.passed for finding in findings)
    print(f"{name}, {kind}: {len(findings)} checks, {failed} failed")
    return BAD_NEWS if failed else 0


if __name__ == "__main__":
    sys.exit(main())
