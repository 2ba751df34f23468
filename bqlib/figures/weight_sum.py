"""The sum of BQ weights against n: how far the estimate is shrunk towards zero."""

import json

import numpy as np

from bqlib import published
from bqlib.analysis.paper import is_papers_cell
from bqlib.figures import panels, style
from bqlib.figures.pages import ROWS, of_rows, page_of


def weight_sum(dataset, page=1):
    """Sum of the BQ weights against n, a row for each target and kernel.

    On the left, all algorithms with BQ weights at one length-scale: that of Huszar and Duvenaud
    (2012) where the sweep has it, with their curve behind ours, and the first otherwise. On the
    right, at all length-scales of the sweep. Lines and bands are those of
    :func:`bqlib.figures.mmd.mmd`.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it, of a sweep with BQ weights.
    page : int
        Where there are several pages, which one: the legend says how many there are.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If there is no such page.
    """
    algorithms = json.loads(dataset.attrs["config"])["algorithms"]
    names = [algorithm["name"] for algorithm in algorithms if algorithm["weights"] == "bq"]
    dataset = dataset[["weight_sum", "status"]].sel(algorithm=names).compute()
    styles = panels.styles_of(dataset)
    pairs = panels.pairs(dataset)
    titles, said = page_of(of_rows(list(pairs), ROWS), page)
    rows = {title: pairs[title] for title in titles}
    sentences = []
    with style.ours():
        figure, grid = panels.grid(
            2, 2, width=style.WIDTH, height=3.9, margin=0.9, groups=len(rows),
            ylabel="sum of the weights",
        )  # fmt: skip
        for (left, right), (name, pair) in zip(grid, rows.items(), strict=True):
            cells = [pair | {"lengthscale": scale} for scale in dataset["lengthscale"].values]
            chosen = next((c for c in cells if is_papers_cell(dataset, c)), cells[0])
            titles = [
                f"length-scale {chosen['lengthscale']:g}",
                "all length-scales, written on their curves",
            ]
            for axes, title in zip((left, right), titles, strict=True):
                axes.set_title(f"{name}\n{title}".strip())
                axes.axhline(1, **style.GUIDE)
            left.annotate("equal weights", (1, 1), xytext=(4, 3), **style.GUIDE_WORDS)
            if is_papers_cell(dataset, chosen):
                curves = published.curves("weight_sum")
                panels.draw_published(
                    left, curves, styles, dataset["n"].values[-1], linestyle="none", marker="+",
                    markevery=None, color="#CC79A7", markersize=8, markeredgewidth=1.6, zorder=4,
                )  # fmt: skip
                sentences = [
                    "Crosses: published by Huszár and Duvenaud (2012), on points of herding."
                ]
            _, notes = panels.draw_curves(left, dataset, "weight_sum", chosen, styles)
            panels.write(left, notes, panels.LETTERS[2])
            notes = []
            for cell in cells:
                medians, more = panels.draw_curves(right, dataset, "weight_sum", cell, styles)
                notes += [f"length-scale {cell['lengthscale']:g}, {note}" for note in more]
                if medians:
                    _name(right, cell["lengthscale"], *list(medians.values())[-1])
            panels.write(right, notes, panels.LETTERS[3], "lower right")  # beside the curves
            left.set_ylim(bottom=0)
        panels.legend(
            figure, *said, panels.about_seeds(dataset.sizes["seed"]), *panels.about_sets(dataset),
            *sentences, handles=panels.handles(styles),
        )  # fmt: skip
    return figure


def _name(axes, lengthscale, n, median):
    """Write the length-scale on its curve: halfway up, or at its end."""
    at = np.argmax(median >= 0.5) if median.max() >= 0.5 else -1
    axes.annotate(
        f"{lengthscale:g}", (n[at], median[at]), ha="center", va="center", fontsize=9,
        fontweight="bold", bbox={"facecolor": "white", "linewidth": 0, "pad": 1.5}, gid="name",
    )  # fmt: skip
