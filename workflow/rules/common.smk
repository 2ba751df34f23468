# What all rules share: the sweep, where its results go, and the run's own process.

import os
import shlex
import signal
import subprocess
import sys
import threading
from pathlib import Path

from snakemake.scheduling.job_scheduler import JobScheduler

from bqlib import run, timings
from bqlib.experiment import Cell, SweepError, load, piece_name
from bqlib.fingerprint import fingerprint
from bqlib.integrands import of_model
from bqlib.published import is_the_papers

# Snakemake writes its interpreter into the commands of scripts without quotes. Where the path needs
# them, as one with spaces does, it is found through PATH instead.
if sys.executable != shlex.quote(sys.executable):
    folders = [os.path.dirname(sys.executable), *os.get_exec_path()]
    os.environ.update(PATH=os.pathsep.join(folders))
    sys.executable = "python"


def say(text):
    print(f"[bqlib] {text}", file=sys.stderr)


def interrupt(number, frame):
    """End the run on Ctrl-C, without a traceback of each job."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # a second one must not break into the end
    say("interrupted: ending what runs")
    logger.setLevel("CRITICAL")  # Snakemake tells of each job that ends
    if "session" in globals():
        run.interrupt(session)
        if has_single_jobs():
            say("Slurm's jobs are cancelled; Snakemake may take three minutes to notice")
            in_a_thread(cancel_single_jobs)()
    raise SystemExit(run.INTERRUPTED)


signal.signal(signal.SIGINT, interrupt)


def in_a_thread(handler):
    """A signal handler that may take locks which the thread that the signal interrupts holds."""

    def handle(*arguments):
        threading.Thread(target=handler, args=arguments, daemon=True).start()

    return handle


# Snakemake's own for SIGTERM is not one: it waited for ever where jobs had just failed.
JobScheduler.exit_gracefully = in_a_thread(JobScheduler.exit_gracefully)
# Jobs are deaf to it: they are told to end after this process has heard of it.
shell.prefix("set -euo pipefail; trap '' INT; ")

PROJECT = Path(str(workflow.current_basedir)).parent.parent
SHELF = PROJECT / "config" / "targets"
SWEEP = Path(workflow.configfiles[-1]) if workflow.configfiles else PROJECT / "config/config.yaml"
SITE = PROJECT / config.get("site", "profiles/local/site.yaml")

try:
    EXPERIMENT = load(SWEEP, SHELF)
    RESULTS = Path("results") / EXPERIMENT.name
    run.check_results_folder(RESULTS)
    if workflow.is_main_process:
        run.check_science(RESULTS, EXPERIMENT, SWEEP, SHELF)
    run.announce(SWEEP, SHELF, SITE, RESULTS)
except (SweepError, run.RunError) as error:
    print(error, file=sys.stderr)
    raise SystemExit(1)


PIECES = [piece_name(cell, block) for cell in EXPERIMENT.cells() for block in EXPERIMENT.blocks()]


def all_pieces(wildcards):
    return [f"{RESULTS}/pieces/{name}" for name in PIECES]


def digest_of(wildcards):
    lengthscale = float(wildcards.lengthscale)
    cell = Cell(wildcards.target, wildcards.kernel, lengthscale, wildcards.algorithm)
    return EXPERIMENT.spec(cell).digest


def code_of(*places):
    """A param that changes with the code of some functions, and has their job run again then."""
    return lambda wildcards: fingerprint(*places)


# The datasets that each figure is drawn from.
FIGURES = {"mmd": ["curves"], "slopes": ["curves"]}
if EXPERIMENT.rate_windows and (len(EXPERIMENT.lengthscales) > 1 or len(EXPERIMENT.targets) > 1):
    FIGURES["rate_map"] = ["rates"]
if any(algorithm.weights == "bq" for algorithm in EXPERIMENT.algorithms):
    FIGURES["weight_sum"] = ["curves"]
if of_model(EXPERIMENT.integrands, within=True):
    FIGURES |= {"within_model": ["curves"], "error_bound": ["curves", "function_errors"]}
if of_model(EXPERIMENT.integrands, within=False):
    FIGURES["out_of_model"] = ["curves"]


# Whether the sweep has the paper's settings, without which its claims cannot be judged. Some need
# studies too, and say so.
OF_THE_PAPER = {"sbq", "herding"} <= {
    algorithm.name for algorithm in EXPERIMENT.algorithms
} and any(
    is_the_papers(cell.target, EXPERIMENT.kernels[cell.kernel], cell.lengthscale)
    for cell in EXPERIMENT.cells()
)
if OF_THE_PAPER:
    FIGURES |= {"bq_illustration": [], "samples": ["curves"], "weight_histogram": ["curves"]}
for study in ("refinement", "kernel_choice", "submodularity"):
    if study in EXPERIMENT.studies:
        FIGURES[study] = [f"studies/{study}"]
if {"alternatives", "cost", "refinement"} <= set(EXPERIMENT.studies):
    FIGURES["accuracy_for_time"] = ["studies/alternatives", "studies/cost", "studies/refinement"]


def start_run():
    global session
    try:
        session = run.start(SWEEP, SHELF, SITE, RESULTS)
    except run.RunError as error:
        print(f"[bqlib] {error}", file=sys.stderr)
        raise SystemExit(1)


def has_single_jobs():
    """Whether Snakemake's own jobs are Slurm's, by the name that they share in its queue."""
    return hasattr(workflow.scheduler._executor, "run_uuid")


def cancel_single_jobs():
    """End all of Snakemake's jobs in Slurm's queue, and let it submit no further ones.

    Itself it forgets jobs while it asks for their states, and first submits what it meant to.
    """
    executor = workflow.scheduler._executor
    submitter = getattr(executor, "_job_submission_executor", None)
    if submitter is not None:
        submitter.shutdown(wait=False, cancel_futures=True)
    command = ["scancel", f"--name={executor.run_uuid}"]
    try:
        subprocess.run(command, check=True, capture_output=True, timeout=60)
    except FileNotFoundError:
        pass  # where Slurm is missing, nothing was submitted
    except subprocess.SubprocessError:
        say(f"jobs may be left in the queue; to end them: {shlex.join(command)}")


def end_run(error=False):
    """Stop the run's process, and say in the last lines how it went and what to do next."""
    if error and has_single_jobs():
        cancel_single_jobs()
    reason = run.stop(session, complete=not error) if "session" in globals() else ""
    failed = timings.failed_trials(RESULTS, PIECES)
    interrupted = reason == "interrupted"
    if error:
        say(f"stopped: {reason or run.why_jobs_fail(RESULTS)}")
        when = "to go on" if interrupted else "once the cause is mended"
        say(f"finished pieces are kept in {RESULTS}: {when}, give the same command again")
    else:
        say(f"results are in {RESULTS}; read report.html first")
    if failed:
        name, seed, why = failed[0]
        say(f"{len(failed)} of {len(EXPERIMENT.cells()) * EXPERIMENT.seeds} trials failed")
        say(f"the first is {name.rpartition('/')[0]}, seed {seed}: {why}")
        say(f"to try them again: bqlib retry {RESULTS}, then the same command again")
    if error or failed:
        raise SystemExit(run.INTERRUPTED if interrupted else 1 if error else run.SOME_FAILED)
