"""The arrays of the numerics: their names in annotations, and small functions of them."""

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray
from scipy.linalg import lapack

Array = NDArray[np.float64]  # docstrings give the shapes
Indices = NDArray[np.intp]
Mask = NDArray[np.bool_]
ArrayFunction = Callable[[Array], Array]
Seed = np.random.Generator | int


def read_only(array: Array) -> Array:
    """The array itself, which can no longer be written: numpy raises a ValueError."""
    array.flags.writeable = False
    return array


def with_read_only_arrays(self: Any, state: dict[str, Any]) -> None:
    """``__setstate__`` of classes whose arrays are read-only, as pickle and copy forget that."""
    for value in state.values():
        if isinstance(value, np.ndarray):
            read_only(value)
    vars(self).update(state)


def total(terms: Iterable[Array]) -> Array:
    """Sum of arrays, in their order."""
    return sum(terms, start=np.zeros(()))


def polyval(x: Any, coefficients: Sequence[float]) -> Any:
    """sum_k coefficients[k] x^k, for a number or an array x, real or complex."""
    value: Any = coefficients[-1]
    for coefficient in coefficients[-2::-1]:
        value = value * x
        value += coefficient
    return value


def product_gradient(values: Array, slopes: Array) -> Array:
    """Gradient of a product of d functions of one coordinate each.

    `values` and `slopes`, shape (d, ...), hold the functions and their derivatives; the result
    has shape (..., d).
    """
    parts = [np.prod(np.delete(values, c, axis=0), axis=0) * s for c, s in enumerate(slopes)]
    return np.stack(parts, axis=-1)


def solve_lower(factor: Array, right: Array, transposed: bool = False) -> Array:
    """L^{-1} B, or L^{-T} B, for a lower triangular factor L (d, d) and B (d, n).

    Calls LAPACK directly: for few points, the checks of scipy's solve_triangular cost several times
    as much as the solution.
    """
    if not right.size:
        return right
    return lapack.dtrtrs(factor, right, lower=1, trans=int(transposed))[0]
