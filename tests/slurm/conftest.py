"""One Slurm for all tests of this folder; without it they are skipped, and say so.

Where the environment variable NEEDS_SLURM is set, they fail instead.
"""

import os
import signal
import time
from contextlib import suppress

import batch_system
import pytest
from checkout import Checkout, processes_of

from bqlib.results.layout import Layout


class Sweep(Checkout):
    """A checkout whose sweep runs on Slurm."""

    profile = "cluster"

    def __init__(self, folder):
        super().__init__(folder)
        self.site(batch_system.SITE)

    def site(self, text):
        (self.folder / "profiles" / "cluster" / "site.yaml").write_text(text)

    def check_nothing_left(self, slurm):
        """All jobs and processes end, within seconds, and the certificates are gone."""
        end = time.monotonic() + 30
        while slurm.queue() or processes_of(self.folder):
            assert time.monotonic() < end, slurm.queue()
            time.sleep(0.1)
        assert not Layout(self.results).private.exists()


@pytest.fixture(scope="session")
def slurm(tmp_path_factory):
    why = batch_system.missing()
    if why:
        (pytest.fail if "NEEDS_SLURM" in os.environ else pytest.skip)(why)
    slurm = batch_system.Slurm(tmp_path_factory.mktemp("slurm"))
    try:
        slurm.up()
        yield slurm
    finally:
        slurm.down()


@pytest.fixture
def sweep(slurm, tmp_path):
    slurm.up()
    sweep = Sweep(tmp_path / "a checkout")
    yield sweep
    # What a test that failed has left.
    slurm.call("scancel", "--user=0")
    for pid in processes_of(sweep.folder):
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
