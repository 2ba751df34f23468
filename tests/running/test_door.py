"""The door of a run: where jobs ask for its process."""

import os
import threading
import time
from pathlib import Path

import pytest

from bqlib.running.door import ask, open_door
from bqlib.running.errors import RunEndedError, RunError
from bqlib.running.paths import RUNS, Paths, announce, announced


def test_all_who_ask_get_the_answer_and_nobody_a_second_run(tmp_path):
    started = []

    def answer():
        if not started:
            time.sleep(0.05)  # in which others ask
            started.append(object())
        return f"/run/{len(started)}"

    open_door(tmp_path / "door", answer)
    told = []
    asking = [
        threading.Thread(target=lambda: told.append(ask(tmp_path / "door"))) for _ in range(20)
    ]
    for each in asking:
        each.start()
    for each in asking:
        each.join()
    assert told == ["/run/1"] * 20


def test_why_a_run_cannot_start_is_told_to_each_job(tmp_path):
    def refuse():
        raise RunError("another run works on results/small")

    open_door(tmp_path / "door", refuse)
    for _ in range(2):
        with pytest.raises(RunError, match="another run works on results/small"):
            ask(tmp_path / "door")
    open_door(tmp_path / "broken", lambda: 1 / 0)
    with pytest.raises(RunError, match="ZeroDivisionError: division by zero"):
        ask(tmp_path / "broken")
    with pytest.raises(RunEndedError):
        ask(tmp_path / "nowhere" / "door")


def paths(name):
    return Paths(Path("sweep.yaml"), Path("t"), Path("site.yaml"), Path("results", name))


def test_jobs_of_two_sweeps_find_their_own_runs(tmp_path, monkeypatch):
    monkeypatch.setattr(os, "environ", {})
    announce(paths("one"), "/door/one")
    announce(paths("two"), "/door/two")
    for name in ("one", "two"):
        found = announced(f"results/{name}/pieces/a.zarr.zip")
        assert found.door == f"/door/{name}"
        assert Paths.from_json(found.paths) == paths(name)
    assert announced("results/three/rates.zarr/zarr.json") is None
    announce(paths("one"))  # by a process that the first one has started
    assert announced("results/one/report.html").door == "/door/one"
    environment = os.environ[RUNS]
    monkeypatch.setattr("socket.gethostname", lambda: "node17")
    announce(paths("one"))  # where it is on another machine
    assert announced("results/one/report.html").door == ""
    assert environment != os.environ[RUNS]
