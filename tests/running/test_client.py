"""What a job of Snakemake says on the terminal."""

import errno
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest
from checkout import SWEEP
from project import SHELF
from written_results import write_pieces

from bqlib.results.layout import Layout
from bqlib.results.timings import is_whole
from bqlib.running.client import Joined, join, logged
from bqlib.running.door import open_door
from bqlib.running.errors import RunEndedError
from bqlib.running.paths import Paths, announce
from bqlib.sweep.file import load


def test_a_job_that_is_told_to_end_does_so_without_a_word(tmp_path, capsys):
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended, logged(tmp_path / "log"):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)
    assert ended.value.code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == before
    assert capsys.readouterr().err == ""
    with pytest.raises(SystemExit), logged(tmp_path / "log"):
        raise ValueError("wrong")
    assert capsys.readouterr().err == "[bqlib] ValueError: wrong\n"


def test_a_full_disk_is_told_in_one_line(capsys):
    with pytest.raises(SystemExit), logged("/dev/full"):
        print("a line of the log")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert capsys.readouterr().err == "[bqlib] OSError: [Errno 28] No space left on device\n"


@pytest.fixture
def paths(tmp_path, monkeypatch):
    """Of a run that is announced to jobs of this process."""
    monkeypatch.setattr(os, "environ", dict(os.environ))
    (tmp_path / "sweep.yaml").write_text(SWEEP)
    (tmp_path / "site.yaml").write_text("workers: 3")
    return Paths(tmp_path / "sweep.yaml", SHELF, tmp_path / "site.yaml", tmp_path / "results")


def test_a_job_asks_the_run_of_its_output_where_it_is_on_this_machine(paths, tmp_path, monkeypatch):
    output = paths.results / "pieces" / "a.zarr.zip"
    assert join(output) is None
    open_door(tmp_path / "door", lambda: "/run/socket")
    announce(paths, tmp_path / "door")
    assert join(output) == Joined(paths, "/run/socket")
    announce(paths, tmp_path / "closed")
    with pytest.raises(RunEndedError):
        join(output)
    paths.site.write_text("system: job")
    assert join(output) == Joined(paths, None)
    monkeypatch.setattr("socket.gethostname", lambda: "node17")
    paths.site.write_text("workers: 3")
    announce(paths)
    assert join(output) == Joined(paths, None)


ELSEWHERE = """
import sys
from bqlib.results.layout import Layout, piece_name
from bqlib.running.client import Joined, fetch_pieces
from bqlib.running.paths import Paths
from bqlib.sweep.file import load

paths = Paths.from_json(sys.argv[1])
experiment, at = load(paths.sweep, paths.shelf), Layout(paths.results)
names = [piece_name(cell, experiment.blocks()[0]) for cell in experiment.cells()]
outputs = [path for name in names for path in (at.piece(name), at.timing(name))]
fetch_pieces(Joined(paths, None), outputs, memory=2000)
"""


def test_a_job_on_another_machine_does_its_own_work_whatever_the_site(paths, tmp_path):
    paths.results.mkdir()
    subprocess.run([sys.executable, "-c", ELSEWHERE, paths.as_json()], check=True)
    at, experiment = Layout(paths.results), load(paths.sweep, SHELF)
    made = {name: data for name, _, data in write_pieces(experiment, tmp_path) if "-0-0." in name}
    assert {name: at.piece(name).read_bytes() for name in made} == made
    assert all(is_whole(at.folder, name) for name in made)
    found = [path for path in at.pieces.rglob("*") if path.is_file()]
    assert len(found) == len(made) == 2


JOB = """
import subprocess, sys, time
from pathlib import Path
from bqlib.running.client import Joined, join, logged
from bqlib.running.door import open_door
from bqlib.running.errors import RunEndedError
from bqlib.running.paths import Paths, announce
from bqlib.sweep.file import load

with logged(sys.argv[1]):
    child = subprocess.Popen(["sleep", "60"])
    Path(sys.argv[2]).write_text(str(child.pid))
    time.sleep(60)
"""
SNAKEMAKE = """
import os, subprocess, sys
from bqlib.running.paths import SNAKEMAKE

os.environ[SNAKEMAKE] = str(os.getpid())
job = [sys.executable, "-c", *sys.argv[1:]]
subprocess.run(["bash", "-c", 'trap "" INT; "$@"; true', "bash", *job])
"""


def test_a_job_and_its_children_end_soon_after_their_snakemake_is_killed(tmp_path):
    note = tmp_path / "child"
    command = [sys.executable, "-c", SNAKEMAKE, JOB, tmp_path / "log", note]
    with subprocess.Popen(command) as snakemake:
        while not (note.exists() and note.read_text()):
            assert snakemake.poll() is None
            time.sleep(0.05)
        below = psutil.Process(snakemake.pid).children(recursive=True)
        assert len(below) == 3  # shell, job and child
        snakemake.kill()
        assert not psutil.wait_procs(below, timeout=10)[1]
