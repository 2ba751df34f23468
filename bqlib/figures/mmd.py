"""MMD against n: how far the weighted points are from their target."""

import json
import textwrap

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bqlib import published
from bqlib.figures import style
from bqlib.rates import log_spaced
from bqlib.schema import FAILED, MISSING, OK

# Panels side by side, and letters that fit on a line of notes in one.
COLUMNS = {1: 1, 2: 2, 3: 3, 4: 2}
LETTERS = {1: 60, 2: 42, 3: 28}


def mmd(dataset):
    """MMD against n, a panel for each target, kernel and length-scale.

    A line is the median over seeds and its band goes from the smallest to the largest seed. Both
    end where the first seed ends. Where a panel has the settings of Huszar and Duvenaud (2012),
    their curves are drawn behind ours.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it.

    Returns
    -------
    matplotlib.figure.Figure
    """
    kernels = json.loads(dataset.attrs["config"])["kernels"]
    dataset = dataset[["mmd", "status"]].compute()
    lengthscales = dataset["lengthscale"].values
    pairs = [(t, k) for t in dataset["target"].values for k in dataset["kernel"].values]
    columns = COLUMNS.get(len(lengthscales), 3)
    rows_each = -(-len(lengthscales) // columns)
    rows = rows_each * len(pairs)
    styles = style.line_styles(list(dataset["algorithm"].values))
    compared = False
    with rc_context(style.RC):
        figure = Figure(
            figsize=(style.WIDTH if columns > 1 else 6.0, 3.9 * rows + 0.9), layout="constrained"
        )
        grid = figure.subplots(rows, columns, sharex=True, sharey="row", squeeze=False)
        for p, (target, kernel) in enumerate(pairs):
            panels = grid[p * rows_each : (p + 1) * rows_each].ravel()
            for axes in panels[len(lengthscales) :]:
                axes.set_axis_off()
            for axes, lengthscale in zip(panels, lengthscales, strict=False):
                title = f"length-scale {lengthscale:g}"
                axes.set_title(f"{target}, {kernel}\n{title}" if len(pairs) > 1 else title)
                if published.is_the_papers(target, kernels[kernel], float(lengthscale)):
                    compared = True
                    _draw_published(axes, styles, dataset["n"].values[-1])
                cell = {"target": target, "kernel": kernel, "lengthscale": lengthscale}
                notes = _draw_panel(axes, dataset.sel(cell), styles)
                _write(axes, notes, LETTERS[columns])
        for i, j in np.ndindex(grid.shape):
            if not grid[i, j].axison:
                grid[i - 1, j].tick_params(labelbottom=True)
            if i == rows - 1 or not grid[i + 1, j].axison:
                grid[i, j].set_xlabel("number of points n")
        for axes in grid[:, 0]:
            axes.set_ylabel("MMD to the target")
        _legend(figure, styles, dataset.sizes["seed"], compared)
    return figure


def _draw_panel(axes, panel, styles):
    """Draw one panel, and give the notes that belong in it."""
    n = panel["n"].values
    notes, tops = [], []
    for i, (algorithm, line) in enumerate(styles.items()):
        cell = panel.sel(algorithm=algorithm)
        status = cell["status"].values
        name = style.algorithm_name(algorithm)
        for value, word in ((FAILED, "failed"), (MISSING, "missing")):
            if (status == value).any():
                notes.append(f"{name}: {(status == value).sum()} of {len(status)} seeds {word}")
        curves = cell["mmd"].transpose("seed", "n").values[status == OK]
        if len(curves) == 0:
            continue
        lengths = np.where(np.isnan(curves).any(axis=1), np.isnan(curves).argmax(axis=1), len(n))
        last = lengths.min()
        if last < len(n):
            notes.append(f"{name}: {_ends(lengths, len(n))}")
        if last == 0:
            continue
        at = log_spaced(1, last, 100) - 1 if last > 1 else np.array([0])
        curves = curves[:, at]
        median = np.median(curves, axis=0)
        tops.append(median[0])
        color = line["color"]
        axes.fill_between(
            n[at], curves.min(axis=0), curves.max(axis=0), color=color, alpha=0.2, linewidth=0
        )
        axes.plot(
            n[at], median, **line, **style.MARKER, gid=f"median {algorithm}",
            markevery=(0.02 + 0.14 * i / len(styles), 0.14),
        )  # fmt: skip
        if last < len(n):
            axes.plot(
                n[last - 1], median[-1], color=color, marker="x", markersize=8, linestyle="none",
                markeredgewidth=2, gid=f"end {algorithm}",
            )  # fmt: skip
    axes.set(xscale="log", yscale="log", xlim=(n[0], n[-1]))
    if tops:
        _draw_guides(axes, n, max(tops))
    axes.xaxis.set_major_formatter("{x:g}")
    return notes


def _write(axes, notes, letters):
    lines = [textwrap.fill(note, letters, subsequent_indent="  ") for note in notes]
    axes.text(
        0.03, 0.03, "\n".join(lines), transform=axes.transAxes, fontsize=8, va="bottom",
        linespacing=1.3, gid="notes",
        bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 1},
    )  # fmt: skip


def _ends(lengths, n):
    """Where the curves of an algorithm end, in words."""
    ended = lengths[lengths < n]
    first, last = ended.min(), ended.max()
    where = f"n = {first}" if first == last else f"n = {first} to {last}"
    if len(ended) == len(lengths):
        return f"float64 ends at {where}"
    return f"float64 ends at {where} in {len(ended)} of {len(lengths)} seeds"


def _draw_guides(axes, n, top):
    """The slopes 1/n and 1/sqrt(n), a little above the highest curve."""
    ends = n[[0, -1]].astype(float)
    for power, label in ((1.0, "$1/n$"), (0.5, r"$1/\sqrt{n}$")):
        level = 1.5 * top * (ends / ends[0]) ** -power
        axes.plot(ends, level, color="#808080", linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
        axes.annotate(
            label, (ends[1], level[1]), xytext=(3, 0), textcoords="offset points", va="center",
            color="#555555", fontsize=8.5,
        )  # fmt: skip


def _draw_published(axes, styles, largest):
    for algorithm, (n, value) in published.curves("mmd").items():
        if algorithm in styles:
            axes.plot(
                n[n <= largest], value[n <= largest], color="#333333", linewidth=0.8, zorder=1.5,
                gid=f"published {algorithm}",
            )  # fmt: skip


def _legend(figure, styles, seeds, compared):
    handles = [
        Line2D([], [], **line, **style.MARKER, label=style.algorithm_name(algorithm))
        for algorithm, line in styles.items()
    ]
    text = "One seed."
    if seeds > 1:
        text = f"Lines with markers: median of {seeds} seeds. Bands: smallest to largest seed."
    if compared:
        text += "\nThin lines: published by Huszár and Duvenaud (2012)."
    figure.legend(
        handles=handles, loc="outside lower center", ncols=min(len(handles), 4), handlelength=3.5,
        title=text, title_fontsize=9, alignment="left",
    )  # fmt: skip
