"""How sites run sweeps: here, the run itself inside a batch job."""

import os
import subprocess
import sys
import time

import bqlib


def submit(sweep, command):
    """Submit a command of bqlib as a job of one CPU, by the options of the page; its number."""
    options = ["--parsable", "--cpus-per-task=1", "--mem=1500", "--output=driver.out"]
    wrapped = f'"{sys.executable}" -m bqlib {command} config/small.yaml --profile cluster'
    found = subprocess.run(
        ["sbatch", *options, "--wrap", wrapped],
        cwd=sweep.folder,
        env={**os.environ, "PYTHONPATH": str(sweep.folder)},
        capture_output=True,
        text=True,
        check=True,
    )
    return found.stdout.strip()


def printed(sweep):
    return (sweep.folder / "driver.out").read_text()


def test_a_run_inside_a_batch_job_is_cancelled_and_resumed(sweep, slurm):
    sweep.set_faults({"*": ["sleep", 100]})
    driver = submit(sweep, "run")
    while len(slurm.running()) < 2:  # itself and a worker
        assert driver in slurm.queue(), printed(sweep)
        time.sleep(0.2)
    time.sleep(5)  # the worker connects
    slurm.call("scancel", driver)
    sweep.check_nothing_left(slurm)
    assert "[bqlib] told to end by SIGTERM: ending what runs" in printed(sweep)
    sweep.set_faults({})
    driver = submit(sweep, "resume")
    while driver in slurm.queue():
        time.sleep(0.2)
    assert "[bqlib] results are in results/small; read report.html first" in printed(sweep)
    assert (bqlib.open_results(sweep.results).status == 1).all()
    sweep.check_nothing_left(slurm)
