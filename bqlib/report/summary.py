"""What a folder of results holds, as plain data: for the report and for ``bqlib show``."""

import csv
import json
import re
from collections import defaultdict
from itertools import product
from statistics import median

import numpy as np

from bqlib.analysis.fits import rate_rows
from bqlib.analysis.paper import papers_cell
from bqlib.report.findings import best_rows, best_rules, headline
from bqlib.report.profiles import in_words, profile_rows
from bqlib.results.damage import is_there, read_object
from bqlib.results.layout import CLAIMS, RATES, Layout, cell_of, path_of_head
from bqlib.results.retry import advice
from bqlib.results.store import find_curves, open_curves, open_dataset
from bqlib.results.text import aligned, printable, ranges
from bqlib.results.timings import read_timing
from bqlib.results.used import timings_used
from bqlib.schema import (
    DOES_NOT_APPLY,
    FAILED,
    MISSING,
    OK,
    SWEEP_DIMS,
    problems_of,
    sizes_of_sets,
    versions,
)

MOST_SIZES = 12  # columns of a table of medians
NUMBER = re.compile(r"(?<![\w.])[-+]?\d+(?:\.\d+)?(?:e[-+]?\d+)?", re.ASCII)  # in a reason


def summary(results):
    """What a folder of results holds.

    Parameters
    ----------
    results : path-like
        The experiment's folder, with its curves.

    Returns
    -------
    dict
        As JSON may hold it:

        - title, results, versions, config;
        - labels: those of each dimension of the sweep;
        - n, seeds, candidates;
        - sets: the algorithms whose points are sets, with their sizes;
        - trials: the number of all trials, and of those that are ok, failed, missing or ended
          before n;
        - failed, ended: rows, one for each cell and reason;
        - advice: sentences on whether trying the failed trials again can help;
        - headline: a sentence, which rule has the smallest MMD;
        - best: rows, the best rule of each target, kernel and range of length-scales;
        - profile: rows of a sweep of problems, the share that each rule solves and its wins;
        - mmd: rows, medians over the seeds at some numbers of points;
        - rates: rows; none if no rates are fitted;
        - verdicts: the number of claims with each verdict; none if no claims are judged;
        - hours: of all trials, as far as they are known;
        - seconds, jobs: rows, of trials and of Snakemake's jobs.

    Raises
    ------
    FileNotFoundError, DamagedError, SchemaError
        As :func:`bqlib.open_results` does.
    """
    at = Layout(results)
    curves = open_curves(find_curves(at.folder))
    config = json.loads(curves.attrs["config"])
    problems = problems_of(curves.attrs)
    status, reason = curves["status"].values, curves["reason"].values
    cells = list(product(*(curves[name].values.tolist() for name in SWEEP_DIMS)))
    several = [len(curves[name]) > 1 for name in SWEEP_DIMS]
    labels = [
        {name: label for name, label, told in zip(SWEEP_DIMS, cell, several, strict=True) if told}
        for cell in cells
    ]
    status, reason = (values.reshape(len(cells), -1) for values in (status, reason))
    rank = curves["rank_reached"].values.reshape(len(cells), -1)
    asked = [problems.get(cell[0], {}).get("n", curves.sizes["n"]) for cell in cells]
    ended = (status == OK) & (rank < np.array(asked)[:, None])
    there = is_there(at.folder, path_of_head(RATES))
    rates = open_dataset(at.rates).load() if there else None
    judged = read_object(at.folder, CLAIMS) if is_there(at.folder, CLAIMS) else {}
    best = best_rules(curves, rates)
    return {
        "title": curves.attrs["title"],
        "results": str(at.folder),
        "labels": {name: curves[name].values.tolist() for name in SWEEP_DIMS},
        "n": curves.sizes["n"],
        "sets": sizes_of_sets(curves),
        "seeds": curves.sizes["seed"],
        "candidates": sorted({own["candidates"]["size"] for own in problems.values() or [config]}),
        "trials": {
            "all": status.size,
            "ok": int((status == OK).sum()),
            "failed": int((status == FAILED).sum()),
            "missing": int((status == MISSING).sum()),
            "inapplicable": int((status == DOES_NOT_APPLY).sum()),
            "ended": int(ended.sum()),
        },
        "failed": _reasons(labels, status == FAILED, reason),
        "advice": advice(reason[status == FAILED], at.folder),
        "ended": _reasons(labels, ended, reason),
        "headline": headline(best, papers_cell(curves)),
        "best": best_rows(best),
        "profile": in_words(profile_rows(curves)[0]) if config.get("problems") else [],
        "mmd": _medians(curves, labels, status == OK),
        "rates": rate_rows(rates) if there else [],
        "verdicts": judged.get("verdicts", {}),
        "hours": _hours(at.folder),
        "seconds": _seconds(at.folder),
        "jobs": _jobs(at.benchmarks),
        "versions": versions(curves.attrs),
        "config": config,
    }


def _reasons(labels, chosen, reason):
    """Rows of the cells with chosen trials: which seeds, and why. Numbers in reasons may differ."""
    rows = []
    for i, cell in enumerate(labels):
        groups = defaultdict(list)
        for seed in np.flatnonzero(chosen[i]):
            groups[NUMBER.sub("#", reason[i, seed])].append(int(seed))
        rows += [
            cell | {"trials": len(seeds), "seeds": ranges(seeds), "reason": _span(reason[i, seeds])}
            for seeds in groups.values()
        ]
    return rows


def _span(reasons):
    """Texts that differ in numbers alone, as one with the first and last of each number.

    Examples
    --------
    >>> from bqlib.report.summary import _span
    >>> _span(["ends at n = 9: a", "ends at n = 12: a", "ends at n = 10: a"])
    'ends at n = 9 to 12: a'
    >>> _span(["broke at -1.667", "broke at -3.012"])
    'broke at -3.012 to -1.667'
    >>> _span(["no room", "no room"])
    'no room'
    """
    numbers = [NUMBER.findall(text) for text in reasons]
    spans = (sorted(set(column), key=float) for column in zip(*numbers, strict=True))
    words = (f"{span[0]} to {span[-1]}" if len(span) > 1 else span[0] for span in spans)
    return NUMBER.sub(lambda _: next(words), reasons[0])


def _medians(curves, labels, ran):
    """Rows of the median MMD over the seeds that ran, at powers of ten and at the largest n.

    If they are few, the sizes of sets are there too. There is none if any curve ends before: the
    median of the longer curves would be too small.
    """
    largest = curves.sizes["n"]
    sizes = {10**power for power in range(9) if 10**power < largest} | {largest}
    of_sets = sizes.union(*sizes_of_sets(curves).values())
    sizes = sorted(of_sets if len(of_sets) <= MOST_SIZES else sizes)
    values = curves["mmd"].sel(n=sizes).transpose(*SWEEP_DIMS, "seed", "n").values
    rows = []
    for cell, mmd, seeds in zip(
        labels, values.reshape(len(labels), -1, len(sizes)), ran, strict=True
    ):
        found = np.median(mmd[seeds], axis=0) if seeds.any() else np.full(len(sizes), np.nan)
        words = ("-" if np.isnan(value) else f"{value:.3g}" for value in found)
        rows.append(cell | {f"n = {n}": word for n, word in zip(sizes, words, strict=True)})
    return rows


def _hours(results):
    """Hours of all trials together, whose times are known."""
    return (
        sum(
            second
            for piece in timings_used(results)
            for second in read_timing(results, piece)[0].values()
        )
        / 3600
    )


def _seconds(results):
    """Rows of the seconds of trials, by their cell."""
    groups = defaultdict(list)
    for piece in timings_used(results):
        groups[cell_of(piece)] += read_timing(results, piece)[0].values()
    told = [len({cell[i] for cell in groups}) > 1 for i in range(len(SWEEP_DIMS))]
    rows = []
    for cell, seconds in groups.items():
        if seconds:
            labels = zip(SWEEP_DIMS, cell, told, strict=True)
            rows.append(
                {name: label for name, label, several in labels if several}
                | {
                    "trials": len(seconds),
                    "median, s": f"{median(seconds):.3g}",
                    "longest, s": f"{max(seconds):.3g}",
                    "sum, s": f"{sum(seconds):.3g}",
                }
            )
    return rows


def _jobs(folder):
    """Rows of what Snakemake measured of its jobs, by their rule."""
    groups = defaultdict(list)
    for path in sorted(folder.rglob("*.tsv")):
        rule = path.relative_to(folder).parts[0].removesuffix(".tsv")
        with open(path, encoding="utf-8", newline="") as file:
            groups[rule] += csv.DictReader(file, delimiter="\t")
    rows = []
    for rule, jobs in groups.items():
        if not jobs:  # cut short by a run that was killed
            continue
        seconds, memory = ([_number(job[key]) for job in jobs] for key in ("s", "max_rss"))
        rows.append(
            {
                "job": rule,
                "jobs": len(jobs),
                "longest, s": f"{max(seconds):.1f}",
                "sum, s": f"{sum(seconds):.1f}",
                "most memory, MB": f"{max(memory):.0f}",
            }
        )
    return rows


def _number(text):
    """A number of a benchmark file; 0 if the job was too short to be measured."""
    try:
        return float(text)
    except ValueError:
        return 0.0


def as_text(about):
    """What :func:`summary` gives, as text for a terminal."""
    trials = about["trials"]
    counts = [f"{trials['ok']} of {trials['all']} trials ran"]
    counts += [f"{trials[key]} {key}" for key in ("failed", "missing") if trials[key]]
    if trials["inapplicable"]:
        counts.append(f"{trials['inapplicable']} of rules that do not apply")
    if trials["ended"]:
        counts.append(f"{trials['ended']} ended early")
    pools = " or ".join(map(str, about["candidates"]))
    labels = {**about["labels"], "n": [f"1 to {about['n']}, from {pools} candidates"]}
    labels |= {"seeds": [about["seeds"]], "trials": [", ".join(counts)]}
    if about["sets"]:
        labels["sets"] = [
            f"{name} at n = {', '.join(map(str, sizes))}" for name, sizes in about["sets"].items()
        ]
    if about["verdicts"]:
        labels["claims"] = [f"{verdict}: {count}" for verdict, count in about["verdicts"].items()]
    width = max(map(len, labels))
    parts = [
        about["title"],
        about["results"],
        "",
        *(f"{name:{width}}  {', '.join(map(str, values))}" for name, values in labels.items()),
        "",
        about["headline"],
    ]
    tables = (
        ("failed", "Failed trials"),
        ("ended", "Curves that end early"),
        ("best", "The rule with the smallest MMD at the largest n: geometric means over the seeds"),
        ("profile", "Shares of all problems, levels and seeds that are solved with n/d points"),
        ("mmd", "Median MMD over the seeds"),
        ("rates", "Convergence rates: a in n^-a and b in log MMD = A - c n^b, with 95 % intervals"),
    )
    for key, heading in tables:
        if about[key]:
            parts += ["", heading, aligned(about[key])]
            if key == "failed":
                parts += about["advice"]
    return "\n".join(map(printable, "\n".join(parts).split("\n"))) + "\n"
