"""What a process that thins is given in a file, and what it prints; numpy is all that is needed.

The file is an npz archive: `draws` (m, d); `scores` (m, d), `log_densities` (m,) and `hessians`
(m, d, d) at them, where there are any; the number of points `n`, a `seed`, and the `scale` (d,) and
the `lengthscale`, in units of it, of the kernel of rules that use no scores.
"""

import json
import os
import resource
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

HERE = Path(__file__).parent


def spread_out(count, n):
    """n row numbers of count, evenly spaced, the last row among them."""
    return np.linspace(count - 1, 0, n, dtype=int)[::-1]


def peak():
    """The most memory that this process had so far, in MB."""
    try:
        status = Path("/proc/self/status").read_text()
    except OSError:  # not Linux
        return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    # Linux counts in getrusage what the parent had when it started this process.
    return int(status.split("VmHWM:")[1].split()[0]) / 1024


def report(rules):
    """Apply the rules that the command line names after the file, and print what they gave.

    A rule is a function of the arrays in the file. It gives row numbers of draws, or these and
    their weights. Seconds are those of the processor, which on one thread of a quiet machine are
    those of a clock, and on a busy one do not count what others did.
    """
    file, *names = sys.argv[1:]
    given = dict(np.load(file))
    for name in names:
        start = time.process_time()
        found = rules[name](given)
        seconds = time.process_time() - start
        rows, weights = found if isinstance(found, tuple) else (found, None)
        rows = np.asarray(rows).astype(int)
        if weights is None:
            weights = np.full(len(rows), 1 / len(rows))
        answer = {"rows": rows.tolist(), "weights": np.asarray(weights).tolist()}
        print(json.dumps(answer | {"seconds": seconds, "peak": peak()}))


def run(python, code, names, threads, **given):
    """What rules give in a process of their own on one thread, by their names."""
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "given.npz"
        np.savez(file, **given)
        done = subprocess.run(
            [python, HERE / f"with_{code}.py", file, *names],
            env=os.environ | threads,
            capture_output=True,
            text=True,
        )
    if done.returncode:
        raise RuntimeError(f"{code} could not do {', '.join(names)}:\n{done.stderr}")
    facts = [json.loads(line) for line in done.stdout.splitlines() if line.startswith("{")]
    return dict(zip(names, facts, strict=True))
