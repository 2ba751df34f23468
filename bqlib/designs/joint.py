"""All points at once."""

from __future__ import annotations

from dataclasses import replace

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import Bounds, OptimizeResult, minimize

from bqlib.answers import checked_diagonal, checked_gradient, checked_gram_with_gradient_dot
from bqlib.arrays import Array, Seed
from bqlib.candidates import Candidates
from bqlib.checks import checked_count
from bqlib.designs.design import Design, Pool, point_set, requires, requires_mean, support
from bqlib.designs.sbq import sbq
from bqlib.discrepancy import mmd2
from bqlib.embeddings import Embedding, embed, in_standard
from bqlib.kernels import Kernel
from bqlib.targets import Target
from bqlib.weights import bq

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
    iterations: int | None = None,
) -> None:
    """Raise an error for what :func:`joint` cannot work with at any seed."""
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
    iterations: int | None = None,
) -> Design:
    """Joint optimisation: all points of SBQ moved at once; a set, in the order SBQ would pick it.

    The points are a set, not a sequence: a shorter joint design is not a part of a longer one.
    Their order is the one in which SBQ would pick them if they were its candidates. So the curve
    of a sweep is that of the n points of its largest n, and n points are used as one set only
    there.

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
        How to draw the pool of the SBQ design to start from (default: 10,000 draws from the
        target), or the pool itself.
    initial : array_like, shape (m, d), optional
        Points that do not move. They count among the n, and come first.
    iterations : int, optional
        Largest number of steps of L-BFGS (default: 600 + 6 n).

    Returns
    -------
    Design
        Its MMD is at most that of the SBQ design. `stop` is empty only if the descent ended where
        the gradient of MMD^2, with points in units of their standard deviation, is at most 1e-5 of
        MMD^2. Otherwise it says why the descent ended, or why there are fewer than n points: SBQ
        stopped early, or points came so close that they are no longer numerically distinct.

    Raises
    ------
    ValueError
        If n is below 1 or below the number of initial points or, with a fixed pool, above that of
        initial points and candidates together; if points are not finite arrays (m, d); or if target
        and kernel differ in dimension. If the kernel mean is zero at every candidate, as no point
        can be picked then. If `iterations` is negative.
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
    """
    n = checked_count(n, "n", 1)
    limit = limit_of_steps(n, iterations)
    start = sbq(target, kernel, n, rng=rng, candidates=candidates, initial=initial)
    kept = 0 if initial is None else len(np.asarray(initial))
    size = len(start.points)
    if size == kept or not start.weights.any():
        return start
    before = mmd2(start.embedding, start.points, start.weights)
    if np.isnan(before):
        return _stopped(start, start.stop, "no point was moved: the MMD is below rounding")
    inner, to_inner, back = in_standard(start.embedding)
    points, ended = _moved(inner, to_inner(start.points), kept, limit)
    points = np.concatenate([start.points[:kept], back(points[kept:])])
    moved = sbq(target, kernel, size, rng=rng, candidates=points[kept:], initial=points[:kept])
    moved = replace(moved, rows=None)  # they are those of the moved points among themselves
    after = mmd2(moved.embedding, moved.points, moved.weights)
    if not after <= before:
        return _stopped(start, start.stop, "these are the points of sbq, as none better was found")
    return _stopped(moved, start.stop, moved.stop, ended)


def _stopped(design: Design, *reasons: str) -> Design:
    stop = "; ".join(reason for reason in reasons if reason)
    return replace(design, stop=stop)


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
        points, found = _descend(embedding, points, kept, noise, int(PART * limit))
        left -= found.nit
    nugget = NUGGET * checked_diagonal(embedding.kernel, points).max()
    while left > 0:
        points, found = _descend(embedding, points, kept, nugget, left)
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


def _descend(
    embedding: Embedding, points: Array, kept: int, noise: float, limit: int
) -> tuple[Array, OptimizeResult]:
    """Points of which L-BFGS moved all but the first `kept`, and what scipy says of it.

    The objective is the MMD^2 of BQ weights over that of `points`, with `noise` on the diagonal of
    the Gram matrix. L-BFGS moves points by units of their standard deviation, so that the unit of
    length changes nothing.
    """
    kernel, free = embedding.kernel, points[kept:]
    unit = points.std(axis=0)
    unit[unit == 0] = 1.0
    lower, upper = support(embedding)
    # Below this, rounding is most of the MMD^2.
    floor = 10 * np.finfo(float).eps * embedding.prior_variance
    scale = 1.0

    def objective(flat: Array) -> tuple[float, Array]:
        # Rounding of the units must not lead out of the box.
        moving = np.clip(free + flat.reshape(free.shape) * unit, lower, upper)
        x = np.concatenate([points[:kept], moving])
        gram, gradient_dot = checked_gram_with_gradient_dot(kernel, x, x)
        noisy = gram.copy()
        noisy[np.diag_indices(len(x))] += noise
        mean, mean_slopes = embedding.kernel_mean_with_gradient(x)
        try:
            # Transposed, the symmetric matrix is in LAPACK's order: it need not be copied.
            factor = cho_factor(noisy.T, overwrite_a=True, check_finite=False)
        except LinAlgError:  # points met within one step: far above any value on the way down
            return WALL, np.zeros_like(flat)
        weights = cho_solve(factor, mean, check_finite=False)
        variance = embedding.prior_variance - weights @ mean
        if variance <= floor:
            return WALL, np.zeros_like(flat)
        slopes = (mean_slopes - gradient_dot(weights))[kept:]
        slopes *= -2 / scale * weights[kept:, None] * unit
        return variance / scale, slopes.ravel()

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
