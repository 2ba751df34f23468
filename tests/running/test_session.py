"""The process of a run: its start, its end, and the lock on its results."""

import errno
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest
from project import QUICK, SHELF

from bqlib.results.layout import Layout
from bqlib.running import client, errors, scratch, session
from bqlib.running.journal import note_job
from bqlib.running.paths import Paths
from bqlib.sweep.file import load

DIGEST = load(QUICK, SHELF).digest


def paths(folder):
    """Of a run whose site file and results are in a folder."""
    return Paths(QUICK, SHELF, folder / "site.yaml", folder / "results")


@pytest.fixture
def make_scratch(tmp_path):
    """Make private folders, which are removed at the end."""
    made = []

    def make():
        made.append(scratch.make(tmp_path))
        return made[-1]

    yield make
    for each in made:
        each.remove()


@pytest.fixture
def started(tmp_path, monkeypatch, make_scratch):
    """A run's process on this machine, its cluster not yet asked for."""
    monkeypatch.setattr(os, "environ", dict(os.environ))
    site = tmp_path / "site.yaml"
    site.write_text("workers: 1")
    made = session.start(paths(tmp_path), make_scratch(), DIGEST)
    yield made
    session.stop(made)
    assert not made.scratch.path.exists()


def test_another_run_on_the_same_results_is_refused(started, tmp_path, make_scratch):
    with pytest.raises(errors.RunError, match=f"another run works on .*process {os.getpid()} on"):
        session.start(paths(tmp_path), make_scratch(), DIGEST)
    assert session.stop(started) == ""
    again = session.start(paths(tmp_path), make_scratch(), DIGEST)
    assert session.stop(again) == ""


def test_results_are_in_use_until_the_process_of_a_killed_run_has_ended(started):
    started.lock.close()  # as where Snakemake is killed
    with pytest.raises(errors.RunError, match="another run works on"):
        session.lock(started.results.folder)
    session.stop(started)
    session.lock(started.results.folder).close()


@pytest.mark.parametrize("text", ["x", "process abc on HOST", f"process {10**30} on HOST", ""])
def test_a_lock_with_any_text_is_held_by_another_run(started, text):
    (started.results.folder / ".lock").write_text(text)
    with pytest.raises(errors.RunError, match="another run works on"):
        session.lock(started.results.folder, patience=1)


def test_the_end_of_a_killed_run_is_waited_for(tmp_path):
    killed = f"""
import subprocess
from pathlib import Path
from bqlib.running.session import lock
held = lock(Path({str(tmp_path)!r}))
subprocess.Popen(["sleep", "3"], pass_fds=[held.fileno()])
"""
    subprocess.run([sys.executable, "-c", killed], check=True)
    with pytest.raises(errors.RunError, match="another run works on"):
        session.lock(tmp_path)
    session.lock(tmp_path, patience=30).close()


def test_a_file_system_without_locks_is_told(tmp_path, monkeypatch):
    def refuse(file, operation):
        raise OSError(errno.ENOLCK, os.strerror(errno.ENOLCK))

    monkeypatch.setattr(session.fcntl, "flock", refuse)
    with pytest.raises(errors.RunError, match=r"cannot be locked .*No locks available.* flock"):
        session.lock(tmp_path)


def test_the_socket_is_private(started):
    place = Path(started.socket)
    assert place.stat().st_mode & 0o777 == 0o600
    assert place.parent.stat().st_mode & 0o777 == 0o700


def test_the_folder_of_temporary_files_may_have_a_long_name(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "environ", dict(os.environ))
    (tmp_path / "site.yaml").write_text("workers: 1")
    long = tmp_path / ("long" * 40)
    long.mkdir()
    started = session.start(paths(tmp_path), scratch.make(long), DIGEST)
    try:
        with pytest.raises(errors.RunError, match="no study"):  # says the run's process
            client.fetch_study(started, "no study", "")
    finally:
        session.stop(started)


def test_a_broken_configuration_of_dask_is_told(tmp_path, monkeypatch, make_scratch):
    (tmp_path / "site.yaml").write_text("workers: 1")
    (tmp_path / "notes.yaml").write_text("not a mapping")
    monkeypatch.setenv("DASK_CONFIG", str(tmp_path))
    told = rf"ended by itself: ValueError: A dask config file at '{tmp_path}/notes.yaml'.*; see "
    with pytest.raises(errors.RunError, match=told):
        session.start(paths(tmp_path), make_scratch(), DIGEST)


def test_a_process_that_another_one_ends_is_told_as_one(started):
    os.kill(started.process.pid, signal.SIGINT)
    assert started.process.wait(timeout=30) == 0
    assert session.stop(started) == "the run's process was told to end, by a signal from outside"


def test_a_process_that_is_killed_tells_its_parent_and_waiting_jobs(tmp_path, make_scratch):
    (tmp_path / "site.yaml").write_text("workers: 1")
    heard = threading.Event()
    started = session.start(paths(tmp_path), make_scratch(), DIGEST, on_end=heard.set)
    os.kill(started.process.pid, signal.SIGKILL)
    assert heard.wait(timeout=20)
    with pytest.raises(errors.RunEndedError):
        client.fetch_study(started, "cost", "")
    assert session.stop(started) == "the run's process was killed (signal 9)"


def test_a_run_that_cannot_start_says_why(tmp_path, make_scratch):
    site = tmp_path / "site.yaml"
    site.write_text("system: slrum")
    with pytest.raises(errors.RunError, match=r"slrum.*allowed: slurm"):
        session.start(paths(tmp_path), make_scratch(), DIGEST)


def test_a_run_cancels_what_one_before_has_left_in_the_queue(
    tmp_path, monkeypatch, stand_in, make_scratch
):
    stand_in("scancel", f"echo $1 >> {tmp_path}/cancelled")
    monkeypatch.setattr(os, "environ", dict(os.environ))
    (tmp_path / "results").mkdir()
    note_job(tmp_path / "results", "slurm", "17")
    site = tmp_path / "site.yaml"
    site.write_text("system: job")
    assert session.stop(session.start(paths(tmp_path), make_scratch(), DIGEST)) == ""
    assert set((tmp_path / "cancelled").read_text().split()) == {"17"}
    assert not Layout(tmp_path / "results").journal.exists()


def test_an_interrupted_run_is_told_as_one(started):
    session.interrupt(started)
    assert started.process.wait(timeout=30) == 0
    assert session.stop(started) == ""


def test_jobs_end_with_an_interrupted_run(started):
    job = subprocess.Popen(["sleep", "100"])
    session.interrupt(started)
    assert job.wait(timeout=30) == -signal.SIGTERM


def test_a_sweep_that_changed_since_it_was_read_is_refused(tmp_path, make_scratch):
    (tmp_path / "site.yaml").write_text("workers: 1")
    with pytest.raises(errors.RunError, match="a data file or the code changed during"):
        session.start(paths(tmp_path), make_scratch(), "other")
