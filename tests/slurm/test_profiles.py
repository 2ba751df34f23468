"""Whole sweeps on Slurm, by each profile; and what is wrong with a site is said at once."""

import encodings.idna  # noqa: F401  (which another user may be unable to load)
import os
import re
import shutil
import signal
import socket
import ssl
import stat
import time
from contextlib import contextmanager, suppress

import psutil
import pytest
from batch_system import SITE, on_this_machine
from checkout import jobs, processes_of
from written_results import fresh_pieces

import bqlib
from bqlib.results.layout import Layout


def use_quick(checkout):
    checkout.sweep = checkout.folder / "config" / "quick.yaml"
    checkout.results = checkout.folder / "results" / "quick"


def check_complete(sweep, slurm, output):
    last = output.splitlines()[-1]
    assert last.startswith(f"[bqlib] results are in results/{sweep.results.name}"), output
    assert sweep.pieces() == fresh_pieces(sweep.sweep, sweep.folder.parent / "fresh")
    assert (bqlib.open_results(sweep.results).status == 1).all()
    assert (sweep.results / "figures" / "mmd.svg").stat().st_size > 0
    assert not Layout(sweep.results).kept.exists()
    sweep.check_nothing_left(slurm)


def test_a_sweep_on_a_cluster_of_jobs(sweep, slurm):
    use_quick(sweep)
    process = sweep.start()
    wait_for_workers(sweep, process)
    check_another_user_is_refused(sweep)
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    assert re.search(r"Dask: \d workers, dashboard http://127\.0\.0\.1:", output)
    check_complete(sweep, slurm, output)


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


def check_another_user_is_refused(sweep):
    """Off loopback nothing takes a client without a certificate, and none can be read."""
    open_ports = {
        connection.laddr
        for connections in examine(sweep, lambda process: process.net_connections("tcp"))
        for connection in connections
        if connection.status == "LISTEN" and not connection.laddr.ip.startswith("127.")
    }
    assert open_ports
    private = Layout(sweep.results).private
    assert stat.S_IMODE(private.stat().st_mode) == 0o700
    for folder in sweep.folder.parents[:3]:  # those of pytest
        folder.chmod(0o755)
    with another_user():
        assert sweep.sweep.read_bytes()
        with pytest.raises(PermissionError):
            (private / "key.pem").read_bytes()
        context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
        context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
        for address in open_ports:
            host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(address.ip, address.ip)
            connection = socket.create_connection((host, address.port))
            with (
                pytest.raises(ssl.SSLError, match="certificate required"),
                context.wrap_socket(connection) as stranger,
            ):
                stranger.recv(1)


@contextmanager
def another_user():
    groups = os.getgroups()
    os.setgroups([]), os.setegid(65534), os.seteuid(65534)
    try:
        yield
    finally:
        os.seteuid(0), os.setegid(0), os.setgroups(groups)


@pytest.fixture
def single_jobs(sweep, slurm):
    """A sweep by profiles/batch, without accounting and on nodes of four processors."""
    assert slurm.owns_default, "a Slurm of this machine's own is in the way"
    sweep.profile = "profiles/batch"
    sweep.edit("profiles/batch/config.yaml", "# slurm-status-command", "slurm-status-command")
    sweep.edit("profiles/batch/config.yaml", "jobs: 100", "jobs: 6\nslurm-no-account: true")
    sweep.edit("profiles/batch/config.yaml", "piece=4", "piece=2")
    sweep.edit("profiles/batch/config.yaml", "study=4", "study=2")
    sweep.edit("profiles/batch/config.yaml", "mem_mb=4000", "mem_mb=1500")
    sweep.edit("profiles/batch/config.yaml", "second: 0.2", "second: 1")
    return sweep


SOON = ("--slurm-init-seconds-before-status-checks", "5")


def test_a_sweep_of_single_jobs(single_jobs, slurm):
    process = single_jobs.start(*SOON)
    while not slurm.running():
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.1)
    slurm.call("scancel", min(slurm.running()))
    output, _ = process.communicate(timeout=600)
    assert process.returncode == 0, output
    assert jobs(output)["piece"] == 4
    check_complete(single_jobs, slurm, output)


def test_an_interrupt_cancels_single_jobs(single_jobs, slurm, tmp_path):
    # While it asks for the states of its jobs, Snakemake knows of none.
    squeue, asked = tmp_path / "bin" / "squeue", tmp_path / "asked"
    squeue.parent.mkdir()
    squeue.write_text(
        f"#!/bin/sh\ntouch '{asked}'\nsleep 3\nexec {shutil.which('squeue')} \"$@\"\n"
    )
    squeue.chmod(0o755)
    single_jobs.set_faults({"*": ["sleep", 100]})
    process = single_jobs.start(*SOON, PATH=f"{squeue.parent}:{os.environ['PATH']}")
    while not (asked.exists() and len(slurm.queue()) == 4):
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.1)
    asked.unlink()
    while not asked.exists():
        time.sleep(0.1)
    os.killpg(process.pid, signal.SIGINT)
    output, _ = process.communicate(timeout=120)
    assert process.returncode == 128 + signal.SIGINT
    _, noise = output.split("[bqlib] interrupted: ending what runs\n")
    said = noise.splitlines()
    assert "jobs are cancelled; Snakemake may take three minutes" in said[0], output
    assert said[1] == "[bqlib] stopped: interrupted", output
    assert "Traceback" not in output
    single_jobs.check_nothing_left(slurm)


def test_single_jobs_of_a_killed_snakemake_are_cancelled_by_the_next_run(single_jobs, slurm):
    single_jobs.set_faults({"*": ["sleep", 100]})
    process = single_jobs.start(*SOON)
    while len(slurm.queue()) < 4:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.1)
    left = set(slurm.queue())
    process.kill()
    process.communicate()
    single_jobs.set_faults({})
    resumed = single_jobs.resume(*SOON)
    assert resumed.returncode == 0, resumed.output
    assert len(single_jobs.pieces()) == 4 and not left & set(slurm.queue())
    single_jobs.check_nothing_left(slurm)


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
    for run in (sweep, other):
        run.set_faults({"*": ["wait", "both refused"]})
    first = sweep.start("--until", "gather")
    while not Layout(sweep.results).journal.exists():
        assert first.poll() is None, first.communicate()[0]
        time.sleep(0.1)
    refused = other.run("--until", "gather")
    assert refused.returncode == 1
    assert "another run works on results/small (process" in refused.output.splitlines()[-1]
    from_the_same_folder = sweep.run("--until", "gather")
    assert from_the_same_folder.returncode == 1
    assert "Directory cannot be locked" in from_the_same_folder.output
    (sweep.sweep.parent / "both refused").touch()
    output, _ = first.communicate(timeout=300)
    assert first.returncode == 0, output
    assert len(sweep.pieces()) == 4


def check_said(sweep, slurm, said, **environment):
    """The run ends by itself, within a minute where the machine has no other work, and says why."""
    start = time.monotonic()
    ran = sweep.run("--until", "gather", **environment)
    seconds = time.monotonic() - start
    assert ran.returncode == 1
    stopped = ran.output.splitlines()[-3]
    assert "[bqlib] stopped: " in stopped and re.search(said, stopped), ran.output
    assert seconds < on_this_machine(60)
    assert not sweep.pieces()
    sweep.check_nothing_left(slurm)


def set_site(sweep, *lines):
    """The site file of these tests, with `lines` in the place of its own with the same key."""
    keys = {line.partition(":")[0] for line in lines}
    kept = [line for line in SITE.strip().splitlines() if line.partition(":")[0] not in keys]
    sweep.site("\n".join([*kept, *lines]))


@pytest.mark.parametrize(
    "lines, said",
    [
        (["queue: nosuch"], "slurm did not take a job: sbatch: error: .*invalid partition"),
        (["directives: ['--nosuch']"], "slurm did not take a job: sbatch: unrecognized option"),
        (["prologue: [exit 7]"], "all jobs ended before their workers had connected"),
        (["interface: nosuch0"], "nosuch0"),
        (["directives: ['--begin=now+1hour']", "wait: 0.2"], "no Dask worker for 0.2 minutes"),
        # Code of another state than the login node's, which has read its own by then.
        (
            ["prologue: [sed -i s/_joined/_together/g bqlib/trial.py]"],
            "the worker on .* runs other code",
        ),
    ],
)
def test_what_is_wrong_with_a_site_is_said(sweep, slurm, lines, said):
    set_site(sweep, *lines)
    check_said(sweep, slurm, said)


@pytest.mark.parametrize("package", ["bqlib", "numpy"])
def test_workers_with_another_version_are_refused(sweep, slurm, tmp_path, package):
    metadata = tmp_path / "other" / f"{package}-9.9.9.dist-info" / "METADATA"
    metadata.parent.mkdir(parents=True)
    metadata.write_text(f"Name: {package}\nVersion: 9.9.9\n")
    set_site(sweep, f"prologue: ['export PYTHONPATH={tmp_path}/other:$PYTHONPATH']")
    check_said(sweep, slurm, f"runs {package} 9.9.9 and not .*: make them equal")


@pytest.mark.parametrize(
    "address, said",
    [
        (None, "the scheduler file scheduler.json does not exist: start the scheduler first"),
        ("tls://127.0.0.1:9", "the scheduler at tls://127.0.0.1:9 asks for a certificate"),
        ("tcp://127.0.0.1:9", "no Dask scheduler answers at tcp://127.0.0.1:9"),
    ],
)
def test_a_missing_or_stale_scheduler_file_is_said(sweep, slurm, address, said):
    if address:
        (sweep.folder / "scheduler.json").write_text(f'{{"address": "{address}"}}')
    check_said(sweep, slurm, said, DASK_SCHEDULER_FILE="scheduler.json")


def test_a_missing_sbatch_is_said(sweep, slurm, tmp_path):
    programs = tmp_path / "programs"
    programs.mkdir()
    for name in ("bash", "sh", "which"):
        (programs / name).symlink_to(shutil.which(name))
    said = "sbatch was not found: run this on a machine that may submit"
    check_said(sweep, slurm, said, PATH=str(programs))
