"""What a run removes of others before it starts; tests/test_workflow.py runs all the rest."""

import os
import tempfile
import time
from pathlib import Path

from bqlib.running.hooks import _remove_left_by_snakemake


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
    _remove_left_by_snakemake()
    assert not left.exists() and own.exists() and all(folder.exists() for folder in others)
