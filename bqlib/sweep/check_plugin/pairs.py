"""Checks of targets and kernels, and of the embeddings that join them."""

import inspect
import sys

import numpy as np

from bqlib import embeddings, kernels, targets
from bqlib.sweep import plugins
from bqlib.sweep.check_plugin.assertions import (
    ANY_ERROR,
    DRAWS,
    require,
    require_array,
    require_close,
    require_derivative,
    require_integrals,
    sampled,
)


def verify_target(findings, family, parameters):
    """Check a target, and its embeddings with all kernels that can be built without arguments."""
    target = findings.verify("it can be built from its parameters", lambda: family(**parameters))
    if target is None:
        return
    if findings.verify("dim is the dimension of its points", _dim, target) is None:
        return
    if _has(target, "sample"):
        points = findings.verify("sample(n, rng) has shape (n, d)", _draws, target, 7)
        if points is None:
            return
        findings.verify_streams(lambda rng: target.sample(7, rng))
        findings.verify("a longer sample starts with the draws of a shorter one", _longer, target)
    else:
        points = np.random.default_rng(0).standard_normal((7, target.dim))
    for name, of in (("score", "log_density"), ("hessian", "score")):
        if _has(target, name) and _has(target, of):
            derivative, function = getattr(target, name), getattr(target, of)
            rule = f"{name} is the derivative of {of}"
            findings.verify(rule, require_derivative, derivative, function, points, name)
    if _has(target, "density") and _has(target, "log_density"):
        findings.verify("density is the exponential of log_density", _density, target, points)
    pairs = 0
    for kernel in _kernels_for(target):
        pairs += _verify_embedding(findings, kernel, target)
    if not pairs:
        name = family.__name__
        findings.fail(
            "it has an embedding",
            f"no kernel has one with {name}: register one, make {name} a subclass of a target of "
            "bqlib, or give it a score for the Stein kernel",
        )


def _dim(target):
    dim = getattr(target, "dim", None)
    whole = isinstance(dim, int) and dim >= 1
    require(whole, f"dim is {dim!r}; it must be a whole number of at least 1")
    return f"dimension {dim}"


def _draws(target, n):
    points = target.sample(n, np.random.default_rng(0))
    require_array(points, (n, target.dim), "sample")
    return points


def _longer(target):
    long, short = (target.sample(n, np.random.default_rng(0)) for n in (9, 4))
    same = np.array_equal(long[:4], short)
    require(same, "4 draws are not the first 4 of 9 draws with the same stream")


def _density(target, points):
    density, log_density = target.density(points), target.log_density(points)
    require_array(density, (len(points),), "density")
    require_close(density, np.exp(log_density), 1e-10 * density.max(), "by log_density")


def _kernels_for(target):
    """Kernels of bqlib, and kernels registered for the target that need a length-scale at most."""
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
    return [kernel for kernel in found if kernel.dim in (None, target.dim)]


def verify_kernel(findings, family, parameters):
    """Check a kernel, and its embeddings with targets of bqlib and of its own module."""
    takes = inspect.signature(family).parameters
    if "lengthscale" in takes:
        parameters = {"lengthscale": 0.7} | parameters
    normal = targets.GaussianMixture([1.0], [np.zeros(2)], [np.eye(2)])
    if "target" in takes:
        parameters = parameters | {"target": normal}
    kernel = findings.verify("it can be built from its parameters", lambda: family(**parameters))
    if kernel is None:
        return
    dim = kernel.dim or 2
    rng = np.random.default_rng(0)
    x, y = rng.standard_normal((12, dim)), rng.standard_normal((9, dim))
    try:
        kernel(x, y)
    except ValueError:  # as kernels on the unit cube do
        x, y = (0.02 + 0.96 * rng.random(points.shape) for points in (x, y))
    if findings.verify("kernel(x, y) has shape (n, m)", _gram, kernel, x, y) is None:
        return
    both = np.concatenate([x, y])
    findings.verify("it is symmetric", _symmetric, kernel, x, y)
    findings.verify("diagonal(x) is the diagonal of kernel(x, x)", _diagonal, kernel, x)
    findings.verify("it is positive semi-definite", _semidefinite, kernel, both)
    findings.verify("gradient(x, y) is the derivative in x", _gradient, kernel, x, y)
    findings.verify(
        "the gradient of k(x, x) is twice gradient(x, x)", _gradient_of_diagonal, kernel, x
    )
    # Some closed forms need diagonal covariances.
    means = [np.zeros(dim), np.ones(dim)]
    diagonal = targets.GaussianMixture([0.3, 0.7], means, [np.eye(dim) * 0.6] * 2)
    for target in [normal] if "target" in takes else [*targets_for(dim, family), diagonal]:
        _verify_embedding(findings, kernel, target)


def _gram(kernel, x, y):
    copies = x.copy(), y.copy()
    require_array(kernel(x, y), (len(x), len(y)), "kernel(x, y)")
    require(np.array_equal(x, copies[0]) and np.array_equal(y, copies[1]), "it changes x or y")
    return True


def _symmetric(kernel, x, y):
    gram = kernel(x, y)
    require_close(gram, kernel(y, x).T, 1e-12 * np.abs(gram).max(), "with x and y exchanged")


def _diagonal(kernel, x):
    diagonal = kernel.diagonal(x)
    require_array(diagonal, (len(x),), "diagonal(x)")
    require_close(diagonal, np.diag(kernel(x, x)), 1e-12 * np.abs(diagonal).max(), "by the matrix")


def _semidefinite(kernel, x):
    eigenvalues = np.linalg.eigvalsh(kernel(x, x))
    least, largest = eigenvalues[[0, -1]]
    require(
        least >= -1e-10 * largest,
        f"the matrix of {len(x)} points has eigenvalues from {least:.3g} to {largest:.3g}",
    )


def _gradient(kernel, x, y):
    require_derivative(lambda x: kernel.gradient(x, y), lambda x: kernel(x, y), x, "gradient(x, y)")


def _gradient_of_diagonal(kernel, x):
    def twice(x):
        return 2 * np.einsum("iid->id", kernel.gradient(x, x))

    require_derivative(twice, kernel.diagonal, x, "the gradient")


def targets_for(dim, family=None):
    """Targets of bqlib, and targets in the module of `family` that need no arguments."""
    spread = np.eye(dim) * 0.6 + 0.1
    found = [
        targets.GaussianMixture([0.3, 0.7], [np.zeros(dim), np.ones(dim)], [spread] * 2),
        targets.Uniform(np.zeros(dim), np.ones(dim)),
        targets.Empirical(np.random.default_rng(0).random((8, dim))),
    ]
    module = sys.modules[family.__module__] if family else None
    for other in vars(module).values() if family else ():
        if inspect.isclass(other) and other.__module__ == module.__name__ and _has(other, "sample"):
            takes = plugins.parameters("target", other).values()
            if all(parameter.default is not parameter.empty for parameter in takes):
                found.append(other())
    return [target for target in found if target.dim == dim]


def _has(target, name):
    return callable(getattr(target, name, None))


def _verify_embedding(findings, kernel, target):
    """Check the embedding of a pair; return False if it has none."""
    name = f"embedding of {type(kernel).__name__} with {type(target).__name__}"
    try:
        embeddings.find(type(kernel), type(target))
    except TypeError:
        return False
    try:
        embedding = embeddings.embed(kernel, target)
    except ValueError as error:  # not every member of a family has one
        refusal = f"not tested, as this one is refused: {error}"
        findings.verify(name, lambda: refusal)
        return False
    except ANY_ERROR as error:
        findings.fail(name, plugins.reason_of(error))
        return True
    draws = sampled(target) if _has(target, "sample") else None
    x = np.random.default_rng(0).standard_normal((8, target.dim)) if draws is None else draws[:8]
    x = (x[1:] + x[:-1]) / 2  # off the points of a data set, where the mean may have kinks
    rule = f"{name}: gradient of the kernel mean"
    if findings.verify(rule, _gradient_of_mean, embedding, x) is None:
        return True
    if draws is not None:
        rule = f"{name}: kernel mean, against {DRAWS} draws"
        findings.verify(rule, _mean, embedding, x, draws)
        rule = f"{name}: prior variance, against {DRAWS} draws"
        findings.verify(rule, _prior_variance, embedding, draws)
    return True


def _gradient_of_mean(embedding, x):
    gradient, mean = embedding.kernel_mean_gradient, embedding.kernel_mean
    require_array(mean(x), (len(x),), "the kernel mean")
    require_derivative(gradient, mean, x, "the gradient")
    both = embedding.kernel_mean_with_gradient(x)
    for found, expected in zip(both, (mean(x), gradient(x)), strict=True):
        tolerance = 1e-9 * np.abs(expected).max()
        require_close(found, expected, tolerance, "where mean and gradient are not asked together")
    return True


def _mean(embedding, x, draws):
    kernel = embedding.kernel
    require_integrals(embedding.kernel_mean(x), lambda y: kernel(x, y), draws, "by draws")


def _prior_variance(embedding, draws):
    found, mean = embedding.prior_variance, embedding.kernel_mean
    require(isinstance(found, float), f"it is a {type(found).__name__}, not a float")
    how = "by the mean of the kernel mean"
    require_integrals(np.array([found]), lambda y: mean(y)[None], draws, how)
