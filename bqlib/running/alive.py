"""The Snakemake runs that are alive in the working directory.

Snakemake's own lock outlives a killed run and does not tell by whom it was set, so this asks the
machine's process table. Runs on another host that shares the folder cannot be seen.

As a script it prints them, one a line. It needs nothing else of bqlib: the set-up asks before it
replaces the environment.
"""

import os
from pathlib import Path

import psutil


def is_run(command):
    """Whether a command line is Snakemake, or a resuming command about to start it."""
    names = [os.path.basename(word) for word in command]
    resumes = "resume" in names and ("make" in names[:1] or "bqlib" in names[:3])
    starts = {"snakemake", "bqlib.running.start"}.intersection(names[:10])
    return bool(starts) or resumes


def runs():
    """Describe the runs here, other than the one that this process belongs to."""
    ours = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    for process in psutil.process_iter():
        try:
            command = process.cmdline()
            if process.pid in ours or not is_run(command):
                continue
            if os.path.samefile(process.cwd(), "."):
                yield f"process {process.pid}: {' '.join(command)}"
        except (psutil.Error, OSError):
            continue  # it has ended, or is another user's


def is_locked():
    """Whether Snakemake has locked the working directory."""
    return any(Path().glob(".snakemake/locks/*.lock"))


if __name__ == "__main__":
    print(*runs(), sep="\n")
