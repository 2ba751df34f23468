# What all rules share: the sweep, where its results go, and the run's own process.

import sys
from pathlib import Path

from bqlib import run
from bqlib.experiment import Cell, SweepError, load, piece_name
from bqlib.published import is_the_papers

PROJECT = Path(str(workflow.current_basedir)).parent.parent
SHELF = PROJECT / "config" / "targets"
SWEEP = Path(workflow.configfiles[-1]) if workflow.configfiles else PROJECT / "config/config.yaml"
SITE = PROJECT / config.get("site", "profiles/local/site.yaml")

try:
    EXPERIMENT = load(SWEEP, SHELF)
    RESULTS = Path("results") / EXPERIMENT.name
    run.check_results_folder(RESULTS)
except (SweepError, run.RunError) as error:
    print(error, file=sys.stderr)
    raise SystemExit(1)


def all_pieces(wildcards):
    return [
        f"{RESULTS}/pieces/{piece_name(cell, block)}"
        for cell in EXPERIMENT.cells()
        for block in EXPERIMENT.blocks()
    ]


def digest_of(wildcards):
    lengthscale = float(wildcards.lengthscale)
    cell = Cell(wildcards.target, wildcards.kernel, lengthscale, wildcards.algorithm)
    return EXPERIMENT.spec(cell).digest


# The datasets that each figure is drawn from.
FIGURES = {"mmd": ["curves"], "slopes": ["curves"]}

# Those of the paper itself need its settings.
if {"sbq", "herding"} <= {algorithm.name for algorithm in EXPERIMENT.algorithms} and any(
    is_the_papers(cell.target, EXPERIMENT.kernels[cell.kernel], cell.lengthscale)
    for cell in EXPERIMENT.cells()
):
    FIGURES |= {"bq_illustration": [], "samples": ["curves"], "weight_histogram": ["curves"]}


def start_run():
    global run_process
    run_process = run.start(SWEEP, SHELF, SITE, RESULTS)


def stop_run():
    if "run_process" in globals():
        run.stop(run_process)
