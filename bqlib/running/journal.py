"""The journal of a run's jobs on a batch system, so that the next run can cancel what is left.

A line holds a batch system and the number of a job, or a name that only jobs of one run have.
Nothing else is read from it: the command that cancels the jobs comes from the code.
"""

import os
import re
import secrets
import subprocess
from contextlib import suppress

from bqlib.results.files import open_privately, read_private
from bqlib.results.layout import Layout

# What cancels a job of each batch system, before its number.
CANCEL = {
    "slurm": "scancel",
    "pbs": "qdel",
    "lsf": "bkill",
    "sge": "qdel",
    "oar": "oardel",
    "htcondor": "condor_rm",
}
LINE = re.compile(r"(\w+) (?:([A-Za-z\d][\w.-]*-[0-9a-f]{8,12})|(\d[\w.\[\]-]*))")
MOST_BYTES = 2**20  # of a journal: some 50,000 jobs
CANCEL_SECONDS = 20  # for a command of the batch system


def new_name(experiment):
    """A name for the jobs of one run of an experiment, which nobody can foresee."""
    return f"bqlib-{experiment}-{secrets.token_hex(4)}"


def note_name(results, system, name):
    """Write down by which name a run has its jobs on a batch system, before it submits one.

    A job that is being submitted as the run is killed has a name, but nobody knows its number.
    """
    _note(results, system, name)


def note_job(results, system, number):
    """Write down that a run has a job on a batch system."""
    _note(results, system, number)


def _note(results, system, word):
    with open(Layout(results).journal, "a", encoding="utf-8", opener=open_privately) as journal:
        journal.write(f"{system} {word}\n")


def cancel_jobs(results):
    """Cancel the jobs in a journal, of a run that ends or was killed; nothing is said of them."""
    try:
        text = read_private(Layout(results).journal, MOST_BYTES).decode(errors="replace")
    except OSError:
        return
    lines = [found.groups() for found in map(LINE.fullmatch, text.splitlines()) if found]
    for system, command in CANCEL.items():
        numbers = [number for of, _, number in lines if of == system and number]
        names = [name for of, name, _ in lines if of == system and name]
        for words in (*(_by_name(system, name) for name in names), numbers and [command, *numbers]):
            _run(words)


def forget_jobs(results):
    """Cancel the jobs in a journal, and remove it: for the end of a run."""
    cancel_jobs(results)
    Layout(results).journal.unlink(missing_ok=True)


def _by_name(system, name):
    """The command that cancels all jobs of a name; empty where there is none."""
    if system == "slurm":
        return ["scancel", f"--name={name}", f"--user={os.getuid()}"]
    if system == "lsf":
        return ["bkill", "-J", name, "0"]  # 0: all of them
    if system == "sge":
        return ["qdel", name]
    if system == "pbs":
        numbers = _run(["qselect", "-N", name]).split()
        return ["qdel", *numbers] if numbers else []
    return []  # oar, htcondor: their jobs are known by their numbers


def _run(command):
    """What a command prints; nothing if there is none or it fails."""
    with suppress(OSError, subprocess.SubprocessError):
        if command:
            found = subprocess.run(command, capture_output=True, text=True, timeout=CANCEL_SECONDS)
            return found.stdout
    return ""
