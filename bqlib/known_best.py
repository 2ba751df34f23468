"""The best designs known for problems that many rules are measured on."""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass, fields
from functools import cache
from importlib.resources import files
from typing import Any

import numpy as np

from bqlib.arrays import Array, Indices
from bqlib.checks import checked_count
from bqlib.designs.design import Design
from bqlib.embeddings import embed
from bqlib.kernels import Brownian, BrownianBridge, ExponentiatedQuadratic, Kernel, Korobov
from bqlib.targets import GaussianMixture, Target, Uniform

LARGEST = 400  # points of a curve that a formula gives


@dataclass(frozen=True)
class Proven:
    """A kernel on [0, 1] whose best points and MMD are proven, as functions of n."""

    kernel: Kernel
    points: Callable[[int], Array]  # (n,)
    squared: Callable[[Any], Any]  # MMD^2, also of an array of sizes


def _lattice_squared(n: Any) -> Any:
    equal = np.pi**2 / (3 * n**2)  # of equal weights
    return equal / (1 + equal)


PROVEN = {
    "brownian": Proven(
        Brownian(),
        lambda n: 2 * np.arange(1, n + 1) / (2 * n + 1),
        lambda n: 1 / (3 * (2 * n + 1) ** 2),
    ),
    "brownian_bridge": Proven(
        BrownianBridge(),
        lambda n: np.arange(1, n + 1) / (n + 1),
        lambda n: 1 / (12 * (n + 1) ** 2),
    ),
    "korobov": Proven(Korobov(), lambda n: np.arange(n) / n, _lattice_squared),
}


@cache
def _found() -> dict[str, Any]:
    return json.loads(files("bqlib").joinpath("data/best_known.json").read_text("utf-8"))


def _paper() -> tuple[GaussianMixture, ExponentiatedQuadratic]:
    numbers = _found()["target"]
    target = GaussianMixture(*(numbers[key] for key in ("weights", "means", "covariances")))
    return target, ExponentiatedQuadratic(0.5, scale="density")


def best_known(problem: str, n: int) -> Design:
    """The design of n points with BQ weights that has the least MMD known, of a standard problem.

    With it you can say how far the points of a rule are from the best ones.

    Parameters
    ----------
    problem : {"paper", "brownian", "brownian_bridge", "korobov"}
        ``"paper"``: the mixture and kernel of Huszar and Duvenaud (2012), with length-scale 0.5 in
        density scale. The others are kernels with the uniform distribution on [0, 1].
    n : int
        Number of points: 5, 10, 20, 50, 100, 200 or 400 for ``"paper"``, any for the others.

    Returns
    -------
    Design
        Its ``embedding.target`` and ``embedding.kernel`` are the problem. A set of points: its
        first m are no design of size m.

    Raises
    ------
    ValueError
        If the problem is another word, or there are no points of this size; the message lists what
        there is.
    TypeError
        If `n` is not a whole number.

    Notes
    -----
    The points of ``"paper"`` are the best of many runs of :func:`bqlib.joint`: no proof says that
    there are no better ones. Those of the others are optimal. For Brownian motion and its bridge,
    the MMD^2 is a sum over the gaps h between points: h^3 / 12, or h^3 / 3 beyond the last point of
    Brownian motion. It is least for gaps of equal h, the last of them of h / 2. O(n) time; weights
    as for every design.

    References
    ----------
    Huszar and Duvenaud, "Optimally-weighted herding is Bayesian quadrature", UAI 2012. Zhensykbaev,
    "Monosplines of minimal norm and the best quadrature formulae", 1981, for periodic functions.

    Examples
    --------
    >>> from bqlib import best_known, mmd, sbq
    >>> best = best_known("paper", 20)
    >>> target, kernel = best.embedding.target, best.embedding.kernel
    >>> round(mmd(best.embedding, best.points, best.weights), 4)
    0.0549
    >>> design = sbq(target, kernel, n=20, rng=0)
    >>> round(mmd(design.embedding, design.points, design.weights), 2)
    0.06
    """
    n = checked_count(n, "n", 1)
    if not isinstance(problem, str) or problem not in ("paper", *PROVEN):
        sizes = ", ".join(_found()["designs"])
        raise ValueError(
            f"problem is {problem!r}; it must be paper (with {sizes} points), or one of "
            f"{', '.join(PROVEN)} (with any number of points)"
        )
    if problem == "paper":
        designs = _found()["designs"]
        if str(n) not in designs:
            raise ValueError(
                f"no best design of {n} points is known for paper; there are designs of "
                f"{', '.join(designs)} points"
            )
        target, kernel = _paper()
        return Design(embed(kernel, target), designs[str(n)]["points"])
    proven = PROVEN[problem]
    return Design(embed(proven.kernel, Uniform([0.0], [1.0])), proven.points(n)[:, None])


def best_known_curve(target: Target, kernel: Kernel) -> tuple[Indices, Array] | None:
    """The least MMD known of n points, for each n with a known one.

    Parameters
    ----------
    target : Target
    kernel : Kernel

    Returns
    -------
    (n, mmd) or None
        Two arrays of one length, or None if the pair is none of the problems of
        :func:`bqlib.best_known`. With proven optima, n is 1 to 400.

    Notes
    -----
    The pair is recognised by its parameters: it need not be the same objects. O(1) time.

    Examples
    --------
    >>> from bqlib import Brownian, Uniform
    >>> from bqlib.known_best import best_known_curve
    >>> n, mmd = best_known_curve(Uniform([0], [1]), Brownian())
    >>> n[:2], mmd[:2].round(4)
    (array([1, 2]), array([0.1925, 0.1155]))
    """
    if _same(target, Uniform([0.0], [1.0])):
        n = np.arange(1, LARGEST + 1)
        for proven in PROVEN.values():
            if _same(kernel, proven.kernel):
                return n, np.sqrt(proven.squared(n.astype(float)))
    known = _paper()
    if _same(target, known[0]) and _same(kernel, known[1]):
        designs = _found()["designs"]
        found = [design["mmd"] for design in designs.values()]
        return np.array([int(size) for size in designs]), np.array(found)
    return None


def _same(one: Any, other: Any) -> bool:
    """Whether two targets or two kernels have one type and equal parameters."""
    return type(one) is type(other) and all(
        np.array_equal(getattr(one, own.name), getattr(other, own.name))
        for own in fields(other)
        if not own.name.startswith("_")
    )
