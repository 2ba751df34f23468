"""What a run refuses before it starts, and why its jobs may fail."""

import os
import shutil

import pytest

from bqlib.running.errors import RunError
from bqlib.running.preflight import check_results_folder, why_jobs_fail


def test_a_full_disk_is_why_jobs_fail(monkeypatch):
    usage = shutil.disk_usage("/")
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=2**21))
    assert why_jobs_fail("results/mine") == "a job failed, see above"
    monkeypatch.setattr(shutil, "disk_usage", lambda path: usage._replace(free=0))
    assert why_jobs_fail("results/mine") == "the disk that holds results/mine is full"


@pytest.mark.parametrize("name", ["benchmarks/gather.tsv", "figures", ".trials", "curves.zarr/c"])
@pytest.mark.parametrize("make", [os.mkfifo, lambda path: os.symlink("/tmp", path)])
def test_a_run_into_results_with_links_or_pipes_is_refused(tmp_path, name, make):
    path = tmp_path / "small" / name
    path.parent.mkdir(parents=True, exist_ok=True)
    make(path)
    with pytest.raises(RunError, match=rf"holds 1 links .* the first is .*{name}\. Remove them"):
        check_results_folder(tmp_path / "small")


def test_the_folder_of_results_itself_may_be_a_link(tmp_path):
    (tmp_path / "elsewhere" / "pieces").mkdir(parents=True)
    (tmp_path / "small").symlink_to(tmp_path / "elsewhere")
    check_results_folder(tmp_path / "small")
