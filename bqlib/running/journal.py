"""The journal of a run's jobs on a batch system, so that the next run can cancel what is left.

A line holds a batch system and the number of a job, and nothing else is read from it: the command
that cancels the job comes from the code.
"""

import re
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
LINE = re.compile(r"(\w+) (\w[\w.\[\]-]*)")
MOST_BYTES = 2**20  # of a journal: some 50,000 jobs
CANCEL_SECONDS = 20  # for the command that cancels a job


def note_job(results, system, number):
    """Write down that a run has a job on a batch system."""
    with open(Layout(results).journal, "a", encoding="utf-8", opener=open_privately) as journal:
        journal.write(f"{system} {number}\n")


def cancel_jobs(results):
    """Cancel the jobs that a killed run has left on the batch system."""
    with suppress(OSError):
        text = read_private(Layout(results).journal, MOST_BYTES).decode(errors="replace")
        for line in filter(None, map(LINE.fullmatch, text.splitlines())):
            system, number = line.groups()
            if system in CANCEL:
                with suppress(OSError, subprocess.TimeoutExpired):
                    command = [CANCEL[system], number]
                    subprocess.run(command, capture_output=True, timeout=CANCEL_SECONDS)
