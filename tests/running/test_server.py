"""The process of a run computes pieces and says why trials failed."""

import asyncio
import json
import time
from dataclasses import replace
from hashlib import sha256
from types import SimpleNamespace

import numpy as np
import pytest
from distributed import Client, KilledWorker, LocalCluster
from local_dask import QUIET
from project import QUICK

from bqlib.results.layout import Layout, piece_name
from bqlib.results.pieces import encode_piece
from bqlib.running import progress, server
from bqlib.running.errors import OtherCodeError, RunError
from bqlib.running.worker import versions
from bqlib.sweep.file import load
from bqlib.sweep.spec import Spec


def serve(tmp_path, act, experiment=None):
    """What `act(run)` returns, with a run on a cluster within this process."""

    async def work():
        state = server.Server(experiment or load(QUICK), progress.Progress(3), tmp_path)
        async with (
            LocalCluster(n_workers=1, processes=False, asynchronous=True, **QUIET) as cluster,
            Client(cluster, asynchronous=True) as client,
        ):
            state.client.set_result(client)
            return await act(state)

    return asyncio.run(work())


def piece_of(cell, first, last):
    """A question for the piece of a cell and some seeds, whatever the blocks of the sweep."""

    async def ask(state):
        name = piece_name(cell, (first, last))
        state._blocks[name] = cell, (first, last)
        head, data = await state.piece(name)
        assert head["piece"] == name
        return head["timing"], data

    return ask


def test_a_piece_holds_the_trials_and_why_others_failed(tmp_path, monkeypatch, capsys):
    experiment = load(QUICK)
    cell = experiment.cells()[0]
    spec = experiment.spec(cell)
    good, _ = spec.run(0)

    def some_fail(spec, seeds, expected, means):
        found = {1: "out of memory: Unable to allocate 8 GiB", 2: "ValueError: two lines"}
        return [found.get(seed, (good, 0.25)) for seed in seeds]

    monkeypatch.setattr(server, "attempt", some_fail)
    timing, data = serve(tmp_path, piece_of(cell, 0, 2))
    reasons = {1: "out of memory: Unable to allocate 8 GiB", 2: "ValueError: two lines"}
    assert data == encode_piece(spec, range(3), [good, reasons[1], reasons[2]])
    seconds = {0: 0.25, 1: None, 2: None}
    about = {"digest": spec.digest, "sha256": sha256(data).hexdigest(), "versions": versions()}
    assert timing == {"seconds": seconds, "failed": reasons} | about
    assert "3 of 3 trials done, 2 failed" in capsys.readouterr().out
    # What succeeded is not computed again by the next run; what failed is.
    monkeypatch.setattr(server, "attempt", lambda spec, seeds, expected, means: 1 / 0)
    timing, _ = serve(tmp_path, piece_of(cell, 0, 1))
    assert timing["seconds"] == {0: 0.25, 1: None}
    assert timing["failed"] == {1: "ZeroDivisionError: division by zero"}


def test_a_trial_is_blamed_for_a_dead_worker_only_if_it_dies_again_alone(tmp_path, monkeypatch):
    experiment = load(QUICK)
    cell = experiment.cells()[0]
    spec = experiment.spec(cell)
    good, _ = spec.run(0)
    tries = tmp_path / "tries"

    def two_die(spec, seeds, expected, means):
        [seed] = seeds  # as nothing is known of their time yet
        with open(tries, "a") as file:
            file.write(str(seed))
        if seed == 2 or (seed == 1 and tries.read_text().count("1") == 1):
            raise KilledWorker("a trial", SimpleNamespace(address="there"), 3)
        return [(good, 0.25)]

    monkeypatch.setattr(server, "attempt", two_die)
    timing, _ = serve(tmp_path, piece_of(cell, 0, 2))
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
    ran = tmp_path / "ran"

    def run(spec, seeds, expected, means):
        with open(ran, "a") as file:
            file.writelines(map(str, seeds))
        return [(trials[seed], 0.25) for seed in seeds]

    monkeypatch.setattr(server, "attempt", run)
    timing, data = serve(tmp_path, piece_of(cell, 1, 2))
    assert ran.read_text() == "2" and data == encode_piece(spec, [1, 2], trials[1:])
    assert list(timing["seconds"].items()) == [(1, 0.75), (2, 0.25)]
    assert timing["versions"] == versions() and timing["other_versions"] == [{"numpy": "1.0"}]
    assert "1 of 3 trials done" in capsys.readouterr().out
    # Of two cells of QUICK with two seeds each, one seed is there.
    at_start = server.progress_of(experiment, tmp_path)
    assert (at_start.trials, at_start.done, at_start.failed) == (2 * len(experiment.cells()), 2, 0)
    assert at_start.seeds == sum(experiment.study(name).seeds for name in experiment.studies)

    async def without_a_cluster():
        state = server.Server(experiment, progress.Progress(0), tmp_path)
        made = await piece_of(cell, 0, 1)(state)
        assert not state.wanted.is_set()
        return made

    timing, data = asyncio.run(without_a_cluster())
    assert data == older and timing["seconds"] == {0: 0.5, 1: 0.75}


def test_trials_of_another_sweep_are_to_be_done(tmp_path):
    experiment = load(QUICK)
    at, name = Layout(tmp_path), piece_name(experiment.cells()[0], experiment.blocks()[0])
    seeds = server.progress_of(experiment, tmp_path).seeds
    study = at.study(experiment.studies[0]) / "zarr.json"
    for path in (at.piece(name), at.timing(name), study):
        path.parent.mkdir(parents=True)
        path.write_text('{"digest": "other", "attributes": {"digest": "other"}}')
    told = server.progress_of(experiment, tmp_path)
    assert (told.done, told.status().cells_done, told.seeds) == (0, 0, seeds) and seeds > 0


def test_a_piece_that_is_asked_for_again_counts_once_as_do_kept_trials(tmp_path, monkeypatch):
    experiment = load(QUICK)
    cell = experiment.cells()[0]
    good, _ = experiment.spec(cell).run(0)

    def attempt(spec, seeds, expected, means):
        return [(good, 0.1) if seed == 0 else "RuntimeError: unlucky" for seed in seeds]

    monkeypatch.setattr(server, "attempt", attempt)

    async def ask(state):
        state.progress = server.progress_of(experiment, tmp_path)
        for _ in range(2):  # as Snakemake's retries do; the second time, one trial is kept
            for first, last in experiment.blocks():
                await piece_of(cell, first, last)(state)
        return state.progress

    told = serve(tmp_path, ask, experiment)
    assert (told.done, told.failed, told.status().cells_done) == (2, 1, 1)
    again = server.progress_of(experiment, tmp_path)  # no piece was written: the next run begins
    assert (again.done, again.failed) == (0, 0)


def test_short_trials_share_tasks_and_pieces_come_as_they_are_done(tmp_path, monkeypatch):
    experiment = replace(load(QUICK), seeds=100, seeds_per_job=100)
    cells = experiment.cells()[:3]
    good, _ = experiment.spec(cells[0]).run(0)
    tasks = tmp_path / "tasks"

    def attempt(spec, seeds, expected, means):
        time.sleep(0.01 if spec.cell == cells[0] else 0.001)
        with open(tasks, "a") as file:
            file.write(f"{len(seeds)}\n")
        return [(good, 0.1 if spec.cell == cells[0] else 0.001) for _ in seeds]

    monkeypatch.setattr(server, "attempt", attempt)
    names = [piece_name(cell, (0, 99)) for cell in cells]

    async def ask(state):
        return [head["piece"] async for head, _ in state.pieces(names)]

    assert serve(tmp_path, ask, experiment) == names
    sizes = list(map(int, tasks.read_text().split()))
    assert sum(sizes) == 300 and sizes[0] == 1
    assert max(sizes[:20]) == 5  # half a second of trials
    assert max(sizes) > 80 and len(sizes) < 60


def test_pieces_that_can_be_made_come_before_the_error_of_another(tmp_path, monkeypatch):
    experiment = load(QUICK)
    names = [piece_name(cell, experiment.blocks()[0]) for cell in experiment.cells()[:2]]
    good, _ = experiment.spec(experiment.cells()[0]).run(0)

    def attempt(spec, seeds, expected, means):
        if spec.cell == experiment.cells()[0]:
            raise OtherCodeError("other code")
        return [(good, 0.1) for _ in seeds]

    monkeypatch.setattr(server, "attempt", attempt)

    async def ask(state):
        found = []
        with pytest.raises(OtherCodeError, match="other code"):
            async for head, _ in state.pieces(names):
                found.append(head["piece"])
        assert isinstance(state.ended.exception(), OtherCodeError)
        return found

    assert serve(tmp_path, ask) == names[1:]
    with pytest.raises(RunError, match="the sweep has no piece a/b"):
        asyncio.run(serve_nothing(tmp_path, ["a/b"]))


async def serve_nothing(folder, names):
    async for _ in server.Server(load(QUICK), progress.Progress(0), folder).pieces(names):
        pass


def test_a_run_goes_on_where_trials_cannot_be_kept(tmp_path, capsys):
    experiment = load(QUICK)
    Layout(tmp_path).kept.write_text("a file where the folder should be")
    timing, _ = serve(tmp_path, piece_of(experiment.cells()[0], 0, 1))
    assert timing["failed"] == {}
    assert capsys.readouterr().out.count("cannot be kept in") == 1


def test_a_study_of_other_code_is_refused(tmp_path):
    async def ask(state):
        async for _ in state.study(load(QUICK).studies[0], "other"):
            pass

    with pytest.raises(RunError, match="changed during the run"):
        serve(tmp_path, ask)


DATA_SETS = """
name: data
targets:
  - {name: one, family: empirical, points: [[0.0], [1.0], [1.5], [3.0], [0.5]]}
  - {name: two, family: empirical, file: draws.npy}
kernels: {eq: {family: exponentiated_quadratic}, matern: {family: matern, nu: 1.5}}
lengthscales: [0.5, 1, 2]
algorithms: [iid, herding, sbq]
candidates: {size: 4}
n: 3
seeds: 2
"""


def test_the_embedding_of_a_data_set_is_computed_once_for_all_its_trials(tmp_path, monkeypatch):
    np.save(tmp_path / "draws.npy", np.linspace(0, 1, 7)[:, None] ** 2)
    (tmp_path / "sweep.yaml").write_text(DATA_SETS)
    experiment = load(tmp_path / "sweep.yaml")
    specs = [experiment.spec(cell) for cell in experiment.cells()]
    alone = {piece_name(s.cell, (0, 1)): [s.run(i)[0] for i in range(2)] for s in specs}
    counted, compute = [], Spec.data_means
    monkeypatch.setattr(Spec, "data_means", lambda spec: (counted.append(1), compute(spec))[1])

    async def ask(state):
        found = {head["piece"]: data async for head, data in state.pieces(list(alone))}
        assert not state._means
        return found

    made = serve(tmp_path, ask, experiment)
    assert len(counted) == 12 and len(made) == 36
    for spec in specs:
        name = piece_name(spec.cell, (0, 1))
        assert made[name] == encode_piece(spec, range(2), alone[name])
