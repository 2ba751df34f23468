import matplotlib.pyplot as plt
import numpy as np

import bqlib


def log_density(x):
    return -(x[..., 0] ** 2) / 8 - (x[..., 1] - 0.25 * x[..., 0] ** 2) ** 2 / 2


def score(x):
    bend = x[:, 1] - 0.25 * x[:, 0] ** 2
    return np.column_stack([-x[:, 0] / 4 + 0.5 * x[:, 0] * bend, -bend])


rng = np.random.default_rng(0)
x, draws = np.array([-6.0, 14.0]), np.empty((8000, 2))
for i in range(8000):  # random-walk Metropolis, from a poor start
    proposed = x + 0.6 * rng.normal(size=2)
    if np.log(rng.random()) < log_density(proposed) - log_density(x):
        x = proposed
    draws[i] = x

kept = {
    "every 134th draw": draws[::134],
    "thin(draws, 60)": bqlib.thin(draws, 60, rng=0).points,
    "thin(draws, 60, scores)": bqlib.thin(draws, 60, score(draws), rng=0).points,
}
figure, panels = plt.subplots(
    1, 3, figsize=(9, 3.8), layout="constrained", sharex=True, sharey=True
)
for axes, (title, points) in zip(panels, kept.items(), strict=True):
    axes.plot(*draws.T, ".", color="silver", markersize=2)
    axes.plot(*points.T, "o", markersize=4)
    axes.set(title=title, xlabel="$x_0$")
panels[0].set(ylabel="$x_1$")
