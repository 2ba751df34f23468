"""Trials: one design with one weight rule at one seed, as curves against n."""

import numpy as np

from bqlib.discrepancy import mmd2_of_prefixes
from bqlib.schema import QUANTILES
from bqlib.streams import stream
from bqlib.weights import first_occurrence


def trial(target, kernel, design, rule, candidates, n, seed, integrands=()):
    """Pick points, weigh every prefix, and measure.

    Parameters
    ----------
    target, kernel
        The pair.
    design, rule : callable
        A function of :mod:`bqlib.designs` and one of :mod:`bqlib.weights`.
    candidates : Candidates
        At one seed all algorithms get the same pool, and the same fresh pools.
    n : int
    seed : int
    integrands : sequence of (callable, dict)
        Functions of :mod:`bqlib.integrands` with their parameters. The functions they draw depend
        on the seed alone: they are the same for all algorithms.

    Returns
    -------
    dict of ndarray
        ``mmd``, ``weight_sum``, ``weight_l1``, ``min_weight``, ``duplicates``, ``weights`` of
        shape (n,) and ``points`` (n, d), NaN beyond the rank reached; ``rank_reached``, a float;
        ``reason``, empty or why the curves end before n. With I integrands also ``error``
        and ``bound_ratio`` (n, I), ``error_quantile`` (n, I, 3).

    Notes
    -----
    An integrand with F functions costs O(n^2 F) in addition to their values at the points: about
    0.05 s for n = 400 and F = 250.
    """
    pool_rng = stream("candidates", seed)
    pool = candidates if candidates.fresh else candidates.draw(target, pool_rng)
    design_rng = pool_rng if candidates.fresh else stream(f"design/{design.__name__}", seed)
    made = design(target, kernel, n, rng=design_rng, candidates=pool)
    # A copy: what a rule does to the points that it was given must not change those stored.
    weights = rule(made.embedding, np.array(made.points))
    rank = len(weights.matrix)
    points = made.points[:rank]
    repeats = first_occurrence(points) != np.arange(rank)
    mmd2 = mmd2_of_prefixes(made.embedding, points, weights.matrix)
    reasons = [made.stop, weights.stop]
    if np.isnan(mmd2).any():
        first = np.isnan(mmd2).argmax() + 1
        reasons.append(f"the MMD is smaller than its rounding error, first at n = {first}")
    # Beyond the diagonal there are no weights, and zero must not pass for the smallest.
    smallest = np.where(np.tri(rank, dtype=bool), weights.matrix, np.inf)
    curves = {
        "mmd": np.sqrt(mmd2),
        "weight_sum": weights.matrix.sum(axis=1),
        "weight_l1": np.abs(weights.matrix).sum(axis=1),
        "min_weight": smallest.min(axis=1, initial=np.inf),
        "duplicates": np.cumsum(repeats).astype(float),
        "weights": weights.matrix[-1] if rank else np.empty(0),
        "points": points,
    }
    if integrands:
        curves |= _errors(made.embedding, points, weights.matrix, curves["mmd"], integrands, seed)
    padded = {name: _padded(values, n) for name, values in curves.items()}
    return padded | {
        "rank_reached": float(rank),
        "reason": "; ".join(reason for reason in reasons if reason),
    }


def _errors(embedding, points, matrix, mmd, integrands, seed):
    """Errors of every prefix, summarised over the functions of each integrand."""
    means, quantiles, ratios = [], [], []
    for family, parameters in integrands:
        rng = stream(f"integrand/{family.__name__}", seed)
        functions = family(embedding, rng, **parameters)
        errors = functions.errors(points, matrix)
        means.append(errors.mean(axis=1))
        quantiles.append(np.quantile(errors, QUANTILES, axis=1).T)
        in_model = functions.norms is not None
        ratios.append((errors / functions.norms).max(axis=1) / mmd if in_model else np.nan * mmd)
    return {
        "error": np.stack(means, axis=1),
        "error_quantile": np.stack(quantiles, axis=1),
        "bound_ratio": np.stack(ratios, axis=1),
    }


def _padded(values, n):
    padding = np.full((n - len(values), *values.shape[1:]), np.nan)
    return np.concatenate([values, padding])
