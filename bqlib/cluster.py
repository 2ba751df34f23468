"""One way to a Dask client: a scheduler that the user names, or else the run's own cluster."""

import asyncio
import os
import re
import shlex
import shutil
import sys
import tempfile
import time
from contextlib import AsyncExitStack, asynccontextmanager, chdir, suppress
from dataclasses import dataclass, fields
from pathlib import Path

from bqlib import yamlfile
from bqlib.files import open_privately
from bqlib.run import JOURNAL, PRIVATE
from bqlib.worker import OtherCodeError, memory_limited, refuse_other_versions, versions

# Batch systems: the class of dask-jobqueue, and its word for who pays.
BATCH_SYSTEMS = {
    "slurm": ("SLURMCluster", "account"),
    "pbs": ("PBSCluster", "account"),
    "lsf": ("LSFCluster", "project"),
    "sge": ("SGECluster", "project"),
    "oar": ("OARCluster", "project"),
    "htcondor": ("HTCondorCluster", None),
}
SYSTEMS = (*BATCH_SYSTEMS, "local", "job")
# Dask's settings, below its "distributed.", where ours are others.
SETTINGS = {
    # What is done as a worker's memory fills up. Paused, or with a full disk, it stops for ever
    # without a word; trials end with a MemoryError before it comes to that, see bqlib.worker.
    "worker.memory.target": False,
    "worker.memory.spill": False,
    "worker.memory.pause": False,
    # How closely Dask watches itself: by its own choice that takes 5 % of a core for each worker.
    "worker.profile.enabled": False,
    "worker.memory.monitor-interval": "500ms",
    "admin.tick.interval": "500ms",
    "admin.system-monitor.interval": "2s",
}
# Of a worker. Freed memory stays with it: by Dask's own choice for malloc each temporary array
# above 128 kB is new memory from the system, which doubles the cost of a design's step and more.
# 2**25 is the largest MALLOC_MMAP_THRESHOLD_ that glibc heeds.
ENVIRONMENT = {
    "OMP_NUM_THREADS": 1,
    "OPENBLAS_NUM_THREADS": 1,
    "MKL_NUM_THREADS": 1,
    "MALLOC_MMAP_THRESHOLD_": 2**25,
    "MALLOC_TRIM_THRESHOLD_": 2**27,
}
SMALLEST_MEMORY = 512 * 2**20  # Python with its libraries takes half of it
KEEP_SECONDS = 2
FOREVER = "1000 days"
COMMAND_SECONDS = 30  # for a command of the batch system
QUEUE_SECONDS = 10  # between two looks at the batch system's queue
REFUSED_SECONDS = 600  # most between two tries to submit, where jobs are refused
LOST_SECONDS = 60  # without a word of a job's workers, after which they are given up
SPEAK_SECONDS = 60
CONNECT_SECONDS = 20
NAMED_SECONDS = 40  # without any worker of a scheduler that the user names


class ClusterError(RuntimeError):
    """No cluster could be had, or it was lost; the message says why and what to do."""


@dataclass(frozen=True)
class Site:
    """The machines that a run may use. Read from a file beside the profile, never from a sweep.

    Attributes
    ----------
    system : {"slurm", "pbs", "lsf", "sge", "oar", "htcondor", "local", "job"}
        Where workers run: as jobs of a batch system; ``"local"``: as processes on this machine;
        ``"job"``: inside each of Snakemake's jobs.
    workers : int or None
        Number of workers, each with one thread; None for one on each core, where that is known.
    workers_per_job : int
        How many of them share one job of the batch system.
    memory : str
        Memory of one worker, such as ``"4GiB"``; ``"auto"`` shares this machine's evenly.
    queue, account : str or None
        Queue or partition, and the project that pays.
    walltime : str
        Time limit of one job, as ``hh:mm:ss``.
    interface : str or None
        Network interface through which login node and workers reach each other.
    scratch : str or None
        Folder for workers' temporary files; variables are those of the worker's machine.
    directives : tuple of str
        Further lines of a job's header, without their ``#SBATCH`` or the like.
    prologue : tuple of str
        Shell lines that a job runs before its workers start.
    wait : int
        Minutes without any worker after which the run gives up.
    """

    system: str = "local"
    workers: int | None = None
    workers_per_job: int = 1
    memory: str = "auto"
    queue: str | None = None
    account: str | None = None
    walltime: str = "01:00:00"
    interface: str | None = None
    scratch: str | None = None
    directives: tuple[str, ...] = ()
    prologue: tuple[str, ...] = ()
    wait: float = 30


def read_site(path):
    """Read a site file.

    Raises
    ------
    ClusterError
        With everything that is wrong: unknown keys, values that are not allowed.
    """
    path = Path(path)
    try:
        found, lines, problems = yamlfile.read(path)
    except yamlfile.UnreadableError as error:
        raise ClusterError(f"{path}:{error.line}: {error}") from None
    allowed = [field.name for field in fields(Site)]
    values = {}
    for key, value in found.items():
        if key not in allowed:
            problem = f"unknown key; allowed: {', '.join(allowed)}"
        elif value is None:  # left empty: the default
            continue
        else:
            problem = _problem(key, value)
            values[key] = tuple(value) if isinstance(value, list) else value
        if problem:
            problems.append((lines[(key,)], f"{key}: {problem}"))
    if not problems:
        problems = [(lines.get((k,), 1), f"{k}: {text}") for k, text in _misfits(Site(**values))]
    if problems:
        raise ClusterError("\n".join(f"{path}:{line}: {text}" for line, text in sorted(problems)))
    return Site(**values)


def _problem(key, value):
    """What is wrong with one value of a site file, or None."""
    if key == "system":
        if value not in SYSTEMS:
            return f"is {value!r}; allowed: {', '.join(SYSTEMS)}"
    elif key in ("workers", "workers_per_job"):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            return f"is {value!r}; give a whole number from 1 on"
    elif key == "wait":
        if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
            return f"is {value!r}; give a number of minutes"
    elif key in ("directives", "prologue"):
        if not isinstance(value, list) or not all(isinstance(line, str) for line in value):
            return f'is {value!r}; give a list of texts, such as ["first", "second"]'
    elif not isinstance(value, str):
        return f"is {value!r}; give a text (in quotes, if it looks like a number)"
    elif key == "walltime":
        if not re.fullmatch(r"\d+:[0-5]\d:[0-5]\d", value):
            return f"is {value!r}; give hours, minutes and seconds, such as 01:30:00"
    elif key == "memory" and value != "auto":
        if _bytes(value) is None:
            return f"is {value!r}; give a number with its unit, such as 4GiB"
        if _bytes(value) < SMALLEST_MEMORY:
            return f"is {value!r}; a worker needs at least 512MiB"
    return None


def _misfits(site):
    """(key, problem) of each value that does not go with the site's system."""
    if site.system in BATCH_SYSTEMS:
        for key in ("workers", "memory"):
            if getattr(site, key) in (None, "auto"):
                yield key, f"missing, and system {site.system} needs it"
    if site.system == "htcondor":
        for key in ("queue", "account"):
            if getattr(site, key) is not None:
                yield key, "htcondor has none; use directives, such as accounting_group = physics"
        for line in site.directives:
            if "=" not in line:
                yield "directives", f"{line!r} must be of the form key = value for htcondor"


def _bytes(text):
    from dask.utils import parse_bytes

    try:
        return parse_bytes(text)
    except (ValueError, OverflowError):  # of 1e400GiB
        return None


@asynccontextmanager
async def connect(site, folder, say=lambda text: None, threads=1):
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

    Yields
    ------
    client : distributed.Client

    Raises
    ------
    ClusterError
        If no worker could be had in time, if a named scheduler's workers run other versions, or,
        in the body, when all workers are gone for too long.
    """
    import dask
    import distributed

    dask.config.set({f"distributed.{key}": value for key, value in SETTINGS.items()})
    dask.config.set({"distributed.nanny.pre-spawn-environ": ENVIRONMENT})
    named = _named_scheduler()
    async with AsyncExitStack() as stack:
        cluster = jobs = None
        place = {"address": named}
        if named is None:
            try:
                cluster, jobs = await _own_cluster(stack, site, Path(folder), threads)
            except (OSError, RuntimeError) as error:
                raise ClusterError(
                    f"the run's own cluster does not start: {_line(error)}"
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
                f"no Dask scheduler answers at {place['address']}: {_line(error)}"
            ) from None
        guard = _Guard(client, jobs, site, named, say)
        await guard.first_worker()
        if named:
            await _refuse_scheduler_without_us(client)
        await _refuse_other_versions(client)
        dashboard = site.system != "job" and cluster is not None
        link = ""
        if dashboard:
            port = cluster.scheduler.http_server.port
            link = f", dashboard http://127.0.0.1:{port}/status"
        say(f"Dask: {len(await client.nthreads())} workers{link}")
        try:
            async with asyncio.TaskGroup() as group:
                watch = group.create_task(guard.watch())
                if dashboard:
                    group.create_task(_draw_dashboard(cluster.scheduler))
                yield client
                watch.cancel()
        except BaseExceptionGroup as errors:
            raise errors.exceptions[0] from None


def _line(error):
    return " ".join(str(error).split())


def _named_scheduler():
    """Address of the scheduler that the user names, or None."""
    import json

    import dask

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
    from distributed import Security

    return Security().get_connection_args("client")["ssl_context"] is not None


async def _own_cluster(stack, site, folder, threads):
    """Start the run's own cluster, to end with `stack`; and its jobs on a batch system, or None."""
    import dask
    import distributed
    from threadpoolctl import threadpool_limits

    # Whatever is lost is replaced here, or comes back by itself: Dask would give it up meanwhile.
    stack.enter_context(dask.config.set({"distributed.deploy.lost-worker-timeout": FOREVER}))
    own = {"asynchronous": True, "silence_logs": False}
    # Loopback or TLS: other users of these machines cannot run code as this one.
    loopback = "127.0.0.1:0"
    if site.system in BATCH_SYSTEMS:
        private = folder / PRIVATE
        stack.callback((folder / JOURNAL).unlink, missing_ok=True)
        _write_certificates(private)
        stack.callback(shutil.rmtree, private, ignore_errors=True)
        jobs = _Jobs(site.system, folder)
        cluster_class, arguments = _jobqueue(site, folder)
        jobs.cluster = cluster = cluster_class(
            n_workers=0,
            job_cls=jobs.recorded(cluster_class.job_cls),
            security=_certified(private),
            protocol="tls://",
            scheduler_options={"dashboard": False, "dashboard_address": loopback},
            **arguments,
            **own,
        )
        await stack.enter_async_context(cluster)
        cluster.scale(jobs=-(-site.workers // site.workers_per_job))
        return cluster, jobs
    own |= {
        "memory_limit": site.memory,
        "local_directory": site.scratch and os.path.expandvars(site.scratch),
    }
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
            n_workers=site.workers or len(os.sched_getaffinity(0)),
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


def _certified(folder):
    """TLS with the certificate and key in files of a folder."""
    from distributed import Security

    files = {"ca_file": folder / "ca.pem"}
    for role in ("client", "scheduler", "worker"):
        files |= {f"{role}_key": folder / "key.pem", f"{role}_cert": folder / "cert.pem"}
    return Security(
        require_encryption=True, **{f"tls_{name}": str(path) for name, path in files.items()}
    )


def _write_certificates(folder):
    """New ones, in a new folder that nobody else may read."""
    from distributed import Security

    made = Security.temporary()
    shutil.rmtree(folder, ignore_errors=True)  # of a run that was killed
    folder.mkdir(mode=0o700, parents=True)
    for name, text in {
        "ca.pem": made.tls_ca_file,
        "key.pem": made.tls_worker_key,
        "cert.pem": made.tls_worker_cert,
    }.items():
        descriptor = os.open(folder / name, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        with open(descriptor, "w", encoding="ascii") as file:
            file.write(text)


def _jobqueue(site, folder):
    """The class of dask-jobqueue for a site, and its arguments for a job."""
    import dask_jobqueue

    name, account_word = BATCH_SYSTEMS[site.system]
    # Quoted for the shell; variables are those of the worker's machine.
    extra = ["--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
    arguments = {
        "cores": site.workers_per_job,
        "processes": site.workers_per_job,
        "memory": f"{_bytes(site.memory) * site.workers_per_job}B",
        "python": shlex.quote(sys.executable),
        "interface": site.interface,
        "local_directory": f'"{site.scratch}"' if site.scratch else None,
        "log_directory": str(folder / "logs" / "workers"),
        "job_name": f"bqlib-{folder.name}",
        # Paths below are relative, as batch systems have trouble with spaces in a path.
        "job_script_prologue": [
            f"cd {shlex.quote(os.getcwd())}",
            *[f"export {name}={value}" for name, value in _environment().items()],
            *site.prologue,
        ],
        "worker_extra_args": extra,
    }
    if site.system == "htcondor":
        keys = [line.split("=", 1) for line in site.directives]
        arguments |= {
            "disk": "1GiB",
            "job_extra_directives": {key.strip(): value.strip() for key, value in keys},
        }
    else:
        hours = site.walltime
        arguments |= {
            "queue": site.queue,
            account_word: site.account,
            "walltime": hours.rpartition(":")[0] if site.system == "lsf" else hours,
            "job_extra_directives": list(site.directives),
        }
    if site.system == "oar":  # its nodes name their memory in different ways: use directives
        arguments["memory_per_core_property_name"] = "not_applicable"
    return getattr(dask_jobqueue, name), arguments


def _environment():
    """Variables of a job, among them those by which Dask takes over our settings."""
    names = str.maketrans({".": "__", "-": "_"})
    dask = {f"DASK_DISTRIBUTED__{k.translate(names).upper()}": v for k, v in SETTINGS.items()}
    return dask | ENVIRONMENT


def job_script(site, folder):
    """The script that a run would submit for each of its jobs.

    Raises
    ------
    ClusterError
        If the site's system submits none.
    """
    if site.system not in BATCH_SYSTEMS:
        raise ClusterError(
            f"system {site.system} submits no jobs; with one: {', '.join(BATCH_SYSTEMS)}"
        )
    folder = Path(folder)
    cluster_class, arguments = _jobqueue(site, folder)
    with tempfile.TemporaryDirectory() as scrap, chdir(scrap):  # it makes the folder of logs
        job = cluster_class.job_cls(
            "tls://LOGIN-NODE:PORT",
            name="NAME",
            protocol="tls://",
            security=_certified(folder / PRIVATE),
            **arguments,
        )
    return job.job_script()


class _Jobs:
    """The jobs of a run on a batch system.

    Attributes
    ----------
    cluster : dask_jobqueue.JobQueueCluster
    failures : list of str
        Why submissions failed, since this was last looked at.
    """

    def __init__(self, system, folder):
        self.system = system
        self.logs = folder / "logs" / "workers"
        self.journal = folder / JOURNAL
        self.cluster = None
        self.failures = []
        self._looked = time.monotonic()
        self._heard = {}  # when a worker of a job was last there, by the job's name
        self._waiting = set()  # numbers of the jobs that wait, as far as it is known
        self._pause = QUEUE_SECONDS
        self._resume = 0.0

    def recorded(self, job_class):
        """A class of jobs that keeps failures, and writes down how each job is cancelled."""
        from distributed.core import Status

        jobs = self

        class Job(job_class):
            async def start(self):
                try:
                    await super().start()
                except (OSError, RuntimeError, ValueError) as error:
                    self.status = Status.failed
                    # In words, as its traceback would hold on to the jobs that were taken.
                    jobs.failures.append(jobs.told(error))
                    raise
                with open(jobs.journal, "a", encoding="utf-8", opener=open_privately) as journal:
                    journal.write(f"{self.cancel_command} {self.job_id}\n")

            async def close(self):
                await super().close()
                self.status = Status.closed  # which the cluster asks for at its end

            @staticmethod
            async def _call(command, **arguments):
                return await _output(command, **arguments)

        return Job

    def failure(self):
        """Why a submission failed, in one line; None where all went well."""
        if not self.failures:
            return None
        failure = self.failures[-1]
        self.failures.clear()
        return failure

    def told(self, error):
        """Why a submission failed, in one line."""
        if isinstance(error, FileNotFoundError):
            return (
                f"{error.filename} was not found: run this on a machine that may submit jobs to "
                f"{self.system}, or name another system in the site file"
            )
        return f"{self.system} did not take a job: {_line(error)}"

    async def replace(self, connected):
        """Submit a job in the place of each that is gone.

        `connected` are the names of the workers that the scheduler has.
        """
        from distributed.core import Status

        gone = await self._gone()
        now = time.monotonic()
        due = now >= self._resume
        ended = False
        for name, job in list(self.cluster.workers.items()):
            there = any(f"{worker}-".startswith(f"{name}-") for worker in connected)
            # One that was put back into the queue is not lost.
            there |= name in self._heard and job.job_id in self._waiting
            if there:
                self._heard[name] = now
                continue
            lost = now - self._heard.get(name, now) > LOST_SECONDS
            if lost:  # it may be there still, as on a node that hangs
                await job.close()
            if lost or job.job_id in gone:
                ended = True
            elif not (due and job.status == Status.failed):
                continue
            del self.cluster.workers[name]
            self._heard.pop(name, None)
        if not (due or ended):  # what was taken once is asked for again at once
            return
        with suppress(OSError, RuntimeError, ValueError):  # kept in failures
            # Shielded: what is just being submitted must be known to whoever ends the run.
            await asyncio.shield(self.cluster)
        if self.failures:
            self._pause = min(2 * self._pause, REFUSED_SECONDS)
            self._resume = time.monotonic() + self._pause
        elif due:
            self._pause = QUEUE_SECONDS

    async def _gone(self):
        """Numbers of the jobs that the batch system has ended, as far as it can be asked."""
        if self.system != "slurm" or time.monotonic() - self._looked < QUEUE_SECONDS:
            return set()
        self._looked = time.monotonic()
        numbers, states = self.numbers(), await self.states()
        if states is None:
            return set()
        self._waiting = {number for number in states if states[number].startswith("PENDING")}
        return numbers - set(states)

    def numbers(self):
        """Numbers of the jobs that the batch system took."""
        return {job.job_id for job in self.cluster.workers.values() if job.job_id}

    async def states(self):
        """State of each job that waits or runs, by its number; None where it is not known."""
        if self.system != "slurm":
            return None
        command = ["squeue", "--noheader", "--format=%A %T %r", f"--user={os.getuid()}"]
        try:
            output = await _output(command)
        except (OSError, RuntimeError):
            return None
        rows = [line.split(maxsplit=2) for line in output.splitlines()]
        return {number: f"{state} ({reason})" for number, state, reason in rows}

    def last_words(self):
        """The end of the newest log of a worker."""
        logs = [path for path in self.logs.glob("*") if path.stat().st_size]
        if not logs:
            return ""
        newest = max(logs, key=lambda path: path.stat().st_mtime)
        lines = newest.read_text(encoding="utf-8", errors="replace").splitlines()
        return f"; {newest} ends with: {' | '.join(line.strip() for line in lines[-3:])}"


async def _output(command, shell=False, **arguments):
    """What a command of the batch system prints, within a time after which it is killed.

    Raises
    ------
    OSError
        If there is no such command.
    RuntimeError
        If it fails, with its own words, or does not end.
    """
    start = asyncio.create_subprocess_shell if shell else asyncio.create_subprocess_exec
    pipe = asyncio.subprocess.PIPE
    process = await start(*command, stdout=pipe, stderr=pipe, **arguments)
    try:
        output, errors = await asyncio.wait_for(process.communicate(), COMMAND_SECONDS)
    except TimeoutError:
        raise RuntimeError(f"{command[0]} did not end within {COMMAND_SECONDS} s") from None
    finally:
        if process.returncode is None:
            with suppress(ProcessLookupError):
                process.kill()
            with suppress(TimeoutError):  # on a disk that hangs it cannot even be killed
                await asyncio.wait_for(process.wait(), 1)
    if process.returncode != 0:
        words = errors.decode(errors="replace").strip()
        raise RuntimeError(words or f"{command[0]} ended with exit code {process.returncode}")
    return output.decode(errors="replace")


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
    from importlib import import_module

    dashboard = await asyncio.to_thread(import_module, "distributed.dashboard.scheduler")
    dashboard.connect(scheduler.http_application, scheduler.http_server, scheduler, prefix="")


async def _refuse_scheduler_without_us(client):
    """A scheduler loads what it hands on: without bqlib, every trial would fail."""
    try:
        await client.run_on_scheduler(versions)
    except (ImportError, AttributeError) as error:
        raise ClusterError(
            f"the scheduler has no bqlib, or another one: {_line(error)}; start it with the Python "
            "of this environment"
        ) from None


async def _refuse_other_versions(client):
    found = await client.run(versions, on_error="return")
    for worker, theirs in found.items():
        if isinstance(theirs, OSError):  # it has left in the meantime
            continue
        if isinstance(theirs, ImportError | AttributeError):
            raise ClusterError(f"workers have no bqlib, or another one: {_line(theirs)}")
        if isinstance(theirs, Exception):
            raise theirs
        try:
            refuse_other_versions(theirs, versions(), worker)
        except OtherCodeError as error:
            raise ClusterError(str(error)) from None
