"""The run's own process: it owns the Dask cluster and turns requests for pieces into trials.

Snakemake's start hook calls :func:`start`, each of its jobs :func:`fetch_piece`, its end hooks
:func:`stop`. The process between them is ``python -m bqlib.run``; it ends by itself when
Snakemake is gone. A job is a thin client over a private socket and imports next to nothing.
"""

import asyncio
import contextlib
import hashlib
import json
import os
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import threading
import time
import traceback
from pathlib import Path

from bqlib.files import write_atomically

SOCKET = "BQLIB_RUN"  # environment variable with the socket's path
PROGRESS_SECONDS = 5


class RunError(RuntimeError):
    """The run's process could not do what was asked; the message says why."""


def start(sweep, shelf, site, results):
    """Start the run's process and tell this process's children where it listens.

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
    subprocess.Popen
    """
    log = Path(results) / "logs" / "run.log"
    log.parent.mkdir(parents=True, exist_ok=True)
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
    while not os.path.exists(place):
        if process.poll() is not None:
            shutil.rmtree(folder, ignore_errors=True)
            raise RunError(f"the run's process ended as it started; see {log}")
        time.sleep(0.02)
    os.environ[SOCKET] = place
    return process


def stop(process):
    """End the run's process and its cluster; return when they are gone."""
    process.terminate()
    try:
        process.wait(timeout=15)
    except subprocess.TimeoutExpired:
        os.killpg(process.pid, signal.SIGKILL)
        process.wait()


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
    place = os.environ.get(SOCKET)
    if not place or not os.path.exists(place):
        raise RunError(
            "the run's process is not there: run the workflow through snakemake with its hooks "
            "(without --no-hooks)"
        )
    request = {"cell": cell, "first": first, "last": last, "digest": digest}
    with socket.socket(socket.AF_UNIX) as connection:
        connection.connect(place)
        connection.sendall(json.dumps(request).encode() + b"\n")
        with connection.makefile("rb") as answer:
            head = answer.readline()
            if not head:
                raise RunError("the run's process ended before the piece was done; see run.log")
            head = json.loads(head)
            if "error" in head:
                raise RunError(head["error"])
            data = answer.read(head["size"])
    if len(data) != head["size"]:
        raise RunError("the run's process ended while it sent the piece; see run.log")
    write_atomically(timing, json.dumps(head["timing"], indent=1).encode() + b"\n")
    write_atomically(piece, data)


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


class Run:
    """State of the run's process.

    Attributes
    ----------
    experiment : bqlib.experiment.Experiment
    progress : Progress
    wanted : asyncio.Event
        Set by the first request; the cluster starts then.
    client : asyncio.Future
        The Dask client, or why there is none.
    """

    def __init__(self, experiment, results):
        from bqlib.experiment import piece_name

        self.experiment = experiment
        self.wanted = asyncio.Event()
        self.client = asyncio.get_running_loop().create_future()
        pieces = Path(results) / "pieces"
        self.progress = Progress(
            sum(
                last - first + 1
                for cell in experiment.cells()
                for first, last in experiment.blocks()
                if not (pieces / piece_name(cell, (first, last))).exists()
            )
        )

    async def piece(self, cell, first, last, digest):
        """Compute one piece: its bytes, and the seconds of each trial."""
        from distributed import as_completed

        from bqlib import trial
        from bqlib.experiment import Cell

        spec = self.experiment.spec(Cell(**cell))
        if spec.digest != digest:
            raise RunError("the sweep or the code changed while the run went on: start it again")
        self.wanted.set()
        client = await asyncio.shield(self.client)
        seeds = range(first, last + 1)
        futures = {
            client.submit(trial.run, spec, seed, key=f"trial-{digest}-{seed}"): seed
            for seed in seeds
        }
        outcomes = {}
        async for future in as_completed(list(futures)):
            failure = await _failure(future)
            outcomes[futures[future]] = future if failure is None else failure
            self.progress.trial(failed=failure is not None)
        reasons = hashlib.sha256(
            repr(
                sorted(
                    (seed, outcome)
                    for seed, outcome in outcomes.items()
                    if isinstance(outcome, str)
                )
            ).encode()
        ).hexdigest()[:8]
        encoded = client.submit(
            encode,
            spec,
            list(seeds),
            [outcomes[seed] for seed in seeds],
            key=f"piece-{digest}-{first}-{last}-{reasons}",
        )
        return await encoded.result()

    async def answer(self, reader, writer):
        """Serve one connection: one request, one answer."""
        try:
            request = json.loads(await reader.readline())
            data, timing = await self.piece(**request)
            head = {"size": len(data), "timing": timing}
        except Exception as error:  # whatever it was, the waiting job must hear of it
            data, head = b"", {"error": f"{type(error).__name__}: {error}"}
        with contextlib.suppress(ConnectionError):  # the job was killed
            writer.write(json.dumps(head).encode() + b"\n" + data)
            await writer.drain()
            writer.close()


def encode(spec, seeds, outcomes):
    """Runs on a worker: a piece's bytes from the trials' results, and their seconds."""
    from bqlib.store import encode_piece

    trials = [outcome if isinstance(outcome, str) else outcome[0] for outcome in outcomes]
    seconds = {
        seed: None if isinstance(outcome, str) else round(outcome[1], 4)
        for seed, outcome in zip(seeds, outcomes, strict=True)
    }
    return encode_piece(spec, seeds, trials), {"seconds": seconds}


async def _failure(future):
    """None, or why the trial failed in one line."""
    if future.status == "finished":
        return None
    if future.status == "cancelled":
        raise RunError("the cluster lost the trial; see run.log")
    error = await future.exception()
    return " ".join(f"{type(error).__name__}: {error}".split())


async def serve(sweep, shelf, site, results, place, parent):
    """Answer requests until told to end, or until the process `parent` is gone."""
    from bqlib.cluster import ClusterError, connect, read_site
    from bqlib.experiment import load

    ended = asyncio.Event()
    loop = asyncio.get_running_loop()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, ended.set)
    threading.Thread(target=_watch_parent, args=(loop, ended, int(parent)), daemon=True).start()
    run = Run(load(sweep, shelf), results)
    site, scratch = read_site(site), os.path.dirname(place)
    server = await asyncio.start_unix_server(run.answer, place)
    waiting = [asyncio.create_task(event.wait()) for event in (run.wanted, ended)]
    await asyncio.wait(waiting, return_when=asyncio.FIRST_COMPLETED)
    if run.wanted.is_set():
        try:
            async with connect(site, scratch) as (client, about):
                run.progress.say(f"Dask: {about}")
                run.client.set_result(client)
                await ended.wait()
        except ClusterError as error:
            run.client.set_exception(error)
            await ended.wait()
    server.close()
    shutil.rmtree(scratch, ignore_errors=True)


def _watch_parent(loop, ended, parent):
    """End the run when Snakemake is gone, however it went."""
    while os.getppid() == parent:
        time.sleep(0.5)
    loop.call_soon_threadsafe(ended.set)
    time.sleep(5)
    os.killpg(0, signal.SIGKILL)


if __name__ == "__main__":
    asyncio.run(serve(*sys.argv[1:]))
