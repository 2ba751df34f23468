"""Runs whose processes are killed or stopped: what is left, and that the next run completes them.

More kills: python tests/helpers/kills.py --kills 60
"""

import os
import signal
import time

import pytest
from checkout import Checkout
from kills import kill_once, roles, undisturbed


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    """Digests of the results of a run that was left in peace."""
    return undisturbed(tmp_path_factory.mktemp("undisturbed"))


# Snakemake as it waits for pieces, and the run's process.
@pytest.mark.parametrize("seed", [3, 18])
def test_a_killed_run_ends_and_the_next_completes_it_and_leaves_nothing(tmp_path, seed, whole):
    kill = kill_once(tmp_path, seed, whole)
    assert not kill.faults, kill


def test_a_run_goes_on_after_a_pause_of_its_process(tmp_path):
    checkout = Checkout(tmp_path / "a checkout")
    run = checkout.start("--until", "piece")
    while not roles(checkout.folder).get("worker"):  # which soon tries to connect
        assert run.poll() is None
        time.sleep(0.02)
    [server] = roles(checkout.folder)["server"]
    os.kill(server, signal.SIGSTOP)
    time.sleep(60)
    os.kill(server, signal.SIGCONT)
    output, _ = run.communicate(timeout=240)
    assert run.returncode == 0, output
