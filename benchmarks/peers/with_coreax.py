"""coreax: kernel herding of the pool as a data set, in its float32 and in float64."""

import equinox as eqx
import jax
import numpy as np
from problems import LENGTHSCALE, SIZES, pool, report


def herding(problem, precise):
    jax.config.update("jax_enable_x64", precise)
    from coreax import Data
    from coreax.kernels import SquaredExponentialKernel
    from coreax.solvers import KernelHerding

    solver = KernelHerding(
        coreset_size=SIZES[problem][1],
        kernel=SquaredExponentialKernel(length_scale=LENGTHSCALE),
        unique=False,
    )
    coreset, _ = eqx.filter_jit(solver.reduce)(Data(pool(problem)))
    return np.asarray(coreset.unweighted_indices)


if __name__ == "__main__":
    report(
        {
            "herding the pool": lambda problem: herding(problem, True),
            "herding the pool, float32": lambda problem: herding(problem, False),
        }
    )
