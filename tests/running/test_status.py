"""The file of status: what a run writes is read again, and nothing else is."""

import json
import os
import re
import socket
import subprocess
import sys
import time
from dataclasses import asdict, replace

import pytest

from bqlib.results.layout import Layout
from bqlib.running.errors import RunError
from bqlib.running.status import Status, as_json, as_text, read_status

OWNER = "process 7 on node1"


def status(**changes):
    now = time.time()
    found = Status("node1", 7, now - 100, now, None, 4, 1, 40, 12, 2, 0, 2.0, 3, "")
    return replace(found, **changes)


def test_what_a_run_writes_is_read_again(tmp_path):
    assert read_status(tmp_path) is None
    told = status(dashboard="http://127.0.0.1:8787/status")
    Layout(tmp_path).status.write_bytes(as_json(told))
    assert read_status(tmp_path) == told


def content(**changes):
    return json.dumps(asdict(status()) | changes)


HOSTILE = {
    "nothing": "",
    "no JSON": "{",
    "another thing": "[1, 2]",
    "another field": content(more=1),
    "a field less": json.dumps({"host": "node1"}),
    "huge": " " * 20_000,
    "nested": "[" * 9_000,
    "no UTF-8": b"\xff\xfe",
    "NaN": content(told=float("nan")),
    "infinite": content(a_second=float("inf")),
    "negative": content(failed=-1),
    "too large a number": content(trials=10**400),
    "more digits than Python reads": '{"host": ' + "9" * 5000 + "}",
    "a fraction of trials": content(trials=1.5),
    "a truth": content(workers=True),
    "a text for a number": content(process="7"),
    "nothing for a number": content(trials=None),
    "control characters": content(host="node\x1b[2J"),
    "a line": content(host="node1\n"),
    "another address": content(dashboard="http://127.0.0.1:1/status\x1b]0;x\x07"),
    "a script": content(dashboard="javascript:alert(1)"),
}


@pytest.mark.parametrize("name", HOSTILE)
def test_what_no_run_writes_is_refused_in_one_line(tmp_path, name):
    data = HOSTILE[name]
    Layout(tmp_path).status.write_bytes(data if isinstance(data, bytes) else data.encode())
    with pytest.raises(RunError, match=r"\.status\.json is not what a run writes") as refused:
        read_status(tmp_path)
    assert str(refused.value).isprintable() and len(str(refused.value)) < 400


@pytest.mark.parametrize("kind", ["link", "pipe", "folder"])
def test_what_is_no_file_is_refused_and_nobody_waits(tmp_path, kind):
    path, elsewhere = Layout(tmp_path).status, tmp_path / "elsewhere"
    elsewhere.write_bytes(as_json(status()))
    if kind == "link":
        path.symlink_to(elsewhere)
    else:
        os.mkfifo(path) if kind == "pipe" else path.mkdir()
    with pytest.raises(RunError, match="is not what a run writes"):
        read_status(tmp_path)


@pytest.mark.parametrize(
    "changes, owner, told",
    [
        ({}, OWNER, rf"r: running \({OWNER}\), heard of \S+ s ago"),
        (
            {"told": 7200},
            OWNER,
            r".*heard of 2 h ago: it may be stopped, or its machine may be gone",
        ),
        (
            {"ended": 120},
            "",
            "r: ended 2 min ago on node1 before it was complete: bqlib resume goes on",
        ),
        ({}, "", r"r: a run on node1 was heard of \S+ s ago; it does not hold its lock"),
        ({"told": 7200}, "", "r: killed on node1, heard of 2 h ago: to go on, bqlib resume .*"),
    ],
)
def test_the_state_follows_from_the_lock_and_from_what_was_said(changes, owner, told):
    changes = {name: time.time() - ago for name, ago in changes.items()}
    first = as_text("r", status(**changes), owner).splitlines()[0]
    assert re.fullmatch(told, first), first


def test_a_run_that_has_written_its_manifest_is_complete(tmp_path):
    Layout(tmp_path).manifest.touch()
    first = as_text(tmp_path, status(ended=time.time() - 120), "").splitlines()[0]
    assert first == f"{tmp_path}: complete, ended 2 min ago on node1"


def test_a_run_of_this_machine_whose_process_is_gone_was_killed():
    gone = subprocess.Popen([sys.executable, "-c", ""])
    gone.wait()
    here = {"host": socket.gethostname(), "told": time.time()}
    assert "killed on" in as_text("r", status(**here, process=gone.pid), "")
    assert "does not hold its lock" in as_text("r", status(**here, process=os.getpid()), "")
    assert "does not hold its lock" in as_text("r", status(process=gone.pid), "")  # of another


def test_counts_are_told_and_what_is_left_of_a_run_that_is_alive():
    lines = as_text("r", status(dashboard="http://127.0.0.1:1/status"), OWNER).splitlines()
    assert lines[1:] == [
        "1 of 4 cells, 12 of 40 trials done, 2 failed",
        "2 a second on 3 workers, about 14 s left",
        "dashboard on node1: http://127.0.0.1:1/status",
    ]
    ended = as_text("r", status(ended=time.time(), seeds_of_studies_left=5), "").splitlines()
    assert ended[1:] == [lines[1], "5 seeds of studies left"]
    strange = as_text("r", status(trials_done=50, a_second=1e-300), OWNER)
    assert "left" not in strange
