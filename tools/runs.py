"""List the Snakemake runs that are alive in this folder.

Snakemake's own lock outlives a killed run and does not tell by whom it was set, so this asks the
machine's process table. Runs on another host that shares the folder cannot be seen.

    python tools/runs.py                  print them, one a line
    python tools/runs.py --unless-alive   stop with a message if there is one
    python tools/runs.py --unless-killed  stop with a message if there is none but the folder's lock
"""

import os
import sys
from pathlib import Path

import psutil


def is_run(command):
    """Whether a command line is Snakemake, or a `make resume` about to start it."""
    names = [os.path.basename(word) for word in command]
    return "snakemake" in names[:4] or (names[:1] == ["make"] and "resume" in names)


def alive(folder):
    """Describe the runs in `folder`, other than the one this process belongs to."""
    ours = {os.getpid(), *(parent.pid for parent in psutil.Process().parents())}
    for process in psutil.process_iter():
        try:
            command = process.cmdline()
            if process.pid in ours or not is_run(command):
                continue
            if os.path.samefile(process.cwd(), folder):
                yield f"process {process.pid}: {' '.join(command)}"
        except (psutil.Error, OSError):
            continue  # it has ended, or is another user's


def main(option=""):
    folder = Path(__file__).resolve().parent.parent
    runs = list(alive(folder))
    if runs:
        print(*runs, sep="\n")
    if option == "--unless-alive" and runs:
        sys.exit("A run is alive here, so there is none to resume. Wait for it, or stop it first.")
    if option == "--unless-killed" and runs:
        print(
            "This run is alive here. If Snakemake finds the folder locked now, wait for that one."
        )
    elif option == "--unless-killed" and any(folder.glob(".snakemake/locks/*.lock")):
        sys.exit("The last run here was killed. To continue it: make resume (with the same CONFIG)")


if __name__ == "__main__":
    main(*sys.argv[1:])
