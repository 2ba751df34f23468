"""A design with faults, for sweeps of the tests; a table says which trials meet one.

The table is faults.json beside this file: "RULE SEED ATTEMPT" to the fault and what it takes. The
first row that fits counts, and * stands for anything:

    {"iid 1 *": ["raise", "unlucky"], "* * 0": ["sleep", 2.5]}

The attempts of a trial count from 0. The file `attempts` has a line "start RULE SEED ATTEMPT
PROCESS" for each that began, and one with "end" for each that found its points.
"""

import json
import os
import signal
import time
from fnmatch import fnmatch
from pathlib import Path

import numpy as np

from bqlib.designs.herding import herding
from bqlib.designs.iid import iid

HERE = Path(__file__).parent
RULES = {"herding": herding, "iid": iid}


def die():
    os.kill(os.getpid(), signal.SIGKILL)


def allocate(gigabytes):
    return [np.ones(10**7) for _ in range(round(12.5 * gigabytes))]


def fail(words):
    raise RuntimeError(words)


def wait(name):
    """Until there is a file of a name beside this one."""
    end = time.monotonic() + 240
    while not (HERE / name).exists():
        if time.monotonic() > end:
            fail(f"nobody wrote {name}")
        time.sleep(0.1)


FAULTS = {"sleep": time.sleep, "wait": wait, "die": die, "allocate": allocate, "raise": fail}


def faulty(target, kernel, n, *, rng, candidates, rule: str):
    """The points of a rule, unless there is a fault."""
    trial = f"{rule} {rng.bit_generator.seed_seq.spawn_key[-1]}"  # of streams, the last is the seed
    log = HERE / "attempts"
    before = log.read_text().splitlines() if log.exists() else []
    trial = f"{trial} {sum(line.startswith(f'start {trial} ') for line in before)}"
    note(log, f"start {trial}")
    table = json.loads((HERE / "faults.json").read_text())
    for row, (fault, *arguments) in table.items():
        if fnmatch(trial, row):
            FAULTS[fault](*arguments)
            break
    made = RULES[rule](target, kernel, n, rng=rng, candidates=candidates)
    note(log, f"end {trial}")
    return made


def note(log, words):
    with open(log, "a") as file:
        file.write(f"{words} {os.getpid()}\n")
