"""Effects of the length-scale: on points, on weights, and if it is fitted to values of f."""

from dataclasses import replace

import numpy as np

from bqlib.designs.sbq import sbq
from bqlib.discrepancy import mmd
from bqlib.embeddings import embed
from bqlib.likelihood import STATIONARY, fit_kernel
from bqlib.posterior import integral, joint_draws
from bqlib.schema import Variable
from bqlib.streams import stream
from bqlib.studies.plans import one_pool
from bqlib.studies.study import Study
from bqlib.weights import bq

FACTORS = (0.5, 0.5**0.5, 1.0, 2.0**0.5, 2.0)  # on the kernel's own length-scale
TRUTHS = (0.5, 1.0, 2.0)
POINTS = 100  # of each design of the matrix
FITTED = 50  # values of f that a kernel is fitted to
FUNCTIONS = 100
LEVEL = 0.95
RECIPES = ("assumed", "fitted", "true")


def kernel_choice(target, kernel, candidates, n, seed):
    """Wrong length-scales, and the recipe of fitting them by marginal likelihood.

    First, 100 points of SBQ are selected at one length-scale, get BQ weights at another, and their
    MMD is measured at a third. Then functions and their integrals are drawn from the Gaussian
    process of a true length-scale. They are evaluated at 50 points of SBQ that are selected at the
    kernel's own length-scale. The integrals are estimated with that length-scale ("assumed"), with
    one fitted to the 50 values ("fitted") and with the true one ("true"); the output scale is
    always fitted.

    Returns
    -------
    dict of ndarray
        ``mmd`` (select, weigh, evaluate); ``error``, ``coverage`` and ``width`` (truth, recipe);
        ``fitted_factor`` (truth,).

    Raises
    ------
    TypeError
        If the kernel has no length-scale to change.
    """
    requires_lengthscale(target, kernel)

    def at(factor):
        return embed(
            replace(kernel, lengthscale=factor * np.asarray(kernel.lengthscale)[()]), target
        )

    pool = one_pool(candidates, target, stream("candidates", seed))
    rng = stream("study/kernel_choice", seed)
    embeddings = [at(factor) for factor in FACTORS]
    found = np.empty((len(FACTORS),) * 3)
    for i, own in enumerate(embeddings):
        points = sbq(target, own.kernel, min(n, POINTS), rng=rng, candidates=pool).points
        for j, weighing in enumerate(embeddings):
            weights = bq(weighing, points).final(len(points))
            found[i, j] = [mmd(embedding, points, weights) for embedding in embeddings]
    points = sbq(target, kernel, min(n, FITTED), rng=rng, candidates=pool).points
    outcomes = [_recipes(at, truth, points, rng) for truth in TRUTHS]
    error, coverage, width, fitted = (np.array(column) for column in zip(*outcomes, strict=True))
    factors = np.array(FACTORS)
    return {
        "select": factors,
        "weigh": factors,
        "evaluate": factors,
        "mmd": found,
        "truth": np.array(TRUTHS),
        "recipe": np.array(RECIPES),
        "error": error,
        "coverage": coverage,
        "width": width,
        "fitted_factor": fitted,
    }


def requires_lengthscale(target, kernel):
    """Raise a TypeError if the kernel has no length-scale to change."""
    if not isinstance(kernel, STATIONARY) or kernel.lengthscale is None:
        raise TypeError(f"this {type(kernel).__name__} has no length-scale to change")


def _recipes(at, truth, points, rng):
    """Error, coverage and interval width (recipe,) over functions; median fitted factor."""
    kernels = {"assumed": at(1.0), "true": at(truth)}
    start = kernels["assumed"].kernel
    values, integrals = joint_draws(kernels["true"], points, FUNCTIONS, rng)
    errors = np.empty((FUNCTIONS, len(RECIPES)))
    inside, widths, factors = np.empty_like(errors), np.empty_like(errors), np.empty(FUNCTIONS)
    for f, (own, exact) in enumerate(zip(values, integrals, strict=True)):
        fitted = fit_kernel(start, points, own).kernel
        factors[f] = np.mean(np.asarray(fitted.lengthscale) / np.asarray(start.lengthscale))
        embeddings = kernels | {"fitted": embed(fitted, at(1.0).target)}
        for r, recipe in enumerate(RECIPES):
            embedding = embeddings[recipe]
            weights = bq(embedding, points).final(len(points))
            estimate = integral(embedding, points, weights, own)
            low, high = estimate.interval(LEVEL)
            errors[f, r] = abs(estimate.mean - exact)
            inside[f, r], widths[f, r] = low <= exact <= high, high - low
    return errors.mean(axis=0), inside.mean(axis=0), widths.mean(axis=0), np.median(factors)


_AT = "factor on the length-scale at which the "
STUDY = Study(
    function=kernel_choice,
    seeds=5,
    variables={
        "mmd": Variable(("select", "weigh", "evaluate"), "MMD to the target of 100 points of SBQ"),
        "error": Variable(("truth", "recipe"), "absolute error, mean over functions"),
        "coverage": Variable(("truth", "recipe"), "share of integrals in their 95 % intervals"),
        "width": Variable(("truth", "recipe"), "width of the 95 % intervals, mean over functions"),
        "fitted_factor": Variable(("truth",), "fitted over assumed length-scale, median"),
    },
    coordinates={
        "select": (f"{_AT}points are selected", "1"),
        "weigh": (f"{_AT}points are weighed", "1"),
        "evaluate": (f"{_AT}MMD is taken", "1"),
        "truth": ("true over assumed length-scale", "1"),
        "recipe": ("where the length-scale comes from", ""),
    },
    precondition=requires_lengthscale,
)
