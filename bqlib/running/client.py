"""A Snakemake job as a thin client: it asks for its piece or study and writes the answer."""

import contextlib
import hashlib
import json
import os
import signal
import socket
import sys
import threading
import time
import traceback
from dataclasses import dataclass
from pathlib import Path

from bqlib.results.files import open_itself, write_atomically
from bqlib.running.door import ask
from bqlib.running.errors import RunEndedError, RunError
from bqlib.running.paths import SNAKEMAKE, Paths, announced, of_socket

WATCH_SECONDS = 1  # between two looks whether Snakemake is there
ENDING_SECONDS = 5  # for a job to end once it is gone


@dataclass(frozen=True)
class Joined:
    """The run that a job belongs to.

    Attributes
    ----------
    paths : bqlib.running.paths.Paths
    socket : str or None
        Of the run's process. None where this job does its own work: where the site says so, and on
        other machines than the run's process.
    """

    paths: Paths
    socket: str | None


def join(output):
    """Join the run of a job, by one of its outputs; None if there is no such run.

    Raises
    ------
    RunError
        If the run's process cannot start.
    RunEndedError
        If the run has ended.
    """
    run = announced(output)
    if run is None:
        return None
    paths = Paths.from_json(run.paths)
    try:
        return Joined(paths, ask(run.door) if run.door else None)
    except RunEndedError:
        from bqlib.running.site import read_site  # loads yaml, 0.1 s, which other jobs do without

        # A batch job may have other temporary files than its machine, and needs no run's process.
        if read_site(paths.site).system != "job":
            raise
        return Joined(paths, None)


def fetch_piece(run, cell, first, last, digest, piece, timing, threads=1, memory=None):
    """Have the run's process compute a piece, and write it.

    Parameters
    ----------
    run : Joined
    cell : dict
        The fields of a :class:`bqlib.sweep.spec.Cell`.
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
        If the run's process ended, or it could not do the work.
    """
    request = {"cell": cell, "first": first, "last": last, "digest": digest}
    data, seconds = _ask(run, request, threads, memory)
    record = {"digest": digest, "sha256": hashlib.sha256(data).hexdigest(), **seconds}
    write_atomically(timing, json.dumps(record, indent=1).encode() + b"\n")
    write_atomically(piece, data)


def fetch_study(run, name, digest, threads=1, memory=None):
    """Have the run's process compute a study.

    Parameters
    ----------
    run : Joined
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
        If the run's process ended, or a seed failed.
    """
    from bqlib.studies.study import unpack  # loads numpy, 0.2 s, which pieces do without

    data, _ = _ask(run, {"study": name, "digest": digest}, threads, memory)
    return unpack(data)


def _ask(run, request, threads, memory):
    """The answer to a request, and what goes to a file of timings.

    The run's process gives it; where each job does its own work, this process does, with so many
    threads and MiB of memory.
    """
    if run.socket is not None:
        return _ask_the_run(run.socket, request)
    from bqlib.running.here import answer_here  # loads Dask, 1.3 s, which other jobs do without

    return answer_here(run.paths, request, threads, memory)


def _ask_the_run(path, request):
    """The answer of the run's process, through its socket at `path`."""
    head, data = b"", b""
    gone = (ConnectionError, FileNotFoundError)
    with contextlib.suppress(*gone), socket.socket(socket.AF_UNIX) as connection:
        with of_socket(path) as place:
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


@contextlib.contextmanager
def logged(path, output=None):
    """Join a job's run, send what the job prints to its log, show one line of an error to people.

    A job that is told to end, or whose Snakemake was killed, does so without a word, and leaves no
    half-written files.

    Parameters
    ----------
    path : path-like
        The log.
    output : path-like, optional
        A file that the job makes, which tells its run. None for a job without one.

    Yields
    ------
    Joined or None
    """
    terminal = sys.stderr
    threading.Thread(target=_end_with_snakemake, daemon=True).start()
    # Ctrl-C reaches jobs where the workflow is a module of another one.
    heard = [n for n in (signal.SIGTERM, signal.SIGINT) if signal.getsignal(n) != signal.SIG_IGN]
    before = {n: signal.signal(n, lambda number, frame: sys.exit(128 + number)) for n in heard}
    # Not by `with`, as closing it may fail.
    log = open(path, "w", encoding="utf-8", opener=open_itself)  # noqa: SIM115
    with contextlib.redirect_stdout(log), contextlib.redirect_stderr(log):
        try:
            yield output and join(output)
        except Exception as error:
            with contextlib.suppress(OSError):  # the disk may be full
                traceback.print_exc(file=log)
            if not isinstance(error, RunEndedError):
                print(f"[bqlib] {type(error).__name__}: {error}", file=terminal, flush=True)
            raise SystemExit(1) from None
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            with contextlib.suppress(OSError):
                log.close()


def _end_with_snakemake():
    """End this process and its children soon after its Snakemake, or a shell between, is gone.

    Whoever resumes the run would meet a job that writes the same files.
    """
    snakemake = int(os.environ.get(SNAKEMAKE, 0))
    if snakemake not in _parents():
        return  # started in another way, as in a container
    while snakemake in _parents():
        time.sleep(WATCH_SECONDS)
    import psutil  # 0.1 s, which other jobs do without

    for child in psutil.Process().children(recursive=True):
        with contextlib.suppress(psutil.NoSuchProcess):
            child.kill()
    os.kill(os.getpid(), signal.SIGTERM)
    time.sleep(ENDING_SECONDS)
    os._exit(1)  # where compiled code keeps it from hearing of that


def _parents():
    """Numbers of the processes above this one, as far as the system tells them."""
    numbers = [os.getppid()]
    with contextlib.suppress(OSError):  # it has ended, or there is no such folder
        while numbers[-1] > 1:
            about = Path(f"/proc/{numbers[-1]}/stat").read_text(encoding="utf-8", errors="replace")
            numbers.append(int(about.rpartition(")")[2].split()[1]))  # after its name and state
    return numbers
