"""What a sweep costs on the login node, and how its throughput grows with workers.

    python benchmarks/cluster_throughput.py              on a batch system, as profiles/cluster says
    python benchmarks/cluster_throughput.py --own-slurm  on a Slurm that the tests bring up (root)

First 200 cells with one tiny trial each, for the processor time of all that runs on this machine
but the workers. Then trials of about a second with one worker, and twice as many with two: of
herding, which computes nearly all the time, and of SBQ, which reads up to 64 MB at each step.

With a Slurm of its own, where all runs on this machine, the same trials also run in one and in two
processes without any cluster: those of SBQ share the machine's memory, which no cluster can mend.
And as a machine's speed changes within minutes by more than the bound is from one, all four take
turns: while one runs, the processes of the others are stopped. Measure on a machine that does
nothing else.
"""

import argparse
import multiprocessing
import os
import resource
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
import time
from contextlib import suppress
from pathlib import Path

import numpy as np
import psutil

from bqlib.running.jobs import ENVIRONMENT
from bqlib.sweep import file
from bqlib.sweep.spec import Spec

PROJECT = Path(__file__).resolve().parent.parent
SHELF = PROJECT / "config" / "targets"
SWEEP = """
name: {name}
targets: [chen2010_mixture]
kernels:
  eq_density: {{family: exponentiated_quadratic, scale: density}}
lengthscales: {lengthscales}
algorithms: {algorithms}
candidates: {{size: {size}}}
n: {n}
seeds: {seeds}
seeds_per_job: {seeds}
rate_windows: [[5, {n}]]
"""
TINY = {"name": "tiny", "algorithms": "[iid, herding]", "size": 100, "n": 10, "seeds": 1}
SECONDS = (
    {"name": "herding", "algorithms": "[herding]", "size": 150_000, "n": 400, "seeds": 10},
    {"name": "sbq", "algorithms": "[sbq]", "size": 20_000, "n": 400, "seeds": 10},
)
LEAST_EFFICIENCY = 0.85  # of the second worker
CELLS = 12  # for each worker
TURN = 5  # seconds
STARTED, ENDED = "Dask: ", " trials done"  # in lines that runs print, the last of ENDED counts


class Contender:
    """A command that works in a folder of its own, a turn at a time.

    Attributes
    ----------
    started, ended : float or None
        When it had its first worker, and its last trial: seconds of its own turns.
    """

    def __init__(self, folder, *command):
        self.folder, self.command = folder, command
        self.process = self.started = self.ended = None
        self._output = []
        self._spent = 0.0

    def turn(self, seconds=None):
        """Let it run for so many seconds from its first worker on, or to its end; False then."""
        self._begun = time.perf_counter()
        if self.process is None:
            self.process = subprocess.Popen(
                list(map(str, self.command)),
                cwd=self.folder,
                stdout=subprocess.PIPE,
                stderr=subprocess.STDOUT,
                text=True,
            )
            reader = threading.Thread(target=self._read, daemon=True)
            reader.start()
            while seconds and self.started is None and reader.is_alive():
                time.sleep(0.1)
        else:
            self.send(signal.SIGCONT)
        try:
            code = self.process.wait(seconds)
        except subprocess.TimeoutExpired:
            self.send(signal.SIGSTOP)
            self._spent += time.perf_counter() - self._begun
            return True
        if code != 0 or self.ended is None:
            sys.exit("".join(self._output))
        return False

    def _read(self):
        for line in self.process.stdout:
            self._output.append(line)
            now = self._spent + time.perf_counter() - self._begun
            if STARTED in line:
                self.started = now
            if ENDED in line:
                self.ended = now

    def send(self, number):
        """Send a signal to all processes that work in its folder, also those of Slurm's jobs."""
        for process in psutil.process_iter(["cwd"]):
            if process.info["cwd"] == str(self.folder):
                with suppress(psutil.NoSuchProcess):  # it has just ended
                    process.send_signal(number)


def write_sweep(folder, sweep, cells):
    lengthscales = np.linspace(0.5, 0.6, cells).round(6).tolist()
    path = folder / "sweep.yaml"
    path.write_text(SWEEP.format(lengthscales=lengthscales, **sweep))
    return path


def on_cluster(folder, workers, sweep, cells):
    """The pieces of a sweep, by Snakemake and so many workers."""
    folder.mkdir()
    site = PROJECT / "profiles" / "cluster" / "site.yaml"
    lines = [line for line in site.read_text().splitlines() if not line.startswith("workers:")]
    (folder / "site.yaml").write_text("\n".join([*lines, f"workers: {workers}"]))
    command = [sys.executable, "-m", "snakemake", "--profile", PROJECT / "profiles" / "cluster"]
    command += ["--snakefile", PROJECT / "Snakefile", "--until", "gather"]
    command += ["--configfile", write_sweep(folder, sweep, cells)]
    command += ["--config", f"site={folder}/site.yaml"]
    return Contender(folder, *command)


def without_cluster(folder, processes, sweep, cells):
    """The same trials, by so many processes."""
    folder.mkdir()
    path = write_sweep(folder, sweep, cells)
    return Contender(folder, sys.executable, __file__, "--bare", processes, path)


def run_bare(processes, path):
    """Run all trials of a sweep in so many processes, and say so as a run does."""
    os.environ.update({name: str(value) for name, value in ENVIRONMENT.items()})
    sweep = file.load(path, SHELF)
    trials = [(sweep.spec(cell), seed) for cell in sweep.cells() for seed in range(sweep.seeds)]
    spawn = multiprocessing.get_context("spawn")
    ready = spawn.Barrier(processes + 1)
    with spawn.Pool(processes, _make_ready, (ready, trials[0])) as pool:
        ready.wait()
        print(STARTED, processes, flush=True)
        pool.starmap(Spec.run, trials, chunksize=1)
        print(len(trials), ENDED, flush=True)


def _make_ready(ready, first):
    Spec.run(*first)
    ready.wait()


def measure_cost(folder):
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    tiny = on_cluster(folder / "tiny", 2, TINY, 100)
    tiny.turn()
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = sum(getattr(after, k) - getattr(before, k) for k in ("ru_utime", "ru_stime"))
    print(
        f"200 cells of one tiny trial: {processor / 200:.3f} CPU-s a cell on the login node, "
        f"{200 / (tiny.ended - tiny.started):.1f} cells a second",
        flush=True,
    )


def measure_efficiency(folder, sweep, on_this_machine):
    name, trials = sweep["name"], CELLS * sweep["seeds"]  # trials for each worker
    kinds = {"cluster": on_cluster}
    if on_this_machine:
        kinds["no cluster"] = without_cluster
    contenders = {
        (kind, workers): kinds[kind](
            folder / f"{name}-{kind}-{workers}", workers, sweep, workers * CELLS
        )
        for kind in kinds
        for workers in (1, 2)
    }
    left = list(contenders.values())
    try:
        while left:
            left = [one for one in left if one.turn(TURN if on_this_machine else None)]
    finally:
        for one in left:
            one.send(signal.SIGKILL)
    for kind in kinds:
        one, two = (contenders[kind, workers] for workers in (1, 2))
        seconds_one, seconds_two = one.ended - one.started, two.ended - two.started
        bound = f", at least {LEAST_EFFICIENCY}" if kind == "cluster" else ""
        print(
            f"{name}, {kind}: {trials / seconds_one:.3f} trials a second with 1 worker, "
            f"{2 * trials / seconds_two:.3f} with 2, efficiency {seconds_one / seconds_two:.3f}"
            + bound,
            flush=True,
        )


def measure(folder, on_this_machine):
    measure_cost(folder)
    for sweep in SECONDS:
        measure_efficiency(folder, sweep, on_this_machine)


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--own-slurm", action="store_true")
    parser.add_argument("--bare", nargs=2, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.bare:
        return run_bare(int(arguments.bare[0]), Path(arguments.bare[1]))
    # Not in /tmp, which other nodes do not see.
    with tempfile.TemporaryDirectory(dir=PROJECT, prefix=".benchmark-") as folder:
        folder = Path(folder)
        if not arguments.own_slurm:
            return measure(folder, on_this_machine=False)
        sys.path.insert(0, str(PROJECT / "tests" / "helpers"))
        from batch_system import Slurm

        os.environ["TMPDIR"] = "/tmp"
        slurm = Slurm(Path(tempfile.mkdtemp(prefix="slurm-")))
        try:
            slurm.up()
            measure(folder, on_this_machine=True)
        finally:
            slurm.down()
            shutil.rmtree(slurm.folder)


if __name__ == "__main__":
    main()
