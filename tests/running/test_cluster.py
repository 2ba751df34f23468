import asyncio
import json
import os
import resource
import stat
import subprocess
import sys
import time
from contextlib import ExitStack
from functools import partial
from types import SimpleNamespace

import dask
import pytest
from distributed import LocalCluster
from distributed.core import Status
from project import PROJECT
from threadpoolctl import threadpool_info, threadpool_limits

from bqlib.running import certificates, cluster, worker
from bqlib.running import jobs as jobs_module
from bqlib.running.cluster import connect
from bqlib.running.errors import ClusterError
from bqlib.running.jobs import Jobs, job_script
from bqlib.running.site import BATCH_SYSTEMS, Site, read_site

PROFILES = PROJECT / "profiles"


def site_file(folder, text):
    path = folder / "site.yaml"
    path.write_text(text)
    return path


@pytest.mark.parametrize("profile", ["local", "cluster", "batch"])
def test_the_shipped_site_files_are_read(profile):
    site = read_site(PROFILES / profile / "site.yaml")
    assert site.system == {"local": "local", "cluster": "slurm", "batch": "job"}[profile]


def test_an_empty_key_takes_its_default(tmp_path):
    path = site_file(
        tmp_path, "system: pbs\nworkers: 3\nmemory: 2GiB\nqueue:\ndirectives: [a, b]\n"
    )
    assert read_site(path) == Site(
        system="pbs", workers=3, memory="2GiB", directives=("a", "b"), walltime="01:00:00"
    )


def test_all_problems_of_a_site_file_are_told_with_their_lines(tmp_path):
    wrong = {
        "system: slrum": "is 'slrum'; allowed: slurm, pbs, lsf, sge, oar, htcondor, local, job",
        "workers: 0": "is 0; give a whole number from 1 on",
        "memory: 4": "is 4; give a text",
        "walltime: 1:00": "is '1:00'; give hours, minutes and seconds, such as 01:30:00",
        "queu: short": "unknown key; allowed: system, workers,",
        "directives: --exclusive": "give a list of texts",
        "wait: soon": "give a number of minutes",
    }
    path = site_file(tmp_path, "\n".join(wrong))
    with pytest.raises(ClusterError) as caught:
        read_site(path)
    told = str(caught.value).splitlines()
    for i, (line, problem) in enumerate(wrong.items()):
        assert told[i].startswith(f"{path}:{i + 1}: {line.split(':')[0]}: "), told[i]
        assert problem in told[i]


@pytest.mark.parametrize(
    "text, problem",
    [
        ("system: slurm\nmemory: 1GiB", "workers: missing, and system slurm needs it"),
        ("system: slurm\nworkers: 2", "memory: missing"),
        ("memory: 100MB", "a worker needs at least 512MiB"),
        ("memory: much", "give a number with its unit"),
        ("memory: 1e400GiB", "give a number with its unit"),
        (
            "system: htcondor\nworkers: 1\nmemory: 1GiB\nqueue: a",
            "site.yaml:4: queue: htcondor has",
        ),
        ("system: htcondor\nworkers: 1\nmemory: 1GiB\ndirectives: [a]", "of the form key = value"),
        ("- system", "must hold a mapping"),
    ],
)
def test_what_is_wrong_with_a_site_is_said(tmp_path, text, problem):
    with pytest.raises(ClusterError, match=r"site\.yaml:") as caught:
        read_site(site_file(tmp_path, text))
    assert problem in str(caught.value)


@pytest.mark.parametrize(
    "system, lines",
    [
        ("slurm", ["#SBATCH -p short", "#SBATCH -A physics", "#SBATCH -t 02:30:00", "--mem=4G"]),
        ("pbs", ["#PBS -q short", "#PBS -A physics", "select=1:ncpus=2:mem=4096MB"]),
        ("lsf", ["#BSUB -q short", '#BSUB -P "physics"', "#BSUB -W 02:30\n", "#BSUB -n 2"]),
        ("sge", ["#$ -q short", "#$ -P physics", "#$ -l h_rt=02:30:00"]),
        ("oar", ["#OAR -q short", "--project physics", "/nodes=1/core=2,walltime=02:30:00"]),
        ("htcondor", ["MY.DaskWorkerCores = 2", "MY.DaskWorkerMemory = 4294967296"]),
    ],
)
def test_one_word_changes_the_batch_system(system, lines, tmp_path, monkeypatch):
    own = {"queue": "short", "account": "physics", "walltime": "02:30:00"}
    extra = ("extra = line",) if system == "htcondor" else ("--extra=line",)
    site = Site(
        system=system,
        workers=4,
        workers_per_job=2,
        memory="2GiB",
        interface="ib0",
        scratch="$TMPDIR/some where",
        directives=extra,
        prologue=("module load python",),
        **({} if system == "htcondor" else own),
    )
    folder = tmp_path / "a checkout"
    folder.mkdir()
    monkeypatch.chdir(folder)
    script = job_script(site, "results/quick")
    for line in [*lines, *extra, "module load python", "--interface ib0", "--nworkers 2"]:
        assert line in script
    assert "--memory-limit 2.00GiB" in script and "--protocol tls://" in script
    assert "--tls-key results/quick/.private/key.pem" in script
    assert "--no-dashboard --dashboard-address 127.0.0.1:0" in script
    shell = script.replace("''", "'").replace('""', '"')  # condor doubles quotation marks
    assert f"cd '{folder}'" in shell and '--local-directory "$TMPDIR/some where"' in shell
    assert list(folder.iterdir()) == []


def test_systems_without_jobs_have_no_script():
    with pytest.raises(ClusterError, match=", ".join(BATCH_SYSTEMS)):
        job_script(Site(), "results/quick")


def session(site, folder, act=None):
    """Connect, do `act(client)`, and return what was said."""
    said = []

    async def work():
        async with connect(site, folder, said.append) as client:
            if act is not None:
                await act(client)

    asyncio.run(work())
    return said


def test_trials_run_inside_a_job(tmp_path):
    async def act(client):
        pids = await client.gather([client.submit(os.getpid, pure=False) for _ in range(3)])
        assert set(pids) == {os.getpid()}

    (said,) = session(Site(system="job"), tmp_path, act)
    assert said == "Dask: 1 workers"


def test_trials_inside_a_job_share_its_limits(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_DATA)

    def limits(seconds):
        with worker.memory_limited(worker.own_memory()), threadpool_limits(1):
            time.sleep(seconds)
        threads = {library["num_threads"] for library in threadpool_info()}
        return resource.getrlimit(resource.RLIMIT_DATA)[0], threads

    async def act(client):
        # The first to end must not lift the limits of the second.
        short, long = client.submit(limits, 0.1), client.submit(limits, 0.5)
        assert await short.result() == await long.result() == (2**32 - 2**28 - 2**28, {1})

    async def work():
        async with connect(Site(system="job", memory="4GiB"), tmp_path, threads=2) as client:
            await act(client)

    asyncio.run(work())
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


class Submissions:
    """Stands for a cluster of dask-jobqueue that is to have two jobs, "1" and "2"."""

    def __init__(self, jobs, error=None):
        self.jobs, self.error, self.workers, self.closed, self.tries = jobs, error, {}, [], 0
        jobs.cluster = self

    def __await__(self):
        return self._submit().__await__()

    async def _submit(self):
        self.tries += 1
        await asyncio.sleep(0.1)
        for name in {"1", "2"} - set(self.workers):
            job = SimpleNamespace(status=Status.created, job_id=f"{name}.{self.tries}")
            job.close = partial(self._close, job.job_id)
            self.workers[name] = job
            if self.error:
                job.status, job.job_id = Status.failed, None
                self.jobs.failures.append(self.jobs.told(self.error))
        if self.error:
            raise self.error

    async def _close(self, number):
        self.closed.append(number)


def test_jobs_whose_workers_are_lost_are_replaced_on_any_system(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs_module, "LOST_SECONDS", 0.05)
    jobs = Jobs("pbs", tmp_path)
    submissions = Submissions(jobs)

    async def work():
        await jobs.replace([])
        await jobs.replace(["1-0", "1-1"])
        await asyncio.sleep(0.1)
        await jobs.replace(["1-1"])
        assert jobs.numbers() == {"1.1", "2.1"}  # the second waits still
        await asyncio.sleep(0.1)
        await jobs.replace([])
        assert jobs.numbers() == {"1.4", "2.1"} and submissions.closed == ["1.1"]

    asyncio.run(work())


def test_refused_submissions_are_tried_again_ever_more_seldom(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs_module, "QUEUE_SECONDS", 0.1)
    jobs = Jobs("pbs", tmp_path)
    submissions = Submissions(jobs, RuntimeError("too many jobs"))

    async def work():
        end = time.monotonic() + 2
        while time.monotonic() < end:
            await jobs.replace([])
            assert jobs.failure() in (None, "pbs did not take a job: too many jobs")
            await asyncio.sleep(0.01)
        assert 2 <= submissions.tries <= 4
        submissions.error = None
        while not jobs.numbers():
            await jobs.replace([])
            await asyncio.sleep(0.01)

    asyncio.run(work())


def test_a_job_that_is_lost_while_others_are_refused_is_replaced_at_once(tmp_path, monkeypatch):
    monkeypatch.setattr(jobs_module, "LOST_SECONDS", 0.05)
    jobs = Jobs("pbs", tmp_path)
    submissions = Submissions(jobs)

    async def work():
        await jobs.replace([])
        await jobs.replace(["1-0"])
        submissions.error = RuntimeError("too many jobs")
        del submissions.workers["2"]
        await jobs.replace(["1-0"])
        assert jobs.numbers() == {"1.1"}
        submissions.error = None
        await asyncio.sleep(0.1)
        await jobs.replace([])
        assert "1.4" in jobs.numbers() and submissions.closed == ["1.1"]

    asyncio.run(work())


@pytest.fixture
def stand_in(tmp_path, monkeypatch):
    """Makes a shell script of a name that is found before all others."""
    programs = tmp_path / "programs"
    programs.mkdir()
    monkeypatch.setenv("PATH", f"{programs}:{os.environ['PATH']}")

    def make(name, *lines):
        (programs / name).write_text("\n".join(["#!/bin/sh", *lines]))
        (programs / name).chmod(0o755)

    return make


SLURM = Site(system="slurm", workers=2, memory="1GiB", interface="lo", wait=0.02)


def test_a_job_that_is_refused_beside_another_does_not_hide_what_ends_the_run(tmp_path, stand_in):
    once = tmp_path / "once"
    stand_in(
        "sbatch",
        f"mkdir {once} 2>&- && echo Submitted batch job 7 && exit",
        "sleep 0.5; echo too many jobs >&2; exit 1",
    )
    stand_in("squeue", "echo 7 PENDING Priority")
    stand_in("scancel", f"echo $1 >> {tmp_path}/cancelled")
    with pytest.raises(ClusterError, match=r"no Dask worker for 0\.02 minutes \(slurm\)"):
        session(SLURM, tmp_path)
    assert (tmp_path / "cancelled").read_text() == "7\n"
    assert not (tmp_path / ".jobs").exists() and not (tmp_path / ".private").exists()


def test_a_batch_system_that_does_not_answer_is_told(tmp_path, stand_in, monkeypatch):
    stand_in("sbatch", "exec sleep 100")
    monkeypatch.setattr(jobs_module, "COMMAND_SECONDS", 0.3)
    start = time.monotonic()
    with pytest.raises(ClusterError, match=r"slurm did not take a job: sbatch did not end within"):
        session(SLURM, tmp_path)
    assert time.monotonic() - start < 50


def test_what_is_being_submitted_at_the_end_of_a_run_is_known(tmp_path):
    jobs = Jobs("pbs", tmp_path)
    submissions = Submissions(jobs)

    async def work():
        task = asyncio.create_task(jobs.replace([]))
        await asyncio.sleep(0.05)
        task.cancel()
        await asyncio.wait([task])
        await asyncio.sleep(0.1)
        assert set(submissions.workers) == {"1", "2"}

    asyncio.run(work())


STRANGER = """
import encodings.idna, os, socket, ssl, sys
port, key, place = int(sys.argv[1]), *sys.argv[2:]
os.setgroups([]), os.setgid(65534), os.setuid(65534)
context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
def attempt(what, act):
    try:
        print(what, "got", act())
    except OSError as error:
        print(what, type(error).__name__, error)
def speak():
    with context.wrap_socket(socket.create_connection(("127.0.0.1", port))) as connection:
        return connection.recv(1)
attempt("scheduler", speak)
attempt("key", lambda: open(key).read())
attempt("socket", lambda: socket.socket(socket.AF_UNIX).connect(place))
"""


@pytest.mark.skipif(os.getuid() != 0, reason="becoming another user needs root")
def test_another_user_without_the_certificate_is_refused(tmp_path):
    tmp_path.parent.chmod(0o711)
    tmp_path.chmod(0o755)
    private = tmp_path / "private"
    certificates.write_certificates(private)
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    assert {stat.S_IMODE(path.stat().st_mode) for path in private.iterdir()} == {0o600}

    async def act(client):
        address = client.scheduler.address
        assert address.startswith("tls://127.0.0.1:")
        port = address.rpartition(":")[2]
        command = [sys.executable, "-c", STRANGER, port, private / "key.pem", private / "socket"]
        process = await asyncio.create_subprocess_exec(*command, stdout=subprocess.PIPE)
        output, _ = await process.communicate()
        scheduler, key, socket = output.decode().splitlines()
        assert scheduler.startswith("scheduler SSLError") and "certificate required" in scheduler
        assert key.startswith("key PermissionError")
        assert socket.startswith("socket PermissionError")

    session(Site(workers=1), tmp_path, act)


@pytest.fixture
def name_scheduler():
    """Names a scheduler, as DASK_SCHEDULER_ADDRESS and DASK_SCHEDULER_FILE do."""
    with ExitStack() as stack:

        def name(**place):
            values = {f"scheduler-{key}": str(value) for key, value in place.items()}
            stack.enter_context(dask.config.set(values))

        yield name


def test_a_missing_scheduler_file_is_told(tmp_path, name_scheduler):
    name_scheduler(file=tmp_path / "scheduler.json")
    with pytest.raises(ClusterError, match="does not exist: start the scheduler first"):
        session(Site(), tmp_path)


@pytest.mark.parametrize("content", ["", "{}", "[]"])
def test_a_broken_scheduler_file_is_told(tmp_path, name_scheduler, content):
    file = tmp_path / "scheduler.json"
    file.write_text(content)
    name_scheduler(file=file)
    with pytest.raises(ClusterError, match="cannot be read"):
        session(Site(), tmp_path)


def test_a_stale_scheduler_file_is_told(tmp_path, monkeypatch, name_scheduler):
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({"address": "tcp://127.0.0.1:9"}))
    name_scheduler(file=file)
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 2)
    with pytest.raises(ClusterError, match="no Dask scheduler answers at tcp://127"):
        session(Site(), tmp_path)


def test_missing_certificates_are_told(tmp_path, name_scheduler):
    name_scheduler(address="tls://127.0.0.1:9")
    with pytest.raises(ClusterError, match=r"tls://127\.0\.0\.1:9 asks for a certificate"):
        session(Site(), tmp_path)


@pytest.fixture
def other():
    """A scheduler of the user's own, with one worker in this process."""
    quiet = {"dashboard_address": "127.0.0.1:0", "worker_dashboard_address": "127.0.0.1:0"}
    with LocalCluster(n_workers=1, processes=False, protocol="tcp://", **quiet) as other:
        yield other


def test_a_named_scheduler_is_used(other, tmp_path, name_scheduler):
    name_scheduler(address=other.scheduler_address)
    assert session(Site(system="slurm"), tmp_path) == ["Dask: 1 workers"]
    assert len(other.scheduler_info["workers"]) == 1


def test_a_named_scheduler_without_workers_is_told(other, tmp_path, monkeypatch, name_scheduler):
    other.scale(0)
    while other.scheduler.workers:
        time.sleep(0.05)
    name_scheduler(address=other.scheduler_address)
    monkeypatch.setattr(cluster, "NAMED_SECONDS", 1)
    with pytest.raises(ClusterError, match=r"no Dask worker for .* minutes \(tcp://"):
        session(Site(), tmp_path)


def test_a_worker_that_leaves_while_it_is_asked_stops_nothing():
    async def run(function, on_error):
        return {"tcp://left": OSError("Address removed."), "tcp://here": function()}

    asyncio.run(cluster._refuse_other_versions(SimpleNamespace(run=run)))


def test_workers_that_run_other_versions_are_told(other, tmp_path, monkeypatch, name_scheduler):
    name_scheduler(address=other.scheduler_address)
    ours = cluster.versions() | {"numpy": "1.0"}
    monkeypatch.setattr(cluster, "refuse_other_versions", refuse_as_if(ours))
    with pytest.raises(ClusterError, match=r"and not 1\.0: make them equal"):
        session(Site(), tmp_path)


WITHOUT_BQLIB = """
import asyncio, sys
sys.modules["bqlib"] = None
from distributed import Scheduler
async def main():
    async with Scheduler(host="127.0.0.1", port=0, dashboard_address="127.0.0.1:0") as scheduler:
        print(scheduler.address, flush=True)
        await scheduler.finished()
asyncio.run(main())
"""


def test_a_scheduler_without_bqlib_is_told(tmp_path, name_scheduler):
    with ExitStack() as stack:

        def start(*arguments):
            command = [sys.executable, *arguments]
            process = stack.enter_context(
                subprocess.Popen(
                    command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True
                )
            )
            stack.callback(process.kill)
            return process

        address = start("-c", WITHOUT_BQLIB).stdout.readline().strip()
        start("-m", "distributed.cli.dask_worker", address, "--no-nanny", "--no-dashboard")
        name_scheduler(address=address)
        with pytest.raises(ClusterError, match="the scheduler has no bqlib"):
            session(Site(), tmp_path)


def refuse_as_if(ours):
    refuse = cluster.refuse_other_versions
    return lambda theirs, _, worker: refuse(theirs, ours, worker)


def test_workers_of_this_machine_come_back_however_often_they_crash(tmp_path):
    async def act(client):
        for _ in range(2):
            await client.submit(os._exit, 1, pure=False, retries=0).exception(timeout=60)
        assert await client.submit(abs, -1).result(timeout=60) == 1

    with dask.config.set(
        {
            "distributed.deploy.lost-worker-timeout": "1 ms",
            "distributed.scheduler.allowed-failures": 0,
        }
    ):
        session(Site(workers=1), tmp_path, act)


def test_a_cluster_that_loses_all_workers_ends_the_run(
    other, tmp_path, monkeypatch, name_scheduler
):
    name_scheduler(address=other.scheduler_address)
    monkeypatch.setattr(cluster, "NAMED_SECONDS", 0.5)
    monkeypatch.setattr(cluster, "KEEP_SECONDS", 0.1)

    async def act(client):
        await client.retire_workers()
        await asyncio.sleep(30)

    with pytest.raises(ClusterError, match="no Dask worker for"):
        session(Site(), tmp_path, act)
