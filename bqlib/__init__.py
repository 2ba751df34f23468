"""Convergence of herding, Bayesian quadrature and their relatives.

Modules, and those of the names below, are loaded when they are first used, so that importing bqlib
is cheap. ``from bqlib import *`` and ``dir(bqlib)`` leave out the functions of results where their
libraries, such as xarray and pandas, are not installed.
"""

from importlib import import_module
from importlib.util import find_spec

_PUBLIC = {
    "Banana": "bqlib.densities",
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
    "LogisticPosterior": "bqlib.densities",
    "Marginals": "bqlib.marginals",
    "Matern": "bqlib.kernels",
    "OnCoordinates": "bqlib.kernels",
    "Product": "bqlib.targets",
    "RationalQuadratic": "bqlib.kernels",
    "Stein": "bqlib.kernels",
    "Uniform": "bqlib.targets",
    "Unnormalised": "bqlib.targets",
    "best_known": "bqlib.known_best",
    "block_sbq": "bqlib.designs.block_sbq",
    "compress": "bqlib.designs.compress",
    "embed": "bqlib.embeddings",
    "fit_kernel": "bqlib.likelihood",
    "fp_greedy": "bqlib.designs.fp_greedy",
    "frank_wolfe": "bqlib.designs.frank_wolfe",
    "grid": "bqlib.designs.grid",
    "halton": "bqlib.designs.halton",
    "herding": "bqlib.designs.herding",
    "iid": "bqlib.designs.iid",
    "integrate": "bqlib.estimate",
    "joint": "bqlib.designs.joint",
    "kernel_thinning": "bqlib.designs.kernel_thinning",
    "latin_hypercube": "bqlib.designs.latin_hypercube",
    "lattice": "bqlib.designs.lattice",
    "median_lengthscale": "bqlib.thinning",
    "mmd": "bqlib.discrepancy",
    "msip": "bqlib.designs.msip",
    "omp": "bqlib.designs.omp",
    "p_greedy": "bqlib.designs.p_greedy",
    "recombination": "bqlib.designs.recombination",
    "rpcholesky": "bqlib.designs.rpcholesky",
    "sbq": "bqlib.designs.sbq",
    "sobol": "bqlib.designs.sobol",
    "sobol_points": "bqlib.designs.sobol",
    "stein_thinning": "bqlib.designs.stein_thinning",
    "thin": "bqlib.thinning",
}
_OF_RESULTS = {  # need more than numpy and scipy
    "curves": "bqlib.access.curves",
    "export": "bqlib.results.exports",
    "open_results": "bqlib.access.opening",
    "plot_against_n": "bqlib.figures.estimates",
    "plot_left_out": "bqlib.figures.estimates",
}


def _all() -> list[str]:
    """The public names that can be loaded here; libraries that are found may still not load."""
    loaded = []
    for name, module in _OF_RESULTS.items():
        try:
            import_module(module)
        except ImportError:
            continue
        loaded.append(name)
    return sorted([*_PUBLIC, *loaded])


def __getattr__(name: str):  # type: ignore[no-untyped-def]  # loading typing takes 3 ms
    if name == "__version__":
        # 20 ms, more than all else here
        from importlib.metadata import PackageNotFoundError, version

        try:
            return version("bqlib")
        except PackageNotFoundError:  # help() and hasattr() expect an AttributeError
            raise AttributeError("bqlib has no version: it is not installed") from None
    if name == "__all__":
        return _all()
    if name in _PUBLIC:
        return getattr(import_module(_PUBLIC[name]), name)
    if name in _OF_RESULTS:
        try:
            return getattr(import_module(_OF_RESULTS[name]), name)
        except ModuleNotFoundError as error:
            if str(error.name).startswith("bqlib"):
                raise
            raise ModuleNotFoundError(
                f"bqlib.{name} needs {error.name}, which is not installed: "
                "pip install 'bqlib[workflow]'",
                name=error.name,
            ) from error
    if not name.startswith("_") and find_spec(f"bqlib.{name}"):
        return import_module(f"bqlib.{name}")
    raise AttributeError(f"module 'bqlib' has no attribute {name!r}")


def __dir__() -> list[str]:
    return sorted({*globals(), *_all()})
