"""What a sweep has done, and what the rest will cost, before it is spent."""

import time
from collections import defaultdict
from dataclasses import dataclass, replace
from statistics import fmean

import numpy as np

from bqlib.results.blocks import blocks_of
from bqlib.results.text import aligned, duration
from bqlib.studies.cost import peak_bytes

PYTHON_BYTES = 200e6  # of a worker with its libraries, before it has work
CALIBRATION_SECONDS = 0.2  # of the shortest run that is trusted
MOST_MEASURED = 60  # rows of a sweep; more would take minutes
SMALLEST_N, SMALLEST_POOL = 8, 64


@dataclass(frozen=True)
class Cost:
    """Cost of one trial.

    Attributes
    ----------
    seconds : float
    bytes : float
        Largest memory that it holds.
    measured : bool
        Whether the seconds are those of finished trials, and not of smaller ones.
    """

    seconds: float
    bytes: float
    measured: bool


@dataclass(frozen=True)
class Row:
    """One algorithm on one pair of target and kernel, over all length-scales.

    Attributes
    ----------
    target, kernel, algorithm : str
    done, failed, missing : int
        Trials. Those that failed are done, too; so are those that pieces of other blocks hold.
        Those that another sweep or other code made are missing.
    cost : Cost or None
        Of one trial, where some are missing.
    problem : str
        Why a small trial failed, so that there is no cost; else empty.
    """

    target: str
    kernel: str
    algorithm: str
    done: int
    failed: int
    missing: int
    cost: Cost | None
    problem: str = ""


def plan(experiment, results):
    """Count the trials of a sweep, and estimate what the missing ones cost on this machine.

    Parameters
    ----------
    experiment : bqlib.sweep.experiment.Experiment
    results : Path
        Its folder of results; need not exist.

    Returns
    -------
    list of Row

    Notes
    -----
    Where trials of a row are finished, theirs is the time. Else, a smaller trial is run here, and
    one each with twice its points and twice its pool; time and memory are taken to be powers of
    both numbers. A row whose small trial fails has no cost, but says why. Of many rows, some of
    each algorithm are measured, and the others get the mean of these.
    On the paper's sweep this takes seconds, and is right to within a factor of 2.
    """
    groups = defaultdict(list)
    for block in blocks_of(experiment, results):
        cell = block.cell
        groups[cell.target, cell.kernel, cell.algorithm].append(block)
    measured = set(_measured(groups))
    rows = [_row(experiment, *key, blocks, key in measured) for key, blocks in groups.items()]
    known = defaultdict(list)
    for row in rows:
        if row.cost and row.cost.bytes:
            known[row.algorithm].append(row.cost)
    return [_with_means(row, known[row.algorithm]) for row in rows]


def _measured(groups):
    """Which rows are measured: all, or some of each algorithm, far apart in the sweep."""
    of_algorithm = defaultdict(list)
    for key, blocks in groups.items():
        if any(block.missing for block in blocks):
            of_algorithm[key[-1]].append(key)
    each = max(1, MOST_MEASURED // max(1, len(of_algorithm)))
    for keys in of_algorithm.values():
        step = max(1.0, len(keys) / each)
        yield from (keys[int(i * step)] for i in range(min(each, len(keys))))


def _with_means(row, costs):
    """A row that was not measured, with what is known of those of its algorithm that were."""
    if row.problem or not row.missing or not costs or (row.cost and row.cost.bytes):
        return row
    mean = Cost(fmean(c.seconds for c in costs), max(c.bytes for c in costs), measured=False)
    return replace(row, cost=replace(row.cost, bytes=mean.bytes) if row.cost else mean)


def _row(experiment, target, kernel, algorithm, blocks, measured):
    seconds = [one for block in blocks for one in block.seconds.values()]
    failed = sum(len(block.failed) for block in blocks)
    missing = sum(len(block.missing) for block in blocks)
    cost, problem = None, ""
    if missing and seconds and not measured:
        cost = Cost(fmean(seconds), 0.0, measured=True)
    elif missing and measured:
        unfinished = [block.cell for block in blocks if block.missing]
        try:
            cost = estimate(experiment.spec(unfinished[-1]))
        except MemoryError:
            problem = (
                "even a small part of a trial takes more memory than this machine has: ask for "
                "fewer points, candidates or functions"
            )
        except Exception as error:  # a plug-in may raise any, and other rows can still be told
            problem = f"{type(error).__name__}: {' '.join(str(error).split())}".removesuffix(": ")
        if seconds and cost:
            cost = replace(cost, seconds=fmean(seconds), measured=True)
    trials = len({block.cell for block in blocks}) * experiment.seeds
    return Row(target, kernel, algorithm, trials - missing, failed, missing, cost, problem)


def estimate(spec):
    """Cost of one trial of `spec`, from runs of smaller ones in this process."""
    n, pool = spec.n, spec.candidates.size
    for part in (32, 16, 8, 4, 2, 1):
        small_n = max(n // part, min(n, SMALLEST_N))
        small_pool = max(pool // part, min(pool, max(SMALLEST_POOL, 2 * small_n)))
        if _seconds(spec, small_n, small_pool) > CALIBRATION_SECONDS:
            break
    sizes = [
        (small_n, small_pool),
        (min(2 * small_n, n), small_pool),
        (small_n, min(2 * small_pool, pool)),
    ]
    whole = [_power_law(measure, spec, sizes) for measure in (_seconds, _bytes)]
    return Cost(whole[0], PYTHON_BYTES + whole[1], measured=False)


def _power_law(measure, spec, sizes):
    """A measure of the whole trial, from those of three sizes: c n^a M^b, a and b not negative."""
    (n, pool), (twice_n, _), (_, twice_pool) = sizes
    base, with_n, with_pool = (max(measure(spec, *size), 1e-9) for size in sizes)
    found = base
    if twice_n > n:
        found *= (spec.n / n) ** max(0.0, np.log(with_n / base) / np.log(twice_n / n))
    if twice_pool > pool:
        power = max(0.0, np.log(with_pool / base) / np.log(twice_pool / pool))
        found *= (spec.candidates.size / pool) ** power
    return float(found)


def _seconds(spec, n, pool):
    """Seconds of a small trial; the least of some where it is short."""
    smaller = _smaller(spec, n, pool)
    start, found = time.perf_counter(), []
    while not found or (len(found) < 5 and time.perf_counter() - start < CALIBRATION_SECONDS):
        found.append(smaller.run(0)[1])
    return min(found)


def _bytes(spec, n, pool):
    """Peak of the memory that a small trial allocates."""
    return peak_bytes(_smaller(spec, n, pool).run, 0)


def _smaller(spec, n, pool):
    algorithm = spec.algorithm
    if algorithm.sizes:  # most of the time is that of the largest
        algorithm = replace(algorithm, sizes=(n,))
    smaller = replace(spec.candidates, size=pool)
    return replace(spec, n=n, candidates=smaller, algorithm=algorithm)


def as_text(rows, workers):
    """Rows as a table for a terminal, with the total time on a number of workers."""
    words, counts = ("target", "kernel", "algorithm"), ("done", "failed", "missing")
    lines = []
    for row in rows:
        costs = {"s/trial": "", "time": "", "GB": ""}
        if row.cost is not None:
            sign = "" if row.cost.measured else "~"
            costs = {
                "s/trial": f"{sign}{row.cost.seconds:.3g}",
                "time": duration(row.missing * row.cost.seconds),
                "GB": f"{row.cost.bytes / 1e9:.2g}",
            }
        lines.append({name: getattr(row, name) for name in (*words, *counts)} | costs)
    table = aligned(lines, (*counts, "s/trial", "time", "GB"))
    return "\n".join([table, *totals(rows, workers)])


def totals(rows, workers=1):
    """Lines that tell of all rows: counts, why small trials failed, time and memory."""
    missing = sum(row.missing for row in rows)
    told = [
        f"{sum(row.done for row in rows)} trials done ({sum(row.failed for row in rows)} of them "
        f"failed), {missing} missing"
    ]
    problems = [row for row in rows if row.problem]
    told += [
        f"{row.target}, {row.kernel}, {row.algorithm}: a small trial failed: {row.problem}"
        for row in problems
    ]
    unfinished = [row for row in rows if row.cost]
    if unfinished:
        seconds = sum(row.missing * row.cost.seconds for row in unfinished)
        gigabytes = max(row.cost.bytes for row in unfinished) / 1e9
        shared = f", {duration(seconds / workers)} on {workers} workers" if workers > 1 else ""
        told.append(
            f"{'other ' if problems else ''}missing trials: about {duration(seconds)} on one "
            f"core like those of this machine{shared}; {gigabytes:.2g} GB for each worker"
        )
    return told
