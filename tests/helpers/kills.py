"""Kill one process of a run at a random moment, have the run completed, and look at what is left.

By name, for any number of kills and any first seed:

    python tests/helpers/kills.py --kills 60 --seed 0 [--module]
"""

import argparse
import os
import random
import signal
import subprocess
import sys
import tempfile
import time
from dataclasses import dataclass
from hashlib import sha256
from pathlib import Path

import psutil
from checkout import Checkout, Imported, processes_of

SIGNALS = (signal.SIGKILL, signal.SIGTERM, signal.SIGINT, signal.SIGHUP)
STAGES = ("start", "piece", "gather", "rates", "figures", "manifest")
OF_ONE_RUN = (
    *(".", "logs/", "benchmarks/", "timings/", "manifest"),
    *("report.html", "records/report.txt"),  # which tell the times of their run
)
ENDING_SECONDS = 10  # after which no process of a run may be there
COMPLETE_SECONDS = 240


@dataclass(frozen=True)
class Kill:
    """What was done to a run, and what became of it.

    Attributes
    ----------
    stage, role, signal : str
    went_on : bool
        Whether the run completed all the same.
    ended : int
        Its exit code.
    said : str
        Its last lines of ours.
    faults : tuple of str
        What is not as it should be; empty where all is well.
    """

    stage: str
    role: str
    signal: str
    went_on: bool
    ended: int
    said: str
    faults: tuple[str, ...]


def digests(results):
    """sha256 of the files of a run that are the same in each."""
    found = {}
    for path in sorted(Path(results).rglob("*")):
        name = path.relative_to(results).as_posix()
        if path.is_file() and not name.startswith(OF_ONE_RUN):
            found[name] = sha256(path.read_bytes()).hexdigest()
    return found


def roles(folder):
    """Role to process numbers of the processes of a checkout that are alive."""
    found = {}
    for pid in processes_of(folder):
        try:
            process = psutil.Process(pid)
            words = process.cmdline()
            parents = [" ".join(parent.cmdline()) for parent in process.parents()]
            if process.status() == psutil.STATUS_ZOMBIE:
                continue
        except psutil.Error:
            continue
        found.setdefault(_role(" ".join(words), " ".join(parents)), []).append(pid)
    return found


def _role(words, parents):
    if "bqlib.running.server" in words:
        return "server"
    if "bqlib.running.server" in parents:
        return "worker" if "spawn_main" in words else "tracker"
    if ".snakemake/scripts" in words:
        return "shell of a job" if "bash" in words.split()[0] else "job"
    return "snakemake"


def kill_once(folder, seed, undisturbed, make=Checkout):
    """Run a small sweep in a new checkout below a folder, and kill one of its processes.

    Parameters
    ----------
    folder : Path
    seed : int
    undisturbed : dict
        Digests of the results of a run that was left in peace.
    make : callable
        Gives the checkout in a folder.

    Returns
    -------
    Kill
    """
    rng = random.Random(seed)
    stage, number = rng.choice(STAGES), rng.choice(SIGNALS)
    checkout = make(folder / "a checkout")
    checkout.edit("config/small.yaml", "seeds: 2", "seeds: 4")
    place = folder / "tmp"
    place.mkdir()
    faults = []
    run = checkout.start(TMPDIR=str(place))
    role = "none"
    if _reached(checkout, stage, run):
        time.sleep(rng.uniform(0.0, 6.0) if stage == "start" else rng.uniform(0.0, 0.6))
        there = roles(checkout.folder)
        if there:
            role = rng.choice(sorted(there))
            try:
                os.kill(rng.choice(sorted(there[role])), number)
            except ProcessLookupError:
                role += ", gone"
    try:
        output, _ = run.communicate(timeout=COMPLETE_SECONDS)
    except subprocess.TimeoutExpired:
        faults.append(f"does not end: {_shown(checkout.folder)}")
        run.kill()
        output, _ = run.communicate()
    end = time.monotonic() + ENDING_SECONDS
    while processes_of(checkout.folder) and time.monotonic() < end:
        time.sleep(0.1)
    faults += [f"is alive after {ENDING_SECONDS} s: {words}" for words in _shown(checkout.folder)]
    locked = any((checkout.folder / ".snakemake" / "locks").glob("*.lock"))
    if locked and checkout.run("--unlock", TMPDIR=str(place)).returncode != 0:
        faults.append("cannot be unlocked")
    again = checkout.run(TMPDIR=str(place))
    if again.returncode != 0:
        faults.append(f"is not completed: {again.output}")
    found = digests(checkout.results)
    faults += [
        f"{name} differs"
        for name in undisturbed | found
        if found.get(name) != undisturbed.get(name)
    ]
    left = [
        path for path in checkout.results.rglob(".*") if path.name not in (".lock", ".status.json")
    ]
    faults += [f"{path} is left" for path in (*left, *place.iterdir())]
    faults += [f"is alive at the end: {words}" for words in _shown(checkout.folder)]
    said = " | ".join(line for line in output.splitlines() if line.startswith("[bqlib]"))
    if said and "Traceback" in output:  # before our first word, it is Snakemake's own
        faults.append(f"shows a traceback: {output}")
    went_on = run.returncode == 0
    return Kill(stage, role, number.name, went_on, run.returncode, said, tuple(faults))


def _reached(checkout, stage, run):
    """Wait until a run has reached a stage; whether it did."""
    sign = {"piece": "pieces*"}.get(stage, f"{stage}.log")
    while stage != "start" and not any((checkout.results / "logs").glob(sign)):
        if run.poll() is not None:
            return False
        time.sleep(0.01)
    return True


def _shown(folder):
    shown = []
    for pid in processes_of(folder):
        try:
            process = psutil.Process(pid)
            shown.append(f"{pid} ({process.status()}): {' '.join(process.cmdline())[:200]}")
        except psutil.Error:
            continue
    return shown


def undisturbed(folder):
    """Digests of the results of a run that is left in peace."""
    checkout = Checkout(folder / "a checkout")
    checkout.edit("config/small.yaml", "seeds: 2", "seeds: 4")
    run = checkout.run()
    assert run.returncode == 0, run.output
    return digests(checkout.results)


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--kills", type=int, default=60)
    parser.add_argument("--seed", type=int, default=0)
    parser.add_argument("--module", action="store_true", help="in somebody else's workflow")
    asked = parser.parse_args()
    wrong = 0
    with tempfile.TemporaryDirectory() as folder:
        whole = undisturbed(Path(folder, "undisturbed"))
        for seed in range(asked.seed, asked.seed + asked.kills):
            make = Imported if asked.module else Checkout
            kill = kill_once(Path(folder, str(seed)), seed, whole, make)
            what = f"{kill.signal} to {kill.role} at {kill.stage}"
            print(f"{seed}: {what}: exit code {kill.ended}: {kill.said}")
            for fault in kill.faults:
                print(f"  {fault}")
            sys.stdout.flush()
            wrong += bool(kill.faults)
    print(f"{asked.kills} kills, {wrong} with faults")
    return bool(wrong)


if __name__ == "__main__":
    sys.exit(main())
