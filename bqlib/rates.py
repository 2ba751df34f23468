"""Rates of convergence: fits to curves of error against n, and the model that they follow.

The points of one curve are correlated (by more than 0.9 from one n to the next), so their residuals
do not show how accurate a rate is. A curve gives one number, and intervals come from a bootstrap
over seeds, see :mod:`bqlib.over_seeds`.
"""

from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import leastsq

from bqlib.arrays import Array, Indices
from bqlib.checks import checked_array
from bqlib.over_seeds import FEWEST_SEEDS, largest_of_resamples, p_different

SIZES_PER_WINDOW = 25
FEWEST_SIZES = 8  # a window with fewer sizes cannot tell the models apart
CURVATURE_LEVEL = 0.05  # of the test over seeds that curves bend in log-log axes
NOISE_LEVEL = 0.01  # how often noise alone makes a misfit larger than what is called noise
TOLERANCE = 0.04  # a misfit that small rejects no model, however little noise there is
LARGEST_NOISE = 0.25  # with more, the data do not tell models apart
ROUNDING = 1e-9  # of a bend; that of curves which are exactly C / n is some 1e-11
DIFFERENCE = 2.0**-26  # relative, of a forward difference
CURVES_AT_ONCE = 32  # at most, so that their grids stay in the cache
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
    log_error = np.log(error)
    parts = np.array_split(log_error, -(-len(error) // CURVES_AT_ONCE))
    exponent = np.concatenate([_best_exponent(n.astype(float), part) for part in parts])
    slope, intercept, residual = _line(n.astype(float) ** exponent[:, None], log_error)
    return {
        "exponent": exponent, "decay": -slope, "log_constant": intercept, "residual": residual
    }  # fmt: skip


def _best_exponent(n: Array, log_error: Array) -> Array:
    """The exponent of least squares of each curve, on grids that close in on it."""
    curves = np.arange(len(log_error))
    grid = np.geomspace(0.01, 2, 60)[:, None]  # the first is the same for all curves
    for _ in range(7):
        rss = np.square(_line(n ** grid[..., None], log_error)[2]).sum(axis=-1)
        best = rss.argmin(axis=0)
        grid = np.broadcast_to(grid, rss.shape)
        exponent = grid[best, curves]
        below = grid[np.maximum(best - 1, 0), curves]
        above = grid[np.minimum(best + 1, len(grid) - 1), curves]
        grid = np.linspace(below, above, 21)
    return exponent


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
    for y, intercept, rate in zip(log_error, start["log_constant"], start["rate"], strict=True):
        low_or_high_floor = [
            _fit_floor(log_n, y, np.array([intercept, 1.3 * rate, y.min() - intercept - gap]))
            for gap in (2.3, 0.0)
        ]
        fits.append(min(low_or_high_floor, key=lambda fit: np.dot(fit[1], fit[1])))
    log_constant, rate, log_ratio = np.array([parameters for parameters, _ in fits]).T
    return {
        "rate": rate,
        "floor": np.exp(log_constant + log_ratio),
        "log_constant": log_constant,
        "residual": np.array([-residual for _, residual in fits]),
    }


def _fit_floor(log_n: Array, y: Array, start: Array) -> tuple[Array, Array]:
    """Parameters log C, rate and log(floor / C) of one curve y, and its residuals.

    Most fits differ by rounding alone in a direction that hardly matters to the residuals. The
    forward differences here are those of ``scipy.optimize.least_squares``, which needs five times
    as long for the same digits.
    """
    falling = -2 * log_n

    def half_sum(rate: float, log_ratio: float) -> Array:
        found = np.logaddexp(rate * falling, 2 * log_ratio)
        found *= 0.5
        return found

    def residual(p: Array) -> Array:
        log_c, rate, log_ratio = p.tolist()
        found = half_sum(rate, log_ratio)
        found += log_c
        found -= y
        return found

    def slopes(p: Array) -> Array:
        log_c, rate, log_ratio = p.tolist()
        moved = [v + DIFFERENCE * (max(1.0, v) if v >= 0 else min(-1.0, v)) for v in p.tolist()]
        at = half_sum(rate, log_ratio)
        found = np.empty((3, len(y)))
        np.add(at, moved[0], out=found[0])
        np.add(half_sum(moved[1], log_ratio), log_c, out=found[1])
        np.add(half_sum(rate, moved[2]), log_c, out=found[2])
        found -= y
        at += log_c
        at -= y
        found -= at
        found /= [[moved[0] - log_c], [moved[1] - rate], [moved[2] - log_ratio]]
        return found

    parameters, *_ = leastsq(
        residual, start, Dfun=slopes, full_output=True, col_deriv=True,
        ftol=1e-8, xtol=1e-8, gtol=1e-8, maxfev=300,
    )  # fmt: skip
    return parameters, residual(parameters)


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
    there are fewer than 5 seeds, the noise is above 25 %, or an error is zero or NaN; or the chosen
    model does not fit but another does; or both it and the power law fit to 4 %, but it does not
    fit within the noise.

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
    return verdicts(n, error[None])[0]


def verdicts(n: Array | Indices, error: Array) -> list[Verdict]:
    """The :func:`verdict` of each of several cells.

    Parameters
    ----------
    n : ndarray, shape (m,)
    error : ndarray, shape (C, S, m)
        Positive; S curves of each of C cells.

    Returns
    -------
    list of Verdict
        Of each cell.

    Notes
    -----
    The cost is C times that of :func:`verdict`, in fewer calls.
    """
    mean = np.ascontiguousarray(np.exp(np.log(error).mean(axis=1)))
    misfits = {name: np.abs(fit(n, mean)["residual"]).max(axis=1) for name, fit in MODELS.items()}
    own = np.transpose(list(misfits.values())).tolist()
    cells = [dict(zip(misfits, values, strict=True)) for values in own]
    if error.shape[1] < FEWEST_SEEDS:
        return [Verdict(UNDECIDED, misfit, np.nan, np.nan) for misfit in cells]
    bends = curvature(n, error)
    numbers = (noise_of_misfit(n, error), p_different(bends.T, 0.0), bends.mean(axis=1))
    return [
        Verdict(_named(misfit, noise, p, bend), misfit, noise, p)
        for misfit, noise, p, bend in zip(cells, *(own.tolist() for own in numbers), strict=True)
    ]


def _named(misfit: dict[str, float], noise: float, p: float, bend: float) -> str:
    if not noise <= LARGEST_NOISE:  # nor if it is NaN, as a curve is not positive everywhere
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
    error : ndarray, shape (..., S, m)

    Returns
    -------
    ndarray, shape (..., S)
        Negative where a curve becomes steeper. Below 1e-9 it is rounding and counts as zero.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib.rates import curvature
    >>> n = np.arange(10, 30)
    >>> curvature(n, np.exp([-np.log(n), 0.5 * np.log(n) ** 2])).round(12)
    array([0. , 0.5])
    """
    cells = np.log(error).reshape(-1, *error.shape[-2:])  # one by one: their digits are their own
    bends = np.array([np.polyfit(np.log(n), own.T, 2)[0] for own in cells])
    bends = bends.reshape(error.shape[:-1])
    return np.where(np.abs(bends) < ROUNDING, 0.0, bends)


def noise_of_misfit(n: Array | Indices, error: Array) -> Array:
    """What the noise between seeds adds to the misfit of a power law.

    It is the quantile at 99 % of the largest residual of a mean curve about its power law, in
    resamples of the seeds' deviations from their mean, times sqrt(S / (S - 1)) for S seeds. Curves
    are resampled whole, so their correlation along n is respected. Deviations about a larger model
    would be a little smaller.

    Parameters
    ----------
    n : ndarray, shape (m,)
    error : ndarray, shape (..., S, m)

    Returns
    -------
    ndarray, shape (...)
    """
    residual = power_law(n, error)["residual"]
    deviation = residual - residual.mean(axis=-2, keepdims=True)
    seeds = error.shape[-2]
    cells = deviation.reshape(-1, *error.shape[-2:])
    largest = np.array([largest_of_resamples(own, 1 - NOISE_LEVEL) for own in cells])
    return largest.reshape(error.shape[:-2]) * np.sqrt(seeds / (seeds - 1))


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
    level = checked_array(level, "level")
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


def _line(x: Array, y: Array) -> tuple[Array, Array, Array]:
    """Least squares of y (..., m) on x (..., m): slope and intercept (...), residual (..., m)."""
    centred = x - x.mean(axis=-1, keepdims=True)
    middle = y.mean(axis=-1)
    slope = (y * centred).sum(axis=-1) / np.square(centred).sum(axis=-1)
    residual = y - middle[..., None] - slope[..., None] * centred
    return slope, middle - slope * x.mean(axis=-1), residual
