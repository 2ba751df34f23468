"""A run inside Snakemake, from its start hook to its end hooks.

Where the workflow is a module of another one, Snakemake calls no hooks of it, and signals are that
workflow's to answer: then the run starts when its first job asks for it, and ends with the process.

This room and :mod:`bqlib.running.internals` are the ones that touch Snakemake's private parts. Each
place says what it relies on and what breaks without it.
"""

import atexit
import gc
import math
import os
import shutil
import signal
import sys
import threading
from functools import cached_property
from pathlib import Path

from snakemake.common.configfile import load_configfile
from snakemake.logging import logger
from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake.sourcecache import LocalGitFile, LocalSourceFile

from bqlib.results.blocks import blocks_of
from bqlib.results.layout import (
    RESULTS,
    RUN_LOG,
    Layout,
    head,
    job_name_of_study,
    path_of_study,
    piece_name,
)
from bqlib.results.records import settle
from bqlib.results.retry import advice, study_is_there
from bqlib.results.timings import failed_trials, is_whole
from bqlib.running import cost, scratch, session
from bqlib.running.door import open_door
from bqlib.running.errors import ClusterError, RunError
from bqlib.running.internals import (
    UP_TO_DATE,
    cancel_jobs,
    deletes_all,
    end_timers,
    find_interpreter_with_spaces,
    is_dry_run,
    is_on_top,
    is_remade,
    is_scheduling,
    is_suspected,
    may_join_jobs,
    quieten,
    remove_left_temporary_folders,
    settings_of_profiles,
    submits_jobs,
    trust,
    when_nothing_is_to_be_done,
)
from bqlib.running.journal import note_name
from bqlib.running.module import SWEEP, refuse_another, refuse_moved_outputs, stated_sweep
from bqlib.running.paths import Paths, announce
from bqlib.running.preflight import check_origin, check_results_folder, why_jobs_fail
from bqlib.running.progress import note, say
from bqlib.running.settings import default_sweep, refuse_settings, site_file
from bqlib.running.site import read_site
from bqlib.sweep import shipped
from bqlib.sweep.file import load, shelf_of
from bqlib.sweep.words import SweepError

ENDINGS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
PIECES_A_JOB, MOST_BATCHES = 20, 500  # more take Snakemake long, as it keeps a rule for each
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
    find_interpreter_with_spaces()
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
            local = isinstance(workflow.current_basedir, LocalSourceFile)
            check_origin(paths, experiment, lambda path: is_remade(path, local))
            read_site(paths.site)
    except (SweepError, RunError, ClusterError) as error:
        print(error, file=sys.stderr)
        raise SystemExit(1) from None
    run = Run(workflow, paths, experiment, project / "workflow" / "scripts", is_module)
    _runs_of(workflow)[paths.results] = run
    run.announce()
    if is_module:
        return run
    quieten(logger)
    if workflow.is_main_process:
        when_nothing_is_to_be_done(logger, run.end_at_once)
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
    if workflow.is_main_process and is_on_top(workflow, project):
        refuse_settings(workflow.config_settings.config, workflow.config_settings.configfiles)
    site = site_file(config, settings_of_profiles, project)
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
    of_profiles = settings_of_profiles if config is whole and SWEEP not in config else dict
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
        self._settled, self._batches = False, None
        self._unnoted = []  # what was said before the run's process made a log
        self._told = ""  # by whom this process was told to end
        self._lost = False  # whether the run's process has ended untold
        self._code = 1  # exit code of a run that fails

    def announce(self):
        """Tell jobs of this run; in the main process, open its door.

        That has a private folder for temporary files, and removes those of killed runs.
        """
        if not self._workflow.is_main_process:
            return announce(self.paths)
        atexit.register(gc.freeze)  # or Python looks for cycles among all objects, for a second
        scratch.remove_left()
        remove_left_temporary_folders()
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

    def batches(self):
        """Name of a job to the pieces that it makes, which are not there: a process is worth many.

        None where jobs do their own work, as the size of a job is the user's to choose then; in
        processes that read the workflow again for one job; and where the command asks for the rule
        of single pieces, as by ``--until piece``.
        """
        if self._batches is None:
            joined = self._workflow.is_main_process and may_join_jobs("piece")
            if not joined or read_site(self.paths.site).system == "job":
                self._batches = {}
            else:
                pieces = [block.piece for block in self._blocks if not block.there]
                share = math.ceil(len(pieces) / (self._workflow._cores or 1))
                size = max(min(share, PIECES_A_JOB), math.ceil(len(pieces) / MOST_BATCHES))
                starts = range(0, len(pieces), size or 1)
                self._batches = {
                    f"pieces_{number}": pieces[start : start + size]
                    for number, start in enumerate(starts, 1)
                }
        return self._batches

    @cached_property
    def _blocks(self):
        return list(blocks_of(self.experiment, self.paths.results))

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
        at, blocks = Layout(self.paths.results), self._blocks
        studies = [self.experiment.study(name) for name in self.experiment.studies]
        pieces = [block.piece for block in blocks if block.there]
        names = [study.name for study in studies if study_is_there(at.folder, study)]
        finished = [(at.piece(piece), at.timing(piece)) for piece in pieces]
        finished += [(head(at.study(n)), at.benchmark(job_name_of_study(n))) for n in names]
        outdated = [at.piece(block.piece) for block in blocks if block.outdated]
        settle(at.folder, finished, outdated, steps, self.scripts.glob("*.py"))
        for piece in pieces:
            suspected = [path for path in (at.piece(piece), at.timing(piece)) if is_suspected(path)]
            if suspected and is_whole(at.folder, piece):
                for path in suspected:
                    trust(path)
        taken = sum(len(block.seconds) for block in blocks if not block.there)
        if taken:
            left = sum(len(block.missing) for block in blocks)
            self._say(
                f"{taken} finished trials are taken over into new pieces, {left} are to compute"
            )
        lost = [block.piece for block in blocks if block.outdated]
        lost += [
            path_of_study(study.name)
            for study in studies
            if head(at.study(study.name)).exists() and study.name not in names
        ]
        if lost:
            self._say(
                f"{len(lost)} pieces or studies are of another sweep or of other code, and are "
                f"replaced where the run makes them, the first is {lost[0]}: to keep them, give "
                "the sweep another name"
            )
        if deletes_all():
            stores = (at.curves, at.rates, at.function_errors, *(at.study(s.name) for s in studies))
            atexit.register(_remove_without_head, stores)
        if is_dry_run():
            for line in cost.totals(cost.plan(self.experiment, at.folder)):
                self._say(line)

    def start(self):
        """Start the run's process; ends this process where that cannot be."""
        gc.freeze()
        gc.enable()  # which `start` has put off
        try:
            self._answer()
            if submits_jobs(self._workflow):
                note_name(self.paths.results, "slurm", self._workflow.scheduler._executor.run_uuid)
        except RunError as error:
            self._say(error)
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
                    digest = self.experiment.digest
                    self._session = session.start(self.paths, self._scratch, digest, end, name)
                except RunError as error:
                    self._failure = error
                    raise
                self._note()
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
            self._tell(True, session.stop(running), log)
            atexit.unregister(at_exit)
            fail(log)

        def at_exit():
            session.stop(running)

        workflow._onsuccess, workflow._onerror = success, error
        atexit.register(at_exit)

    def interrupt(self, number, frame):
        """End the run by a signal, without a traceback of each job."""
        if self._lost and number == signal.SIGTERM and not is_scheduling(frame):
            return  # jobs fail by themselves, and then `end` says why
        for each in ENDINGS:
            signal.signal(each, signal.SIG_IGN)  # a second one must not break into the end
        if not (self._session and session.has_ended(self._session)):  # which sends a signal, too
            name = signal.Signals(number).name
            self._told = "interrupted" if number == signal.SIGINT else f"told to end by {name}"
            self._code = 128 + number
            self._say(f"{self._told}: ending what runs")
        logger.setLevel("CRITICAL")  # or Snakemake reports each job that ends
        if self._session:
            session.interrupt(self._session)
            if submits_jobs(self._workflow):
                self._say("Slurm's jobs are cancelled; Snakemake may take three minutes to notice")
                # It takes locks which the thread that the signal interrupts may hold.
                threading.Thread(target=cancel_jobs, args=[self._workflow], daemon=True).start()
        raise SystemExit(128 + number)

    def _say(self, text):
        """Say a line, which goes to the log of the run as well, if there is one."""
        say(text)
        self._unnoted.append(text)
        if self._session:
            self._note()

    def _note(self):
        """Put what was said into the log."""
        for text in self._unnoted:
            note(Layout(self.paths.results).log(RUN_LOG), text)
        self._unnoted = []

    def end(self, error=False, logs=()):
        """Stop the run's process, and say in the last lines how it went and what to do next.

        Parameters
        ----------
        error : bool
        logs : iterable of path-like
            Snakemake's own.
        """
        if error and submits_jobs(self._workflow):
            cancel_jobs(self._workflow)
        end_timers()
        complete = not error and self._has_all_pieces()
        reason = session.stop(self._session, complete) if self._session else ""
        failed = self._tell(error, reason, logs)
        if error or failed:
            raise SystemExit(self._code if error else SOME_FAILED)

    def end_at_once(self):
        """Where nothing is to be done, say which trials failed, and end as their run did."""
        if failed := failed_trials(self.paths.results, self._pieces()):
            self._say(UP_TO_DATE)
            self._tell_failed(failed)
            raise SystemExit(SOME_FAILED)

    def _pieces(self):
        return [piece_name(c, b) for c in self.experiment.cells() for b in self.experiment.blocks()]

    def _has_all_pieces(self):
        """Whether no trial need be kept; a run may have been asked for a part of its sweep."""
        return all(Layout(self.paths.results).piece(name).exists() for name in self._pieces())

    def _tell(self, error, reason, logs=()):
        """Say how the run went and what to do next; what is known of failed trials."""
        results = self.paths.results
        failed = failed_trials(results, self._pieces())
        if error:
            why = "the workflow ended before it was complete" if self.is_module else ""
            self._say(f"stopped: {self._told or reason or why or why_jobs_fail(results)}")
            when = "to go on" if self._told or self.is_module else "once the cause is mended"
            how = " with --rerun-incomplete" if self.is_module else ""
            if logs and not self._told:
                self._say(f"Snakemake's log is {', '.join(map(os.path.relpath, logs))}")
            self._say(
                f"finished pieces are kept in {results}: {when}, give the same command again{how}"
            )
        else:
            report = Layout(results).report
            hint = f"; read {report.name} first" if report.exists() else ""
            self._say(f"results are in {results}{hint}")
        if failed:
            self._tell_failed(failed)
        return failed

    def _tell_failed(self, failed):
        name, seed, why = failed[0]
        self._say(f"{len(failed)} of {self.experiment.trial_count()} trials failed")
        self._say(f"the first is {name.rpartition('/')[0]}, seed {seed}: {why}")
        for sentence in advice([why for _, _, why in failed], self.paths.results):
            self._say(sentence)


def _remove_without_head(stores):
    """Remove what is left of stores whose heads Snakemake has deleted."""
    for store in stores:
        if store.is_dir() and not head(store).exists():
            shutil.rmtree(store, ignore_errors=True)
