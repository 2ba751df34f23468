"""Jobs on a batch system: their script, their state, and new ones for those that are lost."""

import asyncio
import os
import shlex
import sys
import tempfile
import time
from contextlib import chdir, suppress
from pathlib import Path

import dask
from distributed.core import Status

from bqlib.results.layout import Layout
from bqlib.running.certificates import certified
from bqlib.running.errors import ClusterError
from bqlib.running.journal import new_name, note_job
from bqlib.running.site import BATCH_SYSTEMS, bytes_of

# Dask's settings, below its "distributed.", where ours are others.
SETTINGS = {
    # What is done as a worker's memory fills up. Paused, or with a full disk, it stops for ever
    # without a word. Trials end with a MemoryError before that: see bqlib.running.worker.
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
    "PYTHONSAFEPATH": 1,  # nothing is imported from the working directory
}
SCRATCH = "BQLIB_SCRATCH"  # variable of a job: its folder of temporary files
COMMAND_SECONDS = 30  # for a command of the batch system
QUEUE_SECONDS = 10  # between two looks at the batch system's queue
REFUSED_SECONDS = 600  # most between two tries to submit, where jobs are refused
LOST_SECONDS = 60  # without a word of a job's workers, after which they are given up


def one_line(error):
    return " ".join(str(error).split())


def jobqueue(site, folder, name):
    """The class of dask-jobqueue for a site, and its arguments for a job of a name."""
    import dask_jobqueue  # of an extra

    class_name, account_word = BATCH_SYSTEMS[site.system]
    # Quoted for the shell; variables are those of the worker's machine.
    scratch = site.scratch or dask.config.get(f"jobqueue.{site.system}.local-directory", None)
    scratch = scratch or "${TMPDIR:-/tmp}"
    extra = ["--no-dashboard", "--dashboard-address", "127.0.0.1:0"]
    arguments = {
        "cores": site.workers_per_job,
        "processes": site.workers_per_job,
        "memory": f"{bytes_of(site.memory) * site.workers_per_job}B",
        "python": shlex.quote(sys.executable),
        "interface": site.interface,
        "local_directory": f'"${SCRATCH}"',
        "log_directory": str(Layout(folder).worker_logs),
        "job_name": name,
        # Paths below are relative, as batch systems have trouble with spaces in a path.
        "job_script_prologue": [
            f"cd {shlex.quote(os.getcwd())}",
            *[f"export {key}={value}" for key, value in _environment().items()],
            *site.prologue,
            # A folder of its own: Dask puts it first into sys.path, whoever owns it.
            f'{SCRATCH}=$(mktemp -d "{scratch}/bqlib-XXXXXXXXXX") || exit',
            f"export DASK_TEMPORARY_DIRECTORY=${SCRATCH}",
            f"trap 'rm -rf \"${SCRATCH}\"' EXIT",
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
    return getattr(dask_jobqueue, class_name), arguments


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
    cluster_class, arguments = jobqueue(site, folder, new_name(Path(folder).name))
    with tempfile.TemporaryDirectory() as scrap, chdir(scrap):  # it makes the folder of logs
        job = cluster_class.job_cls(
            "tls://LOGIN-NODE:PORT",
            name="NAME",
            protocol="tls://",
            security=certified(Layout(folder).private),
            **arguments,
        )
    return job.job_script()


class Jobs:
    """The jobs of a run on a batch system.

    dask-jobqueue's own ``adapt(n, n)`` also replaces lost jobs, but it does not know of a job that
    waits in the queue again after a preemption and submits another; it hides why a submission was
    refused, and tries again without a pause.

    Attributes
    ----------
    cluster : dask_jobqueue.JobQueueCluster
    failures : list of str
        Why submissions failed, since this was last looked at.
    """

    def __init__(self, system, folder):
        self.system = system
        self.results = folder
        self.logs = Layout(folder).worker_logs
        self.cluster = None
        self.failures = []
        self._looked = time.monotonic()
        self._heard = {}  # when a worker of a job was last there, by the job's name
        self._waiting = set()  # numbers of the jobs that wait, as far as it is known
        self._pause = QUEUE_SECONDS
        self._resume = 0.0

    def recorded(self, job_class):
        """A class of jobs that keeps failures, and writes down how each job is cancelled."""
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
                note_job(jobs.results, jobs.system, self.job_id)

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
        return f"{self.system} did not take a job: {one_line(error)}"

    async def replace(self, connected):
        """Submit a job in the place of each that is gone.

        `connected` are the names of the workers that the scheduler has.
        """
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
