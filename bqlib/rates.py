"""Rates of convergence: fits to curves of error against n, and intervals over seeds.

The unit of replication is the seed. The points of one curve are correlated (by more than 0.9 from
one n to the next), so their residuals do not show how accurate a rate is. A curve gives one number,
and intervals come from a bootstrap over seeds.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import least_squares
from scipy.special import bdtr, ndtr, stdtr, stdtrit

from bqlib.arrays import Array, Indices, Mask
from bqlib.streams import stream

SIZES_PER_WINDOW = 25
FEWEST_SIZES = 8  # a window with fewer sizes cannot tell the models apart
RESAMPLES = 10_000
CURVATURE_LEVEL = 0.05  # of the test over seeds that curves bend in log-log axes
NOISE_LEVEL = 0.01  # how often noise alone makes a misfit larger than what is called noise
TOLERANCE = 0.04  # a misfit that small rejects no model, however little noise there is
LARGEST_NOISE = 0.25  # with more, the data do not tell models apart
FEWEST_SEEDS = 5  # with fewer, no interval from resampling has the coverage it claims
ROUNDING = 1e-12  # in log(error)
UNDECIDED, NONE_FITS = "undecided", "none fits"

Fit = dict[str, Array]  # parameters of a model, shape (S,), and its residual, shape (S, m)


def log_spaced(low: int, high: int, count: int = SIZES_PER_WINDOW) -> Indices:
    """About `count` distinct integers from `low` to `high`, evenly spaced in their logarithm.

    Both ends are among them. A range of fewer than `count` integers gives all of them.

    Examples
    --------
    >>> from bqlib.rates import log_spaced
    >>> log_spaced(1, 100, 5)
    array([  1,   3,  10,  32, 100])
    >>> log_spaced(3, 6)
    array([3, 4, 5, 6])
    """
    if not 1 <= low < high:
        raise ValueError(f"the range is {low} to {high}; it must satisfy 1 <= low < high")
    if high - low < count:
        return np.arange(low, high + 1)
    draw = count
    while True:  # rounding merges neighbours at small n: draw more until enough are left
        sizes = np.unique(np.round(np.geomspace(low, high, draw)).astype(int))
        if len(sizes) >= count:
            return sizes
        draw += 1


def power_law(n: Array | Indices, error: Array) -> Fit:
    """error = C n^-rate, by least squares of log(error) on log(n).

    Parameters
    ----------
    n : ndarray, shape (m,)
    error : ndarray, shape (S, m)
        Positive; a curve for each seed.

    Returns
    -------
    dict
        ``rate`` and ``log_constant``, each of shape (S,), and ``residual`` of log(error), shape
        (S, m).

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib.rates import power_law
    >>> n = np.arange(10, 30)
    >>> fit = power_law(n, 3 / n[None, :])
    >>> fit["rate"].round(12), np.exp(fit["log_constant"]).round(12)
    (array([1.]), array([3.]))
    """
    slope, intercept, residual = _line(np.log(n), np.log(error))
    return {"rate": -slope, "log_constant": intercept, "residual": residual}


def stretched_exponential(n: Array | Indices, error: Array) -> Fit:
    """error = C exp(-decay n^exponent), by least squares of log(error).

    For smooth kernels in d dimensions the best designs have exponent 1/d. As the exponent goes to
    zero, the model becomes a power law. The exponent is searched in [0.01, 2].

    Parameters
    ----------
    n : ndarray, shape (m,)
    error : ndarray, shape (S, m)

    Returns
    -------
    dict
        ``exponent``, ``decay`` and ``log_constant``, each of shape (S,), and ``residual``, shape
        (S, m).
    """
    n, log_error = n.astype(float), np.log(error)
    seeds = np.arange(len(error))
    # The grid closes in on the best exponent of each seed, which its neighbours enclose.
    grid = np.broadcast_to(np.geomspace(0.01, 2, 60)[:, None], (60, len(error)))
    for _ in range(7):
        rss = np.square(_line(n ** grid[..., None], log_error)[2]).sum(axis=-1)
        best = rss.argmin(axis=0)
        exponent = grid[best, seeds]
        below = grid[np.maximum(best - 1, 0), seeds]
        above = grid[np.minimum(best + 1, len(grid) - 1), seeds]
        grid = np.linspace(below, above, 21)
    slope, intercept, residual = _line(n ** exponent[:, None], log_error)
    return {
        "exponent": exponent, "decay": -slope, "log_constant": intercept, "residual": residual
    }  # fmt: skip


def power_law_with_floor(n: Array | Indices, error: Array) -> Fit:
    """error^2 = (C n^-rate)^2 + floor^2, by least squares of log(error).

    Parameters
    ----------
    n : ndarray, shape (m,)
    error : ndarray, shape (S, m)

    Returns
    -------
    dict
        ``rate``, ``floor`` and ``log_constant``, each of shape (S,), and ``residual``, shape
        (S, m). A curve that does not flatten has a floor of about zero.
    """
    log_n, log_error = np.log(n), np.log(error)
    start = power_law(n, error)
    fits = []
    for s, y in enumerate(log_error):
        # Parameters: log C, rate, log(floor / C).
        def residual(p: Array, y: Array = y) -> Array:
            return p[0] + 0.5 * np.logaddexp(-2 * p[1] * log_n, 2 * p[2]) - y

        intercept, rate = start["log_constant"][s], start["rate"][s]
        low_or_high_floor = [
            least_squares(residual, [intercept, 1.3 * rate, y.min() - intercept - gap], method="lm")
            for gap in (2.3, 0.0)
        ]
        fits.append(min(low_or_high_floor, key=lambda fit: fit.cost))
    log_constant, rate, log_ratio = np.array([fit.x for fit in fits]).T
    return {
        "rate": rate,
        "floor": np.exp(log_constant + log_ratio),
        "log_constant": log_constant,
        "residual": np.array([-fit.fun for fit in fits]),
    }


MODELS: dict[str, Callable[[Array | Indices, Array], Fit]] = {
    "power_law": power_law,
    "stretched_exponential": stretched_exponential,
    "power_law_with_floor": power_law_with_floor,
}


@dataclass(frozen=True)
class Verdict:
    """The model that the curves of one cell follow in a window, and what it was judged by.

    Parameters
    ----------
    name : str
        A key of `MODELS`, "none fits" or "undecided".
    misfit : dict
        Model to the largest residual of log(error) of the mean curve; 0.04 is 4 % of the error.
    noise : float
        What the noise between seeds adds to the misfit of a power law: without another cause, the
        misfit exceeds it in 1 % of cases. NaN for fewer than 5 seeds.
    curvature_p : float
        p-value of the test over seeds that the curves bend. NaN for fewer than 5 seeds.
    """

    name: str
    misfit: dict[str, float]
    noise: float
    curvature_p: float


def verdict(n: Array | Indices, error: Array) -> Verdict:
    """Which model the mean curve follows: the mean over seeds of log(error).

    A model fits if its misfit is within the noise between seeds, or at most 4 %. A t test over
    seeds at 5 % asks whether the curves bend in log-log axes. If not, nothing speaks for a larger
    model than the power law. If they become steeper, the larger model is the stretched
    exponential; if they become flatter, the power law with a floor. The model so chosen is named
    if it fits. "none fits" means that no model fits. "undecided" means that the data do not tell:
    there are fewer than 5 seeds, or the noise is above 25 %; or the chosen model does not fit but
    another does; or both it and the power law fit to 4 %, but it does not fit within the noise.

    Parameters
    ----------
    n : ndarray, shape (m,)
    error : ndarray, shape (S, m)
        Positive; a curve for each seed.

    Returns
    -------
    Verdict

    Notes
    -----
    Both tests compare seeds, so the correlation along a curve does not matter. Noise may hide a
    bend: a power law is then named although the curve is none. Compare `noise` with the bends
    that matter to you. The cost is O(10,000 S m) and one fit of each model.
    """
    mean = np.exp(np.log(error).mean(axis=0))[None]
    misfit = {name: float(np.abs(fit(n, mean)["residual"]).max()) for name, fit in MODELS.items()}
    if len(error) < FEWEST_SEEDS:
        return Verdict(UNDECIDED, misfit, np.nan, np.nan)
    bends = curvature(n, error)
    p = p_different(bends, 0.0)
    noise = noise_of_misfit(n, error)
    return Verdict(_named(misfit, noise, p, bends.mean()), misfit, noise, p)


def _named(misfit: dict[str, float], noise: float, p: float, bend: float) -> str:
    if noise > LARGEST_NOISE:
        return UNDECIDED
    fitting = [name for name, value in misfit.items() if value <= max(noise, TOLERANCE)]
    if not fitting:
        return NONE_FITS
    if p > CURVATURE_LEVEL:
        chosen = "power_law"
    else:
        chosen = "stretched_exponential" if bend < 0 else "power_law_with_floor"
        if misfit[chosen] > noise and "power_law" in fitting:
            return UNDECIDED
    return chosen if chosen in fitting else UNDECIDED


def curvature(n: Array | Indices, error: Array) -> Array:
    """Coefficient c of the least-squares fit log(error) = a + b log(n) + c log(n)^2.

    Parameters
    ----------
    n : ndarray, shape (m,)
    error : ndarray, shape (S, m)

    Returns
    -------
    ndarray, shape (S,)
        Negative where a curve becomes steeper. Below 1e-12 it is rounding and counts as zero.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib.rates import curvature
    >>> n = np.arange(10, 30)
    >>> curvature(n, np.exp([-np.log(n), 0.5 * np.log(n) ** 2])).round(12)
    array([0. , 0.5])
    """
    bends = np.polyfit(np.log(n), np.log(error).T, 2)[0]
    return np.where(np.abs(bends) < ROUNDING, 0.0, bends)


def noise_of_misfit(n: Array | Indices, error: Array) -> float:
    """What the noise between seeds adds to the misfit of a power law.

    It is the quantile at 99 % of the largest residual of a mean curve about its power law, in
    resamples of the seeds' deviations from their mean, times sqrt(S / (S - 1)) for S seeds. Curves
    are resampled whole, so their correlation along n is respected. Deviations about a larger model
    would be a little smaller.

    Parameters
    ----------
    n : ndarray, shape (m,)
    error : ndarray, shape (S, m)

    Returns
    -------
    float
    """
    residual = power_law(n, error)["residual"]
    deviation = residual - residual.mean(axis=0)
    seeds = len(error)
    largest = np.abs(_resampling_weights(seeds) @ deviation).max(axis=1)
    return float(np.quantile(largest, 1 - NOISE_LEVEL) * np.sqrt(seeds / (seeds - 1)))


def local_slopes(error: Array) -> Array:
    """Observed order between n and 2n: log2(e_n / e_2n).

    Parameters
    ----------
    error : ndarray, shape (..., N)
        At n = 1..N.

    Returns
    -------
    ndarray, shape (..., N // 2)
        At n = 1..N // 2.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib.rates import local_slopes
    >>> local_slopes(1 / np.arange(1, 7) ** 2)
    array([2., 2., 2.])
    """
    half = error.shape[-1] // 2
    return np.log2(error[..., :half] / error[..., 1 : 2 * half : 2])


def first_n_within(error: Array, level: ArrayLike) -> Array:
    """First n at which each curve is at or below each of some levels.

    Parameters
    ----------
    error : ndarray, shape (..., N)
        At n = 1..N; NaN after a curve's end.
    level : ndarray, shape (..., K)

    Returns
    -------
    ndarray, shape (..., K)
        Infinite if the curve never gets so low, and NaN if the level is NaN.

    Notes
    -----
    O(N + K log N) for each curve.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib.rates import first_n_within
    >>> first_n_within(np.array([4.0, 2.0, 3.0, 1.0]), np.array([5.0, 2.0, 1.5, 0.5]))
    array([ 1.,  2.,  4., inf])
    """
    level = np.asarray(level, dtype=float)
    leading = np.broadcast_shapes(error.shape[:-1], level.shape[:-1])
    lowest = np.minimum.accumulate(np.where(np.isnan(error), np.inf, error), axis=-1)
    lowest = np.broadcast_to(lowest, (*leading, error.shape[-1]))
    level = np.broadcast_to(level, (*leading, level.shape[-1]))
    first = np.empty(level.shape)
    for curve in np.ndindex(leading):
        first[curve] = np.searchsorted(-lowest[curve], -level[curve]) + 1
    first[first > error.shape[-1]] = np.inf
    first[np.isnan(level)] = np.nan
    return first


def median_interval(values: Array, level: float = 0.95) -> tuple[Array, Array, Array]:
    """Median over seeds, and its interval by the order of the seeds.

    The interval goes from the r-th smallest to the r-th largest seed. r is the largest number for
    which S tosses of a fair coin give fewer than r heads with probability (1 - level) / 2 or less.
    The coverage is at least `level` for every distribution. Values may be infinite.

    Parameters
    ----------
    values : ndarray, shape (S, ...)
        One number for each seed. NaN means that the seed is left out.
    level : float

    Returns
    -------
    median, low, high : ndarray, shape (...)
        `low` and `high` are NaN for fewer than 6 seeds at 95 %: no interval has that coverage.

    References
    ----------
    Thompson, "On confidence ranges for the median and other expectation distributions for
    populations of unknown distribution form", Annals of Mathematical Statistics 7, 1936.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib.rates import median_interval
    >>> tuple(map(float, median_interval(np.array([3.0, 1.0, 2.0, np.inf, 4.0, 5.0, 6.0]))))
    (4.0, 1.0, inf)
    """
    ordered = np.sort(values, axis=0)  # NaN goes last
    count = (~np.isnan(values)).sum(axis=0)
    coins = np.arange(len(values) + 1)
    ranks = np.array([(bdtr(coins[:s], s, 0.5) <= (1 - level) / 2).sum() for s in coins])[count]

    def at(index: Indices, there: Mask) -> Array:
        place = np.where(there, index, 0)[None]
        return np.where(there, np.take_along_axis(ordered, place, axis=0)[0], np.nan)

    median = (at((count - 1) // 2, count > 0) + at(count // 2, count > 0)) / 2
    return median, at(ranks - 1, ranks > 0), at(count - ranks, ranks > 0)


def mean_interval(values: Array, level: float = 0.95) -> tuple[float, float, float]:
    """Mean over seeds, and its interval by a bootstrap over seeds.

    The interval is the percentile interval, widened for the number of seeds S: its tail is
    Phi(-t sqrt(S / (S - 1))), with t the Student quantile for S - 1 degrees of freedom. For normal
    values and 10 seeds, the plain percentile interval at 95 % covers about 90 %; this one covers
    about 95 %.

    Parameters
    ----------
    values : ndarray, shape (S,)
        One number for each seed.
    level : float

    Returns
    -------
    mean, low, high : float
        `low` and `high` are NaN for fewer than 5 seeds. Every call with S seeds draws the same
        resamples, so the same numbers give the same interval, and cells are resampled as pairs.

    References
    ----------
    Hesterberg, "What teachers should know about the bootstrap", The American Statistician 69,
    2015 (the expanded percentile interval).
    """
    seeds = len(values)
    mean = values.mean()
    if seeds < FEWEST_SEEDS:
        return mean, np.nan, np.nan
    tail = ndtr(stdtrit(seeds - 1, (1 - level) / 2) * np.sqrt(seeds / (seeds - 1)))
    low, high = np.quantile(_resampling_weights(seeds) @ values, [tail, 1 - tail])
    return mean, low, high


def p_greater(values: Array, bound: float) -> float:
    """p-value of the one-sided t test over seeds that the mean of `values` is above `bound`.

    Parameters
    ----------
    values : ndarray, shape (S,)
        One number for each seed, S > 1.
    bound : float
    """
    spread = values.std(ddof=1) / np.sqrt(len(values))
    excess = values.mean() - bound
    if spread == 0:  # every seed agrees to the last digit
        return 0.0 if excess > 0 else 1.0
    return float(stdtr(len(values) - 1, -excess / spread))


def p_different(values: Array, value: float) -> float:
    """p-value of the two-sided t test over seeds that the mean of `values` is not `value`.

    Parameters
    ----------
    values : ndarray, shape (S,)
        One number for each seed, S > 1.
    value : float
    """
    return min(1.0, 2 * min(p_greater(values, value), p_greater(-values, -value)))


def holm(p: Array) -> Array:
    """Holm's adjusted p-values of several tests made at once.

    Parameters
    ----------
    p : ndarray, shape (k,)

    Returns
    -------
    ndarray, shape (k,)
        Rejecting those at most alpha keeps the chance of any false rejection below alpha.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib.rates import holm
    >>> holm(np.array([0.01, 0.04, 0.03]))
    array([0.03, 0.06, 0.06])
    """
    order = np.argsort(p)
    adjusted = np.empty(len(p))
    adjusted[order] = np.maximum.accumulate(p[order] * np.arange(len(p), 0, -1))
    return np.minimum(adjusted, 1.0)


@cache
def _resampling_weights(seeds: int) -> Array:
    """Share of each seed in each resample of the seeds, shape (RESAMPLES, seeds)."""
    rng = stream("bootstrap over seeds", 0)
    return rng.multinomial(seeds, np.full(seeds, 1 / seeds), size=RESAMPLES) / seeds


def _line(x: Array, y: Array) -> tuple[Array, Array, Array]:
    """Least squares of y (..., m) on x (..., m): slope and intercept (...), residual (..., m)."""
    centred = x - x.mean(axis=-1, keepdims=True)
    middle = y.mean(axis=-1)
    slope = (y * centred).sum(axis=-1) / np.square(centred).sum(axis=-1)
    residual = y - middle[..., None] - slope[..., None] * centred
    return slope, middle - slope * x.mean(axis=-1), residual
