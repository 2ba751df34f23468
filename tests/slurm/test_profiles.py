"""Whole sweeps on Slurm, by each profile."""

import os
import re
import socket
import ssl
import subprocess
import sys
import time
from contextlib import suppress
from importlib.util import find_spec

import psutil
import pytest
from checkout import Checkout, jobs, processes_of

import bqlib


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The pieces of config/quick.yaml on this machine."""
    checkout = Checkout(tmp_path_factory.mktemp("local") / "a checkout")
    use_quick(checkout)
    ran = checkout.run("--until", "piece")
    assert ran.returncode == 0, ran.output
    return checkout.pieces()


def use_quick(checkout):
    checkout.sweep = checkout.folder / "config" / "quick.yaml"
    checkout.results = checkout.folder / "results" / "quick"


def test_a_sweep_on_a_cluster_of_jobs(sweep, expected, slurm):
    use_quick(sweep)
    process = sweep.start()
    wait_for_workers(sweep, process)
    check_what_listens(sweep)
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    assert output.splitlines()[-3].endswith("[bqlib] results are in results/quick"), output
    assert "Dask: 3 workers, dashboard http://127.0.0.1:" in output or "Dask: 1 workers" in output
    assert sweep.pieces() == expected
    assert (bqlib.open_results(sweep.results).status == 1).all()
    assert (sweep.results / "figures" / "mmd.svg").stat().st_size > 0
    assert not slurm.queue() and not processes_of(sweep.folder)
    assert not (sweep.results / ".private").exists() and not (sweep.results / ".trials").exists()


def wait_for_workers(sweep, process):
    while True:
        commands = examine(sweep, psutil.Process.cmdline)
        if any("distributed.cli.dask_worker" in command for command in commands):
            return time.sleep(5)
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.2)


def examine(sweep, look):
    """`look(process)` of each process of a sweep."""
    found = []
    for pid in processes_of(sweep.folder):
        with suppress(psutil.NoSuchProcess):
            found.append(look(psutil.Process(pid)))
    return found


def check_what_listens(sweep):
    """Off loopback there is nothing that takes a client without a certificate."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    open_ports = {
        connection.laddr
        for connections in examine(sweep, lambda process: process.net_connections("tcp"))
        for connection in connections
        if connection.status == "LISTEN" and not connection.laddr.ip.startswith("127.")
    }
    assert open_ports
    for address in open_ports:
        host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address.ip, address.ip)
        connection = socket.create_connection((host, address.port))
        with (
            pytest.raises(ssl.SSLError, match="certificate required"),
            context.wrap_socket(connection) as stranger,
        ):
            stranger.recv(1)


@pytest.mark.skipif(
    find_spec("snakemake_executor_plugin_slurm") is None, reason="needs pip install bqlib[batch]"
)
def test_a_sweep_of_single_jobs(sweep, expected, slurm):
    assert slurm.owns_default, "a Slurm of this machine's own is in the way"
    use_quick(sweep)
    sweep.profile = "profiles/batch"
    # Without accounting, and on nodes of four processors.
    sweep.edit("profiles/batch/config.yaml", "# slurm-status-command", "slurm-status-command")
    sweep.edit("profiles/batch/config.yaml", "jobs: 100", "jobs: 6\nslurm-no-account: true")
    sweep.edit("profiles/batch/config.yaml", "piece=4", "piece=2")
    sweep.edit("profiles/batch/config.yaml", "mem_mb=4000", "mem_mb=1500")
    sweep.edit("profiles/batch/config.yaml", "second: 0.2", "second: 1")
    ran = sweep.run("--until", "gather", "--slurm-init-seconds-before-status-checks", "5")
    assert ran.returncode == 0, ran.output
    assert jobs(ran.output)["piece"] == 16
    assert sweep.pieces() == expected
    assert not processes_of(sweep.folder)


def test_two_runs_in_two_folders_work_side_by_side(sweep, slurm, tmp_path):
    other = type(sweep)(tmp_path / "another checkout")
    processes = [run.start("--until", "gather") for run in (sweep, other)]
    outputs = [process.communicate(timeout=600)[0] for process in processes]
    assert [process.returncode for process in processes] == [0, 0], outputs
    assert sweep.pieces() == other.pieces() and len(sweep.pieces()) == 4


def test_a_second_run_on_the_same_results_is_refused(sweep, slurm, tmp_path):
    other = type(sweep)(tmp_path / "another checkout")
    (sweep.folder / "results").mkdir()
    (other.folder / "results").symlink_to(sweep.folder / "results")
    sweep.edit("bqlib/trial.py", "target, kernel = spec.build()", SLOWLY)
    first = sweep.start("--until", "gather")
    while not (sweep.results / ".jobs").exists():
        assert first.poll() is None, first.communicate()[0]
        time.sleep(0.1)
    refused = other.run("--until", "gather")
    assert refused.returncode == 1
    assert "another run works on results/small (process" in refused.output.splitlines()[-1]
    output, _ = first.communicate(timeout=300)
    assert first.returncode == 0, output
    assert len(sweep.pieces()) == 4


SLOWLY = "time.sleep(5)\n    target, kernel = spec.build()"


@pytest.mark.parametrize(
    "change, said",
    [
        ("queue: nosuch", "slurm did not take a job: sbatch: error: .*invalid partition"),
        ("account: '--nosuch'", "slurm did not take a job"),
        ("prologue: [exit 7]", "all jobs ended before their workers had connected"),
        ("interface: nosuch0", "interface nosuch0|nosuch0"),
        ("directives: ['--begin=now+1hour']\nwait: 0.2", r"no Dask worker for 0.2 minutes"),
    ],
)
def test_what_is_wrong_with_the_site_is_said_within_a_minute(sweep, slurm, change, said):
    base = [line for line in SITE_LINES if line.split(":")[0] not in change]
    sweep.site("\n".join([*base, change]))
    start = time.monotonic()
    ran = sweep.run("--until", "gather")
    seconds = time.monotonic() - start
    assert ran.returncode == 1
    stopped = ran.output.splitlines()[-2]
    assert "[bqlib] stopped: " in stopped and re.search(said, stopped), ran.output
    assert seconds < 60 * max(1, os.getloadavg()[0] / os.cpu_count())
    assert not slurm.queue() and not processes_of(sweep.folder)


SITE_LINES = ["system: slurm", "workers: 3", "memory: 1GiB"]


def test_workers_with_another_numpy_are_refused(sweep, slurm, tmp_path):
    other = tmp_path / "other" / "numpy-9.9.9.dist-info"
    other.mkdir(parents=True)
    (other / "METADATA").write_text("Name: numpy\nVersion: 9.9.9\n")
    line = f"export PYTHONPATH={other.parent}:$PYTHONPATH"
    sweep.site("\n".join([*SITE_LINES, f"prologue: ['{line}']"]))
    ran = sweep.run("--until", "gather")
    assert ran.returncode == 1
    assert "runs numpy 9.9.9 and not " in ran.output.splitlines()[-2], ran.output
    assert not slurm.queue() and not sweep.pieces()


def test_a_missing_scheduler_file_is_said(sweep):
    ran = sweep.run("--until", "gather", DASK_SCHEDULER_FILE="nowhere.json")
    assert ran.returncode == 1
    stopped = "stopped: the scheduler file nowhere.json does not exist: start the scheduler first"
    assert stopped in ran.output.splitlines()[-2], ran.output


def test_a_missing_sbatch_is_said(sweep, tmp_path):
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("bash", "sh", "python", "git"):
        found = subprocess.run(["which", name], capture_output=True, text=True).stdout.strip()
        (programs / name).symlink_to(sys.executable if name == "python" else found)
    ran = sweep.run("--until", "gather", PATH=str(programs))
    assert ran.returncode == 1
    assert "sbatch was not found: run this on a machine that may submit" in ran.output
