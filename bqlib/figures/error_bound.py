"""Errors of single functions against n, with the bound that the MMD is."""

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bqlib import published
from bqlib.analysis.paper import is_the_papers
from bqlib.figures import panels, style
from bqlib.rates import log_spaced
from bqlib.schema import OK

PUBLISHED = {"marker": "", "color": "#CC79A7", "linewidth": 1.8, "linestyle": "--", "zorder": 3}


def error_bound(dataset, errors):
    """Errors of single functions of norm one and their bound, a panel for each algorithm.

    In each panel is said how near the bound any function comes, of all functions, seeds and n.
    Where the cell has the settings of Huszar and Duvenaud (2012), the curve that they print as a
    bound is drawn too: the square of the MMD, which is none.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it.
    errors : xarray.Dataset
        As :func:`bqlib.analysis.function_errors.function_errors` computes it from `dataset`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    cell = {name: errors[name].item() for name in ("target", "kernel", "lengthscale")}
    ratios = dataset["bound_ratio"].sel(cell | {"integrand": errors["integrand"].item()})
    ratios = ratios.where(dataset["status"].sel(cell) == OK).max(["seed", "n"]).compute()
    n = errors["n"].values
    at = log_spaced(1, n[-1], 150) - 1 if n[-1] > 1 else np.array([0])
    styles = style.line_styles(list(errors["algorithm"].values))
    compared = is_the_papers(dataset, cell)
    columns = min(2, len(styles))
    rows = -(-len(styles) // columns)
    with rc_context(style.RC):
        figure = Figure(figsize=(style.WIDTH, 3.4 * rows + 1), layout="constrained")
        grid = figure.subplots(rows, columns, sharex=True, sharey=True, squeeze=False)
        for axes in grid.ravel()[len(styles) :]:
            axes.set_axis_off()
        for axes, (algorithm, line) in zip(grid.ravel(), styles.items(), strict=False):
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
            note = "" if np.isnan(ratio) else f"largest error of all: {ratio:.2f} of its bound"
            panels.write(axes, [note], panels.LETTERS[2])
            axes.set(xscale="log", yscale="log", xlim=(n[0], n[-1]))
            axes.xaxis.set_major_formatter("{x:g}")
        panels.label_outside(grid)
        for axes in grid[:, 0]:
            axes.set_ylabel("absolute error, MMD")
        _legend(figure, errors, dataset.sizes["seed"], compared and "sbq" in styles)
    return figure


def _legend(figure, errors, seeds, compared):
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
        f"{errors['target'].item()}, length-scale {errors['lengthscale'].item():g}. Lines are of "
        f"seed {errors['seed'].item()}; the largest error is over all functions, n and {seeds} "
        "seeds."
    )
    figure.legend(
        handles=handles, loc="outside lower center", ncols=3, handlelength=3.5, title=title,
        title_fontsize=9, alignment="left",
    )  # fmt: skip
