"""The run's own process: it owns the Dask cluster and turns requests for pieces into trials.

:func:`bqlib.running.session.start` starts it as ``python -P -m bqlib.running.server``. It ends by
itself when Snakemake is gone.
"""

import asyncio
import contextlib
import gc
import hashlib
import json
import os
import shutil
import signal
import sys
import threading
import time
import traceback
from collections import Counter, deque
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from statistics import fmean

from distributed import KilledWorker, wait

from bqlib.results.blocks import blocks_of
from bqlib.results.layout import RUN_LOG, Layout, piece_name, seeds_of
from bqlib.results.retry import WORKER_DIED, study_is_there
from bqlib.results.text import failure_of, one_line
from bqlib.running.cluster import connect
from bqlib.running.errors import ClusterError, OtherCodeError, RunError
from bqlib.running.journal import cancel_jobs
from bqlib.running.kept import Kept
from bqlib.running.paths import Paths, of_socket
from bqlib.running.progress import DRAW_SECONDS, Progress
from bqlib.running.site import read_site
from bqlib.running.worker import attempt, means_for, versions
from bqlib.studies.study import pack
from bqlib.sweep.file import load
from bqlib.sweep.spec import Spec

ENDING_SECONDS = 8  # for the end of a run whose Snakemake is gone
TASK_SECONDS = 0.5  # for which trials share a task, as a task costs this process milliseconds
LEAST_SECONDS = 1e-4  # of a trial, as its time is rounded
TASKS_A_SECOND = 100  # that it can serve beside all else; with many workers tasks are longer
TASKS_PER_THREAD = 3  # that workers have at a time, so that none waits for its next
CHANGED = "the sweep, a data file or the code changed during the run: start it again"


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
        self._blocks = {
            piece_name(cell, block): (cell, block)
            for cell in experiment.cells()
            for block in experiment.blocks()
        }
        self._uses = Counter(_pair(cell) for cell, _ in self._blocks.values())
        self._means = {}  # of pairs on data sets, as futures
        self._seconds = {}  # of a trial, by what takes about as long
        self._running, self._cannot_keep = 0, False  # tasks; whether that was told
        self._left = asyncio.Event()  # set where a task has ended
        self._turn, self._one_suspect = asyncio.Lock(), asyncio.Lock()
        self._thread = ThreadPoolExecutor(max_workers=1)

    def end(self, error=None):
        """Let the run end, for `error` if there is one."""
        if not self.ended.done():
            self.ended.set_result(None) if error is None else self.ended.set_exception(error)

    async def pieces(self, pieces):
        """Make pieces; yields what goes to the file of timings of each, and its bytes.

        They come as they are done. Where some cannot be made, the others come first.
        """
        unknown = [name for name in pieces if name not in self._blocks]
        if unknown:
            raise RunError(f"the sweep has no piece {unknown[0]}")
        errors = []
        # They start in this order, and go on where the job is killed meanwhile: trials are kept.
        for made in asyncio.as_completed([asyncio.create_task(self.piece(n)) for n in pieces]):
            try:
                yield await made
            except Exception as error:
                errors.append(error)
        if errors:
            raise errors[0]

    async def piece(self, name):
        """Make one piece: what goes to the file of timings, and its bytes.

        Trials that pieces of other blocks hold are taken over, the others are computed.
        """
        from bqlib.results.pieces import encode_piece, take_over  # load zarr, 0.5 s, which may wait

        cell, (first, last) = self._blocks[name]
        spec, seeds = self.experiment.spec(cell), range(first, last + 1)
        taken, software = await self._aside(take_over, self.results, spec, seeds)
        rest = [seed for seed in seeds if seed not in taken]
        outcomes, seconds = await self.outcomes(spec, rest)
        outcomes |= {seed: curves for seed, (curves, _) in taken.items()}
        seconds |= {seed: found for seed, (_, found) in taken.items()}
        data = await self._aside(encode_piece, spec, seeds, [outcomes[seed] for seed in seeds])
        timing = {
            "digest": spec.digest,
            "sha256": hashlib.sha256(data).hexdigest(),
            "seconds": {seed: seconds[seed] for seed in seeds},
            "failed": {seed: text for seed, text in outcomes.items() if isinstance(text, str)},
            "versions": versions(),
        }
        others = [found for found in software if found != versions()]
        timing |= {"other_versions": others} if others else {}
        self.progress.piece(cell, name)
        self._uses[_pair(cell)] -= 1
        if not self._uses[_pair(cell)] and _pair(cell) in self._means:
            self._means.pop(_pair(cell)).release()
        return {"piece": name, "timing": timing}, data

    async def _aside(self, function, *arguments):
        """The result of a function that may take a while, in the one thread for such."""
        loop = asyncio.get_running_loop()
        return await loop.run_in_executor(self._thread, function, *arguments)

    async def study(self, study, digest):
        """Compute one study; yields its seconds and its packed arrays."""
        spec = self.experiment.study(study)
        if spec.digest != digest:
            raise RunError(CHANGED)
        outcomes, _ = await self.outcomes(spec, range(spec.seeds))
        for seed, outcome in sorted(outcomes.items()):
            if isinstance(outcome, str):
                raise RunError(f"study {study} failed at seed {seed}: {outcome}")
        yield {}, pack([outcomes[seed] for seed in range(spec.seeds)])

    async def outcomes(self, spec, seeds):
        """Run the trials of a spec at `seeds`: seed to outcome, and seed to seconds.

        An outcome is arrays, or why there are none. Trials that were kept are not run again.
        """
        done = self.kept.read(spec.digest, seeds)
        self._count(spec, done)
        rest = [seed for seed in seeds if seed not in done]
        if rest:
            done |= await self._run(spec, rest)
        self.kept.delivered(spec.digest, seeds)
        outcomes, seconds = ({seed: done[seed][i] for seed in seeds} for i in (0, 1))
        return outcomes, seconds

    async def _run(self, spec, seeds):
        """Run the trials of a spec at `seeds` on the cluster: seed to (outcome, seconds).

        Short trials share a task. A trial whose worker died is suspected, though it may have died
        of another trial's memory: each of these gets another chance, while no other suspect runs.
        """
        self.wanted.set()
        client = await asyncio.shield(self.client)
        done, suspects, tasks, left = {}, [], [], deque(seeds)

        async def run(seeds, again=""):
            """Run some trials in one task."""
            key = f"trial-{spec.digest}-{seeds[0]}-{len(seeds)}{again}"
            means = None if again else self._means_for(client, spec)
            future = client.submit(attempt, spec, seeds, versions(), means, key=key)
            try:
                # A result is taken at once: a worker that is lost later costs nothing.
                await wait(future)
                found = await self._found(future, seeds)
            except KilledWorker as error:
                if not again:
                    return suspects.extend(seeds)
                found = {seed: (_why_died(error), None) for seed in seeds}
            finally:
                future.release()
            done.update(found)
            good = {seed: each for seed, each in found.items() if not isinstance(each[0], str)}
            self._count(spec, found)
            if good:
                mean = fmean(seconds for _, seconds in good.values())
                self._seconds[_alike(spec)] = max(mean, LEAST_SECONDS)
                await self._keep(spec.digest, good)

        async def run_and_leave(seeds):
            try:
                await run(seeds)
            finally:
                self._running -= 1
                self._left.set()

        try:
            async with self._turn:  # so that pieces are finished in the order of their requests
                while left:
                    await self._room(client)
                    wanted = max(TASK_SECONDS, _threads(client) / TASKS_A_SECOND)
                    together = int(wanted / self._seconds.get(_alike(spec), wanted))
                    some = [left.popleft() for _ in range(min(max(1, together), len(left)))]
                    self._running += 1
                    tasks.append(asyncio.create_task(run_and_leave(some)))
            await asyncio.gather(*tasks)
        finally:
            for task in tasks:
                task.cancel()
        for seed in suspects:
            async with self._one_suspect:
                await run([seed], again="-again")
        return done

    def _count(self, spec, found):
        """Count trials, or seeds of a study, by what :meth:`_found` returns."""
        if isinstance(spec, Spec):
            failed = [(spec.cell, seed) for seed, (one, _) in found.items() if isinstance(one, str)]
            self.progress.count([(spec.cell, seed) for seed in found], failed)
        else:
            self.progress.count_seeds([(spec.name, seed) for seed in found])

    async def _keep(self, digest, outcomes):
        """Keep trials for the next run; this one goes on without, where that cannot be."""
        try:
            await self._aside(self.kept.write, digest, outcomes)
        except OSError as error:
            if not self._cannot_keep:
                self._cannot_keep = True
                self.progress.say(
                    f"trials of unfinished pieces cannot be kept in {self.kept.folder} "
                    f"({error.strerror}): if the run is killed, they are run again"
                )

    def _means_for(self, client, spec):
        """What all trials on the data set of a spec need, computed once for all algorithms."""
        if not isinstance(spec, Spec) or spec.target["family"] != "empirical":
            return None
        pair = _pair(spec.cell)
        if pair not in self._means:
            key = f"means-{spec.digest}"
            self._means[pair] = client.submit(means_for, spec, versions(), key=key)
        return self._means[pair]

    async def _room(self, client):
        """Wait until workers have less to do than keeps them busy."""
        while self._running >= TASKS_PER_THREAD * max(2, _threads(client)):
            self._left.clear()
            with contextlib.suppress(TimeoutError):  # there may be more workers by then
                await asyncio.wait_for(self._left.wait(), timeout=1)

    async def _found(self, future, seeds):
        """Seed to (outcome, seconds) of a task that has ended; raises a KilledWorker."""
        lost = RunError("the cluster lost the trial; see run.log")
        if future.status == "cancelled":
            raise lost
        error = await future.exception()
        if future.status == "cancelled":
            raise lost
        if error is None:
            found = await future.result()
            return {
                seed: (one, None) if isinstance(one, str) else one
                for seed, one in zip(seeds, found, strict=True)
            }
        if isinstance(error, OtherCodeError):
            self.end(error)
            raise error
        if isinstance(error, KilledWorker):
            raise error
        return dict.fromkeys(seeds, (failure_of(error), None))

    def work(self, request):
        """What :meth:`pieces` or :meth:`study` yields for a request."""
        work = self.study if "study" in request else self.pieces
        return work(**request)

    async def answer(self, reader, writer):
        """Serve one connection: one request, its answers, and an empty line at the end."""
        try:
            async for head, data in self.work(json.loads(await reader.readline())):
                writer.write(json.dumps(head | {"size": len(data)}).encode() + b"\n" + data)
                await writer.drain()
            last = b"\n"
        except ConnectionError:  # the job was killed
            return writer.close()
        except Exception as error:  # whatever it was, the waiting job must hear of it
            if self.ended.done():  # which is told once for all jobs
                return writer.close()
            last = json.dumps({"error": f"{type(error).__name__}: {error}"}).encode() + b"\n"
        with contextlib.suppress(ConnectionError):
            writer.write(last)
            await writer.drain()
            writer.close()


def _why_died(error):
    return one_line(
        f"{WORKER_DIED} in each of {error.allowed_failures + 1} runs of this trial: "
        "killed from outside, crashed, or out of memory in a way that Python does not see"
    )


def _alike(spec):
    """What specs have in common whose trials take about as long."""
    if isinstance(spec, Spec):
        return spec.cell.target, spec.cell.kernel, spec.cell.algorithm
    return spec.name


def _pair(cell):
    """A target and a kernel, by their labels."""
    return cell.target, cell.kernel, cell.lengthscale


def _threads(client):
    """Threads of all workers, as the scheduler said two seconds ago at most."""
    return client.scheduler_info().get("total_threads", 0)


async def serve(paths, socket, parent, digest, name=""):
    """Answer requests until told to end, or until the process `parent` is gone."""
    site, experiment = read_site(paths.site), load(paths.sweep, paths.shelf, paths.folder)
    if experiment.digest != digest:
        raise RunError(CHANGED)
    progress = progress_of(experiment, paths.results, name)
    server = Server(experiment, progress, paths.results)
    loop = asyncio.get_running_loop()
    for signal_number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(signal_number, server.end)
    watched = (loop, server, parent, paths.results)
    threading.Thread(target=_watch_parent, args=watched, daemon=True).start()
    umask = os.umask(0o177)  # the socket is for this user alone
    with of_socket(socket) as place:
        listening = await asyncio.start_unix_server(server.answer, f"{place}.new")
        os.rename(f"{place}.new", place)  # once it listens: who sees it may connect at once
    os.umask(umask)
    telling = asyncio.create_task(_tell(server))
    wanted = asyncio.create_task(server.wanted.wait())
    await asyncio.wait([wanted, server.ended], return_when=asyncio.FIRST_COMPLETED)
    if server.wanted.is_set():
        cluster = asyncio.create_task(_hold_cluster(server, site, paths.results))
        await asyncio.wait([cluster, server.ended], return_when=asyncio.FIRST_COMPLETED)
        telling.cancel()
        cluster.cancel()
        await asyncio.wait([cluster])
        if not (cluster.cancelled() or server.ended.done()):
            cluster.result()  # or why it could not be had
    listening.close()
    telling.cancel()
    progress.end()
    if server.ended.done():
        server.ended.result()


async def _hold_cluster(server, site, results):
    progress = server.progress
    async with connect(site, results, progress.say, show=progress.show) as client:
        server.client.set_result(client)
        await asyncio.Future()  # until this task is cancelled


async def _tell(server):
    """Tell of the progress, also while no trial ends."""
    while True:
        if server.client.done():
            client = server.client.result()
            server.progress.workers = client.scheduler_info().get("n_workers", 0)
        server.progress.tell()
        await asyncio.sleep(DRAW_SECONDS)


def progress_of(experiment, results, name=""):
    """The progress of a sweep, from what pieces of this sweep and code hold."""
    blocks, at = list(blocks_of(experiment, results)), Layout(results)
    studies = [experiment.study(each) for each in experiment.studies]
    return Progress(
        experiment.trial_count(),
        [(b.cell, seed) for b in blocks for seed in seeds_of(b.piece) if seed not in b.missing],
        [(b.cell, seed) for b in blocks for seed in b.failed],
        [(b.cell, b.piece) for b in blocks if not b.there],
        len(experiment.cells()),
        sum(study.seeds for study in studies if not study_is_there(results, study)),
        path=at.status,
        log=at.log(RUN_LOG),
        name=name,
    )


def _watch_parent(loop, server, parent, results):
    """End the run when Snakemake is gone, however it went."""
    while os.getppid() == parent:
        time.sleep(0.5)
    loop.call_soon_threadsafe(server.end)
    time.sleep(ENDING_SECONDS)
    cancel_jobs(results)
    os.killpg(0, signal.SIGKILL)


async def _serve_or_say_why(paths, socket, parent, digest, name):
    """Serve; where that ends by an error, leave the reason beside the socket and return 1.

    Jobs hear of the end when the loop ends, so whoever asks for the reason afterwards finds it.
    """
    try:
        await serve(paths, socket, parent, digest, name)
    except Exception as error:
        traceback.print_exc()
        expected = isinstance(error, ClusterError | OtherCodeError | RunError)
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
        ``parent``, the ``digest`` of the sweep as the parent has read it, and the ``name`` by which
        the run speaks of itself, or an empty one.
    """
    task = json.loads(task)
    paths, socket, parent = Paths.from_json(task["paths"]), task["socket"], task["parent"]
    try:
        served = _serve_or_say_why(paths, socket, parent, task["digest"], task["name"])
        return asyncio.run(served)
    finally:
        if os.getppid() != parent:  # nobody else is left to do it
            shutil.rmtree(os.path.dirname(socket), ignore_errors=True)
        gc.freeze()  # or Python looks for cycles among all objects as it ends, 0.4 s


if __name__ == "__main__":
    sys.exit(main(sys.argv[1]))
