"""What kernels and targets answer, whoever wrote them: finite numbers of the right shape.

No function is called without points, as many that people write fail there.
"""

from typing import Any

import numpy as np

from bqlib.arrays import Array, ArrayFunction
from bqlib.checks import checked_array, checked_points


def checked_gram(kernel: Any, x: Array, y: Array) -> Array:
    """k(x, y) (n, m) as finite numbers."""
    if not (len(x) and len(y)):
        return np.zeros((len(x), len(y)))
    return checked_pairs(kernel(x, y), x, y, f"k(x, y) of {type(kernel).__name__}")


def checked_diagonal(kernel: Any, x: Array) -> Array:
    """k(x_i, x_i) (n,) as finite numbers."""
    if not len(x):
        return np.zeros(0)
    return checked_answer(kernel.diagonal(x), (len(x),), x, f"k(x, x) of {type(kernel).__name__}")


def checked_gradient(kernel: Any, x: Array, y: Array) -> Array:
    """Gradient of k(x_i, y_j) in x_i (n, m, d) as finite numbers, as :func:`checked_gram`."""
    if not (len(x) and len(y)):
        return np.zeros((len(x), len(y), x.shape[1]))
    who = f"the gradient of {type(kernel).__name__}"
    return checked_pairs(kernel.gradient(x, y), x, y, who, x.shape[1:])


def checked_gram_with_gradient_dot(kernel: Any, x: Array, y: Array) -> tuple[Array, ArrayFunction]:
    """What ``kernel.with_gradient_dot(x, y)`` returns, as finite numbers."""
    gram, dot = kernel.with_gradient_dot(x, y)
    who = f"the gradient of {type(kernel).__name__}"
    return (
        checked_pairs(gram, x, y, f"k(x, y) of {type(kernel).__name__}"),
        lambda weights: checked_answer(dot(weights), x.shape, x, who),
    )


def checked_score(target: Any, x: Array) -> Array:
    """Scores (n, d) of a target that has them, as finite numbers."""
    if not len(x):
        return np.zeros(x.shape)
    return checked_answer(target.score(x), x.shape, x, f"the score of {type(target).__name__}")


def checked_hessian(target: Any, x: Array) -> Array:
    """Second derivatives (n, d, d) of a target's log density, as :func:`checked_score`."""
    shape = (*x.shape, x.shape[1])
    if not len(x):
        return np.zeros(shape)
    return checked_answer(target.hessian(x), shape, x, f"the hessian of {type(target).__name__}")


def checked_log_density(target: Any, x: Array) -> Array:
    """Log densities (n,) of a target, as :func:`checked_score`; minus infinity is allowed."""
    if not len(x):
        return np.zeros(0)
    who = f"the log density of {type(target).__name__}"
    return checked_answer(target.log_density(x), (len(x),), x, who, allow_minus_infinity=True)


def checked_sample(target: Any, n: int, rng: np.random.Generator) -> Array:
    """n draws (n, d) from a target, as points that are finite."""
    name = f"draws from {type(target).__name__}"
    if not hasattr(target, "sample"):
        raise TypeError(
            f"{type(target).__name__} cannot be drawn from: pass the candidates as an array of "
            'points, or draw them from a box with Candidates(source="box", box=...)'
        )
    draws = checked_points(target.sample(n, rng), target.dim, name)
    if len(draws) != n:
        raise ValueError(f"{name} are {len(draws)}, not {n}: sample(n, rng) must return n points")
    return draws


def checked_answer(
    answer: Any, shape: tuple[int, ...], points: Array, who: str, allow_minus_infinity: bool = False
) -> Array:
    """What somebody's function returned for points (n, d): finite numbers of this shape.

    The first axis of `shape` must be that of the points, on which a bad row is named.
    """
    answer = of_shape(answer, shape, points, who)
    good = np.isfinite(answer)
    if allow_minus_infinity:
        good |= np.isneginf(answer)
    if not good.all():
        bad = ~good.reshape(len(points), -1).all(axis=1)
        row = int(np.argmax(bad))
        shown = np.array2string(points[row], threshold=8)
        raise ValueError(
            f"{who} is NaN or infinite at {bad.sum()} of {len(points)} points, first in row {row}: "
            f"{shown}; it must be finite at each point"
        )
    return answer


def checked_pairs(answer: Any, x: Array, y: Array, who: str, axes: tuple[int, ...] = ()) -> Array:
    """What a kernel returned for points x (n, d) and y (m, d): finite numbers (n, m, *axes)."""
    answer = of_shape(answer, (len(x), len(y), *axes), x, who)
    with np.errstate(over="ignore", invalid="ignore"):
        total = answer.sum()  # NaN and infinity stay in it, and it takes half the time
    if not np.isfinite(total) and not np.isfinite(answer).all():
        i, j = np.argwhere(~np.isfinite(answer))[0][:2].tolist()
        first, second = (np.array2string(point, threshold=8) for point in (x[i], y[j]))
        raise ValueError(
            f"{who} is NaN or infinite, first between x in row {i}: {first} and y in row {j}: "
            f"{second}; it must be finite for each pair of points"
        )
    return answer


def of_shape(answer: Any, shape: tuple[int, ...], points: Array, who: str) -> Array:
    """What somebody's function returned for points, as numbers of this shape, finite or not."""
    if answer is None:
        raise TypeError(f"{who} returned None; it must return numbers: check its return statement")
    array = checked_array(answer, f"what {who} returned")
    if array.shape != shape:
        raise ValueError(
            f"{who} returned shape {array.shape} for points of shape {points.shape}; it must "
            f"return shape {shape}"
        )
    return array
