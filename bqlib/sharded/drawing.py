"""The pool that workers divide among them: it consists of blocks, each with a stream of its own."""

from dataclasses import replace

import numpy as np

from bqlib.candidates import Candidates
from bqlib.checks import checked_count, checked_rng
from bqlib.streams import stream

# Rows: so few that a step's temporary arrays stay in a processor's cache, and below the 128 kB from
# which malloc, as Dask sets it for its workers, asks the system anew for each.
BLOCK = 16_000


def draw_pool(target, candidates, rng, blocks=None):
    """The pool, or some blocks of it, as the functions below draw it.

    Parameters
    ----------
    target : Target
    candidates : Candidates
        Not fresh.
    rng : int
        Seed of the pool. A generator is refused: each block has a stream of its own.
    blocks : iterable of int, optional
        Which blocks of 16,000 candidates (default: all).

    Returns
    -------
    ndarray, shape (M, d)
        In O(M d) time and memory, if a draw takes O(d).

    Raises
    ------
    ValueError
        If candidates are fresh, or `rng` is negative.
    TypeError
        If candidates are not Candidates, `rng` is not a whole number, or the target has no draws.

    Examples
    --------
    >>> from bqlib import Candidates, Uniform
    >>> from bqlib.sharded import draw_pool
    >>> draw_pool(Uniform([0], [1]), Candidates(20_000), rng=0, blocks=[1]).shape
    (4000, 1)
    """
    check_candidates(candidates)
    seed = checked_seed(rng)
    if blocks is None:
        blocks = range(block_count(candidates))
    return np.concatenate([draw_block(target, candidates, seed, block) for block in blocks])


def draw_block(target, candidates, seed, block):
    size = min(BLOCK, candidates.size - block * BLOCK)
    rng = stream(f"candidates/block-{block}", seed)
    return replace(candidates, size=size).draw(target, rng)


def block_count(candidates):
    return -(-candidates.size // BLOCK)


def check_candidates(candidates):
    if not isinstance(candidates, Candidates):
        raise TypeError(
            f"candidates are of type {type(candidates).__name__}; the workers draw the pool, so "
            "they must be bqlib.Candidates. For points that you have, use bqlib.sbq or "
            "bqlib.herding"
        )
    if candidates.fresh:
        raise ValueError(
            "candidates.fresh is True; a pool on several workers must be fixed: use fresh=False"
        )


def checked_seed(rng):
    if isinstance(rng, np.random.Generator):
        raise TypeError(
            "rng is a Generator; the workers draw each block of the pool from a stream of its own, "
            "so it must be a seed such as rng=0"
        )
    checked_rng(rng)
    return checked_count(rng, "rng")
