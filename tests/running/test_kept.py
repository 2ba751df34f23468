"""Finished trials whose pieces are not finished."""

import zipfile

import numpy as np

from bqlib.running import kept
from bqlib.running.worker import memory_limited


def test_kept_trials_outlive_a_run_and_are_forgotten_in_time(tmp_path, monkeypatch):
    trials = kept.Kept(tmp_path / "kept")
    assert trials.read("digest", range(9)) == {}
    trials.write("digest", {0: ({"mmd": np.arange(3.0)}, 1.5), 3: ({"reason": ""}, 0.5)})
    again = kept.Kept(tmp_path / "kept")
    curves, seconds = again.read("digest", range(9))[0]
    assert curves["mmd"].tolist() == [0, 1, 2] and seconds == 1.5
    assert again.read("digest", [3, 4]) == {3: ({"reason": ""}, 0.5)}
    assert again.read("digest", [4]) == {}
    (file,) = trials.folder.iterdir()
    whole = file.read_bytes()
    file.write_bytes(whole[:-9])  # cut short
    assert trials.read("digest", range(9)) == {}
    file.write_bytes(whole)
    file.chmod(0o620)
    assert trials.read("digest", range(9)) == {}  # others may have written it
    file.chmod(0o600)
    monkeypatch.setattr(kept, "KEPT_PIECES", 2)
    trials.write("digest", {5: ({"reason": ""}, 0.5)})
    for digest in ("digest", "second", "third"):
        assert set(trials.read("digest", range(9))) == {0, 3, 5}
        trials.delivered(digest, [0, 1, 2, 3])
    assert (
        set(trials.read("digest", range(9)))
        == set(kept.Kept(trials.folder).read("digest", range(9)))
        == {5}
    )


def test_kept_trials_are_read_where_memory_is_limited(tmp_path):
    trials = kept.Kept(tmp_path / "kept")
    trials.write("digest", {0: ({"mmd": np.arange(3.0)}, 1.5)})
    (file,) = trials.folder.iterdir()
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    huge = file.with_name("other-0.npz")
    with zipfile.ZipFile(huge, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data.replace(b"(3,), ", b"(9999999999,), "))
    huge.chmod(0o600)
    with memory_limited(2**32):
        found = kept.Kept(trials.folder)
        assert set(found.read("digest", range(9))) == {0} and found.read("other", range(9)) == {}
