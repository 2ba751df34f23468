"""What a sweep costs on the login node, and how its throughput grows with workers.

    python benchmarks/cluster_throughput.py              on a batch system, as profiles/cluster says
    python benchmarks/cluster_throughput.py --own-slurm  on a Slurm that the tests bring up (root)

Two sweeps run in a temporary folder beside the results: 200 cells with one tiny trial each, for
the processor time of all that runs on this machine but the workers; and trials of about a second,
with one worker and with two in turn. Two workers on one machine share its memory, which no cluster
software can mend: so the same trials also run in one and in two processes of their own, with no
cluster. Measure on a machine that does nothing else.
"""

import argparse
import multiprocessing
import os
import resource
import shutil
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from pathlib import Path

import numpy as np

from bqlib import experiment, trial
from bqlib.cluster import ENVIRONMENT

PROJECT = Path(__file__).resolve().parent.parent
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
seeds_per_job: {seeds_per_job}
rate_windows: [[5, {n}]]
"""
TINY = {"name": "tiny", "algorithms": "[iid, herding]", "size": 100, "n": 10, "seeds": 1}
ROUNDS = 5  # as a machine's speed changes by more than the bound is from one
CELLS = 12
SECONDS = {"name": "seconds", "algorithms": "[sbq]", "size": 20_000, "n": 400, "seeds": 10}


def run(folder, workers, sweep, cells):
    """Run a sweep's pieces: wall and processor seconds of this machine's processes but workers.

    The wall time is that from the first worker to the end of the last trial.
    """
    lengthscales = np.linspace(0.5, 0.6, cells).round(6).tolist()
    path = folder / "sweep.yaml"
    path.write_text(SWEEP.format(lengthscales=lengthscales, seeds_per_job=sweep["seeds"], **sweep))
    site = PROJECT / "profiles" / "cluster" / "site.yaml"
    lines = [line for line in site.read_text().splitlines() if not line.startswith("workers:")]
    (folder / "site.yaml").write_text("\n".join([*lines, f"workers: {workers}"]))
    shutil.rmtree(folder / "results", ignore_errors=True)
    command = [sys.executable, "-m", "snakemake", "--profile", "profiles/cluster"]
    command += ["--snakefile", PROJECT / "Snakefile", "--directory", folder]
    command += ["--configfile", path, "--config", f"site={folder}/site.yaml", "--until", "piece"]
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    with subprocess.Popen(
        command, cwd=PROJECT, stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True
    ) as process:
        started = ended = None
        output = []
        for line in process.stdout:
            output.append(line)
            if "[bqlib] Dask:" in line:
                started = time.perf_counter()
            if "trials done" in line:
                ended = time.perf_counter()
    if process.returncode != 0:
        sys.exit("".join(output))
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    processor = sum(getattr(after, k) - getattr(before, k) for k in ("ru_utime", "ru_stime"))
    return ended - started, processor


def seconds_of_trials(path):
    """Of one trial of each cell of the sweep, one after the other in this process."""
    sweep = experiment.load(path, PROJECT / "config" / "targets")
    specs = [sweep.spec(cell) for cell in sweep.cells()]
    trial.run(specs[0], 0)
    start = time.perf_counter()
    for spec in specs:
        trial.run(spec, 1)
    return time.perf_counter() - start


def without_cluster(path, processes):
    """Seconds of the slowest of some processes that each run one trial of each cell."""
    spawn = multiprocessing.get_context("spawn")
    with ProcessPoolExecutor(processes, spawn) as pool:
        return max(pool.map(seconds_of_trials, [path] * processes))


def measure(folder):
    wall, processor = run(folder, 2, TINY, 100)
    print(
        f"200 cells of one tiny trial: {processor / 200:.3f} CPU-s a cell on the login node, "
        f"{200 / wall:.1f} cells a second"
    )
    os.environ.update({name: str(value) for name, value in ENVIRONMENT.items()})
    rounds = []
    for _ in range(ROUNDS):
        alone, together = (run(folder, workers, SECONDS, CELLS)[0] for workers in (1, 2))
        bare = without_cluster(folder / "sweep.yaml", 1) / without_cluster(folder / "sweep.yaml", 2)
        rounds.append((alone / (2 * together), bare))
        trials = CELLS * SECONDS["seeds"]
        print(
            f"{trials} trials of about a second: {trials / alone:.2f} a second with 1 worker, "
            f"{trials / together:.2f} with 2, efficiency {rounds[-1][0]:.2f}; "
            f"of two processes without a cluster {bare:.2f}",
            flush=True,
        )
    ours, bare = np.median(rounds, axis=0)
    print(f"median efficiency of the second worker: {ours:.2f} (at least 0.85)")
    print(f"without a cluster: {bare:.2f}")


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--own-slurm", action="store_true")
    own_slurm = parser.parse_args().own_slurm
    # Not in /tmp, which other nodes do not see.
    with tempfile.TemporaryDirectory(dir=PROJECT, prefix=".benchmark-") as folder:
        folder = Path(folder)
        if not own_slurm:
            return measure(folder)
        sys.path.insert(0, str(PROJECT / "tests" / "slurm"))
        from batch_system import Slurm

        os.environ["TMPDIR"] = "/tmp"
        slurm = Slurm(Path(tempfile.mkdtemp(prefix="slurm-")))
        try:
            slurm.up()
            return measure(folder)
        finally:
            slurm.down()
            shutil.rmtree(slurm.folder)


if __name__ == "__main__":
    main()
