import os
import signal
import time
from pathlib import Path

import pytest

from bqlib import run

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


def test_an_interrupted_run_is_told_as_one(started):
    run.interrupt(started)
    assert started.process.wait(timeout=30) == 0
    assert run.stop(started) == "interrupted"


@pytest.mark.parametrize("error, code", [(KeyboardInterrupt, run.INTERRUPTED), (ValueError, 1)])
def test_an_interrupted_job_ends_without_a_word(tmp_path, capsys, error, code):
    before = signal.signal(signal.SIGINT, signal.SIG_IGN)
    try:
        with pytest.raises(SystemExit) as ended, run.logged(tmp_path / "log"):
            if error is KeyboardInterrupt:
                os.kill(os.getpid(), signal.SIGINT)
                time.sleep(5)
            raise ValueError("wrong")
        assert signal.getsignal(signal.SIGINT) == signal.SIG_IGN
    finally:
        signal.signal(signal.SIGINT, before)
    assert ended.value.code == code
    said = "" if error is KeyboardInterrupt else "[bqlib] ValueError: wrong\n"
    assert capsys.readouterr().err == said
