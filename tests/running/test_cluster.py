"""The Dask cluster of a run: the site's own, or one that the user names."""

import asyncio
import json
import os
import subprocess
import sys
import time
from contextlib import ExitStack
from types import SimpleNamespace

import dask
import pytest
from distributed import LocalCluster
from local_dask import QUIET, connected

from bqlib.results.layout import Layout
from bqlib.running import cluster, jobs
from bqlib.running.errors import ClusterError
from bqlib.running.site import Site


def test_trials_run_inside_a_job(tmp_path):
    async def act(client):
        pids = await client.gather([client.submit(os.getpid, pure=False) for _ in range(3)])
        assert set(pids) == {os.getpid()}

    (said,) = connected(Site(system="job"), tmp_path, act)
    assert said == "Dask: 1 workers"


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
        connected(SLURM, tmp_path)
    by_number, by_name, *again = (tmp_path / "cancelled").read_text().split()
    assert by_number == "7" and by_name.startswith("--name=bqlib-") and set(again) <= {"7"}
    assert not Layout(tmp_path).journal.exists() and not Layout(tmp_path).private.exists()


def test_a_batch_system_that_does_not_answer_is_told(tmp_path, stand_in, monkeypatch):
    stand_in("sbatch", "exec sleep 100")
    monkeypatch.setattr(jobs, "COMMAND_SECONDS", 0.3)
    start = time.monotonic()
    with pytest.raises(ClusterError, match=r"slurm did not take a job: sbatch did not end within"):
        connected(SLURM, tmp_path)
    assert time.monotonic() - start < 50


@pytest.fixture
def name_scheduler():
    """Names a scheduler, as DASK_SCHEDULER_ADDRESS and DASK_SCHEDULER_FILE do."""
    with ExitStack() as stack:

        def name(**place):
            values = {f"scheduler-{key}": str(value) for key, value in place.items()}
            stack.enter_context(dask.config.set(values))

        yield name


def test_too_few_open_files_are_told_before_workers_start(tmp_path, monkeypatch):
    monkeypatch.setattr("resource.getrlimit", lambda which: (64, 128))
    told = r"may open 128 files here, and 2 workers need 132: .*ulimit -n 132.* or ask for fewer"
    with pytest.raises(ClusterError, match=told):
        connected(Site(workers=2), tmp_path)


def test_as_many_open_files_are_allowed_as_workers_need(tmp_path, monkeypatch):
    allowed = []
    monkeypatch.setattr("resource.getrlimit", lambda which: (64, 4096))
    monkeypatch.setattr("resource.setrlimit", lambda which, limits: allowed.append(limits))
    cluster._allow_open_files(2)
    assert allowed == [(132, 4096)]


def test_a_missing_scheduler_file_is_told(tmp_path, name_scheduler):
    name_scheduler(file=tmp_path / "scheduler.json")
    with pytest.raises(ClusterError, match="does not exist: start the scheduler first"):
        connected(Site(), tmp_path)


@pytest.mark.parametrize("content", ["", "{}", "[]"])
def test_a_broken_scheduler_file_is_told(tmp_path, name_scheduler, content):
    file = tmp_path / "scheduler.json"
    file.write_text(content)
    name_scheduler(file=file)
    with pytest.raises(ClusterError, match="cannot be read"):
        connected(Site(), tmp_path)


def test_a_stale_scheduler_file_is_told(tmp_path, monkeypatch, name_scheduler):
    file = tmp_path / "scheduler.json"
    file.write_text(json.dumps({"address": "tcp://127.0.0.1:9"}))
    name_scheduler(file=file)
    monkeypatch.setattr(cluster, "CONNECT_SECONDS", 2)
    with pytest.raises(ClusterError, match="no Dask scheduler answers at tcp://127"):
        connected(Site(), tmp_path)


def test_missing_certificates_are_told(tmp_path, name_scheduler):
    name_scheduler(address="tls://127.0.0.1:9")
    with pytest.raises(ClusterError, match=r"tls://127\.0\.0\.1:9 asks for a certificate"):
        connected(Site(), tmp_path)


@pytest.fixture
def other():
    """A scheduler of the user's own, with one worker in this process."""
    with LocalCluster(n_workers=1, processes=False, protocol="tcp://", **QUIET) as other:
        yield other


def test_a_named_scheduler_is_used(other, tmp_path, name_scheduler):
    name_scheduler(address=other.scheduler_address)
    assert connected(Site(system="slurm"), tmp_path) == ["Dask: 1 workers"]
    assert len(other.scheduler_info["workers"]) == 1


def test_a_named_scheduler_without_workers_is_told(other, tmp_path, monkeypatch, name_scheduler):
    other.scale(0)
    while other.scheduler.workers:
        time.sleep(0.05)
    name_scheduler(address=other.scheduler_address)
    monkeypatch.setattr(cluster, "NAMED_SECONDS", 1)
    with pytest.raises(ClusterError, match=r"no Dask worker for .* minutes \(tcp://"):
        connected(Site(), tmp_path)


def test_a_worker_that_leaves_while_it_is_asked_stops_nothing():
    async def run(function, on_error):
        return {"tcp://left": OSError("Address removed."), "tcp://here": function()}

    asyncio.run(cluster._refuse_other_versions(SimpleNamespace(run=run)))


def test_workers_that_run_other_versions_are_told(other, tmp_path, monkeypatch, name_scheduler):
    name_scheduler(address=other.scheduler_address)
    ours = cluster.versions() | {"numpy": "1.0"}
    monkeypatch.setattr(cluster, "refuse_other_versions", refuse_as_if(ours))
    with pytest.raises(ClusterError, match=r"and not 1\.0: make them equal"):
        connected(Site(), tmp_path)


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
            connected(Site(), tmp_path)


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
        connected(Site(workers=1), tmp_path, act)


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
        connected(Site(), tmp_path, act)
