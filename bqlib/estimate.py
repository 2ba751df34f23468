"""From values of f at any points to its integral: the kernel is fitted in the same call."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import cho_solve
from scipy.spatial.distance import pdist, squareform

from bqlib.answers import checked_gram
from bqlib.arrays import Array, Indices
from bqlib.checks import LONGEST, checked_array, checked_values_of_f
from bqlib.designs.design import box_of
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
from bqlib.marginals import REACH, Marginals, points_for
from bqlib.output_variance import spread_points, variance_given
from bqlib.pivots import refuse_two_values
from bqlib.posterior import Integral
from bqlib.tables import labels_of, listed, order_of, outputs_of, without_missing
from bqlib.targets import Target

FEWEST = 4  # values that leave three degrees of freedom, with which a variance is finite
COVERED = 0.5  # of the weight, on the points: with less, most of the estimate is the constant
ROUGH = 0.1  # share of the variance that no length-scale explains
SURPRISE = 1e-3  # chance that a right model gives a value, of all n, that should be looked at
BEYOND = 0.25  # share of the target in one coordinate: more is not covered by good points
NEAR = 1e-8  # of the width of the points: values at such a distance tell one thing
EFFECTIVE = 5.0  # points of a posterior: fewer do not represent it


def integrate(
    target: Target,
    points: ArrayLike,
    values: ArrayLike,
    *,
    kernel: Any = None,
    mean: str = "constant",
    noise: Any = None,
    variance: bool = False,
    missing: str = "refuse",
) -> Any:
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
        Known variance of the noise of all values, or of each, in squared units of f, the same for
        all outputs. Points may then be repeated. Default: no noise, and points that are repeated
        must have equal values.
    variance : bool
        True: estimate the variance of f under the target too, its second central moment.
    missing : {"refuse", "drop"}
        What to do with points where a value is NaN: raise an error, or leave them out.

    Returns
    -------
    Integral or tuple of Integral
        One, with `mean`, `std`, `interval(level)`, `warnings`, `kernel` and `left_out`. A tuple
        for several outputs, or with `variance`: the mean and the variance of the first output, then
        of the next.

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

    The variance of f is that of the posterior of f at 2048 Sobol points of the target, or draws of
    one that has no map from the unit cube. Its error is that of this posterior, and that of the
    integral of (f - mean)^2 by a model of its own. `std` itself has an error of about a tenth,
    since few points stand for the posterior: so much it may change with the order of coordinates.

    For each kernel about 200 + 4 d likelihoods, of O(n^3 + n^2 d) time and O(n^2 d) memory, and at
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
    >>> points = bqlib.sobol_points(inputs, 32, rng=0)
    >>> result = bqlib.integrate(inputs, points, [x[0] * np.exp(-x[1]) for x in points])
    >>> lower, upper = result.interval(0.95)  # the integral is 2 (1 - exp(-5)) / 5 = 0.3973
    >>> bool(lower < 0.3973 < upper)
    True
    """
    refuse_no_target(target)
    raw = points
    points = points_for(target, points)
    outputs = outputs_of(values, raw, len(points))
    if mean not in ("constant", "zero"):
        raise ValueError(f'mean is {mean!r}; it must be "constant" or "zero"')
    shared = sorted(set(outputs.names) & set(target.names if isinstance(target, Marginals) else ()))
    if shared:
        raise ValueError(
            f"the values have columns with the names of inputs: {', '.join(shared)}. Pass only the "
            "columns that are outputs of f"
        )
    outputs, points, dropped = without_missing(outputs, points, missing)
    n = len(points) + len(dropped)
    kept: Indices = np.delete(np.arange(n), list(dropped))
    labels = labels_of(raw)
    labels = np.arange(n) if labels is None else labels
    if noise is not None and variance:
        raise ValueError(
            "variance=True, with noise: the noise of the values would count as a part of the "
            "variance of f. Leave out one of the two"
        )
    variances = None if noise is None else _checked_noise(noise, raw, n, kept)
    x, inner = points, target
    if isinstance(target, Marginals):
        x, inner = target.to_standard(points), target.standard
    warnings = _of_points(target, inner, x, labels[kept])
    families = _families(kernel, x, inner, warnings)
    if dropped:
        warnings.append(
            f"{len(dropped)} of {n} points have values that are NaN and are left out: "
            f"{listed(labels[list(dropped)].tolist())}"
        )
    everywhere = spread_points(inner) if variance else None
    data = _Data(
        inner, families, x, variances, mean == "constant", labels[kept], everywhere, tuple(warnings)
    )
    found: list[Integral] = []
    for column, name in zip(outputs.columns, outputs.names, strict=True):
        found += _one(data, column, name)
    return found[0] if len(found) == 1 and outputs.single else tuple(found)


@dataclass(frozen=True, eq=False)
class _Data:
    """What the outputs have in common."""

    target: Target
    families: Sequence[Family]
    points: Array
    noise: Array | None
    constant: bool
    rows: Any  # labels of the points, (n,)
    everywhere: Array | None  # where the variance of f is computed, if it is asked for
    warnings: tuple[str, ...]


def _checked_noise(noise: ArrayLike, points: ArrayLike, n: int, kept: Indices) -> Array:
    """Variances of the noise of the values that are kept."""
    array = checked_array(noise, "noise", missing_as_nan=True)
    if array.shape not in ((), (n,)):
        raise ValueError(
            f"noise has shape {array.shape}; it must be one variance, or one for each of {n} "
            "points, which all outputs share"
        )
    if array.shape:
        array = array[order_of(noise, points, n)][kept]
    if not (np.isfinite(array).all() and (array > 0).all()):
        raise ValueError(
            "noise must be finite and above zero: it is a variance, in squared units of f. Leave "
            "it out if the values have none"
        )
    return np.broadcast_to(array, len(kept))


def _of_points(target: Target, inner: Target, x: Array, labels: Any) -> list[str]:
    """Why points, in the coordinates of the kernel, may be the wrong ones."""
    found = []
    lower, upper = box_of(inner)
    outside = ((x < lower) | (x > upper)).any(axis=1)
    if outside.any():
        found.append(
            f"{outside.sum()} of {len(x)} points lie outside the target, such as row "
            f"{labels[np.argmax(outside)]}: check their units. What f does there matters less"
        )
    everywhere = spread_points(inner)
    beyond = ((everywhere < x.min(axis=0)) | (everywhere > x.max(axis=0))).mean(axis=0)
    worst = int(np.argmax(beyond))
    # Even well chosen points leave about one part in n at each end.
    if beyond[worst] > max(BEYOND, 4 / len(x)):
        name = target.names[worst] if isinstance(target, Marginals) else f"coordinate {worst}"
        found.append(
            f"{100 * beyond[worst]:.0f} % of the target lies beyond all points in {name}: they may "
            "have been chosen for another target. Add points there"
        )
    if isinstance(target, Marginals) and (ends := (np.abs(x) >= REACH).any(axis=1)).any():
        found.append(
            f"{ends.sum()} of {len(x)} points lie so near to the end of an input that float64 "
            "cannot tell them apart there: give the input a marginal with less mass at its ends"
        )
    return found


def _families(
    kernel: Stationary | Sequence[Stationary] | None,
    points: Array,
    target: Target,
    warnings: list[str],
) -> list[Family]:
    """The kernels to fit, with their priors."""
    same = np.flatnonzero(points.std(axis=0) == 0)
    if len(same) and len(points) >= FEWEST:
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


def _one(data: _Data, f: Array, name: str) -> list[Integral]:
    """The mean of one output, and its variance if it is asked for."""
    f = checked_values_of_f(f, len(data.points))
    rows, noise = np.arange(len(f)), data.noise
    if noise is None:
        refuse_two_values(data.points, f)
        rows = _apart(data.points)
    if len(rows) < FEWEST:
        raise ValueError(
            f"there are {len(rows)} distinct points with values; at least {FEWEST} are needed for "
            "an interval: give more points"
        )
    centre = f.mean() if data.constant else 0.0
    unit = float(np.sqrt(np.mean(np.square(f - centre))))
    if unit <= 1e-14 * np.abs(f).max(initial=0.0):
        if noise is None:
            raise ValueError(
                f"all values of {name or 'f'} are equal, {f[0]:g}, up to rounding, so that they do "
                "not tell how f varies: give other values, check f, or subtract its large mean "
                "where it is computed"
            )
        unit = float(np.sqrt(noise.mean()))
    if noise is not None and noise.max() > LONGEST * unit**2:
        raise ValueError(
            f"the noise is up to {noise.max():g}, beyond all that the values can tell: they vary "
            f"by about {unit:g}. noise is a variance, in squared units of f"
        )
    values = Values(
        data.points[rows],
        (f[rows] - centre) / unit,
        None if noise is None else noise[rows] / unit**2,
        data.constant,
    )
    posterior = kernel_posterior(data.families, values)
    freedom = np.inf if noise is not None else float(values.freedom)
    scale, checks = _left_out(posterior.best, values, data.rows[rows])
    checks = replace(
        checks,
        values=f[rows],
        predictions=centre + unit * checks.predictions,
        stds=unit * checks.stds,
    )
    given = [_given(point, values, data.target) for point in posterior.points]
    mean, std = _averaged(posterior, [own[:2] for own in given], freedom)
    rough = float(np.exp(posterior.average([np.log(p.nugget) for p in posterior.points])))
    covered = posterior.average([share for _, _, share in given])
    warnings = [*data.warnings, *_warnings(posterior, data, len(rows), rough, covered)]
    estimate = Integral(
        mean=float(centre + unit * mean),
        std=unit * std * max(1.0, checks.excess),
        output_scale=float(unit * scale),
        freedom=freedom,
        name=name,
        warnings=(*warnings, *_surprises(checks, freedom)),
        kernel=posterior.best.kernel,
        left_out=checks,
    )
    if data.everywhere is None:
        return [estimate]
    quadratic = [variance_given(point, values, data.everywhere) for point in posterior.points]
    mean, std = _averaged(posterior, quadratic, freedom)
    # Where f misses the model, it misses in its large values most: a model of the squares tells.
    squares = np.square(f - estimate.mean)
    alone = replace(data, everywhere=None, constant=True)
    own = 0.0 if np.ptp(squares) <= 1e-14 * squares.max() else _one(alone, squares, "")[0].std
    spread = replace(
        estimate,
        mean=unit**2 * mean,
        std=float(np.hypot(unit**2 * std, own)),
        name=f"variance of {name or 'f'}",
    )
    return [estimate, spread]


def _averaged(
    posterior: KernelPosterior, given: Sequence[tuple[float, float]], freedom: float
) -> tuple[float, float]:
    """Mean and scale over all parameters, from the mean and the squared scale for each."""
    means, squares = np.transpose(given)
    mean = posterior.average(means)
    # Of a Student distribution, the variance is larger than the squared scale by this factor.
    factor = 1.0 if np.isinf(freedom) else freedom / (freedom - 2)
    square = posterior.average(squares) + posterior.average(np.square(means - mean)) / factor
    return mean, float(np.sqrt(square))


def _apart(points: Array) -> Indices:
    """Rows of the points without those that repeat an earlier one, exactly or nearly."""
    widths = np.ptp(points, axis=0)
    distances = squareform(pdist(points / np.where(widths > 0, widths, 1.0)))
    return np.flatnonzero(~np.tril(distances <= NEAR, -1).any(axis=1))


def _left_out(point: Point, values: Values, rows: Any) -> tuple[float, LeftOut]:
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


def _surprises(checks: LeftOut, freedom: float) -> list[str]:
    """The value that is farthest from what the others predict, if it is far."""
    chances = checks.surprises(freedom)
    worst = int(np.argmin(chances))
    if chances[worst] * len(chances) > SURPRISE:
        return []
    return [
        f"the value in row {checks.rows[worst]} is {checks.values[worst]:.4g}, and the others "
        f"predict {checks.predictions[worst]:.4g}: check this run. If it is right, f has a peak or "
        "an edge, and the interval may be too narrow"
    ]
