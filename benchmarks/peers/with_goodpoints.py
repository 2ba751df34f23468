"""goodpoints: kernel thinning and its own kernel herding, both of the pool as a data set."""

import numpy as np
from goodpoints import compress, kt
from goodpoints.herding import herding
from problems import LENGTHSCALE, SIZES, pool, report


def kernel(y, x):
    return np.exp(-np.square(x - y).sum(axis=1) / (2 * LENGTHSCALE**2))


def halvings(problem):
    size, n = SIZES[problem]
    return (size // n).bit_length() - 1


def thinning(problem):
    return kt.thin(pool(problem), halvings(problem), kernel, kernel, seed=0)


def compressed(problem):
    # The kernel of its compiled code is exp(-|x - y|^2 / parameter).
    parameter = np.array([2 * LENGTHSCALE**2])
    return compress.compresspp_kt(pool(problem), b"gaussian", parameter, g=4, seed=0)


if __name__ == "__main__":
    report(
        {
            "kernel thinning": thinning,
            "compress++": compressed,
            "herding the pool": lambda problem: herding(pool(problem), halvings(problem), kernel),
        }
    )
