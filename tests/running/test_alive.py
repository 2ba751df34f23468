"""Which Snakemake runs are alive in a folder, and whether it is locked."""

import subprocess
import sys
from pathlib import Path

import pytest

from bqlib.running.alive import is_locked, is_run, runs


@pytest.fixture
def pretender(tmp_path):
    """A process in a folder whose command line is that of a run."""
    command = [sys.executable, "-c", "import time; print(flush=True); time.sleep(100)", "snakemake"]
    with subprocess.Popen(command, cwd=tmp_path, stdout=subprocess.PIPE) as process:
        process.stdout.readline()
        yield process
        process.kill()


def test_a_run_counts_while_it_lives_and_in_its_own_folder(pretender, tmp_path, monkeypatch):
    other = tmp_path / "other"
    other.mkdir()
    monkeypatch.chdir(other)
    assert not list(runs())
    monkeypatch.chdir(tmp_path)
    (found,) = runs()
    assert found.startswith(f"process {pretender.pid}: ")
    pretender.kill()
    pretender.wait()
    assert not list(runs())


@pytest.mark.parametrize(
    ("command", "expected"),
    [
        (["/venv/bin/python", "-m", "snakemake", "--profile", "cluster"], True),
        (["/venv/bin/python", "/venv/bin/snakemake", "-n"], True),
        (["python", "-X", "dev", "-W", "ignore", "-m", "snakemake", "-n"], True),
        (["/venv/bin/python", "-m", "bqlib.running.start", "--profile", "cluster"], True),
        (["make", "resume", "CONFIG=config/quick.yaml"], True),
        (["/venv/bin/python", "/venv/bin/bqlib", "resume"], True),
        (["make", "run"], False),
        (["less", "snakemake.log"], False),
        ([], False),
    ],
)
def test_what_is_a_run(command, expected):
    assert is_run(command) == expected


def test_a_lock_of_snakemake_is_seen(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    assert not is_locked()
    Path(".snakemake/locks").mkdir(parents=True)
    Path(".snakemake/locks/0.input.lock").touch()
    assert is_locked()
