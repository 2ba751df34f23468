"""Commands on sweeps."""

import argparse
from dataclasses import asdict
from pathlib import Path

from bqlib.cli.command import (
    AS_JSON,
    BAD_NEWS,
    SHELF,
    SWEEP,
    BadNewsError,
    NoAnswerError,
    command,
    loaded,
    print_json,
)


@command(SWEEP, SHELF, AS_JSON)
def _validate(sweep, shelf, as_json):
    """Check a sweep file and say what it asks for.

    All that is wrong is told at once, each problem with its line.

    examples:
      bqlib validate config/quick.yaml
      bqlib validate --shelf config/targets elsewhere/mine.yaml
    """
    try:
        experiment = loaded(sweep, shelf)
    except BadNewsError as error:
        if not as_json:
            raise
        print_json({"problems": error.__cause__.problems})
        return BAD_NEWS
    cells, studies = len(experiment.cells()), len(experiment.studies)
    asked = {"cells": cells, "trials": cells * experiment.seeds, "studies": studies}
    results = f"results/{experiment.name}"
    if as_json:
        print_json({"problems": [], **asked, "results": results})
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
    from bqlib.running.cost import as_text, plan

    experiment = loaded(sweep, shelf)
    try:
        rows = plan(experiment, Path("results", experiment.name))
    except MemoryError:
        raise NoAnswerError(
            f"{sweep}: even a small part of a trial takes more memory than this machine has: ask "
            "for fewer points, candidates or functions"
        ) from None
    if as_json:
        print_json([asdict(row) for row in rows])
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
    from bqlib.running.errors import ClusterError
    from bqlib.running.jobs import job_script
    from bqlib.running.site import read_site

    if not Path(site).is_file():
        what = "a folder" if Path(site).is_dir() else "no such file"
        raise NoAnswerError(f"{site}: {what}; name a site file, as in profiles/cluster")
    try:
        print(job_script(read_site(site), "results/NAME").strip())
    except ClusterError as error:
        raise BadNewsError(error) from None


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
    from bqlib.sweep.check_plugin import check_plugin
    from bqlib.sweep.families import read_plugin
    from bqlib.sweep.plugins import PluginError

    try:
        kind, function, values = read_plugin(name, parameters)
    except PluginError as error:
        raise BadNewsError(error) from None
    except ValueError as error:
        raise NoAnswerError(error) from None
    findings = check_plugin(kind, function, values)
    for finding in findings:
        print(f"{'ok  ' if finding.passed else 'FAIL'} {finding.text}")
    failed = sum(not finding.passed for finding in findings)
    print(f"{name}, {kind}: {len(findings)} checks, {failed} failed")
    return BAD_NEWS if failed else 0
