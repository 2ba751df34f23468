"""CPU time of ``bqlib.curves``, over that of its trials run one after the other.

For three algorithms, 10 seeds, 200 points and 5,000 candidates: here, on threads and on processes.
Prints each ratio, and exits with 1 if one that has a bound is above it. Each process loads the
libraries, which is shown apart. Run: python benchmarks/curves_cost.py
"""

import resource
import sys
from statistics import median

from threadpoolctl import threadpool_limits

from bqlib import Candidates, ExponentiatedQuadratic, curves
from bqlib.sweep.objects import experiments_of

ROUNDS, BOUND = 5, 1.15
SWEEP = {
    "target": "chen2010_mixture",
    "kernel": ExponentiatedQuadratic(0.5, scale="density"),
    "algorithms": ["iid", "herding", "sbq"],
    "n": 200,
    "seeds": 10,
    "candidates": Candidates(5000),
}
OTHERS = {"lengthscales": None, "integrands": None, "rate_windows": ()}


def cpu_seconds(function):
    """CPU time of a call, with that of processes that end in it."""

    def spent():
        whose = (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)
        return sum(sum(resource.getrusage(who)[:2]) for who in whose)

    start = spent()
    function()
    return spent() - start


def trials():
    with threadpool_limits(1):
        for spec in specs:
            for seed in range(SWEEP["seeds"]):
                spec.run(seed)


if __name__ == "__main__":
    (experiment,) = experiments_of(**SWEEP, **OTHERS)
    specs = [experiment.unsigned_spec(cell) for cell in experiment.cells()]
    jobs = {
        "trials": trials,
        "here": lambda: curves(**SWEEP, progress=False),
        "here, with a bar": lambda: curves(**SWEEP),
        "threads": lambda: curves(**SWEEP, progress=False, on="threads"),
        "processes": lambda: curves(**SWEEP, progress=False, on="processes"),
        "processes, no trial": lambda: curves(
            **SWEEP | {"algorithms": "iid", "n": 1, "seeds": 2}, progress=False, on="processes"
        ),
    }
    for job in jobs.values():
        job()
    # In turn, so that a change of the machine's speed meets all alike.
    rounds = [{name: cpu_seconds(job) for name, job in jobs.items()} for _ in range(ROUNDS)]
    found = {name: median(one[name] / one["trials"] for one in rounds) for name in jobs}
    print(f"trials: {median(one['trials'] for one in rounds):.2f} s of CPU time")
    for name, ratio in found.items():
        print(
            f"{name:20} {ratio:6.3f}" + (f"  (at most {BOUND})" if name.startswith("here") else "")
        )
    sys.exit(max(found["here"], found["here, with a bar"]) > BOUND)
