"""Private folders for temporary files, and what is removed of them after a kill."""

import os
import signal
import subprocess
import sys

import psutil
import pytest

from bqlib.running import scratch

MAKE = """
import os, signal, subprocess, sys
from bqlib.running import scratch

made = scratch.make(sys.argv[1])
print(made.path, flush=True)
if sys.argv[2:]:
    null, used = subprocess.DEVNULL, [made.lock.fileno()]
    child = subprocess.Popen(["sleep", "60"], pass_fds=used, stdout=null, stderr=null)
    (made.path / "child").write_text(str(child.pid))
os.kill(os.getpid(), signal.SIGKILL)
"""


def left_by_kill(base, *arguments):
    """A private folder of a process that was killed."""
    killed = subprocess.run(
        [sys.executable, "-c", MAKE, base, *arguments], capture_output=True, text=True
    )
    assert killed.returncode == -signal.SIGKILL, killed.stderr
    return base / killed.stdout.strip()


def test_a_folder_is_private_and_goes_with_all_that_is_in_it(tmp_path):
    made = scratch.make(tmp_path)
    assert made.path.parent == tmp_path
    assert made.path.stat().st_mode & 0o777 == 0o700
    (made.path / "more").mkdir()
    made.remove()
    made.remove()
    assert not made.path.exists()


def test_folders_of_killed_processes_are_removed_and_used_ones_are_kept(tmp_path):
    used, left = scratch.make(tmp_path), left_by_kill(tmp_path)
    assert left.is_dir()
    scratch.remove_left(tmp_path)
    assert not left.exists()
    assert used.path.is_dir()
    used.remove()


def test_a_folder_is_used_as_long_as_a_child_that_was_given_its_lock(tmp_path):
    left = left_by_kill(tmp_path, "with a child")
    scratch.remove_left(tmp_path)
    assert left.is_dir()
    child = psutil.Process(int((left / "child").read_text()))
    child.kill()
    psutil.wait_procs([child], timeout=30)
    scratch.remove_left(tmp_path)
    assert not left.exists()


def without_lock(left):
    (left / scratch.LOCK).unlink()


def being_made(left):
    (left / scratch.LOCK).write_text("")


def locked_by_a_link(left):
    os.rename(left / scratch.LOCK, left.parent / "elsewhere")
    (left / scratch.LOCK).symlink_to(left.parent / "elsewhere")


def locked_by_a_pipe(left):
    (left / scratch.LOCK).unlink()
    os.mkfifo(left / scratch.LOCK)


def open_to_others(left):
    left.chmod(0o755)


def named_otherwise(left):
    return left.rename(left.with_name("of-a-user"))


def of_another_user(left):
    if os.getuid() != 0:
        pytest.skip("only root can give files away")
    os.chown(left, 65534, 65534)


@pytest.mark.parametrize(
    "change",
    [
        without_lock,
        being_made,
        locked_by_a_link,
        locked_by_a_pipe,
        open_to_others,
        named_otherwise,
        of_another_user,
    ],
)
def test_what_is_not_surely_left_is_kept(tmp_path, change):
    left = left_by_kill(tmp_path)
    left = change(left) or left
    scratch.remove_left(tmp_path)
    assert left.is_dir()


def test_a_link_to_a_folder_is_not_followed(tmp_path):
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    left = left_by_kill(elsewhere)
    (tmp_path / f"{scratch.PREFIX}link").symlink_to(left)
    scratch.remove_left(tmp_path)
    assert left.is_dir()


def test_a_folder_that_cannot_be_read_stops_nothing(tmp_path):
    scratch.remove_left(tmp_path / "missing")
