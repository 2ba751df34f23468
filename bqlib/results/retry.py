"""Retry: which files of results are outdated, and deleting files so that a run recomputes them."""

import os

from bqlib.results.damage import Fault, attributes_of, damaged, json_object
from bqlib.results.files import write_atomically
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
    retried_name,
    store_at,
)
from bqlib.results.timings import digest_of, read_timing

# How the reasons of failures begin that may not come again.
OUT_OF_MEMORY, WORKER_DIED = "out of memory", "the worker died"
FAIL_AGAIN = (
    "failed trials ended with an error of their own: they fail again as long as sweep, code and "
    "what they use are the same"
)


def may_pass(reason):
    """Whether a trial that failed for this reason may succeed when it is run again as it is.

    Examples
    --------
    >>> from bqlib.results.retry import may_pass
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
            f"{certain} of {len(reasons)} {FAIL_AGAIN}. Change the sweep or the code, then give "
            f"the same command again; if the cause was outside of them: bqlib retry {results} first"
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

    Raises
    ------
    DamagedError
        If the curves do not say which sweep they are of.
    """
    at, paths = Layout(results), []
    for cell in experiment.cells():
        digest = experiment.spec(cell).digest
        for block in experiment.blocks():
            piece = piece_name(cell, block)
            if at.piece(piece).exists() and digest_of(results, piece) not in (digest, None):
                paths.append(path_of_piece(piece))
    for name in experiment.studies:
        attributes = attributes_of(at.study(name))
        if attributes and attributes.get("digest") != experiment.study(name).digest:
            paths.append(path_of_head(path_of_study(name)))
    attributes = attributes_of(at.curves)
    if attributes:
        try:
            same = experiment.is_stored_as(json_object(attributes["config"]))
        except (ValueError, KeyError, TypeError, AttributeError):
            what = "is damaged: its config is no JSON object"
            raise damaged(at.folder, [Fault(path_of_head(CURVES), what)]) from None
        if not same:
            paths.append(path_of_head(CURVES))
    return paths


def study_is_there(results, study):
    """Whether a study is finished and was made for this spec, as its digest says."""
    return attributes_of(Layout(results).study(study.name)).get("digest") == study.digest


def set_aside(results, pieces):
    """Rename pieces with failed trials, so that the next run takes over their other trials.

    Pieces stay where no trial succeeded, or where no digest says what the trials are.

    Parameters
    ----------
    results : path-like
    pieces : iterable of str
        Names of pieces, whose paths :func:`delete` should get as well: it deletes their timings.

    Returns
    -------
    int
        How many pieces were renamed.
    """
    at, renamed = Layout(results), 0
    for piece in pieces:
        if read_timing(results, piece)[0] and digest_of(results, piece):
            new = retried_name(piece)
            # The timings first: without them, nobody can tell what the piece is.
            write_atomically(at.timing(new), at.timing(piece).read_bytes())
            os.replace(at.piece(piece), at.piece(new))
            renamed += 1
    return renamed


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
