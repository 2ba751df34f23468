"""Trials: one design with one weight rule at one seed, as curves against n."""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from bqlib.arrays import Array
from bqlib.candidates import Candidates
from bqlib.designs.design import Design
from bqlib.discrepancy import mmd2_of_prefixes
from bqlib.embeddings import Embedding, embed
from bqlib.integrands import Integrands
from bqlib.kernels import Kernel
from bqlib.pivots import first_occurrence
from bqlib.schema import QUANTILES
from bqlib.streams import stream
from bqlib.targets import Target
from bqlib.weights import PrefixWeights


def trial(
    target: Target,
    kernel: Kernel,
    design: Callable[..., Design],
    rule: Callable[[Embedding, Array], PrefixWeights],
    candidates: Candidates,
    n: int,
    seed: int,
    integrands: Sequence[tuple[Callable[..., Integrands], dict[str, Any]]] = (),
) -> dict[str, Any]:
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
    made = _returned(Design, design, design(target, kernel, n, rng=design_rng, candidates=pool))
    # A design may pick under a pair of its own, but all are measured under the cell's.
    own = made.embedding.kernel is kernel and made.embedding.target is target
    embedding = made.embedding if own else embed(kernel, target)
    # A copy: what a rule does to the points that it was given must not change those stored.
    weights = _returned(PrefixWeights, rule, rule(embedding, np.array(made.points)))
    rank = len(weights.matrix)
    if np.triu(weights.matrix, 1).any():
        raise ValueError(
            "weights of the first points use later points: row n of the matrix of a weight rule "
            "must be zero after column n"
        )
    points = made.points[:rank]
    repeats = first_occurrence(points) != np.arange(rank)
    mmd2 = mmd2_of_prefixes(embedding, points, weights.matrix)
    reasons = [made.stop, weights.stop]
    if np.isnan(mmd2).any():
        reasons.append(f"mmd is below the floor of float64 from n = {np.isnan(mmd2).argmax() + 1}")
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
        curves |= _errors(embedding, points, weights.matrix, curves["mmd"], integrands, seed)
    padded = {name: _padded(values, n) for name, values in curves.items()}
    return padded | {
        "rank_reached": float(rank),
        "reason": "; ".join(reason for reason in reasons if reason),
    }


def _errors(
    embedding: Embedding,
    points: Array,
    matrix: Array,
    mmd: Array,
    integrands: Sequence[tuple[Callable[..., Integrands], dict[str, Any]]],
    seed: int,
) -> dict[str, Array]:
    """Errors of every prefix, summarised over the functions of each integrand."""
    means, quantiles, ratios = [], [], []
    for family, parameters in integrands:
        rng = stream(f"integrand/{family.__name__}", seed)
        functions = _returned(Integrands, family, family(embedding, rng, **parameters))
        errors = functions.errors(points, matrix)
        means.append(errors.mean(axis=1))
        quantiles.append(np.quantile(errors, QUANTILES, axis=1).T)
        norms = functions.norms
        ratios.append(np.nan * mmd if norms is None else (errors / norms).max(axis=1) / mmd)
    return {
        "error": np.stack(means, axis=1),
        "error_quantile": np.stack(quantiles, axis=1),
        "bound_ratio": np.stack(ratios, axis=1),
    }


def _returned(kind: type, function: Callable[..., Any], found: Any) -> Any:
    """What a function of a user's own may have returned, if it is of that kind."""
    if not isinstance(found, kind):
        name = getattr(function, "__name__", "the function")
        raise TypeError(
            f"{name} returned an object of type {type(found).__name__}; it must return a "
            f"{kind.__module__}.{kind.__qualname__}"
        )
    return found


def _padded(values: Array, n: int) -> Array:
    padding = np.full((n - len(values), *values.shape[1:]), np.nan)
    return np.concatenate([values, padding])
