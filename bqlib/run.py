"""The run's own process: it owns the Dask cluster and turns requests for pieces into trials.

Snakemake's start hook calls :func:`start`, each of its jobs :func:`fetch_piece`, its end hooks
:func:`stop`. The process between them is ``python -m bqlib.run``; it ends by itself when
Snakemake is gone. A job is a thin client over a private socket and imports next to nothing.
"""

import asyncio
import collections
import contextlib
import fcntl
import json
import os
import pickle
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
from dataclasses import dataclass
from pathlib import Path

from bqlib.files import write_atomically

SOCKET = "BQLIB_RUN"  # environment variable with the socket's path
PROGRESS_SECONDS = 5
KEPT = ".trials"  # folder among the results
KEPT_PIECES = 1000  # more than Snakemake has jobs at a time
SOME_FAILED = 3  # exit code of a run that is complete but for failed trials


class RunError(RuntimeError):
    """The run's process could not do what was asked; the message says why."""


class RunEndedError(RunError):
    """The run's process is gone, which Snakemake's end hook tells once for all jobs."""


@dataclass
class Session:
    """A run's process, as Snakemake holds it.

    Attributes
    ----------
    process : subprocess.Popen
    folder : str
        Of its socket.
    results : Path
    lock : file
        Held as long as the run lives: no other run works on the same results.
    stopping : threading.Event
        Set when the process is told to end.
    """

    process: subprocess.Popen
    folder: str
    results: Path
    lock: object
    stopping: threading.Event


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
    results = Path(results)
    log = results / "logs" / "run.log"
    log.parent.mkdir(parents=True, exist_ok=True)
    lock = _lock(results)
    # A socket's path may have about 100 bytes, so it cannot lie among the results.
    folder = tempfile.mkdtemp(prefix="bqlib-")
    place = os.path.join(folder, "socket")
    arguments = [sweep, shelf, site, results, place, os.getpid()]
    with open(log, "ab") as errors:
        process = subprocess.Popen(
            [sys.executable, "-m", "bqlib.run", *map(str, arguments)],
            stdin=subprocess.DEVNULL,
            stdout=sys.stderr.fileno(),
            stderr=errors,
            start_new_session=True,  # Ctrl-C is Snakemake's to handle; it then calls stop()
        )
    session = Session(process, folder, results, lock, threading.Event())
    while not os.path.exists(place):
        if process.poll() is not None:
            raise RunError(stop(session))
        time.sleep(0.02)
    os.environ[SOCKET] = place
    threading.Thread(target=_watch_process, args=(session,), daemon=True).start()
    return session


def _lock(results):
    """The open lock file of a folder of results; it is free again when this process is gone."""
    lock = (results / ".lock").open("a+", encoding="utf-8")
    try:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except OSError:
        lock.seek(0)
        owner = lock.read().strip()
        lock.close()
        raise RunError(
            f"another run works on {results} ({owner or 'by whom is not known'}): wait until it "
            "ends, or give the sweep another name"
        ) from None
    lock.truncate(0)
    lock.write(f"process {os.getpid()} on {socket.gethostname()}\n")
    lock.flush()
    return lock


def _watch_process(session):
    session.process.wait()
    if not session.stopping.is_set():
        os.kill(os.getpid(), signal.SIGTERM)


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
        Why the process had ended before this, or an empty text.
    """
    session.stopping.set()
    process = session.process
    ended_early = process.poll() is not None
    process.terminate()
    try:
        process.wait(timeout=30)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()
    reason = ""
    if ended_early:
        reason = f"the run's process ended by itself; see {session.results}/logs/run.log"
        if process.returncode < 0:
            reason = f"the run's process was killed (signal {-process.returncode})"
        with contextlib.suppress(OSError):
            reason = Path(session.folder, "reason").read_text(encoding="utf-8")
    if process.returncode < 0:
        _cancel_jobs(session.results)
    if complete:
        shutil.rmtree(session.results / KEPT, ignore_errors=True)
    shutil.rmtree(session.folder, ignore_errors=True)
    session.lock.close()
    return reason


def _cancel_jobs(results):
    """Cancel what a killed process has left on the batch system."""
    with contextlib.suppress(OSError):
        for line in (results / ".jobs").read_text(encoding="utf-8").splitlines():
            with contextlib.suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(shlex.split(line), capture_output=True, timeout=20)


def fetch_piece(cell, first, last, digest, piece, timing):
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
        Files to write: the piece, and the seconds of each trial as JSON.

    Raises
    ------
    RunError
        If there is no run's process, it ended, or it could not do the work.
    """
    request = {"cell": cell, "first": first, "last": last, "digest": digest}
    data, seconds = _ask(request)
    write_atomically(timing, json.dumps(seconds, indent=1).encode() + b"\n")
    write_atomically(piece, data)


def fetch_study(name, digest):
    """Have the run's process compute a study.

    Parameters
    ----------
    name : str
    digest : str
        Digest of the study's spec.

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

    data, _ = _ask({"study": name, "digest": digest})
    return unpack(data)


def _ask(request):
    """Send the run's process a request; its answer, and what goes to a file of timings."""
    place = os.environ.get(SOCKET)
    if not place or not os.path.exists(place):
        raise RunError(
            "the run's process is not there: run the workflow through snakemake with its hooks "
            "(without --no-hooks)"
        )
    head, data = b"", b""
    with contextlib.suppress(ConnectionError), socket.socket(socket.AF_UNIX) as connection:
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


@contextlib.contextmanager
def logged(path):
    """Send what a job prints to its log, and show only one line of an error on the terminal."""
    terminal = sys.stderr
    with (
        open(path, "w", encoding="utf-8") as log,
        contextlib.redirect_stdout(log),
        contextlib.redirect_stderr(log),
    ):
        try:
            yield
        except Exception as error:
            traceback.print_exc(file=log)
            if not isinstance(error, RunEndedError):
                print(f"[bqlib] {type(error).__name__}: {error}", file=terminal, flush=True)
            raise SystemExit(1) from None


class Progress:
    """Says on the terminal what is done and what is left."""

    def __init__(self, trials):
        self.total = trials
        self.done = self.failed = 0
        self.started = self.spoken = None

    def say(self, text):
        with contextlib.suppress(OSError):  # a closed terminal does not end the run
            print(f"[bqlib] {text}", flush=True)

    def trial(self, failed):
        self.started = self.started or time.monotonic()
        self.done += 1
        self.failed += failed
        self.total = max(self.total, self.done)
        now = time.monotonic()
        last = self.done == self.total
        if self.spoken is None or now - self.spoken >= PROGRESS_SECONDS or last:
            self.spoken = now
            left = (now - self.started) / self.done * (self.total - self.done)
            self.say(
                f"{self.done} of {self.total} trials done, {self.failed} failed"
                + ("" if last or self.done < 3 else f", about {left:.0f} s left")
            )


class Kept:
    """Results of trials, on disk until Snakemake has surely taken note of their pieces.

    They serve the next run where this one is killed. A trial is known by its cell's digest.
    """

    def __init__(self, folder):
        self.folder = folder
        self._delivered = collections.deque()

    def _path(self, digest, seed):
        return self.folder / f"{digest}-{seed}.pickle"

    def read(self, digest, seed):
        """What was written, or None."""
        try:
            return pickle.loads(self._path(digest, seed).read_bytes())
        except (OSError, EOFError, pickle.UnpicklingError):
            return None

    def write(self, digest, seed, outcome):
        self.folder.mkdir(exist_ok=True)
        path = self._path(digest, seed)
        path.with_suffix(".tmp").write_bytes(pickle.dumps(outcome))
        path.with_suffix(".tmp").rename(path)

    def delivered(self, digest, seeds):
        """Forget the trials of a piece, once enough further ones were delivered."""
        self._delivered.append([self._path(digest, seed) for seed in seeds])
        if len(self._delivered) > KEPT_PIECES:
            for path in self._delivered.popleft():
                path.unlink(missing_ok=True)


class Run:
    """State of the run's process.

    Attributes
    ----------
    experiment : bqlib.experiment.Experiment
    progress : Progress
    wanted : asyncio.Event
        Set by the first request; the cluster starts then.
    ended : asyncio.Future
        Done when the run is to end: with None when it is told to, or with why it cannot go on.
    client : asyncio.Future
        The Dask client.
    kept : Kept
    """

    def __init__(self, experiment, progress, kept):
        from concurrent.futures import ThreadPoolExecutor

        loop = asyncio.get_running_loop()
        self.experiment, self.progress, self.kept = experiment, progress, kept
        self.wanted = asyncio.Event()
        self.ended, self.client = loop.create_future(), loop.create_future()
        self._thread = ThreadPoolExecutor(max_workers=1)

    def end(self, error=None):
        """Let the run end, for `error` if there is one."""
        if not self.ended.done():
            self.ended.set_result(None) if error is None else self.ended.set_exception(error)

    async def piece(self, cell, first, last, digest):
        """Compute one piece: its bytes, and what goes to the file of timings."""
        from bqlib.experiment import Cell
        from bqlib.store import encode_piece

        spec, seeds = self.experiment.spec(Cell(**cell)), range(first, last + 1)
        outcomes, seconds = await self.outcomes(spec, seeds, digest)
        data = await self._aside(encode_piece, spec, seeds, [outcomes[seed] for seed in seeds])
        failed = {seed: text for seed, text in outcomes.items() if isinstance(text, str)}
        return data, {"seconds": seconds, "failed": failed}

    async def _aside(self, function, *arguments):
        """The result of a function that may take a while, in the one thread for such."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, function, *arguments)

    async def study(self, study, digest):
        """Compute one study: its packed arrays, and the seconds of each seed."""
        from bqlib.studies.study import pack

        spec = self.experiment.study(study)
        outcomes, seconds = await self.outcomes(spec, range(spec.seeds), digest)
        for seed, outcome in sorted(outcomes.items()):
            if isinstance(outcome, str):
                raise RunError(f"study {study} failed at seed {seed}: {outcome}")
        return pack([outcomes[seed] for seed in range(spec.seeds)]), seconds

    async def outcomes(self, spec, seeds, digest):
        """Results, or why there are none, and seconds of a spec at each of `seeds`."""
        from distributed import as_completed

        from bqlib.cluster import versions

        if spec.digest != digest:
            raise RunError("the sweep or the code changed while the run went on: start it again")
        self.wanted.set()
        client = await asyncio.shield(self.client)
        done = {seed: self.kept.read(digest, seed) for seed in seeds}
        futures = {
            client.submit(attempt, spec, seed, versions(), key=f"trial-{digest}-{seed}"): seed
            for seed in seeds
            if done[seed] is None
        }
        for _ in range(len(seeds) - len(futures)):
            self.progress.trial(failed=False)
        # A result is taken over as soon as it is there: a worker that is lost later costs nothing.
        async for future in as_completed(list(futures)):
            seed = futures.pop(future)
            done[seed] = outcome, _ = await self.outcome(future)
            future.release()
            failed = isinstance(outcome, str)
            self.progress.trial(failed)
            if not failed:
                await self._aside(self.kept.write, digest, seed, done[seed])
        self.kept.delivered(digest, seeds)
        outcomes, seconds = ({seed: done[seed][i] for seed in seeds} for i in (0, 1))
        return outcomes, seconds

    async def outcome(self, future):
        """Arrays and seconds of a trial; or why it failed, and None."""
        from distributed import KilledWorker

        from bqlib.cluster import ClusterError

        error = None
        if future.status != "cancelled":
            error = await future.exception()
        if future.status == "cancelled":
            raise RunError("the cluster lost the trial; see run.log")
        if error is None:
            arrays, seconds = await future.result()
            return arrays, round(seconds, 4)
        if isinstance(error, ClusterError):
            self.end(error)
            raise error
        if isinstance(error, MemoryError):
            text = f"out of memory: {error}".removesuffix(": ")
        elif isinstance(error, KilledWorker):
            text = (
                f"the worker died each of the {error.allowed_failures + 1} times that it ran this "
                "trial: killed from outside, crashed, or out of memory in a way that Python "
                "does not see"
            )
        else:
            text = f"{type(error).__name__}: {error}"
        return " ".join(text.split()), None

    async def answer(self, reader, writer):
        """Serve one connection: one request, one answer."""
        try:
            request = json.loads(await reader.readline())
            work = self.study if "study" in request else self.piece
            data, timing = await work(**request)
            head = {"size": len(data), "timing": timing}
        except Exception as error:  # whatever it was, the waiting job must hear of it
            data, head = b"", {"error": f"{type(error).__name__}: {error}"}
        with contextlib.suppress(ConnectionError):  # the job was killed
            writer.write(json.dumps(head).encode() + b"\n" + data)
            await writer.drain()
            writer.close()


def attempt(spec, seed, expected):
    """Runs on a worker: one trial, within the worker's memory, by the versions that are expected.

    Raises
    ------
    ClusterError
        If the worker runs other versions, or other code than the spec's digest stands for.
    """
    from bqlib.cluster import ClusterError, memory_limited, refuse_other_versions, versions

    where = socket.gethostname()
    refuse_other_versions(versions(), expected, where)
    if spec.code_here() != spec.fingerprint:
        raise ClusterError(
            f"the worker on {where} runs other code: was bqlib changed during the run? "
            "Start it again"
        )
    with memory_limited():
        return spec.run(seed)


async def serve(sweep, shelf, site, results, place, parent):
    """Answer requests until told to end, or until the process `parent` is gone."""
    from bqlib.cluster import read_site
    from bqlib.experiment import load

    site, experiment, results = read_site(site), load(sweep, shelf), Path(results)
    progress = Progress(trials_to_do(experiment, results))
    run = Run(experiment, progress, Kept(results / KEPT))
    loop = asyncio.get_running_loop()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, run.end)
    threading.Thread(target=_watch_parent, args=(loop, run, int(parent)), daemon=True).start()
    server = await asyncio.start_unix_server(run.answer, place)
    os.chmod(place, 0o600)
    wanted = asyncio.create_task(run.wanted.wait())
    await asyncio.wait([wanted, run.ended], return_when=asyncio.FIRST_COMPLETED)
    if run.wanted.is_set():
        cluster = asyncio.create_task(_hold_cluster(run, site, results))
        await asyncio.wait([cluster, run.ended], return_when=asyncio.FIRST_COMPLETED)
        cluster.cancel()
        await asyncio.wait([cluster])
        if not cluster.cancelled():
            cluster.result()  # or why it could not be had
    server.close()
    if run.ended.done():
        run.ended.result()


async def _hold_cluster(run, site, results):
    from bqlib.cluster import connect

    async with connect(site, results, run.progress.say) as client:
        run.client.set_result(client)
        await asyncio.Future()  # until this task is cancelled


def trials_to_do(experiment, results):
    """Number of trials whose pieces are not there, and of seeds of studies that are not."""
    from bqlib.experiment import piece_name

    results = Path(results)
    trials = [
        last - first + 1
        for cell in experiment.cells()
        for first, last in experiment.blocks()
        if not (results / "pieces" / piece_name(cell, (first, last))).exists()
    ]
    seeds = [
        experiment.study(name).seeds
        for name in experiment.studies
        if not (results / "studies" / f"{name}.zarr" / "zarr.json").exists()
    ]
    return sum(trials) + sum(seeds)


def _watch_parent(loop, run, parent):
    """End the run when Snakemake is gone, however it went."""
    while os.getppid() == parent:
        time.sleep(0.5)
    loop.call_soon_threadsafe(run.end)
    time.sleep(20)
    os.killpg(0, signal.SIGKILL)


def main(*arguments):
    """Serve; leave the reason beside the socket, and 1, where that ends by an error."""
    from bqlib.cluster import ClusterError

    place, parent = arguments[-2:]
    try:
        asyncio.run(serve(*arguments))
    except Exception as error:
        traceback.print_exc()
        expected = isinstance(error, ClusterError)
        reason = str(error) if expected else f"{type(error).__name__}: {error}"
        with contextlib.suppress(OSError):
            Path(place).with_name("reason").write_text(reason, encoding="utf-8")
        return 1
    finally:
        if os.getppid() != int(parent):  # nobody else is left to do it
            shutil.rmtree(os.path.dirname(place), ignore_errors=True)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
