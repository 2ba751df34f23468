"""The integral of one f: its estimate from values at weighted points, and its accuracy.

Both use one model of f, a Gaussian process. Functions can be drawn from this model too.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import lapack, solve_triangular
from scipy.special import ndtri, stdtrit

from bqlib.answers import checked_gram
from bqlib.arrays import Array, Seed
from bqlib.checks import (
    check_level,
    checked_array,
    checked_column,
    checked_count,
    checked_number,
    checked_rng,
    checked_values,
    checked_values_of_f,
    sums_to_one,
)
from bqlib.discrepancy import mmd2_and_rounding
from bqlib.embeddings.embedding import Embedding, points_of
from bqlib.kernels import Kernel
from bqlib.leave_one_out import LeftOut
from bqlib.notebook import html_table
from bqlib.pivots import (
    PIVOT_TOLERANCE,
    distinct_points,
    first_occurrence,
    leading_cholesky,
    not_spent,
    refuse_two_values,
)

LOW_SUM = 0.5  # of weights: below it, the prior mean of zero counts for more than the values
ALL_EQUAL = (
    "all values are equal, so the fitted output scale is zero and the interval has no width: f may "
    "vary where there is no point. Add points, or set output_scale to how much f may vary"
)


@dataclass(frozen=True, eq=False)
class Integral:
    """Estimate of an integral under the target, and its error under a model of f.

    The model: f is drawn from a Gaussian process with covariance a^2 k, where k is the design's
    kernel and a the output scale. Its mean is zero, or any constant if the weights sum to one.

    Attributes
    ----------
    mean : float
        The estimate w'f. With weights :func:`bqlib.weights.bq` or
        :func:`bqlib.weights.sum_to_one`, the posterior mean of the integral.
    std : float
        a MMD(w), in units of f: the root mean squared error of the estimate over draws of f from
        the model. With the same two rules, the posterior standard deviation. If the MMD is below
        the rounding error of float64, a bound on this error is used instead. From
        :func:`bqlib.integrate`, that of the average over all kernel parameters.
    output_scale : float
        a, as given or as fitted to the values.
    freedom : float
        Degrees of freedom of the fitted a; infinity if a was given, or the values have noise.
    name : str
        Of the output, if values were given as a table.
    warnings : tuple of str
        Why you should check the estimate; empty if the values show no reason.
    kernel : Kernel, optional
        With kernel parameters that fit the values best, in the standard coordinates of
        :class:`bqlib.Marginals`: None if :func:`bqlib.integrate` did not make the estimate.
    left_out : LeftOut, optional
        What the other values say of each value: see :func:`bqlib.leave_one_out`. None as `kernel`.

    Examples
    --------
    >>> from bqlib.posterior import Integral
    >>> result = Integral(mean=0.61, std=0.01, output_scale=1.0, freedom=float("inf"))
    >>> [round(end, 3) for end in result.interval(0.95)]
    [0.59, 0.63]
    """

    mean: float
    std: float
    output_scale: float
    freedom: float
    name: str = ""
    warnings: tuple[str, ...] = ()
    kernel: Kernel | None = field(default=None, repr=False)
    left_out: LeftOut | None = field(default=None, repr=False)

    def interval(self, level: float = 0.95) -> tuple[float, float]:
        """Lower and upper end of the central credible interval, in units of f.

        Student's t about `mean` with `freedom` degrees of freedom and scale `std` (normal if the
        output scale was given). Under the model, it contains the integral with probability `level`:
        exactly for the weights ``bq`` and ``sum_to_one``, and nearly for others.

        Parameters
        ----------
        level : float
            Between 0 and 1 (default: 0.95).

        Returns
        -------
        lower, upper : float

        Raises
        ------
        ValueError
            If `level` is not between 0 and 1.
        """
        check_level(level)
        tail = (1 + level) / 2
        quantile = ndtri(tail) if np.isinf(self.freedom) else stdtrit(self.freedom, tail)
        half = float(quantile) * self.std
        return self.mean - half, self.mean + half

    def _repr_html_(self) -> str:
        """What a notebook shows: the estimate, its error and its 95 % interval."""
        lower, upper = self.interval(0.95)
        rows = [
            ("mean", f"{self.mean:.9g}"),
            ("std", f"{self.std:.3g}"),
            ("95 % interval", f"{lower:.9g} to {upper:.9g}"),
            ("output scale", f"{self.output_scale:.3g}"),
            ("degrees of freedom", f"{self.freedom:g}"),
        ]
        rows += [("warning", warning) for warning in self.warnings]
        return html_table(f"Integral of {self.name}" if self.name else "Integral", rows)


def integral(
    embedding: Embedding,
    points: ArrayLike,
    weights: ArrayLike,
    values: ArrayLike,
    *,
    output_scale: float | None = None,
) -> Integral:
    """Estimate the integral of f under the embedding's target from its values at points.

    Parameters
    ----------
    embedding : Embedding
    points : array_like, shape (n, d)
    weights : array_like, shape (n,)
    values : array_like, shape (n,)
        f at the points.
    output_scale : float, optional
        The a of :class:`Integral`. By default it is fitted by maximum likelihood,
        a^2 = f'K^{-1}f / n. If the weights sum to one, it is fitted to f minus its best constant,
        with n - 1 instead of n. The fit leaves out repeated and redundant points.

    Returns
    -------
    Integral
        With `mean`, `std`, `output_scale`, `freedom` and `interval(level)`.

    Raises
    ------
    ValueError
        If the weights or values are not n finite numbers, if f has two values at one point, if too
        few points are left to fit the output scale, or if prior variance and weights are all zero.
    TypeError
        If `embedding` is not an Embedding, or an array does not hold real numbers.

    Notes
    -----
    O(n^3 + n^2 d) time, O(n^2) memory. The standard deviation is right on average over functions
    that match the kernel. For a rougher f it is too small, and the values at the points may not
    show this.

    Examples
    --------
    >>> from bqlib import Brownian, Uniform, embed
    >>> from bqlib.posterior import integral
    >>> embedding = embed(Brownian(), Uniform([0], [1]))
    >>> result = integral(embedding, [[0.4], [0.8]], [0.4, 0.4], values=[0.16, 0.64])
    >>> round(result.mean, 3), round(result.std, 3)  # f is x^2, its integral 1/3
    (0.32, 0.065)
    """
    values = checked_column(values, "values of f")
    (found,) = integrals(embedding, points, weights, values[None], output_scale=output_scale)
    return found


def integrals(
    embedding: Embedding,
    points: ArrayLike,
    weights: ArrayLike,
    values: ArrayLike,
    *,
    names: Sequence[str] = (),
    output_scale: float | None = None,
) -> tuple[Integral, ...]:
    """As :func:`integral`, for m functions at the same points.

    Parameters
    ----------
    embedding : Embedding
    points : array_like, shape (n, d)
    weights : array_like, shape (n,)
    values : array_like, shape (m, n)
        A row for each function.
    names : sequence of str
        Of the functions; empty texts by default.
    output_scale : float, optional
        As for :func:`integral`; by default each function has its own.

    Returns
    -------
    tuple of Integral
        One for each function. It does not depend on the other functions.

    Raises
    ------
    ValueError, TypeError
        As for :func:`integral`, or if `values` are no matrix.

    Notes
    -----
    O(n^3 + n^2 (d + m)) time, O(n^2 + n m) memory.

    Examples
    --------
    >>> from bqlib import Brownian, Uniform, embed
    >>> from bqlib.posterior import integrals
    >>> embedding = embed(Brownian(), Uniform([0], [1]))
    >>> both = integrals(embedding, [[0.4], [0.8]], [0.4, 0.4], [[0.16, 0.64], [0.4, 0.8]])
    >>> [round(found.mean, 3) for found in both]  # f is x^2, and x
    [0.32, 0.48]
    """
    points = points_of(embedding, points)
    constant = sums_to_one(checked_array(weights, "weights", keep_precision=True))
    weights = checked_values(weights, len(points), "weights")
    rows = checked_array(values, "values of f")
    if rows.ndim != 2:
        raise ValueError(f"values of f have shape {rows.shape}; m functions need shape (m, n)")
    rows = np.array([checked_values_of_f(row, len(points)) for row in rows])
    if embedding.prior_variance == 0 and not weights.any():
        raise ValueError(
            "the integral has prior variance zero under this kernel, and every weight is zero: for "
            "a Stein kernel set constant above zero, for another kernel use a longer length-scale"
        )
    if (first_occurrence(points) != np.arange(len(points))).any():
        for row in rows:
            refuse_two_values(points, row)
    if output_scale is None:
        scales, freedom = _fitted_output_scales(embedding.kernel, points, rows, constant)
    elif not 0 < (output_scale := checked_number(output_scale, "output_scale")) < np.inf:
        raise ValueError(f"output_scale is {output_scale}; it must be finite and positive")
    else:
        scales, freedom = [output_scale] * len(rows), np.inf
    mmd2, rounding = mmd2_and_rounding(embedding, points, weights)
    # Where the first says nothing but "at most the second", a third of the second is its error.
    root = np.sqrt(mmd2 if mmd2 > rounding else 4 / 3 * rounding)
    low = [] if constant else _of_low_sum(float(weights.sum()))
    return tuple(
        Integral(
            mean=float(weights @ row),
            std=float(scale * root),
            output_scale=scale,
            freedom=freedom,
            name=name,
            warnings=(*low, *([] if scale else [ALL_EQUAL])),
        )
        for row, scale, name in zip(rows, scales, names or [""] * len(rows), strict=True)
    )


def _of_low_sum(total: float) -> list[str]:
    """A warning if the sum of weights is far below one, for an f of mean zero."""
    if total >= LOW_SUM:
        return []
    return [
        f"the weights sum to {total:.2g}: the points cover little of the target at this "
        "length-scale, and elsewhere f is taken to be zero. Add points, use a longer length-scale "
        "if f varies slowly, or leave the mean of f unknown with the weights of "
        "bqlib.weights.sum_to_one"
    ]


def _fitted_output_scales(
    kernel: Kernel, points: Array, rows: Array, constant: bool
) -> tuple[list[float], float]:
    """Output scale of greatest likelihood of each function, and their degrees of freedom.

    Repeated and redundant points are left out: see :func:`bqlib.weights.final`.

    Parameters
    ----------
    kernel
    points : ndarray, shape (n, d)
    rows : ndarray, shape (m, n)
        Values of m functions.
    constant : bool
        False: f has mean zero, and a^2 = f'K^{-1}f / n. True: f has an unknown constant mean, and
        the likelihood is that of its contrasts (restricted maximum likelihood).
    """
    distinct, gram = distinct_points(kernel, points)
    factor, rank = leading_cholesky(gram)
    if rank < len(distinct):
        kept = not_spent(kernel, points)
        own, gram = distinct_points(kernel, points[kept])
        distinct, (factor, rank) = kept[own], leading_cholesky(gram)
    freedom = rank - constant
    if freedom < 1:
        raise ValueError(
            f"{rank} distinct points are too few to fit the output scale: give more points, or set "
            "output_scale"
        )
    ones = solve_triangular(factor, np.ones(rank), lower=True)
    scales = []
    for values in rows:
        # One by one, so that rounding does not depend on the other functions.
        white: Array = solve_triangular(factor, values[distinct], lower=True)
        if constant:
            white -= ones * (ones @ white) / (ones @ ones)
        equal = constant and np.ptp(values) <= 4e-15 * np.abs(values).max()  # only rounding is left
        scales.append(0.0 if equal else float(np.sqrt(white @ white / freedom)))
    return scales, float(freedom)


def joint_draws(
    embedding: Embedding, points: ArrayLike, size: int, rng: Seed
) -> tuple[Array, Array]:
    """Functions from the model with output scale one: their values at points and their integrals.

    Parameters
    ----------
    embedding : Embedding
    points : array_like, shape (n, d)
    size : int
        Number of functions.
    rng : numpy.random.Generator or int
        A generator, or the seed of one.

    Returns
    -------
    values : ndarray, shape (size, n)
    integrals : ndarray, shape (size,)

    Raises
    ------
    ValueError
        If points are not a finite array (n, d), or `size` is negative.
    TypeError
        If `embedding` is not an Embedding, or `rng` is neither a seed nor a Generator.

    Notes
    -----
    O(n^3 + n^2 (d + size)) time, O(n (n + size)) memory.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib import Brownian, Uniform, embed
    >>> from bqlib.posterior import joint_draws
    >>> embedding = embed(Brownian(), Uniform([0], [1]))
    >>> values, integrals = joint_draws(embedding, [[0.5], [1.0]], size=4000, rng=0)
    >>> values.shape, round(float(np.var(integrals)), 1)  # the prior variance is 1/3
    ((4000, 2), 0.3)
    """
    points = points_of(embedding, points)
    size = checked_count(size, "size")
    gram = checked_gram(embedding.kernel, points, points)
    mean = embedding.kernel_mean(points)
    # The points with the largest pivots come first; float64 cannot tell the others from their span.
    floor = PIVOT_TOLERANCE * np.diag(gram).max(initial=0.0)
    factor, order, rank, _ = lapack.dpstrf(gram, lower=1, tol=floor)
    factor, order = np.tril(factor)[:, :rank], order - 1
    white = checked_rng(rng).standard_normal((size, len(points) + 1))
    values = np.empty((size, len(points)))
    values[:, order] = white[:, :rank] @ factor.T
    projection = solve_triangular(factor[:rank], mean[order[:rank]], lower=True)
    left = max(embedding.prior_variance - projection @ projection, 0.0)
    return values, white[:, :rank] @ projection + np.sqrt(left) * white[:, -1]
