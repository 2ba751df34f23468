import os
import signal
import subprocess
import sys

import pytest

from bqlib.results import files
from bqlib.results.files import making, remove_unfinished, replacing, write_atomically


def test_a_file_is_written_whole_with_the_users_permissions(tmp_path):
    path = tmp_path / "made" / "on the way" / "piece"
    write_atomically(path, b"first")
    write_atomically(path, b"second")
    plain = tmp_path / "plain"
    plain.touch()
    assert path.read_bytes() == b"second"
    assert path.stat().st_mode == plain.stat().st_mode
    assert os.listdir(path.parent) == ["piece"]


def test_a_failed_write_keeps_what_was_there(tmp_path, monkeypatch):
    path = tmp_path / "piece"
    write_atomically(path, b"first")
    monkeypatch.setattr("os.fsync", lambda handle: (_ for _ in ()).throw(OSError("disk full")))
    with pytest.raises(OSError, match="disk full"):
        write_atomically(path, b"second")
    assert path.read_bytes() == b"first" and os.listdir(tmp_path) == ["piece"]


def test_errors_name_the_file_that_was_asked_for(tmp_path):
    long = tmp_path / ("a" * 240)  # with what is put before it, no file may have this name

    def replace():
        with replacing(long) as new:
            new.touch()

    def make():
        with making(long) as new:
            new.mkdir()

    for write in (replace, make, lambda: write_atomically(long, b"")):
        with pytest.raises(OSError, match="File name too long") as caught:
            write()
        assert caught.value.filename == str(long) and caught.value.filename2 is None
        assert not any(tmp_path.iterdir())


@pytest.mark.parametrize("folder", [False, True])
def test_what_is_finished_takes_the_place_of_what_was_there(tmp_path, folder):
    path = tmp_path / "made" / "store"

    def write(text, fail=False):
        with replacing(path) as new:
            place = new / "inside" if folder else new
            place.parent.mkdir(exist_ok=True)
            place.write_text(text)
            if fail:
                raise RuntimeError("too early")

    write("first")
    write("second")
    with pytest.raises(RuntimeError, match="too early"):
        write("third", fail=True)
    assert (path / "inside" if folder else path).read_text() == "second"
    assert os.listdir(path.parent) == ["store"]


@pytest.mark.parametrize("folder", [False, True])
def test_what_is_written_is_on_the_disk_before_it_gets_its_name(tmp_path, monkeypatch, folder):
    done = []
    sync, rename = os.fsync, os.replace

    def synced(handle):
        done.append(os.path.basename(os.readlink(f"/proc/self/fd/{handle}")))
        sync(handle)

    def renamed(old, new):
        done.append("rename")
        rename(old, new)

    monkeypatch.setattr("os.fsync", synced)
    monkeypatch.setattr("os.replace", renamed)
    (tmp_path / "store").mkdir(parents=True) if folder else None
    with replacing(tmp_path / "store") as new:
        for place in [new / "mmd" / "c.0", new / "zarr.json"] if folder else [new]:
            place.parent.mkdir(exist_ok=True, parents=True)
            place.write_text("text")
    before, after = done[: done.index("rename")], done[done.index("rename") + 1 :]
    assert sorted(before) == sorted(["c.0", "mmd", "zarr.json", new.name] if folder else [new.name])
    assert after == [tmp_path.name]


def test_a_folder_may_be_a_link_of_the_user(tmp_path):
    (tmp_path / "scratch").mkdir()
    (tmp_path / "results").symlink_to("scratch")
    write_atomically(tmp_path / "results" / "a", b"whole")
    with replacing(tmp_path / "results" / "b") as new:
        new.mkdir()
    with making(tmp_path / "results" / "c") as new:
        new.mkdir()
    assert sorted(path.name for path in (tmp_path / "scratch").iterdir()) == ["a", "b", "c"]


def test_where_nothing_was_written_the_old_folder_stays(tmp_path):
    (tmp_path / "store" / "inside").mkdir(parents=True)
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "store"):
        pass
    assert os.listdir(tmp_path) == ["store"] and os.listdir(tmp_path / "store") == ["inside"]


KILLED = """
import os, signal, sys
from pathlib import Path
from bqlib.results.files import replacing, write_atomically

folder, how = Path(sys.argv[1]), sys.argv[2]
def die(*arguments):
    os.kill(os.getpid(), signal.SIGKILL)

if how == "file":
    os.replace = die
    write_atomically(folder / "piece", b"new")
elif how == "new store":
    with replacing(folder / "curves.zarr") as new:
        new.mkdir()
        (new / "inside").touch()
        die()
else:
    os.replace = die
    with replacing(folder / "curves.zarr") as new:
        new.mkdir()
"""


@pytest.mark.parametrize("how", ["file", "new store", "between two stores"])
def test_what_a_kill_leaves_of_a_write_is_removed(tmp_path, how):
    (tmp_path / "pieces").mkdir()
    kept = [tmp_path / ".lock", tmp_path / ".trials" / "1-2.npz", tmp_path / "pieces" / "piece"]
    for path in (*kept, tmp_path / "pieces" / "curves.zarr" / "inside"):
        path.parent.mkdir(exist_ok=True)
        path.touch()
    killed = subprocess.run([sys.executable, "-c", KILLED, tmp_path / "pieces", how], check=False)
    assert killed.returncode == -signal.SIGKILL
    assert any(name.startswith(".") for name in os.listdir(tmp_path / "pieces"))
    remove_unfinished(tmp_path)
    assert not any(name.startswith(".") for name in os.listdir(tmp_path / "pieces"))
    assert all(path.exists() for path in kept)


def test_files_that_a_living_run_renames_are_nothing_strange(tmp_path, monkeypatch):
    (tmp_path / "a link").symlink_to("nowhere")
    walked = [(str(tmp_path), [], ["gone", "a link"])]
    monkeypatch.setattr(files.os, "walk", lambda folder: iter(walked))
    assert list(files.strange_files(tmp_path)) == [tmp_path / "a link"]


def test_no_link_is_followed_where_unfinished_files_are_removed(tmp_path):
    unfinished = f".{'0' * 32}.curves.zarr"
    elsewhere = tmp_path / "elsewhere"
    (elsewhere / unfinished).mkdir(parents=True)
    results = tmp_path / "results"
    results.mkdir()
    (results / unfinished).symlink_to(elsewhere)
    (results / "pieces").symlink_to(elsewhere)
    remove_unfinished(results)
    assert os.listdir(results) == ["pieces"]
    assert os.listdir(elsewhere) == [unfinished]


def test_making_gives_a_name_to_what_is_whole_and_replaces_nothing(tmp_path):
    path = tmp_path / "above" / "made"
    with making(path) as new:
        new.mkdir()
        (new / "file").write_text("first")
        assert not path.exists()
    assert (path / "file").read_text() == "first"
    with pytest.raises(OSError), making(path) as new:
        new.mkdir()
        (new / "file").write_text("second")
    with pytest.raises(ValueError, match="other"), making(tmp_path / "b") as new:
        new.mkdir()
        raise ValueError("other")
    assert (path / "file").read_text() == "first"
    assert [p.name for p in path.parent.iterdir()] == ["made"]
    assert [p.name for p in tmp_path.iterdir()] == ["above"]
