"""Sums over a data set at its own points, from one half of its Gram matrix.

Block by block, as a block serves its rows and its columns. The two kernels that most sweeps use
have blocks of their own, worked out in place in arrays that stay in the processor's cache.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
from scipy.spatial.distance import cdist

from bqlib.answers import of_shape
from bqlib.arrays import Array, ArrayFunction, Indices
from bqlib.kernels import ExponentiatedQuadratic, Kernel, Matern
from bqlib.kernels.matern import FARTHEST, MATERN_VALUE, TOGETHER

SIDE = 1024  # points along a side of a block of any kernel, so that memory stays flat
ROWS, COLUMNS = 256, 512  # of a block that is worked out in place
WIDEST = 32.0  # squared radius of the rows, in length-scales: beyond, their coordinates lose digits
# Of the columns of a block and four arrays to work in, to its values, which are in one of these.
BlockOf = Callable[[slice, Array], Array]
Pairs = Callable[[Array, Array], BlockOf]  # of the rows (n, d) and all columns (m, d)


def half_gram_sums(kernel: Kernel, points: Array, weights: Array) -> tuple[Array, float]:
    """sum_j w_j k(x_i, x_j) at all points (M,), and sum_ij w_i w_j k(x_i, x_j).

    O(M^2 d) time, O(M d) memory. Points that are equal count as one with the sum of their weights.
    """
    distinct, which = np.unique(points, axis=0, return_inverse=True)
    if len(distinct) < len(points):
        which = which.ravel()
        summed: Any = np.bincount(which, weights=weights)  # of floats, which stubs do not say
        mean, total = half_gram_sums(kernel, distinct, summed)
        return mean[which], total
    match kernel:
        case ExponentiatedQuadratic() if _has_values_of(ExponentiatedQuadratic, kernel):
            in_units, pairs = kernel.in_lengthscales, _exponentiated_quadratic
            mean = _sums_in_place(kernel, in_units, pairs, points, weights)
        case Matern() if _has_values_of(Matern, kernel):
            rates = kernel.rates(points.shape[1])
            pairs = partial(_matern, kernel.nu)
            mean = _sums_in_place(kernel, lambda x: x * rates, pairs, points, weights)
        case _:
            mean = _sums(kernel, points, weights)
    return mean, float(weights @ mean)


def _has_values_of(kind: Any, kernel: Kernel) -> bool:
    """Whether a kernel has the values of a class: a subclass may have others."""
    own: Any = type(kernel)
    return own.__call__ is kind.__call__ and own.height is kind.height


def _sums(kernel: Kernel, points: Array, weights: Array) -> Array:
    mean = np.zeros(len(points))
    who = f"k(x, y) of {type(kernel).__name__}"
    for start in range(0, len(points), SIDE):
        rows = slice(start, start + SIDE)
        for other in range(start, len(points), SIDE):
            own = slice(other, other + SIDE)
            x, y = points[rows], points[own]
            block = of_shape(kernel(x, y), (len(x), len(y)), x, who)
            mean[rows] += block @ weights[own]
            if other > start:
                mean[own] += weights[rows] @ block
    return mean


def _sums_in_place(
    kernel: ExponentiatedQuadratic | Matern,
    in_units: ArrayFunction,
    pairs: Pairs,
    points: Array,
    weights: Array,
) -> Array:
    """The same, for a kernel of x - y with length-scales that `in_units` makes one.

    The origin is in the middle of the rows of a block. As these are near each other, the rounding
    of coordinates is that of distances, wherever the data are.
    """
    size, height = points.shape[0], kernel.height(points.shape[1])
    order = near_order(in_units(points - points.mean(axis=0)), ROWS)
    points, weights = points[order], weights[order]
    sums = np.zeros(size)
    room = np.empty((4, ROWS * COLUMNS))
    for start in range(0, size, ROWS):
        rows = points[start : start + ROWS]
        shares = weights[start : start + ROWS]
        origin = (rows.min(axis=0) + rows.max(axis=0)) / 2
        columns = in_units(points[start:] - origin)
        narrow = np.square(columns[: len(rows)]).sum(axis=1).max() <= WIDEST
        block_of = pairs(columns[: len(rows)], columns) if narrow else None
        for first in range(0, size - start, COLUMNS):
            own = slice(first, min(first + COLUMNS, size - start))
            if block_of is None:
                block = kernel(rows, points[start:][own]) / height
            else:
                width = own.stop - first
                block = block_of(own, room[:, : len(rows) * width].reshape(4, len(rows), width))
            sums[start : start + ROWS] += block @ weights[start:][own]
            mirrored = 0 if first else len(rows)  # beyond the rows against themselves
            sums[start + first + mirrored : start + own.stop] += shares @ block[:, mirrored:]
    mean = np.empty(size)
    mean[order] = height * sums
    return mean


def near_order(points: Array, size: int) -> Indices:
    """An order in which each `size` points, from the first on, are near each other.

    By halves of halves, each cut across its widest coordinate. O(M d log M) time for M points.
    """

    def ordered(group: Indices) -> Indices:
        if len(group) <= size:
            return group
        own = points[group]
        widest = int(np.argmax(np.ptp(own, axis=0)))
        left = (-(-len(group) // size) // 2) * size
        group = group[np.argpartition(own[:, widest], left)]
        return np.concatenate([ordered(group[:left]), ordered(group[left:])])

    return ordered(np.arange(len(points)))


def _exponentiated_quadratic(x: Array, y: Array) -> BlockOf:
    """exp(-|x - y|^2 / 2), with |x - y|^2 as |x|^2 - 2 x'y + |y|^2 by one product."""
    left, right = np.ones((len(x), x.shape[1] + 2)), np.ones((x.shape[1] + 2, len(y)))
    left[:, :-2], right[:-2] = x, y.T
    left[:, -1] = -0.5 * np.square(x).sum(axis=1)
    right[-2] = -0.5 * np.square(y).sum(axis=1)

    def block_of(own: slice, arrays: Array) -> Array:
        values = np.dot(left, right[:, own], out=arrays[0])
        return np.exp(values, out=values)

    return block_of


def _matern(nu: float, x: Array, y: Array) -> BlockOf:
    """The product over coordinates of P(rho) exp(-rho) with rho = |x - y|.

    One exponential serves as many coordinates as their polynomials allow.
    """
    far = np.abs(x).max() + np.abs(y).max() > FARTHEST
    dim, columns = x.shape[1], np.ascontiguousarray(y.T)

    def block_of(own: slice, arrays: Array) -> Array:
        value, total, other, factor = arrays
        if nu == 0.5:  # P is one
            cdist(x, y[own], "cityblock", out=value)
            return np.exp(np.negative(value, out=value), out=value)
        for first in range(0, dim, TOGETHER):
            for c in range(first, min(first + TOGETHER, dim)):
                rho = total if c == first else other
                np.subtract(x[:, c, None], columns[c, own], out=rho)
                np.abs(rho, out=rho)
                if far:
                    np.minimum(rho, FARTHEST, out=rho)
                if c > first:
                    total += rho
                polynomial = value if c == 0 else factor
                _polyval_in(polynomial, rho, MATERN_VALUE[nu])
                if c:
                    value *= polynomial
            np.negative(total, out=total)
            value *= np.exp(total, out=total)
        return value

    return block_of


def _polyval_in(out: Array, x: Array, coefficients: tuple[float, ...]) -> None:
    """Put sum_k coefficients[k] x^k into an array, for two coefficients or more."""
    if coefficients[-1] == 1:
        np.add(x, coefficients[-2], out=out)
    else:
        np.multiply(x, coefficients[-1], out=out)
        out += coefficients[-2]
    for coefficient in coefficients[-3::-1]:
        out *= x
        out += coefficient
