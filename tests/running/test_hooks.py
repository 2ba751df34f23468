"""What a run removes of others, and its end by a signal; tests/test_workflow.py runs the rest."""

import gc
import os
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path
from types import SimpleNamespace

import pytest
from project import QUICK, SHELF
from snakemake.scheduling.job_scheduler import JobScheduler

from bqlib.results.layout import Layout
from bqlib.running import scratch, session
from bqlib.running.hooks import ENDINGS, Run
from bqlib.running.internals import remove_left_temporary_folders
from bqlib.running.paths import Paths
from bqlib.running.session import Session
from bqlib.sweep.file import load


def started():
    """When this process started, to a hundredth of a second."""
    ticks = int(Path("/proc/self/stat").read_text().rpartition(")")[2].split()[19])
    age = float(Path("/proc/uptime").read_text().split()[0]) - ticks / os.sysconf("SC_CLK_TCK")
    return time.time() - age


def test_what_a_snakemake_left_just_before_this_one_started_is_removed(tmp_path, monkeypatch):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left, own = tmp_path / "snakemakeabcdefgh", tmp_path / "snakemakeijklmnop"
    others = tmp_path / "snakemake-notes", tmp_path / "snakemakequrstuvw"
    for folder in (left, own, *others):
        folder.mkdir(mode=0o700)
        os.utime(folder, (0, started() + (0.1 if folder == own else -0.1)))
    others[1].chmod(0o755)
    remove_left_temporary_folders()
    assert not left.exists() and own.exists() and all(folder.exists() for folder in others)


@pytest.mark.parametrize("word", ["snakemake", "bqlib.running.start", "other"])
def test_what_is_older_than_all_living_snakemakes_is_removed(tmp_path, monkeypatch, word):
    monkeypatch.setenv("TMPDIR", str(tmp_path))
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    left = tmp_path / "snakemakeabcdefgh"
    left.mkdir(mode=0o700)  # after this process has started
    os.utime(left, (0, time.time() - 0.1))
    command = [sys.executable, "-c", "import time; print(flush=True); time.sleep(99)", word]
    with subprocess.Popen(command, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        remove_left_temporary_folders()
        process.kill()
    assert left.exists() == (word == "other")


@pytest.fixture
def lost(tmp_path, monkeypatch):
    """A run whose process could not go on, with signals as Snakemake's command has them."""
    at = Layout(tmp_path / "results")
    at.folder.mkdir()
    folder = scratch.make(tmp_path)
    (folder.path / "reason").write_text("sbatch was not found")
    ended = subprocess.Popen([sys.executable, "-c", "raise SystemExit(1)"])
    ended.wait()
    paths = Paths(QUICK, SHELF, None, at.folder)
    executor = SimpleNamespace(cancel=lambda: None)
    workflow = SimpleNamespace(
        current_basedir=None,
        dag=SimpleNamespace(queue_input_jobs=()),
        scheduler=SimpleNamespace(_executor=executor),
    )
    run = Run(workflow, paths, load(QUICK, SHELF), None)
    run._session = Session(ended, folder, at, session.lock(at.folder), threading.Event())
    handlers = {number: signal.getsignal(number) for number in ENDINGS}
    signal.signal(signal.SIGTERM, run.interrupt)
    yield run
    for number, handler in handlers.items():
        signal.signal(number, handler)


def check_end(run, capsys):
    """The run ends by the code of a failure, and says why."""
    with pytest.raises(SystemExit) as end:
        run.end(error=True)
    assert end.value.code == 1
    assert "[bqlib] stopped: sbatch was not found\n" in capsys.readouterr().err


def test_the_end_of_the_runs_process_ends_what_snakemake_schedules(lost, capsys):
    scheduler = object.__new__(JobScheduler)
    scheduler.workflow, scheduler._executor = lost._workflow, lost._workflow.scheduler._executor
    scheduler._open_jobs = SimpleNamespace(acquire=lost._end_by_signal)  # it hears of it waiting
    assert scheduler.schedule() is False
    check_end(lost, capsys)


def test_the_end_of_the_runs_process_is_told_however_late_snakemake_hears_of_it(lost, capsys):
    lost._end_by_signal()  # all jobs have failed, and Snakemake is about to call its hooks
    check_end(lost, capsys)


def test_it_is_told_when_snakemake_hears_of_it_while_the_run_ends(lost, capsys):
    stopping = lost._session.stopping
    lost._session = SimpleNamespace(**vars(lost._session))
    lost._session.stopping = SimpleNamespace(
        is_set=stopping.is_set, set=lambda: (stopping.set(), lost._end_by_signal())
    )
    check_end(lost, capsys)


def test_python_looks_for_cycles_again_when_jobs_start(lost, capsys):
    gc.disable()
    lost.start()
    assert gc.isenabled()
    gc.unfreeze()
    check_end(lost, capsys)
