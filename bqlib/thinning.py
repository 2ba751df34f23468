"""Thinning: the best n of many draws, of a Markov chain or of anything else."""

from __future__ import annotations

import warnings
from dataclasses import replace
from functools import partial
from inspect import signature
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.spatial.distance import pdist

from bqlib.arrays import Array, Seed
from bqlib.checks import checked_count, checked_lengthscale, checked_points
from bqlib.designs.compress import compress
from bqlib.designs.design import Design
from bqlib.designs.frank_wolfe import frank_wolfe
from bqlib.designs.halving import evenly
from bqlib.designs.herding import herding
from bqlib.designs.kernel_thinning import kernel_thinning
from bqlib.designs.p_greedy import p_greedy
from bqlib.designs.rpcholesky import rpcholesky
from bqlib.designs.stein_thinning import stein_thinning
from bqlib.kernels import ExponentiatedQuadratic, Kernel, Stein
from bqlib.pivots import first_occurrence
from bqlib.samples import Draws, draws_of, known_at_draws, row_of
from bqlib.targets import Empirical, Unnormalised
from bqlib.weights import bq, simplex, sum_to_one, uniform

# With a Stein kernel of constant zero, whose kernel mean is zero.
WITHOUT_A_MEAN = (
    *(herding, stein_thinning, frank_wolfe, kernel_thinning, compress),
    *(p_greedy, rpcholesky),
)
WEIGHTS_WITHOUT_A_MEAN = (None, uniform, sum_to_one, simplex)
NAMES = {"score": "scores", "log_density": "log densities", "hessian": "Hessians"}
ROUNDING = 1e-14  # of the largest number of a column: draws that differ by less do not differ
MOST_COMPARED = 1000  # points whose distances are taken
OF_ALL_DRAWS = (kernel_thinning, compress)  # they halve the draws as they come, repeats included
CONSTANT = 100.0  # of a Stein kernel, over the median of the rest of k(x, x)


class MedianLengthscale(float):
    """A length-scale that says how it was found; otherwise a number."""

    compared: int
    size: int

    def __new__(cls, value: float, compared: int, size: int) -> MedianLengthscale:
        found = super().__new__(cls, value)
        found.compared, found.size = compared, size
        return found

    def __getnewargs__(self) -> Any:
        return float(self), self.compared, self.size

    def __repr__(self) -> str:
        some = f"{self.compared} evenly spaced ones" if self.compared < self.size else "all"
        return f"{float(self)!r} (median distance between {some} of {self.size} distinct points)"


def median_lengthscale(points: ArrayLike) -> float:
    """The median distance between points: a length-scale where nothing else tells one.

    Parameters
    ----------
    points : array_like, shape (M, d)
        Divide coordinates of different units by their standard deviations first.

    Returns
    -------
    float
        The median of |x - y| over all pairs of distinct points. Of more than 1,000, 1,000 evenly
        spaced ones are taken. ``repr`` of the number says how many.

    Raises
    ------
    ValueError
        If points are not a finite array (M, d), or are all equal.

    Notes
    -----
    O(m^2 d + M d log M) time and O(m^2 + M d) memory, for m = min(M, 1000) points. The distances
    say nothing of how fast a function of x varies. For values of f, see :func:`integrate` and
    :func:`fit_kernel`.

    References
    ----------
    Garreau, Jitkrittum and Kanagawa, "Large sample analysis of the median heuristic", 2017.

    Examples
    --------
    >>> import bqlib
    >>> bqlib.median_lengthscale([[0.0], [1.0], [3.0]])
    2.0 (median distance between all of 3 distinct points)
    >>> draws = bqlib.Uniform([0, 0], [1, 1]).sample(8000, rng=0)
    >>> lengthscale = bqlib.median_lengthscale(draws)
    >>> round(lengthscale, 1)
    0.5
    """
    points = checked_points(points)
    distinct = points[np.unique(first_occurrence(points))] if len(points) else points
    if len(distinct) < 2:
        raise ValueError(
            f"there are {len(points)} points, of which {len(distinct)} are distinct: give at least "
            "two distinct points, or a length-scale of your own"
        )
    some = distinct[evenly(len(distinct), min(len(distinct), MOST_COMPARED))]
    extent = np.ptp(some, axis=0).max()  # squares of small numbers underflow
    median = float(np.median(pdist(some / extent)) * extent)
    return MedianLengthscale(median, len(some), len(distinct))


def thin(
    samples: Any,
    n: int,
    scores: Any = None,
    *,
    rng: Seed,
    design: Any = None,
    lengthscale: Any = None,
    units: Any = None,
    weights: Any = None,
    repeats: bool = True,
) -> Design:
    """The best n of many draws: a subset that stands for all, or for their posterior.

    Parameters
    ----------
    samples : array_like, shape (draws, d) or (chains, draws, d)
        Draws of a Markov chain or of anything else, in their order; equal ones are normal. Also a
        table of pandas with a column for each parameter, or a posterior of ArviZ.
    n : int
        How many to keep, at most the number of distinct draws.
    scores : array_like, callable, Target or dict, optional
        Gradient of the log density of the posterior at each draw, of the shape of `samples`; or a
        function, (n, d) to (n, d). The density must be positive on the whole of R^d: of bounded
        parameters, give the unbounded ones that the sampler works with, and their gradients.
        :func:`stein_thinning` needs more: give a target that has it, or a dict of arrays or
        functions ``{"score": ..., "log_density": ..., "hessian": ...}``, of shapes (draws, d),
        (draws,) and (draws, d, d). With scores, the draws are thinned to the posterior by a
        :class:`Stein` kernel, even if they were drawn from something else; without, to the draws.
    rng : numpy.random.Generator or int
        A generator, or the seed of one. Used by rules that draw, such as :func:`compress`;
        required in any case.
    design : callable, optional
        A rule that picks from candidates, such as :func:`herding`, :func:`sbq`,
        :func:`kernel_thinning` or, with scores, :func:`stein_thinning`; or a ``functools.partial``
        of one. Default: :func:`compress` without scores; with scores :func:`herding`, which is
        Stein thinning.
    lengthscale : float or array_like, shape (d,), optional
        In `units` (default: :func:`median_lengthscale` of draws / units).
    units : float or array_like, shape (d,), optional
        Of the coordinates (default: the standard deviations of the draws). ``units=1`` takes the
        draws as they are.
    weights : callable, optional
        A rule of :mod:`bqlib.weights`. Default: equal weights if the rule has these, and its own
        if it finds weights with the points; else :func:`bqlib.weights.sum_to_one`.
    repeats : bool
        Whether a draw may be kept more than once (default: True).

    Returns
    -------
    Design
        Its `rows` are those of the draws: ``samples[design.rows]`` of an array (draws, d), or
        ``samples.iloc[design.rows]`` of a table, are its points, in the order of picks. Rows of
        (chains, draws, d) count through one chain after the other. `labels` are the index of a
        table, or pairs of chain and draw (n, 2). ``design.embedding.kernel`` has the length-scales
        in the units of the draws, or of a Stein kernel `lengthscale` and `units`.

    Raises
    ------
    ValueError
        If draws or scores are NaN or infinite; the message names the row. If shapes do not fit
        together, chains differ in length, equal draws have different scores, all draws are equal,
        or n is below 1 or above the number of distinct draws. If `repeats` is False, and the rule
        keeps a draw twice all the same.
    TypeError
        If a column is not of numbers, or the design needs what is not there.

    Warns
    -----
    UserWarning
        If the log density rises away from the middle of the draws, as of scores with a wrong sign.

    Notes
    -----
    Without scores, the kernel is :class:`ExponentiatedQuadratic`. For another one, call a rule:
    ``herding(Empirical(draws), kernel, n, rng=0, candidates=draws)`` has `rows` too.

    Equal draws are one candidate, so that repeats of a Metropolis chain cost nothing; but
    :func:`kernel_thinning` and :func:`compress` halve all draws. See the design for the cost.
    Without scores, :func:`herding` and :func:`sbq` compare all pairs of draws, in O(M^2 d) time,
    and so does :func:`compress` for n > M / 32.

    References
    ----------
    Riabiz and others, "Optimal thinning of MCMC output", JRSS B 2022; Dwivedi and Mackey, "Kernel
    thinning", COLT 2021.

    Examples
    --------
    >>> import bqlib
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> draws = np.cumsum(rng.normal(size=(2000, 2)), axis=0)  # strongly correlated
    >>> design = bqlib.thin(draws, 50, rng=0)
    >>> bool((draws[design.rows] == design.points).all())
    True
    >>> target = bqlib.GaussianMixture([1.0], [[0.0, 0.0]], [np.eye(2)])
    >>> draws = target.sample(2000, rng=1)
    >>> bqlib.thin(draws, 50, scores=-draws, rng=0)
    <Design: 50 points (d = 2), uniform weights, for Stein, Unnormalised>
    """
    draws = draws_of(samples)
    n = checked_count(n, "n", 1)
    rows, which = draws.distinct()
    _refuse_too_few(n, len(rows), len(draws.points))
    rule = design or (compress if scores is None else herding)
    if not callable(rule):
        raise TypeError(f"design is {rule!r}; it must be a function, such as bqlib.herding")
    if not (weights is None or callable(weights)):
        raise TypeError(
            f"weights is {weights!r}; it must be a rule of bqlib.weights, such as "
            "bqlib.weights.simplex"
        )
    own = rule.func if isinstance(rule, partial) else rule
    distinct = draws.points[rows]
    target: Any
    kernel: Kernel
    if scores is None:
        target = Empirical(distinct, np.bincount(which) / len(which))
        kernel = _kernel_of(draws, lengthscale, units)
    else:
        keywords = rule.keywords if isinstance(rule, partial) else {}
        needed = {"score"}
        if own is stein_thinning:
            needed |= {"log_density"} if keywords.get("entropy") != 0 else set()
            needed |= {"hessian"} if keywords.get("laplace", True) else set()
        target = _posterior_of(scores, samples, draws, needed)
        _warn_of_signs(distinct, target.score(distinct))
        kernel = stein = _stein_kernel_of(target, draws, lengthscale, units)
        if own not in WITHOUT_A_MEAN or weights not in WEIGHTS_WITHOUT_A_MEAN:
            constant = CONSTANT * np.median(stein.diagonal(distinct))
            kernel = Stein(target, stein.lengthscale, constant=constant, units=stein.units)
    pool = np.arange(len(which)) if own in OF_ALL_DRAWS else rows
    takes_repeats = "repeats" in signature(rule).parameters
    options = {"repeats": False} if takes_repeats and not repeats else {}
    made = rule(target, kernel, n, rng=rng, candidates=draws.points[pool], **options)
    name = getattr(own, "__name__", "the design")
    if not isinstance(made, Design):
        raise TypeError(f"{name} returned {type(made).__name__}; it must return a Design")
    # Not its own rows: a design of somebody else may have none.
    kept = row_of(made.points, distinct)
    if (kept < 0).any():
        raise TypeError(f"{name} picks no draws: use a design that picks from candidates")
    kept = rows[kept]
    if not repeats and len(np.unique(which[kept])) < len(kept):
        raise ValueError(f"{name} keeps a draw twice: use another design, or repeats=True")
    default = sum_to_one if made.rule is bq else made.rule
    labels = None if draws.labels is None else draws.labels[kept]
    return replace(made, rule=weights or default, rows=kept, labels=labels)


def _refuse_too_few(n: int, distinct: int, size: int) -> None:
    if distinct == 1 < size:
        raise ValueError(
            f"all {size} draws are equal, so that there is nothing to thin: check whether the "
            "chain moved"
        )
    if n > distinct:
        some = f"of {size} draws only {distinct} are distinct"
        raise ValueError(
            f"n is {n}, but {some if distinct < size else f'there are {size} draws'}; n must be "
            f"at most {distinct}"
        )


def _posterior_of(scores: Any, samples: Any, draws: Draws, needed: set[str]) -> Unnormalised:
    """The target of which the scores are given, and all else that a target given has.

    Functions that are not needed are not called.
    """
    dim = draws.points.shape[1]
    axes: dict[str, tuple[int, ...]] = {"score": (dim,), "log_density": (), "hessian": (dim, dim)}
    if isinstance(scores, dict):
        if not {"score"} <= set(scores) <= set(axes):
            raise ValueError(
                f"scores have the keys {list(scores)}; they must have score, and may have "
                "log_density and hessian"
            )
        given = scores
    elif callable(scores) or not isinstance(getattr(scores, "dim", None), int | np.integer):
        given = {"score": scores}
    elif getattr(scores, "score", None) is None:
        raise TypeError(
            f"this {type(scores).__name__} has no score; give a target that has one, or the scores"
        )
    elif scores.dim != dim:
        raise ValueError(
            f"the posterior has dimension {scores.dim} and samples {dim}; they must be equal"
        )
    else:
        given = {name: getattr(scores, name, None) for name in axes}
    functions = {
        name: found
        if callable(found) and name not in needed
        else known_at_draws(found, samples, draws, NAMES[name], axes[name])
        for name, found in given.items()
        if found is not None
    }
    return Unnormalised(dim, **functions)


def _warn_of_signs(points: Array, scores: Array) -> None:
    with np.errstate(over="ignore", invalid="ignore"):
        products = ((points - points.mean(axis=0)) * scores).sum(axis=1)
        mean, error = products.mean(), products.std() / np.sqrt(len(products))
    rising = np.mean(products > 0)
    if mean > 3 * error or rising > 0.9:  # the mean of heavy tails says little
        warnings.warn(
            f"over the draws, (x - mean of x) . score(x) has mean {mean:.3g} and is above zero at "
            f"{rising:.0%} of them; for draws from the posterior its mean is {-points.shape[1]}. "
            "Check the sign of the scores, which are gradients of the log density, not of minus "
            "it. If it is right, the draws lie between modes of the posterior",
            stacklevel=3,
        )


def _units_of(draws: Draws, units: Any) -> Array:
    """Units of all coordinates, shape (d,): zero where draws do not differ and none are given."""
    points, dim = draws.points, draws.points.shape[1]
    if units is None:
        extent = np.ptp(points, axis=0)
        extent[extent <= ROUNDING * np.abs(points).max(axis=0)] = 0.0
        # By the extent, as squares of small numbers underflow.
        return extent * (points / np.where(extent > 0, extent, 1.0)).std(axis=0)
    return _each(units, "units", dim)


def _each(lengths: Any, name: str, dim: int) -> Array:
    """Positive lengths of all coordinates, shape (d,)."""
    given = checked_lengthscale(lengths, name)
    if np.size(given) not in (1, dim):
        raise ValueError(
            f"{name} has {np.size(given)} numbers; give one, or {dim}, the dimension of the draws"
        )
    return np.broadcast_to(given, dim)


def _kernel_of(draws: Draws, lengthscale: Any, units: Any) -> ExponentiatedQuadratic:
    own = _units_of(draws, units)
    own = np.where(own > 0, own, 1.0)  # where draws do not differ, any unit gives the same kernel
    lengths = median_lengthscale(draws.points / own) if lengthscale is None else lengthscale
    return ExponentiatedQuadratic(_each(lengths, "lengthscale", len(own)) * own)


def _stein_kernel_of(target: Unnormalised, draws: Draws, lengthscale: Any, units: Any) -> Stein:
    own = _units_of(draws, units)
    if not own.all():
        column = int(np.argmin(own))
        raise ValueError(
            f"all draws have the same number in column {column}, which gives it no unit: leave "
            "the column out of samples and scores, or give units"
        )
    lengths = median_lengthscale(draws.points / own) if lengthscale is None else lengthscale
    return Stein(target, lengths, units=own)
