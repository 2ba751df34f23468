"""The same pool given to bqlib and to its peers: seconds, memory, MMD and picks, in one table.

Each peer runs in an environment of its own under .venv/peers, made when it is first needed; a peer
that cannot be installed is left out, and said so. Run: python benchmarks/peers/compare.py [PEER...]
"""

import json
import os
import subprocess
import sys
from pathlib import Path

import numpy as np
from environments import THREADS, python_of
from problems import LENGTHSCALE, SIZES, parts, pool

from bqlib import ExponentiatedQuadratic, GaussianMixture, embed, mmd
from bqlib.weights import bq

HERE = Path(__file__).parent
PEERS = ("emukit", "coreax", "goodpoints")
# Problem, code, rule, and the rule of bqlib whose picks are expected.
RUNS = [
    ("normal", "bqlib", "sbq", None),
    ("normal", "emukit", "variance reduction", "sbq"),
    ("mixture", "bqlib", "sbq", None),
    ("mixture", "bqlib", "herding", None),
    ("mixture", "bqlib", "herding the pool", None),
    ("mixture", "coreax", "herding the pool", "herding the pool"),
    ("mixture", "coreax", "herding the pool, float32", "herding the pool"),
    ("mixture", "goodpoints", "herding the pool", "herding the pool"),
    ("mixture", "goodpoints", "kernel thinning", None),
    ("mixture", "goodpoints", "compress++", None),
    ("mixture", "bqlib", "iid", None),
]


def run(python, problem, code, rule):
    done = subprocess.run(
        [python, HERE / f"with_{code}.py", problem, rule],
        env=os.environ | THREADS,
        capture_output=True,
        text=True,
    )
    if done.returncode:
        print(done.stderr, file=sys.stderr)
        return None
    return json.loads(done.stdout.splitlines()[-1])


def errors(problem, picks):
    """True MMD of the picks with equal weights and with the best ones."""
    embedding = embed(ExponentiatedQuadratic(LENGTHSCALE), GaussianMixture(*parts(problem)))
    points = pool(problem)[picks]
    equal = np.full(len(points), 1 / len(points))
    return mmd(embedding, points, equal), mmd(
        embedding, points, bq(embedding, points).final(len(points))
    )


def agreement(picks, expected):
    if expected is None:
        return ""
    same = picks == expected
    first = next((i for i, (a, b) in enumerate(zip(picks, expected, strict=True)) if a != b), 0)
    return "all" if same else f"the first {first}"


if __name__ == "__main__":
    peers = sys.argv[1:] or PEERS
    if unknown := set(peers) - set(PEERS):
        sys.exit(f"No such peer: {', '.join(sorted(unknown))}. There are: {', '.join(PEERS)}")
    pythons = {code: python_of(code) for code in ("bqlib", *peers)}
    for code in peers:
        if pythons[code] is None:
            print(f"{code} could not be installed and is left out", file=sys.stderr)
    known = {}
    print(f"{'problem':8} {'code':10} {'rule':25} {'seconds':>8} {'again':>7} {'MB':>5}", end=" ")
    print(f"{'MMD equal':>9} {'MMD best':>9}  same picks as bqlib")
    for problem, code, rule, twin in RUNS:
        if pythons.get(code) is None:
            continue
        found = run(pythons[code], problem, code, rule)
        if found is None:
            print(f"{problem:8} {code:10} {rule:25} failed")
            continue
        picks = known[problem, code, rule] = found["picks"]
        first, again = found["seconds"]
        equal, best = errors(problem, picks)
        same = agreement(picks, known.get((problem, "bqlib", twin)))
        print(
            f"{problem:8} {code:10} {rule:25} {first:8.3f} {again:7.3f} {found['peak']:5.0f} "
            f"{equal:9.5f} {best:9.5f}  {same}"
        )
    sizes = ", ".join(f"{name}: {n} of {m} candidates" for name, (m, n) in SIZES.items())
    print(
        f"\n{sizes}; length-scale {LENGTHSCALE}. MMD: to the target, by bqlib, with equal weights"
    )
    print("and with the best ones. Seconds: the first call, and the next, which compiles nothing.")
