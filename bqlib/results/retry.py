"""Retry: which files of results are outdated, and deleting files so that a run recomputes them."""

import json

from bqlib.results.files import read_head
from bqlib.results.layout import (
    CURVES,
    MANIFEST,
    PROVENANCE,
    Layout,
    path_of_head,
    path_of_piece,
    path_of_study,
    path_of_timing,
    piece_at,
    piece_name,
    store_at,
)
from bqlib.results.timings import digest_of

# How the reasons of failures begin that may not come again.
OUT_OF_MEMORY, WORKER_DIED = "out of memory", "the worker died"


def may_pass(reason):
    """Whether a trial that failed for this reason may succeed when it is run again as it is.

    Examples
    --------
    >>> may_pass("out of memory: 3 GB"), may_pass("ValueError: no")
    (True, False)
    """
    return reason.startswith((OUT_OF_MEMORY, WORKER_DIED))


def advice(reasons, results):
    """Whether trying failed trials again can help, and how, as sentences.

    Parameters
    ----------
    reasons : iterable of str
        Why each trial failed, as results hold it.
    results : path-like

    Returns
    -------
    list of str
    """
    reasons = list(reasons)
    lost = sum(map(may_pass, reasons))
    certain = len(reasons) - lost
    told = []
    if lost:
        told.append(
            f"{lost} of {len(reasons)} failed trials ran out of memory or lost their workers: to "
            f"try again, perhaps with more memory in the site file: bqlib retry {results}, then "
            "the same command again"
        )
    if certain:
        told.append(
            f"{certain} of {len(reasons)} failed trials ended with an error of their own: they "
            "fail again as long as sweep and code are the same, and bqlib retry does not help. "
            "Change the sweep or the code, then give the same command again"
        )
    return told


def outdated(results, experiment):
    """Finished files that another sweep or other code made, by their records.

    Parameters
    ----------
    results : path-like
    experiment : bqlib.sweep.experiment.Experiment

    Returns
    -------
    list of str
        Paths below the results, only of files that the sweep asks for.
    """
    at, paths = Layout(results), []
    for cell in experiment.cells():
        digest = experiment.spec(cell).digest
        for block in experiment.blocks():
            piece = piece_name(cell, block)
            if at.piece(piece).exists() and digest_of(results, piece) not in (digest, None):
                paths.append(path_of_piece(piece))
    for name in experiment.studies:
        attributes = _attributes(at.study(name))
        if attributes and attributes.get("digest") != experiment.study(name).digest:
            paths.append(path_of_head(path_of_study(name)))
    attributes = _attributes(at.curves)
    if attributes and json.loads(attributes.get("config", "{}")) != experiment.canonical():
        paths.append(path_of_head(CURVES))
    return paths


def _attributes(store):
    """Attributes of a store; none if it is missing or damaged."""
    try:
        return read_head(store).get("attributes", {})
    except (OSError, ValueError):
        return {}


def delete(results, paths):
    """Delete files of results so that the next run recomputes them.

    For a store, only the head is deleted; for a piece, also its timings and the head of the curves.
    The manifest and the provenance are always deleted: else Snakemake would start no job.

    Parameters
    ----------
    results : path-like
    paths : iterable of str
        Below the results.

    Returns
    -------
    int
        How many files were deleted.
    """
    at, gone = Layout(results), set()
    for path in paths:
        piece, store = piece_at(path), store_at(path)
        if piece is not None:
            gone |= {path_of_piece(piece), path_of_timing(piece), path_of_head(CURVES)}
        else:
            gone.add(path if store is None else path_of_head(store))
        gone |= {MANIFEST, PROVENANCE}
    there = [path for path in map(at.file, gone) if path.exists()]
    for path in there:
        path.unlink()
    return len(there)
