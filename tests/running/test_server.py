"""The process of a run computes pieces and says why trials failed."""

import asyncio
import json
from dataclasses import asdict
from hashlib import sha256
from types import SimpleNamespace

import pytest
from distributed import Client, KilledWorker, LocalCluster
from local_dask import QUIET
from project import QUICK

from bqlib.results.layout import Layout, piece_name
from bqlib.results.pieces import encode_piece
from bqlib.running import kept, server
from bqlib.running.errors import RunError
from bqlib.running.worker import versions
from bqlib.sweep.file import load


def serve(tmp_path, act):
    """What `act(run)` returns, with a run on a cluster within this process."""

    async def work():
        progress = kept.Progress(3)
        state = server.Server(load(QUICK), progress, tmp_path)
        async with (
            LocalCluster(n_workers=1, processes=False, asynchronous=True, **QUIET) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            state.client.set_result(client)
            return await act(state)

    return asyncio.run(work())


def test_a_piece_holds_the_trials_and_why_others_failed(tmp_path, monkeypatch, capsys):
    experiment = load(QUICK)
    cell = experiment.cells()[0]
    spec = experiment.spec(cell)
    good, _ = spec.run(0)

    def some_fail(spec, seed, expected):
        if seed == 1:
            raise MemoryError("Unable to allocate 8 GiB")
        if seed == 2:
            raise ValueError("two\nlines")
        return good, 0.25

    monkeypatch.setattr(server, "attempt", some_fail)
    request = {"cell": asdict(cell), "first": 0, "last": 2, "digest": spec.digest}
    data, timing = serve(tmp_path, lambda state: state.piece(**request))
    reasons = {1: "out of memory: Unable to allocate 8 GiB", 2: "ValueError: two lines"}
    assert data == encode_piece(spec, range(3), [good, reasons[1], reasons[2]])
    seconds = {0: 0.25, 1: None, 2: None}
    assert timing == {"seconds": seconds, "failed": reasons, "versions": versions()}
    assert "3 of 3 trials done, 2 failed" in capsys.readouterr().out
    # What succeeded is not computed again by the next run; what failed is.
    monkeypatch.setattr(server, "attempt", lambda spec, seed, expected: 1 / (seed - 1))
    _, timing = serve(tmp_path, lambda state: state.piece(**request | {"last": 1}))
    assert timing["seconds"] == {0: 0.25, 1: None}
    assert timing["failed"] == {1: "ZeroDivisionError: division by zero"}


def test_a_trial_is_blamed_for_a_dead_worker_only_if_it_dies_again_alone(tmp_path, monkeypatch):
    experiment = load(QUICK)
    cell = experiment.cells()[0]
    spec = experiment.spec(cell)
    good, _ = spec.run(0)
    tries = tmp_path / "tries"

    def two_die(spec, seed, expected):
        with open(tries, "a") as file:
            file.write(str(seed))
        if seed == 2 or (seed == 1 and tries.read_text().count("1") == 1):
            raise KilledWorker("a trial", SimpleNamespace(address="there"), 3)
        return good, 0.25

    monkeypatch.setattr(server, "attempt", two_die)
    request = {"cell": asdict(cell), "first": 0, "last": 2, "digest": spec.digest}
    _, timing = serve(tmp_path, lambda state: state.piece(**request))
    assert timing["seconds"] == {0: 0.25, 1: 0.25, 2: None}
    assert timing["failed"][2].startswith("the worker died in each of 4 runs")
    assert sorted(tries.read_text()) == list("01122")


def test_trials_of_pieces_of_other_blocks_are_not_run(tmp_path, monkeypatch, capsys):
    experiment = load(QUICK)
    cell = experiment.cells()[0]
    spec = experiment.spec(cell)
    trials = [spec.run(seed)[0] for seed in (0, 1, 2)]
    older = encode_piece(spec, [0, 1], trials[:2])
    at, name = Layout(tmp_path), piece_name(cell, (0, 1))
    record = {
        "digest": spec.digest,
        "sha256": sha256(older).hexdigest(),
        "seconds": {0: 0.5, 1: 0.75},
        "versions": {"numpy": "1.0"},
    }
    for path, data in {at.piece(name): older, at.timing(name): json.dumps(record).encode()}.items():
        path.parent.mkdir(parents=True)
        path.write_bytes(data)
    request = {"cell": asdict(cell), "first": 1, "last": 2, "digest": spec.digest}
    ran = tmp_path / "ran"

    def run(spec, seed, expected):
        with open(ran, "a") as file:
            file.write(str(seed))
        return trials[seed], 0.25

    monkeypatch.setattr(server, "attempt", run)
    data, timing = serve(tmp_path, lambda state: state.piece(**request))
    assert ran.read_text() == "2" and data == encode_piece(spec, [1, 2], trials[1:])
    assert list(timing["seconds"].items()) == [(1, 0.75), (2, 0.25)]
    assert timing["versions"] == versions() and timing["other_versions"] == [{"numpy": "1.0"}]
    assert "1 of 3 trials done" in capsys.readouterr().out
    # Of two cells of QUICK with two seeds each, one seed is there.
    assert server.trials_to_do(experiment, tmp_path) == 2 * len(experiment.cells()) - 2 + sum(
        experiment.study(name).seeds for name in experiment.studies
    )

    async def without_a_cluster():
        state = server.Server(experiment, kept.Progress(0), tmp_path)
        data, timing = await state.piece(**request | {"first": 0, "last": 1})
        assert not state.wanted.is_set()
        return data, timing

    data, timing = asyncio.run(without_a_cluster())
    assert data == older and timing["seconds"] == {0: 0.5, 1: 0.75}


def test_trials_of_another_sweep_are_to_be_done(tmp_path):
    experiment = load(QUICK)
    at, name = Layout(tmp_path), piece_name(experiment.cells()[0], experiment.blocks()[0])
    everything = server.trials_to_do(experiment, tmp_path)
    study = at.study(experiment.studies[0]) / "zarr.json"
    for path in (at.piece(name), at.timing(name), study):
        path.parent.mkdir(parents=True)
        path.write_text('{"digest": "other", "attributes": {"digest": "other"}}')
    assert server.trials_to_do(experiment, tmp_path) == everything


def test_a_digest_of_other_code_is_refused(tmp_path):
    cell = {"target": "chen2010_mixture", "kernel": "eq_density", "lengthscale": 0.5}
    request = {"cell": cell | {"algorithm": "iid"}, "first": 0, "last": 0, "digest": "other"}
    with pytest.raises(RunError, match="changed during the run"):
        serve(tmp_path, lambda state: state.piece(**request))
