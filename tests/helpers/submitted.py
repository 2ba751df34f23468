"""Submissions and sweeps of problems of the suite, small ones, that tests make."""

from pathlib import Path

import numpy as np

from bqlib.streams import stream
from bqlib.suite.submission import write_submission
from bqlib.sweep import shipped
from bqlib.sweep.file import checked

ABOUT = {
    "method": "halves",
    "version": "1.0",
    "authors": ["A. Author", "B. Author"],
    "citation": "Author and Author, 2026",
    "licence": "CC-BY-4.0",
    "code": "https://example.org/halves",
    "machine": "a laptop",
    "seconds": 12.5,
    "information": ["z", "pool"],
    "suite": "bqbench-1",
    "kind": "set",
    "weights": "uniform",
}


def write(folder, sets, **about):
    """Write a submission with this content of ``submission.json``."""
    return write_submission(folder, ABOUT | about, sets)


def sweep_of(problems, algorithms, seeds=2, name="small"):
    """A checked sweep of problems."""
    tree = {"name": name, "problems": problems, "algorithms": algorithms, "seeds": seeds}
    return checked(tree, Path(), shipped.TARGETS, str, {(): 1})


def design_of(spec, seed, n):
    """The design that a trial of a sweep measures at n, whose first points it may be."""
    target, kernel = spec.build()
    design, _ = spec.algorithm.build()
    pool = spec.candidates.draw(target, stream("candidates", seed))
    rng = stream(f"design/{design.__name__}", seed)
    return design(target, kernel, n, rng=rng, candidates=pool)


def prefixes(points, matrix):
    """(points, weights) of every prefix of a sequence."""
    return [(points[:n], matrix[n - 1, :n]) for n in range(1, len(matrix) + 1)]


def close(ours, theirs, prior_variance):
    """Whether MMDs are equal to 1e-12 of the MMD of no points."""
    ours, theirs = np.asarray(ours), np.asarray(theirs)
    same = np.isnan(ours) == np.isnan(theirs)
    return bool(same.all() and np.nanmax(np.abs(ours - theirs)) <= 1e-12 * np.sqrt(prior_variance))
