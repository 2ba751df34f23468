"""Checks of arguments: each returns the argument in the form that the numerics need, or raises.

Lengths (coordinates, length-scales, standard deviations, widths) must be below 1e50, and positive
lengths above 1e-50. Then no square and no quotient of two leaves the range of float64. The heights
of kernels and the values of f must lie between the squares of these bounds.
"""

from collections.abc import Callable
from numbers import Real
from operator import index
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from bqlib.arrays import Array, read_only
from bqlib.streams import Spawning

LONGEST = 1e50
SHORTEST = 1e-50
_HEIGHTS = f"{SHORTEST**2:g} and {LONGEST**2:g}"
KINDS = {"c": "complex numbers", "U": "text", "S": "bytes", "M": "dates", "m": "durations"}
MOST_ROUNDING = 5e-3  # of a sum: beyond, it is no rounding in any type
CHANGE_UNITS = "change the unit of length"


def noted(problems: list[str], check: Callable[[Any], Any], value: Any) -> Any:
    """What a check returns; or None, and its problem joins the others."""
    try:
        return check(value)
    except ValueError as error:
        problems.append(str(error))
        return None


def checked_number(value: Any, name: str) -> float:
    """A number of any real type, or an array of shape (), as a float."""
    if isinstance(value, np.ndarray) and value.ndim == 0:
        value = value.item()
    if not isinstance(value, Real) or isinstance(value, bool):
        raise TypeError(f"{name} is {value!r}; it must be a number")
    return float(value)


def checked_count(value: Any, name: str, least: int | None = 0) -> int:
    """A whole number of at least `least`, as an int."""
    try:
        count = index(value)
    except TypeError:
        raise TypeError(f"{name} is {value!r}; it must be a whole number") from None
    if isinstance(value, bool | np.bool_):
        raise TypeError(f"{name} is {value}; it must be a whole number")
    if least is not None and count < least:
        raise ValueError(f"{name} is {value}; it must be at least {least}")
    return count


def checked_height(value: Any, name: str) -> float:
    """A positive height of a kernel in the range of float64, as a float."""
    value = checked_number(value, name)
    if not SHORTEST**2 <= value <= LONGEST**2:
        raise ValueError(f"{name} is {value}; it must lie between {_HEIGHTS}")
    return value


def checked_array(
    values: ArrayLike, name: str, keep_precision: bool = False, missing_as_nan: bool = False
) -> Array:
    """Real numbers as a float array; a float array is returned as it is.

    Tables and labelled arrays of other libraries are taken if numpy can make arrays of them. With
    `keep_precision`, numbers of a shorter type stay of this type: see :func:`precision_of`. With
    `missing_as_nan`, None and the missing values of tables are NaN.
    """
    if type(values) is np.ndarray and values.dtype == float:  # most are, and need no more
        return values
    if values is None:
        raise TypeError(f"{name} must be an array of numbers, not None")
    if np.ma.is_masked(values):
        raise ValueError(f"{name} must not have masked entries: remove or fill them")
    try:
        array = np.asarray(values)
    except (ValueError, TypeError, RuntimeError) as error:
        if isinstance(values, list | tuple):
            raise ValueError(
                f"{name} must be an array of numbers with rows of equal length"
            ) from None
        raise TypeError(
            f"{name} must be an array of numbers; numpy cannot make one of this "
            f"{type(values).__name__}: {error}"
        ) from None
    if array.dtype.kind == "O":
        return _numbers_of_objects(array, name, missing_as_nan)
    if array.dtype.kind not in "buif":
        kind = KINDS.get(array.dtype.kind)
        raise TypeError(
            f"{name} must hold real numbers, not {array.dtype}{f' ({kind})' if kind else ''}"
        )
    return array if keep_precision else array.astype(float, copy=False)


def _numbers_of_objects(array: Any, name: str, missing_as_nan: bool) -> Array:
    """Objects as floats, such as those of tables whose columns may have missing values."""
    if missing_as_nan:
        array = array.copy()
    for place, item in np.ndenumerate(array):
        if isinstance(item, Real):
            continue
        where = f", in row {place[0]}" if place else ""
        # pandas.NA and NaT, which are no numbers; this library does not import pandas.
        if item is None or type(item).__name__ in ("NAType", "NaTType"):
            if missing_as_nan:
                array[place] = np.nan
                continue
            raise ValueError(f"{name} must not have missing values{where}: remove or fill them")
        raise TypeError(f"{name} must hold real numbers, not {type(item).__name__}{where}")
    try:
        return array.astype(float)
    except OverflowError:
        raise ValueError(f"{name} hold a number that is too large for float64") from None


def checked_column(values: ArrayLike, name: str) -> Array:
    """As :func:`checked_array`, where a table of one column (n, 1) is its column (n,)."""
    array = checked_array(values, name)
    return array[:, 0] if array.ndim == 2 and array.shape[1] == 1 else array


def checked_points(points: ArrayLike, dim: int | None = None, name: str = "points") -> Array:
    """Points as a float array (n, dim); any dimension if `dim` is None."""
    points = checked_array(points, name)
    if points.ndim != 2 or points.shape[1] != (dim or points.shape[1]) or not points.shape[1]:
        raise ValueError(
            f"{name} have shape {points.shape}; they must have shape (n, {dim or 'd'}), one row "
            "for each point"
        )
    # One product takes a quarter of the time of comparing all; of NaN it is NaN.
    flat = points.ravel(order="K")
    if not flat @ flat <= LONGEST**2 and not (np.abs(flat) <= LONGEST).all():
        row = int(np.argmin((np.abs(points) <= LONGEST).all(axis=1)))
        shown = np.array2string(points[row], threshold=8)
        if np.isfinite(points[row]).all():
            raise ValueError(
                f"{name} hold {shown} in row {row}; all numbers must lie between -1e50 and 1e50: "
                f"{CHANGE_UNITS}"
            )
        raise ValueError(f"{name} hold NaN or infinity, first in row {row}: {shown}")
    return points


def checked_values(values: ArrayLike, n: int, name: str) -> Array:
    """One finite number for each of `n` points, as a float array (n,)."""
    values = checked_array(values, name)
    if values.shape != (n,):
        raise ValueError(f"{name} have shape {values.shape}; {n} points need shape ({n},)")
    if not np.isfinite(values).all():
        bad = np.flatnonzero(~np.isfinite(values))
        more = f" and {len(bad) - 5} more" if len(bad) > 5 else ""
        raise ValueError(
            f"{name} are NaN or infinite at points {bad[:5].tolist()}{more}, counted from 0; they "
            "must be finite"
        )
    return values


def checked_values_of_f(values: ArrayLike, n: int) -> Array:
    """Values of f whose squares float64 can hold, one for each of `n` points, as an array (n,)."""
    values = checked_values(checked_column(values, "values of f"), n, "values of f")
    largest = np.abs(values).max(initial=0.0)
    if largest and not SHORTEST**2 <= largest <= LONGEST**2:
        raise ValueError(
            f"the largest value of f is {largest:g}; it must lie between {_HEIGHTS}, so that "
            "float64 can hold its square: change the unit of f"
        )
    return values


def checked_box(lower: ArrayLike, upper: ArrayLike) -> tuple[Array, Array]:
    """Lower and upper ends of a box, each as a float array (d,) of its own."""
    lower = checked_array(lower, "lower").copy()
    upper = checked_array(upper, "upper").copy()
    if lower.ndim != 1 or lower.size == 0 or lower.shape != upper.shape:
        raise ValueError(
            f"lower has shape {lower.shape} and upper {upper.shape}; "
            "both must have one number for each coordinate"
        )
    if not (np.isfinite(lower).all() and np.isfinite(upper).all()):
        raise ValueError("the box has an end that is NaN or infinite; all must be finite")
    if not (lower < upper).all():
        wrong = int(np.argmin(lower < upper))
        raise ValueError(
            f"lower is {lower[wrong]:g} and upper {upper[wrong]:g} in coordinate {wrong}; "
            "lower must be below upper"
        )
    if max(-lower.min(), upper.max()) > LONGEST or (upper - lower).min() < SHORTEST:
        raise ValueError(
            "the box has an end beyond 1e50 or a side shorter than 1e-50: change the unit of length"
        )
    return lower, upper


def checked_lengthscale(value: ArrayLike, name: str = "lengthscale") -> float | Array:
    """A float, or an array with one length-scale for each coordinate."""
    lengthscale = read_only(checked_array(value, name).copy())
    if lengthscale.ndim > 1 or lengthscale.size == 0:
        full = "For a full matrix, use ExponentiatedQuadratic(covariance=...)"
        raise ValueError(
            f"{name} has shape {lengthscale.shape}; give one number, or one number for each "
            f"coordinate{f'. {full}' if name == 'lengthscale' else ''}"
        )
    if not (np.isfinite(lengthscale).all() and (lengthscale > 0).all()):
        raise ValueError(f"{name} is {lengthscale}; it must be finite and positive")
    if not (lengthscale.min() >= SHORTEST and lengthscale.max() <= LONGEST):
        raise ValueError(
            f"{name} is {lengthscale}; it must lie between 1e-50 and 1e50: {CHANGE_UNITS}"
        )
    return float(lengthscale) if lengthscale.ndim == 0 else lengthscale


def precision_of(values: ArrayLike) -> float:
    """Relative rounding of the numbers that a caller has: of float64, or of a shorter type.

    Lists of float32 numbers, such as those of a JSON file, have the precision of float32.
    """
    array = np.asarray(values)
    if array.dtype.kind == "f" and array.dtype.itemsize < 8:
        return float(np.finfo(array.dtype).eps)
    with np.errstate(over="ignore"):  # what overflows is not equal
        short = array.dtype.kind in "fiu" and bool((array.astype(np.float32) == array).all())
    return float(np.finfo(np.float32 if short else np.float64).eps)


def sums_to_one(weights: ArrayLike) -> bool:
    """Whether the sum is one, up to the rounding of the numbers that a caller has."""
    array = np.asarray(weights)
    # The first is a bound for sums in float64, however they were made.
    rounding = max(1e-9, precision_of(array) * (4 + np.sqrt(array.size)))
    return bool(abs(array.astype(float).sum() - 1) <= min(rounding, MOST_ROUNDING))


def checked_probabilities(weights: ArrayLike) -> Array:
    """Weights (M,) that are not negative and sum to one, as a float array of its own.

    A sum that is one up to the rounding of float32 is taken, and made one.
    """
    array = checked_array(weights, "weights").copy()
    if not np.isfinite(array).all() or (array < 0).any():
        raise ValueError("weights must be finite and not negative")
    missing = abs(array.sum() - 1)
    if missing > 1e-6 and not sums_to_one(weights):
        raise ValueError(f"weights sum to {array.sum():.12g}; they must sum to 1")
    return array / array.sum() if missing > 1e-9 else array


def checked_covariance(values: ArrayLike, name: str) -> tuple[Array, Array]:
    """A covariance as a float array of its own, and its Cholesky factor.

    A matrix that is symmetric up to the rounding of a computation in its own precision is taken,
    and made symmetric.
    """
    matrix = checked_array(values, name).copy()
    if matrix.ndim == 2 and matrix.shape[0] == matrix.shape[1] and np.isfinite(matrix).all():
        # A condition of up to one over the root of eps leaves half of the digits.
        roots = np.sqrt(np.abs(np.diag(matrix)))
        allowed = np.sqrt(precision_of(values)) * roots[:, None] * roots
        rounding = np.abs(matrix - matrix.T) <= allowed
        if rounding.all() and not np.allclose(matrix, matrix.T, rtol=1e-12, atol=0):
            matrix = (matrix + matrix.T) / 2
    return matrix, checked_cholesky(matrix, name)


def checked_cholesky(matrix: Array, name: str) -> Array:
    """Lower Cholesky factor of a covariance, whose diagonal holds lengths."""
    if matrix.ndim != 2 or matrix.shape[0] != matrix.shape[1]:
        raise ValueError(f"{name} has shape {matrix.shape}; it must be a square matrix")
    if not np.isfinite(matrix).all():
        raise ValueError(f"{name} holds NaN or infinity; all its numbers must be finite")
    if not np.allclose(matrix, matrix.T, rtol=1e-12, atol=0):
        raise ValueError(f"{name} is not symmetric; it must equal its transpose")
    try:
        factor: Any = np.linalg.cholesky(matrix)
    except np.linalg.LinAlgError:
        smallest = np.linalg.eigvalsh(matrix)[0]
        raise ValueError(
            f"{name} is not positive definite (smallest eigenvalue {smallest:.3g}); all "
            "eigenvalues must be positive"
        ) from None
    deviations = np.diag(factor)
    if not (deviations.min() >= SHORTEST and deviations.max() <= LONGEST):
        raise ValueError(
            f"{name} has a standard deviation that is not between 1e-50 and 1e50: {CHANGE_UNITS}"
        )
    return factor


def checked_rng(rng: Any) -> Spawning:
    """A numpy Generator that draws from the one given, or from that of a seed.

    Its children follow from its state, see :class:`bqlib.streams.Spawning`.
    """
    if isinstance(rng, Spawning):
        return rng
    if isinstance(rng, np.random.Generator):
        return Spawning(rng.bit_generator)
    if rng is None:
        raise TypeError(
            "rng is required so that the result can be reproduced: pass a seed such as rng=0, or a "
            "numpy Generator"
        )
    if isinstance(rng, np.random.RandomState):
        raise TypeError(
            "rng is a RandomState, which is not supported: pass a seed such as rng=0, or a numpy "
            "Generator such as numpy.random.default_rng(0)"
        )
    try:
        seed = checked_count(rng, "rng")
    except TypeError:
        raise TypeError(
            f"rng is {rng!r}; it must be a seed, that is, a whole number of at least 0, or a numpy "
            "Generator"
        ) from None
    return Spawning(np.random.PCG64(seed), fresh=True)


def check_level(level: float) -> None:
    """Raise an error unless an interval can have this level."""
    if not 0 < level < 1:
        raise ValueError(f"level is {level}; it must lie between 0 and 1, such as 0.95")
