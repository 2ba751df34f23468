"""How many points rules need to reach levels of problems: profiles, average runtime, and pairs.

All functions here take `points`, of shape (A, P, L, S): the points with which each of A rules
reaches each of L levels of each of P problems, in each of S seeds. What is not reached is infinite:
it is censored and counts as unsolved. So do failed trials, and rules that do not apply. NaN
means that nothing was tried: it is left out of all counts. Seconds may take the place of points.
"""

from dataclasses import dataclass
from itertools import combinations
from typing import Any

import numpy as np

from bqlib.arrays import Array, Indices, Mask
from bqlib.checks import checked_array
from bqlib.over_seeds import student_interval


def data_profile(points: Array, dims: Array | Indices, budgets: Array) -> Array:
    """Share of problems, levels and seeds that each rule solves within each budget n/d.

    It is the mean over the problems, whatever the number of seeds of each.

    Parameters
    ----------
    points : ndarray, shape (A, P, L, S)
        Infinite where a level is not reached, NaN where nothing was tried.
    dims : ndarray, shape (P,)
        Dimension d of each problem. Ones give the share within a number of points.
    budgets : ndarray, shape (B,)
        Points for each dimension.

    Returns
    -------
    ndarray, shape (A, B)
        Of what was tried; NaN for a rule that was not tried at all.

    Raises
    ------
    ValueError
        If a number of points is zero or less.

    Notes
    -----
    More and Wild divide by d + 1, the function values that a simplex gradient needs. Here a budget
    is n/d, as in COCO. The cost is O(A N log N + A B log N), with N = P L S.

    References
    ----------
    More and Wild, "Benchmarking derivative-free optimization algorithms", SIAM Journal on
    Optimization 20, 2009.

    Hansen, Auger, Ros, Mersmann, Tusar and Brockhoff, "COCO: a platform for comparing continuous
    optimizers in a black-box setting", Optimization Methods and Software 36, 2021.

    Examples
    --------
    One rule, one problem in two dimensions, two levels and two seeds:

    >>> import numpy as np
    >>> from bqlib.profiles import data_profile
    >>> data_profile(np.array([[[[2.0, 4.0], [8.0, np.inf]]]]), np.array([2]), np.array([1, 2, 9]))
    array([[0.25, 0.5 , 0.75]])
    """
    per_dim: Array = _checked(points) / np.asarray(dims, dtype=float)[:, None, None]
    if not per_dim.shape[1]:
        return np.full((len(per_dim), len(budgets)), np.nan)
    return _mean([_shares(own, budgets) for own in np.moveaxis(per_dim, 1, 0)])


def average_runtime(points: Array, spent: Array) -> Array:
    """Points that all seeds spent together, for each seed that reached the level.

    Seeds that did not get there spent all that they had. It estimates the mean number of points
    until a level is reached, if seeds are tried one after the other.

    Parameters
    ----------
    points : ndarray, shape (..., S)
        Infinite where a level is not reached, NaN where nothing was tried.
    spent : ndarray
        Points spent where the level is not reached, of a shape that broadcasts with `points`.

    Returns
    -------
    ndarray, shape (...)
        Infinite where no seed got there, and NaN where none was tried.

    Raises
    ------
    ValueError
        If a number of points is zero or less.

    Notes
    -----
    O(N) for N numbers.

    References
    ----------
    Hansen, Auger, Ros, Mersmann, Tusar and Brockhoff, "COCO: a platform for comparing continuous
    optimizers in a black-box setting", Optimization Methods and Software 36, 2021.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib.profiles import average_runtime
    >>> average_runtime(np.array([[10.0, 20.0, np.inf], [np.inf, np.inf, np.inf]]), np.array(100))
    array([65., inf])
    """
    got = np.isfinite(_checked(points))
    tried = ~np.isnan(points)
    total = np.where(got, points, np.where(tried, spent, 0.0)).sum(axis=-1)
    reached = got.sum(axis=-1)
    average = np.where(reached > 0, total / np.maximum(reached, 1), np.inf)
    return np.where(tried.any(axis=-1), average, np.nan)


def performance_profile(cost: Array, factors: Array) -> Array:
    """Share of problems and levels on which each rule is within each factor of the best rule.

    Parameters
    ----------
    cost : ndarray, shape (A, ...)
        Cost of each rule on each problem and level, for example its :func:`average_runtime`.
        Infinite where a level is not reached, NaN where nothing was tried.
    factors : ndarray, shape (F,)
        At least 1.

    Returns
    -------
    ndarray, shape (A, F)
        Of what was tried; NaN for a rule that was not tried at all. What nobody reaches counts as
        unsolved for all. At factor 1 it is the share on which a rule is the best, or one of these.

    Raises
    ------
    ValueError
        If a cost is zero or less, or a factor is below 1.

    Notes
    -----
    The best rule is the best of those given: with other rules, a profile changes. Two rules are
    compared by :func:`versus`, without a third. The cost is O(A N log N + A F log N), with N
    problems and levels.

    References
    ----------
    Dolan and More, "Benchmarking optimization software with performance profiles", Mathematical
    Programming 91, 2002.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib.profiles import performance_profile
    >>> cost = np.array([[10.0, 10.0, np.inf], [20.0, 5.0, np.inf]])
    >>> performance_profile(cost, np.array([1.0, 2.0]))
    array([[0.33333333, 0.66666667],
           [0.33333333, 0.66666667]])
    """
    factors = checked_array(factors, "factors")
    if (factors < 1).any():
        raise ValueError(f"the smallest factor is {factors.min():g}; factors must be at least 1")
    best = np.fmin.reduce(_checked(cost), axis=0)
    ratio = np.where(np.isfinite(best), cost / np.where(np.isfinite(best), best, 1.0), np.inf)
    return _shares(np.where(np.isnan(cost), np.nan, ratio), factors)


@dataclass(frozen=True)
class Versus:
    """How each of A rules does against each other, over problems, levels and seeds.

    The first index is the rule, the second its rival. Only what both were tried on counts, and each
    problem as much as any other. The diagonal is NaN.

    Parameters
    ----------
    wins, ties, losses : ndarray, shape (A, A)
        Shares where the rule needs fewer, as many, and more points.
    neither : ndarray, shape (A, A)
        Share where neither gets there. The four shares add up to one.
    ratio, ratio_low, ratio_high : ndarray, shape (A, A)
        Points of the rule over points of its rival, and the ends of the interval.
    problems : ndarray of int, shape (A, A)
        Number of problems on which both were tried, in any seed.
    """

    wins: Array
    ties: Array
    losses: Array
    neither: Array
    ratio: Array
    ratio_low: Array
    ratio_high: Array
    problems: Indices


def versus(points: Array, level: float = 0.95) -> Versus:
    """Wins, ties and losses of all pairs of rules, and the ratios of their points.

    In each seed, the ratio of two rules is the geometric mean of the middle fifth of their ratios,
    over all problems and levels that either of them reaches. If one alone gets there, its ratio is
    below all others: 0, or infinite for the other rule. The geometric mean over the seeds is the
    ratio of the pair, and its interval is that of Student for the logarithms.

    Parameters
    ----------
    points : ndarray, shape (A, P, L, S)
        Infinite where a level is not reached, NaN where nothing was tried.
    level : float
        Of the intervals.

    Returns
    -------
    Versus

    Raises
    ------
    ValueError
        If a number of points is zero or less.

    Notes
    -----
    A seed gives one number, so that the interval respects what problems and levels of a seed have
    in common. Where problems differ in their number of seeds, the ratio is of those with at least
    as many as the median problem, in the seeds that all of these have. Intervals need 5 seeds. The
    ratio of a pair is 0 or infinite if it is so in some seed, where one of the two alone gets to
    more than 2/5 of what either does. It has no interval then, unless all seeds agree, and is NaN
    if they do not agree on which of the two it is. The middle fifth is less coarse than a median,
    whose t intervals hold the true ratio less often. So do those of a percentile bootstrap with 5
    seeds. The cost is O(A^2 N log N), with N = P L S.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib.profiles import versus
    >>> found = versus(np.array([[[[2.0], [4.0], [9.0]]], [[[2.0], [8.0], [np.inf]]]]))
    >>> found.wins.round(2)
    array([[ nan, 0.67],
           [0.  ,  nan]])
    >>> found.ratio.round(2)
    array([[nan, 0.5],
           [2. , nan]])
    """
    rules = len(points)
    logs = np.log(_checked(points))
    wins, ties, neither = np.full((3, rules, rules), np.nan)
    middle, low, high = np.full((3, rules, rules), np.nan)
    problems = np.zeros((rules, rules), dtype=np.intp)
    for i, j in combinations(range(rules), 2):
        pair = [i, j], [j, i]
        both = ~np.isnan(points[i]) & ~np.isnan(points[j])
        problems[pair] = both.any(axis=(1, 2)).sum()
        if not problems[i, j]:
            continue
        with np.errstate(invalid="ignore"):
            less = logs[i] - logs[j]  # inf - inf is NaN: neither gets there
        tried = both.sum(axis=(1, 2))
        outcomes = less < 0, less > 0, less == 0, both & np.isnan(less)
        with np.errstate(invalid="ignore"):  # 0/0 of a problem that one was not tried on
            shares = [_mean(own.sum(axis=(1, 2)) / tried) for own in outcomes]
        wins[pair], ties[pair], neither[pair] = shares[:2], shares[2], shares[3]
        own_problems, own_seeds = _full_part(both.any(axis=1))
        full = less[own_problems][..., own_seeds]
        mean, lower, upper = student_interval(middles(full.reshape(-1, full.shape[-1]).T), level)
        middle[pair], low[pair], high[pair] = (mean, -mean), (lower, -upper), (upper, -lower)
    ratio, ratio_low, ratio_high = np.exp([middle, low, high])
    return Versus(wins, ties, wins.T, neither, ratio, ratio_low, ratio_high, problems)


def _full_part(tried: Mask) -> tuple[Mask, Mask]:
    """The problems and seeds, of some (P, S), that a ratio is of: all of these were tried."""
    counts = tried.sum(axis=1)
    some = np.sort(counts[counts > 0])
    problems = counts >= some[(len(some) - 1) // 2]
    return problems, tried[problems].all(axis=0)


def middles(values: Array) -> Array:
    """Mean of the middle fifth of each row, without its NaN.

    It is near the median, which ties of whole numbers hold at a few values. Infinite values have
    their places in the order. If both are in the middle fifth, the mean is 0.

    Parameters
    ----------
    values : ndarray, shape (m, N)

    Returns
    -------
    ndarray, shape (m,)
        NaN for a row without a number.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib.profiles import middles
    >>> middles(np.array([[1.0, 2.0, 4.0, np.inf], [5.0, 3.0, np.nan, -np.inf]]))
    array([3., 3.])
    """
    ordered = np.sort(values, axis=1)  # NaN goes last
    count = (~np.isnan(values)).sum(axis=1, keepdims=True)
    rank = np.arange(values.shape[1])
    fifths = np.minimum(5 * (rank + 1), 3 * count) - np.maximum(5 * rank, 2 * count)
    inside = fifths > 0
    with np.errstate(invalid="ignore"):  # 0/0 of a row without a number, and inf - inf
        mean = np.where(inside, ordered * fifths, 0.0).sum(axis=1) / count[:, 0]
    return np.where((count[:, 0] > 0) & np.isnan(mean), 0.0, mean)


def _checked(cost: Array) -> Array:
    if (cost <= 0).any():
        raise ValueError(f"the smallest cost is {np.nanmin(cost):g}; costs must be above 0")
    return cost


def _mean(values: Any) -> Array:
    """Mean over the first axis, without NaN; NaN where there is nothing else."""
    values = np.asarray(values)
    there = ~np.isnan(values)
    with np.errstate(invalid="ignore"):
        found: Array = np.where(there, values, 0.0).sum(axis=0) / there.sum(axis=0)
    return found


def _shares(cost: Array, bounds: Array) -> Array:
    """Share of the numbers of each row that are finite and at most each bound, shape (A, B)."""
    found = np.full((len(cost), len(bounds)), np.nan)
    for i, own in enumerate(cost):
        if count := (~np.isnan(own)).sum():
            finite = np.sort(own[np.isfinite(own)])
            found[i] = np.searchsorted(finite, bounds, "right") / count
    return found
