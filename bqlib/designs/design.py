"""What all design rules share: how they are called and what they return."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field, replace
from functools import cached_property, partial
from typing import Any, TypeVar

import numpy as np
from numpy.typing import ArrayLike

from bqlib.arrays import Array, Indices, Seed, read_only, with_read_only_arrays
from bqlib.candidates import Candidates
from bqlib.checks import LONGEST, checked_array, checked_count, checked_rng
from bqlib.discrepancy import mmd
from bqlib.embeddings import Embedding, embed
from bqlib.kernels import Kernel, OnStandard, Stein
from bqlib.marginals import Marginals, points_for
from bqlib.notebook import html_table
from bqlib.pivots import first_occurrence
from bqlib.posterior import integrals
from bqlib.streams import Spawning
from bqlib.tables import Outputs, labels_of, listed, outputs_of, without_missing
from bqlib.targets import Product, Target, Uniform
from bqlib.weights import Rule, bq, final, sum_to_one

MOST_POINTS_SHOWN = 1000  # with their weights, which take a second of more points
FIRST_POINTS = 5  # shown one by one
Function = Callable[[Array], Any]  # whose integral is wanted
Pool = Candidates | ArrayLike  # how to draw candidates, or the candidates (M, d) themselves


@dataclass(frozen=True, eq=False, repr=False)
class Design:
    """An ordered sequence of points for one (kernel, target) pair, with their weights.

    Every rule returns one, and you can make one of points that you have. The first m points are the
    design of size m, except for :func:`joint`, :func:`msip`, :func:`recombination`,
    :func:`kernel_thinning`, :func:`compress`, :func:`stein_thinning`, :func:`latin_hypercube`,
    :func:`lattice` and :func:`grid`, whose points are one set. `weights` has the weights of all n
    points, and :meth:`integrate` estimates integrals.

    Attributes
    ----------
    embedding : Embedding
        The pair the points were made for.
    points : ndarray, shape (n, d)
        In the order they were picked, in the units of the target; read-only. For
        :class:`Marginals` you may give a table, whose columns are taken by name.
    rule : callable
        The weight rule that goes with the points: a function of :mod:`bqlib.weights` (default:
        :func:`bqlib.weights.bq`).
    stop : str
        Empty, or why there are fewer points than you asked for. Rules that move points also say
        here if they ended before a minimum, and recombination over what it is exact.
    rows : ndarray of int, shape (n,), or None
        Rows of the points in the candidates that you gave as an array or table:
        ``candidates[design.rows]`` equals the points. Initial points, which are no candidates, come
        first among the points and have no rows. None if you gave no candidates, or if points were
        moved off them.
    labels : ndarray, shape (n,), or None
        The index of these rows if the candidates were a pandas table. Of :func:`thin` also pairs of
        chain and draw (n, 2).

    Raises
    ------
    ValueError
        If there are no points, or they are not a finite array (n, d). If they are a table whose
        columns are not the inputs of the Marginals.

    Notes
    -----
    `weights` are computed when you first ask for them, at the cost of `rule`: O(n^3) time and
    O(n^2) memory for BQ weights, see :mod:`bqlib.weights`.

    Examples
    --------
    >>> import bqlib
    >>> target, kernel = bqlib.Uniform([0], [1]), bqlib.Brownian()
    >>> design = bqlib.sbq(target, kernel, n=20, rng=0)
    >>> design
    <Design: 20 points (d = 1), bq weights, for Brownian, Uniform>
    >>> f = design.points[:, 0] ** 2  # its integral is 1/3
    >>> round(float(design.weights @ f), 2)
    0.33
    >>> bqlib.Design(bqlib.embed(kernel, target), [[0.2], [0.4], [0.8]]).weights.round(3)
    array([0.2, 0.3, 0.4])
    """

    embedding: Embedding
    points: Array
    # Not as a default, which documentation would take for a method.
    rule: Rule = field(default_factory=lambda: bq)
    stop: str = ""
    rows: Indices | None = None
    labels: Any = None

    def __post_init__(self) -> None:
        points = points_for(self.embedding.target, self.points, "points of the design")
        object.__setattr__(self, "points", read_only(points.copy(order="K")))
        if not len(self.points):
            raise ValueError(
                f"no point could be picked ({self.stop}): at every candidate, the kernel mean or "
                "the kernel itself is zero. Use candidates nearer to the target; for a Stein "
                "kernel, set constant above zero"
            )
        for name in ("rows", "labels"):
            if (known := getattr(self, name)) is not None:
                object.__setattr__(self, name, read_only(np.array(known)))

    __setstate__ = with_read_only_arrays

    def __repr__(self) -> str:
        n, dim = self.points.shape
        kernel = self.embedding.kernel
        kernel = kernel.kernel if isinstance(kernel, OnStandard) else kernel
        pair = f"{type(kernel).__name__}, {type(self.embedding.target).__name__}"
        rule = getattr(self.rule, "__name__", type(self.rule).__name__)
        stop = f"; {self.stop}" if self.stop else ""
        return f"<Design: {n} points (d = {dim}), {rule} weights, for {pair}{stop}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the line of ``repr``, the MMD and the first points."""
        n = len(self.points)
        if n > MOST_POINTS_SHOWN:
            below = (
                f"Not computed for more than {MOST_POINTS_SHOWN} points: the weights, which are "
                "design.weights, and bqlib.mmd(design.embedding, design.points, design.weights)."
            )
            return html_table(repr(self)[1:-1], [], below)
        distance = mmd(self.embedding, self.points, self.weights)
        rows = [("MMD", "below the rounding error" if np.isnan(distance) else f"{distance:.4g}")]
        for i in range(min(n, FIRST_POINTS)):
            point = np.array2string(self.points[i], precision=4, threshold=6, separator=", ")
            rows.append((f"point {i}", f"{point}, weight {self.weights[i]:.4g}"))
        below = f"The first {FIRST_POINTS} of {n} points." if n > FIRST_POINTS else ""
        return html_table(repr(self)[1:-1], rows, below)

    @cached_property
    def weights(self) -> Array:
        """Weights of the points by `rule`, shape (n,), read-only.

        A redundant point has weight zero: see :func:`bqlib.weights.final`. O(n^3) time once.
        """
        weights = final(self.rule, self.embedding, self.points)
        return read_only(weights)  # they are kept

    def integrate(
        self,
        f: Function | None = None,
        *,
        values: Any = None,
        vectorized: bool = False,
        rule: Rule | None = None,
        output_scale: float | None = None,
        missing: str = "refuse",
    ) -> Any:
        """Estimate the integral of f, or of each output of f, under the target.

        Parameters
        ----------
        f : callable, optional
            Called once for each distinct point, with an array of shape (d,), and returns a number,
            or shape (m,) for m outputs.
        values : array_like, shape (n,) or (n, m), optional
            f at `points`, if you computed it elsewhere: one output, or m. The rows of a pandas
            Series or DataFrame are matched by its index, which must have 0 to n - 1 in any order.
            Give this or `f`, not both.
        vectorized : bool
            True: `f` is called once, with all distinct points (u, d), and returns shape (u,), or
            (u, m) for m outputs.
        rule : callable, optional
            A weight rule. By default that of the design; but for BQ weights it is
            :func:`bqlib.weights.sum_to_one`, which takes the mean of f to be any constant. For an f
            whose mean is zero before any value is known, pass :func:`bqlib.weights.bq`.
        output_scale : float, optional
            Typical size of f about its mean: f has prior variance output_scale^2 k(x, x). By
            default it is fitted to the values, for each output.
        missing : {"refuse", "drop"}
            What to do with values that are NaN or missing. "refuse": raise a ValueError. "drop":
            leave out points where any output is NaN, compute the weights of the others, and name
            the points in `warnings` of the result.

        Returns
        -------
        Integral, or tuple of m Integral
            With `mean`, `std`, `interval(level)` and `warnings`: see
            :class:`bqlib.posterior.Integral` for what the standard deviation means. One Integral
            for one output, also of shape (n, 1); otherwise one for each output, whose `name` is
            the column of your table.

        Raises
        ------
        ValueError
            If `values` or `f` does not give one finite number for each point and output, if the
            index of a table does not fit, if `missing` is another word, or if the output scale
            cannot be fitted, as only one point has a value.
        TypeError
            If `f` is not a function, or values are not real numbers.

        Notes
        -----
        u calls of `f` at u distinct points, or one if vectorized, and O(n^3 + m n^2) time for the
        weights and the output scales.

        Examples
        --------
        >>> import numpy as np
        >>> from bqlib import ExponentiatedQuadratic, GaussianMixture, sbq
        >>> normal = GaussianMixture([1.0], [[0.0]], [[[1.0]]])
        >>> design = sbq(normal, ExponentiatedQuadratic(1.0), n=8, rng=0)
        >>> result = design.integrate(lambda x: np.cos(x[0]))
        >>> lower, upper = result.interval(0.95)
        >>> bool(lower < np.exp(-0.5) < upper)
        True
        """
        if f is not None and not callable(f):
            raise TypeError(
                f"f is of type {type(f).__name__}; it must be a function. Pass values of f at the "
                "points as values="
            )
        if f is not None and values is None:
            outputs = self._evaluate(f, vectorized)
        elif f is None and values is not None:
            outputs = outputs_of(values, self.points, len(self.points), self.stop)
        else:
            given = "both f and values" if f is not None else "neither f nor values"
            raise ValueError(f"you gave {given}; give exactly one of them")
        outputs, points, left_out = without_missing(outputs, self.points, missing)
        if rule is None:
            rule = sum_to_one if self.rule is bq else self.rule
        known = rule is self.rule and not left_out
        weights = self.weights if known else final(rule, self.embedding, points)
        found = integrals(
            self.embedding,
            points,
            weights,
            outputs.columns,
            names=outputs.names,
            output_scale=output_scale,
        )
        if left_out:
            warning = (
                f"the points {listed(left_out)}, counted from 0, have no value and were left out: "
                f"the estimate is that of the other {len(points)} points"
            )
            found = tuple(replace(one, warnings=(warning, *one.warnings)) for one in found)
        return found[0] if outputs.single else found

    def _evaluate(self, f: Function, vectorized: bool) -> Outputs:
        distinct, index = np.unique(first_occurrence(self.points), return_inverse=True)
        found = (_all_at_once if vectorized else _one_by_one)(f, self.points[distinct])
        return Outputs(found.columns[:, index], found.names, found.single)


def _all_at_once(f: Function, points: Array) -> Outputs:
    answer = f(points)
    shape, n = _numbers_from(answer).shape, len(points)
    if len(shape) not in (1, 2) or shape[0] != n or 0 in shape:
        raise ValueError(
            f"f returned shape {shape} for points of shape {points.shape}; it must return shape "
            f"({n},), or ({n}, m) for m outputs. If f takes one point, set vectorized=False"
        )
    return outputs_of(answer, points, n)


def _one_by_one(f: Function, points: Array) -> Outputs:
    found: list[Array] = []
    for x in points:
        value = _numbers_from(f(x))
        if value.ndim > 1 or not value.size:
            raise ValueError(
                f"f returned shape {value.shape} for one point of shape {x.shape}; it must return "
                "a number, or shape (m,) for m outputs. If f takes all points at once, set "
                "vectorized=True"
            )
        if found and value.shape != found[0].shape:
            raise ValueError(
                f"f returned shape {found[0].shape} at {points[0]} and shape {value.shape} at {x}; "
                "it must return as many numbers at every point. Where it fails, return as many NaN"
            )
        found.append(value.copy())  # the array may be one that f uses again
    return outputs_of(np.array(found), points, len(points))


def _numbers_from(answer: Any) -> Array:
    if answer is None:
        raise TypeError(
            "f returned None; it must return numbers: check its return statement. Where f fails, "
            'return NaN, and set missing="drop"'
        )
    return checked_array(answer, "values of f", missing_as_nan=True)


Requirement = Callable[..., None]  # of what a design is called with, without its rng and initial
Rules = TypeVar("Rules", bound=Callable[..., Any])


def requires(requirement: Requirement) -> Callable[[Rules], Rules]:
    """Decorator of a design: what it needs at every seed, which a sweep asks before it runs.

    Parameters
    ----------
    requirement : callable
        Takes target, kernel and n, and by name `candidates` and the design's own parameters. It
        raises a TypeError or ValueError if the design cannot work with them.
    """

    def keep(design: Rules) -> Rules:
        vars(design)["requires"] = requirement
        return design

    return keep


def point_set(design: Rules) -> Rules:
    """Decorator of a design whose points are a set: the first m of them are no design of size m.

    A sweep runs such a design once for each of its `sizes`, and takes the weights of all points.
    """
    vars(design)["is_point_set"] = True
    return design


def is_point_set(design: Callable[..., Any]) -> bool:
    """Whether the points of a design are a set, also of one whose parameters are bound."""
    while isinstance(design, partial):
        design = design.func
    return getattr(design, "is_point_set", False)


def requires_mean(
    target: Target, kernel: Kernel, n: int, *, candidates: Candidates, **parameters: Any
) -> None:
    """Raise a ValueError if the kernel mean, by which points are picked, is zero everywhere."""
    if isinstance(kernel, Stein) and kernel.constant == 0:
        raise ValueError(
            "the kernel mean, by which it picks points, is zero everywhere for a Stein kernel with "
            "constant 0: set constant above zero"
        )


@dataclass(frozen=True, eq=False)
class Request:
    """The checked arguments of a design.

    Attributes
    ----------
    embedding : Embedding
    n : int
        Number of points, `initial` included.
    initial : ndarray, shape (m, d)
        Points to start from, m <= n.
    pool : ndarray, shape (M, d), or None
        The candidates of every step, or None if each step draws its own, or if m = n leaves none.
    candidates : Candidates
        How a step draws its own candidates; not used if there is a pool.
    rng : bqlib.streams.Spawning
        A numpy Generator.
    given : array_like or None
        The candidates as the caller gave them, or None if they are drawn.
    """

    embedding: Embedding
    n: int
    initial: Array
    pool: Array | None
    candidates: Candidates
    rng: Spawning
    given: ArrayLike | None = None

    def design(
        self, points: Array, rule: Rule, rows: Sequence[int] | Indices | None, stop: str = ""
    ) -> Design:
        """The design of these points, of which those after `initial` are these rows of the pool.

        `rows` is None if they are not all from the pool.
        """
        if rows is None or self.given is None:
            return Design(self.embedding, points, rule, stop)
        own = np.asarray(rows, dtype=np.intp)
        labels = labels_of(self.given)
        return Design(
            self.embedding, points, rule, stop, own, None if labels is None else labels[own]
        )

    def fresh_pool(self) -> Array:
        """Candidates for one step, shape (M, d)."""
        return self.candidates.draw(self.embedding.target, self.rng)


def checked_request(
    target: Target,
    kernel: Kernel,
    n: int,
    rng: Seed,
    candidates: Pool,
    initial: ArrayLike | None,
) -> Request:
    """Check the arguments that all designs share; draw the pool if it is fixed.

    Raises
    ------
    ValueError, TypeError
        If an argument is wrong. The message names it.
    """
    embedding = embed(kernel, target)
    rng = checked_rng(rng)
    if initial is None or not np.size(initial):
        initial = np.empty((0, target.dim))
    first = points_for(target, initial, "initial points").copy()
    n = checked_count(n, "n", 1)
    if n < len(first):
        raise ValueError(
            f"n is {n}, but there are already {len(first)} initial points: n must be at least "
            f"{len(first)}"
        )
    if isinstance(candidates, Candidates) and candidates.fresh:
        return Request(embedding, n, first, None, candidates, rng)
    given = None if isinstance(candidates, Candidates) else candidates
    if n == len(first):  # no step looks at a pool
        if given is not None:
            points_for(target, given, "candidates")
        return Request(embedding, n, first, None, Candidates(size=1, fresh=True), rng, given)
    if isinstance(candidates, Candidates):
        candidates = candidates.draw(target, rng)
    pool = points_for(target, candidates, "candidates").copy()
    if n - len(first) > len(pool):
        raise ValueError(
            f"n is {n}, but only {len(first) + len(pool)} points are available ({len(first)} "
            f"initial + {len(pool)} candidates): use a smaller n or more candidates"
        )
    return Request(embedding, n, first, pool, Candidates(len(pool)), rng, given)


def checked_request_without_pool(
    target: Target,
    kernel: Kernel,
    n: int,
    rng: Seed,
    candidates: Pool | None,
    initial: ArrayLike | None,
) -> Request:
    """As :func:`checked_request`, for rules without candidates: none are drawn."""
    # Fresh ones are not drawn until a rule asks for them.
    request = checked_request(target, kernel, n, rng, Candidates(size=1, fresh=True), initial)
    if candidates is not None and not isinstance(candidates, Candidates):
        points_for(target, candidates, "candidates")
    return request


def support(embedding: Embedding) -> tuple[Array, Array]:
    """Lower and upper ends of the box that holds the target and where its kernel is defined."""
    lower, upper = box_of(embedding.target)
    least, most = embedding.kernel.domain(embedding.target.dim)
    return np.maximum(lower, least), np.minimum(upper, most)


def box_of(target: Target) -> tuple[Array, Array]:
    """The box of a target, or the box of all allowed points if it has none."""
    match target:
        case Uniform():
            return target.lower, target.upper
        case Product():
            lower, upper = zip(*(box_of(block) for block in target.blocks), strict=True)
            return np.concatenate(lower), np.concatenate(upper)
        case Marginals():
            return target.support()
    return np.full(target.dim, -LONGEST), np.full(target.dim, LONGEST)
