"""What a job of Snakemake says on the terminal."""

import errno
import os
import signal
import subprocess
import sys
import time

import psutil
import pytest

from bqlib.running.client import logged


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


JOB = """
import subprocess, sys, time
from pathlib import Path
from bqlib.running.client import logged

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
