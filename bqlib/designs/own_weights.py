"""Weights that a design found together with its points."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from bqlib.arrays import Array, read_only, with_read_only_arrays
from bqlib.checks import checked_values
from bqlib.embeddings.embedding import Embedding, points_of
from bqlib.weights import PrefixWeights


@dataclass(frozen=True, eq=False)
class OwnWeights:
    """The `rule` of a design whose weights were found with its points, such as recombination.

    Attributes
    ----------
    weights : ndarray, shape (n,)
        In the order of the points; read-only.

    Raises
    ------
    ValueError
        If weights are not finite numbers. If it is called with another number of points: weights
        that belong to all points together say nothing of some of them.

    Notes
    -----
    Row m of the matrix has the first m weights, as they are. O(n^2) time and memory.

    Examples
    --------
    >>> from bqlib import Brownian, Design, Uniform, embed
    >>> from bqlib.designs.own_weights import OwnWeights
    >>> embedding = embed(Brownian(), Uniform([0], [1]))
    >>> Design(embedding, [[0.25], [0.75]], OwnWeights([0.5, 0.5])).weights
    array([0.5, 0.5])
    """

    weights: Array

    def __post_init__(self) -> None:
        given = checked_values(self.weights, np.size(self.weights), "weights")
        object.__setattr__(self, "weights", read_only(given.copy()))

    __setstate__ = with_read_only_arrays

    @property
    def __name__(self) -> str:
        return "own"

    def __call__(self, embedding: Embedding, points: ArrayLike) -> PrefixWeights:
        """The weights, of exactly as many points."""
        n = len(points_of(embedding, points))
        if n != len(self.weights):
            raise ValueError(
                f"there are {n} points, but the design has weights for {len(self.weights)}, which "
                "belong to all of them together: pass a rule, such as rule=bqlib.weights.bq"
            )
        return PrefixWeights(np.tril(np.ones((n, n))) * self.weights)


def own(embedding: Embedding, points: ArrayLike) -> PrefixWeights:
    """The weights that a design found with its points: those of its own rule.

    In a sweep, and in :func:`bqlib.curves`, it stands for the rule of each design.

    Parameters
    ----------
    embedding : Embedding
    points : array_like, shape (n, d)

    Returns
    -------
    PrefixWeights
        Never: points alone do not tell what the weights of their design are.

    Raises
    ------
    TypeError
        Always.

    Notes
    -----
    O(n^2) time and memory in a sweep, if the design found weights with its points; the cost of its
    rule otherwise.

    Examples
    --------
    >>> import bqlib
    >>> square = bqlib.Uniform([0, 0], [1, 1])
    >>> found = {"name": "fw", "design": "frank_wolfe", "weights": "own"}
    >>> options = {"n": 5, "seeds": 1, "candidates": bqlib.Candidates(100), "progress": False}
    >>> curves = bqlib.curves(square, bqlib.Brownian(), [found, "frank_wolfe"], **options)
    >>> bool((curves.mmd[..., 0, :, :] == curves.mmd[..., 1, :, :]).all())
    True
    """
    raise TypeError(
        "own weights are those of a design's rule, which points alone do not tell: use "
        "design.weights, or another rule, such as bqlib.weights.bq"
    )
