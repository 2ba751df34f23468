"""Finished trials whose pieces are not finished."""

import zipfile

import numpy as np

from bqlib.running import kept
from bqlib.running.worker import memory_limited


def test_kept_trials_outlive_a_run_and_are_forgotten_in_time(tmp_path, monkeypatch):
    trials = kept.Kept(tmp_path / "kept")
    assert trials.read("digest", 0) is None
    trials.write("digest", 0, ({"mmd": np.arange(3.0)}, 1.5))
    curves, seconds = kept.Kept(tmp_path / "kept").read("digest", 0)
    assert curves["mmd"].tolist() == [0, 1, 2] and seconds == 1.5
    (file,) = trials.folder.iterdir()
    file.with_name(file.name.replace("-0", "-1")).write_bytes(file.read_bytes()[:-9])  # cut short
    assert trials.read("digest", 1) is None
    file.chmod(0o620)
    assert trials.read("digest", 0) is None  # others may have written it
    file.chmod(0o600)
    monkeypatch.setattr(kept, "KEPT_PIECES", 2)
    for digest in ("digest", "second", "third"):
        assert trials.read("digest", 0) is not None
        trials.delivered(digest, [0, 1])
    assert trials.read("digest", 0) is None


def test_kept_trials_are_read_where_memory_is_limited(tmp_path):
    trials = kept.Kept(tmp_path / "kept")
    trials.write("digest", 0, ({"mmd": np.arange(3.0)}, 1.5))
    (file,) = trials.folder.iterdir()
    with zipfile.ZipFile(file) as archive:
        parts = {name: archive.read(name) for name in archive.namelist()}
    huge = file.with_name(file.name.replace("-0", "-1"))
    with zipfile.ZipFile(huge, "w") as archive:
        for name, data in parts.items():
            archive.writestr(name, data.replace(b"(3,), ", b"(9999999999,), "))
    huge.chmod(0o600)
    with memory_limited(2**32):
        assert trials.read("digest", 0) is not None
        assert trials.read("digest", 1) is None
