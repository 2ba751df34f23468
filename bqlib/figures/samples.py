"""Samples on the density of their target: Figure 1 of Huszar and Duvenaud (2012)."""

import numpy as np

from bqlib.analysis.cells import embedding_of
from bqlib.analysis.paper import HERDING_POINTS, SBQ_POINTS, matching_sizes, papers_cell
from bqlib.figures import panels, style
from bqlib.weights import bq


def samples(dataset):
    """The first 8 points of SBQ, sized by their weights, and the first 20 of herding.

    Parameters
    ----------
    dataset : xarray.Dataset
        With `sbq` and `herding` at the settings of the paper; its first seed is drawn.

    Returns
    -------
    matplotlib.figure.Figure
    """
    cell = papers_cell(dataset)
    embedding = embedding_of(dataset, cell)
    target = embedding.target
    first = dataset.sel(cell)[["points", "mmd"]].isel(seed=0).compute()
    sbq = first["points"].sel(algorithm="sbq").transpose("n", "dim").values[:SBQ_POINTS]
    herding = first["points"].sel(algorithm="herding").transpose("n", "dim").values[:HERDING_POINTS]
    weights = bq(embedding, sbq).final(len(sbq))
    looks = style.line_styles(["sbq", "herding"])
    with style.ours():
        figure = style.figure(6.4, 6.2)
        axes = figure.subplots()
        _draw_density(axes, target)
        axes.scatter(
            *herding.T, s=46, marker=looks["herding"]["marker"], facecolor="white",
            edgecolor=looks["herding"]["color"], linewidth=1.6, zorder=4, gid="herding",
            label=f"herding: first {len(herding)} points, equal weights "
            f"(MMD {_mmd(first, 'herding', len(herding))})",
        )  # fmt: skip
        axes.scatter(
            *sbq.T, s=160 * weights / weights.max(), marker=looks["sbq"]["marker"],
            color=looks["sbq"]["color"], zorder=3, gid="sbq",
            label=f"SBQ: first {len(sbq)} points, area proportional to the weight "
            f"(MMD {_mmd(first, 'sbq', len(sbq))})",
        )  # fmt: skip
        axes.set(aspect="equal", xlabel="$x_1$", ylabel="$x_2$")
        panels.legend(figure, _said(dataset, cell), columns=1)
    return figure


def _said(dataset, cell):
    """In how many seeds the paper's count of points is the right one."""
    if dataset.sizes["n"] < HERDING_POINTS:
        return ""
    sizes = matching_sizes(dataset, cell)
    return (
        f"SBQ first reaches the MMD of {HERDING_POINTS} points of herding at n = {SBQ_POINTS} "
        f"in {(sizes == SBQ_POINTS).sum()} of {len(sizes)} seeds.\nThe first seed is drawn."
    )


def _mmd(first, algorithm, n):
    return f"{float(first['mmd'].sel(algorithm=algorithm, n=n)):.4f}"


def _draw_density(axes, target):
    draws = target.sample(4000, np.random.default_rng(0))
    lower, upper = np.quantile(draws, [0.002, 0.998], axis=0)
    margin = 0.08 * (upper - lower)
    ends = zip(lower - margin, upper + margin, strict=True)
    x, y = np.meshgrid(*(np.linspace(*end, 240) for end in ends))
    density = target.density(np.column_stack([x.ravel(), y.ravel()])).reshape(x.shape)
    levels = density.max() * np.array([0.02, 0.05, 0.1, 0.2, 0.35, 0.5, 0.7, 0.9])
    axes.contourf(x, y, density, levels=[*levels, density.max()], cmap="Blues", alpha=0.55)
    axes.contour(x, y, density, levels=levels, colors="#7f9bb8", linewidths=0.6)
    axes.grid(False)
