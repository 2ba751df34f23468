"""goodpoints: kernel thinning and Compress++ of the draws in the given units, by their number.

Run: with_goodpoints.py FILE RULE..., as in files.py
"""

import numpy as np
from files import report, spread_out
from goodpoints import compress, compressc, kt

GAUSSIAN = b"gaussian"


def parameters(given):
    """Of the kernel of its compiled code, exp(-|x - y|^2 / parameter)."""
    return np.array([2 * float(given["lengthscale"]) ** 2])


def compressed(oversampling):
    """As many points as the root of the largest power of four that the number of draws has."""
    return lambda given: compress.compresspp_kt(
        given["draws"] / given["scale"],
        GAUSSIAN,
        parameters(given),
        g=oversampling,
        seed=int(given["seed"]),
    )


def in_memory(given):
    """n 2^m evenly spaced draws halved m times, with a stored matrix of all pairs: compiled."""
    draws, n = given["draws"] / given["scale"], int(given["n"])
    halvings = (len(draws) // n).bit_length() - 1
    rows = spread_out(len(draws), n << halvings)
    pairs = np.empty((len(rows), len(rows)))
    compressc.compute_K(draws, rows, GAUSSIAN, parameters(given), pairs)
    return rows[kt.thin_K(pairs, pairs, halvings, seed=int(given["seed"]))]


def on_the_fly(given):
    """The same without the matrix, which is Python code."""
    draws, n = given["draws"] / given["scale"], int(given["n"])
    halvings = (len(draws) // n).bit_length() - 1
    rows = spread_out(len(draws), n << halvings)
    factor = -1 / parameters(given)[0]

    def kernel(y, x):
        return np.exp(factor * np.square(x - y).sum(axis=1))

    return rows[kt.thin(draws[rows], halvings, kernel, kernel, seed=int(given["seed"]))]


if __name__ == "__main__":
    report(
        {f"compress++, g = {g}": compressed(g) for g in (0, 2, 4)}
        | {"kernel thinning, matrix": in_memory, "kernel thinning": on_the_fly}
    )
