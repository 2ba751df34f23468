"""Blocks of seeds: what is there of each piece that a sweep asks for, and what must be computed.

Trials do not depend on their block. A block that is not there takes over the trials of the blocks
that an earlier run of the sweep made with other seeds or another ``seeds_per_job``.
"""

from dataclasses import dataclass

from bqlib.results.layout import Layout, job_name, piece_name, seeds_of
from bqlib.results.timings import digest_of, read_timing, timed_pieces
from bqlib.sweep.spec import Cell


@dataclass(frozen=True)
class Block:
    """What is there of a piece.

    Attributes
    ----------
    cell : bqlib.sweep.spec.Cell
    piece : str
        Name of the piece.
    there : bool
        Whether it is finished, and made by this sweep and this code.
    outdated : bool
        Whether another sweep or other code made what is there in its place.
    seconds : dict of int to float
        Seed to seconds of the trials that succeeded, in this piece or in those it takes over.
    failed : dict of int to str
        Seed to why the trial of this piece failed.
    missing : list of int
        Seeds that must be computed.
    """

    cell: Cell
    piece: str
    there: bool
    outdated: bool
    seconds: dict[int, float]
    failed: dict[int, str]
    missing: list[int]


def blocks_of(experiment, results):
    """The blocks of a sweep, those of a cell together.

    Parameters
    ----------
    experiment : bqlib.sweep.experiment.Experiment
    results : path-like
        Its folder of results; need not exist.

    Yields
    ------
    Block
    """
    at = Layout(results)
    for cell in experiment.cells():
        digest, others = experiment.spec(cell).digest, None
        for first, last in experiment.blocks():
            piece = piece_name(cell, (first, last))
            exists = at.piece(piece).exists()
            if exists and digest_of(results, piece) in (digest, None):
                yield Block(cell, piece, True, False, *read_timing(results, piece), [])
                continue
            if others is None:
                others = _seconds_of(results, cell, digest)
            seeds = range(first, last + 1)
            seconds = {seed: others[seed] for seed in seeds if seed in others}
            missing = [seed for seed in seeds if seed not in others]
            yield Block(cell, piece, False, exists, seconds, {}, missing)


def _seconds_of(results, cell, digest):
    """Seed to seconds of all trials of a cell that pieces of a digest hold."""
    seconds = {}
    for piece in timed_pieces(results, cell):
        if digest_of(results, piece) == digest and Layout(results).piece(piece).exists():
            seconds |= read_timing(results, piece)[0]
    return seconds


def remove_superseded(experiment, results):
    """Remove pieces of blocks that the sweep no longer has, where its own pieces hold all trials.

    A piece stays where it holds a seed that the sweep does not ask for, or a trial that succeeded
    and has failed since.

    Parameters
    ----------
    experiment : bqlib.sweep.experiment.Experiment
    results : path-like
        The experiment's folder of results.
    """
    at, own = Layout(results), {}
    for block in blocks_of(experiment, results):
        own.setdefault(block.cell, []).append(block)
    for cell, blocks in own.items():
        names = {block.piece for block in blocks}
        # The timings of a piece outlive it: what a killed run has left is removed as well.
        others = [piece for piece in timed_pieces(results, cell) if piece not in names]
        there = [block for block in blocks if block.there]
        held = {seed for block in there for seed in seeds_of(block.piece)}
        succeeded = {seed for block in there for seed in block.seconds}
        for piece in others:
            seeds, seconds = seeds_of(piece), read_timing(results, piece)[0]
            same = digest_of(results, piece) == experiment.spec(cell).digest
            if same and seeds and held.issuperset(seeds) and succeeded.issuperset(seconds):
                name = job_name(piece)
                for path in (at.piece(piece), at.log(name), at.benchmark(name), at.timing(piece)):
                    path.unlink(missing_ok=True)
