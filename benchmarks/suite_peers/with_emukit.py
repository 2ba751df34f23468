"""Sequential Bayesian quadrature of emukit, as a submission, where it has closed kernel means.

These are the exponentiated quadratic kernel with a normal distribution or a box. It picks the
candidate with the largest integral variance reduction, of 1,000 of the pool, and stops at 32
points, as every step takes long. The weights of its model are BQ weights.
Run: python benchmarks/suite_peers/with_emukit.py FOLDER
"""

import numpy as np
from entering import Rule, enter, gaussian

POINTS, CANDIDATES = 32, 1000


def measured(problem, rbf):
    """The kernel with its measure, or None."""
    from emukit.model_wrappers.gpy_quadrature_wrappers import RBFGPy
    from emukit.quadrature.kernels import QuadratureRBFGaussianMeasure, QuadratureRBFLebesgueMeasure
    from emukit.quadrature.measures import GaussianMeasure, LebesgueMeasure

    if problem.target["family"] == "uniform":
        bounds = list(zip(*problem.box.tolist(), strict=True))
        measure = LebesgueMeasure.from_bounds(bounds, normalized=True)
        return QuadratureRBFLebesgueMeasure(RBFGPy(rbf), measure)
    mean, deviations = gaussian(problem)
    return QuadratureRBFGaussianMeasure(RBFGPy(rbf), GaussianMeasure(mean, deviations**2))


def variance_reduction(problem, n):
    import GPy
    from emukit.model_wrappers.gpy_quadrature_wrappers import BaseGaussianProcessGPy
    from emukit.quadrature.acquisitions import SquaredCorrelation
    from emukit.quadrature.methods import VanillaBayesianQuadrature

    known = problem.target["family"] == "uniform" or gaussian(problem) is not None
    if problem.kernel["family"] != "exponentiated_quadratic" or not known:
        return None
    candidates = problem.pool[:CANDIDATES]
    rbf = GPy.kern.RBF(problem.dim, lengthscale=problem.kernel["shape"], variance=1.0)
    kernel = measured(problem, rbf)
    # It has no model without points. The first is where the kernel mean is largest.
    picks = [int(np.argmax(kernel.qK(candidates)))]
    while len(picks) < min(POINTS, n):
        x, y = candidates[picks], np.zeros((len(picks), 1))
        model = GPy.models.GPRegression(x, y, rbf, noise_var=1e-10)
        quadrature = VanillaBayesianQuadrature(BaseGaussianProcessGPy(kernel, model), x, y)
        picks.append(int(np.argmax(SquaredCorrelation(quadrature).evaluate(candidates))))
    return candidates[picks]


RULES = [Rule("emukit_variance_reduction", variance_reduction, "sequence", "bq", ["z", "pool"])]

if __name__ == "__main__":
    enter(
        "emukit",
        "emukit",
        RULES,
        "A. Paleyes, M. Mahsereci and N. D. Lawrence, Emukit: A Python toolkit for decision making "
        "under uncertainty, SciPy 2023",
        "CC0-1.0",
        "https://github.com/EmuKit/emukit",
    )
