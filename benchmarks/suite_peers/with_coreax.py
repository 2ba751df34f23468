"""Kernel herding of coreax, as submissions: with equal weights, and with its weights.

It summarises 2,000 draws of the pool as a data set, and uses no kernel mean. Of the kernels of the
suite it has the exponentiated and the rational quadratic, and products of Matern kernels in one
dimension alone, where they are no products.
Run: python benchmarks/suite_peers/with_coreax.py FOLDER
"""

from functools import cache

from entering import Rule, enter

DRAWS = 2000


def kernel_of(problem):
    from coreax import kernels

    kernel, scale = problem.kernel, problem.kernel.get("shape")
    if kernel["family"] == "exponentiated_quadratic":
        return kernels.SquaredExponentialKernel(length_scale=scale)
    if kernel["family"] == "rational_quadratic":
        return kernels.RationalQuadraticKernel(
            length_scale=scale, relative_weighting=kernel["alpha"]
        )
    if kernel["family"] == "matern" and problem.dim == 1:
        return kernels.MaternKernel(length_scale=scale, degree=round(kernel["nu"] - 0.5))
    return None


@cache
def reducer():
    import equinox
    import jax

    jax.config.update("jax_enable_x64", True)
    return equinox.filter_jit(lambda solver, data: solver.reduce(data))


KEPT = {}  # the last problem and seed: the first points of its longest sequence are asked again


def picks_of(problem):
    import numpy as np

    if KEPT.get("of") != (problem.name, problem.seed):
        reduce = reducer()
        from coreax import Data
        from coreax.solvers import KernelHerding

        solver = KernelHerding(coreset_size=problem.n, kernel=kernel_of(problem))
        coreset, _ = reduce(solver, Data(problem.pool[:DRAWS]))
        KEPT.update(of=(problem.name, problem.seed), picks=np.asarray(coreset.unweighted_indices))
    return KEPT["picks"]


def herding(problem, n):
    if not problem.drawn or kernel_of(problem) is None:
        return None
    return problem.pool[picks_of(problem)[:n]]


def weighted(problem, n):
    points = herding(problem, n)
    if points is None:
        return None
    from coreax import Data
    from coreax.weights import SBQWeightsOptimiser

    optimiser = SBQWeightsOptimiser(kernel_of(problem))
    return points, optimiser.solve(Data(problem.pool[:DRAWS]), Data(points))


RULES = [
    Rule("coreax_herding", herding, "sequence", "uniform", ["pool"]),
    Rule("coreax_herding_sbq_weights", weighted, "sequence", "own", ["pool"]),
]

if __name__ == "__main__":
    enter(
        "coreax",
        "coreax",
        RULES,
        "The coreax developers, Coreax, https://github.com/gchq/coreax",
        "CC0-1.0",
        "https://github.com/gchq/coreax",
    )
