import matplotlib.pyplot as plt
import numpy as np

import bqlib

rng = np.random.default_rng(0)
angle = rng.uniform(0, 2 * np.pi, 1000)
data = np.column_stack([np.cos(angle), np.sin(angle)]) * rng.normal(2, 0.3, (1000, 1))

design = bqlib.sbq(
    bqlib.Empirical(data), bqlib.ExponentiatedQuadratic(0.8), 30, rng=0, candidates=data
)

figure, axes = plt.subplots(figsize=(4.5, 4.5), layout="constrained")
axes.plot(*data.T, ".", color="silver", markersize=4)
axes.scatter(*design.points.T, s=1500 * np.abs(design.weights), alpha=0.8)
axes.set(aspect="equal", title="30 of 1000")
