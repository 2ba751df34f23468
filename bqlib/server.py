"""The run's own process: it owns the Dask cluster and turns requests for pieces into trials.

:func:`bqlib.run.start` starts it as ``python -m bqlib.server``; it ends by itself when Snakemake
is gone.
"""

import asyncio
import collections
import contextlib
import json
import os
import pickle
import shutil
import signal
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace
from pathlib import Path

from distributed import KilledWorker, as_completed, wait

from bqlib.cluster import ClusterError, connect, read_site
from bqlib.experiment import Cell, load, piece_name
from bqlib.files import is_private
from bqlib.run import KEPT, RunError, cancel_jobs
from bqlib.studies.study import pack
from bqlib.worker import OtherCodeError, attempt, versions

PROGRESS_SECONDS = 5
ENDING_SECONDS = 20  # for the end of a run whose Snakemake is gone
KEPT_PIECES = 1000  # more than Snakemake has jobs at a time


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
            if not is_private(self.folder):  # what others wrote must not be unpickled
                return None
            return pickle.loads(self._path(digest, seed).read_bytes())
        except (OSError, EOFError, pickle.UnpicklingError):
            return None

    def write(self, digest, seed, outcome):
        self.folder.mkdir(mode=0o700, exist_ok=True)
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
        loop = asyncio.get_running_loop()
        self.experiment, self.progress, self.kept = experiment, progress, kept
        self.wanted = asyncio.Event()
        self.ended, self.client = loop.create_future(), loop.create_future()
        self._one_suspect = asyncio.Lock()
        self._thread = ThreadPoolExecutor(max_workers=1)

    def end(self, error=None):
        """Let the run end, for `error` if there is one."""
        if not self.ended.done():
            self.ended.set_result(None) if error is None else self.ended.set_exception(error)

    async def piece(self, cell, first, last, digest):
        """Compute one piece: its bytes, and what goes to the file of timings."""
        from bqlib.store import encode_piece  # loads zarr, while the cluster starts

        spec, seeds = self.experiment.spec(Cell(**cell)), range(first, last + 1)
        outcomes, seconds = await self.outcomes(spec, seeds, digest)
        data = await self._aside(encode_piece, spec, seeds, [outcomes[seed] for seed in seeds])
        failed = {seed: text for seed, text in outcomes.items() if isinstance(text, str)}
        return data, {"seconds": seconds, "failed": failed, "versions": versions()}

    async def _aside(self, function, *arguments):
        """The result of a function that may take a while, in the one thread for such."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, function, *arguments)

    async def study(self, study, digest):
        """Compute one study: its packed arrays, and the seconds of each seed."""
        spec = self.experiment.study(study)
        outcomes, seconds = await self.outcomes(spec, range(spec.seeds), digest)
        for seed, outcome in sorted(outcomes.items()):
            if isinstance(outcome, str):
                raise RunError(f"study {study} failed at seed {seed}: {outcome}")
        return pack([outcomes[seed] for seed in range(spec.seeds)]), seconds

    async def outcomes(self, spec, seeds, digest):
        """Results, or why there are none, and seconds of a spec at each of `seeds`."""
        if spec.digest != digest:
            raise RunError("the sweep or the code changed while the run went on: start it again")
        self.wanted.set()
        client = await asyncio.shield(self.client)
        done = {seed: self.kept.read(digest, seed) for seed in seeds}

        def submit(seed, again=""):
            key = f"trial-{digest}-{seed}{again}"
            return client.submit(attempt, spec, seed, versions(), key=key)

        futures = {submit(seed): seed for seed in seeds if done[seed] is None}
        for _ in range(len(seeds) - len(futures)):
            self.progress.trial(failed=False)
        suspects = []
        # A result is taken over as soon as it is there: a worker that is lost later costs nothing.
        async for future in as_completed(list(futures)):
            seed = futures.pop(future)
            if future.status == "error" and isinstance(await future.exception(), KilledWorker):
                suspects.append(seed)
                future.release()
            else:
                done[seed] = await self.take(future, digest, seed)
        # Dask blames all trials that a dead worker held: each gets another chance, one at a time.
        for seed in suspects:
            async with self._one_suspect:
                future = submit(seed, again="-again")
                await wait(future)
                done[seed] = await self.take(future, digest, seed)
        self.kept.delivered(digest, seeds)
        outcomes, seconds = ({seed: done[seed][i] for seed in seeds} for i in (0, 1))
        return outcomes, seconds

    async def take(self, future, digest, seed):
        """The outcome of a trial, which is put aside where it succeeded."""
        outcome, seconds = await self.outcome(future)
        future.release()
        failed = isinstance(outcome, str)
        self.progress.trial(failed)
        if not failed:
            await self._aside(self.kept.write, digest, seed, (outcome, seconds))
        return outcome, seconds

    async def outcome(self, future):
        """Arrays and seconds of a trial; or why it failed, and None."""
        error = None
        if future.status != "cancelled":
            error = await future.exception()
        if future.status == "cancelled":
            raise RunError("the cluster lost the trial; see run.log")
        if error is None:
            arrays, seconds = await future.result()
            return arrays, round(seconds, 4)
        if isinstance(error, OtherCodeError):
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

    async def work(self, request):
        """Bytes, and what goes to a file of timings."""
        work = self.study if "study" in request else self.piece
        return await work(**request)

    async def answer(self, reader, writer):
        """Serve one connection: one request, one answer."""
        try:
            data, timing = await self.work(json.loads(await reader.readline()))
            head = {"size": len(data), "timing": timing}
        except Exception as error:  # whatever it was, the waiting job must hear of it
            if self.ended.done():  # which is told once for all jobs
                return writer.close()
            data, head = b"", {"error": f"{type(error).__name__}: {error}"}
        with contextlib.suppress(ConnectionError):  # the job was killed
            writer.write(json.dumps(head).encode() + b"\n" + data)
            await writer.drain()
            writer.close()


def answer_here(sweep, shelf, site, results, request, threads, memory):
    """Bytes and timings of a request, on so many threads and MiB of memory of this process.

    Raises
    ------
    RunError
        If the site has a process for the whole run, which must then be asked.
    """
    site = read_site(site)
    if site.system != "job":
        raise RunError(
            "the run's process is not there: run the workflow through snakemake with its hooks "
            "(without --no-hooks)"
        )
    if memory is not None:
        site = replace(site, memory=f"{memory}MiB")
    return asyncio.run(_answer_here(load(sweep, shelf), site, Path(results), request, threads))


async def _answer_here(experiment, site, results, request, threads):
    run = Run(experiment, Progress(0), Kept(results / KEPT))
    async with connect(site, results, run.progress.say, threads) as client:
        run.client.set_result(client)
        return await run.work(request)


async def serve(sweep, shelf, site, results, place, parent):
    """Answer requests until told to end, or until the process `parent` is gone."""
    site, experiment, results = read_site(site), load(sweep, shelf), Path(results)
    progress = Progress(trials_to_do(experiment, results))
    run = Run(experiment, progress, Kept(results / KEPT))
    loop = asyncio.get_running_loop()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, run.end)
    threading.Thread(
        target=_watch_parent, args=(loop, run, int(parent), results), daemon=True
    ).start()
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
    async with connect(site, results, run.progress.say) as client:
        run.client.set_result(client)
        await asyncio.Future()  # until this task is cancelled


def trials_to_do(experiment, results):
    """Number of trials whose pieces are not there, and of seeds of studies that are not."""
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


def _watch_parent(loop, run, parent, results):
    """End the run when Snakemake is gone, however it went."""
    while os.getppid() == parent:
        time.sleep(0.5)
    loop.call_soon_threadsafe(run.end)
    time.sleep(ENDING_SECONDS)
    cancel_jobs(results)
    os.killpg(0, signal.SIGKILL)


async def _serve_and_tell(*arguments):
    """Serve; leave the reason beside the socket, and return 1, where that ends by an error.

    Jobs hear of the end when the loop ends, so whoever asks for the reason afterwards finds it.
    """
    try:
        await serve(*arguments)
    except Exception as error:
        traceback.print_exc()
        expected = isinstance(error, ClusterError | OtherCodeError)
        reason = str(error) if expected else f"{type(error).__name__}: {error}"
        with contextlib.suppress(OSError):
            Path(arguments[-2]).with_name("reason").write_text(reason, encoding="utf-8")
        return 1
    return 0


def main(*arguments):
    """Serve as a process of its own; its exit code."""
    place, parent = arguments[-2:]
    try:
        return asyncio.run(_serve_and_tell(*arguments))
    finally:
        if os.getppid() != int(parent):  # nobody else is left to do it
            shutil.rmtree(os.path.dirname(place), ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
