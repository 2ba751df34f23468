import asyncio
import os
import signal
import time
from dataclasses import asdict, replace
from pathlib import Path

import numpy as np
import pytest
from distributed import Client, LocalCluster

from bqlib import run
from bqlib.cluster import ClusterError, versions
from bqlib.experiment import load
from bqlib.store import encode_piece

CONFIG = Path(__file__).parent.parent / "config"
QUICK = CONFIG / "quick.yaml"


@pytest.fixture
def started(tmp_path, monkeypatch):
    """A run's process on this machine, its cluster not yet asked for."""
    monkeypatch.setattr(os, "environ", dict(os.environ))
    site = tmp_path / "site.yaml"
    site.write_text("workers: 1")
    session = run.start(QUICK, CONFIG / "targets", site, tmp_path / "results")
    yield session
    run.stop(session)
    assert not Path(session.folder).exists()


def test_another_run_on_the_same_results_is_refused(started, tmp_path):
    arguments = QUICK, CONFIG / "targets", tmp_path / "site.yaml", tmp_path / "results"
    with pytest.raises(run.RunError, match=f"another run works on .*process {os.getpid()} on"):
        run.start(*arguments)
    assert run.stop(started) == ""
    again = run.start(*arguments)
    assert run.stop(again) == ""


def test_the_socket_is_private(started):
    place = Path(os.environ[run.SOCKET])
    assert place.stat().st_mode & 0o777 == 0o600
    assert place.parent.stat().st_mode & 0o777 == 0o700


def test_a_process_that_is_killed_tells_its_parent_and_waiting_jobs(started, monkeypatch):
    heard = []
    before = signal.signal(signal.SIGTERM, lambda number, frame: heard.append(number))
    try:
        os.kill(started.process.pid, signal.SIGKILL)
        deadline = time.monotonic() + 20
        while not heard and time.monotonic() < deadline:
            time.sleep(0.05)
    finally:
        signal.signal(signal.SIGTERM, before)
    assert heard == [signal.SIGTERM]
    with pytest.raises(run.RunEndedError):
        run.fetch_piece({}, 0, 0, "", "piece", "timing")
    assert run.stop(started) == "the run's process was killed (signal 9)"


def test_a_run_that_cannot_start_says_why(tmp_path):
    site = tmp_path / "site.yaml"
    site.write_text("system: slrum")
    with pytest.raises(run.RunError, match=r"slrum.*allowed: slurm"):
        run.start(QUICK, CONFIG / "targets", site, tmp_path / "results")


def test_jobs_of_a_killed_process_are_cancelled(tmp_path):
    witness = tmp_path / "cancelled"
    (tmp_path / ".jobs").write_text(f"touch {witness}-1\nno-such-command 2\ntouch {witness}-3\n")
    run._cancel_jobs(tmp_path)
    assert sorted(path.name for path in tmp_path.glob("cancelled*")) == [
        "cancelled-1",
        "cancelled-3",
    ]


def test_kept_trials_outlive_a_run_and_are_forgotten_in_time(tmp_path, monkeypatch):
    kept = run.Kept(tmp_path / "kept")
    assert kept.read("digest", 0) is None
    kept.write("digest", 0, ({"mmd": np.arange(3.0)}, 1.5))
    curves, seconds = run.Kept(tmp_path / "kept").read("digest", 0)
    assert curves["mmd"].tolist() == [0, 1, 2] and seconds == 1.5
    (tmp_path / "kept" / "digest-1.pickle").write_bytes(b"\x80\x05")  # cut short
    assert kept.read("digest", 1) is None
    monkeypatch.setattr(run, "KEPT_PIECES", 2)
    for digest in ("digest", "second", "third"):
        assert kept.read("digest", 0) is not None
        kept.delivered(digest, [0, 1])
    assert kept.read("digest", 0) is None


def serve(tmp_path, act):
    """What `act(run)` returns, with a run on a cluster within this process."""
    quiet = {"dashboard_address": "127.0.0.1:0", "worker_dashboard_address": "127.0.0.1:0"}

    async def work():
        progress = run.Progress(3)
        state = run.Run(load(QUICK), progress, run.Kept(tmp_path / "kept"))
        async with (
            LocalCluster(n_workers=1, processes=False, asynchronous=True, **quiet) as cluster,
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

    monkeypatch.setattr(run, "attempt", some_fail)
    request = {"cell": asdict(cell), "first": 0, "last": 2, "digest": spec.digest}
    data, timing = serve(tmp_path, lambda state: state.piece(**request))
    reasons = {1: "out of memory: Unable to allocate 8 GiB", 2: "ValueError: two lines"}
    assert data == encode_piece(spec, range(3), [good, reasons[1], reasons[2]])
    assert timing == {"seconds": {0: 0.25, 1: None, 2: None}, "failed": reasons}
    assert "3 of 3 trials done, 2 failed" in capsys.readouterr().out
    # What succeeded is not computed again by the next run; what failed is.
    monkeypatch.setattr(run, "attempt", lambda spec, seed, expected: 1 / (seed - 1))
    _, timing = serve(tmp_path, lambda state: state.piece(**request | {"last": 1}))
    assert timing["seconds"] == {0: 0.25, 1: None}
    assert timing["failed"] == {1: "ZeroDivisionError: division by zero"}


def test_a_digest_of_other_code_is_refused(tmp_path):
    cell = {"target": "chen2010_mixture", "kernel": "eq_density", "lengthscale": 0.5}
    request = {"cell": cell | {"algorithm": "iid"}, "first": 0, "last": 0, "digest": "other"}
    with pytest.raises(run.RunError, match="changed while the run went on"):
        serve(tmp_path, lambda state: state.piece(**request))


def test_a_worker_with_other_code_or_versions_is_refused():
    experiment = load(QUICK)
    spec = experiment.spec(experiment.cells()[0])
    with pytest.raises(ClusterError, match=r"runs numpy .* and not 1\.0: make them equal"):
        run.attempt(spec, 0, versions() | {"numpy": "1.0"})
    with pytest.raises(ClusterError, match="runs other code"):
        run.attempt(replace(spec, fingerprint="other"), 0, versions())
