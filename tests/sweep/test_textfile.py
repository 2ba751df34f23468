import os

import pytest

from bqlib.sweep.file import load
from bqlib.sweep.targets import MOST_BYTES as MOST_OF_TARGETS
from bqlib.sweep.targets import read_target
from bqlib.sweep.textfile import read_text
from bqlib.sweep.words import SweepError
from bqlib.sweep.yamlfile import MOST_BYTES as MOST_OF_SWEEPS


def test_a_text_is_read_without_its_byte_order_mark(tmp_path):
    file = tmp_path / "file"
    file.write_bytes("\ufeffSchrödinger".encode())
    assert read_text(file, 20) == "Schrödinger"


def test_what_is_too_large_or_no_file_is_refused_at_once(tmp_path):
    file, pipe = tmp_path / "file", tmp_path / "pipe"
    file.write_bytes(b"x" * 11)
    assert read_text(file, 11) == "x" * 11
    with pytest.raises(OSError, match="has more than"):
        read_text(file, 10)
    os.mkfifo(pipe)
    for path in (pipe, tmp_path):
        with pytest.raises(OSError, match=r"not a regular file|Is a directory"):
            read_text(path, 10)


def test_sweeps_and_targets_have_a_limit_of_bytes(tmp_path):
    sweep, target = tmp_path / "sweep.yaml", tmp_path / "target.json"
    for file, most in ((sweep, MOST_OF_SWEEPS), (target, MOST_OF_TARGETS)):
        file.write_bytes(b"x")
        os.truncate(file, 10 * most)
    with pytest.raises(SweepError, match="has more than 1 MiB"):
        load(sweep)
    with pytest.raises(SweepError, match="has more than 16 MiB"):
        read_target(target)


def test_many_keys_of_a_target_take_no_time(tmp_path):
    target = tmp_path / "target.json"
    target.write_text("{" + ", ".join(f'"k{i}": 0' for i in range(200_000)) + ', "k7": 1}')
    with pytest.raises(SweepError, match='key "k7" is given twice'):
        read_target(target)
