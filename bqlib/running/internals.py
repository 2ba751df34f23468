"""What Snakemake does not offer: the rooms of a run touch its private parts here alone.

Each function says what it relies on and what breaks without it; all were checked on Snakemake
9.27.1 with its plug-in for Slurm 2.8.0.
"""

import logging
import os
import re
import shlex
import stat
import subprocess
import sys
import tempfile
import threading
import time
from base64 import urlsafe_b64encode
from collections import Counter
from contextlib import suppress
from pathlib import Path

import psutil
from snakemake.cli import args_to_api, parse_args, parse_config
from snakemake.logging import LogEvent
from snakemake.scheduling.job_scheduler import JobScheduler
from snakemake.workflow import NOTHING_TO_BE_DONE_MSG

from bqlib.results.layout import PIECE
from bqlib.running.alive import is_run
from bqlib.running.progress import CLEAR, may_stand, say
from bqlib.sweep import shipped

# Options of Snakemake with which it runs nothing.
OTHERS = (
    "summary",
    "detailed_summary",
    "lint",
    "unlock",
    "delete_all_output",
    "delete_temp_output",
    "cleanup_metadata",
    "cleanup_shadow",
    "list_rules",
    "list_target_rules",
    "list_changes",
    "list_input_changes",
    "list_params_changes",
    "list_untracked",
    "archive",
    "dag",
    "rulegraph",
    "filegraph",
    "d3dag",
    "print_compilation",
    "report",
    "containerize",
    "generate_unit_tests",
    "conda_cleanup_envs",
    "conda_create_envs_only",
    "container_cleanup_images",
)
# Rules whose jobs come after all pieces, and what they do.
STEPS = {
    "gather": "gathering the curves",
    "rates": "fitting rates",
    "function_errors": "gathering errors of functions",
    "figures": "drawing figures",
    "claims": "judging claims",
    "report": "writing the report",
    "manifest": "writing the manifest",
}
UP_TO_DATE = "nothing to be done: all is up to date"


def is_scheduling(frame):
    """Whether Snakemake's ``schedule`` runs, which answers a SystemExit by calling the end hooks.

    Anywhere else it would end the process at once, by the code of a signal that nobody has sent.
    """
    while frame and frame.f_code is not JobScheduler.schedule.__code__:
        frame = frame.f_back
    return frame is not None


def end_timers():
    """End the timers of Snakemake's scheduler, for which the end of this process would wait.

    Whenever it starts jobs, it lets a ``threading.Timer`` look for more of them a second later. If
    that changes, a run ends up to a second later.
    """
    for thread in threading.enumerate():
        function = thread.function if isinstance(thread, threading.Timer) else None
        if getattr(function, "__module__", None) == JobScheduler.__module__:
            thread.cancel()


def find_interpreter_with_spaces():
    """Let Snakemake find an interpreter whose path has spaces through PATH.

    It writes ``sys.executable`` into the commands of scripts without quotes: without this no script
    starts where the path needs them.
    """
    if sys.executable != shlex.quote(sys.executable):
        folders = [os.path.dirname(sys.executable), *os.get_exec_path()]
        os.environ.update(PATH=os.pathsep.join(folders))
        sys.executable = "python"


def remove_left_temporary_folders():
    """Remove the empty temporary folders that killed Snakemakes of this user have left.

    Each makes one as it starts and hardly uses it. Those of Snakemakes that live are younger than
    the oldest of these.
    """
    names = "TMPDIR", "TEMP", "TMP"  # by which a process finds its temporary folder
    alive = [
        process.info["create_time"]
        for process in psutil.process_iter(["create_time", "cmdline", "environ"])
        if is_run(process.info["cmdline"] or [])
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


def is_on_top(workflow, project):
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


def settings_of_profiles():
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


def submits_jobs(workflow):
    """Whether Snakemake's jobs are Slurm's: its plug-in gives them one name, ``run_uuid``."""
    return hasattr(workflow.scheduler._executor, "run_uuid")


def cancel_jobs(workflow):
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


def is_remade(path, local):
    """Whether Snakemake makes an outdated output again, by its record of how that was made.

    If the place of records changes, every file seems to come from elsewhere, and reruns are
    refused. So are they for a workflow that Snakemake has fetched from an address, which is not
    `local`: pieces are made again by the dates of scripts, and there it does not look at these.
    """
    return _record("metadata", path).exists() and (local or not str(path).endswith(PIECE))


def is_suspected(path):
    """Whether Snakemake makes an output again because its job may have been killed."""
    return _record("incomplete", path).exists()


def trust(path):
    """Let Snakemake take an output for complete, which :func:`is_suspected`."""
    _record("incomplete", path).unlink(missing_ok=True)


def _record(kind, path):
    """Where Snakemake keeps a record of an output.

    Below ``.snakemake``: its name is the path in base64, in parts of 254 letters.
    """
    name = urlsafe_b64encode(str(path).encode()).decode()
    *folders, last = (name[i : i + 254] for i in range(0, len(name), 254))
    return Path(".snakemake", kind, *("@" + folder for folder in folders), last)


def command():
    """Snakemake's command as it was parsed; None where Snakemake was called from Python.

    It is what the caller ``args_to_api`` has as ``args``. It cannot be parsed once more, as
    Snakemake has changed to its ``--directory``, and profiles may have relative paths. If that
    changes, jobs make one piece each, and the screen is Snakemake's.
    """
    frame = sys._getframe()
    while frame and frame.f_code is not args_to_api.__code__:
        frame = frame.f_back
    return frame and frame.f_locals["args"]


def may_join_jobs(rule):
    """Whether jobs of a rule may be made one: they run on this machine, and nobody names the rule.

    No, where Snakemake was called from Python.
    """
    args = command()
    if args is None:
        return False
    named = (args.targets, args.until, args.omit_from, args.forcerun, args.allowed_rules)
    return args.executor in (None, "local") and not any(rule in (names or ()) for names in named)


def is_dry_run():
    """Whether Snakemake only plans, and is to say what it would do."""
    args = command()
    return args is not None and args.dryrun and _is_run(args)


def deletes_all():
    """Whether Snakemake is to delete all outputs."""
    args = command()
    return args is not None and args.delete_all_output and not args.dryrun


def _is_run(args):
    """Whether a command asks for a run, or what it would do: others print what was asked for."""
    return not any(getattr(args, name, None) for name in OTHERS)


def quieten(log):
    """Leave the screen to the run: of what Snakemake says, its errors and what is to be done.

    With ``--verbose`` it says all that ``quiet`` of the profile lets through. Its log, below
    ``.snakemake/log``, has that in any case.
    Handlers of its `log` for the screen have the name ``DefaultStreamHandler``. If that changes, it
    says all.
    """
    args = command()
    if args is None or args.verbose or not _is_run(args):
        return
    for handler in log.handlers:
        if handler.name == "DefaultStreamHandler":
            # Before Snakemake's own, which our profiles let drop what it tells of jobs.
            handler.filters.insert(0, _Jobs(handler, args.dryrun))
            handler.addFilter(_Screen(handler))
            handler.nocolor = handler.nocolor or bool(os.environ.get("NO_COLOR"))


def when_nothing_is_to_be_done(log, tell):
    """Call `tell` where a run has nothing to do: Snakemake calls no hook then.

    It logs ``NOTHING_TO_BE_DONE_MSG``, from the thread that plans, so that `tell` may end the run.
    If that changes, nothing is told.
    """
    args = command()
    if args is None or args.dryrun or not _is_run(args):
        return

    def told(record):
        if record.getMessage() == NOTHING_TO_BE_DONE_MSG:
            tell()
        return True

    log.addFilter(told)


class _Jobs(logging.Filter):
    """Of what Snakemake tells of jobs, which of those after all pieces starts, and which failed.

    Of one that failed, its log: the job itself has said why.
    """

    def __init__(self, handler, dry):
        super().__init__()
        self._handler, self._dry = handler, dry

    def filter(self, record):
        event = getattr(record, "event", None)
        if event == LogEvent.JOB_INFO and record.rule_name in STEPS and not self._dry:
            say(STEPS[record.rule_name], self._handler.stream)
        if event != LogEvent.JOB_ERROR:
            return True
        where = f": see {', '.join(map(str, record.log))}" if record.log else ""
        say(f"a job of {record.rule_name} failed{where}", self._handler.stream)
        return False


class _Screen(logging.Filter):
    """Of what Snakemake logs, what goes to a screen on which a line may stand."""

    def __init__(self, handler):
        super().__init__()
        self._handler, self._stats = handler, None

    def filter(self, record):
        event, stream = getattr(record, "event", None), self._handler.stream
        if event == LogEvent.RUN_INFO:
            if record.stats != self._stats:  # a dry run tells them at its end once more
                self._stats = record.stats
                told = f"jobs: {_told(record.stats)}" if record.stats["total"] else UP_TO_DATE
                say(told, stream)
            return False
        if record.levelno < logging.WARNING and record.getMessage() != NOTHING_TO_BE_DONE_MSG:
            return False
        if may_stand(stream):
            with suppress(OSError):
                stream.write(CLEAR)
        return True


def _told(stats):
    """The number of jobs of each rule; those of many pieces count among those of pieces."""
    found = Counter()
    for rule, count in stats.items():
        found["piece" if re.fullmatch(r"pieces_\d+", rule) else rule] += count
    return ", ".join(f"{rule} {count}" for rule, count in found.items())
