"""Errors and intervals of bqlib.integrate where the integral is known, beside other estimates.

Prints one row for each problem and number of points n. Errors are root mean squares over the
repetitions, in standard deviations of f under its inputs, which 2^14 Sobol points give in each
repetition. So plain Monte Carlo has about 1 / sqrt(n).

bqlib and emukit get the same values at the same points: the scrambled Sobol points whose plain
average is the column Sobol. Monte Carlo averages n values at independent draws. emukit has no
measure for inputs of which some are uniform and some are not, so the borehole is left out there:
see with_emukit.py for its settings. Its environment is that of benchmarks/peers.

The numbers, but for the seconds, depend on neither `--processes` nor the other problems. A run of
everything takes about 15 minutes on two quiet cores.
Run: python benchmarks/integrals/accuracy.py [--repetitions R] [--json FILE] [PROBLEM ...]
"""

import argparse
import json
import os
import subprocess
import sys
import tempfile
import time
from concurrent.futures import ProcessPoolExecutor
from functools import partial
from itertools import pairwise, product
from multiprocessing import get_context
from pathlib import Path

import numpy as np
from problems import PROBLEMS

import bqlib
from bqlib.streams import stream

HERE = Path(__file__).parent
sys.path.append(str(HERE.parent / "peers"))
from environments import THREADS, python_of  # noqa: E402  # of the peers

REPETITIONS = {32: 100, 128: 40}  # of each number of points
SPREAD_POINTS = 2**14
NORMAL_QUANTILE = 1.959963984540054  # emukit's posterior is normal


def estimate(name, n, repetition):
    """One integral: its true value, what others need to estimate it, and our estimates of it."""

    def rng(purpose):
        return stream(f"integrals/{name}/{n}/{purpose}", repetition)

    problem = PROBLEMS[name](rng("parameters"))
    inputs = bqlib.Marginals(problem.marginals)
    points = bqlib.sobol_points(inputs, n, rng=rng("points"))
    values = problem.f(points)
    wide = problem.f(bqlib.sobol_points(inputs, SPREAD_POINTS, rng=rng("spread")))
    begun = time.perf_counter()
    result = bqlib.integrate(inputs, points, values)
    seconds = time.perf_counter() - begun
    lower, upper = result.interval(0.95)
    return {
        "true": problem.mean,
        "spread": wide.std(),
        "points": points,
        "values": values,
        "box": inputs.support() if isinstance(inputs.standard, bqlib.Uniform) else None,
        "monte_carlo": problem.f(inputs.sample(n, rng("draws"))).mean(),
        "sobol": values.mean(),
        "bqlib": result.mean,
        "covered": lower <= problem.mean <= upper,
        "warned": bool(result.warnings),
        "seconds": seconds,
    }


def emukit(python, found):
    """Mean, variance and seconds of emukit's two estimates of some integrals, shape (R, 2, 3)."""
    lower, upper = found[0]["box"]
    with tempfile.TemporaryDirectory() as folder:
        file = Path(folder) / "given.npz"
        points, values = (np.array([one[key] for one in found]) for key in ("points", "values"))
        np.savez(file, points=points, values=values, lower=lower, upper=upper)
        done = subprocess.run(
            [python, HERE / "with_emukit.py", file], capture_output=True, text=True
        )
    if done.returncode:
        raise RuntimeError(done.stderr)
    return np.array(json.loads(done.stdout.splitlines()[-1]))


def in_parts(found, parts):
    """A list in at most so many parts, none of them empty."""
    cuts = np.linspace(0, len(found), min(parts, len(found)) + 1).astype(int)
    return [found[a:b] for a, b in pairwise(cuts)]


def figures(name, n, found, rivals):
    """One row of the table. `rivals` has what emukit found, (R, 3), by name."""
    columns = {key: np.array([one[key] for one in found]) for key in found[0] if key != "box"}
    true, spread = columns["true"], columns["spread"]

    def rmse(estimates, unit):
        return float(np.sqrt(np.nanmean(((estimates - true) / unit) ** 2)))

    row = {"problem": name, "n": n, "repetitions": len(found)}
    row |= {key: rmse(columns[key], spread) for key in ("monte_carlo", "sobol", "bqlib")}
    row["ratio"] = row["bqlib"] / row["sobol"]
    row["ratio_in_units_of_f"] = rmse(columns["bqlib"], 1) / rmse(columns["sobol"], 1)
    row["covered"] = float(columns["covered"].mean())
    row["warned"] = float(columns["warned"].mean())
    row["seconds"] = float(np.median(columns["seconds"]))
    for rival, (mean, variance, seconds) in rivals.items():
        failed, rounded = np.isnan(mean), variance <= 0
        half = NORMAL_QUANTILE * np.sqrt(np.where(rounded, np.nan, variance))
        row |= {
            rival: rmse(mean, spread),
            f"{rival}_covered": float(np.mean((np.abs(mean - true) <= half)[~failed])),
            f"{rival}_seconds": float(np.median(seconds)),
            f"{rival}_failed": int(failed.sum()),
            f"{rival}_without_interval": int(rounded.sum()),
        }
    return row


# Key of a row, heading, width and format; a row without this key shows a dash.
COLUMNS = [
    ("problem", "problem", -13, ""),
    ("n", "n", 4, "d"),
    ("monte_carlo", "MC", 9, ".5f"),
    ("sobol", "Sobol", 9, ".5f"),
    ("bqlib", "bqlib", 9, ".5f"),
    ("emukit", "emukit", 9, ".5f"),
    ("emukit_ard", "ARD", 9, ".5f"),
    ("ratio", "ratio", 7, ".2f"),
    ("ratio_in_units_of_f", "plain", 7, ".2f"),
    ("covered", "covered", 9, ".0%"),
    ("emukit_covered", "emukit", 8, ".0%"),
    ("emukit_ard_covered", "ARD", 6, ".0%"),
    ("seconds", "seconds", 9, ".2f"),
    ("emukit_seconds", "emukit", 8, ".2f"),
    ("emukit_ard_seconds", "ARD", 6, ".2f"),
    ("warned", "warned", 8, ".0%"),
]


def line(row):
    return aligned(format(row[key], form) if key in row else "-" for key, _, _, form in COLUMNS)


def aligned(cells):
    sides = (f"{'<' if width < 0 else '>'}{abs(width)}" for _, _, width, _ in COLUMNS)
    return "".join(format(cell, side) for cell, side in zip(cells, sides, strict=True))


def parsed():
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("problems", nargs="*", metavar="PROBLEM", help="by default all")
    parser.add_argument(
        "--repetitions", type=int, metavar="R", help="of every row, for a quick run"
    )
    parser.add_argument("--processes", type=int, default=2, help="by default 2, one thread each")
    parser.add_argument("--json", type=Path, metavar="FILE", help="the rows as lines of JSON too")
    given = parser.parse_args()
    if unknown := set(given.problems) - set(PROBLEMS):
        parser.error(
            f"no such problem: {', '.join(sorted(unknown))}; there are: {', '.join(PROBLEMS)}"
        )
    for name in ("repetitions", "processes"):
        number = getattr(given, name)
        if number is not None and number < 1:
            parser.error(f"--{name} is {number}; it must be at least 1")
    return given


def main():
    given = parsed()
    python = python_of("emukit")
    if python is None:
        print("emukit could not be installed and is left out", file=sys.stderr)
    os.environ.update(THREADS)  # of the processes below, which load numpy themselves
    rows = []
    counts = " and ".join(
        f"{given.repetitions or own} at n = {n}" for n, own in REPETITIONS.items()
    )
    print("Root mean squared errors in standard deviations of f, by 2^14 Sobol points, over")
    print(f"{counts}. ARD: emukit with a length-scale for each input. ratio: bqlib / Sobol.")
    print(
        "plain: the same, of errors in units of f. covered: by 95 % intervals. seconds: median of"
    )
    print("one estimate. warned: share of the estimates of bqlib that came with a warning.")
    print(aligned(heading for _, heading, _, _ in COLUMNS), flush=True)
    with ProcessPoolExecutor(given.processes, mp_context=get_context("spawn")) as pool:
        for name in given.problems or PROBLEMS:
            for n, repetitions in REPETITIONS.items():
                repetitions = range(given.repetitions or repetitions)
                found = list(pool.map(partial(estimate, name, n), repetitions))
                rivals = {}
                if python is not None and found[0]["box"] is not None:
                    parts = in_parts(found, given.processes)
                    theirs = np.concatenate(list(pool.map(partial(emukit, python), parts)))
                    rivals = {"emukit": theirs[:, 0].T, "emukit_ard": theirs[:, 1].T}
                rows.append(figures(name, n, found, rivals))
                print(line(rows[-1]), flush=True)
    print_summary(rows)
    if given.json:
        given.json.write_text("".join(json.dumps(row) + "\n" for row in rows), encoding="utf-8")


def print_summary(rows):
    def of(row):
        return f"{row['problem']}, n = {row['n']}"

    good = sum(row["ratio"] <= 1 for row in rows)
    worst = max(rows, key=lambda row: row["ratio"])
    least = min(rows, key=lambda row: row["covered"])
    number = sum(row["repetitions"] for row in rows)
    covered = sum(row["covered"] * row["repetitions"] for row in rows) / number
    print(f"\nbqlib has at most the error of Sobol in {good} of {len(rows)} rows.")
    print(f"Largest ratio: {worst['ratio']:.2f} ({of(worst)}).")
    print(f"Covered: {covered:.1%} of {number}; least {least['covered']:.0%} ({of(least)}).")
    for what, meaning in (
        ("failed", "raised an error; its figures leave these out"),
        ("without_interval", "had a variance of zero or below, by rounding, which covers nothing"),
    ):
        keys = (f"{rival}_{what}" for rival in ("emukit", "emukit_ard"))
        if count := sum(row.get(key, 0) for key, row in product(keys, rows)):
            print(f"Estimates of emukit that {meaning}: {count}.")


if __name__ == "__main__":
    main()
