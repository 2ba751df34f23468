"""The workflow as a module of another one, by the example of docs/module.md as it is printed.

Interrupted and killed ones, and those from git: tests/slow/test_module_kills.py.
"""

import os
import subprocess
import sys

from checkout import jobs, processes_of
from documented import documented_files
from project import PROJECT

import bqlib
from bqlib.results.layout import Layout


def test_another_workflow_runs_two_sweeps_with_its_own_rules_and_keys(tmp_path):
    for name, text in documented_files("module.md").items():
        (tmp_path / name).write_text(text)
    package = tmp_path / "package"
    package.symlink_to(PROJECT)
    command = [sys.executable, "-m", "snakemake", "--snakefile", "compare.smk", "--cores", "2"]
    ran = subprocess.run(
        command,
        cwd=tmp_path,
        env={**os.environ, "PYTHONPATH": str(package)},
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=240,
    )
    assert ran.returncode == 0, ran.stdout
    made = {"narrow_piece": 2, "narrow_gather": 1, "wide_piece": 2, "wide_gather": 1, "best": 1}
    assert jobs(ran.stdout) == made | {"all": 1, "total": 8}
    lengthscales = {"narrow": 0.25, "wide": 1.0}
    for name, lengthscale in lengthscales.items():
        curves = bqlib.open_results(tmp_path / "results" / name)
        assert (curves.status == 1).all() and curves.lengthscale.values == [lengthscale]
        assert f"results are in results/{name}\n" in ran.stdout
        assert not Layout(tmp_path / "results" / name).kept.exists()
    told = "results/narrow herding\nresults/wide herding\n"
    assert (tmp_path / "best.txt").read_text() == told
    assert not processes_of(package)
