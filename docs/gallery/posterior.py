import matplotlib.pyplot as plt
import numpy as np

import bqlib


def bend(x):
    return x[:, 1] - 0.6 * x[:, 0] ** 2 + 1


def log_density(x):  # up to a constant
    return -0.5 * x[:, 0] ** 2 - 2 * bend(x) ** 2


def score(x):  # its gradient
    return np.column_stack([-x[:, 0] + 4.8 * x[:, 0] * bend(x), -4 * bend(x)])


target = bqlib.Unnormalised(2, log_density=log_density, score=score)
box = bqlib.Candidates(3000, source="box", box=[(-3, 3), (-3, 3)])
kernel = bqlib.Stein(target, 0.7, constant=1.0)
design = bqlib.sbq(target, kernel, 40, rng=0, candidates=box)

u, v = np.meshgrid(np.linspace(-3, 3, 150), np.linspace(-3, 2, 150))
density = np.exp(log_density(np.column_stack([u.ravel(), v.ravel()]))).reshape(u.shape)
figure, axes = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
axes.contour(u, v, density, colors="silver")
axes.scatter(*design.points.T, s=1500 * np.abs(design.weights), alpha=0.8)
axes.set(aspect="equal")
