"""Errors of single functions against n, and their bound, the MMD."""

import numpy as np
from matplotlib.lines import Line2D

from bqlib import published
from bqlib.analysis.paper import is_papers_cell
from bqlib.figures import panels, style
from bqlib.figures.pages import of_error_bound, page_of
from bqlib.rates import log_spaced
from bqlib.schema import OK

PUBLISHED = {"marker": "", "color": "#CC79A7", "linewidth": 1.8, "linestyle": "--", "zorder": 3}


def error_bound(dataset, errors, page=1):
    """Errors of single functions of norm one and their bound, a panel for each algorithm.

    Each panel says how near the largest error comes to its bound, over all functions, seeds and
    n. At the settings of Huszar and Duvenaud (2012), the curve that they print as a bound is drawn
    too: it is the square of the MMD, which is not a bound.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it.
    errors : xarray.Dataset
        As :func:`bqlib.analysis.function_errors.function_errors` computes it from `dataset`.
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
    cell = {name: errors[name].item() for name in ("target", "kernel", "lengthscale")}
    ratios = dataset["bound_ratio"].sel(cell | {"integrand": errors["integrand"].item()})
    ratios = ratios.where(dataset["status"].sel(cell) == OK).max(["seed", "n"]).compute()
    n = errors["n"].values
    at = log_spaced(1, n[-1], 150) - 1 if n[-1] > 1 else np.array([0])
    styles = style.line_styles(list(errors["algorithm"].values))
    compared = is_papers_cell(dataset, cell)
    pages, columns = of_error_bound(list(styles))
    shown, said = page_of(pages, page)
    with style.ours():
        figure, (row,) = panels.grid(
            len(shown), columns, width=style.WIDTH, height=3.4 if columns < 3 else 2.9, margin=1.0,
            ylabel="absolute error, MMD",
        )  # fmt: skip
        for axes, algorithm in zip(row, shown, strict=True):
            line = styles[algorithm]
            axes.set_title(style.algorithm_name(algorithm))
            single = errors.sel(algorithm=algorithm).isel(n=at)
            bound = single["mmd"].values
            if np.isfinite(bound).any():
                axes.plot(
                    n[at], single["error"].transpose("n", "function").values,
                    color=line["color"], linewidth=0.6, alpha=0.6,
                )  # fmt: skip
                axes.plot(
                    n[at], bound, **line, **style.MARKER, markevery=(0.02, 0.14),
                    gid=f"bound {algorithm}",
                )  # fmt: skip
            if compared:
                curves = published.curves("bound")
                panels.draw_published(axes, curves, {algorithm: line}, n[-1], **PUBLISHED)
            ratio = float(ratios.sel(algorithm=algorithm))
            note = "" if np.isnan(ratio) else f"largest error: {ratio:.2f} of its bound"
            panels.write(axes, [note], panels.LETTERS[max(2, columns)])
            axes.set_yscale("log")
            panels.spread_n(axes, n)
        _legend(figure, said, errors, dataset.sizes["seed"], compared and "sbq" in shown)
    return figure


def _legend(figure, said, errors, seeds, compared):
    color = "#333333"
    handles = [
        Line2D([], [], color=color, marker="o", **style.MARKER, label="bound: MMD"),
        Line2D(
            [], [], color=color, linewidth=0.6, alpha=0.6,
            label=f"errors of {errors.sizes['function']} functions of norm one",
        ),
    ]  # fmt: skip
    if compared:
        label = "published as the bound: square of the MMD"
        handles.append(Line2D([], [], **PUBLISHED, label=label))
    title = (
        f"{errors['target'].item()}, length-scale {errors['lengthscale'].item():g}. Lines: seed "
        f"{errors['seed'].item()}. Largest error: over all functions, all n and "
        f"{style.counted(seeds, 'seed')}."
    )
    panels.legend(figure, *said, title, handles=handles, columns=3)
