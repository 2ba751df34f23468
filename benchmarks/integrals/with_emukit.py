"""emukit: vanilla Bayesian quadrature of given values at given points, under a uniform measure.

As in its introduction to Bayesian quadrature: a GPy regression with prior mean zero, values as they
are, an RBF kernel whose length-scale starts at 0.5 and whose variance starts at 1, and noise fixed
at 1e-10. Both are fitted by one run of GPy's optimiser, without restarts. The introduction has one
length-scale for all inputs; the second estimate has one for each, by GPy's option ARD.

Reads points (R, n, d), values (R, n) and the ends of the box, (d,) each, from an npz file. Prints
mean, variance and seconds of both estimates in each of the R repetitions, (R, 2, 3), as JSON, with
NaN where GPy raised an error. Run: with_emukit.py FILE
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


def estimate(points, values, bounds, ard):
    """Mean and variance of the integral under the uniform distribution on the box."""
    values = values[:, None]
    rbf = GPy.kern.RBF(points.shape[1], lengthscale=0.5, variance=1.0, ARD=ard)
    model = GPy.models.GPRegression(points, values, rbf)
    measure = LebesgueMeasure.from_bounds(bounds, normalized=True)
    kernel = QuadratureRBFLebesgueMeasure(RBFGPy(rbf), measure)
    quadrature = VanillaBayesianQuadrature(BaseGaussianProcessGPy(kernel, model), points, values)
    quadrature.optimize()
    return quadrature.integrate()


def timed(points, values, bounds, ard):
    begun = time.perf_counter()
    try:
        mean, variance = estimate(points, values, bounds, ard)
    except np.linalg.LinAlgError as error:
        print(f"emukit: {error}", file=sys.stderr)
        mean = variance = np.nan
    return float(mean), float(variance), time.perf_counter() - begun


if __name__ == "__main__":
    given = np.load(sys.argv[1])
    bounds = list(zip(given["lower"].tolist(), given["upper"].tolist(), strict=True))
    pairs = zip(given["points"], given["values"], strict=True)
    print(json.dumps([[timed(*pair, bounds, ard) for ard in (False, True)] for pair in pairs]))
