"""What sweeps rely on of a target, kernel, design, weight rule or integrand, as checks.

:func:`check` runs those of one kind; ``bqlib check-plugin`` prints what they find.
"""

import inspect
import pickle
import random
import sys
from dataclasses import dataclass
from functools import partial

import numpy as np

from bqlib import embeddings, kernels, targets
from bqlib.candidates import Candidates
from bqlib.discrepancy import mmd2_of_prefixes
from bqlib.sweep import plugins
from bqlib.weights import bq

DRAWS, BLOCK = 100_000, 5_000  # of the samples that integrals are compared with
STANDARD_ERRORS = 5
STEP = 1e-4  # of differences of fourth order, in the units of x
SLOPE_TOLERANCE = 1e-6  # of the largest value or slope
N = 20  # points of designs and weight rules


@dataclass(frozen=True)
class Finding:
    """What one check found.

    Attributes
    ----------
    passed : bool
    text : str
        What was checked, and what is wrong or worth to know.
    """

    passed: bool
    text: str


class _Wrong(Exception):
    """What a check has to say."""


# What the code under test may raise; of Ctrl-C it is not the code that is wrong.
_ANYTHING = (Exception, SystemExit)


def check_plugin(kind, function, parameters):
    """Check a target, kernel, design, weight rule or integrand.

    Parameters
    ----------
    kind : {"target", "kernel", "design", "weights", "integrand"}
    function : class or function
    parameters : dict
        Its keyword arguments, beside those that trials give.

    Returns
    -------
    list of Finding
    """
    findings = []

    def expect(text, test, *arguments):
        """What `test` returns, or None where it fails."""
        try:
            found = test(*arguments)
        except _Wrong as wrong:
            findings.append(Finding(False, f"{text}: {wrong}"))
        except _ANYTHING as error:
            findings.append(Finding(False, f"{text}: {plugins.told(error)}"))
        else:
            note = f" ({found})" if isinstance(found, str) and found else ""
            findings.append(Finding(True, text + note))
            return found
        return None

    try:
        _CHECKS[kind](expect, function, parameters)
    except _ANYTHING as error:
        findings.append(Finding(False, f"it can be checked to the end: {plugins.told(error)}"))
    return findings


def _require(condition, wrong):
    if not condition:
        raise _Wrong(wrong)


def _require_array(array, shape, name):
    _require(isinstance(array, np.ndarray), f"{name} is a {type(array).__name__}, not an array")
    _require(array.shape == shape, f"{name} has shape {array.shape}, not {shape}")
    _require(array.dtype == np.float64, f"{name} holds {array.dtype}, not float64")
    _require(np.isfinite(array).all(), f"{name} holds NaN or infinity")


def _require_close(found, expected, tolerance, what):
    """Two arrays, equal to within `tolerance` everywhere; say where they are not the most."""
    excess = np.abs(found - expected) - tolerance
    if (excess > 0).any() or not np.isfinite(excess).all():
        where = np.unravel_index(np.argmax(np.nan_to_num(excess, nan=np.inf)), excess.shape)
        allowed = np.broadcast_to(tolerance, excess.shape)[where]
        raise _Wrong(
            f"{np.asarray(found)[where]:.10g} and not {np.asarray(expected)[where]:.10g} {what} "
            f"(differs by more than {allowed:.2g})"
        )


def _difference(function, x):
    """Derivatives of function (m, d) to (m, ...) in each coordinate of x, on the last axis."""
    slopes = []
    for own in np.eye(x.shape[1]) * STEP:
        near = function(x + own) - function(x - own)
        far = function(x + 2 * own) - function(x - 2 * own)
        slopes.append((8 * near - far) / (12 * STEP))
    return np.stack(slopes, axis=-1)


def _check_derivative(derivative, function, x, name):
    values, slopes = function(x), derivative(x)
    _require_array(slopes, (*np.shape(values), x.shape[1]), name)
    largest = max(np.abs(slopes).max(), np.abs(values).max())
    _require_close(slopes, _difference(function, x), SLOPE_TOLERANCE * largest, "by differences")


def _check_streams(expect, draw):
    """Checks of draw(rng): arrays that depend on the stream alone."""

    def same():
        states = _global_states()
        first, second = draw(np.random.default_rng(1)), draw(np.random.default_rng(1))
        _require(
            _global_states() == states,
            "it draws from a global random state; draw from the rng that is given",
        )
        _require(np.array_equal(first, second), "two calls with equal streams differ")

    def other():
        first, second = draw(np.random.default_rng(1)), draw(np.random.default_rng(2))
        _require(not np.array_equal(first, second), "two streams give the same")

    expect("the same stream gives the same, and global states stay", same)
    expect("another stream gives another result", other)


def _global_states():
    return pickle.dumps((random.getstate(), np.random.get_state()))  # noqa: NPY002


# --- Targets and embeddings


def _check_target(expect, family, parameters):
    target = expect("it is made from its parameters", lambda: family(**parameters))
    if target is None:
        return

    def has_dim():
        dim = getattr(target, "dim", None)
        _require(isinstance(dim, int) and dim >= 1, f"dim is {dim!r}; it must be a whole number")
        return f"dimension {dim}"

    if expect("dim is the dimension of its points", has_dim) is None:
        return
    dim = target.dim
    if _has(target, "sample"):
        points = expect("sample(n, rng) has shape (n, d)", _drawn, target, 7)
        if points is None:
            return
        _check_streams(expect, lambda rng: target.sample(7, rng))
        expect("the first draws are those of a shorter sample", _shorter, target)
    else:
        points = np.random.default_rng(0).standard_normal((7, dim))
    for name, of in (("score", "log_density"), ("hessian", "score")):
        if _has(target, name) and _has(target, of):
            expect(
                f"{name} is the derivative of {of}",
                _check_derivative, getattr(target, name), getattr(target, of), points, name,
            )  # fmt: skip
    if _has(target, "density") and _has(target, "log_density"):
        expect("density is the exponential of log_density", _density, target, points)
    pairs = 0
    for kernel in _kernels_for(target, dim):
        pairs += _check_embedding(expect, kernel, target)
    if not pairs:
        expect(
            "it has an embedding",
            _require,
            False,
            f"no kernel has one with {family.__name__}: register one, derive it from a target of "
            "bqlib, or give it a score for the Stein kernel",
        )


def _has(target, name):
    return callable(getattr(target, name, None))


def _drawn(target, n):
    points = target.sample(n, np.random.default_rng(0))
    _require_array(points, (n, target.dim), "sample")
    return points


def _shorter(target):
    long, short = (target.sample(n, np.random.default_rng(0)) for n in (9, 4))
    _require(np.array_equal(long[:4], short), "4 draws are not the first 4 of 9 by an equal stream")


def _density(target, points):
    density, log_density = target.density(points), target.log_density(points)
    _require_array(density, (len(points),), "density")
    _require_close(density, np.exp(log_density), 1e-10 * density.max(), "by log_density")


def _kernels_for(target, dim):
    """Kernels of bqlib, and those registered for the target's class, as far as they can be made."""
    found = [kernels.ExponentiatedQuadratic(0.7), kernels.Matern(0.7, nu=1.5)]
    found += [kernels.RationalQuadratic(0.7)]
    if _has(target, "score"):
        found.append(kernels.Stein(target, 0.7, constant=1.0))
    for kernel_type, target_type in embeddings.pairs():
        if isinstance(target, target_type) and not kernel_type.__module__.startswith("bqlib."):
            takes = inspect.signature(kernel_type).parameters
            needed = [p.name for p in takes.values() if p.default is p.empty]
            if needed in ([], ["lengthscale"]) and kernel_type is not object:
                found.append(kernel_type(**dict.fromkeys(needed, 0.7)))
    return [kernel for kernel in found if kernel.dim in (None, dim)]


def _targets_for(dim, family=None):
    """Targets of bqlib, and those in the module of `family` that need no arguments."""
    spread = np.eye(dim) * 0.6 + 0.1
    mixture = targets.GaussianMixture([0.3, 0.7], [np.zeros(dim), np.ones(dim)], [spread] * 2)
    box = targets.Uniform(np.zeros(dim), np.ones(dim))
    data = targets.Empirical(np.random.default_rng(0).random((8, dim)))
    found = [mixture, box, data]
    module = sys.modules[family.__module__] if family else None
    for other in vars(module).values() if family else ():
        if inspect.isclass(other) and other.__module__ == module.__name__ and _has(other, "sample"):
            needed = [
                p for p in plugins.parameters("target", other).values() if p.default is p.empty
            ]
            if not needed:
                found.append(other())
    return [target for target in found if target.dim == dim]


def _check_embedding(expect, kernel, target):
    """Check a pair; False where it has no embedding."""
    name = f"embedding of {type(kernel).__name__} with {type(target).__name__}"
    try:
        embeddings.find(type(kernel), type(target))
    except TypeError:
        return False
    try:
        embedding = embeddings.embed(kernel, target)
    except ValueError as error:  # not every member of a family has one
        refusal = f"refused: {error}"
        expect(name, lambda: refusal)
        return False
    except _ANYTHING:
        expect(name, embeddings.embed, kernel, target)
        return True
    draws = _sampled(target) if _has(target, "sample") else None
    x = np.random.default_rng(0).standard_normal((8, target.dim)) if draws is None else draws[:8]
    x = (x[1:] + x[:-1]) / 2  # off the points of a data set, where the mean may have kinks
    if expect(f"{name}: gradient of the kernel mean", _gradient_of_mean, embedding, x) is None:
        return True
    if draws is not None:
        expect(f"{name}: kernel mean, against {DRAWS} draws", _mean, embedding, x, draws)
        expect(f"{name}: prior variance, against {DRAWS} draws", _prior_variance, embedding, draws)
    return True


def _sampled(target):
    return target.sample(DRAWS, np.random.default_rng(0))


def _gradient_of_mean(embedding, x):
    gradient, mean = embedding.kernel_mean_gradient, embedding.kernel_mean
    _require_array(mean(x), (len(x),), "the kernel mean")
    _check_derivative(gradient, mean, x, "the gradient")
    return True


def _mean(embedding, x, draws):
    rows = (embedding.kernel(x, block) for block in np.split(draws, DRAWS // BLOCK))
    found, expected, error = embedding.kernel_mean(x), *_averages(rows)
    _require_close(found, expected, STANDARD_ERRORS * error + 1e-9 * np.abs(expected), "by draws")


def _prior_variance(embedding, draws):
    found = embedding.prior_variance
    _require(isinstance(found, float), f"it is a {type(found).__name__}, not a float")
    rows = (embedding.kernel_mean(block)[None] for block in np.split(draws, DRAWS // BLOCK))
    expected, error = _averages(rows)
    tolerance = STANDARD_ERRORS * error + 1e-9 * np.abs(expected)
    _require_close(np.array([found]), expected, tolerance, "by the mean of the kernel mean")


def _averages(blocks):
    """Mean of each row over blocks (m, b) of its values, and its standard error."""
    total = squares = count = 0
    for block in blocks:
        total, squares = total + block.sum(axis=1), squares + np.square(block).sum(axis=1)
        count += block.shape[1]
    mean = total / count
    return mean, np.sqrt(np.maximum(squares / count - mean**2, 0) / count)


# --- Kernels


def _check_kernel(expect, family, parameters):
    takes = inspect.signature(family).parameters
    if "lengthscale" in takes:
        parameters = {"lengthscale": 0.7} | parameters
    normal = targets.GaussianMixture([1.0], [np.zeros(2)], [np.eye(2)])
    if "target" in takes:
        parameters = parameters | {"target": normal}
    kernel = expect("it is made from its parameters", lambda: family(**parameters))
    if kernel is None:
        return
    dim = kernel.dim or 2
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((12, dim)), rng.standard_normal((9, dim))
    try:
        kernel(x, y)
    except ValueError:  # as those on the unit cube do
        x, y = (0.02 + 0.96 * rng.random(points.shape) for points in (x, y))
    if expect("kernel(x, y) has shape (n, m)", _gram, kernel, x, y) is None:
        return
    expect("it is symmetric", _symmetric, kernel, x, y)
    expect("diagonal(x) is that of kernel(x, x)", _diagonal, kernel, x)
    expect("it is positive semi-definite", _semidefinite, kernel, np.concatenate([x, y]))
    expect("gradient(x, y) is the derivative in x", _gradient, kernel, x, y)
    expect("the gradient of k(x, x) is twice gradient(x, x)", _own_gradient, kernel, x)
    for target in [normal] if "target" in takes else _targets_for(dim, family):
        _check_embedding(expect, kernel, target)


def _gram(kernel, x, y):
    copies = x.copy(), y.copy()
    _require_array(kernel(x, y), (len(x), len(y)), "kernel(x, y)")
    _require(np.array_equal(x, copies[0]) and np.array_equal(y, copies[1]), "it changes its points")
    return True


def _symmetric(kernel, x, y):
    gram = kernel(x, y)
    _require_close(gram, kernel(y, x).T, 1e-12 * np.abs(gram).max(), "with x and y exchanged")


def _diagonal(kernel, x):
    diagonal = kernel.diagonal(x)
    _require_array(diagonal, (len(x),), "diagonal(x)")
    _require_close(diagonal, np.diag(kernel(x, x)), 1e-12 * np.abs(diagonal).max(), "by the matrix")


def _semidefinite(kernel, x):
    eigenvalues = np.linalg.eigvalsh(kernel(x, x))
    least, largest = eigenvalues[[0, -1]]
    _require(
        least >= -1e-10 * largest,
        f"the matrix of {len(x)} points has the eigenvalues {least:.3g} and {largest:.3g}",
    )


def _gradient(kernel, x, y):
    _check_derivative(lambda x: kernel.gradient(x, y), lambda x: kernel(x, y), x, "gradient(x, y)")


def _own_gradient(kernel, x):
    def twice(x):
        return 2 * np.einsum("iid->id", kernel.gradient(x, x))

    _check_derivative(twice, kernel.diagonal, x, "the gradient")


# --- Designs


def _problem():
    kernel = kernels.ExponentiatedQuadratic(0.7)
    return _targets_for(2)[0], kernel, Candidates(200)


def _check_design(expect, function, parameters):
    target, kernel, candidates = _problem()

    def run(n, rng, pool=candidates):
        return function(target, kernel, n, rng=rng, candidates=pool, **parameters)

    made = expect(f"it returns a Design of {N} points", _design, run, target)
    if made is None:
        return
    _check_streams(expect, lambda rng: run(N, rng).points)
    expect("the first points are the design of a smaller size", _prefix, run)
    expect("a design of one point", lambda: _require(len(run(1, 0).points) == 1, "has not one"))
    expect("it picks from the pool, and leaves it unchanged", _from_pool, run, target)
    expect("its weights have a finite MMD", _weighable, made)


def _design(run, target):
    made = run(N, np.random.default_rng(0))
    missing = [name for name in ("embedding", "points", "rule", "stop") if not hasattr(made, name)]
    _require(not missing, f"it returns a {type(made).__name__} without {', '.join(missing)}")
    _require(made.embedding.target is target, "its embedding is that of another target")
    reached = len(made.points)
    _require_array(made.points, (min(reached, N), target.dim), "points")
    _require(
        (reached < N) == bool(made.stop),
        f"it has {reached} of {N} points, and its stop says {made.stop!r}",
    )
    return made


def _prefix(run):
    long, short = (run(n, np.random.default_rng(0)).points for n in (N, N // 2))
    m = min(len(short), len(long))
    differ = np.flatnonzero((long[:m] != short[:m]).any(axis=1))
    if len(differ):
        raise _Wrong(
            f"point {differ[0] + 1} of {N} is not that of a design of {N // 2}; the curves of a "
            "sweep are those of the first n points of its largest design"
        )


def _from_pool(run, target):
    pool = target.sample(200, np.random.default_rng(3))
    copy = pool.copy()
    points = run(N, np.random.default_rng(0), pool).points
    _require(np.array_equal(pool, copy), "it changes the pool")
    inside = int((points[:, None, :] == pool).all(axis=2).any(axis=1).sum())
    return "" if inside == len(points) else f"{len(points) - inside} points are from elsewhere"


def _weighable(made):
    matrix = made.rule(made.embedding, made.points).matrix
    mmd2 = mmd2_of_prefixes(made.embedding, made.points[: len(matrix)], matrix)
    _require(np.isfinite(mmd2).all(), f"it is NaN from n = {np.isnan(mmd2).argmax() + 1} on")
    return f"{np.sqrt(mmd2[-1]):.3g} for {len(matrix)} points"


# --- Weight rules


def _check_weights(expect, function, parameters):
    rule = partial(function, **parameters)
    target, kernel, _ = _problem()
    embedding = embeddings.embed(kernel, target)
    points = target.sample(N, np.random.default_rng(0))
    points[9] = points[4]  # a repeat
    weights = expect("it returns PrefixWeights", _prefix_weights, rule, embedding, points)
    if weights is None:
        return
    expect("row n has no weights after n", _triangular, weights.matrix)
    expect("row n does not depend on what comes after", _leading, rule, embedding, points)
    expect("equal points get equal weights, and global states stay",
           _repeated, rule, embedding, points)  # fmt: skip
    expect("sums of its rows", _sums, weights.matrix)
    expect("MMD of its weights", _worth, embedding, points, weights.matrix)


def _prefix_weights(rule, embedding, points):
    weights = rule(embedding, points)
    missing = [name for name in ("matrix", "stop") if not hasattr(weights, name)]
    _require(not missing, f"it returns a {type(weights).__name__} without {', '.join(missing)}")
    rank = len(weights.matrix)
    _require_array(weights.matrix, (min(rank, len(points)),) * 2, "matrix")
    _require(
        (rank < len(points)) == bool(weights.stop),
        f"it has {rank} rows for {len(points)} points, and its stop says {weights.stop!r}",
    )
    return weights


def _triangular(matrix):
    rows, columns = np.nonzero(np.triu(matrix, 1))
    if len(rows):
        raise _Wrong(f"row {rows[0] + 1} has a weight for point {columns[0] + 1}")


def _leading(rule, embedding, points):
    half = len(points) // 2
    long, short = rule(embedding, points).matrix, rule(embedding, points[:half]).matrix
    m = min(half, len(short), len(long))
    tolerance = 1e-8 * np.abs(short).max(initial=0.0)
    _require_close(long[:m, :m], short[:m, :m], tolerance, f"with the first {half} points alone")


def _repeated(rule, embedding, points):
    states = _global_states()
    first, second = (rule(embedding, points).matrix for _ in range(2))
    _require(np.array_equal(first, second), "two calls differ")
    _require(_global_states() == states, "it draws from a global random state")


def _sums(matrix):
    sums = matrix.sum(axis=1)
    return f"from {sums.min():.4g} to {sums.max():.4g}"


def _worth(embedding, points, matrix):
    best = bq(embedding, points).matrix
    m = min(len(matrix), len(best))
    ours, least = (mmd2_of_prefixes(embedding, points[:m], rows[:m, :m]) for rows in (matrix, best))
    return f"{np.sqrt(ours[-1]):.3g} for {m} points, {np.sqrt(least[-1]):.3g} at best"


# --- Integrands


def _check_integrand(expect, function, parameters):
    if "functions" in plugins.parameters("integrand", function):
        parameters = {"functions": 20} | parameters
    kernel = kernels.ExponentiatedQuadratic(0.7)
    tried, under = [], _targets_for(2, function)
    for target in under:
        try:
            embedding = embeddings.embed(kernel, target)
            function(embedding, np.random.default_rng(0), **parameters)
        except TypeError as error:
            tried.append(plugins.told(error))
            continue
        except _ANYTHING:
            pass  # said by the first check
        _check_integrand_under(expect, partial(function, embedding, **parameters), embedding)
    if len(tried) == len(under):
        expect("it goes with a target", _require, False, "; ".join(dict.fromkeys(tried)))


def _check_integrand_under(expect, draw, embedding):
    target = embedding.target
    name = f"under {type(target).__name__}"
    x = target.sample(7, np.random.default_rng(1))
    functions = expect(f"{name}: it returns Integrands", _integrands, draw, x)
    if functions is None:
        return
    _check_streams(expect, lambda rng: draw(rng).evaluate(x))
    expect(f"{name}: integrals, against {DRAWS} draws", _integrals, functions, target)
    if functions.norms is not None:
        expect(f"{name}: errors are at most norm times MMD", _bounded, functions, embedding)


def _integrands(draw, x):
    made = draw(np.random.default_rng(0))
    missing = [name for name in ("evaluate", "integrals", "norms") if not hasattr(made, name)]
    _require(not missing, f"it returns a {type(made).__name__} without {', '.join(missing)}")
    count = np.size(made.integrals)
    _require_array(made.integrals, (count,), "integrals")
    _require_array(made.evaluate(x), (len(x), count), "evaluate(x)")
    if made.norms is not None:
        _require_array(made.norms, (count,), "norms")
        _require((made.norms > 0).all(), f"a norm is {made.norms.min():g}")
    return made


def _integrals(functions, target):
    draws = _sampled(target)
    rows = (functions.evaluate(block).T for block in np.split(draws, DRAWS // BLOCK))
    expected, error = _averages(rows)
    tolerance = STANDARD_ERRORS * error + 1e-9 * np.abs(expected)
    _require_close(functions.integrals, expected, tolerance, "by draws")


def _bounded(functions, embedding):
    points = embedding.target.sample(N, np.random.default_rng(1))
    matrix = bq(embedding, points).matrix
    points = points[: len(matrix)]
    mmd = np.sqrt(mmd2_of_prefixes(embedding, points, matrix))
    ratios = functions.errors(points, matrix) / functions.norms / mmd[:, None]
    worst = ratios.max()
    _require(worst <= 1 + 1e-6, f"an error is {worst:.4g} times its bound")
    return f"at most {worst:.2g} of it"


_CHECKS = {
    "target": _check_target,
    "kernel": _check_kernel,
    "design": _check_design,
    "weights": _check_weights,
    "integrand": _check_integrand,
}
