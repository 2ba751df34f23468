"""How fast errors fall: local slopes, and n times the MMD."""

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bqlib.figures import style
from bqlib.rates import local_slopes, log_spaced, mean_interval
from bqlib.schema import OK

FIRST = 5  # below it a slope is that of the first few points


def slopes(dataset):
    """Local slopes of the MMD and n MMD against n, a column for each length-scale.

    A local slope is log2(e_n / e_2n), where e_n is the MMD of n points: it is a for n^-a. Lines
    are means over seeds (of log MMD, in the lower row), and bands their 95 % intervals.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it.

    Returns
    -------
    matplotlib.figure.Figure
    """
    looks = style.line_styles(list(dataset["algorithm"].values))
    dataset = dataset[["mmd", "status"]].compute()
    cells = [
        {"target": target, "kernel": kernel, "lengthscale": lengthscale}
        for target in dataset["target"].values
        for kernel in dataset["kernel"].values
        for lengthscale in dataset["lengthscale"].values
    ]
    columns = dataset.sizes["lengthscale"]
    pairs = len(cells) // columns
    with rc_context(style.RC):
        figure = Figure(figsize=(max(6.0, 3.0 * columns), 5.6 * pairs + 0.9), layout="constrained")
        grid = figure.subplots(2 * pairs, columns, sharex=True, sharey="row", squeeze=False)
        for i, cell in enumerate(cells):
            row, column = 2 * (i // columns), i % columns
            title = f"length-scale {cell['lengthscale']:g}"
            if pairs > 1:
                title = f"{cell['target']}, {cell['kernel']}\n{title}"
            grid[row, column].set_title(title)
            _draw_cell(*grid[row : row + 2, column], dataset.sel(cell), looks)
            if column == 0:
                grid[row, 0].set_ylabel(r"$\log_2(\mathrm{MMD}_n\,/\,\mathrm{MMD}_{2n})$")
                grid[row + 1, 0].set_ylabel(r"$n \times \mathrm{MMD}_n$")
        for axes in grid[-1]:
            axes.set_xlabel("number of points n")
        handles = [
            Line2D([], [], **look, **style.MARKER, label=style.algorithm_name(algorithm))
            for algorithm, look in looks.items()
        ]
        figure.legend(
            handles=handles, loc="outside lower center", ncols=4, handlelength=3.5,
            title="Lines: mean over seeds. Bands: its 95 % interval.", title_fontsize=9,
            alignment="left",
        )  # fmt: skip
    return figure


def _draw_cell(upper, lower, panel, looks):
    n = panel["n"].values
    for i, (algorithm, look) in enumerate(looks.items()):
        cell = panel.sel(algorithm=algorithm)
        curves = cell["mmd"].transpose("seed", "n").values[cell["status"].values == OK]
        curves = curves[:, ~np.isnan(curves).any(axis=0)] if len(curves) else np.empty((0, 0))
        last = curves.shape[1]
        if last <= 2 * FIRST:
            continue
        every = (0.02 + 0.14 * i / len(looks), 0.14)
        at = log_spaced(FIRST, last // 2, 40)
        _draw(upper, at, local_slopes(curves)[:, at - 1], look, every)
        at = log_spaced(1, last, 60)
        _draw(lower, at, np.log(at * curves[:, at - 1]), look, every, np.exp)
    for slope, label in ((0.5, "1/2"), (1.0, "1")):
        upper.axhline(slope, color="#808080", linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
        upper.annotate(
            label, (1, slope), xycoords=("axes fraction", "data"), xytext=(3, 0),
            textcoords="offset points", va="center", color="#555555", fontsize=8.5,
        )  # fmt: skip
    upper.set(xscale="log", xlim=(n[0], n[-1]))
    lower.set(xscale="log", yscale="log", xlim=(n[0], n[-1]))
    lower.xaxis.set_major_formatter("{x:g}")


def _draw(axes, at, values, look, every, back=lambda x: x):
    """A line through the means over seeds (S, len(at)), and its band, by `back` of them."""
    mean, low, high = back(np.transpose([mean_interval(column) for column in values.T]))
    axes.fill_between(at, low, high, color=look["color"], alpha=0.2, linewidth=0)
    axes.plot(at, mean, **look, **style.MARKER, markevery=every)
