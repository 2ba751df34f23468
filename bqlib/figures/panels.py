"""What figures of curves against n share: a grid of panels, lines with bands, notes, a legend."""

import textwrap
from itertools import product

import numpy as np
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bqlib.figures import style
from bqlib.rates import log_spaced
from bqlib.schema import FAILED, MISSING, OK, SWEEP_DIMS

COLUMNS = {1: 1, 2: 2, 3: 3, 4: 2}  # of so many panels
LETTERS = {1: 60, 2: 42, 3: 28}  # that fit on a line of notes, where so many panels share a row


def pairs(dataset, **more):
    """Title to selection of each target and kernel, with each label of `more` dimensions."""
    dims = {"target": dataset["target"].values, "kernel": dataset["kernel"].values, **more}
    return {
        ", ".join(labels): dict(zip(dims, labels, strict=True))
        for labels in product(*dims.values())
    }


def grid(groups, lengthscales, ylabel, columns=COLUMNS):
    """A figure with a panel for each length-scale in each group.

    Parameters
    ----------
    groups : dict
        Title of a group to what it selects of a dataset, such as its target and kernel.
    lengthscales : sequence of float
    ylabel : str
    columns : dict
        Number of length-scales to how many panels stand side by side, 3 where it is not there.

    Returns
    -------
    figure : matplotlib.figure.Figure
    panels : list of (Axes, dict)
        Each with what it selects.
    letters : int
        Letters that fit on a line of notes.
    """
    columns = columns.get(len(lengthscales), 3)
    rows_each = -(-len(lengthscales) // columns)
    rows = rows_each * len(groups)
    figure = Figure(
        figsize=(style.WIDTH if columns > 1 else 6.0, 3.9 * rows + 0.9), layout="constrained"
    )
    axes_grid = figure.subplots(rows, columns, sharex=True, sharey="row", squeeze=False)
    panels = []
    for g, (title, selected) in enumerate(groups.items()):
        own = axes_grid[g * rows_each : (g + 1) * rows_each].ravel()
        for axes in own[len(lengthscales) :]:
            axes.set_axis_off()
        for axes, lengthscale in zip(own, lengthscales, strict=False):
            name = f"length-scale {lengthscale:g}"
            axes.set_title(f"{title}\n{name}" if len(groups) > 1 else name)
            panels.append((axes, {**selected, "lengthscale": lengthscale}))
    label_outside(axes_grid)
    for axes in axes_grid[:, 0]:
        axes.set_ylabel(ylabel)
    return figure, panels, LETTERS[columns]


def label_outside(axes_grid):
    """Number the lowest panel of each column and say below it what n is."""
    last = len(axes_grid) - 1
    for i, j in np.ndindex(axes_grid.shape):
        if not axes_grid[i, j].axison:
            axes_grid[i - 1, j].tick_params(labelbottom=True)
        if i == last or not axes_grid[i + 1, j].axison:
            axes_grid[i, j].set_xlabel("number of points n")


def draw_curves(axes, dataset, name, selected, styles):
    """Draw a variable against n: for each algorithm the median over seeds, and their range.

    Parameters
    ----------
    axes : matplotlib.axes.Axes
    dataset : xarray.Dataset
    name : str
        The variable.
    selected : dict
        A cell of the sweep without its algorithm, and what else the variable needs.
    styles : dict
        Algorithm to keywords of ``Axes.plot``.

    Returns
    -------
    medians : dict
        Algorithm to (n, median); both end where the first seed ends.
    notes : list of str
        What is missing, and where curves end.
    """
    n = dataset["n"].values
    curves_of = dataset[name].sel(selected)
    statuses = dataset["status"].sel({dim: selected[dim] for dim in SWEEP_DIMS if dim in selected})
    medians, notes = {}, []
    for i, (algorithm, line) in enumerate(styles.items()):
        status = statuses.sel(algorithm=algorithm).values
        label = style.algorithm_name(algorithm)
        for value, word in ((FAILED, "failed"), (MISSING, "missing")):
            if (status == value).any():
                notes.append(f"{label}: {(status == value).sum()} of {len(status)} seeds {word}")
        curves = curves_of.sel(algorithm=algorithm).transpose("seed", "n").values[status == OK]
        if len(curves) == 0:
            continue
        lengths = np.where(np.isnan(curves).any(axis=1), np.isnan(curves).argmax(axis=1), len(n))
        last = lengths.min()
        if last < len(n):
            notes.append(f"{label}: {_ends(lengths, len(n))}")
        if last == 0:
            continue
        at = log_spaced(1, last, 100) - 1 if last > 1 else np.array([0])
        curves = curves[:, at]
        median = np.median(curves, axis=0)
        medians[algorithm] = (n[at], median)
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
    axes.set(xscale="log", xlim=(n[0], n[-1]))
    axes.xaxis.set_major_formatter("{x:g}")
    return medians, notes


def _ends(lengths, n):
    """Where the curves of an algorithm end, in words."""
    ended = lengths[lengths < n]
    first, last = ended.min(), ended.max()
    where = f"n = {first}" if first == last else f"n = {first} to {last}"
    if len(ended) == len(lengths):
        return f"float64 ends at {where}"
    return f"float64 ends at {where} in {len(ended)} of {len(lengths)} seeds"


def draw_guides(axes, n, top):
    """The slopes 1/n and 1/sqrt(n), a little above the level `top` at the first n."""
    ends = n[[0, -1]].astype(float)
    for power, label in ((1.0, "$1/n$"), (0.5, r"$1/\sqrt{n}$")):
        level = 1.5 * top * (ends / ends[0]) ** -power
        axes.plot(ends, level, color="#808080", linewidth=0.9, linestyle=(0, (1, 2)), zorder=1)
        axes.annotate(
            label, (ends[1], level[1]), xytext=(3, 0), textcoords="offset points", va="center",
            color="#555555", fontsize=8.5,
        )  # fmt: skip


def draw_published(axes, curves, styles, largest, kind="published", **line):
    """Draw published curves, {algorithm: (n, value)}, thin and behind ours, up to n = `largest`.

    Each ends in the marker of its algorithm, small and full.
    """
    for algorithm, (n, value) in curves.items():
        inside = (n >= 1) & (n <= largest)
        if algorithm in styles and inside.any():
            marker = styles[algorithm]["marker"]
            looks = {"marker": marker, "markersize": 3.5, "markevery": [-1], "clip_on": False}
            axes.plot(
                n[inside], value[inside], gid=f"{kind} {algorithm}",
                **{"color": "#333333", "linewidth": 0.8, "zorder": 1.5} | looks | line,
            )  # fmt: skip


def write(axes, notes, letters, corner="lower left"):
    """Write notes into a corner of a panel, with so many letters on a line."""
    vertical, horizontal = corner.split()
    lines = [textwrap.fill(note, letters, subsequent_indent="  ") for note in notes]
    axes.text(
        0.03 if horizontal == "left" else 0.97, 0.03 if vertical == "lower" else 0.97,
        "\n".join(lines), transform=axes.transAxes, fontsize=8, linespacing=1.3, gid="notes",
        ha=horizontal, va={"lower": "bottom", "upper": "top"}[vertical],
        bbox={"facecolor": "white", "alpha": 0.7, "linewidth": 0, "pad": 1},
    )  # fmt: skip


def legend(figure, styles, seeds, *sentences):
    """The legend below a figure: its algorithms, what lines and bands are, and more sentences."""
    handles = [
        Line2D([], [], **line, **style.MARKER, label=style.algorithm_name(algorithm))
        for algorithm, line in styles.items()
    ]
    first = "One seed."
    if seeds > 1:
        first = f"Lines with markers: median of {seeds} seeds. Bands: smallest to largest seed."
    figure.legend(
        handles=handles, loc="outside lower center", ncols=min(len(handles), 4), handlelength=3.5,
        title="\n".join([first, *sentences]), title_fontsize=9, alignment="left",
    )  # fmt: skip
