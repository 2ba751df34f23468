"""The tutorial's blocks, its commands as well, run as they stand in a copy of the project."""

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

from checkout import Checkout, jobs
from documented import blocks

ROOT = Path(__file__).parents[2]
TUTORIAL = ROOT / "docs" / "tutorial.md"


def test_a_newcomer_who_follows_the_tutorial_has_their_own_target_in_a_figure(tmp_path):
    folder = Checkout(tmp_path / "bqlib").folder
    shutil.copy(ROOT / "Makefile", folder)
    shutil.copytree(ROOT / "tools", folder / "tools")
    # Set-up is done already: .venv leads to this interpreter.
    (folder / "tools" / "setup.sh").write_text("")
    activate = folder / ".venv" / "bin" / "activate"
    activate.parent.mkdir(parents=True)
    activate.write_text(f"PATH='{Path(sys.executable).parent}':$PATH\n")
    pasted = {"sh": "{}", "python": "python <<'PASTED'\n{}PASTED"}
    lines = ["set -e", *(pasted[kind].format(code) for kind, code, _ in blocks(TUTORIAL))]
    script = tmp_path / "script"
    script.write_text("\n".join(lines))
    # What the make that runs these tests was given is not for the tutorial's own.
    inherited = {k: v for k, v in os.environ.items() if k not in ("MAKEFLAGS", "MAKELEVEL", "ARGS")}
    ran = subprocess.run(
        ["bash", script],
        cwd=folder,
        env={**inherited, "PYTHONPATH": str(folder), "MPLBACKEND": "Agg"},
        stdin=subprocess.DEVNULL,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=900,
    )
    assert ran.returncode == 0, ran.stdout
    said = re.search("```text\n(.*?)```", TUTORIAL.read_text(encoding="utf-8"), re.DOTALL)[1]
    assert said in ran.stdout
    assert "20 of 20 trials done, 0 failed" in ran.stdout
    assert jobs(ran.stdout.split("results are in results/islands")[-1])["piece"] == 1
    assert (folder / "results/islands/report.html").exists()
    for drawn in ("results/islands/figures/mmd.png", "islands.png"):
        assert (folder / drawn).read_bytes().startswith(b"\x89PNG")
