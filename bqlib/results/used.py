"""Which pieces count: those of the sweep that was gathered last."""

import json

from bqlib.results.damage import read_attributes
from bqlib.results.layout import Layout, is_retried, piece_name
from bqlib.results.timings import failed_trials, timed_pieces
from bqlib.sweep.experiment import Experiment
from bqlib.sweep.spec import Algorithm


def pieces_used(results):
    """Names of the pieces that the sweep of the curves asks for; None if there are no curves.

    The folder can hold others as well: pieces of other cells, or of other blocks of seeds.
    """
    try:
        config = json.loads(read_attributes(Layout(results).curves)["config"])
        algorithms = [Algorithm(**algorithm) for algorithm in config["algorithms"]]
        sweep = Experiment(**config | {"algorithms": algorithms})
    except (OSError, ValueError, KeyError, TypeError):  # damage, which a check reports
        return None
    return {piece_name(cell, block) for cell in sweep.cells() for block in sweep.blocks()}


def timings_used(results):
    """Names of the used pieces that have a file of timings, in their order."""
    used, timed = pieces_used(results), timed_pieces(results)
    if used is None:
        return [piece for piece in timed if not is_retried(piece)]
    return [piece for piece in timed if piece in used]


def all_failed(results):
    """(piece, seed, reason) of each failed trial of the used pieces that exist."""
    at = Layout(results)
    there = (piece for piece in timings_used(results) if at.piece(piece).exists())
    return failed_trials(results, there)
