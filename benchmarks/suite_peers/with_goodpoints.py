"""Kernel thinning and Compress++ of goodpoints, as submissions: subsets of the pool.

Both summarise the pool as a data set, and use no kernel mean. Kernels that only bqlib has are left
out, and so are pools that were not drawn from the target. Compress++ is compiled, for the
exponentiated quadratic kernel alone, and makes the root of the number of draws of points.
Run: python benchmarks/suite_peers/with_goodpoints.py FOLDER
"""

import numpy as np
from entering import Rule, enter, kernel_function

MOST = 2048  # draws that are thinned, as the time grows with their square


def kernel_thinning(problem, n):
    from goodpoints import kt

    kernel = kernel_function(problem)
    if kernel is None or not problem.drawn:
        return None
    halvings = (min(MOST, len(problem.pool)) // n).bit_length() - 1
    draws = problem.pool[: n * 2**halvings]
    return draws[kt.thin(draws, halvings, kernel, kernel, seed=problem.seed, store_K=True)]


def compressed(problem, n):
    from goodpoints import compress

    root = 1 << (n.bit_length() - 1)  # a power of two
    draws = problem.pool[: root**2]
    if problem.kernel["family"] != "exponentiated_quadratic" or not problem.drawn:
        return None
    if len(draws) < root**2:
        return None
    # Its kernel is exp(-|x - y|^2 / parameter).
    parameter = np.array([2 * problem.kernel["shape"] ** 2])
    picks = compress.compresspp_kt(draws, b"gaussian", parameter, g=4, seed=problem.seed)
    return draws[picks]


RULES = [
    Rule("goodpoints_kernel_thinning", kernel_thinning, "set", "uniform", ["pool"]),
    Rule("goodpoints_compresspp", compressed, "set", "uniform", ["pool"]),
]

if __name__ == "__main__":
    enter(
        "goodpoints",
        "goodpoints",
        RULES,
        "R. Dwivedi and L. Mackey, Kernel thinning, JMLR 25(152), 2024; A. Shetty, R. Dwivedi and "
        "L. Mackey, Distribution compression in near-linear time, ICLR 2022",
        "CC0-1.0",
        "https://github.com/microsoft/goodpoints",
    )
