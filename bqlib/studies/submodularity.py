"""Greedy picks against the best ones, and the bounds of the theory.

What is maximised is s(A) = V0 - MMD^2 of the points A with BQ weights = z_A' K_AA^{-1} z_A.
"""

from itertools import combinations

import numpy as np

from bqlib.designs.sbq import sbq
from bqlib.embeddings import embed
from bqlib.pivots import first_occurrence
from bqlib.schema import Variable
from bqlib.streams import stream
from bqlib.studies.plans import one_pool, requires_sbq
from bqlib.studies.study import Study

POOL, PICKS = 16, 5  # small enough to try every set


def submodularity(target, kernel, candidates, n, seed):
    """Greedy against best on a pool of 16 candidates, and coherences of pools.

    Candidates that are drawn more than once, for example from data, count once.

    Returns
    -------
    dict of ndarray
        For each number of picks: ``greedy`` and ``best``, s over V0; ``ratio``, the submodularity
        ratio of Das and Kempe along the greedy set; all NaN for more picks than different
        candidates. ``eigenvalue``, the lower bound of the ratio. ``violation``, the largest
        departure of s from submodularity over sets of at most 4, over V0. ``coherence`` of the
        small pool, ``pool_coherence`` of the sweep's pool and ``design_coherence`` of its first
        points by SBQ.
    """
    embedding = embed(kernel, target)
    pool = one_pool(candidates, target, stream("candidates", seed))
    pool = pool[np.unique(first_occurrence(pool))]
    few = pool[:POOL]
    picks = np.arange(1, min(PICKS, candidates.size) + 1)  # whatever the seed
    gram, mean = kernel(few, few), embedding.kernel_mean(few)
    order = greedy_order(gram, mean, min(PICKS, len(few)))
    greedy, best, ratio = np.full((3, len(picks)), np.nan)
    for i, size in enumerate(range(1, len(order) + 1)):
        greedy[i] = value(gram, mean, order[:size])
        best[i] = values(gram, mean, _sets(len(few), size)).max()
        ratio[i] = submodularity_ratio(gram, mean, order[:size])
    scale = embedding.prior_variance
    return {
        "picks": picks,
        "greedy": greedy / scale,
        "best": best / scale,
        "ratio": ratio,
        "eigenvalue": np.array(np.linalg.eigvalsh(correlation(gram))[0]),
        "violation": np.array(violation(gram, mean) / scale),
        "coherence": np.array(coherence(kernel, few)),
        "pool_coherence": np.array(coherence(kernel, pool)),
        "design_coherence": np.array(_design_coherence(target, kernel, pool, n, seed)),
    }


def value(gram, mean, points):
    """s of one set of points."""
    points = list(points)
    return float(mean[points] @ np.linalg.solve(gram[np.ix_(points, points)], mean[points]))


def values(gram, mean, sets):
    """s of many sets of one size, (S, size) to (S,)."""
    grams = gram[sets[:, :, None], sets[:, None, :]]
    solved = np.linalg.solve(grams, mean[sets][:, :, None])[:, :, 0]
    return np.einsum("si,si->s", mean[sets], solved)


def gains(gram, mean, points):
    """s(points + x) - s(points) of every candidate x; zero for x in `points`."""
    residual, covariance = conditioned(gram, mean, points)
    power = np.diag(covariance).copy()
    power[list(points)] = np.inf
    return residual**2 / power


def conditioned(gram, mean, points):
    """Residual (M,) and covariance (M, M) of all candidates given some points."""
    points = list(points)
    if not points:
        return mean, gram
    solved = np.linalg.solve(gram[np.ix_(points, points)], gram[points])
    return mean - solved.T @ mean[points], gram - gram[:, points] @ solved


def greedy_order(gram, mean, size):
    """Points that each lower the MMD most, one after another: the picks of SBQ."""
    order = []
    for _ in range(size):
        order.append(int(gains(gram, mean, order).argmax()))
    return order


def submodularity_ratio(gram, mean, points):
    """Least sum of single gains over joint gain, for sets added to any subset of `points`.

    The submodularity ratio of Das and Kempe (2011): minimum over L within `points` and sets S of at
    most as many other candidates of sum_x [s(L + x) - s(L)] / [s(L + S) - s(L)]. Greedy picks have
    s(greedy) >= (1 - exp(-ratio)) s(best). The ratio is at least 1 if s is submodular.
    """
    least = np.inf
    everything = set(range(len(mean)))
    for size in range(len(points) + 1):
        for chosen in combinations(points, size):
            residual, covariance = conditioned(gram, mean, chosen)
            others = np.array(sorted(everything - set(chosen)), dtype=int)
            single = residual[others] ** 2 / np.diag(covariance)[others]
            for count in range(1, min(len(points), len(others)) + 1):
                added = _sets(len(others), count)
                joint = values(covariance, residual, others[added])
                gaining = joint > 0
                ratios = single[added].sum(axis=1)[gaining] / joint[gaining]
                least = min(least, ratios.min(initial=np.inf))
    return least


def violation(gram, mean, largest=4):
    """Largest [s(B + x) - s(B)] - [s(A + x) - s(A)] over A within B of at most `largest` points."""
    size = len(mean)
    own = {
        chosen: gains(gram, mean, chosen)
        for count in range(largest + 1)
        for chosen in combinations(range(size), count)
    }
    worst = 0.0
    for larger, gain in own.items():
        smaller = [
            own[part] for count in range(len(larger)) for part in combinations(larger, count)
        ]
        if smaller:
            excess = gain - np.min(smaller, axis=0)
            excess[list(larger)] = 0.0
            worst = max(worst, excess.max())
    return worst


def correlation(gram):
    """The Gram matrix of the candidates as atoms of norm one."""
    root = np.sqrt(np.diag(gram))
    return gram / np.outer(root, root)


def coherence(kernel, points, rows=500):
    """Largest |k(x, y)| / sqrt(k(x, x) k(y, y)) over different points. O(M^2) time."""
    root = np.sqrt(kernel.diagonal(points))
    largest = 0.0
    for first in range(0, len(points), rows):
        block = np.abs(kernel(points[first : first + rows], points))
        block /= root[first : first + rows, None] * root
        block[np.arange(len(block)), first + np.arange(len(block))] = 0.0
        largest = max(largest, block.max())
    return largest


def _design_coherence(target, kernel, pool, n, seed):
    rng = stream("study/submodularity", seed)
    return coherence(
        kernel, sbq(target, kernel, min(n, len(pool)), rng=rng, candidates=pool).points
    )


def _sets(size, count):
    return np.array(list(combinations(range(size), count)))


STUDY = Study(
    function=submodularity,
    seeds=20,
    precondition=requires_sbq,
    variables={
        "greedy": Variable(("picks",), "V0 - MMD^2 of the greedy set, over V0"),
        "best": Variable(("picks",), "V0 - MMD^2 of the best set, over V0"),
        "ratio": Variable(("picks",), "submodularity ratio of Das and Kempe along the greedy set"),
        "eigenvalue": Variable((), "least eigenvalue of the correlation matrix of the small pool"),
        "violation": Variable((), "largest departure from submodularity, over V0"),
        "coherence": Variable((), "coherence of the small pool"),
        "pool_coherence": Variable((), "coherence of the pool of the sweep"),
        "design_coherence": Variable((), "coherence of the points of SBQ"),
    },
    coordinates={"picks": ("number of points picked of the small pool", "1")},
)
