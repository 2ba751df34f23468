"""Convergence of herding, Bayesian quadrature and their relatives.

Modules, and those of the names below, are loaded when they are first used, so that importing bqlib
is cheap.
"""

from importlib import import_module
from importlib.util import find_spec

_PUBLIC = {
    "Brownian": "bqlib.kernels",
    "BrownianBridge": "bqlib.kernels",
    "Candidates": "bqlib.candidates",
    "Design": "bqlib.designs.design",
    "Embedding": "bqlib.embeddings",
    "Empirical": "bqlib.targets",
    "ExponentiatedQuadratic": "bqlib.kernels",
    "GaussianMixture": "bqlib.targets",
    "IntegratedBrownian": "bqlib.kernels",
    "Korobov": "bqlib.kernels",
    "L2Star": "bqlib.kernels",
    "Matern": "bqlib.kernels",
    "OnCoordinates": "bqlib.kernels",
    "Product": "bqlib.targets",
    "RationalQuadratic": "bqlib.kernels",
    "Stein": "bqlib.kernels",
    "Uniform": "bqlib.targets",
    "Unnormalised": "bqlib.targets",
    "block_sbq": "bqlib.designs.block_sbq",
    "embed": "bqlib.embeddings",
    "export": "bqlib.results.exports",
    "fit_kernel": "bqlib.likelihood",
    "fp_greedy": "bqlib.designs.fp_greedy",
    "frank_wolfe": "bqlib.designs.frank_wolfe",
    "herding": "bqlib.designs.herding",
    "iid": "bqlib.designs.iid",
    "joint": "bqlib.designs.joint",
    "kernel_thinning": "bqlib.designs.kernel_thinning",
    "mmd": "bqlib.discrepancy",
    "omp": "bqlib.designs.omp",
    "open_results": "bqlib.access.opening",
    "p_greedy": "bqlib.designs.p_greedy",
    "rpcholesky": "bqlib.designs.rpcholesky",
    "sbq": "bqlib.designs.sbq",
    "sobol": "bqlib.designs.sobol",
}

__all__ = sorted(_PUBLIC)


def __getattr__(name):
    if name == "__version__":
        from importlib.metadata import version  # 20 ms, more than all else here

        return version("bqlib")
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    if not name.startswith("_") and find_spec(f"bqlib.{name}"):
        return import_module(f"bqlib.{name}")
    raise AttributeError(f"module 'bqlib' has no attribute {name!r}")


def __dir__():
    return sorted([*globals(), *_PUBLIC])
