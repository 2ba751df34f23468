"""From values of f at any points to its integral: the kernel is fitted in the same call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve

from bqlib.answers import checked_gram
from bqlib.arrays import Array, Indices
from bqlib.checks import checked_array, checked_count, checked_values_of_f
from bqlib.embeddings import Embedding, embed
from bqlib.embeddings.embedding import refuse_no_target
from bqlib.kernel_posterior import (
    Family,
    KernelPosterior,
    Point,
    Values,
    covariance,
    family_of,
    kernel_posterior,
    solution,
)
from bqlib.kernels import ExponentiatedQuadratic, Kernel, Matern
from bqlib.leave_one_out import LeftOut, left_out
from bqlib.likelihood import STATIONARY, Stationary
from bqlib.marginals import Marginals, points_for
from bqlib.pivots import first_occurrence, refuse_two_values
from bqlib.posterior import Integral
from bqlib.tables import listed, outputs_of, without_missing
from bqlib.targets import Target

FEWEST = 4  # values that leave three degrees of freedom, with which a variance is finite
COVERED = 0.5  # of the weight, on the points: with less, most of the estimate is the constant
ROUGH = 0.1  # share of the variance that no length-scale explains
SURPRISE = 4.0  # standard deviations of a leave-one-out error that should be looked at
MOMENTS = {2: "variance", 3: "third central moment"}
EFFECTIVE = 5.0  # points of a posterior: fewer do not represent it


def integrate(
    target: Target,
    points: ArrayLike,
    values: ArrayLike,
    *,
    kernel: Stationary | Sequence[Stationary] | None = None,
    mean: str = "constant",
    noise: ArrayLike | None = None,
    moments: int = 1,
    missing: str = "refuse",
) -> Integral | tuple[Integral, ...]:
    """Estimate the integral of f from its values at any points, with a kernel fitted to them.

    f is modelled by a Gaussian process with an unknown constant mean. The posterior of the kernel
    parameters is part of the estimate: mean and interval are averaged over it. The points may come
    from anywhere; :func:`bqlib.sobol_points` is a good place.

    Parameters
    ----------
    target : Target
        The distribution that f is integrated over.
    points : array_like, shape (n, d)
        Where f was evaluated. For :class:`bqlib.Marginals` also a table with the inputs as columns.
    values : array_like, shape (n,) or (n, m)
        f at the points: one output or m. The rows of a Series or DataFrame are matched by their
        index with those of `points`, or with 0 to n - 1 if `points` is an array.
    kernel : ExponentiatedQuadratic, Matern or RationalQuadratic, or sequence of these, optional
        The kernels to fit, with one length-scale for all coordinates, or one for each. The
        length-scales themselves do not matter. Several kernels are weighted by their marginal
        likelihoods. Default: ``Matern`` with nu = 1/2, 3/2 and 5/2
        and ``ExponentiatedQuadratic``, with one length-scale for each coordinate. For Marginals
        they act in standard coordinates.
    mean : {"constant", "zero"}
        The mean of f in the model: an unknown constant (default), or zero.
    noise : float or array_like, shape (n,), optional
        Known variance of the noise of all values, or of each, in squared units of f. Points may
        then be repeated. Default: no noise, and points that are repeated must have equal values.
    moments : int
        How many moments of f to estimate: its mean, and central moments 2 (the variance), 3, ...
    missing : {"refuse", "drop"}
        What to do with points where a value is NaN: raise an error, or leave them out.

    Returns
    -------
    Integral or tuple of Integral
        One, with `mean`, `std`, `interval(level)`, `warnings`, `kernel` and `left_out`. A tuple
        for several outputs or moments: all moments of the first output, then of the next.

    Raises
    ------
    ValueError
        If points and values do not fit together, values are NaN (unless you drop them), infinite
        or all equal, f has two values at one point without noise, fewer than four points are left,
        all points have the same coordinate, `noise` is not positive, or an option is not one of
        those above.
    TypeError
        If values are not real numbers, a kernel to be fitted has no length-scales, or a kernel has
        no embedding with the target.

    Notes
    -----
    The prior of a length-scale is log-normal about sqrt(d) times the width of the points in its
    coordinate, with a spread of a factor e. A nugget, with a prior about 2 % of the variance,
    takes what no length-scale explains. The output scale is integrated out, so that the interval
    is Student's t with n - 1 degrees of freedom; with `noise` it is a parameter, and the interval
    is normal. `std` and the interval have the variance of the average over all parameters. If the
    leave-one-out errors are larger than the model says, `std` is multiplied by their ratio.

    For central moments k >= 2, f is replaced by (f - mean)^k with the estimated mean, and the
    error of this mean is part of `std`; the bias of the variance is subtracted.

    For each kernel about 200 + 4 d likelihoods, of O(n^3 + n^2 d) time and O(n^2 d) memory; then at
    most 64 embeddings, see :func:`bqlib.embed`: for a data set of M points O(M^2 d) each.

    References
    ----------
    O'Hagan, "Bayes-Hermite quadrature", 1991; Gramacy and Lee, "Cases for the nugget in modeling
    computer experiments", 2012.

    Examples
    --------
    >>> import numpy as np
    >>> from scipy import stats
    >>> import bqlib
    >>> inputs = bqlib.Marginals({"width": stats.norm(2.0, 0.1), "load": stats.uniform(0, 5)})
    >>> points = bqlib.sobol(inputs, bqlib.Matern(1.0), n=32, rng=0).points
    >>> result = bqlib.integrate(inputs, points, [x[0] * np.exp(-x[1]) for x in points])
    >>> lower, upper = result.interval(0.95)  # the integral is 2 (1 - exp(-5)) / 5 = 0.3973
    >>> bool(lower < 0.3973 < upper)
    True
    """
    refuse_no_target(target)
    moments = checked_count(moments, "moments", 1)
    raw = points
    points = points_for(target, points)
    outputs = outputs_of(values, raw, len(points))
    variances = _checked_noise(noise, len(points))
    if mean not in ("constant", "zero"):
        raise ValueError(f'mean is {mean!r}; it must be "constant" or "zero"')
    if noise is not None and moments > 1:
        raise ValueError(
            f"moments is {moments}, with noise: the noise of the values would count as a part of "
            "the variance of f. Leave out one of the two"
        )
    outputs, points, dropped = without_missing(outputs, points, missing)
    kept: Indices = np.delete(np.arange(len(points) + len(dropped)), list(dropped))
    if variances is not None:
        variances = variances[kept]
    x, inner = points, target
    if isinstance(target, Marginals):
        x, inner = target.to_standard(points), target.standard
    warnings: list[str] = []
    families = _families(kernel, x, inner, warnings)
    if dropped:
        warnings.append(
            f"values are NaN at {len(dropped)} points, which are left out: {listed(dropped)}"
        )
    data = _Data(inner, families, x, variances, mean == "constant", kept, tuple(warnings))
    found: list[Integral] = []
    for column, name in zip(outputs.columns, outputs.names, strict=True):
        found += _moments(data, column, name, moments)
    return found[0] if len(found) == 1 and outputs.single else tuple(found)


@dataclass(frozen=True, eq=False)
class _Data:
    """What the outputs have in common."""

    target: Target
    families: Sequence[Family]
    points: Array
    noise: Array | None
    constant: bool
    rows: Indices
    warnings: tuple[str, ...]


def _checked_noise(noise: ArrayLike | None, n: int) -> Array | None:
    if noise is None:
        return None
    array = checked_array(noise, "noise")
    if array.shape not in ((), (n,)):
        raise ValueError(
            f"noise has shape {array.shape}; it must be one variance, or one for each of {n} points"
        )
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise ValueError(
            "noise must be finite and above zero: it is a variance, in squared units of f. Leave "
            "it out if the values have none"
        )
    return np.broadcast_to(array, n)


def _families(
    kernel: Stationary | Sequence[Stationary] | None,
    points: Array,
    target: Target,
    warnings: list[str],
) -> list[Family]:
    """The kernels to fit, with their priors."""
    same = np.flatnonzero(np.ptp(points, axis=0) == 0)
    if len(same):
        raise ValueError(
            f"all points have the same coordinate {same[0]}, so that the values do not tell how f "
            "varies in it: give points that differ there, or use Design.integrate with a kernel "
            "that you know"
        )
    if kernel is None:
        ones = np.ones(points.shape[1])
        kernels: list[Any] = [Matern(ones, nu=nu) for nu in (0.5, 1.5, 2.5)]
        kernels.append(ExponentiatedQuadratic(ones))
        working = [own for own in kernels if _embeds(own, target)]
        if not working:
            embed(kernels[-1], target)  # raises the error that says which do
        if len(working) < len(kernels):
            names = sorted({type(own).__name__ for own in working})
            warnings.append(
                f"of the default kernels only {', '.join(names)} has an embedding with this "
                "target: if f is less smooth, the interval is too narrow"
            )
        return [family_of(own, points) for own in working]
    if not isinstance(kernel, Kernel | list | tuple):
        raise TypeError(
            f"kernel is {kernel!r}; it must be a kernel, such as Matern(1.0), or a list of kernels"
        )
    kernels = [kernel] if isinstance(kernel, Kernel) else list(kernel)
    if not kernels:
        raise ValueError("kernel is an empty list; give at least one kernel, or leave it out")
    strangers = [type(own).__name__ for own in kernels if not isinstance(own, STATIONARY)]
    if strangers:
        raise TypeError(
            f"these kernels have no length-scales to fit: {', '.join(strangers)}. Use "
            "ExponentiatedQuadratic, Matern or RationalQuadratic; with a kernel that you know, use "
            "Design.integrate"
        )
    for own in kernels:
        embed(own, target)
    return [family_of(own, points) for own in kernels]


def _embeds(kernel: Kernel, target: Target) -> bool:
    try:
        embed(kernel, target)
    except (TypeError, ValueError):
        return False
    return True


def _moments(data: _Data, f: Array, name: str, count: int) -> list[Integral]:
    """The mean of one output, and its central moments up to `count`."""
    found = [_one(data, f, name)]
    mean = found[0]
    for k in range(2, count + 1):
        own = _one(
            data, (f - mean.mean) ** k, f"{MOMENTS.get(k, f'central moment {k}')} of {name or 'f'}"
        )
        # The derivative of the moment by the mean is -k times the moment below, which is zero for
        # k = 2. There the square of the error remains, whose expectation is a bias.
        below = found[-1].mean if k > 2 else 0.0
        spread = np.hypot(own.std, k * below * mean.std)
        bias = mean.std**2 if k == 2 else 0.0
        found.append(replace(own, mean=own.mean - bias, std=float(spread)))
    return found


def _one(data: _Data, f: Array, name: str) -> Integral:
    """The integral of one output."""
    f = checked_values_of_f(f, len(data.points))
    rows, noise = np.arange(len(f)), data.noise
    if noise is None:
        refuse_two_values(data.points, f)
        rows = np.flatnonzero(first_occurrence(data.points) == rows)
    if len(rows) < FEWEST:
        raise ValueError(
            f"there are {len(rows)} distinct points with values; at least {FEWEST} are needed for "
            "an interval: give more points"
        )
    centre = f.mean() if data.constant else 0.0
    unit = float(np.sqrt(np.mean(np.square(f - centre))))
    if unit <= 1e-14 * np.abs(f).max(initial=0.0):
        raise ValueError(
            f"all values of f{f' ({name})' if name else ''} are equal, {f[0]:g}, so that they do "
            "not tell how f varies: give other values, or check f"
        )
    values = Values(
        data.points[rows],
        (f[rows] - centre) / unit,
        None if noise is None else noise[rows] / unit**2,
        data.constant,
    )
    posterior = kernel_posterior(data.families, values)
    parts = np.array([_given(point, values, data.target) for point in posterior.points])
    weights = np.array([point.weight for point in posterior.points])
    mean = float(weights @ parts[:, 0])
    freedom = np.inf if noise is not None else float(values.freedom)
    # Of a Student distribution, the variance is larger than the squared scale by this factor.
    factor = 1.0 if np.isinf(freedom) else freedom / (freedom - 2)
    variance = weights @ parts[:, 1] + weights @ np.square(parts[:, 0] - mean) / factor
    scale, checks = _left_out(posterior.best, values, data.rows[rows])
    rough = float(weights @ np.array([point.nugget for point in posterior.points]))
    covered = float(weights @ parts[:, 2])
    warnings = [*data.warnings]
    warnings += _warnings(posterior, data, len(rows), rough, covered)
    return Integral(
        mean=float(centre + unit * mean),
        std=float(unit * np.sqrt(variance) * max(1.0, checks.excess)),
        output_scale=float(unit * scale),
        freedom=freedom,
        name=name,
        warnings=tuple(warnings + _surprises(checks.standardised, checks.rows)),
        kernel=posterior.best.kernel,
        left_out=replace(
            checks,
            values=f[rows],
            predictions=centre + unit * checks.predictions,
            stds=unit * checks.stds,
        ),
    )


def _left_out(point: Point, values: Values, rows: Indices) -> tuple[float, LeftOut]:
    """The output scale for given parameters, and the leave-one-out predictions."""
    gram = checked_gram(point.kernel, values.points, values.points)
    matrix = covariance(gram, point, values)
    if values.noise is not None:
        # The scale is in the matrix.
        return float(np.sqrt(point.variance)), left_out(
            matrix, values.f, 1.0, values.constant, rows
        )
    scale = float(np.sqrt(solution(matrix, values).misfit / values.freedom))
    return scale, left_out(matrix, values.f, scale, values.constant, rows)


def _given(point: Point, values: Values, target: Target) -> tuple[float, float, float]:
    """For given parameters: mean, squared scale, and the sum of the weights of mean zero."""
    embedding: Embedding = embed(point.kernel, target)
    gram = checked_gram(point.kernel, values.points, values.points)
    matrix = covariance(gram, point, values)
    found = solution(matrix, values)
    z = point.variance * embedding.kernel_mean(values.points)
    weights = cho_solve((found.factor, True), z)
    covered = float(weights.sum())
    if values.constant:
        weights += found.ones * (1 - found.ones @ z) / found.information
    mmd2 = point.variance * (
        embedding.prior_variance - 2 * weights @ z / point.variance + weights @ gram @ weights
    )
    # Where rounding is all that is left of the first, the second holds the nugget.
    own = np.diag(matrix) - point.variance * np.diag(gram)
    variance = max(float(mmd2), 0.0) + float(own @ np.square(weights))
    if values.noise is None:
        variance *= found.misfit / values.freedom
    return float(weights @ values.f), variance, covered


def _warnings(
    posterior: KernelPosterior, data: _Data, n: int, rough: float, covered: float
) -> list[str]:
    """Why the estimate should be checked."""
    found, dim = [], data.points.shape[1]
    if posterior.flat:
        found.append(
            f"the {n} values do not tell the length-scales: the interval rests on their prior. Add "
            "points"
        )
    elif n < 2 * dim:
        found.append(
            f"{n} points in {dim} dimensions are few: the interval rests mostly on the prior of "
            "the length-scales. Add points"
        )
    if covered < COVERED:
        found.append(
            f"the points cover {100 * covered:.0f} % of the target at the length-scales that fit; "
            "the rest of the estimate is the constant mean of the values. Add points"
            if data.constant
            else f"the weights sum to {covered:.2f}: the points cover little of the target at the "
            "length-scales that fit, and the rest of the estimate is zero. Add points, or use the "
            'mean "constant"'
        )
    if rough > ROUGH:
        found.append(
            f"{100 * rough / (1 + rough):.0f} % of the variance is not explained by any "
            "length-scale: f has noise, jumps or much faster changes than the points show"
        )
    if posterior.effective < EFFECTIVE:
        found.append(
            "the posterior of the kernel parameters has a shape that few points cannot represent: "
            "compare with another kernel"
        )
    return found


def _surprises(standardised: Array, rows: Indices) -> list[str]:
    worst = int(np.argmax(np.abs(standardised)))
    if abs(standardised[worst]) <= SURPRISE:
        return []
    return [
        f"the value in row {rows[worst]} is {abs(standardised[worst]):.1f} standard deviations "
        "from what the others predict: check this run. If it is right, f has a peak or an edge, "
        "and the interval may be too narrow"
    ]
