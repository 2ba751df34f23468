"""Candidates: the pools from which designs pick their points."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, fields

import numpy as np

from bqlib.answers import checked_sample
from bqlib.arrays import Array, Seed
from bqlib.checks import checked_array, checked_count, checked_number, checked_rng
from bqlib.targets import Target

SOURCES = ("target", "inflated", "box")


@dataclass(frozen=True, repr=False)
class Candidates:
    """How to draw a pool of candidate points.

    Parameters
    ----------
    size : int
        Number of candidates M (default: 10,000).
    source : {"target", "inflated", "box"}
        ``"target"`` (default): independent draws from the target. ``"inflated"``: from the target
        with every covariance multiplied by `inflation`, which covers its tails; only for a
        GaussianMixture or a Product of these. ``"box"``: uniform on `box`.
    inflation : float
        Factor on the covariances, for ``source="inflated"`` (default: 2).
    box : sequence of (float, float), optional
        Lower and upper end of each coordinate, in the units of the target, for ``source="box"``.
    fresh : bool
        False (default): one pool for the whole design. True: a new pool at each step.

    Raises
    ------
    ValueError
        If `size` is below 1, `source` is another word, `inflation` is not finite and positive, or
        `box` is not given for ``source="box"`` or is given for another source. If `box` is not
        finite, or a lower end is not below its upper end.
    TypeError
        If `size` is not a whole number, or another value is not a number.

    Notes
    -----
    A pool takes O(M d) time and memory if a draw takes O(d). With fresh pools, `sbq` and its
    relatives take O(M n^2 + M n d) time a step instead of O(M n + M d).

    Examples
    --------
    >>> from bqlib import Candidates, Uniform
    >>> Candidates(500)
    Candidates(size=500)
    >>> Candidates(3, source="box", box=[(0, 1), (5, 6)]).draw(Uniform([0, 5], [1, 6]), rng=0).shape
    (3, 2)
    """

    size: int = 10_000
    source: str = "target"
    inflation: float = 2.0
    box: Sequence[tuple[float, float]] | None = None
    fresh: bool = False

    def __post_init__(self) -> None:
        object.__setattr__(self, "size", checked_count(self.size, "size", 1))
        if self.source not in SOURCES:
            raise ValueError(f"source is {self.source!r}; it must be one of {', '.join(SOURCES)}")
        object.__setattr__(self, "inflation", checked_number(self.inflation, "inflation"))
        if not (np.isfinite(self.inflation) and self.inflation > 0):
            raise ValueError(f"inflation is {self.inflation}; it must be finite and positive")
        if (self.box is not None) != (self.source == "box"):
            raise ValueError('box must be given if source is "box", and only then')
        if self.box is not None:
            box = checked_array(self.box, "box")
            rows = np.asarray(self.box, dtype=object).tolist()  # a copy, of the caller's numbers
            object.__setattr__(self, "box", tuple(map(tuple, rows)) if box.ndim == 2 else rows)
            if box.ndim != 2 or box.shape[1] != 2 or not np.isfinite(box).all():
                raise ValueError(
                    "box must hold a finite lower and upper end for each coordinate, such as "
                    "[(0, 1), (-2, 2)]"
                )
            if (box[:, 0] >= box[:, 1]).any():
                wrong = int(np.argmax(box[:, 0] >= box[:, 1]))
                raise ValueError(
                    f"box goes from {box[wrong, 0]:g} to {box[wrong, 1]:g} in coordinate {wrong}; "
                    "each lower end must be below its upper end"
                )

    def __repr__(self) -> str:
        values = [(own, getattr(self, own.name)) for own in fields(self)]
        given = [f"{own.name}={value!r}" for own, value in values if value != own.default]
        return f"Candidates({', '.join(given)})"  # short, as signatures of designs show it

    def draw(self, target: Target, rng: Seed) -> Array:
        """Draw one pool, in O(M d) time and memory if a draw takes O(d).

        Parameters
        ----------
        target : Target
        rng : numpy.random.Generator or int
            A generator, or the seed of one.

        Returns
        -------
        ndarray, shape (M, d)

        Raises
        ------
        TypeError
            If the target cannot be drawn from, or has no covariances to inflate, or if `rng` is
            neither a seed nor a Generator.
        ValueError
            If the box is not of the target's dimension.
        """
        rng = checked_rng(rng)
        if self.source == "box":
            lower, upper = np.array(self.box, dtype=float).T
            if len(lower) != target.dim:
                raise ValueError(
                    f"box has {len(lower)} coordinates; it must have {target.dim}, the dimension "
                    "of the target"
                )
            return rng.uniform(lower, upper, size=(self.size, target.dim))
        if self.source == "inflated":
            inflated = getattr(target, "inflated", None)
            if inflated is None:
                raise TypeError(
                    f"{type(target).__name__} has no covariances to inflate; use source "
                    '"target" or "box"'
                )
            target = inflated(self.inflation)
        return checked_sample(target, self.size, rng)
