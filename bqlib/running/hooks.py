"""A run inside Snakemake, from its start hook to its end hooks.

Where the workflow is a module of another one, Snakemake calls no hooks of it, and signals are that
workflow's to answer: then the run starts when its first job asks for it, and ends with the process.

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
from snakemake.common.configfile import load_configfile
from snakemake.logging import logger
from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake.sourcecache import LocalGitFile, LocalSourceFile

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
from bqlib.running.door import open_door
from bqlib.running.errors import RunError
from bqlib.running.journal import note_name
from bqlib.running.module import SWEEP, refuse_another, refuse_moved_outputs, stated_sweep
from bqlib.running.paths import Paths, announce
from bqlib.running.preflight import check_origin, check_results_folder, why_jobs_fail
from bqlib.running.settings import default_sweep, refuse_settings, site_file
from bqlib.sweep import shipped
from bqlib.sweep.file import load, shelf_of
from bqlib.sweep.words import SweepError

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
SOME_FAILED = 3  # exit code of a run that is complete but for failed trials


def prepare(workflow, config, shell):
    """Read the sweep and get Snakemake ready for it; ends the process where that cannot be.

    Where the workflow is a module, each ``use rule`` statement reads it again; the run is the same.

    Parameters
    ----------
    workflow, config, shell
        Snakemake's own, as the workflow's files see them.

    Returns
    -------
    Run
    """
    _find_interpreter_with_spaces()
    is_module = not workflow.modifier.is_main_snakefile()
    # No process of a run has a display. Jupyter exports a backend of its own, which need not be
    # installed here; then matplotlib cannot be imported, neither for figures nor by plug-ins.
    if not is_module or os.environ.get("MPLBACKEND", "").startswith("module:"):
        os.environ["MPLBACKEND"] = "agg"
    project = _project(workflow)
    try:
        if is_module:
            paths, experiment = _of_module(workflow, config, project)
            known = _runs_of(workflow).get(paths.results)
            if known:
                refuse_another(experiment, known.experiment, paths.results)
                return known
        else:
            paths, experiment = _of_command(workflow, config, project)
        check_results_folder(paths.results)
        if workflow.is_main_process:
            check_origin(paths, experiment, _is_known)
    except (SweepError, RunError) as error:
        print(error, file=sys.stderr)
        raise SystemExit(1) from None
    run = Run(workflow, paths, experiment, project / "workflow" / "scripts", is_module)
    _runs_of(workflow)[paths.results] = run
    run.announce()
    if is_module:
        return run
    for number in ENDINGS:
        if number != signal.SIGHUP or signal.getsignal(number) != signal.SIG_IGN:  # as under nohup
            signal.signal(number, run.interrupt)
    # Its scheduler's own for SIGTERM, which replaces ours, waits until all jobs have ended; and for
    # a lock that the interrupted thread may hold, for ever.
    JobScheduler.exit_gracefully = lambda scheduler, number, frame: run.interrupt(number, frame)
    # Jobs ignore Ctrl-C: they are told to end once this process has heard of it.
    shell.prefix("set -euo pipefail; trap '' INT; ")
    return run


def _project(workflow):
    """Folder of the workflow's files, or of those in the installed package.

    Where Snakemake has the workflow from an address, it fetches the files of rules and scripts.
    Targets, site and the text of the scripts are the package's.
    """
    folder = workflow.current_basedir
    is_here = isinstance(folder, LocalSourceFile)
    return Path(str(folder)).parent.parent if is_here else shipped.PROJECT


def _of_command(workflow, config, project):
    """Paths and sweep of a run whose workflow is that of Snakemake's command."""
    sweep = Path(workflow.configfiles[-1]) if workflow.configfiles else default_sweep()
    shelf = shelf_of(sweep)
    if workflow.is_main_process and _is_on_top(workflow, project):
        refuse_settings(workflow.config_settings.config, workflow.config_settings.configfiles)
    site = site_file(config, _settings_of_profiles, project)
    experiment = load(sweep, shelf)
    return Paths(sweep, shelf, site, RESULTS / experiment.name), experiment


def _of_module(workflow, config, project):
    """Paths and sweep of a run whose workflow is a module of another one.

    Of the stack of Snakemake's ``modifier``, the last belongs to the module and the first to the
    importing workflow, whose config is among its ``globals``.
    """
    refuse_moved_outputs(_path_modifiers(workflow))
    settings = workflow.config_settings
    files = settings.configfiles if settings.replace_workflow_config else workflow.configfiles
    whole = workflow.modifier_stack[0].globals["config"]
    stated = stated_sweep(config, whole, files, settings.config, load_configfile)
    of_profiles = _settings_of_profiles if config is whole and SWEEP not in config else dict
    site = site_file(config, of_profiles, project, by="config ")
    if isinstance(stated, Path):
        experiment, shelf = load(stated), shelf_of(stated)
        return Paths(stated, shelf, site, RESULTS / experiment.name), experiment
    experiment = stated.experiment()
    folder = RESULTS / experiment.name
    return Paths(stated.written(), stated.shelf, site, folder, stated.folder), experiment


def _path_modifiers(workflow):
    """(prefix, replacements) of each module around this workflow, by Snakemake's own for paths."""
    modifier = workflow.modifier.path_modifier
    while modifier is not None:
        yield modifier.prefix, modifier._prefix_replacements
        modifier = modifier.inner_modifier


def _runs_of(workflow):
    """The runs of one workflow by their folders of results; it may have several modules of ours."""
    return vars(workflow).setdefault("_runs_of_bqlib", {})


class Run:
    """One run of the workflow.

    Attributes
    ----------
    paths : bqlib.running.paths.Paths
    experiment : bqlib.sweep.experiment.Experiment
    scripts : Path
        Folder of the scripts of jobs.
    is_module : bool
        Whether the workflow is a module of another one.
    """

    def __init__(self, workflow, paths, experiment, scripts, is_module=False):
        self.paths, self.experiment, self.scripts = paths, experiment, scripts
        self.is_module = is_module
        self._workflow, self._rules = workflow, workflow.current_basedir
        self._session = self._scratch = self._failure = None
        self._starting = threading.Lock()
        self._settled = False
        self._told = ""  # by whom this process was told to end
        self._lost = False  # whether the run's process has ended untold
        self._code = 1  # exit code of a run that fails

    def announce(self):
        """Tell jobs of this run; in the main process, open its door.

        That has a private folder for temporary files, and removes those of killed runs.
        """
        if not self._workflow.is_main_process:
            return announce(self.paths)
        scratch.remove_left()
        _remove_left_by_snakemake()
        self._scratch = scratch.make()
        atexit.register(self._scratch.remove)
        door = self._scratch.path / "door"
        open_door(door, self._answer)
        announce(self.paths, door)

    def script(self, name):
        """The script of a job, as a rule beside ``workflow/scripts`` names it.

        Snakemake joins it to the folder of the rule, which fails for a ``LocalGitFile``: there it
        gets the whole address.
        """
        path = f"../scripts/{name}"
        if isinstance(self._rules, LocalGitFile):
            return self._rules.join(path).get_path_or_uri(secret_free=False)
        return path

    def settle(self, steps):
        """Let dates of files say what is up to date, before Snakemake plans; say what is there.

        A dry run does this too. Jobs that read the workflow again do not.

        Parameters
        ----------
        steps : iterable of bqlib.results.records.Step
        """
        if self._settled or not self._workflow.is_main_process:
            return
        self._settled = True
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
            self._answer()
            if _submits_jobs(self._workflow):
                note_name(self.paths.results, "slurm", self._workflow.scheduler._executor.run_uuid)
        except RunError as error:
            say(error)
            raise SystemExit(1) from None

    def _answer(self):
        """Path of the socket of the run's process, which starts here if it is not there.

        None where each job does its own work.
        """
        with self._starting:
            if self._session is None:
                if self._failure:
                    raise self._failure
                try:
                    name = self.experiment.name if self.is_module else ""
                    end = None if self.is_module else self._end_by_signal
                    self._session = session.start(self.paths, self._scratch, end, name)
                except RunError as error:
                    self._failure = error
                    raise
                if self.is_module:
                    self._end_with_workflow()
            return self._session.socket

    def _end_by_signal(self):
        """Let Snakemake start no further job and end, as the run's process has ended untold.

        In a workflow that is not ours, jobs fail and Snakemake does what it does then.
        """
        self._lost = True
        os.kill(os.getpid(), signal.SIGTERM)

    def _end_with_workflow(self):
        """Let a module's run end after Snakemake's last job, by its workflow's end hooks.

        Snakemake calls ``_onsuccess`` or ``_onerror`` where the importing workflow has no hooks,
        too; its own are known by now, as all Snakefiles are read before any job runs. Neither is
        called with ``--no-hooks``, or where Snakemake fails by itself: then the end of the process
        ends the run, and so it does if these names change.
        """
        workflow, running = self._workflow, self._session
        succeed, fail = workflow._onsuccess, workflow._onerror

        def success(log):
            self._tell(False, session.stop(running, self._has_all_pieces()))
            atexit.unregister(at_exit)
            succeed(log)

        def error(log):
            self._tell(True, session.stop(running))
            atexit.unregister(at_exit)
            fail(log)

        def at_exit():
            session.stop(running)

        workflow._onsuccess, workflow._onerror = success, error
        atexit.register(at_exit)

    def interrupt(self, number, frame):
        """End the run by a signal, without a traceback of each job."""
        if self._lost and number == signal.SIGTERM and not _is_scheduling(frame):
            return  # jobs fail by themselves, and then `end` says why
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
                # It takes locks which the thread that the signal interrupts may hold.
                threading.Thread(target=_cancel_jobs, args=[self._workflow], daemon=True).start()
        raise SystemExit(128 + number)

    def end(self, error=False):
        """Stop the run's process, and say in the last lines how it went and what to do next."""
        if error and _submits_jobs(self._workflow):
            _cancel_jobs(self._workflow)
        complete = not error and self._has_all_pieces()
        reason = session.stop(self._session, complete) if self._session else ""
        failed = self._tell(error, reason)
        if error or failed:
            raise SystemExit(self._code if error else SOME_FAILED)

    def _pieces(self):
        return [piece_name(c, b) for c in self.experiment.cells() for b in self.experiment.blocks()]

    def _has_all_pieces(self):
        """Whether no trial need be kept; a run may have been asked for a part of its sweep."""
        return all(Layout(self.paths.results).piece(name).exists() for name in self._pieces())

    def _tell(self, error, reason):
        """Say how the run went and what to do next; what is known of failed trials."""
        results, trials = self.paths.results, self.experiment.trial_count()
        failed = failed_trials(results, self._pieces())
        if error:
            why = "the workflow ended before it was complete" if self.is_module else ""
            say(f"stopped: {self._told or reason or why or why_jobs_fail(results)}")
            when = "to go on" if self._told or self.is_module else "once the cause is mended"
            how = " with --rerun-incomplete" if self.is_module else ""
            say(f"finished pieces are kept in {results}: {when}, give the same command again{how}")
        else:
            report = Layout(results).report
            hint = f"; read {report.name} first" if report.exists() else ""
            say(f"results are in {results}{hint}")
        if failed:
            name, seed, why = failed[0]
            say(f"{len(failed)} of {trials} trials failed")
            say(f"the first is {name.rpartition('/')[0]}, seed {seed}: {why}")
            for sentence in advice([why for _, _, why in failed], results):
                say(sentence)
        return failed


def say(text):
    """One line on the terminal."""
    with suppress(OSError):  # a closed terminal
        print(f"[bqlib] {text}", file=sys.stderr)


def _is_scheduling(frame):
    """Whether Snakemake's ``schedule`` runs, which answers a SystemExit by calling the end hooks.

    Anywhere else it would end the process at once, by the code of a signal that nobody has sent.
    """
    while frame and frame.f_code is not JobScheduler.schedule.__code__:
        frame = frame.f_back
    return frame is not None


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
