"""Rules that look at the first 10 n or n^2 candidates of a pool, so that it grows with n.

A sweep has one pool for all its sizes. These rules take from it the pools with which Hayakawa,
Oberhauser and Lyons (2022) compare rules. A design of n points is no part of a larger one, as
their pools differ: all are sets.
"""

from __future__ import annotations

from typing import Any

from bqlib.arrays import Seed
from bqlib.candidates import Candidates
from bqlib.checks import checked_points, checked_rng
from bqlib.designs.design import Design, Pool, point_set, requires
from bqlib.designs.halving import requires_pool
from bqlib.designs.herding import herding
from bqlib.designs.omp import omp
from bqlib.designs.recombination import recombination
from bqlib.designs.sbq import sbq
from bqlib.kernels import Kernel
from bqlib.targets import Target

DRAWS = 10  # candidates for each point


def requires_10n(
    target: Target, kernel: Kernel, n: int, *, candidates: Candidates, **parameters: Any
) -> None:
    """Raise a ValueError unless the pool stays the same and has 10 n candidates."""
    requires_pool(target, kernel, n, candidates=candidates)
    _enough(candidates.size, DRAWS * n, n)


def requires_n2(
    target: Target, kernel: Kernel, n: int, *, candidates: Candidates, **parameters: Any
) -> None:
    """Raise a ValueError unless the pool stays the same and has n^2 candidates."""
    requires_pool(target, kernel, n, candidates=candidates)
    _enough(candidates.size, n * n, n)


@point_set
@requires(requires_10n)
def herding_from_10n(
    target: Target, kernel: Kernel, n: int, *, rng: Seed, candidates: Pool = Candidates()
) -> Design:
    """The points of herding among the first 10 n candidates."""
    return _made(herding, DRAWS * n, target, kernel, n, rng, candidates)


@point_set
@requires(requires_10n)
def omp_from_10n(
    target: Target, kernel: Kernel, n: int, *, rng: Seed, candidates: Pool = Candidates()
) -> Design:
    """The points of orthogonal matching pursuit among the first 10 n candidates."""
    return _made(omp, DRAWS * n, target, kernel, n, rng, candidates)


@point_set
@requires(requires_10n)
def sbq_from_10n(
    target: Target, kernel: Kernel, n: int, *, rng: Seed, candidates: Pool = Candidates()
) -> Design:
    """The points of SBQ among the first 10 n candidates."""
    return _made(sbq, DRAWS * n, target, kernel, n, rng, candidates)


@point_set
@requires(requires_10n)
def recombination_from_10n(
    target: Target, kernel: Kernel, n: int, *, rng: Seed, candidates: Pool = Candidates()
) -> Design:
    """Recombination of the first 10 n candidates."""
    return _made(recombination, DRAWS * n, target, kernel, n, rng, candidates)


@point_set
@requires(requires_n2)
def recombination_of_n2(
    target: Target, kernel: Kernel, n: int, *, rng: Seed, candidates: Pool = Candidates()
) -> Design:
    """Recombination of the first n^2 candidates, whose mean of the features it keeps."""
    return _made(recombination, n * n, target, kernel, n, rng, candidates, mean="pool")


def _made(
    rule: Any,
    size: int,
    target: Target,
    kernel: Kernel,
    n: int,
    rng: Seed,
    candidates: Pool,
    **options: Any,
) -> Design:
    rng = checked_rng(rng)
    if isinstance(candidates, Candidates):
        requires_pool(target, kernel, n, candidates=candidates)
        candidates = candidates.draw(target, rng)
    pool = checked_points(candidates, target.dim, "candidates")
    _enough(len(pool), size, n)
    made: Design = rule(target, kernel, n, rng=rng, candidates=pool[:size], **options)
    return made


def _enough(size: int, needed: int, n: int) -> None:
    if size < needed:
        raise ValueError(f"n = {n} takes {needed} candidates, but there are {size}: use more")
