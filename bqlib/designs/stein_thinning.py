"""Regularised Stein thinning."""

from __future__ import annotations

from typing import Any

import numpy as np

from bqlib.answers import checked_diagonal, checked_hessian, checked_log_density
from bqlib.arrays import Array, Seed
from bqlib.candidates import Candidates
from bqlib.checks import checked_number
from bqlib.designs.design import Design, Pool, checked_request, point_set, requires
from bqlib.designs.equal_weights import Terms, greedy_with_equal_weights
from bqlib.embeddings import in_standard
from bqlib.kernels import Kernel, OnStandard, Stein
from bqlib.targets import Target


def _requires(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    candidates: Candidates,
    laplace: bool = True,
    entropy: float | None = None,
    **parameters: Any,
) -> None:
    """Raise an error for what :func:`stein_thinning` cannot work with at any seed."""
    stein = kernel.kernel if isinstance(kernel, OnStandard) else kernel
    if not isinstance(stein, Stein):
        raise TypeError(f"stein_thinning needs a Stein kernel, not {type(stein).__name__}")
    missing = [
        f"{name} (which {why})"
        for name, why, needed in (
            ("log_density", "entropy=0 does without", entropy != 0),
            ("hessian", "laplace=False does without", laplace),
        )
        if needed and getattr(stein.target, name, None) is None
    ]
    if missing:
        raise TypeError(
            f"stein_thinning needs more than this {type(stein.target).__name__} has: "
            f"{' and '.join(missing)}"
        )
    if entropy is not None and not 0 <= checked_number(entropy, "entropy") < np.inf:
        raise ValueError(f"entropy is {entropy}; it must be finite and not negative")


@point_set
@requires(_requires)
def stein_thinning(
    target: Any,
    kernel: Any,
    n: int,
    *,
    rng: Seed,
    candidates: Pool = Candidates(),
    initial: Any = None,
    entropy: Any = None,
    laplace: bool = True,
    repeats: bool = True,
) -> Design:
    """Regularised Stein thinning: herding with a Stein kernel, drawn to where the density is high.

    It is made against two faults of plain Stein thinning: points between modes, where the density
    is low but its score is zero, and modes that get too many points.

    Parameters
    ----------
    target : Target
        The distribution to summarise, in d dimensions; with a log density unless `entropy` is
        zero, and a Hessian if `laplace`.
    kernel : Kernel
        A :class:`Stein` kernel of the target.
    n : int
        Number of points, at least the number of initial points.
    rng : numpy.random.Generator or int
        A generator, or the seed of one. Draws the candidates, unless they are given as an array;
        required in any case.
    candidates : Candidates or array_like, shape (M, d)
        How to draw the pool (default: 10,000 draws from the target), or the pool itself.
    initial : array_like, shape (m, d), optional
        Points to start from; they count among the n.
    entropy : float, optional
        Weight of the log density (default: 1 / n). Zero leaves it out. With the default, a shorter
        design is not the start of a longer one.
    laplace : bool
        Whether to add the positive second derivatives of the log density (default: True).
    repeats : bool
        Whether a candidate may be picked more than once (default: True).

    Returns
    -------
    Design
        With equal weights. Fewer than n points, with the reason in `stop`, if `repeats` is False
        and no other candidate is left.

    Raises
    ------
    ValueError
        If n is below 1 or below the number of initial points or, with a fixed pool, above that of
        initial points and candidates together; if points are not finite arrays (m, d); or if target
        and kernel differ in dimension. If `entropy` is negative, NaN or infinite.
    TypeError
        If `rng` is neither a seed nor a Generator, if the kernel is no Stein kernel, if the target
        lacks a log density or Hessian that is needed, or cannot be sampled and you pass no
        candidates.

    Notes
    -----
    Point t minimises k(x, x) + L(x) - t entropy log p(x) + 2 sum_j k(x_j, x) over the t - 1 points
    x_j before it, where L(x) is the sum of the positive ones among the second derivatives of log p
    in each coordinate, in `units` of the kernel. With ``entropy=0, laplace=False`` these are the
    points of :func:`herding` with the same kernel: plain Stein thinning.

    O(M d) time a step, O(M n d) with fresh candidates; O(M d) memory, and O(M d^2) if `laplace`.

    References
    ----------
    Riabiz and others, "Optimal thinning of MCMC output", JRSS B 2022. Benard, Staber and Da Veiga,
    "Kernel Stein discrepancy thinning: a theoretical perspective of pathologies and a practical fix
    with regularization", NeurIPS 2023.

    Examples
    --------
    >>> import bqlib
    >>> modes = bqlib.GaussianMixture([0.8, 0.2], [[-3.0], [3.0]], [[[1.0]], [[1.0]]])
    >>> kernel, pool = bqlib.Stein(modes), modes.sample(1000, rng=0)
    >>> design = bqlib.stein_thinning(modes, kernel, 100, rng=0, candidates=pool)
    >>> options = {"rng": 0, "candidates": pool}
    >>> plain = bqlib.stein_thinning(modes, kernel, 9, entropy=0, laplace=False, **options)
    >>> bool((plain.rows == bqlib.herding(modes, kernel, 9, **options).rows).all())
    True
    """
    request = checked_request(target, kernel, n, rng, candidates, initial)
    kernel = request.embedding.kernel
    _requires(target, kernel, n, candidates=request.candidates, entropy=entropy, laplace=laplace)
    embedding, to_inner, _ = in_standard(request.embedding)
    stein = embedding.kernel
    assert isinstance(stein, Stein)
    weight = 1 / request.n if entropy is None else float(entropy)

    def terms(pool: Array) -> Terms:
        inner, fixed = to_inner(pool), checked_diagonal(kernel, pool)
        if laplace:
            second = np.diagonal(checked_hessian(stein.target, inner), axis1=1, axis2=2)
            squares = 1.0 if stein.units is None else np.square(stein.units)
            fixed = fixed + np.maximum(second * squares, 0.0).sum(axis=1)
        if weight == 0:
            return fixed, np.zeros(len(pool))
        return fixed, weight * checked_log_density(stein.target, inner)

    def score(terms: Terms, visits: Array, m: int) -> Array:
        fixed, log_density = terms
        return (m + 1) * log_density - fixed - 2 * visits

    return greedy_with_equal_weights(request, terms, score, repeats)
