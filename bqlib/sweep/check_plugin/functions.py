"""Checks of designs, weight rules and integrands."""

from functools import partial

import numpy as np

from bqlib import embeddings, kernels
from bqlib.candidates import Candidates
from bqlib.designs.design import is_point_set
from bqlib.discrepancy import mmd2_of_prefixes
from bqlib.sweep import plugins
from bqlib.sweep.check_plugin.assertions import (
    ANY_ERROR,
    DRAWS,
    ViolationError,
    global_states,
    require,
    require_array,
    require_attributes,
    require_close,
    require_integrals,
    sampled,
)
from bqlib.sweep.check_plugin.pairs import targets_for
from bqlib.weights import bq

N = 16  # points of designs and weight rules; a power of 2, as some lattices need
KERNEL = kernels.ExponentiatedQuadratic(0.7)


def verify_design(findings, function, parameters):
    """Check a design on a small problem."""
    candidates = Candidates(200)
    target, kernel = _problem_for(function, candidates, parameters)

    def run(n, rng, pool=candidates):
        return function(target, kernel, n, rng=rng, candidates=pool, **parameters)

    is_set = is_point_set(function)
    design = findings.verify(f"it returns a Design of {N} points", _design, run, target, is_set)
    if design is None:
        return
    findings.verify_streams(lambda rng: run(N, rng).points)
    if not is_point_set(function):
        findings.verify("the first points are the design of a smaller size", _prefix, run)
    findings.verify("a design can have one point", _one_point, run)
    findings.verify("it picks from the pool, and leaves it unchanged", _from_pool, run, target)
    findings.verify("its weights have a finite MMD", _finite_mmd, design)


def _problem_for(design, candidates, parameters):
    """A target and a kernel to check a design with: the first pair that it does not refuse."""
    mixture = targets_for(2)[0]
    pairs = (
        (mixture, KERNEL),
        (mixture, kernels.Stein(mixture, 0.7, constant=1.0)),
        (targets_for(1)[1], KERNEL),  # the unit interval
    )
    for target, kernel in pairs:
        try:
            if hasattr(design, "requires"):
                design.requires(target, kernel, N, candidates=candidates, **parameters)
        except (TypeError, ValueError):
            continue
        return target, kernel
    return pairs[0]


def _design(run, target, is_set):
    design = run(N, np.random.default_rng(0))
    require_attributes(design, ("embedding", "points", "rule", "stop"))
    require(design.embedding.target is target, "its embedding has another target")
    reached = len(design.points)
    require_array(design.points, (min(reached, N), target.dim), "points")
    # A set may also say that its iteration ended before a minimum.
    require(
        (reached < N) == bool(design.stop) or (is_set and reached == N),
        f"it has {reached} of {N} points, but its stop is {design.stop!r}",
    )
    return design


def _prefix(run):
    long, short = (run(n, np.random.default_rng(0)).points for n in (N, N // 2))
    m = min(len(short), len(long))
    differ = np.flatnonzero((long[:m] != short[:m]).any(axis=1))
    if len(differ):
        point = differ[0] + 1
        raise ViolationError(
            f"point {point} of {N} is not point {point} of {N // 2}, but a sweep uses the first n "
            "points of its largest design as the design of n points. If the points are a set, say "
            "so by the decorator bqlib.designs.design.point_set"
        )


def _one_point(run):
    count = len(run(1, 0).points)
    require(count == 1, f"it has {count} points")


def _from_pool(run, target):
    pool = target.sample(200, np.random.default_rng(3))
    copy = pool.copy()
    design = run(N, np.random.default_rng(0), pool)
    points, rows = design.points, getattr(design, "rows", None)
    require(np.array_equal(pool, copy), "it changes the pool")
    if rows is not None:
        found = pool[rows] if set(rows) <= {*range(len(pool))} else None
        require(np.array_equal(found, points), "its rows are not those of its points in the pool")
    inside = int((points[:, None, :] == pool).all(axis=2).any(axis=1).sum())
    outside = len(points) - inside
    return f"{outside} points are not from the pool" if outside else ""


def _finite_mmd(design):
    matrix = design.rule(design.embedding, design.points).matrix
    mmd2 = mmd2_of_prefixes(design.embedding, design.points[: len(matrix)], matrix)
    require(np.isfinite(mmd2).all(), f"it is NaN at n = {np.isnan(mmd2).argmax() + 1}")
    return f"{np.sqrt(mmd2[-1]):.3g} for {len(matrix)} points"


def verify_weights(findings, function, parameters):
    """Check a weight rule on a few draws, one of which is a repeat."""
    rule = partial(function, **parameters)
    target = targets_for(2)[0]
    embedding = embeddings.embed(KERNEL, target)
    points = target.sample(N, np.random.default_rng(0))
    points[9] = points[4]
    weights = findings.verify("it returns PrefixWeights", _prefix_weights, rule, embedding, points)
    if weights is None:
        return
    findings.verify("row n has no weights after n", _triangular, weights.matrix)
    findings.verify(
        "row n does not depend on later points", _independent_rows, rule, embedding, points
    )
    findings.verify(
        "two calls give the same weights, and global random states do not change",
        _same_weights,
        rule,
        embedding,
        points,
    )
    findings.verify("sums of its rows", _sums, weights.matrix)
    findings.verify("MMD of its weights", _mmd, embedding, points, weights.matrix)


def _prefix_weights(rule, embedding, points):
    weights = rule(embedding, points)
    require_attributes(weights, ("matrix", "stop"))
    rank = len(weights.matrix)
    require_array(weights.matrix, (min(rank, len(points)),) * 2, "matrix")
    require(
        (rank < len(points)) == bool(weights.stop),
        f"it has {rank} rows for {len(points)} points, but its stop is {weights.stop!r}",
    )
    return weights


def _triangular(matrix):
    rows, columns = np.nonzero(np.triu(matrix, 1))
    if len(rows):
        raise ViolationError(f"row {rows[0] + 1} has a weight for point {columns[0] + 1}")


def _independent_rows(rule, embedding, points):
    half = len(points) // 2
    long, short = rule(embedding, points).matrix, rule(embedding, points[:half]).matrix
    m = min(half, len(short), len(long))
    tolerance = 1e-8 * np.abs(short).max(initial=0.0)
    require_close(long[:m, :m], short[:m, :m], tolerance, f"with the first {half} points alone")


def _same_weights(rule, embedding, points):
    states = global_states()
    first, second = (rule(embedding, points).matrix for _ in range(2))
    require(np.array_equal(first, second), "two calls differ")
    require(global_states() == states, "it draws from a global random state")


def _sums(matrix):
    sums = matrix.sum(axis=1)
    return f"from {sums.min():.4g} to {sums.max():.4g}"


def _mmd(embedding, points, matrix):
    best = bq(embedding, points).matrix
    m = min(len(matrix), len(best))
    ours, least = (mmd2_of_prefixes(embedding, points[:m], rows[:m, :m]) for rows in (matrix, best))
    return f"{np.sqrt(ours[-1]):.3g} for {m} points, {np.sqrt(least[-1]):.3g} at best"


def verify_integrand(findings, function, parameters):
    """Check integrands under targets of bqlib and of their own module."""
    if "functions" in plugins.parameters("integrand", function):
        parameters = {"functions": 20} | parameters
    refusals, tried = [], targets_for(2, function)
    for target in tried:
        try:
            embedding = embeddings.embed(KERNEL, target)
            function(embedding, np.random.default_rng(0), **parameters)
        except TypeError as error:
            refusals.append(plugins.reason_of(error))
            continue
        except ANY_ERROR:
            pass  # the first check reports it
        _verify_under(findings, partial(function, embedding, **parameters), embedding)
    if len(refusals) == len(tried):
        findings.fail("it works with a target", "; ".join(dict.fromkeys(refusals)))


def _verify_under(findings, draw, embedding):
    """Check integrands under the target of an embedding."""
    target = embedding.target
    name = f"under {type(target).__name__}"
    x = target.sample(7, np.random.default_rng(1))
    functions = findings.verify(f"{name}: it returns Integrands", _integrands, draw, x)
    if functions is None:
        return
    findings.verify_streams(lambda rng: draw(rng).evaluate(x))
    findings.verify(f"{name}: integrals, against {DRAWS} draws", _integrals, functions, target)
    if functions.norms is not None:
        rule = f"{name}: errors are at most norm times MMD"
        findings.verify(rule, _bounded, functions, embedding)


def _integrands(draw, x):
    made = draw(np.random.default_rng(0))
    require_attributes(made, ("evaluate", "integrals", "norms"))
    count = np.size(made.integrals)
    require_array(made.integrals, (count,), "integrals")
    require_array(made.evaluate(x), (len(x), count), "evaluate(x)")
    if made.norms is not None:
        require_array(made.norms, (count,), "norms")
        require((made.norms > 0).all(), f"a norm is {made.norms.min():g}")
    return made


def _integrals(functions, target):
    draws = sampled(target)
    require_integrals(functions.integrals, lambda x: functions.evaluate(x).T, draws, "by draws")


def _bounded(functions, embedding):
    points = embedding.target.sample(N, np.random.default_rng(1))
    matrix = bq(embedding, points).matrix
    points = points[: len(matrix)]
    mmd = np.sqrt(mmd2_of_prefixes(embedding, points, matrix))
    ratios = functions.errors(points, matrix) / functions.norms / mmd[:, None]
    worst = ratios.max()
    require(worst <= 1 + 1e-6, f"an error is {worst:.4g} times its bound")
    return f"at most {worst:.2g} of the bound"
