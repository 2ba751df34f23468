"""Bayesian quadrature in one dimension: Figure 2 of Huszar and Duvenaud (2012)."""

import numpy as np
from scipy.linalg import cho_factor, cho_solve

from bqlib.embeddings import embed
from bqlib.figures import style
from bqlib.kernels import ExponentiatedQuadratic
from bqlib.posterior import integral
from bqlib.targets import GaussianMixture
from bqlib.weights import bq

BAND = 1.96  # standard deviations, for 95 %
LINE, FILL, DENSITY, TRUTH = "#0072B2", "#9cc7e3", "#7A4F00", "#D55E00"


def bq_illustration():
    """A function, its Gaussian process posterior from five values, and that of its integral.

    The paper does not say which function it draws; this one is our own.

    Returns
    -------
    matplotlib.figure.Figure
    """
    target = GaussianMixture([0.6, 0.4], [[-1.0], [1.6]], [[[0.7]], [[0.35]]])
    embedding = embed(ExponentiatedQuadratic(0.9), target)
    centres, heights = np.array([[-2.6], [-0.9], [0.6], [2.3]]), np.array([0.5, 1.3, -0.9, 1.1])
    points = np.array([[-2.5], [-1.2], [-0.1], [1.1], [2.6]])
    values = embedding.kernel(points, centres) @ heights
    truth = heights @ embedding.kernel_mean(centres)
    posterior = integral(
        embedding, points, bq(embedding, points).final(len(points)), values, output_scale=1.0
    )
    x = np.linspace(-4, 4, 401)[:, None]
    function = embedding.kernel(x, centres) @ heights
    mean, std = _posterior(embedding.kernel, points, values, x)
    with style.ours():
        figure = style.figure(style.WIDTH, 3.9)
        left, right = figure.subplots(1, 2, width_ratios=(2.2, 1))
        _draw_process(left, x[:, 0], function, mean, std, points[:, 0], values, target.density(x))
        _draw_integral(right, posterior, truth)
        figure.legend(*left.get_legend_handles_labels(), loc="outside lower center", ncols=3)
    return figure


def _posterior(kernel, points, values, x):
    factor = cho_factor(kernel(points, points), lower=True)
    across = kernel(points, x)
    explained = np.einsum("ij,ij->j", across, cho_solve(factor, across))
    variance = kernel.diagonal(x) - explained
    return across.T @ cho_solve(factor, values), np.sqrt(np.maximum(variance, 0.0))


def _draw_process(axes, x, function, mean, std, points, values, density):
    axes.set_title("f, and its posterior")
    axes.fill_between(
        x, mean - BAND * std, mean + BAND * std, color=FILL, alpha=0.6, linewidth=0,
        label="posterior of f: 95 % band",
    )  # fmt: skip
    axes.plot(x, function, color="#555555", linestyle=(0, (4, 2)), label="f")
    axes.plot(x, mean, color=LINE, label="posterior mean of f")
    axes.plot(
        points, values, color="black", marker="D", linestyle="none", label="samples", gid="samples"
    )
    base = (mean - BAND * std).min() - 0.15
    shape = 0.9 * density / density.max()
    axes.plot(x, base - 1 + shape, color=DENSITY, label="density p")
    axes.fill_between(
        x, base - 1, base - 1 + shape, facecolor="none", edgecolor=DENSITY, hatch="///",
        linewidth=0, alpha=0.45,
    )  # fmt: skip
    axes.set(xlabel="x", xlim=(x[0], x[-1]))
    axes.set_yticks([-1, 0, 1, 2])


def _draw_integral(axes, posterior, truth):
    axes.set_title(r"posterior of $Z = \int f(x)\,p(x)\,dx$")
    z = np.linspace(posterior.mean - 4 * posterior.std, posterior.mean + 4 * posterior.std, 301)
    height = np.exp(-0.5 * ((z - posterior.mean) / posterior.std) ** 2)
    height /= posterior.std * np.sqrt(2 * np.pi)
    axes.fill_between(z, height, color=FILL, alpha=0.6, linewidth=0)
    axes.plot(z, height, color=LINE, gid="posterior")
    axes.axvline(posterior.mean, color=LINE, linewidth=1)
    axes.axvline(truth, color=TRUTH, linestyle=(0, (4, 2)))
    axes.annotate(
        "true Z", (truth, 1.08 * height.max()), xytext=(4, 0), textcoords="offset points",
        color=TRUTH,
    )  # fmt: skip
    axes.set(xlabel="Z", ylim=(0, 1.15 * height.max()), yticks=[])
