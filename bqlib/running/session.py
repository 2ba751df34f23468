"""A run from start to end: its lock and its process."""

import contextlib
import fcntl
import json
import os
import re
import shutil
import signal
import socket
import subprocess
import sys
import threading
import time
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

import psutil

from bqlib.results.files import open_itself, remove_unfinished
from bqlib.results.layout import RUN_LOG, Layout
from bqlib.running.errors import ClusterError, RunError
from bqlib.running.journal import cancel_jobs, forget_jobs
from bqlib.running.scratch import Scratch
from bqlib.running.site import read_site

LOCK_SECONDS = 30  # for which a run waits for the end of one whose Snakemake was killed


@dataclass(frozen=True)
class Session:
    """A run's process, as Snakemake holds it.

    Attributes
    ----------
    process : subprocess.Popen or None
        None where each job does its own work.
    scratch : bqlib.running.scratch.Scratch
        Private folder, with the socket of the process.
    results : Layout
    lock : file
        Keeps other runs off the results while it is open.
    stopping : threading.Event
        Set when the run is told to end.
    socket : str or None
        Where the process is asked for work.
    """

    process: subprocess.Popen | None
    scratch: Scratch
    results: Layout
    lock: TextIO
    stopping: threading.Event
    socket: str | None = None


def start(paths, scratch, digest, on_end=None, name=""):
    """Start the run's process.

    Parameters
    ----------
    paths : bqlib.running.paths.Paths
        Its log goes to ``logs/run.log`` among the results.
    scratch : bqlib.running.scratch.Scratch
        Private folder of this process; the end of the session removes it.
    digest : str
        Of the sweep as this process has read it, see
        :attr:`bqlib.sweep.experiment.Experiment.digest`.
    on_end : callable, optional
        Called, in a thread, should the run's process end before it is told to.
    name : str, optional
        By which the process speaks of its run, where there may be several.

    Returns
    -------
    Session

    Raises
    ------
    RunError
        If another run works on the same results, or the process cannot start.
    """
    try:
        own_work = read_site(paths.site).system == "job"
    except ClusterError as error:
        raise RunError(str(error)) from None
    results = Layout(paths.results)
    log = results.log(RUN_LOG)
    log.parent.mkdir(parents=True, exist_ok=True)
    held = lock(results.folder, patience=LOCK_SECONDS)
    # Of a run that was killed: they may still wait in the queue. Its journal stays, as one that was
    # just being submitted may come later; the end of this run cancels it.
    cancel_jobs(results.folder)
    # They describe what is there now, and the run before; this run will change both.
    for path in (results.manifest, results.provenance, results.status):
        path.unlink(missing_ok=True)
    remove_unfinished(results.folder)
    if own_work:
        return Session(None, scratch, results, held, threading.Event())
    path = str(scratch.path / "socket")
    task = {"paths": paths.as_json(), "socket": path, "parent": os.getpid()}
    task |= {"digest": digest, "name": name}
    try:
        errors = open(log, "ab", opener=open_itself)  # noqa: SIM115
    except OSError as error:
        held.close()
        raise RunError(f"{log} cannot be written: {error.strerror}") from None
    with errors:
        process = subprocess.Popen(
            # Nothing is imported from the working directory.
            [sys.executable, "-P", "-m", "bqlib.running.server", json.dumps(task)],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            stderr=errors,
            start_new_session=True,  # Ctrl-C is Snakemake's to handle; it then calls stop()
            # Results and private folder are in use until both have ended.
            pass_fds=[held.fileno(), scratch.lock.fileno()],
        )
    session = Session(process, scratch, results, held, threading.Event(), path)
    while not os.path.exists(path):
        if process.poll() is not None:
            raise RunError(stop(session))
        time.sleep(0.02)
    if on_end:
        threading.Thread(target=_watch_process, args=(session, on_end), daemon=True).start()
    return session


def lock(results, patience=0.0):
    """The open lock file of a folder of results; it is free again when it is closed.

    `patience` is for how many seconds to wait for the end of a run whose Snakemake was killed.

    Raises
    ------
    RunError
        If another process holds it, or it cannot be opened.
    """
    path = Layout(results).lock
    try:
        held = open(path, "a+", encoding="utf-8", opener=open_itself)  # noqa: SIM115
    except OSError as error:
        raise RunError(f"{path} cannot be opened: {error.strerror}") from None
    end = time.monotonic() + patience
    while True:
        try:
            fcntl.flock(held, fcntl.LOCK_EX | fcntl.LOCK_NB)
            break
        except BlockingIOError:
            held.seek(0)
            owner = held.read().strip()
            if _has_ended(owner) and time.monotonic() < end:
                time.sleep(0.2)
                continue
            held.close()
            raise RunError(
                f"another run works on {results} ({owner or 'its process is unknown'}): wait until "
                "it ends, or give the sweep another name"
            ) from None
        except OSError as error:
            held.close()
            raise RunError(
                f"{results} cannot be locked against other runs ({error.strerror}): mount its file "
                "system with flock, or put the results on another disk"
            ) from None
    held.truncate(0)
    held.write(_owner(os.getpid()))
    held.flush()
    return held


def owner_of(results):
    """Who holds the lock of a folder of results, such as "process 7 on node1"; empty if nobody.

    Raises
    ------
    RunError
        If the lock cannot be looked at.
    """
    path = Layout(results).lock
    try:
        with open(path, encoding="utf-8", errors="replace", opener=open_itself) as held:
            try:
                fcntl.flock(held, fcntl.LOCK_SH | fcntl.LOCK_NB)
                return ""
            except BlockingIOError:
                found = re.fullmatch(r"process \d{1,9} on [\w.-]{1,255}", held.read(300).strip())
                return found[0] if found else "by whom is unknown"
    except FileNotFoundError:
        return ""
    except OSError as error:
        raise RunError(f"{path} cannot be looked at: {error.strerror}") from None


def _owner(pid):
    return f"process {pid} on {socket.gethostname()}\n"


def _has_ended(owner):
    """Whether the owner of a lock was a process of this machine, and is gone."""
    found = re.fullmatch(r"process (\d{1,9}) on .+", owner)
    here = found is not None and owner == _owner(found[1]).strip()
    return here and not psutil.pid_exists(int(found[1]))


def _watch_process(session, on_end):
    session.process.wait()
    if not session.stopping.is_set():
        on_end()


def has_ended(session):
    """Whether the run's process has ended, though nobody told it to."""
    ended = session.process is not None and session.process.poll() is not None
    return ended and not session.stopping.is_set()


def interrupt(session):
    """Tell all jobs on this machine and the run's process to end, and do not wait for them."""
    if not has_ended(session):
        session.stopping.set()
    if session.process is None:  # jobs are elsewhere, and Snakemake's to end
        return
    jobs = {job.pid: job for job in psutil.Process().children(recursive=True)}
    with contextlib.suppress(psutil.NoSuchProcess):  # it has ended
        the_run = psutil.Process(session.process.pid)
        for process in (the_run, *the_run.children(recursive=True)):
            jobs.pop(process.pid, None)
    for job in jobs.values():
        with contextlib.suppress(psutil.NoSuchProcess):
            job.terminate()
    session.process.terminate()


def stop(session, complete=False):
    """End the run's process and its cluster; return when they are gone.

    Parameters
    ----------
    session : Session
    complete : bool
        Whether the run is, and its trials need not be kept for another one.

    Returns
    -------
    str
        Why the run's process had ended though nobody told it to, or an empty text.
    """
    told = session.stopping.is_set()
    session.stopping.set()
    reason = _end(session) if session.process else ""
    forget_jobs(session.results.folder)
    if complete:
        shutil.rmtree(session.results.kept, ignore_errors=True)
    session.scratch.remove()
    session.lock.close()
    return "" if told else reason


def _end(session):
    """End the process of a session; why it had ended before this, or an empty text."""
    process = session.process
    ended_early = process.poll() is not None
    process.terminate()
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    if process.returncode < 0:  # it could not do it itself
        shutil.rmtree(session.results.private, ignore_errors=True)
    with contextlib.suppress(OSError):
        return Path(session.scratch.path, "reason").read_text(encoding="utf-8")
    if not ended_early:
        return ""
    if process.returncode in (0, -signal.SIGINT, -signal.SIGTERM):
        return "the run's process was told to end, by a signal from outside"
    if process.returncode < 0:
        return f"the run's process was killed (signal {-process.returncode})"
    log = session.results.log(RUN_LOG)
    return f"the run's process ended by itself{_last_error(log)}; see {log}"


def _last_error(log):
    """The last error that a log tells, such as one of a library that could not be loaded."""
    with contextlib.suppress(OSError):
        text = log.read_text(encoding="utf-8", errors="replace")
        errors = re.findall(r"^[\w.]*(?:Error|Exception): .+", text, re.M)
        return f": {errors[-1]}" if errors else ""
    return ""
