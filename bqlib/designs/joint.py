"""All points at once."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import Bounds, OptimizeResult, minimize

from bqlib.answers import checked_diagonal, checked_gradient, checked_gram_with_gradient_dot
from bqlib.arrays import Array, Seed
from bqlib.candidates import Candidates
from bqlib.checks import checked_count
from bqlib.designs.design import Design, Pool, point_set, requires, requires_mean, support
from bqlib.designs.herding import herding
from bqlib.designs.moving import moved_from, moved_from_sbq
from bqlib.discrepancy import mmd2
from bqlib.embeddings import Embedding, embed
from bqlib.kernels import Kernel
from bqlib.targets import Target
from bqlib.weights import bq, uniform

Limit = int | None
Weights = Literal["bq", "uniform"]  # those whose MMD the descent lowers
# Gram matrix and kernel mean to weights and their MMD^2, or None where float64 cannot tell it.
Weigh = Callable[[Array, Array], tuple[Array, float] | None]

NUGGET = 1e-13  # of the largest k(x, x): keeps the Gram matrix of close points positive definite
# The share that noise in f would have in the MMD^2 at the start of a descent. Without it, pairs of
# points close in until their weights, large and opposite, take a derivative of f, and the descent
# stalls. As the MMD falls by a factor of 30, the noise must fall with it.
NOISE = 0.1
NOISY, PART = 3, 0.3  # descents with noise, and the part of the steps that each may take
TOLERANCE = 1e-5  # of the gradient of MMD^2 over MMD^2, with points in units of their deviation
WALL = 1e3  # a value of MMD^2 over that of the start which no descent can pass
STEPS, STEPS_A_POINT = 600, 6  # of L-BFGS, if `iterations` is not given
CONVERGED = 0  # scipy's status of L-BFGS whose projected gradient is at most its tolerance
LIMIT = 1  # and of L-BFGS at its limit of steps or of evaluations
MEMORY = 100  # steps that L-BFGS remembers: with 50, it needs a fifth more of them


def _requires(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    candidates: Candidates,
    weights: Weights = "bq",
    iterations: int | None = None,
) -> None:
    """Raise an error for what :func:`joint` cannot work with at any seed."""
    _checked_weights(weights)
    if weights == "bq":  # equal weights do not need the kernel mean
        requires_mean(target, kernel, n, candidates=candidates)
    limit_of_steps(n, iterations)
    # A pair without gradients says so when it is asked for one: at some point of its pool.
    x = replace(candidates, size=1, fresh=False).draw(target, 0)
    embedding = embed(kernel, target)
    embedding.kernel_mean_gradient(x)
    checked_gradient(embedding.kernel, x, x)


def limit_of_steps(n: int, iterations: int | None = None) -> int:
    """The largest number of steps of :func:`joint`: `iterations`, or 600 + 6 n."""
    if iterations is None:
        return STEPS + STEPS_A_POINT * n
    return checked_count(iterations, "iterations")


def _checked_weights(weights: Weights) -> None:
    if not isinstance(weights, str) or weights not in get_args(Weights):
        raise ValueError(
            f"weights is {weights!r}; it must be one of {', '.join(get_args(Weights))}. Points for "
            "other weights: make a design, and give its points to a rule of bqlib.weights"
        )


@point_set
@requires(_requires)
def joint(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    rng: Seed,
    candidates: Pool = Candidates(),
    initial: ArrayLike | None = None,
    weights: Weights = "bq",
    iterations: Limit = None,
) -> Design:
    """Joint optimisation: all points moved at once, by L-BFGS, to where the MMD is smallest.

    The points are a set, not a sequence: a shorter joint design is not a part of a longer one. With
    BQ weights they are in the order in which SBQ would pick them, and with equal weights in that of
    their starts.

    Parameters
    ----------
    target : Target
        The distribution to summarise, in d dimensions.
    kernel : Kernel
        Defines the MMD. It must have an embedding with the target, and both must have gradients.
    n : int
        Number of points, at least the number of initial points.
    rng : numpy.random.Generator or int
        A generator, or the seed of one. Draws the candidates, unless they are given as an array;
        required in any case.
    candidates : Candidates or array_like, shape (M, d)
        How to draw the pool of the design to start from (default: 10,000 draws from the target),
        or the pool itself.
    initial : array_like, shape (m, d), optional
        Points that do not move. They count among the n, and come first.
    weights : {"bq", "uniform"}
        Whose MMD the points lower, and what `weights` of the design are. ``"bq"`` (default): BQ
        weights; the start is SBQ. ``"uniform"``: equal weights; the start is herding without
        repeats, and no system is solved.
    iterations : int, optional
        Largest number of steps of L-BFGS (default: 600 + 6 n).

    Returns
    -------
    Design
        Its MMD is at most that of the design it starts from. `stop` is empty only if the descent
        ended where the gradient of MMD^2, with points in units of their standard deviation, is at
        most 1e-5 of MMD^2. Otherwise it says why the descent ended, or why there are fewer than n
        points: the start stopped early, or, with BQ weights, points came so close that they are no
        longer numerically distinct.

    Raises
    ------
    ValueError
        If n is below 1 or below the number of initial points or, with a fixed pool, above that of
        initial points and candidates together; if points are not finite arrays (m, d); or if target
        and kernel differ in dimension. If the kernel mean is zero at every candidate, as SBQ cannot
        pick a point then. If `iterations` is negative, or `weights` is another word.
    TypeError
        If `rng` is neither a seed nor a Generator, if the pair has no embedding, if the target
        cannot be sampled and you pass no candidates, or if a gradient is missing, such as the one
        of a Stein kernel whose target has no hessian.

    Notes
    -----
    Minimises V0 - z'K^{-1}z over the points, where the gradient in x_i is
    -2 w_i (grad z(x_i) - sum_j w_j grad_1 k(x_i, x_j)). In three descents, of three tenths of the
    steps each, the diagonal of K contains noise, which keeps points apart: its share of the MMD^2
    at their start is a tenth. The last descent has none. The result is at best a local minimum.
    O(n^3 + n^2 d) time a step. O(n^2) memory for exponentiated quadratic, rational quadratic and
    Matern kernels and what is made of them, O(n^2 d) for others.

    With equal weights it minimises V0 - 2/n sum_i z(x_i) + 1/n^2 sum_ij k(x_i, x_j), in O(n^2 d)
    time a step, without noise. At a stationary point the gradient has the same form with
    w_i = 1/n, so equal weights are exact for the functions grad_1 k(., x_i).

    References
    ----------
    Chen, Karvonen, Kanagawa and others, "Stationary MMD points", 2025. L-BFGS-B: Byrd, Lu, Nocedal
    and Zhu, "A limited memory algorithm for bound constrained optimization", 1995.

    Examples
    --------
    >>> from bqlib import Brownian, Uniform, joint
    >>> design = joint(Uniform([0], [1]), Brownian(), n=3, rng=0)
    >>> (7 * design.points[:, 0]).round(3)  # the best three points are 2/7, 4/7 and 6/7
    array([4., 6., 2.])
    >>> equal = joint(Uniform([0], [1]), Brownian(), n=3, rng=0, weights="uniform")
    >>> (6 * equal.points[:, 0]).round(3)  # and with equal weights 1/6, 3/6 and 5/6
    array([3., 1., 5.])
    """
    _checked_weights(weights)
    n = checked_count(n, "n", 1)
    limit = limit_of_steps(n, iterations)

    def move(embedding: Embedding, points: Array, kept: int) -> tuple[Array, str]:
        if weights == "uniform":
            return _to_minimum(embedding, points, kept, _equal(embedding), limit, limit)
        return _moved(embedding, points, kept, limit)

    if weights == "bq":
        return moved_from_sbq(target, kernel, n, rng, candidates, initial, move)
    # Without repeats: two equal points have equal gradients, and would stay together for ever.
    start = herding(
        target, kernel, n, rng=rng, candidates=candidates, initial=initial, repeats=False
    )
    kept = 0 if initial is None else len(np.asarray(initial))
    return moved_from(
        start, "herding", kept, move, lambda points: Design(start.embedding, points, uniform)
    )


def _moved(embedding: Embedding, points: Array, kept: int, limit: int) -> tuple[Array, str]:
    """The points after at most `limit` steps, and why the descent ended: empty at a minimum.

    The first `kept` of `points` stay.
    """
    left = limit
    for _ in range(NOISY):
        weights = bq(embedding, points).final(len(points))
        reached = mmd2(embedding, points, weights)
        if np.isnan(reached):
            break
        noise = NOISE * reached / np.square(weights).sum()
        weigh = _bq(embedding, noise)
        points, found = _descend(embedding, points, kept, weigh, int(PART * limit))
        left -= found.nit
    nugget = NUGGET * checked_diagonal(embedding.kernel, points).max()
    return _to_minimum(embedding, points, kept, _bq(embedding, nugget), left, limit)


def _to_minimum(
    embedding: Embedding, points: Array, kept: int, weigh: Weigh, left: int, limit: int
) -> tuple[Array, str]:
    """As :func:`_moved`, by the `left` of `limit` steps."""
    while left > 0:
        points, found = _descend(embedding, points, kept, weigh, left)
        left -= found.nit
        # The tolerance is relative to where a descent began: go on where that was far above.
        if found.status != CONVERGED or found.nit == 0 or found.fun > 0.5:
            break
    if left <= 0 or found.status == LIMIT:
        return points, (
            f"joint stops at its limit of {limit} steps, before a minimum: for a smaller MMD, pass "
            "more iterations"
        )
    if found.status != CONVERGED or found.fun >= WALL:
        return points, (
            f"joint stops after {limit - left} of {limit} steps, as no step lowers the MMD any "
            "more, though its gradient is not zero (rounding, or a kink of the kernel): more steps "
            "would not help"
        )
    return points, ""


def _bq(embedding: Embedding, noise: float) -> Weigh:
    """BQ weights, with `noise` on the diagonal of the Gram matrix."""
    # Below this, rounding is most of the MMD^2.
    floor = 10 * np.finfo(float).eps * embedding.prior_variance

    def weigh(gram: Array, mean: Array) -> tuple[Array, float] | None:
        noisy = gram.copy()
        noisy[np.diag_indices(len(gram))] += noise
        try:
            # Transposed, the symmetric matrix is in LAPACK's order: it need not be copied.
            factor = cho_factor(noisy.T, overwrite_a=True, check_finite=False)
        except LinAlgError:  # points met within one step
            return None
        weights = cho_solve(factor, mean, check_finite=False)
        variance = embedding.prior_variance - weights @ mean
        return (weights, variance) if variance > floor else None

    return weigh


def _equal(embedding: Embedding) -> Weigh:
    """Equal weights."""

    def weigh(gram: Array, mean: Array) -> tuple[Array, float] | None:
        quadratic = gram.mean()
        squared = embedding.prior_variance - 2 * mean.mean() + quadratic
        floor = 10 * np.finfo(float).eps * (embedding.prior_variance + quadratic)
        return (np.full(len(mean), 1 / len(mean)), squared) if squared > floor else None

    return weigh


def _descend(
    embedding: Embedding, points: Array, kept: int, weigh: Weigh, limit: int
) -> tuple[Array, OptimizeResult]:
    """Points of which L-BFGS moved all but the first `kept`, and what scipy says of it.

    The objective is the MMD^2 of the weights over that of `points`. L-BFGS moves points by units of
    their standard deviation, so that the unit of length changes nothing.
    """
    free = points[kept:]
    unit = points.std(axis=0)
    unit[unit == 0] = 1.0
    lower, upper = support(embedding)
    scale = 1.0

    def objective(flat: Array) -> tuple[float, Array]:
        # Rounding of the units must not lead out of the box.
        moving = np.clip(free + flat.reshape(free.shape) * unit, lower, upper)
        x = np.concatenate([points[:kept], moving])
        gram, gradient_dot = checked_gram_with_gradient_dot(embedding.kernel, x, x)
        mean, mean_slopes = embedding.kernel_mean_with_gradient(x)
        weighed = weigh(gram, mean)
        if weighed is None:  # far above any value on the way down
            return WALL, np.zeros_like(flat)
        weights, squared = weighed
        slopes = (mean_slopes - gradient_dot(weights))[kept:]
        slopes *= -2 / scale * weights[kept:, None] * unit
        return squared / scale, slopes.ravel()

    start = np.zeros(free.size)
    scale = objective(start)[0]
    found = minimize(
        objective,
        start,
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(((lower - free) / unit).ravel(), ((upper - free) / unit).ravel()),
        options={
            "maxiter": limit, "maxfun": 10 * limit, "ftol": 0, "gtol": TOLERANCE, "maxcor": MEMORY,
        },
    )  # fmt: skip
    moved = np.clip(free + found.x.reshape(free.shape) * unit, lower, upper)
    return np.concatenate([points[:kept], moved]), found
