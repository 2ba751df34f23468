"""What a sweep of many cells costs Snakemake and the run's process: seconds and memory.

    python benchmarks/large_sweep.py               10,000 cells of 20 seeds, in half an hour
    python benchmarks/large_sweep.py 1000          so many cells
    python benchmarks/large_sweep.py 1000 2        interrupted twice, and resumed

Trials take milliseconds, so that nearly all is the price of cells. Prices must not grow with the
number of cells: compare two runs.
"""

import json
import signal
import subprocess
import sys
import tempfile
import threading
import time
from pathlib import Path

import numpy as np
import psutil

PROJECT = Path(__file__).resolve().parent.parent
SEEDS = 20
SWEEP = f"""
name: large
targets: [chen2010_mixture]
kernels:
  eq_density: {{family: exponentiated_quadratic, scale: density}}
lengthscales: LENGTHSCALES
algorithms: [iid, herding]
candidates: {{size: 100}}
n: 16
seeds: {SEEDS}
seeds_per_job: {SEEDS}
rate_windows: [[4, 16]]
"""
# A word of the command line to what the process is.
PROCESSES = {"snakemake": "Snakemake", "bqlib.running.server": "the run's process"}


def watch(peaks, seconds, ended):
    """Peak memory in MB, and processor seconds so far, of this run's two long-lived processes."""
    me = psutil.Process()
    while not ended.wait(1):
        for process in me.children(recursive=True):
            try:
                command, memory = process.cmdline(), process.memory_info().rss / 1e6
                times = process.cpu_times()
            except psutil.Error:
                continue
            for word, name in PROCESSES.items():
                if word in command[:4]:
                    peaks[name] = max(peaks.get(name, 0), memory)
                    seconds[name] = times.user + times.system


def run(folder, sweep, *more, until=None):
    """Wall seconds, and peaks and processor seconds by process, of one call of Snakemake.

    With `until`, it is interrupted once so many cells are done.
    """
    command = [sys.executable, "-m", "snakemake", "--profile", "profiles/local"]
    command += ["--snakefile", PROJECT / "Snakefile", "--directory", folder]
    command += ["--configfile", sweep, "--until", "gather", *more]
    peaks, seconds, ended = {}, {}, threading.Event()
    watcher = threading.Thread(target=watch, args=(peaks, seconds, ended))
    watcher.start()
    start = time.perf_counter()
    pipes = {"stdout": subprocess.PIPE, "stderr": subprocess.STDOUT, "text": True}
    with subprocess.Popen(command, cwd=PROJECT, process_group=0, **pipes) as ran:
        interrupter = threading.Thread(target=interrupt, args=(ran, folder, until))
        if until is not None:
            interrupter.start()
        said = ran.stdout.read()
    wall = time.perf_counter() - start
    ended.set()
    watcher.join()
    if ran.returncode != (0 if until is None else 128 + signal.SIGINT):
        sys.exit(said)
    return wall, peaks, seconds


def interrupt(process, folder, until):
    """Interrupt a run once so many cells are done."""
    status = Path(folder, "results/large/.status.json")
    while process.poll() is None:
        time.sleep(1)
        if status.exists() and json.loads(status.read_text())["cells_done"] >= until:
            return process.send_signal(signal.SIGINT)


def main():
    cells = int(sys.argv[1]) if len(sys.argv) > 1 else 10_000
    interrupts = int(sys.argv[2]) if len(sys.argv) > 2 else 0
    with tempfile.TemporaryDirectory() as folder:
        sweep = Path(folder, "sweep.yaml")
        lengthscales = np.geomspace(0.3, 0.7, cells // 2).round(7).tolist()
        sweep.write_text(SWEEP.replace("LENGTHSCALES", json.dumps(lengthscales)))
        wall, peaks, _ = run(folder, sweep, "--dry-run", "--quiet", "all")
        print(f"{cells} cells: planned in {wall:.0f} s, {peaks['Snakemake']:.0f} MB")
        before = psutil.Process().cpu_times()
        lost = 0.0
        for i in range(interrupts):
            wall, *_ = run(folder, sweep, until=cells * (i + 1) / (interrupts + 1))
            print(f"interrupted after {wall:.0f} s")
            lost += wall
        wall, peaks, seconds = run(folder, sweep)
        wall += lost
        after = psutil.Process().cpu_times()
        processor = sum(
            getattr(after, k) - getattr(before, k) for k in ("children_user", "children_system")
        )
        print(f"run and gathered in {wall:.0f} s: {cells / wall:.1f} cells a second")
        for name, memory in peaks.items():
            cost = "" if interrupts else f"{1e3 * seconds[name] / cells:.0f} ms a cell, "
            print(f"{name}: {cost}at most {memory:.0f} MB")
        print(f"all processes with their trials: {1e3 * processor / cells:.0f} ms a cell")
        gathered = (Path(folder) / "results/large/benchmarks/gather.tsv").read_text().splitlines()
        gather = dict(zip(*(line.split("\t") for line in gathered), strict=True))
        print(f"gathering: {gather['s']} s, {gather['max_rss']} MB")


if __name__ == "__main__":
    main()
