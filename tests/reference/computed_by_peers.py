"""Make computed_by_peers.json: what other packages give on fixed problems.

`pip install emukit==0.5.1 GPy==1.15.0 goodpoints==0.6.3 stein-thinning==0.2.0`, then
`python computed_by_peers.py`.
"""

import json
from pathlib import Path

import GPy
import numpy as np
import stein_thinning
from emukit.model_wrappers.gpy_quadrature_wrappers import BaseGaussianProcessGPy, RBFGPy
from emukit.quadrature.kernels import QuadratureRBFGaussianMeasure, QuadratureRBFLebesgueMeasure
from emukit.quadrature.measures import GaussianMeasure, LebesgueMeasure
from emukit.quadrature.methods import VanillaBayesianQuadrature
from goodpoints import compress, kt
from stein_thinning.thinning import thin

# Points and values of emukit's own tests, in its own model there: unit kernel, N(mean, 2 I).
POINTS = [[-1.0, 1.0], [0.0, 0.0], [-2.0, 0.1]]
VALUES = [1.0, 2.0, 3.0]
MODELS = [
    {"lengthscale": [1.0, 1.0], "height": 1.0, "mean": [0.2, 1.3], "spread": [2.0, 2.0]},
    {"lengthscale": [0.8, 1.3], "height": 0.5, "mean": [0.2, 1.3], "spread": [0.3, 1.4]},
    {"lengthscale": [0.8, 1.3], "height": 0.5, "lower": [-2.5, -1.0], "upper": [0.5, 2.0]},
]


def integral(model):
    """Mean and variance of the integral by vanilla Bayesian quadrature, with noise 1e-10."""
    x, y = np.array(POINTS), np.array(VALUES)[:, None]
    rbf = GPy.kern.RBF(2, model["height"], np.array(model["lengthscale"]), ARD=True)
    if "mean" in model:
        measure = GaussianMeasure(np.array(model["mean"]), np.array(model["spread"]))
        kernel = QuadratureRBFGaussianMeasure(RBFGPy(rbf), measure)
    else:
        bounds = list(zip(model["lower"], model["upper"], strict=True))
        measure = LebesgueMeasure.from_bounds(bounds, normalized=True)
        kernel = QuadratureRBFLebesgueMeasure(RBFGPy(rbf), measure)
    base = BaseGaussianProcessGPy(kernel, GPy.models.GPRegression(x, y, rbf))
    return [float(number) for number in VanillaBayesianQuadrature(base, x, y).integrate()]


def thinned():
    """Its demonstration: a chain for a mixture of two normals, and the 40 rows that it keeps."""
    folder = Path(stein_thinning.__file__).parent / "demo" / "data"
    chain, scores = (
        np.genfromtxt(folder / f"{name}.csv", delimiter=",") for name in ("smp", "scr")
    )
    return {
        "chain": chain.tolist(),
        "score": scores[:3].tolist(),
        "rows": thin(chain, scores, 40).tolist(),
    }


def mmds_of_goodpoints(rule):
    """MMD to 1,024 draws of N(0, I) of the points that a rule keeps, at ten seeds."""
    pool = np.random.default_rng(0).normal(size=(1024, 2))
    gram = np.exp(-np.square(pool[:, None] - pool).sum(axis=2) / 2)

    def mmd(rows):
        return np.sqrt(gram.mean() - 2 * gram[rows].mean() + gram[np.ix_(rows, rows)].mean())

    return [float(mmd(rule(pool, seed))) for seed in range(10)]


def kernel_thinning(pool, seed):
    def kernel(y, x):
        return np.exp(-np.square(x - y).sum(axis=1) / 2)

    return kt.thin(pool, 4, kernel, kernel, seed=seed)


def compressed(pool, seed):
    return compress.compresspp_kt(pool, b"gaussian", np.array([2.0]), g=2, seed=seed)


if __name__ == "__main__":
    made = {
        "emukit": {
            "source": "emukit 0.5.1 with GPy 1.15.0: VanillaBayesianQuadrature.integrate()",
            "licence": "Apache-2.0, Copyright The Emukit Authors",
            "points": POINTS,
            "values": VALUES,
            "models": [
                model | {"integral_mean": mean, "integral_variance": variance}
                for model, (mean, variance) in zip(MODELS, map(integral, MODELS), strict=True)
            ],
        },
        "stein_thinning": {
            "source": "stein-thinning 0.2.0: the data of its demonstration, thin(smp, scr, 40)",
            "licence": "MIT, Copyright 2024 Stein Thinning team",
            **thinned(),
        },
        "goodpoints": {
            "source": "goodpoints 0.6.3: MMD to default_rng(0).normal(size=(1024, 2)) under "
            "exp(-r^2 / 2) of kt.thin(m=4), 64 points, and compresspp_kt(g=2), 32 points",
            "licence": "MIT, Copyright (c) Microsoft Corporation",
            "kernel_thinning": mmds_of_goodpoints(kernel_thinning),
            "compress": mmds_of_goodpoints(compressed),
        },
    }
    Path(__file__).with_suffix(".json").write_text(json.dumps(made) + "\n")
