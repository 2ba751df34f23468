"""Seconds and memory to check and score submissions: of Sobol and SBQ points, and at the limits.

    .venv/bin/python benchmarks/score_submission.py

Each case runs in a process of its own. Its memory is the peak of that process.
"""

import argparse
import json
import re
import subprocess
import sys
import tempfile
import time
from pathlib import Path

import numpy as np

from bqlib.suite import table
from bqlib.suite.mistakes import SubmissionError
from bqlib.suite.scores import score, write_scores
from bqlib.suite.submission import read_submission, write_submission
from bqlib.suite.template import pool_of
from bqlib.sweep.problems import problems

ABOUT = {
    "method": "measured",
    "version": "1",
    "authors": ["bqlib"],
    "citation": "",
    "licence": "CC0-1.0",
    "code": "",
    "information": ["pool"],
    "suite": "bqbench-1",
    "kind": "sequence",
    "weights": "bq",
}
SEEDS = 5


def of_pools(folder):
    """The first 128 points of each pool, of all problems and seeds: BQ weights, one sequence."""
    sets = [(name, seed, pool_of(name, seed)[:128]) for name in problems() for seed in range(SEEDS)]
    write_submission(folder, ABOUT, sets)


def of_all_sizes(folder):
    """Sets at the limit of numbers, in 20 coordinates of one digit each, at 100 seeds."""
    rows, lines = 0, [",".join(table.columns_of_table(20, own=False))]
    digits = np.floor(10 * pool_of("box_20d_eq", 0)[:128]).astype(int)
    texts = [",".join(map(str, point)) for point in digits.tolist()]
    for name in ("normal_20d_eq", "box_20d_eq", "clusters_20d_rq", "normal_20d_matern32"):
        for seed in range(table.MOST_SEEDS):
            for n in range(1, 129):
                if 20 * (rows + n) <= table.MOST_NUMBERS:
                    rows += n
                    lines += [f"{name},{seed},{n},{i + 1},{texts[i]}" for i in range(n)]
    _raw(folder, "\n".join(lines) + "\n", {"kind": "set", "weights": "uniform"})


def of_wrong_rows(folder):
    """A table at the limit of bytes in which each row is wrong."""
    row = "normal_20d_eq,0,128,1," + ",".join(["1e5", "nan"] * 10)
    count = table.MOST_BYTES // (len(row) + 1) - 10
    _raw(folder, ",".join(table.columns_of_table(20, own=False)) + f"\n{row}" * count, {})


def of_one_line(folder):
    """A table at the limit of bytes in one line."""
    _raw(folder, "0," * (table.MOST_BYTES // 2), {})


def of_blank_lines(folder):
    """As many blank lines as the limit of rows allows."""
    _raw(folder, ",".join(table.columns_of_table(1, own=False)) + "\n" * table.MOST_ROWS, {})


def _raw(folder, text, about):
    folder.mkdir()
    (folder / "submission.json").write_text(json.dumps(ABOUT | about))
    (folder / "points.csv").write_text(text[: table.MOST_BYTES])


CASES = {
    case.__name__: case
    for case in (of_pools, of_all_sizes, of_wrong_rows, of_one_line, of_blank_lines)
}


def measured(folder):
    """What checking and scoring takes in this process."""
    start, processor = time.perf_counter(), time.process_time()
    try:
        submission = read_submission(folder)
        read = time.process_time() - processor
        write_scores(score(submission), folder)
        outcome = f"{sum(map(len, submission.sets.values()))} trials scored"
    except SubmissionError as error:
        read = time.process_time() - processor
        outcome = f"refused: {error.problems[0][:60]}; {error.problems[-1][-25:]}"
    return {
        "seconds": time.perf_counter() - start,
        "processor": time.process_time() - processor,
        "to_read": read,
        "peak_mb": peak(),
        "outcome": outcome,
    }


def peak():
    """Largest memory of this process in MB; what getrusage tells may be that of its parent."""
    status = Path("/proc/self/status").read_text(encoding="ascii")
    return int(re.search(r"VmHWM:\s*(\d+) kB", status)[1]) / 1024


def main():
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0])
    parser.add_argument("cases", nargs="*", help=f"of {', '.join(CASES)} (default: all)")
    parser.add_argument("--measure", help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.measure:
        print(json.dumps(measured(Path(given.measure))))
        return
    print(f"{'case':15}{'MB':>6}{'seconds':>9}{'CPU s':>7}{'read':>7}{'peak MB':>9}  outcome")
    for name in given.cases or CASES:
        with tempfile.TemporaryDirectory() as place:
            folder = Path(place) / "entry"
            CASES[name](folder)
            size = (folder / "points.csv").stat().st_size / 1e6
            command = [sys.executable, __file__, "--measure", str(folder)]
            done = subprocess.run(command, capture_output=True, text=True, check=True)
            found = json.loads(done.stdout)
            print(
                f"{name:15}{size:6.0f}{found['seconds']:9.1f}{found['processor']:7.1f}"
                f"{found['to_read']:7.1f}{found['peak_mb']:9.0f}  {found['outcome']}",
                flush=True,
            )


if __name__ == "__main__":
    main()
