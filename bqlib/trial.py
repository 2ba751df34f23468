"""Trials: one design with one weight rule at one seed, as curves against n."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from bqlib.arrays import Array
from bqlib.candidates import Candidates
from bqlib.designs.design import Design
from bqlib.designs.own_weights import OwnWeights, own
from bqlib.discrepancy import mmd2, mmd2_of_prefixes
from bqlib.embeddings import DataMeans, Embedding, embed, with_data_means
from bqlib.integrands import Integrands
from bqlib.kernels import Kernel
from bqlib.pivots import first_occurrence
from bqlib.schema import QUANTILES
from bqlib.streams import stream
from bqlib.targets import Target
from bqlib.weights import PrefixWeights, final


def trial(
    target: Target,
    kernel: Kernel,
    design: Callable[..., Design],
    rule: Callable[[Embedding, Array], PrefixWeights],
    candidates: Candidates,
    n: int,
    seed: int,
    integrands: Sequence[tuple[Callable[..., Integrands], dict[str, Any]]] = (),
    sizes: Sequence[int] = (),
    means: DataMeans | None = None,
) -> dict[str, Any]:
    """Pick points, weigh every prefix, and measure.

    Parameters
    ----------
    target, kernel
        The pair.
    design, rule : callable
        A function of :mod:`bqlib.designs` and one of :mod:`bqlib.weights`;
        :func:`~bqlib.designs.own_weights.own` stands for the rule of the design itself.
    candidates : Candidates
        At one seed all algorithms get the same pool, and the same fresh pools.
    n : int
    seed : int
    integrands : sequence of (callable, dict)
        Functions of :mod:`bqlib.integrands` with their parameters. The functions they draw depend
        on the seed alone: they are the same for all algorithms.
    sizes : sequence of int
        Of a design whose points are a set: the n at which it is made, in rising order. Each size
        has the same pool and the same random numbers, whatever the other sizes are.
    means : DataMeans, optional
        Of a data set: what :func:`bqlib.embeddings.data_means` gives for the pair. Without it the
        trial computes the same numbers itself.

    Returns
    -------
    dict of ndarray
        ``mmd``, ``weight_sum``, ``weight_l1``, ``min_weight``, ``duplicates``, ``weights`` of
        shape (n,) and ``points`` (n, d), NaN beyond the rank reached; ``rank_reached``, a float;
        ``reason``, empty or why the curves end before n. With I integrands also ``error``
        and ``bound_ratio`` (n, I), ``error_quantile`` (n, I, 3). Of a set, curves are NaN except
        at its sizes, and weights and points are those of the largest size.

    Notes
    -----
    An integrand with F functions costs O(n^2 F) in addition to their values at the points: about
    0.05 s for n = 400 and F = 250. For a data set of M points, `means` saves O(M^2 d).
    """
    target = with_data_means(kernel, target, means)
    pool = candidates if candidates.fresh else candidates.draw(target, stream("candidates", seed))
    source = "candidates" if candidates.fresh else f"design/{design.__name__}"

    def made(size: int) -> _Made:
        rng = stream(source, seed)
        # A copy: what a design does to its candidates must not change those of other sizes.
        given = pool if isinstance(pool, Candidates) else pool.copy()
        found = _returned(Design, design, design(target, kernel, size, rng=rng, candidates=given))
        # A design may pick under a pair of its own, but all are measured under the cell's.
        embedding = found.embedding
        if not (embedding.kernel is kernel and embedding.target is target):
            embedding = embed(kernel, target)
        return _Made(embedding, found.points, found.rule if rule is own else rule, found.stop)

    if sizes:
        return _of_sets(made, sizes, n, integrands, seed)
    whole = made(n)
    curves, reasons = _of_prefixes(whole, integrands, seed)
    if len(whole.points) < n and not whole.stop:
        reasons.append(f"the design has {len(whole.points)} of {n} points, and does not say why")
    rank = float(len(curves["mmd"]))
    padded = {name: _padded(values, n) for name, values in curves.items()}
    return padded | {"rank_reached": rank, "reason": _joined(reasons)}


@dataclass(frozen=True, eq=False)
class _Made:
    """What a design made, and how it is weighed and measured."""

    embedding: Embedding
    points: Array
    rule: Callable[..., PrefixWeights]
    stop: str


def _of_prefixes(
    made: _Made, integrands: Sequence[Any], seed: int
) -> tuple[dict[str, Array], list[str]]:
    """Curves over the prefixes of a sequence, and why they end."""
    if isinstance(made.rule, OwnWeights):
        raise ValueError(
            "the design found weights with its points, which belong to all of them: say that its "
            "points are a set, by the decorator bqlib.designs.design.point_set"
        )

    def weighed(points: Array) -> PrefixWeights:
        # A copy: what a rule does to the points that it was given must not change those stored.
        found = made.rule(made.embedding, np.array(points))
        return _returned(PrefixWeights, made.rule, found)

    points = made.points
    weights = weighed(points)
    stop, rank = weights.stop, len(weights.matrix)
    # The curves are those of the points that are stored: points beyond them change how weights
    # are rounded, by much where they are large.
    while 0 < rank < len(points):
        points = points[:rank]
        weights = weighed(points)
        stop, rank = weights.stop or stop, len(weights.matrix)
    points = points[:rank]
    if np.triu(weights.matrix, 1).any():
        raise ValueError(
            "weights of the first points use later points: row n of the matrix of a weight rule "
            "must be zero after column n"
        )
    mmd = np.sqrt(mmd2_of_prefixes(made.embedding, points, weights.matrix))
    reasons = [made.stop, stop]
    if np.isnan(mmd).any():
        reasons.append(f"mmd is below the floor of float64 from n = {np.isnan(mmd).argmax() + 1}")
    # Beyond the diagonal there are no weights, and zero must not pass for the smallest.
    smallest = np.where(np.tri(rank, dtype=bool), weights.matrix, np.inf)
    curves = _measured(made.embedding, points, weights.matrix, smallest, mmd, integrands, seed)
    repeats = np.cumsum(_repeats(points)).astype(float)
    last = weights.matrix[-1] if rank else np.empty(0)
    return curves | {"duplicates": repeats, "weights": last, "points": points}, reasons


def _of_sets(
    make: Callable[[int], _Made],
    sizes: Sequence[int],
    n: int,
    integrands: Sequence[Any],
    seed: int,
) -> dict[str, Any]:
    """Curves of a set at its sizes, NaN elsewhere.

    A set may have fewer points than it was asked for: n is then what it was allowed. Where the
    design raises a ValueError, the curves are NaN; one for every size fails the trial.
    """
    curves: dict[str, Array] = {}
    reasons, reached = [], 0
    for size in sizes:
        try:
            made = make(size)
        except ValueError as error:  # other sizes may work
            reasons.append(f"at n = {size}: {error}")
            continue
        points, embedding = made.points, made.embedding
        if len(points) > size:
            raise ValueError(f"the design has {len(points)} points; it must have at most {size}")
        if len(points) < size and not made.stop:
            raise ValueError(
                f"the design has {len(points)} of {size} points, but its stop is empty: let it say "
                "why"
            )
        row = final(made.rule, embedding, points)[None, :]
        mmd = np.sqrt([mmd2(embedding, points, row[0])])
        found = _measured(embedding, points, row, row, mmd, integrands, seed)
        found["duplicates"] = np.array([_repeats(points).sum()], dtype=float)
        for name, values in found.items():
            curve = curves.setdefault(name, np.full((n, *values.shape[1:]), np.nan))
            curve[size - 1] = values[0]
        curves |= {"weights": _padded(row[0], n), "points": _padded(points, n)}
        reached = size
        below = "mmd is below the floor of float64" if np.isnan(mmd[0]) else ""
        reasons += [f"at n = {size}: {stop}" for stop in (made.stop, below) if stop]
    if not curves:
        raise ValueError(_joined(reasons))
    return curves | {"rank_reached": float(reached), "reason": _joined(reasons)}


def _repeats(points: Array) -> Array:
    return first_occurrence(points) != np.arange(len(points))


def _joined(reasons: Sequence[str]) -> str:
    return "; ".join(reason for reason in reasons if reason)


def _measured(
    embedding: Embedding,
    points: Array,
    matrix: Array,
    smallest: Array,
    mmd: Array,
    integrands: Sequence[Any],
    seed: int,
) -> dict[str, Array]:
    """What is told of the weights in each row of a matrix, whose MMDs are known."""
    curves = {
        "mmd": mmd,
        "weight_sum": matrix.sum(axis=1),
        "weight_l1": np.abs(matrix).sum(axis=1),
        "min_weight": smallest.min(axis=1, initial=np.inf),
    }
    if integrands:
        curves |= _errors(embedding, points, matrix, mmd, integrands, seed)
    return curves


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
