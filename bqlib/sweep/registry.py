"""The names that a sweep can use, and the place of the code of each.

A place is ``"module:attribute"`` and is imported when it is needed. A sweep can also use places
that are not listed here, those of plug-ins: see :mod:`bqlib.sweep.plugins`.
"""

from importlib import import_module

from bqlib.sweep import plugins

PLACES = {
    "target": {
        "banana": "bqlib.densities:Banana",
        "empirical": "bqlib.targets:Empirical",
        "gaussian_mixture": "bqlib.targets:GaussianMixture",
        "logistic_posterior": "bqlib.densities:LogisticPosterior",
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
        "compress": "bqlib.designs.compress:compress",
        "fp_greedy": "bqlib.designs.fp_greedy:fp_greedy",
        "frank_wolfe": "bqlib.designs.frank_wolfe:frank_wolfe",
        "grid": "bqlib.designs.grid:grid",
        "halton": "bqlib.designs.halton:halton",
        "herding": "bqlib.designs.herding:herding",
        "iid": "bqlib.designs.iid:iid",
        "joint": "bqlib.designs.joint:joint",
        "kernel_thinning": "bqlib.designs.kernel_thinning:kernel_thinning",
        "latin_hypercube": "bqlib.designs.latin_hypercube:latin_hypercube",
        "lattice": "bqlib.designs.lattice:lattice",
        "msip": "bqlib.designs.msip:msip",
        "omp": "bqlib.designs.omp:omp",
        "p_greedy": "bqlib.designs.p_greedy:p_greedy",
        "recombination": "bqlib.designs.recombination:recombination",
        "rpcholesky": "bqlib.designs.rpcholesky:rpcholesky",
        "sbq": "bqlib.designs.sbq:sbq",
        "sobol": "bqlib.designs.sobol:sobol",
        "stein_thinning": "bqlib.designs.stein_thinning:stein_thinning",
    },
    "weights": {
        "bq": "bqlib.weights:bq",
        "line_search": "bqlib.designs.frank_wolfe:line_search",
        "nonnegative": "bqlib.weights:nonnegative",
        "own": "bqlib.designs.own_weights:own",
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
# An algorithm is a design with a weight rule, and parameters of the design where these differ from
# its defaults. Studies compare them in this order.
ALGORITHMS = {
    "iid": ("iid", "uniform"),
    "iid_bq": ("iid", "bq"),
    "sobol": ("sobol", "uniform"),
    "sobol_bq": ("sobol", "bq"),
    "halton": ("halton", "uniform"),
    "halton_bq": ("halton", "bq"),
    "latin_hypercube": ("latin_hypercube", "uniform"),
    "latin_hypercube_bq": ("latin_hypercube", "bq"),
    "lattice": ("lattice", "uniform"),
    "lattice_bq": ("lattice", "bq"),
    "grid": ("grid", "uniform"),
    "grid_bq": ("grid", "bq"),
    "herding": ("herding", "uniform"),
    "herding_bq": ("herding", "bq"),
    "stein_thinning": ("stein_thinning", "uniform"),
    "kernel_thinning": ("kernel_thinning", "uniform"),
    "compress": ("compress", "uniform"),
    "recombination": ("recombination", "own"),
    "recombination_nonnegative": ("recombination", "nonnegative"),
    "frank_wolfe": ("frank_wolfe", "line_search"),
    "frank_wolfe_bq": ("frank_wolfe", "bq"),
    "p_greedy": ("p_greedy", "bq"),
    "rpcholesky": ("rpcholesky", "bq"),
    "fp_greedy": ("fp_greedy", "bq"),
    "omp": ("omp", "bq"),
    "block_sbq": ("block_sbq", "bq"),
    "sbq": ("sbq", "bq"),
    "joint": ("joint", "bq"),
    "joint_uniform": ("joint", "uniform", {"weights": "uniform"}),
    "msip": ("msip", "bq"),
    "sbq_nonnegative": ("sbq", "nonnegative"),
    "sbq_simplex": ("sbq", "simplex"),
    "sbq_sum_to_one": ("sbq", "sum_to_one"),
}
# Designs with the decorator point_set, which nobody must import to know this.
SETS = (
    *("compress", "grid", "joint", "kernel_thinning", "latin_hypercube", "lattice", "msip"),
    *("recombination", "stein_thinning"),
)
# What ``bqlib algorithms`` prints. Times are for n points, M candidates and d dimensions; the
# docstring of each function says the same.
COSTS = {
    "design": {
        "block_sbq": "O(M n / block + M d + n^2) a step",
        "compress": "O(4^oversampling n^2 d log M)",
        "fp_greedy": "O(M n + M d) a step",
        "frank_wolfe": "O(M d) a step",
        "grid": "O(n)",
        "halton": "O(n d)",
        "herding": "O(M d) a step",
        "iid": "O(n d)",
        "joint": "O(n^3 + n^2 d) a step",
        "kernel_thinning": "O(M^2 d)",
        "latin_hypercube": "O(n d)",
        "lattice": "O(n d log n)",
        "msip": "O(n^3 + n^2 d) a step",
        "omp": "O(M n + M d) a step",
        "p_greedy": "O(M n + M d) a step",
        "recombination": "O(n^3 + M n^2)",
        "rpcholesky": "O(M n + M d) a step",
        "sbq": "O(M n + M d) a step",
        "sobol": "O(n d log n)",
        "stein_thinning": "O(M d) a step",
    },
    "weights": {
        "bq": "O(n^3)",
        "line_search": "O(n^2)",
        "nonnegative": "O(n^4)",
        "own": "O(n^2)",
        "simplex": "O(n^4)",
        "sum_to_one": "O(n^3)",
        "uniform": "O(n^2)",
    },
}
# How each design picks its points: the first line of its docstring.
POINTS = {
    "block_sbq": "Sequential Bayesian quadrature in blocks: cheap picks, and one fit after each "
    "block.",
    "compress": "Compress++: kernel thinning in time near-linear in the pool, by halving its "
    "quarters.",
    "fp_greedy": "fP-greedy points: each has the largest residual times standard deviation.",
    "frank_wolfe": "Frank-Wolfe with line search: herding with the best step towards each point.",
    "grid": "The mid-points of n cells of equal probability, in one dimension.",
    "halton": "Scrambled Halton points mapped to the target: a sequence that is even at every "
    "length.",
    "herding": "Kernel herding: each point is the best next one for equal weights.",
    "iid": "Independent draws from the target: the baseline, where weights are equal.",
    "joint": "Joint optimisation: all points moved at once, by L-BFGS, to where the MMD is "
    "smallest.",
    "kernel_thinning": "Kernel thinning: halve a pool again and again, so that equal weights stay "
    "right.",
    "latin_hypercube": "A Latin hypercube sample: each coordinate has one point in each of n equal "
    "strata.",
    "lattice": "A rank-1 lattice, mapped to the target: quasi-Monte Carlo for periodic functions.",
    "msip": "Mean-shift interacting particles: all points of SBQ moved by fixed-point steps; a "
    "set.",
    "omp": "Orthogonal matching pursuit: each point is where the kernel mean is interpolated "
    "worst.",
    "p_greedy": "P-greedy points: each is where the prior variance, given the points before it, is "
    "largest.",
    "recombination": "Recombination: positive weights that integrate the leading features of the "
    "kernel exactly.",
    "rpcholesky": "Randomly pivoted Cholesky: each point is drawn with probability proportional to "
    "its power.",
    "sbq": "Sequential Bayesian quadrature: each point lowers the posterior variance the most.",
    "sobol": "Scrambled Sobol points mapped to the target: quasi-Monte Carlo, where weights are "
    "equal.",
    "stein_thinning": "Regularised Stein thinning: herding with a Stein kernel, drawn to where the "
    "density is high.",
}


def find(kind, name):
    """The class, function or study of that kind and name, such as ``find("design", "sbq")``.

    What is a class or function already, as in a sweep that Python code made, is returned.

    Raises
    ------
    PluginError
        If the name is the place of a plug-in that cannot be loaded.
    """
    if callable(name):
        return name
    if name not in PLACES[kind]:
        return plugins.load(kind, name)
    module, attribute = PLACES[kind][name].split(":")
    return getattr(import_module(module), attribute)
