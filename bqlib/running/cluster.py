"""One way to a Dask client: a scheduler that the user names, or else the run's own cluster."""

import asyncio
import json
import os
import shutil
import time
from contextlib import AsyncExitStack, asynccontextmanager
from importlib import import_module
from pathlib import Path

import dask
import distributed
from threadpoolctl import threadpool_limits

from bqlib.results.layout import Layout
from bqlib.running import scratch
from bqlib.running.certificates import certified, write_certificates
from bqlib.running.errors import ClusterError, OtherCodeError
from bqlib.running.jobs import ENVIRONMENT, SETTINGS, Jobs, jobqueue, one_line
from bqlib.running.journal import forget_jobs, new_name, note_name
from bqlib.running.site import BATCH_SYSTEMS
from bqlib.running.worker import EndsQuickly, memory_limited, refuse_other_versions, versions

# Of the dashboard. Others of Dask's let any user of this machine add a plug-in to the scheduler
# (eventstream, in its info) or have it ask other addresses (proxy).
ROUTES = [f"distributed.http.{name}" for name in ("scheduler.json", "health", "statics")]
KEEP_SECONDS = 2
FOREVER = "1000 days"
PAUSE = "10 minutes"  # for which the processes of a run on this machine may be stopped
SPEAK_SECONDS = 60
CONNECT_SECONDS = 20
NAMED_SECONDS = 40  # without any worker of a scheduler that the user names


@asynccontextmanager
async def connect(site, folder, say=lambda text: None, threads=1, show=lambda address: None):
    """An asynchronous client with at least one worker.

    A scheduler is named by ``DASK_SCHEDULER_ADDRESS`` or ``DASK_SCHEDULER_FILE`` (or the same
    keys in Dask's configuration); its TLS files are those of Dask's configuration. Where none is
    named, the run's own cluster is started as `site` says, kept at its size, and ends with this
    context.

    Parameters
    ----------
    site : Site
    folder : Path
        The experiment's folder of results. Workers on a batch system must see it: their
        certificates lie in it for the time of the run, and their logs.
    say : callable
        Is told in one line what the user should know.
    threads : int
        Threads where the system is ``"job"``.
    show : callable
        Is told the address of the dashboard of the run's own cluster.

    Yields
    ------
    client : distributed.Client

    Raises
    ------
    ClusterError
        If no worker could be had in time, if a named scheduler's workers run other versions, or,
        in the body, when all workers are gone for too long.
    """
    dask.config.set({f"distributed.{key}": value for key, value in SETTINGS.items()})
    dask.config.set({"distributed.nanny.pre-spawn-environ": ENVIRONMENT})
    dask.config.set({"distributed.scheduler.http.routes": ROUTES})
    named = _named_scheduler()
    async with AsyncExitStack() as stack:
        cluster = jobs = None
        place = {"address": named}
        if named is None:
            try:
                cluster, jobs = await _own_cluster(stack, site, Path(folder), threads)
            except (OSError, RuntimeError) as error:
                raise ClusterError(
                    f"the run's own cluster does not start: {one_line(error)}"
                ) from None
            place = {"address": cluster.scheduler_address, "security": cluster.security}
        try:
            if named and named.startswith("tls:") and not _has_certificate():
                raise ClusterError(
                    f"the scheduler at {named} asks for a certificate: name its files in Dask's "
                    "configuration, as by DASK_DISTRIBUTED__COMM__TLS__CA_FILE"
                )
            client = await stack.enter_async_context(
                distributed.Client(**place, asynchronous=True, timeout=CONNECT_SECONDS)
            )
        except (OSError, TimeoutError, ValueError) as error:
            raise ClusterError(
                f"no Dask scheduler answers at {place['address']}: {one_line(error)}"
            ) from None
        guard = _Guard(client, jobs, site, named, say)
        await guard.first_worker()
        if named:
            await _refuse_scheduler_without_us(client)
        await _refuse_other_versions(client)
        link = ""
        in_processes = site.system != "job" and cluster is not None
        if in_processes:
            await client.register_plugin(EndsQuickly())
            address = f"http://127.0.0.1:{cluster.scheduler.http_server.port}/status"
            show(address)
            link = f", dashboard {address}"
        say(f"Dask: {len(await client.nthreads())} workers{link}")
        try:
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(guard.watch())
                if in_processes:
                    group.create_task(_draw_dashboard(cluster.scheduler))
                yield client
                watch.cancel()
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None


def _named_scheduler():
    """Address of the scheduler that the user names, or None."""
    address = dask.config.get("scheduler-address", None)
    file = dask.config.get("scheduler-file", None)
    if address or not file:
        return address
    try:
        return json.loads(Path(file).read_text(encoding="utf-8"))["address"]
    except FileNotFoundError:
        problem = "does not exist: start the scheduler first"
    except (OSError, ValueError, KeyError, TypeError) as error:
        problem = f"cannot be read ({error}): start the scheduler again"
    raise ClusterError(f"the scheduler file {file} {problem}")


def _has_certificate():
    return distributed.Security().get_connection_args("client")["ssl_context"] is not None


async def _own_cluster(stack, site, folder, threads):
    """Start the run's own cluster, to end with `stack`; and its jobs on a batch system, or None."""
    # Whatever is lost is replaced here, or comes back by itself: Dask would give it up meanwhile.
    stack.enter_context(dask.config.set({"distributed.deploy.lost-worker-timeout": FOREVER}))
    own = {"asynchronous": True, "silence_logs": False}
    workers = site.workers or len(os.sched_getaffinity(0))
    _allow_open_files(workers)
    # Dask puts a folder of a name that all can foresee first into sys.path, whoever owns it, where
    # it has none of its own.
    base = None if site.system in BATCH_SYSTEMS else site.scratch
    base = base and os.path.expandvars(base)
    scratch.remove_left(base)
    own_folder = scratch.make(base)
    stack.callback(own_folder.remove)
    stack.enter_context(dask.config.set({"temporary-directory": str(own_folder.path)}))
    if site.system not in BATCH_SYSTEMS:  # where nothing but a pause keeps an answer
        stack.enter_context(dask.config.set({"distributed.comm.timeouts.connect": PAUSE}))
    # Loopback or TLS: other users of these machines cannot run code as this one.
    loopback = "127.0.0.1:0"
    if site.system in BATCH_SYSTEMS:
        private = Layout(folder).private
        name = new_name(folder.name)
        note_name(folder, site.system, name)
        stack.callback(forget_jobs, folder)
        write_certificates(private)
        stack.callback(shutil.rmtree, private, ignore_errors=True)
        jobs = Jobs(site.system, folder)
        cluster_class, arguments = jobqueue(site, folder, name)
        jobs.cluster = cluster = cluster_class(
            n_workers=0,
            job_cls=jobs.recorded(cluster_class.job_cls),
            security=certified(private),
            protocol="tls://",
            scheduler_options={"dashboard": False, "dashboard_address": loopback},
            **arguments,
            **own,
        )
        await stack.enter_async_context(cluster)
        cluster.scale(jobs=-(-site.workers // site.workers_per_job))
        return cluster, jobs
    own |= {"memory_limit": site.memory, "local_directory": str(own_folder.path)}
    loopback_only = {
        "dashboard_address": loopback,
        "worker_dashboard_address": loopback,
        "scheduler_kwargs": {"dashboard": False},
    }
    if site.system == "job":
        cluster = distributed.LocalCluster(
            processes=False, n_workers=1, threads_per_worker=threads, **loopback_only, **own
        )
    else:
        cluster = distributed.LocalCluster(
            n_workers=workers,
            threads_per_worker=1,
            host="127.0.0.1",
            protocol="tls://",
            security=distributed.Security.temporary(),
            **loopback_only,
            **own,
        )
    stack.push_async_callback(cluster.close)
    await cluster
    if site.system == "job":
        # Of the whole process: or the end of one thread's trial would lift them for all others.
        [worker] = cluster.workers.values()
        stack.enter_context(memory_limited(worker.memory_manager.memory_limit))
        stack.enter_context(threadpool_limits(1))
    return cluster, None


def _allow_open_files(workers):
    """Let this process have the connections of so many workers open.

    Raises
    ------
    ClusterError
        If the system does not allow it.
    """
    import resource  # not on every system

    needed = 100 + 16 * workers  # measured: 30, and 12 for each worker on this machine
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    if resource.RLIM_INFINITY != hard < needed:
        raise ClusterError(
            f"a process may open {hard} files here, and {workers} workers need {needed}: allow "
            f"more (ulimit -n {needed}), or ask for fewer workers in the site file"
        )
    if resource.RLIM_INFINITY != soft < needed:
        resource.setrlimit(resource.RLIMIT_NOFILE, (needed, hard))


class _Guard:
    """Watches over a client's workers, and ends the run when there have been none for too long."""

    def __init__(self, client, jobs, site, named, say):
        self.client, self.jobs, self.say = client, jobs, say
        self.system = named or site.system
        self.patience = NAMED_SECONDS if named else 60 * site.wait

    async def first_worker(self):
        """Return when there is a worker."""
        start = spoken = time.monotonic()
        looked = start
        while not await self._names():
            now = time.monotonic()
            # Where some jobs were taken, the others are tried again.
            if self.jobs and self.jobs.cluster.workers and not self.jobs.numbers():
                failure = self.jobs.failure()
                if failure:
                    raise ClusterError(failure)
            if now - start > self.patience:
                raise ClusterError(self._no_worker())
            if self.jobs and now - looked > KEEP_SECONDS:
                looked = now
                # In this order: a job that is taken in between is not among the numbers.
                numbers, states = self.jobs.numbers(), await self.jobs.states()
                if states is not None and numbers and not numbers & set(states):
                    if not await self._names():
                        raise ClusterError(
                            "all jobs ended before their workers had connected"
                            + self.jobs.last_words()
                        )
                    return
            if now - spoken > SPEAK_SECONDS:
                spoken = now
                self.say(await self._waiting())
            await asyncio.sleep(0.1)

    async def watch(self):
        """Replace jobs that are gone; raise where no worker was there for too long."""
        seen = time.monotonic()
        while True:
            await asyncio.sleep(KEEP_SECONDS)
            if self.client.status not in ("running", "connecting"):
                raise ClusterError(f"the scheduler is gone ({self.system}): start the run again")
            try:
                names = await self._names()
            except OSError:
                names = []
            if names:
                seen = time.monotonic()
            elif time.monotonic() - seen > self.patience:
                raise ClusterError(self._no_worker())
            if self.jobs:
                await self.jobs.replace(names)
                failure = self.jobs.failure()
                if failure:
                    self.say(f"{failure}; trying again")

    async def _names(self):
        workers = await self.client.scheduler.identity(n_workers=-1)
        return [str(worker["name"]) for worker in workers["workers"].values()]

    def _no_worker(self):
        minutes = f"{self.patience / 60:.3g} minutes"
        return f"no Dask worker for {minutes} ({self.system})" + (
            f"{self.jobs.last_words()}. The limit is the site file's key wait" if self.jobs else ""
        )

    async def _waiting(self):
        states = self.jobs and await self.jobs.states()
        if not states:
            return f"waiting for a worker ({self.system})"
        own = [states.get(number, "gone") for number in sorted(self.jobs.numbers())]
        counts = [f"{own.count(state)} {state}" for state in dict.fromkeys(own)]
        return f"waiting for a worker; jobs of {self.system}: {', '.join(counts)}"


async def _draw_dashboard(scheduler):
    """Add Dask's dashboard, whose modules take seconds to load, to a scheduler that runs."""
    dashboard = await asyncio.to_thread(import_module, "distributed.dashboard.scheduler")
    dashboard.connect(scheduler.http_application, scheduler.http_server, scheduler, prefix="")


async def _refuse_scheduler_without_us(client):
    """A scheduler loads what it hands on: without bqlib, every trial would fail."""
    try:
        await client.run_on_scheduler(versions)
    except (ImportError, AttributeError) as error:
        raise ClusterError(
            f"the scheduler has no bqlib, or another one: {one_line(error)}; start it with the "
            "Python of this environment"
        ) from None


async def _refuse_other_versions(client):
    found = await client.run(versions, on_error="return")
    for worker, theirs in found.items():
        if isinstance(theirs, OSError):  # it has left in the meantime
            continue
        if isinstance(theirs, ImportError | AttributeError):
            raise ClusterError(f"workers have no bqlib, or another one: {one_line(theirs)}")
        if isinstance(theirs, Exception):
            raise theirs
        try:
            refuse_other_versions(theirs, versions(), worker)
        except OtherCodeError as error:
            raise ClusterError(str(error)) from None
