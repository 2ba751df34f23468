"""Sweeps on Slurm through all that can go wrong: same results, nothing lost, nothing left over."""

import os
import re
import shutil
import signal
import subprocess
import time
from pathlib import Path

import pytest
from batch_system import SITE, on_this_machine
from checkout import Checkout, jobs, processes_of
from written_results import fresh_pieces

from bqlib.results.layout import Layout

SECONDS = 120  # within which a run ends by itself after a fault
SLOWLY = {"*": ["sleep", 1]}  # enough to be hit


def larger(sweep, faults):
    sweep.set_faults(faults)
    sweep.edit("config/small.yaml", "seeds: 2", "seeds: 12")
    sweep.edit("config/small.yaml", "seeds_per_job: 1", "seeds_per_job: 2")
    return sweep


@pytest.fixture(scope="module")
def expected(tmp_path_factory):
    """The pieces of the same sweep, computed here."""
    checkout = larger(Checkout(tmp_path_factory.mktemp("local") / "checkout"), {})
    return fresh_pieces(checkout.sweep, tmp_path_factory.mktemp("fresh"))


@pytest.fixture
def running(sweep):
    """A sweep that runs on three nodes and has finished some of its twelve pieces."""
    larger(sweep, SLOWLY)
    sweep.process = sweep.start("--until", "gather")
    wait(lambda: len(sweep.pieces()) >= 2, sweep.process)
    sweep.kept = set(sweep.pieces())
    assert len(sweep.kept) < 10
    return sweep


def wait(ready, process):
    end = time.monotonic() + on_this_machine(SECONDS)
    while not ready():
        assert process.poll() is None, process.communicate()[0]
        assert time.monotonic() < end
        time.sleep(0.1)


def busy_workers(sweep):
    """Processes of workers that are in a trial."""
    begun = set(sweep.attempts("start")) - set(sweep.attempts("end"))
    return {int(process) for *_, process in begun}


def check_end(sweep, expected, slurm, resumed=None):
    """The run is complete, by itself or as `resumed`, and did nothing in vain."""
    if resumed is None:
        output, _ = sweep.process.communicate(timeout=on_this_machine(SECONDS))
        assert sweep.process.returncode == 0, output
    else:
        assert resumed.returncode == 0, resumed.output
    assert sweep.pieces() == expected
    ended = [(rule, seed) for rule, seed, *_ in sweep.attempts("end")]
    for piece in sweep.kept:
        rule, first, last = re.search(r"faulty_(\w+)/seeds-(\d+)-(\d+)", piece).groups()
        assert ended.count((rule, first)) == ended.count((rule, last)) == 1
    # Of three workers, those that a fault reaches may be at the end of a trial.
    assert len(set(ended)) == 24 and len(ended) <= (25 if resumed is None else 27)
    sweep.check_nothing_left(slurm)


def submitted(sweep):
    """Numbers of the jobs in the journal of a run."""
    return re.findall(r"^slurm (\d+)$", Layout(sweep.results).journal.read_text(), re.M)


def test_a_cancelled_job_is_replaced(running, expected, slurm):
    assert len(submitted(running)) == 3
    slurm.call("scancel", min(slurm.running()))
    wait(lambda: len(submitted(running)) > 3, running.process)
    check_end(running, expected, slurm)
    assert not Layout(running.results).journal.exists()


def test_a_killed_worker_comes_back(running, expected, slurm):
    os.kill(min(busy_workers(running)), signal.SIGKILL)
    check_end(running, expected, slurm)


def test_a_preempted_job_comes_back(sweep, expected, slurm):
    sweep.site(SITE + "queue: low")
    larger(sweep, SLOWLY)
    sweep.process = sweep.start("--until", "gather")
    wait(lambda: len(sweep.pieces()) >= 2, sweep.process)
    sweep.kept = set(sweep.pieces())
    number, node = min(slurm.running().items())
    more_urgent = ["--partition=high", f"--nodelist={node}", "--cpus-per-task=4", "--mem=100"]
    slurm.call("sbatch", *more_urgent, "--output=/dev/null", "--wrap=sleep 20")
    wait(lambda: number not in slurm.running(), sweep.process)
    check_end(sweep, expected, slurm)


def test_a_node_whose_daemon_stops(running, expected, slurm):
    node = min(slurm.running().values())
    slurm.kill(node)
    check_end_without_node(running, expected, slurm)


def check_end_without_node(running, expected, slurm):
    output, _ = running.process.communicate(timeout=on_this_machine(SECONDS))
    assert running.process.returncode == 0, output
    slurm.up()
    running.process.communicate = lambda timeout: (output, None)
    check_end(running, expected, slurm)


def test_a_full_scratch_disk(sweep, expected, slurm, tmp_path):
    scratch = tmp_path / "scratch"
    scratch.mkdir()
    mount = ["mount", "-t", "tmpfs", "-o", "size=1m", "tmpfs", str(scratch)]
    subprocess.run(mount, check=True)
    try:
        sweep.site(SITE + f"scratch: {scratch}")
        larger(sweep, SLOWLY)
        sweep.process = sweep.start("--until", "gather")
        wait(lambda: len(sweep.pieces()) >= 2, sweep.process)
        sweep.kept = set(sweep.pieces())
        with pytest.raises(OSError, match="No space"), open(scratch / "full", "wb") as full:
            while True:
                full.write(bytes(2**16))
        os.kill(min(busy_workers(sweep)), signal.SIGKILL)
        check_end(sweep, expected, slurm)
    finally:
        subprocess.run(["umount", "--lazy", str(scratch)], check=True)


def run_process(sweep):
    for pid in processes_of(sweep.folder):
        if b"bqlib.running.server" in Path(f"/proc/{pid}/cmdline").read_bytes():
            return pid
    raise AssertionError("no process of the run")


def test_a_killed_scheduler_ends_the_run_and_the_same_command_goes_on(running, expected, slurm):
    os.kill(run_process(running), signal.SIGKILL)
    output, _ = running.process.communicate(timeout=on_this_machine(SECONDS))
    assert running.process.returncode == 1
    stopped, log, advice = output.splitlines()[-3:]
    assert "stopped: the run's process was killed (signal 9)" in stopped, output
    assert "Snakemake's log is .snakemake/log/" in log and "the same command again" in advice
    running.check_nothing_left(slurm)
    check_end(running, expected, slurm, resumed=running.run("--until", "gather"))


def test_a_killed_snakemake_leaves_nothing_and_can_be_resumed(running, expected, slurm):
    running.process.kill()
    running.process.communicate()
    running.check_nothing_left(slurm)
    check_end(running, expected, slurm, resumed=running.resume("--until", "gather"))


SLOW_SBATCH = """#!/bin/sh
# Submits, and does not return.
{sbatch} "$@"
exec sleep 30
"""


def test_jobs_that_were_being_submitted_as_all_was_killed_are_cancelled(
    sweep, expected, slurm, tmp_path
):
    larger(sweep, SLOWLY)
    folder = tmp_path / "bin"
    folder.mkdir()
    (folder / "sbatch").write_text(SLOW_SBATCH.format(sbatch=shutil.which("sbatch")))
    (folder / "sbatch").chmod(0o755)
    process = sweep.start("--until", "gather", PATH=f"{folder}:{os.environ['PATH']}")
    wait(slurm.queue, process)
    assert submitted(sweep) == []  # nobody knows their numbers
    left = set(slurm.queue())
    os.kill(run_process(sweep), signal.SIGKILL)
    process.kill()
    process.communicate()
    resumed = sweep.resume("--until", "gather")
    assert resumed.returncode == 0, resumed.output
    assert sweep.pieces() == expected
    assert not left & set(slurm.queue())
    sweep.check_nothing_left(slurm)


def test_an_interrupt_is_told_as_one_and_the_same_command_goes_on(running, expected, slurm):
    os.killpg(running.process.pid, signal.SIGINT)  # as Ctrl-C does
    output, _ = running.process.communicate(timeout=on_this_machine(SECONDS))
    assert running.process.returncode == 128 + signal.SIGINT
    said = [
        line
        for line in output.split("[bqlib] interrupted: ending what runs\n")[1].splitlines()
        if line
    ]
    assert said[-2] == "[bqlib] stopped: interrupted", output
    assert said[-1].endswith("to go on, give the same command again"), output
    assert all("trials done" in line for line in said[:-2]), output
    assert "Traceback" not in output and "Error" not in output
    running.check_nothing_left(slurm)
    check_end(running, expected, slurm, resumed=running.run("--until", "gather"))


def test_trials_that_kill_their_worker_fail_and_the_rest_completes(sweep, slurm):
    sweep.set_faults({"iid 1 *": ["die"], "herding 1 *": ["allocate", 80]})
    ran = sweep.run("--until", "gather")
    assert ran.returncode == 3, ran.output
    last = ran.output.splitlines()[-4:]
    assert re.search("results are in results/small", last[0]), ran.output
    assert "2 of 4 trials failed" in last[1] and "bqlib retry results/small" in last[3]
    failed = {
        path.parent.name: re.search('"1": "(.*)"', path.read_text())[1]
        for path in (sweep.results / "timings").rglob("seeds-1-1.json")
    }
    assert failed["faulty_herding"].startswith("out of memory: Unable to allocate")
    assert failed["faulty_iid"].startswith("the worker died in each of 4 runs")
    sweep.check_nothing_left(slurm)
    # Once the cause is removed, only what failed is computed again, and only when asked.
    sweep.set_faults({})
    assert "piece" not in jobs(sweep.run("-n", "--until", "gather").output)
    command = [ran.args[0], "-m", "bqlib", "retry", "results/small"]
    subprocess.run(command, cwd=sweep.folder, check=True)
    again = sweep.run("--until", "gather")
    assert again.returncode == 0 and jobs(again.output)["piece"] == 2, again.output
