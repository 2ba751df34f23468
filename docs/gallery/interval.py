import matplotlib.pyplot as plt
import numpy as np

import bqlib

target = bqlib.GaussianMixture([1.0], [[0.0]], [[[1.0]]])
kernel = bqlib.Matern(1.0, nu=2.5)


def f(x):
    return np.cos(2 * x[0]) + np.sin(x[0])


exact = np.exp(-2)
sizes = np.arange(3, 21)
results = [bqlib.sbq(target, kernel, n, rng=0).integrate(f) for n in sizes]
lower, upper = np.transpose([result.interval(0.95) for result in results])

figure, axes = plt.subplots(figsize=(6, 3.5), layout="constrained")
axes.fill_between(sizes, lower, upper, alpha=0.3, label="95 % interval")
axes.plot(sizes, [result.mean for result in results], "o-", label="estimate")
axes.axhline(exact, color="black", linestyle=":", label="exact")
axes.set(xlabel="number of points", ylabel="integral of f")
axes.legend()
