"""The names that a sweep can use, and the place of the code of each.

A place is ``"module:attribute"`` and is imported when it is needed. A sweep can also use places
that are not listed here, those of plug-ins: see :mod:`bqlib.sweep.plugins`.
"""

from importlib import import_module

from bqlib.sweep import plugins

PLACES = {
    "target": {
        "empirical": "bqlib.targets:Empirical",
        "gaussian_mixture": "bqlib.targets:GaussianMixture",
        "uniform": "bqlib.targets:Uniform",
    },
    "kernel": {
        "brownian": "bqlib.kernels:Brownian",
        "brownian_bridge": "bqlib.kernels:BrownianBridge",
        "exponentiated_quadratic": "bqlib.kernels:ExponentiatedQuadratic",
        "integrated_brownian": "bqlib.kernels:IntegratedBrownian",
        "korobov": "bqlib.kernels:Korobov",
        "l2_star": "bqlib.kernels:L2Star",
        "matern": "bqlib.kernels:Matern",
        "rational_quadratic": "bqlib.kernels:RationalQuadratic",
        "stein": "bqlib.kernels:Stein",
    },
    "design": {
        "block_sbq": "bqlib.designs.block_sbq:block_sbq",
        "fp_greedy": "bqlib.designs.fp_greedy:fp_greedy",
        "frank_wolfe": "bqlib.designs.frank_wolfe:frank_wolfe",
        "herding": "bqlib.designs.herding:herding",
        "iid": "bqlib.designs.iid:iid",
        "omp": "bqlib.designs.omp:omp",
        "p_greedy": "bqlib.designs.p_greedy:p_greedy",
        "rpcholesky": "bqlib.designs.rpcholesky:rpcholesky",
        "sbq": "bqlib.designs.sbq:sbq",
        "sobol": "bqlib.designs.sobol:sobol",
    },
    "weights": {
        "bq": "bqlib.weights:bq",
        "line_search": "bqlib.designs.frank_wolfe:line_search",
        "nonnegative": "bqlib.weights:nonnegative",
        "simplex": "bqlib.weights:simplex",
        "sum_to_one": "bqlib.weights:sum_to_one",
        "uniform": "bqlib.weights:uniform",
    },
    "integrand": {
        "genz_gaussian_peak": "bqlib.integrands:genz_gaussian_peak",
        "genz_oscillatory": "bqlib.integrands:genz_oscillatory",
        "rkhs_ball": "bqlib.integrands:rkhs_ball",
        "rough_bumps": "bqlib.integrands:rough_bumps",
    },
    "study": {
        "alternatives": "bqlib.studies.alternatives:STUDY",
        "cost": "bqlib.studies.cost:STUDY",
        "kernel_choice": "bqlib.studies.kernel_choice:STUDY",
        "refinement": "bqlib.studies.refinement:STUDY",
        "submodularity": "bqlib.studies.submodularity:STUDY",
    },
}
# An algorithm is a design with a weight rule. Studies compare them in this order.
ALGORITHMS = {
    "iid": ("iid", "uniform"),
    "iid_bq": ("iid", "bq"),
    "sobol": ("sobol", "uniform"),
    "sobol_bq": ("sobol", "bq"),
    "herding": ("herding", "uniform"),
    "herding_bq": ("herding", "bq"),
    "frank_wolfe": ("frank_wolfe", "line_search"),
    "frank_wolfe_bq": ("frank_wolfe", "bq"),
    "p_greedy": ("p_greedy", "bq"),
    "rpcholesky": ("rpcholesky", "bq"),
    "fp_greedy": ("fp_greedy", "bq"),
    "omp": ("omp", "bq"),
    "block_sbq": ("block_sbq", "bq"),
    "sbq": ("sbq", "bq"),
    "sbq_nonnegative": ("sbq", "nonnegative"),
    "sbq_simplex": ("sbq", "simplex"),
    "sbq_sum_to_one": ("sbq", "sum_to_one"),
}


def find(kind, name):
    """The class, function or study of that kind and name, such as ``find("design", "sbq")``.

    Raises
    ------
    PluginError
        If the name is the place of a plug-in that cannot be loaded.
    """
    if name not in PLACES[kind]:
        return plugins.load(kind, name)
    module, attribute = PLACES[kind][name].split(":")
    return getattr(import_module(module), attribute)
