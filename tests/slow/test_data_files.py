"""The real workflow on a target that is a data file: it changes, moves, and is gone."""

import json
import os
import shutil
import signal
import subprocess
import sys
import time

import numpy as np
import pandas as pd
import pytest
from checkout import Checkout, jobs

import bqlib
from bqlib.results.store import open_dataset

POINTS = np.random.default_rng(0).normal(size=(60, 2))
TARGET = "targets: [{name: posterior, family: empirical, file: draws.csv, columns: [x, y]}]"


def write(path, points):
    pd.DataFrame(points, columns=["x", "y"]).assign(note="text").to_csv(path, index=False)


@pytest.fixture
def checkout(tmp_path):
    checkout = Checkout(tmp_path / "a checkout")
    write(checkout.folder / "config" / "draws.csv", POINTS)
    checkout.edit("config/small.yaml", "targets: [chen2010_mixture]", TARGET)
    return checkout


def bqlib_here(checkout, *arguments):
    ran = subprocess.run(
        [sys.executable, "-m", "bqlib", *arguments],
        cwd=checkout.folder,
        env={**os.environ, "PYTHONPATH": str(checkout.folder)},
        capture_output=True,
        text=True,
    )
    ran.output = ran.stdout + ran.stderr
    return ran


def test_a_file_that_changes_moves_and_is_gone(checkout):
    more = "studies: [submodularity]\nintegrands: {within: {family: rkhs_ball, functions: 5}}\n"
    checkout.sweep.write_text(checkout.sweep.read_text() + more)
    file = checkout.folder / "config" / "draws.csv"
    part = ("--until", "function_errors", "study")
    ran = checkout.run(*part)
    assert ran.returncode == 0 and jobs(ran.output)["function_errors"] == 1, ran.output
    pieces = checkout.pieces()
    curves = bqlib.open_results(checkout.results)
    stored = json.loads(curves.attrs["config"])["targets"]["posterior"]
    assert (stored["file"], stored["columns"], stored["rows"]) == (str(file), ["x", "y"], 60)
    assert len(stored["sha256"]) == 64 and (curves.status == 1).all()
    assert open_dataset(checkout.results / "studies" / "submodularity.zarr").sizes["seed"] == 2
    # The points count, not the file.
    np.save(checkout.folder / "config" / "draws.npy", POINTS)
    checkout.edit("config/small.yaml", "draws.csv, columns: [x, y]", "draws.npy")
    planned = jobs(checkout.run("-n", *part).output)
    assert planned["gather"] == 1 and not {"piece", "study"} & set(planned), planned
    checkout.edit("config/small.yaml", "draws.npy", "draws.csv, columns: [x, y]")
    # A project that moves takes its file along.
    moved = object.__new__(Checkout)
    moved.folder = checkout.folder.with_name("moved")
    shutil.copytree(checkout.folder, moved.folder, ignore=shutil.ignore_patterns(".snakemake"))
    moved.sweep = moved.folder / "config" / "small.yaml"
    moved.results = moved.folder / "results" / "small"
    hidden = file.rename(file.with_name("hidden"))
    assert jobs(moved.run("-n", *part).output)["total"] == 0
    (moved.results / "function_errors.zarr" / "zarr.json").unlink()
    again = moved.run(*part)
    assert again.returncode == 0 and jobs(again.output) == {"function_errors": 1, "total": 1}, (
        again.output
    )
    # Results can be read without the file, and a run says that it is missing.
    assert float(bqlib.open_results(checkout.results).mmd.sum()) == float(curves.mmd.sum())
    for ran in (checkout.run(), bqlib_here(checkout, "resume", "config/small.yaml")):
        assert ran.returncode == 1 and "Traceback" not in ran.output, ran.output
        assert f"small.yaml:3: targets[0].file: there is no file {file}" in ran.output
    hidden.rename(file)
    # Other points are another target, and the run says so.
    write(file, POINTS + 1)
    ran = checkout.run("--until", "gather")
    assert ran.returncode == 0 and jobs(ran.output)["piece"] == 4, ran.output
    assert "5 pieces or studies are of another sweep or of other code" in ran.output
    assert not set(checkout.pieces().values()) & set(pieces.values())


@pytest.mark.parametrize("worker_dies", [True, False])
def test_a_file_that_changes_during_a_run_ends_it(checkout, worker_dies):
    checkout.edit("config/small.yaml", "seeds: 2", "seeds: 6")
    checkout.edit("profiles/local/site.yaml", "workers:  ", "workers: 1 ")
    checkout.set_faults({"*": ["sleep", 0.5]})
    file = checkout.folder / "config" / "draws.csv"
    process = checkout.start("--until", "gather")
    while len(checkout.pieces()) < 3:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.1)
    before = checkout.pieces()
    write(file, POINTS + 1)
    if worker_dies:  # the one that takes its place reads the file again
        os.kill(int(checkout.attempts("start")[-1][-1]), signal.SIGKILL)
    said, _ = process.communicate(timeout=120)
    assert process.returncode == 1, said
    if worker_dies:
        assert f"lacks the data: {file} has changed since the sweep was read" in said
        assert "restore the file, or run the sweep again" in said
    else:
        assert "if the sweep, a data file or the code changed during the run: start it again" in (
            said
        )
    assert "Traceback" not in said
    assert before.items() <= checkout.pieces().items()
    if worker_dies:
        return
    # With the old file, the run goes on where it was; with the new one, it computes all again.
    checkout.set_faults({})
    planned = checkout.run("-n", "--until", "gather").output
    assert jobs(planned)["piece"] == 6 and "are of another sweep or of other code" in planned
    write(file, POINTS)
    ran = checkout.run("--until", "gather", "--rerun-incomplete")
    assert ran.returncode == 0, ran.output
    assert before.items() <= checkout.pieces().items()
    assert (bqlib.open_results(checkout.results).status == 1).all()
