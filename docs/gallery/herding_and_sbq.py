import matplotlib.pyplot as plt
import numpy as np

import bqlib

target = bqlib.GaussianMixture(
    [0.5, 0.5], [[-1.5, 0], [1.5, 0]], [np.diag([0.3, 1]), np.diag([1, 0.3])]
)
kernel = bqlib.ExponentiatedQuadratic(0.8)
u, v = np.meshgrid(np.linspace(-4.5, 4.5, 150), np.linspace(-3.5, 3.5, 150))
density = target.density(np.column_stack([u.ravel(), v.ravel()])).reshape(u.shape)

figure, both = plt.subplots(1, 2, figsize=(9, 4), layout="constrained")
for axes, rule in zip(both, [bqlib.herding, bqlib.sbq], strict=True):
    design = rule(target, kernel, 25, rng=0)
    error = bqlib.mmd(design.embedding, design.points, design.weights)
    axes.contour(u, v, density, colors="silver")
    axes.scatter(*design.points.T, s=1500 * np.abs(design.weights), alpha=0.8)
    axes.set(aspect="equal", title=f"{rule.__name__}, MMD {error:.3f}")
