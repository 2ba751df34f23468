"""How fast errors fall: local slopes, and n times the MMD."""

import numpy as np

from bqlib.figures import panels, style
from bqlib.figures.pages import of_slopes, page_of, spread
from bqlib.rates import local_slopes, log_spaced
from bqlib.schema import OK, sizes_of_sets

FIRST = 5  # below it a slope is that of the first few points


def slopes(dataset, page=1):
    """Local slopes of the MMD and n MMD against n, a column for each length-scale.

    A local slope is log2(e_n / e_2n), where e_n is the MMD of n points: it is a for n^-a. Lines
    are means over seeds (of log MMD, in the lower row), and bands are their 95 % intervals. A set
    has no local slopes, as it is not made at every n.

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
    looks = panels.styles_of(dataset)
    pairs = panels.pairs(dataset)
    pages, columns = of_slopes(list(pairs), dataset["lengthscale"].values)
    groups, said = page_of(pages, page)
    halves = [half for group in groups for half in spread([group], columns, rows=1)]
    with style.ours():
        figure, rows = panels.grid(
            columns, columns, width=max(6.0, 3.0 * columns), margin=0.9, groups=2 * len(halves),
            height=2.8 if len(halves) == 1 else 2.2, sharey="row",
        )  # fmt: skip
        for (cells,), upper, lower in zip(halves, rows[::2], rows[1::2], strict=True):
            upper[0].set_ylabel(r"$\log_2(\mathrm{MMD}_n\,/\,\mathrm{MMD}_{2n})$")
            lower[0].set_ylabel(r"$n \times \mathrm{MMD}_n$")
            for i, (title, lengthscale) in enumerate(cells):
                upper[i].set_title(f"{title}\nlength-scale {lengthscale:g}".strip())
                panel = dataset.sel(pairs[title] | {"lengthscale": lengthscale})
                _draw_cell(upper[i], lower[i], panel, looks)
            for j in range(len(cells), columns):
                upper[j].set_axis_off()
                lower[j].set_axis_off()
        panels.legend(
            figure,
            *said,
            panels.about_means(dataset.sizes["seed"]),
            *panels.about_sets(dataset),
            handles=panels.handles(looks),
        )
    return figure


def _draw_cell(upper, lower, panel, looks):
    n = panel["n"].values
    sets = sizes_of_sets(panel)
    for i, (algorithm, look) in enumerate(looks.items()):
        cell = panel.sel(algorithm=algorithm)
        curves = cell["mmd"].transpose("seed", "n").values[cell["status"].values == OK]
        if algorithm in sets:
            at = n[~np.isnan(curves).any(axis=0)] if len(curves) else n[:0]
            if len(at):
                values = np.log(at * curves[:, at - 1])
                panels.draw_means(lower, at, values, look=look, back=np.exp)
            continue
        curves = curves[:, ~np.isnan(curves).any(axis=0)] if len(curves) else np.empty((0, 0))
        last = curves.shape[1]
        if last <= 2 * FIRST:
            continue
        line = {"look": look, "markevery": panels.markevery(i, len(looks))}
        at = log_spaced(FIRST, last // 2, 40)
        panels.draw_means(upper, at, local_slopes(curves)[:, at - 1], back=np.array, **line)
        at = log_spaced(1, last, 60)
        panels.draw_means(lower, at, np.log(at * curves[:, at - 1]), back=np.exp, **line)
    for slope, label in ((0.5, "1/2"), (1.0, "1")):
        upper.axhline(slope, **style.GUIDE)
        upper.annotate(
            label, (1, slope), xycoords=("axes fraction", "data"), xytext=(3, 0), va="center",
            **style.GUIDE_WORDS,
        )  # fmt: skip
    lower.set_yscale("log")
    for axes in (upper, lower):
        panels.spread_n(axes, n)
