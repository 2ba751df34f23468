"""The journal of a run's jobs on a batch system, so that the next run can cancel what is left."""

import shlex
import subprocess
from contextlib import suppress

from bqlib.results.files import is_private, open_privately
from bqlib.results.layout import Layout

CANCEL_SECONDS = 20  # for the command that cancels a job


def note_job(results, command):
    """Write down the command that cancels a job of a run."""
    with open(Layout(results).journal, "a", encoding="utf-8", opener=open_privately) as journal:
        journal.write(f"{command}\n")


def cancel_jobs(results):
    """Cancel the jobs that a killed run has left on the batch system."""
    journal = Layout(results).journal
    with suppress(OSError):
        if not is_private(journal):  # what others wrote must not be executed
            return
        for line in journal.read_text(encoding="utf-8").splitlines():
            with suppress(OSError, subprocess.TimeoutExpired):
                subprocess.run(shlex.split(line), capture_output=True, timeout=CANCEL_SECONDS)
