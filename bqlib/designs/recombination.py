"""Recombination: few points and positive weights that integrate the features of a kernel."""

from __future__ import annotations

from typing import Any, Literal, get_args

import numpy as np
from numpy.typing import ArrayLike
from scipy.linalg import eigh, svd
from scipy.optimize import linprog

from bqlib.answers import checked_diagonal, checked_gram, checked_sample
from bqlib.arrays import Array, Indices, Seed
from bqlib.candidates import Candidates
from bqlib.checks import checked_count
from bqlib.designs.design import Design, Pool, Request, checked_request, point_set, requires
from bqlib.designs.halving import requires_pool
from bqlib.designs.own_weights import OwnWeights
from bqlib.kernels import Kernel
from bqlib.pivots import first_occurrence
from bqlib.targets import Empirical, Product, Target, Unnormalised
from bqlib.weights import simplex

Mean = Literal["exact", "pool"]
RELEVANT = 1e-12  # of the largest eigenvalue; features of smaller ones are rounding to a program
REDUNDANT = 1e-13  # of the largest singular value: what follows from the others up to rounding
PRECISION = 1e-12  # of the means, in units of the largest value of a feature
NO_SOLUTION = 2  # status of linprog
FEASIBLE = 1e-10  # the least tolerance that HiGHS takes
OPTIMAL = 1e-7  # of the largest cost of a candidate: what HiGHS takes for none
STEPS = 20  # of the simplex method, for each row and column
PART = 10  # candidates for each feature with which the linear program begins
BLOCK = 256  # candidates whose features are computed together
OF_DATA = "the features are integrated exactly over the data, not over the distribution behind them"


def requires_words_and_pool(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    candidates: Candidates,
    landmarks: int = 10,
    mean: Any = "exact",
) -> None:
    """Raise a ValueError or TypeError for a wrong parameter or fresh candidates."""
    requires_pool(target, kernel, n, candidates=candidates)
    checked_count(landmarks, "landmarks", 1)
    _checked_mean(mean)


@point_set
@requires(requires_words_and_pool)
def recombination(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    rng: Seed,
    candidates: Pool = Candidates(),
    initial: ArrayLike | None = None,
    landmarks: int = 10,
    mean: Mean = "exact",
) -> Design:
    r"""Recombination: positive weights that integrate the leading features of the kernel exactly.

    The features are the constant and n - 1 combinations of the kernel at draws of their own, the
    landmarks: those that tell the most of the kernel there. At most n candidates with positive
    weights have the same mean of all features as the target. The points are a set, not a sequence.

    Parameters
    ----------
    target : Target
        The distribution to summarise, in d dimensions.
    kernel : Kernel
        Defines the MMD. It must have an embedding with the target: see :func:`bqlib.embed`.
    n : int
        Number of points.
    rng : numpy.random.Generator or int
        A generator, or the seed of one. Draws the landmarks, and the candidates unless they are
        given as an array.
    candidates : Candidates or array_like, shape (M, d)
        How to draw the pool (default: 10,000 draws from the target), or the pool itself; not fresh.
    initial : array_like, optional
        Must be empty, as recombination cannot start from given points, or all n points. These get
        the weights of :func:`bqlib.weights.simplex`.
    landmarks : int
        Number of landmarks for each point (default: 10). They are drawn from the target. For an
        Unnormalised one, or one that has no sample, they are candidates, at most all.
    mean : {"exact", "pool"}
        Which mean of the features the weights have. "exact" (default): that of the target, from the
        kernel mean. "pool": that of the candidates, to which the points then are close; to the
        target they are no closer than the candidates.

    Returns
    -------
    Design
        With the weights that were found with the points: none is negative, and their sum is one.
        Fewer than n points, with the reason in `stop`, if float64 cannot tell n features apart.
        For a data set, `stop` says that the means are those of the data.

    Raises
    ------
    ValueError
        If n is below 1 or below the number of initial points or, with a fixed pool, above that of
        initial points and candidates together; if points are not finite arrays (m, d); or if target
        and kernel differ in dimension. If candidates are fresh, if there are initial points, but
        not n, or if `landmarks` or `mean` is another value.
        If no weights on the candidates have the mean of the target, as there are too few.
    TypeError
        If `rng` is neither a seed nor a Generator, if the pair has no embedding, or if the target
        cannot be sampled and you pass no candidates.

    Notes
    -----
    With the n - 1 largest eigenvalues of the Gram matrix of the landmarks p and its eigenvectors U,
    the features are U'k(p, x). Of all weights with the right means, those of a vertex of a linear
    program are taken: it minimises sum_i w_i r(x_i), where r(x) is what the features leave of
    k(x, x). The means are right to 1e-12 of the largest value of a feature, where features are
    scaled such that their squares sum to k(x, x) - r(x). A candidate that repeats another one is
    left out.

    O(n^3 + M n^2) time for the features, and that of the linear program, some seconds for n = 100
    and M = 10,000; O(n^2 + M n) memory. The first term has the factor `landmarks` to the third.

    References
    ----------
    Hayakawa, Oberhauser and Lyons, "Positively weighted kernel quadrature via subsampling", NeurIPS
    2022; Hayakawa, Oberhauser and Lyons, "Sampling-based Nyström approximation and kernel
    quadrature", ICML 2023.

    Examples
    --------
    >>> import bqlib
    >>> square = bqlib.Uniform([0, 0], [1, 1])
    >>> design = bqlib.recombination(square, bqlib.Korobov(), n=20, rng=0)
    >>> bool((design.weights > 0).all()), round(float(design.weights.sum()), 12)
    (True, 1.0)
    >>> draws = bqlib.iid(square, bqlib.Korobov(), n=20, rng=0)
    >>> one, other = (bqlib.mmd(d.embedding, d.points, d.weights) for d in (design, draws))
    >>> one < other
    True
    """
    request = checked_request(target, kernel, n, rng, candidates, initial)
    landmarks = checked_count(landmarks, "landmarks", 1)
    _checked_mean(mean)
    if len(request.initial) == request.n:
        return request.design(request.initial, simplex, [])
    if len(request.initial):
        raise ValueError(
            f"there are {len(request.initial)} initial points of n = {request.n}; recombination "
            "cannot start from given points: leave out initial, or give all n"
        )
    requires_pool(target, kernel, request.n, candidates=request.candidates)
    pool = request.pool
    assert pool is not None
    own = _landmarks(request, pool, landmarks * request.n)
    basis = _basis(request.embedding.kernel, own, request.n - 1)
    distinct, counts = np.unique(first_occurrence(pool), return_counts=True)
    features = _features(request.embedding.kernel, own, basis, pool[distinct])
    height = checked_diagonal(request.embedding.kernel, pool[distinct])
    if mean == "exact":
        means = basis.T @ request.embedding.kernel_mean(own)
    else:
        means = features @ (counts / len(pool))
    rows, weights = vertex(features, means, height - (features**2).sum(axis=0))
    rows = distinct[rows]
    notes = []
    if len(rows) < request.n:
        notes.append(
            f"recombination ends with {len(rows)} of {request.n} points, which integrate the "
            f"{basis.shape[1]} features that float64 can tell apart and the constant"
        )
    if mean == "exact" and _holds_data(target):
        notes.append(OF_DATA)
    return request.design(pool[rows], OwnWeights(weights), rows, "; ".join(notes))


def vertex(features: Array, means: Array, cost: Array) -> tuple[Indices, Array]:
    """Rows and weights w > 0 of sum one with given means of the features, and the least w'cost.

    Parameters
    ----------
    features : ndarray, shape (m, M)
        At M candidates.
    means : ndarray, shape (m,)
    cost : ndarray, shape (M,)
        Of each candidate.

    Returns
    -------
    rows : ndarray of int, shape (s,)
        At most m + 1 candidates, in their order.
    weights : ndarray, shape (s,)

    Raises
    ------
    ValueError
        If there are no such weights, or float64 finds none.
    """
    matrix = np.vstack([features, np.ones(features.shape[1])])
    size = np.sqrt(np.mean(matrix**2, axis=1))
    scale = 1 / np.where(size > 0, size, 1.0)
    wanted = np.append(means, 1.0)
    # The constant may all but be a combination of the features. So the program takes combinations
    # of the rows that are orthogonal and of one size, as one tolerance is for all.
    turn, sizes, rows_of_program = svd(matrix * scale[:, None], full_matrices=False)
    kept = sizes > REDUNDANT * sizes[0]
    program = rows_of_program[kept] * np.sqrt(matrix.shape[1])
    right = (turn.T @ (wanted * scale))[kept] / sizes[kept] * np.sqrt(matrix.shape[1])
    rows, problem = _solved(cost / max(np.abs(cost).max(), np.finfo(float).tiny), program, right)
    if len(rows):
        weights = np.asarray(np.linalg.lstsq(program[:, rows], right, rcond=None)[0], dtype=float)
        missed = np.abs(matrix[:, rows] @ weights - wanted)
        missed[:-1] /= np.abs(features).max(initial=np.finfo(float).tiny)
        if len(rows) <= len(program) and weights.min() > 0 and missed.max() <= PRECISION:
            return rows, weights
    raise ValueError(
        f"no positive weights on the {matrix.shape[1]} distinct candidates integrate {len(means)} "
        f"features and the constant ({problem or 'rounding'}): use more candidates, fewer points, "
        'or mean="pool", which integrates them over the candidates in place of the target'
    )


def _solved(cost: Array, matrix: Array, wanted: Array) -> tuple[Indices, str]:
    """Candidates with w > 0 of least cost w'cost, with given products with the matrix.

    The program begins with some candidates, evenly spaced, and goes on with those that would lower
    the cost, until there are none: those are the weights of all candidates. If some are too few,
    all are taken. None are found, and the message says why, if there are no such weights.
    """
    count, part = len(cost), PART * len(matrix)
    chosen = np.unique(np.linspace(0, count - 1, min(part, count)).astype(np.intp))
    while True:
        found = _program(cost[chosen], matrix[:, chosen], wanted)
        if found.status and len(chosen) == count:
            return chosen[:0], "infeasible" if found.status == NO_SOLUTION else found.message
        if found.status:
            chosen = np.arange(count)
            continue
        saved = cost - found.eqlin.marginals @ matrix
        saved[chosen] = 0
        better = np.argsort(saved)[:part]
        better = better[saved[better] < -OPTIMAL]
        if not len(better):
            return chosen[found.x > 0], ""
        chosen = np.union1d(chosen, better)


def _program(cost: Array, matrix: Array, wanted: Array) -> Any:
    """What HiGHS finds: the least cost of w >= 0 with given products with the matrix."""
    # Without a limit, the simplex method may turn in circles where candidates are nearly equal.
    limit = STEPS * sum(matrix.shape)
    options = {"primal_feasibility_tolerance": FEASIBLE, "presolve": False, "maxiter": limit}
    program = {"c": cost, "A_eq": matrix, "b_eq": wanted, "options": options}
    found = linprog(**program, method="highs-ds")
    # Difficulties, mostly where there is no solution: the other method can tell.
    return linprog(**program, method="highs-ipm") if found.status in (1, 4) else found


def _checked_mean(mean: Any) -> None:
    if not isinstance(mean, str) or mean not in get_args(Mean):
        raise ValueError(f"mean is {mean!r}; it must be one of {', '.join(get_args(Mean))}")


def _landmarks(request: Request, pool: Array, count: int) -> Array:
    target = request.embedding.target
    if isinstance(target, Unnormalised) or not hasattr(target, "sample"):
        return pool[request.rng.choice(len(pool), min(count, len(pool)), replace=False)]
    return checked_sample(target, count, request.rng)


def _basis(kernel: Kernel, landmarks: Array, count: int) -> Array:
    """U / sqrt(eigenvalues) (L, m) of the `count` largest eigenvalues, but of no rounding."""
    size = len(landmarks)
    if not count:
        return np.empty((size, 0))
    gram = checked_gram(kernel, landmarks, landmarks)
    values, vectors = eigh(gram, subset_by_index=[size - count, size - 1])
    kept = values > RELEVANT * values[-1]
    return vectors[:, kept] / np.sqrt(values[kept])


def _features(kernel: Kernel, landmarks: Array, basis: Array, pool: Array) -> Array:
    """Features (m, M) of the pool."""
    features = np.empty((basis.shape[1], len(pool)))
    for start in range(0, len(pool), BLOCK):
        own = slice(start, start + BLOCK)
        features[:, own] = basis.T @ checked_gram(kernel, landmarks, pool[own])
    return features


def _holds_data(target: Any) -> bool:
    """Whether means under the target are those of a data set."""
    if isinstance(target, Product):
        return any(_holds_data(block) for block in target.blocks)
    return isinstance(target, Empirical)
