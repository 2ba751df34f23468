"""MMD against n: how far the weighted points are from their target."""

import numpy as np

from bqlib import published
from bqlib.analysis.cells import best_known_of
from bqlib.analysis.paper import is_papers_cell
from bqlib.analysis.papers import hayakawa2022_setting
from bqlib.figures import panels, style
from bqlib.figures.pages import of_lengthscales


def mmd(dataset, page=1):
    """MMD against n, a panel for each target, kernel and length-scale.

    A line is the median over seeds and its band goes from the smallest to the largest seed. Both
    end where the first seed ends. Where a panel has the settings of Huszar and Duvenaud (2012),
    their curves are drawn behind ours; where it has those of Hayakawa, Oberhauser and Lyons (2022),
    the square roots of their mean squared errors. Where the best designs are known, their MMD is
    drawn too: see :func:`bqlib.best_known`.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it.
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
    dataset = dataset[["mmd", "status"]].compute()
    n = dataset["n"].values
    styles = panels.styles_of(dataset)
    sentences, known = [], []
    with style.ours():
        pairs = panels.pairs(dataset)
        pages, columns = of_lengthscales(list(pairs), dataset["lengthscale"].values)
        figure, cells, letters, said = panels.grid_of_lengthscales(
            pairs, pages, columns, page, "MMD to the target"
        )
        for axes, cell in cells:
            if is_papers_cell(dataset, cell):
                panels.draw_published(axes, published.curves("mmd"), styles, n[-1])
                sentences = [panels.THIN_LINES]
            if (setting := hayakawa2022_setting(dataset, cell)) is not None:
                found = published.hayakawa2022(*setting).items()
                roots = {name: (size, np.sqrt(mean)) for name, (size, mean, _) in found}
                panels.draw_published(axes, roots, styles, n[-1])
                sentences = [panels.THIN_LINES_OF_MEANS]
            medians, notes = panels.draw_curves(axes, dataset, "mmd", cell, styles)
            if medians and (best := best_known_of(dataset, cell)) is not None:
                panels.draw_best_known(axes, *best, n[-1])
                known = [panels.BEST_KNOWN]
            axes.set_yscale("log")
            if medians:
                panels.draw_guides(axes, n, max(median[0] for _, median in medians.values()))
            panels.write(axes, notes, letters)
        panels.legend(
            figure, *said, panels.about_seeds(dataset.sizes["seed"]), *panels.about_sets(dataset),
            *sentences, *known, *panels.about_absent(dataset), handles=panels.handles(styles),
        )  # fmt: skip
    return figure
