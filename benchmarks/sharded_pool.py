"""Seconds, milliseconds a step and memory of designs over a pool shared out over Dask workers.

    python benchmarks/sharded_pool.py            up to 10 million candidates, 5 GB on two workers
    python benchmarks/sharded_pool.py 1e6        up to so many

The largest pool must take at most 90 s and 6 GB on two workers. A step must take what its share of
the candidates costs, plus at most 10 ms.
"""

import json
import sys
import time
from pathlib import Path

import numpy as np
from distributed import Client, LocalCluster

from bqlib import Candidates, ExponentiatedQuadratic, GaussianMixture, sharded

TARGETS = Path(__file__).resolve().parent.parent / "config" / "targets"
SIZES = (2_000, 1_000_000, 4_000_000, 10_000_000)
N = 100


def peak_gigabytes():
    with open("/proc/self/status") as status:
        return next(int(line.split()[1]) for line in status if line.startswith("VmHWM")) / 1e6


def run(design, size, workers):
    """Seconds of a whole design, milliseconds a step, gigabytes of all workers.

    Steps are told from the drawing of the pool by a second run with one point.
    """
    about = json.loads((TARGETS / "chen2010_mixture.json").read_text())
    target = GaussianMixture(about["weights"], about["means"], about["covariances"])
    kernel = ExponentiatedQuadratic(0.5, scale="density")
    quiet = {"dashboard_address": "127.0.0.1:0", "worker_dashboard_address": "127.0.0.1:0"}
    with (
        LocalCluster(
            n_workers=workers, threads_per_worker=1, memory_limit=None, **quiet
        ) as cluster,
        Client(cluster) as client,
    ):
        seconds = []
        for n in (1, N):
            start = time.perf_counter()
            design(client, target, kernel, n, rng=1, candidates=Candidates(size))
            seconds.append(time.perf_counter() - start)
        memory = sum(client.run(peak_gigabytes).values())
    return seconds[1], 1e3 * (seconds[1] - seconds[0]) / (N - 1), memory


def main():
    largest = float(sys.argv[1]) if len(sys.argv) > 1 else SIZES[-1]
    sizes = [size for size in SIZES if size <= largest]
    print(f"{N} points; ms a step are over all steps but the first")
    print(f"{'design':8} {'candidates':>10} {'workers':>7} {'seconds':>8} {'ms/step':>8} {'GB':>6}")
    for design in (sharded.sbq, sharded.herding):
        found = {}
        for workers in (1, 2):
            for size in sizes:
                seconds, step, memory = run(design, size, workers)
                found[workers, size] = step
                print(
                    f"{design.__name__:8} {size:10} {workers:7} {seconds:8.1f} {step:8.1f} "
                    f"{memory:6.2f}",
                    flush=True,
                )
        shares = np.array([size / workers for workers, size in found])
        slope, constant = np.polyfit(shares, list(found.values()), 1, w=1 / (shares + 1e5))
        print(
            f"{design.__name__:8} a step takes {1e6 * slope:.1f} ms for each million candidates of "
            f"a worker, plus {constant:.1f} ms (at most 10)"
        )


if __name__ == "__main__":
    main()
