"""Submissions and sweeps of problems of the suite, small ones, that tests make."""

import json
import os
import re
from pathlib import Path

import numpy as np
import pytest

from bqlib.results import store
from bqlib.results.layout import Layout, piece_name
from bqlib.results.pieces import encode_piece
from bqlib.results.text import failure_of
from bqlib.streams import stream
from bqlib.suite.mistakes import SubmissionError
from bqlib.suite.submission import read_submission, write_submission
from bqlib.sweep import shipped
from bqlib.sweep.file import checked

HEAD = "problem,seed,n,index,x_1,x_2,weight"  # of sets with weights of their own
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


def run(experiment, folder, trials=None):
    """Write what a run of a sweep leaves; `trials` are those that were computed already.

    Their keys are algorithm, problem and seed.
    """
    at = Layout(folder)
    for cell in experiment.cells():
        spec = experiment.spec(cell)
        made = [
            trials[cell.algorithm, cell.target, seed] if trials else attempt(spec, seed)
            for seed in range(experiment.seeds)
        ]
        piece = at.piece(piece_name(cell, (0, experiment.seeds - 1)))
        piece.parent.mkdir(parents=True)
        piece.write_bytes(encode_piece(spec, range(experiment.seeds), made))
    store.gather(experiment, folder)


def attempt(spec, seed):
    """Curves of a trial, or why it failed."""
    try:
        return spec.run(seed)[0]
    except (TypeError, ValueError) as error:
        return failure_of(error)


MESSAGE = re.compile(r"(submission\.json|points\.csv)(:[1-9]\d*)?: .+|and \d+ more")


def sets_of(weights):
    """Small point sets of three problems, two seeds and two n."""
    rng = np.random.default_rng(1)
    return [
        (name, seed, rng.uniform(0, 1, (n, dim)), *([rng.normal(size=n)] if weights else []))
        for name, dim in (("box_1d_brownian", 1), ("normal_2d_eq", 2), ("banana_stein", 2))
        for seed in range(2)
        for n in (3, 5)
    ]


def rows(folder):
    return (folder / "points.csv").read_text().split("\n")


def put(folder, lines):
    (folder / "points.csv").write_text("\n".join(lines))


def said(folder):
    """What is said of a submission that is refused."""
    with pytest.raises(SubmissionError) as refused:
        read_submission(folder)
    assert all(map(MESSAGE.fullmatch, refused.value.problems))
    assert str(refused.value) == "\n".join(refused.value.problems)
    return refused.value.problems


def numbers(submission):
    """All that scores depend on."""
    return [
        (name, seed, n, found.points.tolist(), None if found.weights is None else [*found.weights])
        for name, seeds in submission.sets.items()
        for seed, sets in seeds.items()
        for n, found in sets.items()
    ]


def tree_of(folder):
    """Every path below a folder with what tells a change of it."""
    return {
        str(path.relative_to(folder)): (os.lstat(path).st_mode, os.lstat(path).st_mtime_ns)
        for path in sorted(folder.rglob("*"))
    }


def change(folder, **about):
    file = folder / "submission.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | about))
