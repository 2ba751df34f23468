"""The journal of a run's jobs."""

from bqlib.running.journal import cancel_jobs, note_job


def test_all_jobs_of_a_killed_process_are_cancelled(tmp_path, stand_in):
    stand_in("scancel", f"echo $1 >> {tmp_path}/cancelled")
    for system, number in (("slurm", "17"), ("htcondor", "2.0"), ("slurm", "18")):
        note_job(tmp_path, system, number)
    cancel_jobs(tmp_path)  # no condor_rm is here
    assert (tmp_path / "cancelled").read_text() == "17\n18\n"
