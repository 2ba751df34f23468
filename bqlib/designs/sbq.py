"""Sequential Bayesian quadrature."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from scipy.optimize import Bounds, minimize

from bqlib.answers import checked_diagonal
from bqlib.arrays import Array, Seed
from bqlib.candidates import Candidates
from bqlib.checks import checked_count
from bqlib.designs.design import Design, Pool, checked_request, requires, requires_mean, support
from bqlib.designs.interpolant import Interpolant
from bqlib.designs.newton import newton_greedy
from bqlib.embeddings import in_standard
from bqlib.kernels import Kernel
from bqlib.pivots import PIVOT_TOLERANCE
from bqlib.targets import Target


def _requires(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    candidates: Candidates,
    refine: int = 0,
    **parameters: Any,
) -> None:
    """Raise an error for what :func:`sbq` cannot work with at any seed."""
    requires_mean(target, kernel, n, candidates=candidates)
    checked_count(refine, "refine")


@requires(_requires)
def sbq(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    rng: Seed,
    candidates: Pool = Candidates(),
    initial: ArrayLike | None = None,
    refine: int = 0,
    memory: float | None = None,
) -> Design:
    """Sequential Bayesian quadrature: each point lowers the posterior variance the most.

    Parameters
    ----------
    target : Target
        The distribution to summarise, in d dimensions.
    kernel : Kernel
        Defines the MMD. It must have an embedding with the target: see :func:`bqlib.embed`.
    n : int
        Number of points, at least the number of initial points.
    rng : numpy.random.Generator or int
        A generator, or the seed of one. Draws the candidates, unless they are given as an array;
        required in any case.
    candidates : Candidates or array_like, shape (M, d)
        How to draw the pool (default: 10,000 draws from the target), or the pool itself.
    initial : array_like, shape (m, d), optional
        Points to start from; they count among the n.
    refine : int
        Number of best candidates from which a local search starts at each step; it may end off the
        pool (default 0: pick candidates). The search stays in the target's box, if there is one.
    memory : float, optional
        Memory limit in bytes, not counting the candidates (default: all memory of the machine).
        Above it the basis is recomputed in blocks at each step: the same picks, but more slowly.

    Returns
    -------
    Design
        With BQ weights. Fewer than n points, with the reason in `stop`, if no remaining candidate
        is numerically distinct from those picked.

    Raises
    ------
    ValueError
        If n is below 1 or below the number of initial points or, with a fixed pool, above that of
        initial points and candidates together; if points are not finite arrays (m, d); or if target
        and kernel differ in dimension. If the kernel mean is zero at every candidate, as no point
        can be picked then. If `refine` is negative.
    TypeError
        If `rng` is neither a seed nor a Generator, if the pair has no embedding, or if the target
        cannot be sampled and you pass no candidates.
    MemoryError
        If `memory` does not suffice even for blocks. The message gives the bytes needed.

    Notes
    -----
    Picks the candidate with the largest residual^2 / power, the decrement of MMD^2. The residual is
    the kernel mean minus its interpolant at the points so far; the power is the prior variance that
    these points leave.

    O(M n + M d) time a step and memory. With fresh candidates and in blocks, n times as much time,
    and O(M d + n^2) memory. Refining adds some 10 to 50 evaluations of O(refine n^2 + refine n d) a
    step.

    References
    ----------
    Huszar and Duvenaud, "Optimally-Weighted Herding is Bayesian Quadrature", UAI 2012. Also known
    as the orthogonal least squares or f/P-greedy rule.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib import Brownian, Uniform, sbq
    >>> grid = np.linspace(0, 1, 16)[:, None]
    >>> design = sbq(Uniform([0], [1]), Brownian(), n=3, rng=0, candidates=grid)
    >>> design.points[:, 0].round(3)
    array([0.667, 0.333, 0.867])
    """

    request = checked_request(target, kernel, n, rng, candidates, initial)
    refine = checked_count(refine, "refine")

    def climb(interpolant: Interpolant, pool: Array, residual: Array, power: Array) -> Array:
        best_first = np.argsort(decrement(residual, power))[::-1]
        return _climb(interpolant, pool[best_first[:refine]])

    return newton_greedy(request, decrement, refine=climb if refine else None, memory=memory)


def decrement(residual: Array, power: Array) -> Array:
    """Decrease of MMD^2 by each candidate; zero if both are zero, or if the power is infinite."""
    fall = residual * residual
    fall /= np.maximum(power, np.finfo(float).tiny)
    return fall


def _climb(interpolant: Interpolant, starts: Array) -> Array:
    """The point (d,) of the largest decrement of those reached by L-BFGS from starts (m, d).

    All climbs are one problem, the sum of their decrements: it is separable, and so one call to
    the kernel serves all. A floor under the power keeps it smooth at the points picked.
    """
    embedding, to_inner, back = in_standard(interpolant.embedding)
    interpolant = interpolant.with_points(embedding, to_inner(interpolant.points))
    starts = to_inner(starts)
    floor = PIVOT_TOLERANCE * checked_diagonal(embedding.kernel, starts).max()

    def falls(x: Array) -> tuple[Array, Array, Array]:
        columns = interpolant.columns(x)
        residual, power = interpolant.residual_and_power(x, columns)
        return columns, residual, np.maximum(power, 0.0) + floor

    _, residual, power = falls(starts)
    scale = (residual**2 / power).max()

    def objective(flat: Array) -> tuple[float, Array]:
        x = flat.reshape(starts.shape)
        columns, residual, power = falls(x)
        residual_slope, power_slope = interpolant.gradients(x, columns)
        ratio = residual / power
        slope = 2 * ratio[:, None] * residual_slope - np.square(ratio)[:, None] * power_slope
        return -(ratio @ residual) / scale, -slope.ravel() / scale

    lower, upper = (np.tile(end, len(starts)) for end in support(embedding))
    found = minimize(
        objective, starts.ravel(), jac=True, method="L-BFGS-B", bounds=Bounds(lower, upper)
    )
    points = np.concatenate([starts, found.x.reshape(starts.shape)])
    residual, power = interpolant.residual_and_power(points, interpolant.columns(points))
    spent = power <= PIVOT_TOLERANCE * checked_diagonal(embedding.kernel, points)
    power[spent | interpolant.repeated(points)] = np.inf
    return back(points[[np.argmax(decrement(residual, power))]])[0]
