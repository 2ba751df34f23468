"""Sequential Bayesian quadrature."""

import numpy as np

from bqlib.candidates import Candidates
from bqlib.designs.design import checked_request
from bqlib.designs.newton import best, newton_greedy


def sbq(target, kernel, n, *, rng, candidates=Candidates(), initial=None):  # noqa: B008
    """Sequential Bayesian quadrature: each point lowers the posterior variance the most.

    Parameters
    ----------
    target, kernel
        The pair; it must have an embedding.
    n : int
        Number of points.
    rng : numpy.random.Generator or int
    candidates : Candidates or array_like, shape (M, d)
        How to draw the pool, or the pool itself.
    initial : array_like, shape (m, d), optional
        Points to start from; they count among the n.

    Returns
    -------
    Design
        Shorter than n, with `stop` saying so, where float64 cannot tell a further candidate from
        those picked.

    Raises
    ------
    ValueError, TypeError
        If an argument is wrong.

    Notes
    -----
    Picks the candidate with the largest residual^2 / power, the decrement of MMD^2. O(M n) time
    a step, O(M n) memory; O(M n^2) time a step with fresh candidates.

    References
    ----------
    Huszar and Duvenaud, "Optimally-Weighted Herding is Bayesian Quadrature", UAI 2012. Also known
    as the orthogonal least squares or f/P-greedy rule.
    """

    request = checked_request(target, kernel, n, rng, candidates, initial)
    return newton_greedy(request, lambda residual, power: best(decrement(residual, power)))


def decrement(residual, power):
    """Fall of MMD^2 that each candidate brings, zero where it is spent."""
    fall = np.zeros_like(power)
    return np.divide(residual * residual, power, out=fall, where=power > 0)
