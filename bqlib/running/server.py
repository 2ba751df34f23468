"""The run's own process: it owns the Dask cluster and turns requests for pieces into trials.

:func:`bqlib.running.session.start` starts it as ``python -P -m bqlib.running.server``. It ends by
itself when Snakemake is gone.
"""

import asyncio
import contextlib
import json
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

from distributed import KilledWorker, as_completed, wait

from bqlib.results.blocks import blocks_of
from bqlib.results.layout import Layout
from bqlib.results.retry import OUT_OF_MEMORY, WORKER_DIED, study_is_there
from bqlib.results.text import one_line
from bqlib.running.cluster import connect
from bqlib.running.errors import ClusterError, OtherCodeError, RunError, TrialError
from bqlib.running.journal import cancel_jobs
from bqlib.running.kept import Kept, Progress
from bqlib.running.paths import Paths, of_socket
from bqlib.running.site import read_site
from bqlib.running.worker import attempt, versions
from bqlib.studies.study import pack
from bqlib.sweep.file import load
from bqlib.sweep.spec import Cell

ENDING_SECONDS = 8  # for the end of a run whose Snakemake is gone


class Server:
    """State of the run's process.

    Attributes
    ----------
    experiment : bqlib.sweep.experiment.Experiment
    progress : Progress
    results : Path
        The experiment's folder of results.
    wanted : asyncio.Event
        Set by the first request; the cluster starts then.
    ended : asyncio.Future
        Done when the run is to end: with None when it is told to, or with why it cannot go on.
    client : asyncio.Future
        The Dask client.
    kept : Kept
    """

    def __init__(self, experiment, progress, results):
        loop = asyncio.get_running_loop()
        self.experiment, self.progress, self.results = experiment, progress, results
        self.kept = Kept(Layout(results).kept)
        self.wanted = asyncio.Event()
        self.ended, self.client = loop.create_future(), loop.create_future()
        self._one_suspect = asyncio.Lock()
        self._thread = ThreadPoolExecutor(max_workers=1)

    def end(self, error=None):
        """Let the run end, for `error` if there is one."""
        if not self.ended.done():
            self.ended.set_result(None) if error is None else self.ended.set_exception(error)

    async def piece(self, cell, first, last, digest):
        """Make one piece: its bytes, and what goes to the file of timings.

        Trials that pieces of other blocks hold are taken over, the others are computed.
        """
        from bqlib.results.pieces import encode_piece, take_over  # load zarr, 0.5 s, which may wait

        spec, seeds = self.experiment.spec(Cell(**cell)), range(first, last + 1)
        taken, software = await self._aside(take_over, self.results, spec, seeds)
        rest = [seed for seed in seeds if seed not in taken]
        outcomes, seconds = await self.outcomes(spec, rest, digest)
        outcomes |= {seed: curves for seed, (curves, _) in taken.items()}
        seconds |= {seed: found for seed, (_, found) in taken.items()}
        data = await self._aside(encode_piece, spec, seeds, [outcomes[seed] for seed in seeds])
        timing = {
            "seconds": {seed: seconds[seed] for seed in seeds},
            "failed": {seed: text for seed, text in outcomes.items() if isinstance(text, str)},
            "versions": versions(),
        }
        others = [found for found in software if found != versions()]
        return data, timing | ({"other_versions": others} if others else {})

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
        """Run the trials of a spec at `seeds`; (outcome, seconds) of each.

        An outcome is arrays, or why there are none. Trials that were kept are not run again. A
        trial whose worker died is suspected, though it may have died of another trial's memory:
        each of these gets another chance, while no other suspect runs.
        """
        if spec.digest != digest:
            raise RunError(
                "the sweep, a data file or the code changed during the run: start it again"
            )
        done = {seed: self.kept.read(digest, seed) for seed in seeds}
        done = {seed: found for seed, found in done.items() if found is not None}
        for _ in done:
            self.progress.trial(failed=False)
        if len(done) < len(seeds):
            await self._run([seed for seed in seeds if seed not in done], spec, done)
        self.kept.delivered(digest, seeds)
        outcomes, seconds = ({seed: done[seed][i] for seed in seeds} for i in (0, 1))
        return outcomes, seconds

    async def _run(self, seeds, spec, done):
        """Run the trials of a spec at `seeds` on the cluster; add (outcome, seconds) to `done`."""
        digest = spec.digest
        self.wanted.set()
        client = await asyncio.shield(self.client)

        def submit(seed, again=""):
            key = f"trial-{digest}-{seed}{again}"
            return client.submit(attempt, spec, seed, versions(), key=key)

        async def take(future, seed):
            done[seed] = outcome, _ = await self._outcome(future)
            future.release()
            failed = isinstance(outcome, str)
            self.progress.trial(failed)
            if not failed:
                await self._aside(self.kept.write, digest, seed, done[seed])

        futures = {submit(seed): seed for seed in seeds}
        suspects = []
        # A result is taken as soon as it is there: a worker that is lost later costs nothing.
        async for future in as_completed(list(futures)):
            seed = futures.pop(future)
            if future.status == "error" and isinstance(await future.exception(), KilledWorker):
                suspects.append(seed)
                future.release()
            else:
                await take(future, seed)
        for seed in suspects:
            async with self._one_suspect:
                future = submit(seed, again="-again")
                await wait(future)
                await take(future, seed)

    async def _outcome(self, future):
        """Arrays and seconds of a trial that has ended; or why it failed, and None."""
        if future.status == "cancelled":
            raise RunError("the cluster lost the trial; see run.log")
        error = await future.exception()
        if future.status == "cancelled":
            raise RunError("the cluster lost the trial; see run.log")
        if error is None:
            arrays, seconds = await future.result()
            return arrays, round(seconds, 4)
        if isinstance(error, OtherCodeError):
            self.end(error)
            raise error
        if isinstance(error, TrialError):
            text = str(error)
        elif isinstance(error, MemoryError):
            text = f"{OUT_OF_MEMORY}: {error}".removesuffix(": ")
        elif isinstance(error, KilledWorker):
            text = (
                f"{WORKER_DIED} in each of {error.allowed_failures + 1} runs of this trial: "
                "killed from outside, crashed, or out of memory in a way that Python does not see"
            )
        else:
            text = f"{type(error).__name__}: {error}"
        return one_line(text), None

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


async def serve(paths, socket, parent, name=""):
    """Answer requests until told to end, or until the process `parent` is gone."""
    site, experiment = read_site(paths.site), load(paths.sweep, paths.shelf, paths.folder)
    progress = Progress(trials_to_do(experiment, paths.results), name)
    server = Server(experiment, progress, paths.results)
    loop = asyncio.get_running_loop()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, server.end)
    watched = (loop, server, parent, paths.results)
    threading.Thread(target=_watch_parent, args=watched, daemon=True).start()
    umask = os.umask(0o177)  # the socket is for this user alone
    with of_socket(socket) as place:
        listening = await asyncio.start_unix_server(server.answer, place)
    os.umask(umask)
    wanted = asyncio.create_task(server.wanted.wait())
    await asyncio.wait([wanted, server.ended], return_when=asyncio.FIRST_COMPLETED)
    if server.wanted.is_set():
        cluster = asyncio.create_task(_hold_cluster(server, site, paths.results))
        await asyncio.wait([cluster, server.ended], return_when=asyncio.FIRST_COMPLETED)
        cluster.cancel()
        await asyncio.wait([cluster])
        if not (cluster.cancelled() or server.ended.done()):
            cluster.result()  # or why it could not be had
    listening.close()
    if server.ended.done():
        server.ended.result()


async def _hold_cluster(server, site, results):
    async with connect(site, results, server.progress.say) as client:
        server.client.set_result(client)
        await asyncio.Future()  # until this task is cancelled


def trials_to_do(experiment, results):
    """Number of trials that no piece of this sweep and code holds, and of seeds of such studies."""
    trials = [len(block.missing) for block in blocks_of(experiment, results)]
    studies = [experiment.study(name) for name in experiment.studies]
    seeds = [study.seeds for study in studies if not study_is_there(results, study)]
    return sum(trials) + sum(seeds)


def _watch_parent(loop, server, parent, results):
    """End the run when Snakemake is gone, however it went."""
    while os.getppid() == parent:
        time.sleep(0.5)
    loop.call_soon_threadsafe(server.end)
    time.sleep(ENDING_SECONDS)
    cancel_jobs(results)
    os.killpg(0, signal.SIGKILL)


async def _serve_or_say_why(paths, socket, parent, name):
    """Serve; where that ends by an error, leave the reason beside the socket and return 1.

    Jobs hear of the end when the loop ends, so whoever asks for the reason afterwards finds it.
    """
    try:
        await serve(paths, socket, parent, name)
    except Exception as error:
        traceback.print_exc()
        expected = isinstance(error, ClusterError | OtherCodeError)
        reason = str(error) if expected else f"{type(error).__name__}: {error}"
        with contextlib.suppress(OSError):
            Path(socket).with_name("reason").write_text(reason, encoding="utf-8")
        return 1
    return 0


def main(task):
    """Serve as a process of its own; its exit code.

    Parameters
    ----------
    task : str
        JSON: the ``paths`` of the run, the path of the ``socket``, the process id of the
        ``parent``, and the ``name`` by which the run speaks of itself, or an empty one.
    """
    task = json.loads(task)
    paths, socket, parent = Paths.from_json(task["paths"]), task["socket"], task["parent"]
    try:
        return asyncio.run(_serve_or_say_why(paths, socket, parent, task["name"]))
    finally:
        if os.getppid() != parent:  # nobody else is left to do it
            shutil.rmtree(os.path.dirname(socket), ignore_errors=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
