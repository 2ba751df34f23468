"""Histogram of BQ weights: Figure 3 of Huszar and Duvenaud (2012)."""

import numpy as np

from bqlib import published
from bqlib.analysis.paper import bq_weights, papers_cell
from bqlib.figures import style

SIZE = 100  # points that the paper weighs
BINS = 20  # of the published histogram, empty ones included


def weight_histogram(dataset):
    """The BQ weights of 100 points of SBQ and of herding, with the published bars behind.

    Parameters
    ----------
    dataset : xarray.Dataset
        With `sbq` and `herding` at the settings of the paper; its first seed is drawn.

    Returns
    -------
    matplotlib.figure.Figure
    """
    cell = papers_cell(dataset)
    n = min(SIZE, dataset.sizes["n"])
    compare = n == SIZE
    left, right, count = np.array(published.histogram()).T
    width = (right[-1] - left[0]) / BINS
    looks = style.line_styles(["sbq", "herding_bq"])
    with style.ours():
        figure = style.figure(style.WIDTH, 4.3)
        for axes, (algorithm, points) in zip(
            figure.subplots(1, 2, sharex=True, sharey=True),
            (("sbq", "sbq"), ("herding_bq", "herding")),
            strict=True,
        ):
            weights = bq_weights(dataset, cell, points, n)
            if compare:
                axes.bar(
                    left, count, right - left, align="edge", color="#d9d9d9", edgecolor="#9a9a9a",
                    linewidth=0.6, label="published", gid="published",
                )  # fmt: skip
            first = left[0] + width * np.floor((weights[0].min() - left[0]) / width)
            bins = np.arange(first, weights[0].max() + width, width)
            axes.hist(
                weights[0], bins, histtype="step", color=looks[algorithm]["color"], linewidth=1.6,
                label="ours, first seed", gid="ours",
            )  # fmt: skip
            axes.axvline(1 / n, color="#555555", linestyle=(0, (4, 2)), linewidth=1.1)
            axes.axvline(0, color="#555555", linewidth=1.1)
            axes.set_title(f"points of {style.algorithm_name(points)}")
            axes.set_xlabel(f"BQ weights of {n} points")
            axes.text(
                0.02, 0.97, _sums(weights, compare), transform=axes.transAxes, va="top",
                fontsize=8.5, bbox={"facecolor": "white", "linewidth": 0, "pad": 1},
            )  # fmt: skip
        axes = figure.axes[0]
        axes.set_ylabel("number of weights")
        axes.set_ylim(0, 1.35 * axes.get_ylim()[1])  # room for the words
        for x, label in ((1 / n, f"1/{n}"), (0, "0")):
            axes.annotate(
                label, (x, 1), xycoords=("data", "axes fraction"), ha="center", va="bottom",
                xytext=(0, 1), textcoords="offset points", fontsize=8,
            )  # fmt: skip
        figure.legend(*axes.get_legend_handles_labels(), loc="outside lower center", ncols=2)
    return figure


def _sums(weights, compare):
    sums = weights.sum(axis=1)
    negative = (weights < 0).sum(axis=1)
    lines = [
        f"sum {sums.mean():.3f}, {sums.min():.3f} to {sums.max():.3f} in "
        f"{style.counted(len(sums), 'seed')}",
        f"negative weights: {negative.min()} to {negative.max()}",
    ]
    if compare:
        lines.append("published sum: caption 0.93, bars 0.940")
    return "\n".join(lines)
