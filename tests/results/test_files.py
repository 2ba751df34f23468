import os

import pytest

from bqlib.results.files import replacing, write_atomically


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


def test_where_nothing_was_written_the_old_folder_stays(tmp_path):
    (tmp_path / "store" / "inside").mkdir(parents=True)
    with pytest.raises(FileNotFoundError), replacing(tmp_path / "store"):
        pass
    assert os.listdir(tmp_path) == ["store"] and os.listdir(tmp_path / "store") == ["inside"]
