"""What a job of Snakemake says on the terminal."""

import errno
import os
import signal
import time

import pytest

from bqlib.running.client import logged


def test_a_job_that_is_told_to_end_does_so_without_a_word(tmp_path, capsys):
    before = signal.getsignal(signal.SIGTERM)
    with pytest.raises(SystemExit) as ended, logged(tmp_path / "log"):
        os.kill(os.getpid(), signal.SIGTERM)
        time.sleep(5)
    assert ended.value.code == 128 + signal.SIGTERM
    assert signal.getsignal(signal.SIGTERM) == before
    assert capsys.readouterr().err == ""
    with pytest.raises(SystemExit), logged(tmp_path / "log"):
        raise ValueError("wrong")
    assert capsys.readouterr().err == "[bqlib] ValueError: wrong\n"


def test_a_full_disk_is_told_in_one_line(capsys):
    with pytest.raises(SystemExit), logged("/dev/full"):
        print("a line of the log")
        raise OSError(errno.ENOSPC, "No space left on device")
    assert capsys.readouterr().err == "[bqlib] OSError: [Errno 28] No space left on device\n"
