import os
import subprocess
import sys

import pytest
from project import QUICK

from bqlib.running.start import INTERRUPTED


def started(folder, pretender, sweep):
    """The end of a start for a sweep, where another module passes for Snakemake."""
    (folder / "snakemake").mkdir()
    (folder / "snakemake" / "__init__.py").touch()
    (folder / "snakemake" / "cli.py").write_text(pretender + "\n")
    path = os.pathsep.join([str(folder), *sys.path])
    return subprocess.run(
        [sys.executable, "-m", "bqlib.running.start", "--configfile", str(sweep)],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )


@pytest.mark.parametrize(
    ("pretender", "code"),
    [
        ("raise KeyboardInterrupt", INTERRUPTED),  # while it loads
        ("def main(): raise KeyboardInterrupt", INTERRUPTED),
        ("def main(): raise SystemExit(3)", 3),
        ("def main(): pass", 0),
        ("import gc\ndef main(): raise SystemExit(int(gc.isenabled()))", 0),  # put off
    ],
)
def test_an_interrupt_has_no_traceback_and_other_ends_stay(tmp_path, pretender, code):
    done = started(tmp_path, pretender, QUICK)
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")


def test_a_sweep_that_is_wrong_is_told_before_snakemake_is_loaded(tmp_path):
    (tmp_path / "bad.yaml").write_text("title: 1\n" + QUICK.read_text())
    done = started(tmp_path, "raise KeyboardInterrupt", tmp_path / "bad.yaml")
    assert done.returncode == 1
    assert "bad.yaml:1: title: must be a text" in done.stderr
    assert "Traceback" not in done.stderr
