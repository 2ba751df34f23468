import os
import subprocess
import sys

import pytest

from bqlib.running.start import INTERRUPTED


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
    (tmp_path / "snakemake").mkdir()
    (tmp_path / "snakemake" / "__init__.py").touch()
    (tmp_path / "snakemake" / "cli.py").write_text(pretender + "\n")
    path = os.pathsep.join([str(tmp_path), *sys.path])
    done = subprocess.run(
        [sys.executable, "-m", "bqlib.running.start"],
        env=os.environ | {"PYTHONPATH": path},
        capture_output=True,
        text=True,
    )
    assert (done.returncode, done.stdout, done.stderr) == (code, "", "")
