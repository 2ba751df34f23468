"""What designs share that move all the points of another one."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike

from bqlib.arrays import Array, Seed
from bqlib.designs.design import Design, Pool
from bqlib.designs.sbq import sbq
from bqlib.discrepancy import mmd2
from bqlib.embeddings import Embedding, in_standard
from bqlib.kernels import Kernel
from bqlib.targets import Target

# The embedding in which points move, the points (n, d) and how many of the first stay: to where
# the points moved, and why they stop there, empty at a minimum.
Move = Callable[[Embedding, Array, int], tuple[Array, str]]


def moved_from_sbq(
    target: Target,
    kernel: Kernel,
    n: int,
    rng: Seed,
    candidates: Pool,
    initial: ArrayLike | None,
    move: Move,
) -> Design:
    """The points of SBQ after `move`, in the order in which SBQ would pick them."""
    start = sbq(target, kernel, n, rng=rng, candidates=candidates, initial=initial)
    kept = 0 if initial is None else len(np.asarray(initial))

    def in_order(points: Array) -> Design:
        first, rest = points[:kept], points[kept:]
        return sbq(target, kernel, len(points), rng=rng, candidates=rest, initial=first)

    return moved_from(start, "sbq", kept, move, in_order)


def moved_from(
    start: Design, name: str, kept: int, move: Move, made_of: Callable[[Array], Design]
) -> Design:
    """The design that `made_of` makes of the moved points of `start`, or `start` if it is better.

    The first `kept` points do not move. `name` is the rule that made the start. `stop` has the
    reasons of the start, of the move and of the new design.
    """
    if len(start.points) == kept or not start.weights.any():
        return start
    before = mmd2(start.embedding, start.points, start.weights)
    if np.isnan(before):
        return _stopped(start, start.stop, "no point was moved: the MMD is below rounding")
    inner, to_inner, back = in_standard(start.embedding)
    points, ended = move(inner, to_inner(start.points), kept)
    points = np.concatenate([start.points[:kept], back(points[kept:])])
    moved = replace(made_of(points), rows=None)  # they are those of the moved points themselves
    after = mmd2(moved.embedding, moved.points, moved.weights)
    if not after <= before:
        reason = f"these are the points of {name}, as none better was found"
        return _stopped(start, start.stop, reason)
    return _stopped(moved, start.stop, moved.stop, ended)


def _stopped(design: Design, *reasons: str) -> Design:
    stop = "; ".join(reason for reason in reasons if reason)
    return replace(design, stop=stop)
