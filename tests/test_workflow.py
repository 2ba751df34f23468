"""The real workflow, through Snakemake's command line, in a folder of its own."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import time

import numpy as np
import pytest
from checkout import Checkout, jobs

import bqlib
from bqlib.results.integrity import check
from bqlib.results.store import open_dataset


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path / "a checkout")


@pytest.fixture(scope="module")
def finished(tmp_path_factory):
    """A checkout whose sweep has run; tests that change it take a copy."""
    checkout = Checkout(tmp_path_factory.mktemp("finished") / "a checkout")
    ran = checkout.run()
    assert ran.returncode == 0, ran.output
    checkout.output = ran.output
    return checkout


@pytest.fixture
def grown(finished, tmp_path):
    """A copy of the finished checkout, with the times of its files."""
    shutil.copytree(finished.folder, tmp_path / "grown")
    copy = object.__new__(Checkout)
    copy.folder = tmp_path / "grown"
    copy.sweep = copy.folder / "config" / "small.yaml"
    copy.results = copy.folder / "results" / "small"
    return copy


def test_a_sweep_runs_and_its_results_can_be_read(finished):
    assert jobs(finished.output)["piece"] == 4
    for said in ("dashboard http://127.0.0.1:", "4 of 4 trials done, 0 failed", "results/small"):
        assert said in finished.output
    curves = bqlib.open_results(finished.results)
    assert dict(curves.sizes) == {
        "target": 1, "kernel": 1, "lengthscale": 1, "algorithm": 2, "seed": 2, "n": 20, "dim": 2,
    }  # fmt: skip
    assert (curves.status == 1).all() and np.isfinite(curves.mmd).all()
    herding, iid = (curves.mmd.sel(algorithm=name).mean("seed") for name in ("herding", "iid"))
    assert float(herding.sel(n=20).squeeze()) < float(iid.sel(n=20).squeeze())
    for made in ("rates.zarr/zarr.json", "figures/mmd.svg", "figures/mmd.png", "report.html"):
        assert (finished.results / made).stat().st_size > 0
    checked = check(finished.results)
    assert checked.recorded and checked.faults == ()
    assert list(finished.results.rglob("benchmarks/**/*.tsv"))


def test_nothing_is_done_twice(grown):
    again = grown.run()
    assert again.returncode == 0 and "Nothing to be done" in again.output
    assert "Dask" not in again.output


def test_figures_do_not_hang_on_the_users_matplotlib(grown, tmp_path):
    figures = sorted((grown.results / "figures").iterdir())
    before = [file.read_bytes() for file in figures]
    for file in figures:
        file.unlink()
    settings = "text.usetex: True\nfont.family: monospace\nsavefig.bbox: tight\n"
    (tmp_path / "matplotlibrc").write_text(settings)
    # As Jupyter exports its own, which need not be in the environment of the run.
    there = {
        "MPLBACKEND": "module://matplotlib_inline.backend_inline",
        "MATPLOTLIBRC": str(tmp_path),
    }
    ran = grown.run("--until", "figures", **there)
    assert ran.returncode == 0, ran.output
    assert jobs(ran.output)["figures"] == 1
    assert [file.read_bytes() for file in figures] == before


def test_more_seeds_compute_only_the_new_blocks(grown):
    before = grown.pieces()
    grown.edit("config/small.yaml", "seeds: 2", "seeds: 4")
    ran = grown.run("--until", "gather")
    assert jobs(ran.output)["piece"] == 4, ran.output
    after = grown.pieces()
    assert len(after) == 8 and before.items() <= after.items()
    assert bqlib.open_results(grown.results).sizes["seed"] == 4


@pytest.mark.parametrize(
    "old, new",
    [("[iid, herding]", "[iid, herding, sbq]"), ("lengthscales: [0.5]", "lengthscales: [1, 0.5]")],
)
def test_a_wider_sweep_computes_only_its_new_cells(grown, old, new):
    grown.edit("config/small.yaml", old, new)
    planned = jobs(grown.run("-n").output)
    assert planned["piece"] == (2 if "sbq" in new else 4)


def test_a_change_to_one_algorithm_reruns_its_cells_alone(grown):
    grown.edit("bqlib/designs/herding.py", "0.5 * diagonal", "diagonal * 0.5")
    ran = grown.run("--until", "gather")
    assert ran.returncode == 0 and jobs(ran.output)["piece"] == 2, ran.output
    grown.edit("bqlib/designs/iid.py", "Independent draws", "Draws")  # a docstring
    assert jobs(grown.run("-n", "--until", "gather").output)["total"] == 0


def test_a_change_to_an_analysis_reruns_it_and_computes_nothing(grown):
    grown.edit("bqlib/over_seeds.py", "RESAMPLES = 10_000", "RESAMPLES = 9_000")
    planned = jobs(grown.run("-n").output)
    assert planned["rates"] == 1 and not {"piece", "gather"} & set(planned), planned


def test_a_study_runs_once_and_again_when_its_code_changes(grown):
    grown.sweep.write_text(grown.sweep.read_text() + "studies: [submodularity]\n")
    ran = grown.run("--until", "study")
    assert ran.returncode == 0 and jobs(ran.output)["study"] == 1, ran.output
    assert "piece" not in jobs(ran.output) and "2 of 2 seeds of studies" in ran.output
    study = open_dataset(grown.results / "studies" / "submodularity.zarr")
    assert study.sizes["seed"] == 2 and study.attrs["lengthscale"] == 0.5
    assert (study.greedy <= study.best * (1 + 1e-12)).all()
    assert jobs(grown.run("-n", "--until", "study").output)["total"] == 0
    grown.edit("bqlib/studies/submodularity.py", "POOL, PICKS = 16, 5", "POOL, PICKS = 12, 5")
    assert jobs(grown.run("-n").output)["study"] == 1


def test_results_do_not_depend_on_workers(finished, checkout):
    checkout.edit("profiles/local/site.yaml", "workers:  ", "workers: 1 ")
    checkout.edit("config/small.yaml", "[iid, herding]", "[herding, iid]")
    ran = checkout.run("--until", "piece")
    assert ran.returncode == 0 and "Dask: 1 workers" in ran.output, ran.output
    assert checkout.pieces() == finished.pieces()


def test_a_scheduler_that_the_user_names_is_used(checkout, tmp_path, finished):
    place = tmp_path / "scheduler.json"
    environment = {**os.environ, "PYTHONPATH": str(checkout.folder)}
    commands = [
        ["dask", "scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard",
         "--scheduler-file", str(place)],
        ["dask", "worker", "--host", "127.0.0.1", "--nthreads", "1", "--no-dashboard",
         "--scheduler-file", str(place), "--local-directory", str(tmp_path)],
    ]  # fmt: skip
    others = [
        subprocess.Popen(
            [sys.executable, "-m", *command],
            env=environment,
            stdout=subprocess.DEVNULL,
            stderr=subprocess.DEVNULL,
        )
        for command in commands
    ]
    try:
        while not place.exists():
            assert others[0].poll() is None
            time.sleep(0.1)
        address = json.loads(place.read_text())["address"]
        ran = checkout.run("--until", "piece", DASK_SCHEDULER_ADDRESS=address)
        assert ran.returncode == 0 and "Dask: 1 workers" in ran.output, ran.output
        assert checkout.pieces() == finished.pieces()
        assert all(other.poll() is None for other in others)
    finally:
        for other in others:
            other.kill()
            other.wait()


def test_all_outputs_are_deleted_where_that_is_asked_for(grown):
    pieces = list(grown.pieces())
    planned = grown.run("--delete-all-output", "--dry-run")
    assert all(f"Would delete results/small/pieces/{piece}" in planned.output for piece in pieces)
    assert list(grown.pieces()) == pieces
    deleted = grown.run("--delete-all-output")
    assert deleted.returncode == 0 and "Deleting results/small/report.html" in deleted.output
    assert not grown.pieces() and not list(grown.results.glob("**/*.zarr"))


def test_results_of_other_science_from_elsewhere_are_refused(finished, checkout):
    shutil.copytree(finished.results, checkout.results)
    assert "Nothing to be done" in checkout.run("-n").output
    checkout.edit("config/small.yaml", "size: 200", "size: 201")
    checkout.sweep = checkout.sweep.rename(checkout.folder / "small.yaml")
    ran = checkout.run()
    assert ran.returncode == 1 and "Traceback" not in ran.output
    assert "5 files of another sweep or of other code" in ran.output
    command = re.search(r"bqlib (retry --sweep .*)", ran.output)[1]
    assert checkout.pieces() == finished.pieces()
    subprocess.run(
        [sys.executable, "-m", "bqlib", *shlex.split(command)],
        cwd=checkout.folder,
        env={**os.environ, "PYTHONPATH": str(checkout.folder)},
        check=True,
    )
    assert jobs(checkout.run("-n").output)["piece"] == 4
