"""A Snakemake job as a thin client: it asks for its piece or study and writes the answer."""

import contextlib
import gc
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
from bqlib.results.layout import PIECE, Layout
from bqlib.running.door import ask
from bqlib.running.errors import RunEndedError, RunError
from bqlib.running.paths import SNAKEMAKE, Paths, announced, of_socket
from bqlib.running.progress import say

WATCH_SECONDS = 1  # between two looks whether Snakemake is there
ENDING_SECONDS = 5  # for a job to end once it is gone
ENDED = "the run's process ended before the work was done"


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


def fetch_pieces(run, outputs, threads=1, memory=None):
    """Have the run's process compute pieces, and write each as soon as it is there.

    Beside it goes its file of timings: as JSON, the seconds of each trial and what identifies the
    piece.

    Parameters
    ----------
    run : Joined
    outputs : iterable of path-like
        Files of the results; the pieces among them are made.
    threads : int
    memory : int, optional
        Threads and MiB of this job, for where each job does its own work.

    Raises
    ------
    RunError
        If the run's process ended, or it could not do the work.
    """
    at = Layout(run.paths.results)
    own = [Path(path) for path in outputs if str(path).endswith(PIECE)]

    def take(head, data):
        name = head["piece"]
        write_atomically(at.timing(name), json.dumps(head["timing"], indent=1).encode() + b"\n")
        write_atomically(at.piece(name), data)

    names = [path.relative_to(at.pieces).as_posix() for path in own]
    _ask(run, {"pieces": names}, take, threads, memory)


def fetch_study(run, name, digest, threads=1, memory=None):
    """Have the run's process compute a study.

    Parameters
    ----------
    run : Joined
    name : str
    digest : str
        Digest of the study's spec.
    threads, memory
        As in :func:`fetch_pieces`.

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

    found = []
    _ask(
        run, {"study": name, "digest": digest}, lambda _, data: found.append(data), threads, memory
    )
    return unpack(found[0])


def _ask(run, request, take, threads, memory):
    """Have a request answered; `take(head, data)` is called with each of its answers.

    The run's process gives them; where each job does its own work, this process does, with so many
    threads and MiB of memory.
    """
    if run.socket is not None:
        return _ask_the_run(run.socket, request, take)
    from bqlib.running.here import answer_here  # loads Dask, 1.3 s, which other jobs do without

    answer_here(run.paths, request, take, threads, memory)


def _ask_the_run(path, request, take):
    """Take the answers of the run's process, through its socket at `path`."""
    with contextlib.ExitStack() as stack:
        try:
            connection = stack.enter_context(socket.socket(socket.AF_UNIX))
            with of_socket(path) as place:
                connection.connect(place)
            connection.sendall(json.dumps(request).encode() + b"\n")
        except (ConnectionError, FileNotFoundError):
            raise RunEndedError(ENDED) from None
        answer = stack.enter_context(connection.makefile("rb"))
        while (line := _read(answer.readline)) != b"\n":  # at the end of all answers
            head = json.loads(line or b"{}")
            if "error" in head:
                raise RunError(head["error"])
            data = _read(answer.read, head["size"]) if line else b""
            if not line or len(data) != head["size"]:
                raise RunEndedError(ENDED)
            take(head, data)


def _read(read, *arguments):
    """What there is to read; nothing where the other end has closed."""
    try:
        return read(*arguments)
    except ConnectionError:
        return b""


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
                say(f"{type(error).__name__}: {error}", terminal)
            raise SystemExit(1) from None
        finally:
            for number, handler in before.items():
                signal.signal(number, handler)
            with contextlib.suppress(OSError):
                log.close()
            gc.freeze()  # or Python looks for cycles among all objects as it ends, 0.3 s


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
