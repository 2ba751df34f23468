"""All points at once."""

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cho_factor, cho_solve
from scipy.optimize import Bounds, minimize

from bqlib.answers import checked_diagonal, checked_gradient, checked_gram
from bqlib.arrays import Array, Seed
from bqlib.candidates import Candidates
from bqlib.checks import checked_count
from bqlib.designs.design import Design, Pool, support
from bqlib.designs.sbq import sbq
from bqlib.discrepancy import mmd2
from bqlib.embeddings import Embedding
from bqlib.kernels import Kernel
from bqlib.targets import Target

NUGGET = 1e-13  # of the largest k(x, x): keeps the Gram matrix of close points positive definite
# The share that noise in f would have in the MMD^2 of the SBQ design. Without it, pairs of points
# close in until their weights, large and opposite, take a derivative of f, and the descent stalls.
NOISE = 0.01


def joint(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    rng: Seed,
    candidates: Pool = Candidates(),
    initial: ArrayLike | None = None,
    iterations: int = 400,
) -> Design:
    """Joint optimisation: move all points of an SBQ design at once to lower the MMD.

    The points are a set, not a sequence: a shorter joint design is not a part of a longer one.
    Their order is the one in which SBQ would pick them if they were its candidates.

    Parameters
    ----------
    target, kernel
        The pair; its embedding and its kernel must have gradients.
    n : int
        Number of points.
    rng : numpy.random.Generator or int
        A generator, or the seed of one. Draws the candidates, unless they are given as an array;
        required in any case.
    candidates : Candidates or array_like, shape (M, d)
        How to draw the pool of the SBQ design to start from, or the pool itself.
    initial : array_like, shape (m, d), optional
        Points that do not move. They count among the n, and come first.
    iterations : int
        Largest number of steps of L-BFGS.

    Returns
    -------
    Design
        Its MMD is at most that of the SBQ design. Fewer than n points, with the reason in `stop`,
        if SBQ stops early or if points come so close that they are no longer numerically distinct.

    Raises
    ------
    ValueError, TypeError
        If an argument is wrong.

    Notes
    -----
    Minimises V0 - z'K^{-1}z over the points, where the gradient in x_i is
    -2 w_i (grad z(x_i) - sum_j w_j grad_1 k(x_i, x_j)). For the first three quarters of the steps,
    the diagonal of K contains a little noise, which keeps points apart. The result is a local
    minimum. O(n^3 + n^2 d) time a step, O(n^2 d) memory.

    References
    ----------
    On stationary points of the MMD: Chen, Bonnet, Kanagawa et al., arXiv:2505.20754.
    """
    iterations = checked_count(iterations, "iterations")
    start = sbq(target, kernel, n, rng=rng, candidates=candidates, initial=initial)
    kept = 0 if initial is None else len(np.asarray(initial))
    size = len(start.points)
    if size == kept or not start.weights.any():
        return start
    before = mmd2(start.embedding, start.points, start.weights)
    if np.isnan(before):  # it is below the floor of float64
        return start
    points = start.points
    noise = NOISE * before / np.square(start.weights).sum()
    nugget = NUGGET * checked_diagonal(kernel, points).max()
    last = iterations // 4
    for added, steps in ((noise, iterations - last), (nugget, last)):
        points = _descend(start.embedding, points, kept, added, before, steps)
    moved = sbq(target, kernel, size, rng=rng, candidates=points[kept:], initial=points[:kept])
    after = mmd2(moved.embedding, moved.points, moved.weights)
    if not after <= before:
        return start
    return Design(moved.embedding, moved.points, moved.rule, moved.stop or start.stop)


def _descend(
    embedding: Embedding, points: Array, kept: int, noise: float, scale: float, iterations: int
) -> Array:
    """Points of which L-BFGS moved all but the first `kept`, to lower the MMD of BQ weights.

    `noise` is added to the diagonal of the Gram matrix; `scale` is the MMD^2 to start from.
    """
    kernel, free = embedding.kernel, points[kept:]
    lower, upper = (np.tile(end, len(free)) for end in support(embedding))

    def objective(flat: Array) -> tuple[float, Array]:
        moving = flat.reshape(free.shape)
        x = np.concatenate([points[:kept], moving])
        gram = checked_gram(kernel, x, x)
        gram[np.diag_indices(len(x))] += noise
        mean = embedding.kernel_mean(x)
        try:
            factor = cho_factor(gram, lower=True, overwrite_a=True, check_finite=False)
        except LinAlgError:  # points met within one step: far above any value on the way down
            return 1e3, np.zeros_like(flat)
        weights = cho_solve(factor, mean, check_finite=False)
        slopes = embedding.kernel_mean_gradient(moving)
        slopes = slopes - np.einsum("ijd,j->id", checked_gradient(kernel, moving, x), weights)
        variance = embedding.prior_variance - weights @ mean
        return variance / scale, (-2 / scale * weights[kept:, None] * slopes).ravel()

    found = minimize(
        objective,
        free.ravel(),
        jac=True,
        method="L-BFGS-B",
        bounds=Bounds(lower, upper),
        options={"maxiter": iterations, "maxfun": 10 * iterations, "ftol": 0, "maxcor": 50},
    )
    return np.concatenate([points[:kept], found.x.reshape(free.shape)])
