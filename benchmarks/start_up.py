"""What `import bqlib` and one Snakemake job's client cost, in two checkouts in turns.

    python benchmarks/start_up.py ../before .

The client is the process of one piece without the work: `workflow/scripts/piece.py` of each
checkout asks a socket that answers at once. Prints medians of wall and CPU seconds, and the ratio
of the second checkout to the first. Both use this Python and its packages.
"""

import argparse
import json
import os
import socket
import statistics
import sys
import tempfile
import threading
import time
from pathlib import Path

PIECE = b"x" * 50_000  # about the size of a small one
CLIENT = """
import builtins, sys
from types import SimpleNamespace
script, folder = sys.argv[1:]
wildcards = SimpleNamespace(
    target="t", kernel="k", lengthscale="0.5", algorithm="a", first="0", last="0"
)
builtins.snakemake = SimpleNamespace(
    wildcards=wildcards, log=[f"{folder}/log"], threads=1, resources={},
    params=SimpleNamespace(digest="d"),
    output=SimpleNamespace(piece=f"{folder}/piece", timing=f"{folder}/timing"),
)
exec(compile(open(script).read(), script, "exec"), {"__name__": "__main__"})
"""


def answer(listening):
    """Answer every request at once, as a run's process would."""
    head = {"size": len(PIECE), "timing": {"seconds": {"0": 0.1}, "failed": {}, "versions": {}}}
    while True:
        connection, _ = listening.accept()
        with connection, connection.makefile("rb") as request:
            request.readline()
            connection.sendall(json.dumps(head).encode() + b"\n" + PIECE)


def seconds(checkout, command, address):
    """Wall and CPU seconds of a Python process that uses a checkout."""
    environment = {**os.environ, "PYTHONPATH": str(checkout), "BQLIB_RUN": address}
    environment["PYTHONSAFEPATH"] = "1"  # or the working directory comes before the checkout
    start = time.perf_counter()
    pid = os.posix_spawn(sys.executable, [sys.executable, *command], environment)
    _, status, used = os.wait4(pid, 0)
    if status:
        sys.exit(f"a process of {checkout} failed")
    return time.perf_counter() - start, used.ru_utime + used.ru_stime


def main():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("checkouts", nargs=2, type=lambda path: Path(path).resolve())
    parser.add_argument("--runs", type=int, default=20)
    given = parser.parse_args()
    with tempfile.TemporaryDirectory() as folder:
        address = f"{folder}/socket"
        listening = socket.socket(socket.AF_UNIX)
        listening.bind(address)
        listening.listen()
        threading.Thread(target=answer, args=(listening,), daemon=True).start()
        for name in ("import bqlib", "client of a piece"):
            found = {checkout: [] for checkout in given.checkouts}
            for _ in range(given.runs + 1):
                for checkout in given.checkouts:
                    command = ["-c", "import bqlib"]
                    if name != "import bqlib":
                        script = checkout / "workflow" / "scripts" / "piece.py"
                        command = ["-c", CLIENT, str(script), folder]
                    found[checkout].append(seconds(checkout, command, address))
            medians = [
                [statistics.median(values) for values in zip(*found[checkout][1:], strict=True)]
                for checkout in given.checkouts
            ]
            for what, before, after in zip(("wall", "CPU"), *medians, strict=True):
                print(f"{name}, {what}: {before:.4f} s, {after:.4f} s, ratio {after / before:.3f}")


if __name__ == "__main__":
    main()
