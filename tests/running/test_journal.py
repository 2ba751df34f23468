"""The journal of a run's jobs."""

import dask_jobqueue
import pytest

from bqlib.running.journal import CANCEL, cancel_jobs, note_job
from bqlib.running.site import BATCH_SYSTEMS


@pytest.mark.parametrize("system", BATCH_SYSTEMS)
def test_every_batch_system_has_the_command_that_cancels_its_jobs(system):
    cluster_class, _ = BATCH_SYSTEMS[system]
    assert CANCEL[system] == getattr(dask_jobqueue, cluster_class).job_cls.cancel_command


def test_all_jobs_of_a_killed_process_are_cancelled(tmp_path, stand_in):
    stand_in("scancel", f"echo $1 >> {tmp_path}/cancelled")
    for system, number in (("slurm", "17"), ("htcondor", "2.0"), ("slurm", "18")):
        note_job(tmp_path, system, number)
    cancel_jobs(tmp_path)  # no condor_rm is here
    assert (tmp_path / "cancelled").read_text() == "17\n18\n"
