import os
import signal
import sys
import threading
import time
from contextlib import contextmanager

import cloudpickle
import numpy as np
import pytest
from distributed import Client, LocalCluster

from bqlib import (
    Candidates,
    ExponentiatedQuadratic,
    GaussianMixture,
    IntegratedBrownian,
    Uniform,
    herding,
    sbq,
    sharded,
)

MIXTURE = GaussianMixture([0.3, 0.7], [[-1.0, 0.0], [1.0, 0.5]], [np.eye(2), 0.3 * np.eye(2)])
KERNEL = ExponentiatedQuadratic(0.5)
ALONE = {sharded.sbq: sbq, sharded.herding: herding}


@contextmanager
def workers(count, **arguments):
    quiet = {"dashboard_address": "127.0.0.1:0", "worker_dashboard_address": "127.0.0.1:0"}
    with (
        LocalCluster(n_workers=count, threads_per_worker=1, **quiet, **arguments) as cluster,
        Client(cluster) as client,
    ):
        yield client


@pytest.fixture(scope="module")
def client():
    with workers(2) as client:
        yield client


def in_one_process(design, candidates, n, seed):
    pool = sharded.draw_pool(MIXTURE, candidates, seed)
    assert pool.shape == (candidates.size, 2)
    return ALONE[design](MIXTURE, KERNEL, n, rng=0, candidates=pool)


@pytest.mark.parametrize("design", ALONE)
@pytest.mark.parametrize("size", [40, 200_000])
def test_the_same_points_are_picked_as_in_one_process(client, design, size):
    candidates = Candidates(size)
    made = design(client, MIXTURE, KERNEL, 30, rng=3, candidates=candidates)
    alone = in_one_process(design, candidates, 30, 3)
    assert np.array_equal(made.points, alone.points)
    assert made.rule is alone.rule and made.stop == alone.stop == ""


def test_points_do_not_depend_on_the_number_of_workers(client):
    candidates = Candidates(3 * sharded.BLOCK + 5, source="box", box=((-2, 2), (-3, 3)))
    two = sharded.sbq(client, MIXTURE, KERNEL, 20, rng=0, candidates=candidates)
    with workers(1, processes=False) as one_worker:
        one = sharded.sbq(one_worker, MIXTURE, KERNEL, 20, rng=0, candidates=candidates)
    assert np.array_equal(one.points, two.points)


def test_a_block_can_be_drawn_without_the_others():
    candidates = Candidates(2 * sharded.BLOCK + 7)
    whole = sharded.draw_pool(MIXTURE, candidates, 5)
    last = sharded.draw_pool(MIXTURE, candidates, 5, blocks=[2])
    assert np.array_equal(whole[2 * sharded.BLOCK :], last)
    assert not np.array_equal(whole[: sharded.BLOCK], whole[sharded.BLOCK : 2 * sharded.BLOCK])
    other = sharded.draw_pool(MIXTURE, candidates, 6, blocks=[2])
    assert not np.array_equal(last, other)


def test_a_design_ends_where_all_candidates_are_spent(client):
    wide = ExponentiatedQuadratic(20.0)
    made = sharded.sbq(client, MIXTURE, wide, 100, rng=0, candidates=Candidates(100))
    alone = sbq(
        MIXTURE, wide, 100, rng=0, candidates=sharded.draw_pool(MIXTURE, Candidates(100), 0)
    )
    assert len(made.points) == len(alone.points) < 100
    assert made.stop == alone.stop != ""


def test_a_kernel_of_varying_height_changes_nothing(client):
    target, kernel, candidates = Uniform([0.0], [1.0]), IntegratedBrownian(), Candidates(300)
    made = sharded.sbq(client, target, kernel, 300, rng=0, candidates=candidates)
    pool = sharded.draw_pool(target, candidates, 0)
    alone = sbq(target, kernel, 300, rng=0, candidates=pool)
    assert np.array_equal(made.points, alone.points) and made.stop == alone.stop


@pytest.mark.parametrize("design", ALONE)
def test_a_lost_worker_changes_nothing(client, design, monkeypatch):
    candidates = Candidates(2 * sharded.BLOCK)
    client.wait_for_workers(2)  # one may have been lost in a test before
    monkeypatch.setattr(sharded, "LOOK_SECONDS", 0.2)
    asked = []
    ask = sharded._Shards.ask

    def kill_between(shards, question, *arguments):
        asked.append(question)
        if len(asked) == 12:
            victim = shards.held[1].worker
            pid = client.run(os.getpid, workers=[victim])[victim]
            # During the step, too: its answer never comes.
            threading.Timer(
                0.01 if design is sharded.sbq else 0, os.kill, (pid, signal.SIGKILL)
            ).start()
            time.sleep(0 if design is sharded.sbq else 0.5)
        return ask(shards, question, *arguments)

    monkeypatch.setattr(sharded._Shards, "ask", kill_between)
    made = design(client, MIXTURE, KERNEL, 40, rng=3, candidates=candidates)
    assert len(asked) >= 40
    assert np.array_equal(made.points, in_one_process(design, candidates, 40, 3).points)


class Faulty(ExponentiatedQuadratic):
    """A kernel with a fault: `strike()` is called on workers, at the kernel's first use there."""

    def __init__(self, strike):
        super().__init__(0.5)
        object.__setattr__(self, "strike", strike)
        object.__setattr__(self, "home", os.getpid())

    def diagonal(self, x):
        if os.getpid() != self.home:
            self.strike()
        return super().diagonal(x)


@pytest.fixture
def on_workers():
    """What this module defines can be sent to workers, which do not have it."""
    module = sys.modules[__name__]
    cloudpickle.register_pickle_by_value(module)
    yield
    cloudpickle.unregister_pickle_by_value(module)


def test_the_only_worker_may_be_lost_while_it_makes_its_part(on_workers, tmp_path, monkeypatch):
    monkeypatch.setattr(sharded, "LOOK_SECONDS", 0.2)
    once = tmp_path / "once"

    def die_once():
        try:
            once.touch(exist_ok=False)
        except FileExistsError:
            return
        os.kill(os.getpid(), signal.SIGKILL)

    candidates = Candidates(1000)
    with workers(1) as client:
        made = sharded.sbq(client, MIXTURE, Faulty(die_once), 5, rng=0, candidates=candidates)
    assert once.exists()
    assert np.array_equal(made.points, in_one_process(sharded.sbq, candidates, 5, 0).points)


@pytest.mark.parametrize("fault", [OSError, TimeoutError, RuntimeError])
@pytest.mark.parametrize("later", [False, True])
def test_faults_of_a_kernel_are_told(client, on_workers, fault, later):
    # In a step an OSError may also come from the connection to a worker.
    lost = later and fault is OSError
    error, words = (sharded.WorkersLostError, "4 times in a row: ") if lost else (fault, "^")
    uses = []

    def fail():
        uses.append(None)
        if len(uses) > 2 * later:  # a part asks twice while it is made
            raise fault("of the kernel")

    client.wait_for_workers(2)
    with pytest.raises(error, match=words + "of the kernel"):
        sharded.sbq(client, MIXTURE, Faulty(fail), 5, rng=0, candidates=Candidates(10))


def test_the_client_that_is_given_is_the_one_that_works(client):
    with (
        LocalCluster(n_workers=1, processes=False, dashboard_address="127.0.0.1:0") as cluster,
        Client(cluster, set_as_default=False) as other,
    ):
        made = sharded.sbq(other, MIXTURE, KERNEL, 5, rng=0, candidates=Candidates(10))
    assert len(made.points) == 5
    with pytest.raises(sharded.WorkersLostError, match="client is closed"):
        sharded.sbq(other, MIXTURE, KERNEL, 5, rng=0, candidates=Candidates(10))


def test_without_workers_there_is_an_error(monkeypatch):
    monkeypatch.setattr(sharded, "FIRST_SECONDS", 0.3)
    words = "none came within 0[.]3 s: start some"
    with (
        workers(0, processes=False) as client,
        pytest.raises(sharded.WorkersLostError, match=words),
    ):
        sharded.sbq(client, MIXTURE, KERNEL, 5, rng=0, candidates=Candidates(10))


def test_the_first_worker_may_come_later():
    with workers(0, processes=False) as client:
        threading.Timer(0.5, client.cluster.scale, (1,)).start()
        made = sharded.sbq(client, MIXTURE, KERNEL, 5, rng=0, candidates=Candidates(10))
    assert len(made.points) == 5


@pytest.mark.parametrize("design", ALONE)
@pytest.mark.parametrize(
    "change, error, words",
    [
        ({"candidates": Candidates(10, fresh=True)}, ValueError, "use fresh=False"),
        ({"n": 11}, ValueError, "at most the 10 candidates"),
        ({"n": 0}, ValueError, "n is 0; it must be at least 1"),
        ({"n": 2.0}, TypeError, "n is 2.0; it must be a whole number"),
        (
            {"candidates": np.zeros((10, 2))},
            TypeError,
            "of type ndarray; the workers draw the pool",
        ),
        (
            {"rng": np.random.default_rng(0)},
            TypeError,
            "rng is a Generator; .* a seed such as rng=0",
        ),
        ({"rng": None}, TypeError, "rng is required"),
        ({"rng": -1}, ValueError, "rng is -1"),
    ],
)
def test_arguments_are_checked(design, change, error, words):
    arguments = {"n": 5, "rng": 0, "candidates": Candidates(10)} | change
    with pytest.raises(error, match=words):
        design(None, MIXTURE, KERNEL, **arguments)
    if "n" not in change:
        with pytest.raises(error, match=words):
            sharded.draw_pool(MIXTURE, arguments["candidates"], arguments["rng"])
