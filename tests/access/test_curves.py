"""Curves computed here: the numbers of a sweep, without its files."""

import json
import os
import signal
import subprocess
import sys
from concurrent.futures import ThreadPoolExecutor
from threading import Event

import numpy as np
import paper_sweep
import psutil
import pytest
import xarray as xr
from distributed import Client, LocalCluster
from local_dask import QUIET
from project import SHELF

import bqlib
from bqlib import Candidates, ExponentiatedQuadratic, GaussianMixture, Matern, Uniform
from bqlib.figures import save
from bqlib.schema import check_schema
from bqlib.sweep.words import SweepError
from bqlib.weights import bq, simplex

SWEEP = """
name: small
targets: [chen2010_mixture]
kernels: {eq: {family: exponentiated_quadratic, scale: density}}
lengthscales: [0.5, 2]
algorithms:
  - frank_wolfe
  - {name: simplex, design: {family: sbq, refine: 5}, weights: simplex}
candidates: {size: 60, source: inflated}
integrands: {ball: {family: rkhs_ball, functions: 3}}
n: 8
seeds: 3
seeds_per_job: 2
rate_windows: [[2, 8]]
"""
SQUARE = Uniform([0.0, 0.0], [1.0, 1.0])
SMALL = {"n": 6, "seeds": 2, "candidates": {"size": 50}, "progress": False}
DIFFER = ("config", "config_sha256", "title")


def mixture():
    content = json.loads((SHELF / "chen2010_mixture.json").read_text())
    return GaussianMixture(*(content[key] for key in ("weights", "means", "covariances")))


@pytest.fixture(scope="module")
def of_sweep(tmp_path_factory):
    """What `open_results` gives of the sweep."""
    folder = tmp_path_factory.mktemp("small")
    paper_sweep.run(folder, SWEEP)
    return bqlib.open_results(folder)


def test_curves_are_those_of_the_sweep_bit_for_bit(of_sweep):
    found = bqlib.curves(
        {"chen2010_mixture": mixture()},
        {"eq": {"family": ExponentiatedQuadratic, "scale": "density"}},
        [
            bqlib.frank_wolfe,
            {"name": "simplex", "design": {"family": bqlib.sbq, "refine": 5}, "weights": simplex},
        ],
        np.int64(8),
        3,
        lengthscales=np.array([0.5, 2]),
        candidates=Candidates(60, source="inflated"),
        integrands={"ball": {"family": bqlib.integrands.rkhs_ball, "functions": 3}},
        rate_windows=[(2, 8)],
        progress=False,
    )
    for name, values in of_sweep.variables.items():
        same = found[name].variable
        assert (same.dims, same.dtype, same.attrs) == (values.dims, values.dtype, values.attrs)
        if values.dtype == object:
            assert same.values.tolist() == values.values.tolist()
        else:
            assert same.values.tobytes() == values.values.tobytes()
    attributes = {k: v for k, v in of_sweep.attrs.items() if k not in DIFFER}
    assert {k: v for k, v in found.attrs.items() if k not in DIFFER} == attributes
    xr.testing.assert_equal(found.bq.rates(), of_sweep.bq.rates())


@pytest.mark.parametrize("on", ["threads", "processes", "client", "executor"])
def test_where_trials_run_does_not_change_them(on):
    def run(on, **arguments):
        kernels = [Matern(0.3), Matern(0.3) + ExponentiatedQuadratic(1.0)]
        return bqlib.curves(SQUARE, kernels, ["iid", "sbq"], on=on, **SMALL, **arguments)

    here = run(None)
    if on in ("threads", "processes"):
        others = run(on, workers=np.int64(2))
    elif on == "executor":
        with ThreadPoolExecutor(2) as executor:
            others = run(executor)
            assert executor.submit(abs, -1).result() == 1  # it is somebody else's, and still open
    else:
        with LocalCluster(n_workers=1, processes=False, **QUIET) as cluster, Client(cluster) as own:
            others = run(own)
            assert own.status == "running"
    xr.testing.assert_identical(here, others)
    assert {name: v.values.tobytes() for name, v in here.items() if name != "reason"} == {
        name: v.values.tobytes() for name, v in others.items() if name != "reason"
    }


def test_kernels_with_length_scales_of_their_own_have_no_others():
    kernels = [Matern(0.3), Matern(0.6), ExponentiatedQuadratic([0.3, 0.6])]
    found = bqlib.curves(SQUARE, kernels, "sbq", **SMALL)
    check_schema(found, "found")
    assert found.status.sum("seed").squeeze().to_series().unstack().to_dict("list") == {
        0.3: [2, 0],
        0.6: [2, 0],
        1.0: [0, 2],
    }
    several = bqlib.curves(SQUARE, Matern, "sbq", lengthscales=[0.3, 0.6], **SMALL)
    part = found.sel(kernel=["matern"], lengthscale=[0.3, 0.6])
    xr.testing.assert_equal(several, part)
    own = bqlib.sbq(SQUARE, kernels[2], 6, rng=0)  # another pool, but the same kernel
    curve = found.mmd.sel(kernel="exponentiated_quadratic", lengthscale=1.0, seed=0).squeeze()
    assert curve.values[-1] == pytest.approx(bqlib.mmd(own.embedding, own.points, own.weights), 0.5)


class Ring(bqlib.Empirical):
    """A target of somebody's own."""

    def __init__(self):
        angle = np.linspace(0, 6, 40)
        super().__init__(np.column_stack([np.cos(angle), np.sin(angle)]))


def first(target, kernel, n, *, rng, candidates):
    """A design of somebody's own: the first points of the pool."""
    design = bqlib.iid(target, kernel, n, rng=rng, candidates=candidates)
    if n > 5:
        raise RuntimeError("no more than five\nplease")
    return design


def test_objects_of_ones_own_work_as_they_are():
    mine = {"name": "mine", "design": first, "weights": bq}
    found = bqlib.curves(
        {"ring": Ring(), "line": Uniform([0.0], [1.0])}, Matern(0.5), ["iid_bq", mine],
        **SMALL | {"n": 5},
    )  # fmt: skip
    assert (found.status == 1).all()
    assert found.points.sel(target="line").isel(dim=1).isnull().all()
    assert '"family": "test_curves:Ring"' in found.attrs["config"].replace("tests.access.", "")


def test_failed_trials_are_told(capsys):
    mine = {"name": "mine", "design": first, "weights": bq}
    said = "2 of 4 trials failed, the first because of RuntimeError: no more than five please"
    with pytest.warns(UserWarning, match=said) as caught:
        found = bqlib.curves(SQUARE, Matern(0.5), ["iid", mine], **SMALL | {"progress": True})
    assert caught[0].filename == __file__
    assert found.status.sel(algorithm="mine").squeeze().values.tolist() == [2, 2]
    assert found.mmd.sel(algorithm="mine").isnull().all()
    assert set(found.reason.sel(algorithm="mine").values.ravel()) == {
        "RuntimeError: no more than five please"
    }
    assert "4/4" in capsys.readouterr().err
    bqlib.curves(SQUARE, Matern(0.5), "iid", **SMALL)
    assert capsys.readouterr().err == ""


def killing(target, kernel, n, *, rng, candidates):
    """A design whose process is killed, as for want of memory."""
    os.kill(os.getpid(), signal.SIGKILL)


class Silent(Exception):
    """An error whose text ends programs."""

    def __str__(self):
        raise SystemExit(4)


def ending(target, kernel, n, *, rng, candidates):
    """A design that fails in the worst way."""
    raise Silent


def test_a_worker_that_dies_costs_its_trials_and_no_others():
    rules = ["iid", {"name": "killing", "design": killing, "weights": bq}]
    with pytest.warns(UserWarning, match="trials failed, the first because of the worker died, or"):
        found = bqlib.curves(SQUARE, Matern(0.5), rules, on="processes", workers=1, **SMALL)
    status = found.status.squeeze()
    assert status.sel(seed=0).values.tolist() == [1, 2]
    assert set(status.sel(seed=1).values) == {2}


def test_trials_that_are_cancelled_are_told():
    all_submitted = Event()

    class Shared(ThreadPoolExecutor):
        trials = 0

        def submit(self, *work):
            future = super().submit(*work)
            self.trials += 1
            if self.trials == SMALL["seeds"]:
                all_submitted.set()
            return future

    executor = Shared(1)

    def shutting(target, kernel, n, *, rng, candidates):
        all_submitted.wait()
        executor.shutdown(wait=False, cancel_futures=True)
        return bqlib.iid(target, kernel, n, rng=rng, candidates=candidates)

    rule = {"name": "shutting", "design": shutting, "weights": bq}
    with pytest.raises(RuntimeError, match="a trial was cancelled: its executor or client"):
        bqlib.curves(SQUARE, Matern(0.5), rule, on=executor, **SMALL)


def test_an_asynchronous_client_is_refused():
    class Loop:
        asynchronous = True

    with pytest.raises(ValueError, match="with asynchronous=False"):
        bqlib.curves(SQUARE, Matern(0.5), "sbq", on=Loop(), **SMALL)


def test_no_error_of_a_design_ends_the_program():
    rule = {"name": "ending", "design": ending, "weights": bq}
    with pytest.warns(UserWarning, match=r"Silent: its text cannot be had \(SystemExit\)"):
        bqlib.curves(SQUARE, Matern(0.5), rule, **SMALL)


def test_what_works_on_results_works_on_curves(tmp_path):
    found = bqlib.curves(
        SQUARE, Matern, ["iid", "sbq"], n=12, seeds=5, lengthscales=[0.3, 0.6],
        candidates={"size": 50}, rate_windows=[(2, 12)], progress=False,
    )  # fmt: skip
    assert found.bq.rates().sizes["window"] == 1
    assert found.bq.crossover("sbq", "iid").points_needed.sel(n=3).shape
    save(found.bq.plot.curves(columns="lengthscale"), tmp_path / "curves.png")
    save(found.bq.plot.heatmap("rate"), tmp_path / "rates.png")
    assert bqlib.export(found, tmp_path / "curves.csv")[0] == 2 * 2 * 5 * 12
    bqlib.export(found, tmp_path / "curves.nc", points=True)
    with xr.open_dataset(tmp_path / "curves.nc") as read:
        xr.testing.assert_equal(read.mmd, found.mmd)


INTERRUPTED = """
import time, bqlib

def slow(target, kernel, n, *, rng, candidates):
    print("at work\\n", end="", flush=True)
    time.sleep({seconds})

rule = {{"name": "slow", "design": slow, "weights": "bq"}}
bqlib.curves(bqlib.Uniform([0.0], [1.0]), bqlib.Matern(0.5), rule, 2, 9, on={on!r})
"""


def started(on, seconds):
    """A program at its first trials, and the processes that it started."""
    ran = subprocess.Popen(
        [sys.executable, "-c", INTERRUPTED.format(on=on, seconds=seconds)],
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )
    assert ran.stdout.readline() == "at work\n"
    return ran, psutil.Process(ran.pid).children(recursive=True)


@pytest.mark.parametrize(("on", "seconds"), [(None, 600), ("threads", 3), ("processes", 600)])
def test_an_interrupt_leaves_no_process(on, seconds):
    ran, children = started(on, seconds)
    assert bool(children) == (on == "processes")
    os.killpg(ran.pid, signal.SIGINT)  # as a terminal does
    _, said = ran.communicate(timeout=60)
    # After it, loky's resource tracker may warn of a semaphore that was removed already.
    assert "\nKeyboardInterrupt\n" in said
    assert said.count("Traceback") == 1
    assert ran.returncode == -signal.SIGINT
    _, alive = psutil.wait_procs(children, timeout=20)
    assert alive == []


def test_a_kill_leaves_no_process():
    ran, children = started("processes", 600)
    ran.kill()
    _, alive = psutil.wait_procs(children, timeout=20)
    assert alive == []
    ran.communicate()


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"on": "cluster"}, "on is 'cluster'; it must be None, 'threads'"),
        ({"on": "threads", "workers": 0}, "at least 1"),
        ({"workers": 2}, "only 'threads' and 'processes' have any"),
    ],
)
def test_a_wrong_place_is_refused(wrong, said):
    with pytest.raises(ValueError, match=said):
        bqlib.curves(SQUARE, Matern(0.5), "sbq", **SMALL | wrong)


def test_nothing_runs_where_an_argument_is_wrong():
    with pytest.raises(SweepError) as caught:
        bqlib.curves(SQUARE, [Matern(0.3), Matern(0.6)], ["sbq", "sqb"], **SMALL | {"n": 60})
    assert str(caught.value).split("\n") == [
        'bqlib.curves: algorithms[1]: unknown algorithm "sqb"; did you mean "sbq"? Allowed: iid, '
        "iid_bq, sobol, sobol_bq, halton, halton_bq, latin_hypercube, latin_hypercube_bq, lattice, "
        "lattice_bq, grid, grid_bq, herding, herding_bq, stein_thinning, kernel_thinning, "
        "compress, recombination, recombination_nonnegative, frank_wolfe, frank_wolfe_bq, "
        "p_greedy, rpcholesky, fp_greedy, omp, block_sbq, "
        "sbq, joint, joint_uniform, msip, sbq_nonnegative, sbq_simplex, sbq_sum_to_one, or "
        "{name: ..., design: ..., weights: ...}",
        "bqlib.curves: n: must be at most 50, the number of candidates, not 60",
    ]


def test_sets_have_sizes_of_their_own():
    options = {"n": 8, "seeds": 1, "candidates": bqlib.Candidates(50), "progress": False}
    square = bqlib.Uniform([0, 0], [1, 1])
    found = bqlib.curves(
        square, bqlib.Brownian(), ["sbq", "kernel_thinning"], sizes=[3, 8], **options
    )
    assert found.bq.sets == {"kernel_thinning": (3, 8)}
    assert found.sel(n=slice(1, 5)).bq.sets == {"kernel_thinning": (3,)}
    assert found.sel(algorithm=["sbq"]).bq.sets == {}
    made = found.mmd.sel(algorithm="kernel_thinning").squeeze().notnull()
    assert found.n[made.values].values.tolist() == [3, 8]
    assert found.mmd.sel(algorithm="sbq").notnull().all()
    with pytest.raises(SweepError, match=r"sizes\[0\]: is only for designs whose points are a set"):
        bqlib.curves(square, bqlib.Brownian(), "sbq", sizes=[3], **options)
