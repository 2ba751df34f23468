"""What a run refuses before it starts, and why its jobs may fail."""

import shutil

from bqlib.running.preflight import why_jobs_fail


def test_a_full_disk_is_why_jobs_fail(monkeypatch):
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=2**21))
    assert why_jobs_fail("results/mine") == "a job failed, see above"
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=0))
    assert why_jobs_fail("results/mine") == "the disk that holds results/mine is full"
