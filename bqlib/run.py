"""A run as Snakemake and its jobs see it: start it, ask for pieces, stop it.

Snakemake's start hook calls :func:`start`, each of its jobs :func:`fetch_piece`, its end hooks
:func:`stop`. The process between them is :mod:`bqlib.server`. A job is a thin client over a
private socket; it imports next to nothing, as there may be a hundred thousand of them.
"""

import contextlib
import fcntl
import hashlib
import json
import os
import shlex
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from base64 import urlsafe_b64encode
from collections import namedtuple
from pathlib import Path

from bqlib.files import is_private, write_atomically

# Environment variables, through which Snakemake's jobs know their run.
SOCKET = "BQLIB_RUN"  # path of the run's socket
SWEEP = "BQLIB_SWEEP"  # sweep file, folder of shipped targets, site file and results, as JSON
KEPT = ".trials"  # folder among the results, see bqlib.server.Kept
PRIVATE = ".private"  # folder among the results, with the certificates of a run
JOURNAL = ".jobs"  # file among the results: how each job on a batch system is cancelled
LOCK_SECONDS = 30  # for which a run waits for the end of one whose Snakemake was killed
LEAST_SPACE = 2**20  # bytes; with less, a disk is full
SOME_FAILED = 3  # exit code of a run that is complete but for failed trials
INTERRUPTED = 128 + signal.SIGINT  # exit code, as in a shell


class RunError(RuntimeError):
    """The run's process could not do what was asked; the message says why."""


class RunEndedError(RunError):
    """The run's process is gone, which Snakemake's end hook tells once for all jobs."""


# A run's process, as Snakemake holds it: a Popen, or None where each job does its own work; the
# folder of its socket; the folder of results; the lock file that keeps other runs off these; and
# an Event, set when the run is told to end.
Session = namedtuple("Session", "process folder results lock stopping")


def announce(sweep, shelf, site, results):
    """Tell this process's children of the sweep; see :func:`start` for the arguments."""
    os.environ[SWEEP] = json.dumps([str(path) for path in (sweep, shelf, site, results)])


def start(sweep, shelf, site, results):
    """Start the run's process and tell this process's children where it listens.

    Should it end before it is told to, this process gets a SIGTERM, on which Snakemake starts no
    further job and ends.

    Parameters
    ----------
    sweep, shelf : path-like
        The sweep file and the folder of shipped targets.
    site : path-like
        The site file.
    results : path-like
        The experiment's folder of results; the log goes to ``logs/run.log`` in it.

    Returns
    -------
    Session

    Raises
    ------
    RunError
        If another run works on the same results, or the process cannot start.
    """
    from bqlib.cluster import ClusterError, read_site
    from bqlib.integrity import MANIFEST, PROVENANCE

    try:
        own_work = read_site(site).system == "job"
    except ClusterError as error:
        raise RunError(str(error)) from None
    results = Path(results)
    log = results / "logs" / "run.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    held = lock(results, patience=LOCK_SECONDS)
    cancel_jobs(results)  # of a run that was killed, as they may wait in the queue still
    (results / JOURNAL).unlink(missing_ok=True)
    # They tell of what is there now, which this run will change.
    for name in (MANIFEST, PROVENANCE):
        (results / name).unlink(missing_ok=True)
    # A socket's path may have about 100 bytes, so it cannot lie among the results.
    folder = tempfile.mkdtemp(prefix="bqlib-")
    if own_work:
        return Session(None, folder, results, held, threading.Event())
    place = os.path.join(folder, "socket")
    arguments = [sweep, shelf, site, results, place, os.getpid()]
    with open(log, "ab") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "bqlib.server", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            stderr=errors,
            start_new_session=True,  # Ctrl-C is Snakemake's to handle; it then calls stop()
            pass_fds=[held.fileno()],  # the results are in use until both have ended
        )
    session = Session(process, folder, results, held, threading.Event())
    while not os.path.exists(place):
        if process.poll() is not None:
            raise RunError(stop(session))
        time.sleep(0.02)
    os.environ[SOCKET] = place
    threading.Thread(target=_watch_process, args=(session,), daemon=True).start()
    return session


def lock(results, patience=0.0):
    """The open lock file of a folder of results; it is free again when it is closed.

    `patience` is for how many seconds to wait for the end of a run whose Snakemake was killed.

    Raises
    ------
    RunError
        If another process holds it.
    """
    held = (results / ".lock").open("a+", encoding="utf-8")
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
                f"another run works on {results} ({owner or 'by whom is not known'}): wait until "
                "it ends, or give the sweep another name"
            ) from None
        except OSError as error:
            held.close()
            raise RunError(
                f"{results} cannot be locked against other runs ({error.strerror}): have its file "
                "system mounted with flock, or put the results elsewhere"
            ) from None
    held.truncate(0)
    held.write(_owner(os.getpid()))
    held.flush()
    return held


def _owner(pid):
    return f"process {pid} on {socket.gethostname()}\n"


def _has_ended(owner):
    """Whether the owner of a lock was a process of this machine, and is gone."""
    import psutil

    pid = owner.split()[1] if owner else ""
    return owner == _owner(pid).strip() and not psutil.pid_exists(int(pid))


def _watch_process(session):
    session.process.wait()
    if not session.stopping.is_set():
        os.kill(os.getpid(), signal.SIGTERM)


def interrupt(session):
    """Tell all jobs on this machine and the run's process to end, and do not wait for them."""
    import psutil

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
        Why the run had ended before this, or an empty text.
    """
    told = session.stopping.is_set()
    session.stopping.set()
    reason = _end(session) if session.process else ""
    if told:
        reason = "interrupted"
    if complete:
        shutil.rmtree(session.results / KEPT, ignore_errors=True)
    shutil.rmtree(session.folder, ignore_errors=True)
    session.lock.close()
    return reason


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
        cancel_jobs(session.results)
        shutil.rmtree(session.results / PRIVATE, ignore_errors=True)
    with contextlib.suppress(OSError):
        return Path(session.folder, "reason").read_text(encoding="utf-8")
    if not ended_early:
        return ""
    if process.returncode < 0:
        return f"the run's process was killed (signal {-process.returncode})"
    return f"the run's process ended by itself; see {session.results}/logs/run.log"


def cancel_jobs(results):
    """Cancel what a killed process has left on the batch system."""
    with contextlib.suppress(OSError):
        if not is_private(results / JOURNAL):  # what others wrote must not be executed
            return
        for line in (results / JOURNAL).read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(shlex.split(line), capture_output=True, timeout=20)


def fetch_piece(cell, first, last, digest, piece, timing, threads=1, memory=None):
    """Have the run's process compute a piece, and write it.

    Parameters
    ----------
    cell : dict
        The fields of a :class:`bqlib.experiment.Cell`.
    first, last : int
        The block of seeds.
    digest : str
        Digest of the cell's spec, to be sure that both sides mean the same.
    piece, timing : path-like
        Files to write: the piece, and as JSON the seconds of each trial and what identifies the
        piece.
    threads : int
    memory : int, optional
        Threads and MiB of this job, for where each job does its own work.

    Raises
    ------
    RunError
        If there is no run's process, it ended, or it could not do the work.
    """
    request = {"cell": cell, "first": first, "last": last, "digest": digest}
    data, seconds = _ask(request, threads, memory)
    record = {"digest": digest, "sha256": hashlib.sha256(data).hexdigest(), **seconds}
    write_atomically(timing, json.dumps(record, indent=1).encode() + b"\n")
    write_atomically(piece, data)


def fetch_study(name, digest, threads=1, memory=None):
    """Have the run's process compute a study.

    Parameters
    ----------
    name : str
    digest : str
        Digest of the study's spec.
    threads, memory
        As in :func:`fetch_piece`.

    Returns
    -------
    list of dict of ndarray
        For each seed.

    Raises
    ------
    RunError
        If there is no run's process, it ended, or a seed failed.
    """
    from bqlib.studies.study import unpack

    data, _ = _ask({"study": name, "digest": digest}, threads, memory)
    return unpack(data)


def _ask(request, threads, memory):
    """Send the run's process a request; its answer, and what goes to a file of timings.

    Where each job does its own work, that is done here, with so many threads and MiB of memory.
    """
    place = os.environ.get(SOCKET)
    if place is None:
        from bqlib.server import answer_here

        return answer_here(*json.loads(os.environ[SWEEP]), request, threads, memory)
    head, data = b"", b""
    gone = (ConnectionError, FileNotFoundError)
    with contextlib.suppress(*gone), socket.socket(socket.AF_UNIX) as connection:
        connection.connect(place)
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile("rb") as answer:
            head = answer.readline()
            data = answer.read()
    head = json.loads(head or b"{}")
    if "error" in head:
        raise RunError(head["error"])
    if head.get("size") != len(data):
        raise RunEndedError("the run's process ended before the work was done")
    return data, head["timing"]


def why_jobs_fail(results):
    """What may have made jobs fail, for the last lines of a run."""
    if shutil.disk_usage(results).free < LEAST_SPACE:
        return f"the disk that holds {results} is full"
    return "a job failed, see above"


def check_results_folder(results):
    """Refuse to run into a folder that cannot be written, or that another schema version wrote.

    Raises
    ------
    RunError
    """
    from bqlib.schema import SCHEMA_VERSION

    results = Path(results)
    existing = next(path for path in (results, *results.absolute().parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise RunError(
            f"results would go to {results}, but {existing} is not a folder that can be written: "
            "change its permissions, or run from another folder"
        )
    try:
        text = (results / "curves.zarr" / "zarr.json").read_text(encoding="utf-8")
        version = json.loads(text)["attributes"].get("schema_version")
    except (OSError, ValueError, KeyError):
        return  # nothing there, or what gathering will replace
    if version != SCHEMA_VERSION:
        raise RunError(
            f"{results} was written with schema version {version}, this bqlib writes version "
            f"{SCHEMA_VERSION}: move that folder away, or give the sweep another name"
        )


def check_science(results, experiment, sweep, shelf):
    """Refuse to run into results of another sweep or other code that Snakemake would keep.

    It makes anew what it knows to be outdated. Of files that came from elsewhere it knows nothing.

    Parameters
    ----------
    results : path-like
        The experiment's folder, as Snakemake names it.
    experiment : bqlib.experiment.Experiment
    sweep, shelf : path-like
        Its file, and the folder of shipped targets.

    Raises
    ------
    RunError
    """
    from bqlib.integrity import outdated

    strange = [
        path for path in outdated(results, experiment) if not _known_to_snakemake(results / path)
    ]
    if strange:
        command = ["bqlib", "retry", "--sweep", str(sweep), str(results)]
        if (Path(sweep).parent / "targets").resolve() != Path(shelf).resolve():
            command[4:4] = ["--shelf", os.path.relpath(shelf)]
        raise RunError(
            f"{results} holds {len(strange)} files of another sweep or of other code, which "
            f"Snakemake did not make here; the first is {strange[0]}. To keep them, give the sweep "
            f"another name; to have them made anew: {shlex.join(command)}"
        )


def _known_to_snakemake(path):
    """Whether Snakemake has a record of how an output was made."""
    name = urlsafe_b64encode(str(path).encode()).decode()
    *folders, last = (name[i : i + 254] for i in range(0, len(name), 254))
    place = Path(".snakemake", "metadata", *("@" + folder for folder in folders), last)
    return place.exists()


@contextlib.contextmanager
def logged(path):
    """Send what a job prints to its log, and show only one line of an error on the terminal.

    A job that is told to end does so without a word, and leaves no half-written files.
    """
    terminal = sys.stderr
    before = signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(128 + number))
    log = open(path, "w", encoding="utf-8")  # noqa: SIM115, as closing it may fail
    with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
        try:
            yield
        except Exception as error:
            with contextlib.suppress(OSError):  # the disk may be full
                traceback.print_exc(file=log)
            if not isinstance(error, RunEndedError):
                print(f"[bqlib] {type(error).__name__}: {error}", file=terminal, flush=True)
            raise SystemExit(1) from None
        finally:
            signal.signal(signal.SIGTERM, before)
            with contextlib.suppress(OSError):
                log.close()
