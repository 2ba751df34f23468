"""``bqlib status``: what it prints of runs that are alive, ended or killed, and its exit codes."""

import json
import os
import subprocess
import sys
import time

import pytest

from bqlib.cli.command import NO_ANSWER, PROBLEM
from bqlib.cli.main import main
from bqlib.results.layout import Layout, head
from bqlib.running.status import Status, as_json

HOLDER = """
import sys
from bqlib.running.session import lock
held = lock(sys.argv[1])
print("locked", flush=True)
sys.stdin.read()
"""


@pytest.fixture
def results(tmp_path):
    """Writes a status of a run into a folder of results; gives the folder."""

    def make(**changes):
        now = time.time()
        told = Status("node1", 7, now - 100, now, None, 4, 1, 40, 12, 0, 0, 2.0, 3, "")
        told = told.__class__(**vars(told) | changes)
        Layout(tmp_path).status.write_bytes(as_json(told))
        return str(tmp_path)

    return make


@pytest.fixture
def holding(tmp_path):
    """A process that holds the lock of the results, as a run does."""
    with subprocess.Popen(
        [sys.executable, "-c", HOLDER, str(tmp_path)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={**os.environ, "PYTHONPATH": os.getcwd()},
    ) as holder:
        assert holder.stdout.readline() == b"locked\n"
        yield holder
        holder.stdin.close()


def answer(folder, capsys, *options):
    """Exit code, output and errors of the command."""
    code = main(["status", *options, folder])
    said = capsys.readouterr()
    return code, said.out, said.err


def test_a_run_that_is_alive(results, holding, capsys):
    code, told, _ = answer(results(), capsys)
    assert code == 0
    assert f": running (process {holding.pid} on " in told and "heard of" in told
    assert "1 of 4 cells, 12 of 40 trials done, 0 failed\n" in told
    assert "2 a second on 3 workers, about 14 s left\n" in told
    code, told, _ = answer(results(failed=1), capsys, "--json")
    found = json.loads(told)
    assert code == PROBLEM and found["runs"] is True and found["trials_done"] == 12


def test_runs_that_are_not_alive(results, capsys):
    code, told, _ = answer(results(told=time.time() - 7200), capsys)
    assert code == 0 and "killed on node1, heard of 2 h ago" in told and "a second" not in told
    _, told, _ = answer(results(ended=time.time() - 120), capsys)
    assert "ended 2 min ago on node1" in told
    _, told, _ = answer(results(), capsys)  # a lock need not reach other machines
    assert "a run on node1 was heard of" in told and "does not hold its lock" in told
    assert json.loads(answer(results(), capsys, "--json")[1])["runs"] is False


def test_a_run_that_has_told_nothing_yet(holding, tmp_path, capsys):
    code, told, why = answer(str(tmp_path), capsys)
    assert (code, told) == (NO_ANSWER, "")
    assert f"a run works on it (process {holding.pid} on " in why and "bqlib plan" in why


def test_folders_without_a_status(tmp_path, capsys):
    code, _, why = answer(str(tmp_path / "nope"), capsys)
    assert code == NO_ANSWER and "no such folder" in why
    code, _, why = answer(str(tmp_path), capsys)
    assert code == NO_ANSWER and "no results are there yet" in why
    Layout(tmp_path).pieces.mkdir()
    code, _, why = answer(str(tmp_path), capsys)
    assert code == NO_ANSWER and "left no status; to finish it, run the sweep again" in why
    Layout(tmp_path).curves.mkdir()
    head(Layout(tmp_path).curves).touch()
    code, _, why = answer(str(tmp_path), capsys)
    assert code == NO_ANSWER and f"bqlib show {tmp_path}" in why
    file = tmp_path / "file"
    file.touch()
    code, _, why = answer(str(file), capsys)
    assert code == NO_ANSWER and f"{file}: a file, not a folder of results" in why


@pytest.mark.parametrize("place", ["status", "lock"])
@pytest.mark.parametrize("kind", ["link", "pipe", "folder", "bytes"])
def test_hostile_files_are_told_in_one_line_or_heeded_as_they_are(
    place, kind, results, tmp_path, capsys
):
    folder = results()
    path = getattr(Layout(tmp_path), place)
    path.unlink(missing_ok=True)
    if kind == "link":
        path.symlink_to("/dev/zero")
    elif kind == "pipe":
        os.mkfifo(path)
    elif kind == "folder":
        path.mkdir()
    else:
        path.write_bytes(b"\x1b]0;title\x07\xff")
    code, told, why = answer(folder, capsys)
    assert "\x1b" not in told + why and "Traceback" not in why
    if code == NO_ANSWER:
        assert told == "" and why.startswith("bqlib: ") and why.count("\n") == 1
    else:
        assert place == "lock" and kind in ("pipe", "bytes")


def test_a_lock_of_an_owner_with_control_characters_is_not_shown(
    results, holding, tmp_path, capsys
):
    folder = results()
    Layout(tmp_path).lock.write_bytes(b"process 7 on \x1b[2Jnode")
    code, told, _ = answer(folder, capsys)
    assert code == 0 and "running (by whom is unknown)" in told and "\x1b" not in told
