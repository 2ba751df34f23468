"""What all design rules share: how they are called and what they return."""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from bqlib.candidates import Candidates
from bqlib.embeddings import Embedding, embed


@dataclass(frozen=True, eq=False)
class Design:
    """An ordered sequence of points for one (kernel, target) pair.

    Attributes
    ----------
    embedding : Embedding
        The pair the points were made for.
    points : ndarray, shape (n, d)
        In the order they were picked: the first m are the design of size m.
    rule : callable
        The weight rule that goes with the points: a function of :mod:`bqlib.weights`.
    stop : str
        Empty, or why there are fewer points than were asked for.
    """

    embedding: Embedding
    points: np.ndarray
    rule: Callable
    stop: str = ""

    @cached_property
    def weights(self):
        """Weights of the points by `rule`, shape (n,)."""
        return self.rule(self.embedding, self.points).final(len(self.points))


@dataclass(frozen=True, eq=False)
class Request:
    """The checked arguments of a design.

    Attributes
    ----------
    embedding : Embedding
    n : int
        Number of points, `initial` included.
    initial : ndarray, shape (m, d)
        Points to start from, m < n.
    pool : ndarray, shape (M, d), or None
        The candidates of every step, or None where each step draws its own.
    candidates : Candidates or None
        How a step draws its own.
    rng : numpy.random.Generator
    """

    embedding: Embedding
    n: int
    initial: np.ndarray
    pool: np.ndarray | None
    candidates: Candidates | None
    rng: np.random.Generator

    def fresh_pool(self):
        """Candidates for one step, shape (M, d)."""
        return self.candidates.draw(self.embedding.target, self.rng)


def checked_request(target, kernel, n, rng, candidates, initial):
    """Check the arguments that all designs share; draw the pool where it is fixed.

    Raises
    ------
    ValueError, TypeError
        Saying what is wrong with which argument.
    """
    embedding = embed(kernel, target)
    rng = np.random.default_rng(rng)
    initial = np.empty((0, target.dim)) if initial is None else np.array(initial, dtype=float)
    if initial.ndim != 2 or initial.shape[1] != target.dim:
        raise ValueError(f"initial has shape {initial.shape}; it must be (m, {target.dim})")
    if not np.isfinite(initial).all():
        raise ValueError("initial holds NaN or infinity")
    if n <= len(initial):
        raise ValueError(f"n is {n}; it must be at least {len(initial) + 1}, one above initial")
    if isinstance(candidates, Candidates) and candidates.fresh:
        return Request(embedding, n, initial, None, candidates, rng)
    if isinstance(candidates, Candidates):
        pool = candidates.draw(target, rng)
    else:
        pool = np.array(candidates, dtype=float)
    if pool.ndim != 2 or pool.shape[1] != target.dim:
        raise ValueError(f"candidates have shape {pool.shape}; it must be (M, {target.dim})")
    if not np.isfinite(pool).all():
        raise ValueError("candidates hold NaN or infinity")
    if n - len(initial) > len(pool):
        raise ValueError(f"n is {n}, more than {len(initial)} initial and {len(pool)} candidates")
    return Request(embedding, n, initial, pool, None, rng)
