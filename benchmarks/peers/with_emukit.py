"""emukit: the candidate with the largest integral variance reduction, one after the other.

Its kernel means under a Gaussian measure have closed forms; mixtures have none there.
"""

import GPy
import numpy as np
from emukit.model_wrappers.gpy_quadrature_wrappers import BaseGaussianProcessGPy, RBFGPy
from emukit.quadrature.acquisitions import SquaredCorrelation
from emukit.quadrature.kernels import QuadratureRBFGaussianMeasure
from emukit.quadrature.measures import GaussianMeasure
from emukit.quadrature.methods import VanillaBayesianQuadrature
from problems import LENGTHSCALE, SIZES, parts, pool, report


def variance_reduction(problem):
    _, (mean,), (covariance,) = parts(problem)
    candidates = pool(problem)
    rbf = GPy.kern.RBF(len(mean), lengthscale=LENGTHSCALE, variance=1.0)
    measure = GaussianMeasure(mean=mean, variance=np.diag(covariance))
    kernel = QuadratureRBFGaussianMeasure(RBFGPy(rbf), measure)
    # It has no model without points. The first has nothing to condition on: it is where the
    # kernel mean is largest, as the kernel has the same height everywhere.
    picks = [int(np.argmax(kernel.qK(candidates)))]
    while len(picks) < SIZES[problem][1]:
        x = candidates[picks]
        model = GPy.models.GPRegression(x, np.zeros((len(x), 1)), rbf, noise_var=1e-10)
        quadrature = VanillaBayesianQuadrature(
            BaseGaussianProcessGPy(kernel, model), x, np.zeros((len(x), 1))
        )
        picks.append(int(np.argmax(SquaredCorrelation(quadrature).evaluate(candidates))))
    return picks


if __name__ == "__main__":
    report({"variance reduction": variance_reduction})
