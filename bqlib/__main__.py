"""The command line: ``bqlib COMMAND``, which docs/cli.md tells of. No command runs a sweep."""

import argparse
import inspect
import json
import os
import re
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


def main(arguments=None):
    """Run one command; return its exit code."""
    chosen = vars(_parser().parse_args(arguments))
    run = chosen.pop("run")
    try:
        code = run(**chosen) or 0
        sys.stdout.flush()
    except BadNewsError as error:
        print(error, file=sys.stderr)
        return BAD_NEWS
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
    rows = plan(experiment, Path("results", experiment.name))
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
        raise NoAnswerError(f"{site}: no such file; name a site file, as in profiles/cluster")
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
    from bqlib.schema import SchemaError
    from bqlib.summary import as_text, summary

    try:
        about = summary(path)
    except (FileNotFoundError, SchemaError) as error:
        raise NoAnswerError(error) from None
    if as_json:
        _print_json(about)
    else:
        print(as_text(about), end="")
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
    for fault in checked.faults:
        print(f"{Path(path, fault.path)}: {fault.what}")
    how = f"compared with {MANIFEST}" if checked.recorded else f"there is no {MANIFEST} yet"
    print(
        f"{path}: {checked.files} files, {checked.bytes / 1e6:.1f} MB ({how}): "
        + (f"{len(checked.faults)} faults" if checked.faults else "all as written")
    )
    if checked.unused:
        print(
            f"{len(checked.unused)} pieces are not in the curves, as the sweep asks for others; "
            f"they can be deleted: {', '.join(checked.unused)}"
        )
    if any(not fault.foreign for fault in checked.faults):
        print(f"to have them made anew: bqlib retry --damaged {path}, then run the sweep again")
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
    from bqlib.integrity import check, delete, outdated
    from bqlib.run import RunError, lock
    from bqlib.timings import all_failed

    if not Path(results, "pieces").is_dir():
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
            others = outdated(results, experiment)
            paths += others
            for path in others:
                print(f"{path}: of another sweep or other code")
        delete(results, paths)
    files = f"{len(set(paths))} files deleted; the next run makes them anew"
    print(f"{len(failed)} failed trials; {files if paths else 'nothing to delete'}")
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

    examples:
      bqlib targets
      bqlib targets --json
    """
    from bqlib.experiment import build_target
    from bqlib.text import aligned

    files = sorted(Path(shelf).glob("*.json"))
    if not files:
        raise NoAnswerError(f"{shelf}: no targets are there; name their folder with --shelf")
    rows = []
    for file in files:
        content = json.loads(file.read_text(encoding="utf-8"))
        about = {key: content.get(key, "") for key in ("about", "source")}
        dim = build_target(content).dim
        rows.append({"name": file.stem, "family": content["family"], "dim": dim} | about)
    if as_json:
        _print_json(rows)
        return 0
    print(aligned([{key: row[key] for key in ("name", "family", "dim")} for row in rows], ["dim"]))
    for row in rows:
        print(f"\n{row['name']}: {row['about']}\n  source: {row['source'] or 'not told'}")
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
    ("file", {"help": "the file to write: .csv, .parquet or .nc"}),
    ("--points", {"action": "store_true", "help": "also the points and their weights"}),
)
def _export(results, file, points):
    """Write results as CSV, Parquet or NetCDF.

    A table has a row for each cell, seed and number of points; a NetCDF file has the form of the
    dataset that bqlib.open_results gives.

    examples:
      bqlib export results/quick quick.csv
      bqlib export --points results/quick quick.parquet
      bqlib export results/quick results/matching both.nc
    """
    from bqlib import export, open_results

    for path in results:
        if not Path(path).exists():
            raise NoAnswerError(_no_results(path))
    try:
        rows, missing = export(open_results(results), file, points=points)
    except (ImportError, OSError, ValueError) as error:
        raise NoAnswerError(error) from None
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
