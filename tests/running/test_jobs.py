"""Jobs of a batch system: their scripts, their numbers, and what becomes of lost ones."""

import asyncio
import time
from functools import partial
from types import SimpleNamespace

import pytest
from distributed.core import Status

from bqlib.results.layout import Layout
from bqlib.running import jobs as module
from bqlib.running.errors import ClusterError
from bqlib.running.jobs import Jobs, job_script
from bqlib.running.site import BATCH_SYSTEMS, Site


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
    assert f"--tls-key {Layout('results/quick').private}/key.pem" in script
    assert "--no-dashboard --dashboard-address 127.0.0.1:0" in script
    shell = script.replace("''", "'").replace('""', '"')  # condor doubles quotation marks
    assert f"cd '{folder}'" in shell
    assert 'BQLIB_SCRATCH=$(mktemp -d "$TMPDIR/some where/bqlib-' in shell
    assert '--local-directory "$BQLIB_SCRATCH"' in shell
    assert list(folder.iterdir()) == []


def test_systems_without_jobs_have_no_script():
    with pytest.raises(ClusterError, match=", ".join(BATCH_SYSTEMS)):
        job_script(Site(), "results/quick")


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
    monkeypatch.setattr(module, "LOST_SECONDS", 0.05)
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
    monkeypatch.setattr(module, "QUEUE_SECONDS", 0.1)
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
    monkeypatch.setattr(module, "LOST_SECONDS", 0.05)
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
