"""Commands that help before a sweep runs."""

import argparse
from dataclasses import asdict
from pathlib import Path

from bqlib.cli.command import (
    AS_JSON,
    PROBLEM,
    SHELF,
    SWEEP_FILE,
    Command,
    NoAnswerError,
    ProblemError,
    counted,
    loaded,
    no_file,
    print_json,
)
from bqlib.results.layout import RESULTS
from bqlib.running.errors import ClusterError
from bqlib.running.settings import default_sweep
from bqlib.sweep import shipped
from bqlib.sweep.plugins import PluginError

SITE = Path("profiles", "cluster", "site.yaml")


def validate(sweep, shelf, as_json):
    """Print what a sweep asks for, or its errors."""
    sweep = sweep or default_sweep()
    try:
        experiment = loaded(sweep, shelf)
    except ProblemError as error:
        if not as_json:
            raise
        print_json({"problems": error.__cause__.problems})
        return PROBLEM
    cells, studies = len(experiment.cells()), len(experiment.studies)
    asked = {"cells": cells, "trials": cells * experiment.seeds, "studies": studies}
    results = str(RESULTS / experiment.name)
    if as_json:
        left_out = {"inapplicable": experiment.inapplicable} if experiment.problems else {}
        print_json({"problems": [], **asked, "results": results, **left_out})
    else:
        counts = ", ".join(f"{count} {what}" for what, count in asked.items() if count)
        print(f"{sweep}: {counts}; {results}")
        for rule, problems in experiment.inapplicable.items():
            names = ", ".join(problems)
            why = next(iter(problems.values()))
            print(f"{rule} does not apply to {counted(len(problems), 'problem')}: {names}: {why}")
    return 0


def plan(sweep, shelf, workers, as_json):
    """Print how many trials are done, and what the missing ones cost."""
    from bqlib.running import cost  # 1.5 s

    experiment = loaded(sweep or default_sweep(), shelf)
    rows = cost.plan(experiment, RESULTS / experiment.name)
    if as_json:
        print_json([asdict(row) for row in rows])
    else:
        print(cost.as_text(rows, workers))
        if experiment.studies:
            print(f"studies, not included: {', '.join(experiment.studies)}")
    return PROBLEM if any(row.problem for row in rows) else 0


def jobscript(site):
    """Print the script of the jobs that a run would submit."""
    from bqlib.running.jobs import job_script  # 0.1 s
    from bqlib.running.site import read_site  # 0.1 s

    site = site or (SITE if SITE.is_file() else shipped.PROJECT / SITE)
    if not Path(site).is_file():
        raise NoAnswerError(f"{no_file(site, 'a site file')}; give a site file such as {SITE}")
    try:
        print(job_script(read_site(site), str(RESULTS / "NAME")).strip())
    except ClusterError as error:
        raise ProblemError(error) from None


def check_plugin(name, parameters):
    """Print what the checks of a plug-in found."""
    from bqlib.sweep import check_plugin as checks  # 0.7 s
    from bqlib.sweep.families import read_plugin  # 1.0 s

    try:
        kind, function, values = read_plugin(name, parameters)
    except PluginError as error:
        raise ProblemError(error) from None
    except ValueError as error:
        raise NoAnswerError(error) from None
    findings = checks.check_plugin(kind, function, values)
    for finding in findings:
        print(f"{'ok  ' if finding.passed else 'FAIL'} {finding.text}")
    failed = sum(not finding.passed for finding in findings)
    print(f"{name}, {kind}: {len(findings)} checks, {failed} failed")
    return PROBLEM if failed else 0


def schema(of):
    """Print the JSON Schema of sweep files or of site files."""
    if of == "site":
        from bqlib.running.site import json_schema  # 0.1 s
    else:
        from bqlib.sweep.file import json_schema  # 1.0 s
    print_json(json_schema())


def number_of_workers(text):
    """The value of --workers."""
    if not text.isdecimal() or int(text) < 1:
        raise argparse.ArgumentTypeError(
            f"number of workers must be an integer of at least 1, not {text}"
        )
    return int(text)


COMMANDS = (
    Command(
        name="validate",
        run=validate,
        summary="check a sweep file and count its work",
        about=(
            "Checks the whole sweep file and reports all errors together, each with its line. For "
            "a valid sweep it prints the number of cells, trials and studies."
        ),
        examples=(
            "bqlib validate config/quick.yaml",
            "bqlib validate --shelf config/targets elsewhere/mine.yaml",
        ),
        arguments=(SWEEP_FILE, SHELF, AS_JSON),
    ),
    Command(
        name="plan",
        run=plan,
        summary="show progress and estimate the remaining cost",
        about=(
            "Counts the finished, failed and missing trials of a sweep, and estimates the time and "
            "memory for the missing ones. Trials of a piece that is not finished count as missing, "
            "though a run that goes on takes them over. The estimate uses finished trials, or "
            "small ones that the command runs (marked with ~). It does not include studies. If a "
            "small trial fails, the command says why, goes on with the others, and exits with 1."
        ),
        examples=(
            "bqlib plan config/quick.yaml",
            "bqlib plan --workers 64 config/paper.yaml",
        ),
        arguments=(
            SWEEP_FILE,
            SHELF,
            (
                "--workers",
                {
                    "type": number_of_workers,
                    "default": 1,
                    "help": "number of workers (default: 1)",
                },
            ),
            AS_JSON,
        ),
    ),
    Command(
        name="jobscript",
        run=jobscript,
        summary="print the job script for a batch system",
        about=(
            "Prints the script of the jobs that a run would submit to a batch system, and submits "
            "nothing."
        ),
        examples=("bqlib jobscript", "bqlib jobscript my-site.yaml"),
        arguments=(
            (
                "site",
                {"nargs": "?", "help": f"the site file (default: {SITE} here, or that of bqlib)"},
            ),
        ),
    ),
    Command(
        name="schema",
        run=schema,
        summary="print the JSON Schema of sweep files or site files",
        about=(
            "Prints a JSON Schema by which editors complete the keys and names of a sweep file or "
            "a site file, and mark mistakes. It knows the plug-ins that installed packages offer. "
            "It accepts all that bqlib validate accepts, and also some mistakes, which bqlib "
            "validate then finds."
        ),
        examples=("bqlib schema > sweep.schema.json", "bqlib schema site > site.schema.json"),
        arguments=(
            (
                "of",
                {
                    "nargs": "?",
                    "choices": ("sweep", "site"),
                    "default": "sweep",
                    "help": "kind of file (default: sweep)",
                },
            ),
        ),
    ),
    Command(
        name="check-plugin",
        run=check_plugin,
        summary="test your own target, kernel, design, weight rule or integrand",
        about=(
            "Tests your own target, kernel, design, weight rule or integrand. Prints one line for "
            "each check, passed or failed, with the numbers. Exits with 1 if a check fails. "
            "docs/plugins.md explains how to write a plug-in."
        ),
        examples=(
            "bqlib check-plugin config/ring.py:Ring radius=2",
            "bqlib check-plugin mypackage.designs:spread",
        ),
        arguments=(
            ("name", {"help": "file.py:name, package.module:name, or a name as in a sweep"}),
            (
                "parameters",
                {"nargs": "*", "metavar": "parameter=value", "help": "as in a sweep"},
            ),
        ),
    ),
)
