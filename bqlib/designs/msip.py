"""Mean-shift interacting particles."""

from __future__ import annotations

from dataclasses import replace
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import LinAlgError, cho_factor, cho_solve

from bqlib.answers import checked_gram_with_gradient_dot
from bqlib.arrays import Array, Seed, solve_lower
from bqlib.candidates import Candidates
from bqlib.checks import checked_count, checked_number
from bqlib.designs.design import Design, Pool, point_set, requires, requires_mean, support
from bqlib.designs.joint import NUGGET
from bqlib.designs.moving import moved_from_sbq
from bqlib.embeddings import Embedding, embed, in_standard
from bqlib.kernels import ExponentiatedQuadratic, Kernel
from bqlib.targets import Target

TOLERANCE = 1e-6  # in length-scales: within it of its new place, no point needs to move
LONGEST_STEP = 1.0  # in length-scales: a point that would go farther takes less part in the step
HALVINGS = 30  # of a step, until it lowers the MMD


def _requires(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    candidates: Candidates,
    damping: float = 0.5,
    iterations: int = 300,
) -> None:
    """Raise an error for what :func:`msip` cannot work with at any seed."""
    _checked_options(target, kernel, damping, iterations)
    requires_mean(target, kernel, n, candidates=candidates)
    # A target without the gradient of its kernel mean says so when it is asked for one.
    x = replace(candidates, size=1, fresh=False).draw(target, 0)
    embed(kernel, target).kernel_mean_gradient(x)


def _checked_options(target: Target, kernel: Kernel, damping: float, iterations: int) -> None:
    inner, _, _ = in_standard(embed(kernel, target))
    if not isinstance(inner.kernel, ExponentiatedQuadratic):
        raise TypeError(
            f"msip needs an ExponentiatedQuadratic kernel, and this one is of type "
            f"{type(inner.kernel).__name__}: use joint, which takes any kernel with gradients"
        )
    if not 0 < checked_number(damping, "damping") <= 1:
        raise ValueError(f"damping is {damping}; it must be above 0 and at most 1")
    checked_count(iterations, "iterations")


@point_set
@requires(_requires)
def msip(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    rng: Seed,
    candidates: Pool = Candidates(),
    initial: ArrayLike | None = None,
    damping: float = 0.5,
    iterations: int = 300,
) -> Design:
    """Mean-shift interacting particles: all points of SBQ moved by fixed-point steps; a set.

    The points are a set, not a sequence, as those of :func:`bqlib.joint`. They are in the order in
    which SBQ would pick them.

    Parameters
    ----------
    target : Target
        The distribution to summarise, in d dimensions.
    kernel : ExponentiatedQuadratic
        Defines the MMD. It must have an embedding with the target that has a gradient.
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
    damping : float
        The part of the way to its new place that each point goes in one step, above 0 and at most 1
        (default: 0.5).
    iterations : int
        Largest number of steps (default: 300).

    Returns
    -------
    Design
        Its MMD is at most that of the SBQ design. `stop` is empty only if the iteration ended
        where each point is within 1e-6 length-scales of its new place. Otherwise it says why it
        ended, or why there are fewer than n points.

    Raises
    ------
    ValueError
        If n is below 1 or below the number of initial points or, with a fixed pool, above that of
        initial points and candidates together; if points are not finite arrays (m, d); or if target
        and kernel differ in dimension. If the kernel mean is zero at every candidate. If `damping`
        is not above 0 and at most 1, or `iterations` is negative.
    TypeError
        If the kernel is not an ExponentiatedQuadratic: use :func:`bqlib.joint`. If `rng` is neither
        a seed nor a Generator, if the pair has no embedding, or if the target cannot be sampled and
        you pass no candidates.

    Notes
    -----
    With L = lengthscale^2 I or the covariance of the kernel, V1(x) = L grad z(x) + x z(x) is the
    mean of x' k(x, x'). Points Y with weights w = K^{-1}z move towards diag(w)^{-1} K^{-1} V1(Y),
    which is where they are if the MMD is stationary. Each step is a gradient step with
    preconditioner: there is a part of it that lowers the MMD. So a step that does not lower it is
    halved until it does. A point of small weight, whose new place is more than one length-scale
    away, takes less part in the step, and one whose weight is rounding none. Points that would
    leave the box of the target stay on its edge.
    O(n^3 + n^2 d) time a step, O(n^2) memory. It needs more steps than the L-BFGS of
    :func:`bqlib.joint`.

    References
    ----------
    Belhadji, Sharp and Marzouk, "Weighted quantization using MMD: from mean field to mean shift via
    gradient flows", 2025.

    Examples
    --------
    >>> from bqlib import ExponentiatedQuadratic, GaussianMixture, msip
    >>> normal = GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    >>> design = msip(normal, ExponentiatedQuadratic(1.0), n=2, rng=0)
    >>> abs(design.points[:, 0]).round(3)
    array([0.741, 0.741])
    """
    _checked_options(target, kernel, damping, iterations)

    def move(embedding: Embedding, points: Array, kept: int) -> tuple[Array, str]:
        return _moved(embedding, points, kept, damping, iterations)

    return moved_from_sbq(target, kernel, n, rng, candidates, initial, move)


class _State(NamedTuple):
    points: Array
    squared: float  # MMD^2 of BQ weights
    step: Array  # of each point (n, d), not damped
    farthest: float  # the longest way of a point to its new place, in length-scales


def _moved(
    embedding: Embedding, points: Array, kept: int, damping: float, limit: int
) -> tuple[Array, str]:
    """The points after at most `limit` steps, and why they stop: empty at a fixed point."""
    lower, upper = support(embedding)
    state = _state(embedding, points, kept)
    if state is None:
        return points, "msip does not move points that are not numerically distinct"
    part = damping
    for count in range(limit):
        if state.farthest <= TOLERANCE:
            return state.points, ""
        part = min(damping, 2 * part)
        for _ in range(HALVINGS):
            there = state.points + part * state.step
            there[kept:] = np.clip(there[kept:], lower, upper)
            found = _state(embedding, there, kept)
            if found is not None and found.squared < state.squared:
                break
            part /= 2
        else:
            return state.points, (
                f"msip stops after {count} of {limit} steps, as no step lowers the MMD any more "
                "(rounding, or an edge of the target): more steps would not help"
            )
        state = found
    return state.points, (
        f"msip stops at its limit of {limit} steps, before a fixed point: for a smaller MMD, pass "
        "more iterations"
    )


def _state(embedding: Embedding, points: Array, kept: int) -> _State | None:
    """Points with their MMD^2 and next step, or None where float64 cannot tell them."""
    kernel = embedding.kernel
    assert isinstance(kernel, ExponentiatedQuadratic)
    gram, gradient_dot = checked_gram_with_gradient_dot(kernel, points, points)
    mean, mean_slopes = embedding.kernel_mean_with_gradient(points)
    noisy = gram.copy()
    noisy[np.diag_indices(len(points))] *= 1 + NUGGET
    try:
        factor = cho_factor(noisy.T, overwrite_a=True, check_finite=False)
    except LinAlgError:
        return None
    weights = cho_solve(factor, mean, check_finite=False)
    squared = embedding.prior_variance - weights @ mean
    if squared <= 10 * np.finfo(float).eps * embedding.prior_variance:
        return None
    metric = kernel.metric(points.shape[1])
    root: Array = np.linalg.cholesky(metric).astype(float)
    # L grad z + diag(z) Y = V1 and z = K w: a step is K^{-1} V1 - diag(w) Y, over w.
    slopes = (mean_slopes - gradient_dot(weights)) @ metric
    zero = np.abs(weights) <= np.finfo(float).eps * np.abs(weights).max()  # to rounding
    share = np.where(zero, 0.0, 1.0)
    share[:kept] = 0
    divisor = np.where(zero, 1.0, weights)[:, None]

    def step_of(share: Array) -> tuple[Array, Array]:
        step = cho_solve(factor, share[:, None] * slopes, check_finite=False)
        step *= share[:, None] / divisor
        return step, np.linalg.norm(solve_lower(root, step.T), axis=0)

    step, lengths = step_of(share)
    farthest = lengths.max()
    if farthest > LONGEST_STEP:
        # The same share of slope and step: so a part of the step still lowers the MMD.
        share *= np.sqrt(LONGEST_STEP / np.maximum(lengths, LONGEST_STEP))
        step, _ = step_of(share)
    return _State(points, squared, step, farthest)
