"""A run inside Snakemake, from its start hook to its end hooks.

This is the one room that touches Snakemake's private parts. Each place says what it relies on and
what breaks without it; all were checked on Snakemake 9.27.1 with its plug-in for Slurm 2.8.0.
"""

import atexit
import os
import re
import shlex
import signal
import stat
import subprocess
import sys
import tempfile
import threading
import time
from base64 import urlsafe_b64encode
from contextlib import suppress
from pathlib import Path

import psutil
from snakemake.cli import parse_args, parse_config
from snakemake.logging import logger
from snakemake.scheduling.job_scheduler import JobScheduler

from bqlib.results.blocks import blocks_of
from bqlib.results.layout import (
    RESULTS,
    Layout,
    head,
    job_name,
    job_name_of_study,
    path_of_study,
    piece_name,
)
from bqlib.results.records import settle
from bqlib.results.retry import advice, study_is_there
from bqlib.results.timings import failed_trials
from bqlib.running import scratch, session
from bqlib.running.errors import RunError
from bqlib.running.journal import note_name
from bqlib.running.paths import Paths
from bqlib.running.preflight import check_origin, check_results_folder, why_jobs_fail
from bqlib.running.settings import default_sweep, refuse_settings, site_file
from bqlib.sweep import shipped
from bqlib.sweep.file import load, shelf_of
from bqlib.sweep.words import SweepError

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SOME_FAILED = 3  # exit code of a run that is complete but for failed trials


def prepare(workflow, config, shell):
    """Read the sweep and get Snakemake ready for it; ends the process where that cannot be.

    Parameters
    ----------
    workflow, config, shell
        Snakemake's own, as the workflow's files see them.

    Returns
    -------
    Run
    """
    _find_interpreter_with_spaces()
    # No process of a run has a display. Jupyter exports a backend of its own, which need not be
    # installed here; then matplotlib cannot be imported, neither for figures nor by plug-ins.
    os.environ["MPLBACKEND"] = "agg"
    project = Path(str(workflow.current_basedir)).parent.parent
    sweep = Path(workflow.configfiles[-1]) if workflow.configfiles else default_sweep()
    shelf = shelf_of(sweep)
    try:
        if workflow.is_main_process and _is_on_top(workflow, project):
            refuse_settings(workflow.config_settings.config, workflow.config_settings.configfiles)
        site = site_file(config, _settings_of_profiles, project)
        experiment = load(sweep, shelf)
        paths = Paths(sweep, shelf, site, RESULTS / experiment.name)
        check_results_folder(paths.results)
        if workflow.is_main_process:
            check_origin(paths, experiment, _is_known)
    except (SweepError, RunError) as error:
        print(error, file=sys.stderr)
        raise SystemExit(1) from None
    paths.announce()
    run = Run(workflow, paths, experiment, project / "workflow" / "scripts")
    if workflow.is_main_process:
        run.keep_temporary_files()
    for number in ENDINGS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            signal.signal(number, run.interrupt)
    # Its scheduler's own for SIGTERM, which replaces ours, waits until all jobs have ended; and for
    # a lock that the interrupted thread may hold, for ever.
    JobScheduler.exit_gracefully = lambda scheduler, number, frame: run.interrupt(number, frame)
    # Jobs ignore Ctrl-C: they are told to end once this process has heard of it.
    shell.prefix("set -euo pipefail; trap '' INT; ")
    return run


class Run:
    """One run of the workflow.

    Attributes
    ----------
    paths : bqlib.running.paths.Paths
    experiment : bqlib.sweep.experiment.Experiment
    scripts : Path
        Folder of the scripts of jobs.
    """

    def __init__(self, workflow, paths, experiment, scripts):
        self.paths, self.experiment, self.scripts = paths, experiment, scripts
        self._workflow = workflow
        self._session = self._scratch = None
        self._told = ""  # by whom this process was told to end
        self._code = 1  # exit code of a run that fails

    def keep_temporary_files(self):
        """Have a private folder for temporary files, and remove those of killed runs."""
        scratch.remove_left()
        _remove_left_by_snakemake()
        self._scratch = scratch.make()
        atexit.register(self._scratch.remove)

    def settle(self, steps):
        """Let dates of files say what is up to date, before Snakemake plans; say what is there.

        A dry run does this too. Jobs that read the workflow again do not.

        Parameters
        ----------
        steps : iterable of bqlib.results.records.Step
        """
        if not self._workflow.is_main_process:
            return
        at = Layout(self.paths.results)
        blocks = list(blocks_of(self.experiment, at.folder))
        studies = [self.experiment.study(name) for name in self.experiment.studies]
        pieces = [block.piece for block in blocks if block.there]
        names = [study.name for study in studies if study_is_there(at.folder, study)]
        finished = [(at.piece(p), at.timing(p), at.benchmark(job_name(p))) for p in pieces]
        finished += [(head(at.study(n)), at.benchmark(job_name_of_study(n))) for n in names]
        settle(at.folder, finished, steps, self.scripts.glob("*.py"))
        taken = sum(len(block.seconds) for block in blocks if not block.there)
        if taken:
            left = sum(len(block.missing) for block in blocks)
            say(f"{taken} finished trials are taken over into new pieces, {left} are to compute")
        lost = [block.piece for block in blocks if block.outdated]
        lost += [
            path_of_study(study.name)
            for study in studies
            if head(at.study(study.name)).exists() and study.name not in names
        ]
        if lost:
            say(
                f"{len(lost)} pieces or studies of another sweep or of other code are replaced, "
                f"the first is {lost[0]}: to keep them, give the sweep another name"
            )

    def start(self):
        """Start the run's process; ends this process where that cannot be."""
        try:
            self._session = session.start(self.paths, self._scratch)
            if _submits_jobs(self._workflow):
                note_name(self.paths.results, "slurm", self._workflow.scheduler._executor.run_uuid)
        except RunError as error:
            say(error)
            raise SystemExit(1) from None

    def interrupt(self, number, frame):
        """End the run by a signal, without a traceback of each job."""
        for each in ENDINGS:
            signal.signal(each, signal.SIG_IGN)  # a second one must not break into the end
        if not (self._session and session.has_ended(self._session)):  # which sends a signal, too
            name = signal.Signals(number).name
            self._told = "interrupted" if number == signal.SIGINT else f"told to end by {name}"
            self._code = 128 + number
            say(f"{self._told}: ending what runs")
        logger.setLevel("CRITICAL")  # or Snakemake reports each job that ends
        if self._session:
            session.interrupt(self._session)
            if _submits_jobs(self._workflow):
                say("Slurm's jobs are cancelled; Snakemake may take three minutes to notice")
                _in_a_thread(_cancel_jobs)(self._workflow)
        raise SystemExit(128 + number)

    def end(self, error=False):
        """Stop the run's process, and say in the last lines how it went and what to do next."""
        if error and _submits_jobs(self._workflow):
            _cancel_jobs(self._workflow)
        reason = session.stop(self._session, complete=not error) if self._session else ""
        results, trials = self.paths.results, self.experiment.trial_count()
        pieces = [
            piece_name(cell, block)
            for cell in self.experiment.cells()
            for block in self.experiment.blocks()
        ]
        failed = failed_trials(results, pieces)
        if error:
            say(f"stopped: {self._told or reason or why_jobs_fail(results)}")
            when = "to go on" if self._told else "once the cause is mended"
            say(f"finished pieces are kept in {results}: {when}, give the same command again")
        else:
            say(f"results are in {results}; read {Layout(results).report.name} first")
        if failed:
            name, seed, why = failed[0]
            say(f"{len(failed)} of {trials} trials failed")
            say(f"the first is {name.rpartition('/')[0]}, seed {seed}: {why}")
            for sentence in advice([why for _, _, why in failed], results):
                say(sentence)
        if error or failed:
            raise SystemExit(self._code if error else SOME_FAILED)


def say(text):
    """One line on the terminal."""
    with suppress(OSError):  # a closed terminal
        print(f"[bqlib] {text}", file=sys.stderr)


def _in_a_thread(handler):
    """A signal handler that may take locks which the thread that the signal interrupts holds."""

    def handle(*arguments):
        threading.Thread(target=handler, args=arguments, daemon=True).start()

    return handle


def _find_interpreter_with_spaces():
    """Let Snakemake find an interpreter whose path has spaces through PATH.

    It writes ``sys.executable`` into the commands of scripts without quotes: without this no script
    starts where the path needs them.
    """
    if sys.executable != shlex.quote(sys.executable):
        folders = [os.path.dirname(sys.executable), *os.get_exec_path()]
        os.environ.update(PATH=os.pathsep.join(folders))
        sys.executable = "python"


def _remove_left_by_snakemake():
    """Remove the empty temporary folders that killed Snakemakes of this user have left.

    Each makes one as it starts and hardly uses it. Those of Snakemakes that live are younger than
    the oldest of these.
    """
    names = "TMPDIR", "TEMP", "TMP"  # by which a process finds its temporary folder
    alive = [
        process.info["create_time"]
        for process in psutil.process_iter(["create_time", "cmdline", "environ"])
        if "snakemake" in str(process.info["cmdline"])
        and all((process.info["environ"] or {}).get(n) == os.environ.get(n) for n in names)
    ]
    oldest = min(alive, default=psutil.Process().create_time())
    # psutil counts from when the machine started, in whole seconds: a run that follows another one
    # at once would seem older than what that one has left.
    oldest += time.time() - time.clock_gettime(time.CLOCK_BOOTTIME) - psutil.boot_time()
    with suppress(OSError), os.scandir(tempfile.gettempdir()) as entries:
        own = [entry for entry in entries if re.fullmatch("snakemake[a-z0-9_]{8}", entry.name)]
        for entry in own:
            found = entry.stat(follow_symlinks=False)
            private = stat.S_ISDIR(found.st_mode) and not found.st_mode & 0o077
            if private and found.st_uid == os.getuid() and found.st_mtime < oldest:
                with suppress(OSError):  # not empty
                    os.rmdir(entry)


def _is_on_top(workflow, project):
    """Whether the workflow is run by itself, and no other Snakefile imports it.

    Snakemake's ``main_snakefile`` is the file of the command. Without this, keys that an importing
    workflow reads would be refused.
    """
    main = Path(workflow.main_snakefile)
    ours = [project / "Snakefile", project / "workflow" / "Snakefile"]
    if main.resolve() in [path.resolve() for path in ours]:
        return True
    template = shipped.TEMPLATE / "Snakefile"  # which does nothing but include ours
    return main.is_file() and main.read_bytes() == template.read_bytes()


def _settings_of_profiles():
    """What the profiles of Snakemake's command set with ``config``, without its ``--config``.

    The command is parsed by Snakemake's ``parse_args``, and what is left of it once more. Without
    this, a site file that a profile names is lost where the command has a ``--config``.
    """
    if Path(sys.argv[0]).name not in ("snakemake", "__main__.py"):
        return {}  # Snakemake was called from Python, where there are no profiles
    _, asked = parse_args(sys.argv[1:])
    bare = ["--snakefile", str(asked.snakefile)] if asked.snakefile else []
    bare += ["--profile", *asked.profile] if asked.profile else []
    bare += ["--workflow-profile", asked.workflow_profile] if asked.workflow_profile else []
    _, without = parse_args(bare)
    return parse_config(without.config)


def _submits_jobs(workflow):
    """Whether Snakemake's jobs are Slurm's: its plug-in gives them one name, ``run_uuid``."""
    return hasattr(workflow.scheduler._executor, "run_uuid")


def _cancel_jobs(workflow):
    """Cancel all of Snakemake's jobs in Slurm's queue, and let it submit no others.

    While Snakemake asks for the states of jobs it does not know of them, so that its own cancelling
    misses them; and it first submits what it meant to, from ``_job_submission_executor``.
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
        say(f"jobs may be left in the queue; to cancel them: {shlex.join(command)}")


def _is_known(path):
    """Whether Snakemake has a record of how an output was made.

    It keeps one below ``.snakemake/metadata``: its name is the path in base64, in parts of 254
    letters. If that changes, every file seems to come from elsewhere, and reruns are refused.
    """
    name = urlsafe_b64encode(str(path).encode()).decode()
    *folders, last = (name[i : i + 254] for i in range(0, len(name), 254))
    record = Path(".snakemake", "metadata", *("@" + folder for folder in folders), last)
    return record.exists()
