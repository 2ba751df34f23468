"""Frank-Wolfe with line search."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike

from bqlib.answers import checked_gram
from bqlib.arrays import Array, Seed
from bqlib.candidates import Candidates
from bqlib.designs.design import Design, Pool, checked_request
from bqlib.embeddings.embedding import Embedding, points_of
from bqlib.kernels import Kernel
from bqlib.targets import Target
from bqlib.weights import PrefixWeights


def frank_wolfe(
    target: Target,
    kernel: Kernel,
    n: int,
    *,
    rng: Seed,
    candidates: Pool = Candidates(),
    initial: ArrayLike | None = None,
) -> Design:
    """Frank-Wolfe with line search: herding with the best step towards each point.

    Each point maximises the inner product of k(., x) with the difference of the target's mean
    embedding and that of the weighted points. The weights then move towards it by the step that
    lowers the MMD the most. They are not negative and sum to one, see
    :func:`~bqlib.designs.frank_wolfe.line_search`. A candidate may be picked more than once.

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

    Returns
    -------
    Design
        Its n points, with line-search weights.

    Raises
    ------
    ValueError
        If n is below 1 or below the number of initial points or, with a fixed pool, above that of
        initial points and candidates together; if points are not finite arrays (m, d); or if target
        and kernel differ in dimension.
    TypeError
        If `rng` is neither a seed nor a Generator, if the pair has no embedding, or if the target
        cannot be sampled and you pass no candidates.

    Notes
    -----
    O(M d) time a step, O(M n d) with fresh candidates; O(M d) memory. The MMD is O(n^-1/2) in
    general. It falls exponentially if the mean embedding is inside the hull of a finite-dimensional
    kernel.

    References
    ----------
    Bach, Lacoste-Julien and Obozinski, "On the equivalence between herding and conditional
    gradient algorithms", ICML 2012; Briol, Oates, Girolami and Osborne, "Frank-Wolfe Bayesian
    quadrature", NeurIPS 2015, which puts `bq` weights on the same points.

    Examples
    --------
    >>> import numpy as np
    >>> from bqlib import Brownian, Uniform, frank_wolfe
    >>> grid = np.linspace(0, 1, 16)[:, None]
    >>> design = frank_wolfe(Uniform([0], [1]), Brownian(), n=3, rng=0, candidates=grid)
    >>> design.points[:, 0].round(3)
    array([1.   , 0.   , 0.467])
    """
    request = checked_request(target, kernel, n, rng, candidates, initial)
    kernel = request.embedding.kernel  # of points in the units of the target
    kernel_mean = request.embedding.kernel_mean
    points = np.empty((n, target.dim))
    points[: len(request.initial)] = request.initial
    initial_mean = kernel_mean(request.initial)
    fixed = request.pool
    if fixed is not None:
        pool, mean, potential = fixed, kernel_mean(fixed), np.zeros(len(fixed))
    path, rows = _Path(n), []
    for m in range(n):
        if m < len(request.initial):
            mean_here = initial_mean[m]
        else:
            if fixed is None:
                pool = request.fresh_pool()
                mean, potential = (
                    kernel_mean(pool),
                    path.weights[:m] @ checked_gram(kernel, points[:m], pool),
                )
            i = int(np.argmax(mean - potential))
            rows.append(i)
            points[m], mean_here = pool[i], mean[i]
        x = points[m : m + 1]
        step = path.extend(checked_gram(kernel, points[: m + 1], x)[:, 0], mean_here)
        if fixed is not None:
            potential += step * (checked_gram(kernel, x, pool)[0] - potential)
    return request.design(points, line_search, rows)


def line_search(embedding: Embedding, points: ArrayLike) -> PrefixWeights:
    """Weights of a Frank-Wolfe path: each point in turn gets the step that lowers the MMD most.

    The first point has weight one. With each new point all weights shrink by 1 - s and the point
    gets s, where s in [0, 1] minimises the MMD.

    Parameters
    ----------
    embedding : Embedding
    points : array_like, shape (n, d)
        In the order of the path.

    Returns
    -------
    PrefixWeights
        The weights of every prefix.

    Raises
    ------
    ValueError
        If points are not a finite array (n, d).
    TypeError
        If `embedding` is not an Embedding.

    Notes
    -----
    O(n^2) time and memory, after O(n^2 d) time for the kernel.

    References
    ----------
    Bach, Lacoste-Julien and Obozinski, "On the equivalence between herding and conditional
    gradient algorithms", ICML 2012.

    Examples
    --------
    >>> from bqlib import Brownian, Uniform, embed
    >>> from bqlib.designs.frank_wolfe import line_search
    >>> line_search(embed(Brownian(), Uniform([0], [1])), [[1.0], [0.4]]).final(2).round(3)
    array([0.3, 0.7])
    """
    points = points_of(embedding, points)
    n = len(points)
    gram = checked_gram(embedding.kernel, points, points)
    mean = embedding.kernel_mean(points)
    path = _Path(n)
    matrix = np.zeros((n, n))
    for m in range(n):
        path.extend(gram[: m + 1, m], mean[m])
        matrix[m] = path.weights
    return PrefixWeights(matrix)


class _Path:
    """Weights w of a Frank-Wolfe path, with w'Kw and w'z."""

    def __init__(self, capacity: int):
        self.weights = np.zeros(capacity)
        self.size = 0
        self.energy, self.mean = 0.0, 0.0

    def extend(self, column: Array, mean: float) -> float:
        """Add a point by its kernels with all points, itself last, and z there; return the step."""
        cross = float(self.weights[: self.size] @ column[:-1])
        slope = mean - self.mean - cross + self.energy
        curvature = self.energy - 2 * cross + column[-1]
        if self.size == 0:
            step = 1.0
        else:
            step = float(np.clip(slope / curvature, 0.0, 1.0)) if curvature > 0 else 0.0
        self.weights[: self.size] *= 1 - step
        self.weights[self.size] = step
        self.energy = (1 - step) ** 2 * self.energy + 2 * step * (1 - step) * cross
        self.energy += step**2 * column[-1]
        self.mean += step * (mean - self.mean)
        self.size += 1
        return step
