"""Errors on functions outside the kernel's space, against n, beside the size of the weights."""

import json

import numpy as np

from bqlib import published
from bqlib.analysis.cells import integrands_of
from bqlib.analysis.paper import is_papers_cell
from bqlib.figures import panels, style
from bqlib.figures.pages import MOST_ROWS, of_rows, page_of


def out_of_model(dataset, page=1):
    """Mean absolute error over functions outside the model, a row for each cell.

    A row has a panel for each family of functions, and one for the sum of the absolute weights:
    the more the weights cancel, the more an estimate suffers from what the kernel does not
    expect. Lines and bands are those of :func:`bqlib.figures.mmd.mmd`. Where a row has the
    settings of Huszar and Duvenaud (2012), the shapes of their curves are drawn behind ours: how
    they drew their functions is not published, so their errors are scaled to ours, all by one
    factor, and their n made larger by 29, as within the model.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it, of a sweep with integrands outside the space.
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
    contents = json.loads(dataset.attrs["config"])["integrands"]
    integrands = integrands_of(dataset, within=False)
    dataset = dataset[["error", "weight_l1", "status"]].sel(integrand=integrands).compute()
    styles = panels.styles_of(dataset)
    rows = [
        (name, pair | {"lengthscale": lengthscale})
        for name, pair in panels.pairs(dataset).items()
        for lengthscale in dataset["lengthscale"].values
    ]
    rows, said = page_of(of_rows(rows, MOST_ROWS), page)
    columns = len(integrands) + 1
    sentences = []
    with style.ours():
        figure, grid = panels.grid(
            columns, columns, width=max(style.WIDTH, 3.0 * columns),
            height=3.4 if len(rows) < MOST_ROWS else 2.9, margin=1.0, groups=len(rows),
            sharey=False, ylabel="mean absolute error",
        )  # fmt: skip
        for row, (pair, cell) in zip(grid, rows, strict=True):
            name = f"{pair}\nlength-scale {cell['lengthscale']:g}".strip()
            for axes, integrand in zip(row, integrands, strict=False):
                axes.set_title(f"{name}\n{_described(integrand, contents[integrand])}")
                axes.sharey(row[0])
                selected = cell | {"integrand": integrand}
                medians, _ = panels.draw_curves(axes, dataset, "error", selected, styles)
                axes.set_yscale("log")
                if is_papers_cell(dataset, cell) and medians:
                    sentences = _draw_published(axes, styles, medians)
            row[-1].set_title(f"{name}\nweights")
            row[-1].set_ylabel("sum of absolute weights")
            _, notes = panels.draw_curves(row[-1], dataset, "weight_l1", cell, styles)
            row[-1].set_yscale("log")
            panels.write(row[-1], notes, panels.LETTERS[3], "upper left")
        panels.legend(
            figure, *said, panels.about_seeds(dataset.sizes["seed"]), *panels.about_sets(dataset),
            *sentences, handles=panels.handles(styles),
        )  # fmt: skip
    return figure


def _described(label, content):
    label = label.replace("_", " ")
    if content["family"] == "rough_bumps":
        return f"{label}: widths {content['narrowest']:g} to {content['widest']:g}"
    return label


def _draw_published(axes, styles, medians):
    """Draw the published curves in one scale, that which is nearest to ours over all of them."""
    curves = {
        name: (n + published.SHIFT, value)
        for name, (n, value) in published.curves("out_of_model").items()
        if name in medians
    }
    differences = []
    for name, (at, value) in curves.items():
        n, ours = medians[name]
        inside = (at >= n[0]) & (at <= n[-1])
        nearest = np.exp(np.interp(np.log(at[inside]), np.log(n), np.log(ours)))
        differences.append(np.log(nearest / value[inside]))
    differences = np.concatenate([[], *differences])
    if not len(differences):
        return []
    factor = np.exp(differences.mean())
    scaled = {name: (n, factor * value) for name, (n, value) in curves.items()}
    panels.draw_published(axes, scaled, styles, axes.get_xlim()[1])
    return [
        panels.THIN_LINES,
        f"Their n is drawn as n + {published.SHIFT}. They do not say how they drew functions,",
        "so all their errors in a panel are multiplied by one factor: compare shapes only.",
    ]
