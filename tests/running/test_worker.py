"""Trials on workers: by the right code, and within the memory of their worker."""

import asyncio
import gc
import pickle
import resource
import time
from dataclasses import replace

import numpy as np
import pytest
from distributed import Client, LocalCluster
from local_dask import QUIET, connected
from project import QUICK
from threadpoolctl import threadpool_info, threadpool_limits

from bqlib.running import worker
from bqlib.running.errors import OtherCodeError
from bqlib.running.site import Site
from bqlib.running.worker import attempt, versions
from bqlib.sweep import from_file
from bqlib.sweep.file import load


def test_a_worker_with_other_code_or_versions_is_refused():
    experiment = load(QUICK)
    spec = experiment.spec(experiment.cells()[0])
    with pytest.raises(OtherCodeError, match=r"runs numpy .* and not 1\.0: make them equal"):
        attempt(spec, [0], versions() | {"numpy": "1.0"})
    with pytest.raises(OtherCodeError, match="runs other code"):
        attempt(replace(spec, fingerprint="other"), [0], versions())


def test_a_worker_that_finds_other_data_is_refused(tmp_path, monkeypatch):
    np.save(tmp_path / "draws.npy", [[0.0, 1.0], [1.0, 0.0]])
    (tmp_path / "sweep.yaml").write_text(
        "name: small\ntargets: [{name: data, family: empirical, file: draws.npy}]\n"
        "kernels: {eq: {family: exponentiated_quadratic}}\nlengthscales: [1]\n"
        "algorithms: [iid]\ncandidates: {size: 5}\nn: 3\nseeds: 1\nstudies: [submodularity]\n"
    )
    experiment = load(tmp_path / "sweep.yaml")
    specs = experiment.spec(experiment.cells()[0]), experiment.study("submodularity")
    monkeypatch.setattr(worker, "own_memory", lambda: None)
    [(curves, _)] = attempt(specs[0], [0], versions())
    assert len(curves["mmd"]) == 3
    monkeypatch.setattr(from_file, "_held", {})  # as in a worker that starts later
    np.save(tmp_path / "draws.npy", [[0.0, 1.0], [1.0, 1.0]])
    for spec in specs:
        with pytest.raises(OtherCodeError, match=r"lacks the data: .*draws\.npy has changed since"):
            attempt(spec, [0], versions())


def failing(monkeypatch, error):
    """A spec whose trials raise an error, in this process."""

    def run(spec, seed):
        raise error

    experiment = load(QUICK)
    spec = experiment.spec(experiment.cells()[0])
    monkeypatch.setattr(worker, "own_memory", lambda: None)
    monkeypatch.setattr(type(spec), "run", run)
    return spec


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_a_trial_that_would_end_its_worker_says_so(monkeypatch, error):
    spec = failing(monkeypatch, error)
    [why] = attempt(spec, [3], versions())
    assert why == f"RuntimeError: its code raised {error!r}, which ends programs"


class TwoTextsError(Exception):
    """An error of somebody's plug-in, which pickles and cannot be made again."""

    def __init__(self, first, second):
        super().__init__(f"{first} and {second}")


class TextlessError(Exception):
    def __str__(self):
        return self.missing


@pytest.mark.parametrize(
    "error, why",
    [
        (ValueError("two\nlines"), "ValueError: two lines"),
        (OSError("no file caf\udce9"), r"OSError: no file caf\udce9"),
        (TwoTextsError("one", "two"), "TwoTextsError: one and two"),
        (asyncio.CancelledError("ours"), "CancelledError: ours"),
        (BaseException("bare"), "BaseException: bare"),
        (TextlessError(), "TextlessError: its text cannot be had (AttributeError)"),
        (MemoryError("no room"), "out of memory: no room"),
    ],
)
def test_why_a_trial_failed_is_a_text_that_files_hold(monkeypatch, error, why):
    spec = failing(monkeypatch, error)
    assert attempt(spec, [3, 4], versions()) == [why, why]
    assert why.encode()


def test_a_worker_has_no_more_than_its_memory():
    def hoard(size):
        with worker.memory_limited(worker.own_memory()):
            return len(bytearray(size))

    with (
        LocalCluster(n_workers=1, memory_limit="768MiB", **QUIET) as cluster,
        Client(cluster) as client,
    ):
        assert isinstance(client.submit(hoard, 2**29).exception(), MemoryError)
        assert client.submit(hoard, 2**26).result() == 2**26


def test_trials_inside_a_job_share_its_limits(tmp_path):
    before = resource.getrlimit(resource.RLIMIT_DATA)

    def limits(seconds):
        with worker.memory_limited(worker.own_memory()), threadpool_limits(1):
            time.sleep(seconds)
        threads = {library["num_threads"] for library in threadpool_info()}
        return resource.getrlimit(resource.RLIMIT_DATA)[0], threads

    async def act(client):
        # The first to end must not lift the limits of the second.
        short, long = client.submit(limits, 0.1), client.submit(limits, 0.5)
        assert await short.result() == await long.result() == (2**32 - 2**28 - 2**28, {1})

    connected(Site(system="job", memory="4GiB"), tmp_path, act, threads=2)
    assert resource.getrlimit(resource.RLIMIT_DATA) == before


def test_a_trial_does_not_depend_on_those_in_its_task(monkeypatch):
    experiment = load(QUICK)
    spec = experiment.spec(experiment.cells()[-1])
    monkeypatch.setattr(worker, "own_memory", lambda: None)
    together = attempt(spec, [0, 1], versions())
    for seed, (curves, _) in enumerate(together):
        [(alone, _)] = attempt(load(QUICK).spec(spec.cell), [seed], versions())
        assert all(
            np.array_equal(alone[k], curves[k], equal_nan=True) for k in alone if k != "reason"
        )
    # What was built for them stays in its process.
    assert set(vars(pickle.loads(pickle.dumps(spec)))) == set(vars(spec)) - {"_pair"}


def test_workers_of_a_run_end_without_a_search_for_cycles(tmp_path):
    async def act(client):
        [names] = set((await client.run(_plugins)).values())
        assert "EndsQuickly" in names

    connected(Site(workers=2), tmp_path, act)
    gc.unfreeze()
    try:
        worker.EndsQuickly().teardown(None)
        assert gc.get_freeze_count()
    finally:
        gc.unfreeze()


def _plugins(dask_worker):
    return " ".join(type(plugin).__name__ for plugin in dask_worker.plugins.values())
