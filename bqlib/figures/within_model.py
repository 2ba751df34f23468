"""Errors on functions of the kernel's own space, against n."""

from bqlib import published
from bqlib.analysis.cells import integrands_of
from bqlib.analysis.paper import is_papers_cell
from bqlib.figures import panels, style
from bqlib.figures.pages import of_lengthscales


def within_model(dataset, page=1):
    """Mean absolute error over functions within the model, a panel for each length-scale.

    Lines and bands are those of :func:`bqlib.figures.mmd.mmd`. Where a panel has the settings of
    Huszar and Duvenaud (2012), their curves are drawn behind ours twice: as printed, and with
    their n made larger by 29, where they meet ours.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it, of a sweep with integrands of the kernel's space.
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
    integrands = integrands_of(dataset, within=True)
    dataset = dataset[["error", "status"]].sel(integrand=integrands).compute()
    n = dataset["n"].values
    styles = panels.styles_of(dataset)
    more = {"integrand": integrands} if len(integrands) > 1 else {}
    sentences = []
    with style.ours():
        groups = panels.pairs(dataset, **more)
        pages, columns = of_lengthscales(list(groups), dataset["lengthscale"].values, three=2)
        figure, cells, letters, said = panels.grid_of_lengthscales(
            groups, pages, columns, page, "mean absolute error"
        )
        for axes, cell in cells:
            cell = {"integrand": integrands[0]} | cell
            if is_papers_cell(dataset, cell):
                sentences = _draw_published(axes, styles, n[-1])
            medians, notes = panels.draw_curves(axes, dataset, "error", cell, styles)
            axes.set_yscale("log")
            if medians:
                panels.draw_guides(axes, n, max(median[0] for _, median in medians.values()))
            panels.write(axes, notes, letters)
        panels.legend(
            figure, *said, panels.about_seeds(dataset.sizes["seed"]), *panels.about_sets(dataset),
            *sentences, handles=panels.handles(styles),
        )  # fmt: skip
    return figure


def _draw_published(axes, styles, largest):
    curves = published.curves("within_model")
    printed = {name: (n - published.SHIFT, value) for name, (n, value) in curves.items()}
    panels.draw_published(axes, curves, styles, largest)
    panels.draw_published(
        axes, printed, styles, largest, kind="printed", color="#909090", linestyle="--", marker=""
    )
    return [
        panels.THIN_LINES,
        f"Dashed: as printed. Solid: with n + {published.SHIFT} instead of n.",
    ]
