"""emukit: vanilla Bayesian quadrature of given values at given points, under a uniform measure.

As in its introduction to Bayesian quadrature: a GPy regression with prior mean zero, values as they
are, an RBF kernel with one length-scale for all inputs that starts at 0.5, variance that starts at
1, and noise fixed at 1e-10. Both are fitted by one run of GPy's optimiser, without restarts.

Reads points (R, n, d), values (R, n) and the ends of the box, (d,) each, from an npz file. Prints
mean, variance and seconds of each of the R estimates as JSON, with NaN where GPy raised an error.
Run: with_emukit.py FILE
"""

import json
import sys
import time

import GPy
import numpy as np
from emukit.model_wrappers.gpy_quadrature_wrappers import BaseGaussianProcessGPy, RBFGPy
from emukit.quadrature.kernels import QuadratureRBFLebesgueMeasure
from emukit.quadrature.measures import LebesgueMeasure
from emukit.quadrature.methods import VanillaBayesianQuadrature


def estimate(points, values, bounds):
    """Mean and variance of the integral under the uniform distribution on the box."""
    values = values[:, None]
    rbf = GPy.kern.RBF(points.shape[1], lengthscale=0.5, variance=1.0)
    model = GPy.models.GPRegression(points, values, rbf)
    measure = LebesgueMeasure.from_bounds(bounds, normalized=True)
    kernel = QuadratureRBFLebesgueMeasure(RBFGPy(rbf), measure)
    quadrature = VanillaBayesianQuadrature(BaseGaussianProcessGPy(kernel, model), points, values)
    quadrature.optimize()
    return quadrature.integrate()


if __name__ == "__main__":
    given = np.load(sys.argv[1])
    bounds = list(zip(given["lower"].tolist(), given["upper"].tolist(), strict=True))
    found = []
    for points, values in zip(given["points"], given["values"], strict=True):
        begun = time.perf_counter()
        try:
            mean, variance = estimate(points, values, bounds)
        except np.linalg.LinAlgError as error:
            print(f"emukit: {error}", file=sys.stderr)
            mean = variance = np.nan
        found.append((float(mean), float(variance), time.perf_counter() - begun))
    print(json.dumps(found))
