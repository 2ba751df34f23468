"""What figures share: a grid of panels, lines with bands, notes and a legend above."""

import textwrap
from itertools import chain, product

import numpy as np
from matplotlib.lines import Line2D

from bqlib.figures import style
from bqlib.figures.pages import page_of
from bqlib.over_seeds import FEWEST_SEEDS, mean_interval
from bqlib.rates import log_spaced
from bqlib.schema import (
    DOES_NOT_APPLY,
    FAILED,
    MISSING,
    OF_PROBLEM,
    OK,
    POOLS,
    SWEEP_DIMS,
    ends_of_sweeps,
    several_pools,
    sizes_of_sets,
)

LETTERS = {1: 60, 2: 42, 3: 28}  # that fit on a line of notes, where so many panels share a row
SETS = "Faint lines with a marker at each size: sets, which are made anew for each n."
BEST_KNOWN = "Dotted, in dark grey: the best designs known, each for its own n."
THIN_LINES = "Thin lines with a marker at the end: published by Huszár and Duvenaud (2012)."
BOLD_LETTERS_AN_INCH = 10  # of titles
LETTERS_AN_INCH, HANDLE = 13, 0.75  # of a legend, and the inches of a line and a gap in it
THIN_LINES_OF_MEANS = (
    "Thin lines with a marker at the end: roots of the mean squared errors published by Hayakawa, "
    "Oberhauser and Lyons (2022)."
)


def grid(
    count, columns, *, width, height, margin, groups=1, sharey=True, xlabel="number of points n",
    ylabel="",
):  # fmt: skip
    """A figure with panels in rows, of which only the outer ones have labels.

    Parameters
    ----------
    count : int
        Panels in each group.
    columns : int
        Panels side by side.
    width, height, margin : float
        Inches: of the figure, of a row of panels, and of all that is above and below the rows.
    groups : int
        Each starts a row of its own.
    sharey : bool or {"row"}
        Which panels have the same y axis; all have the same x axis.
    xlabel, ylabel : str
        Below the lowest panel of each column, and beside the first panel of each row.

    Returns
    -------
    figure : matplotlib.figure.Figure
    axes : numpy.ndarray
        Of Axes, with shape (groups, count).
    """
    rows_each = -(-count // columns)
    rows = groups * rows_each
    figure = style.figure(width, height * rows + margin)
    places = figure.subplots(rows, columns, sharex=True, sharey=sharey, squeeze=False)
    by_group = places.reshape(groups, rows_each * columns)
    for axes in by_group[:, count:].flat:
        axes.set_axis_off()
    for i, j in np.ndindex(places.shape):
        if not places[i, j].axison:
            places[i - 1, j].tick_params(labelbottom=True)
        if i == rows - 1 or not places[i + 1, j].axison:
            places[i, j].set_xlabel(xlabel)
    for axes in places[:, 0]:
        axes.set_ylabel(ylabel)
    return figure, by_group[:, :count]


def titles(names, inches):
    """Titles of panels that are so wide: all on one line, or all with a line for each name.

    Names that are too long for a line are broken at blanks and underscores.

    Parameters
    ----------
    names : list of list of str
        Of each panel.
    inches : float

    Returns
    -------
    list of str

    Examples
    --------
    >>> from bqlib.figures.panels import titles
    >>> titles([["eq", "SBQ"], ["eq", "herding"]], 1.2)
    ['eq, SBQ', 'eq, herding']
    >>> titles([["eq", "SBQ"], ["eq", "herding, BQ weights"]], 1.2)
    ['eq\\nSBQ', 'eq\\nherding, BQ\\nweights']
    """
    letters = max(6, int(BOLD_LETTERS_AN_INCH * inches))
    together = [", ".join(own) for own in names]
    if max(map(len, together)) <= letters:
        return together
    return ["\n".join(_broken(name, letters) for name in own) for own in names]


def _broken(name, letters):
    lines = textwrap.wrap(name.replace("_", "_ "), letters, break_on_hyphens=False)
    return "\n".join(line.replace("_ ", "_") for line in lines)


def pairs(dataset, **more):
    """Title to selection of each target and kernel, with each label of `more` dimensions.

    The title is empty where there is only one. A dataset with several pools is refused.
    """
    if POOLS in dataset.dims:
        raise ValueError(f"{several_pools(dataset)}, or draw .bq.plot.curves()")
    dims = {"target": dataset["target"].values, "kernel": dataset["kernel"].values, **more}
    every = list(product(*dims.values()))
    titles = [", ".join(label for label in labels if label != OF_PROBLEM) for labels in every]
    return {
        title if len(every) > 1 else "": dict(zip(dims, labels, strict=True))
        for title, labels in zip(titles, every, strict=True)
    }


def grid_of_lengthscales(groups, pages, columns, page, ylabel):
    """A page of a figure with a panel for each length-scale in each group.

    Parameters
    ----------
    groups : dict
        Title of a group to what it selects of a dataset, as :func:`pairs` gives them.
    pages, columns
        As :func:`bqlib.figures.pages.of_lengthscales` gives them of these titles.
    page : int
    ylabel : str

    Returns
    -------
    figure : matplotlib.figure.Figure
    panels : list of (Axes, dict)
        Each with what it selects.
    letters : int
        Letters that fit on a line of notes.
    said : list of str
        Which page it is, if there are several.
    """
    shown, said = page_of(pages, page)
    side_by_side = len({title for title, _ in shown[0]}) > 1
    figure, by_group = grid(
        len(shown[0]), columns, width=style.WIDTH if columns > 1 else 6.0, height=3.9, margin=0.9,
        groups=len(shown), sharey=not side_by_side and "row", ylabel=ylabel,
    )  # fmt: skip
    panels = []
    for axes, (title, lengthscale) in zip(by_group.flat, chain(*shown), strict=True):
        selected = {**groups[title], "lengthscale": lengthscale}
        own = "" if selected["kernel"] == OF_PROBLEM else f"\nlength-scale {lengthscale:g}"
        axes.set_title(f"{title}{own}".strip())
        panels.append((axes, selected))
    return figure, panels, LETTERS[columns], said


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
        Algorithm to (n, median); both end where the first seed ends. Of a set, n are its sizes.
    notes : list of str
        What is missing, and where curves end.
    """
    n = dataset["n"].values
    sets, ends = sizes_of_sets(dataset), ends_of_sweeps(dataset.attrs)
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
        sizes = np.array([size for size in sets.get(algorithm, n) if size <= n[-1]], dtype=int)
        if not len(sizes):
            continue
        curves = curves[:, sizes - 1]
        counts = np.where(np.isnan(curves).any(axis=1), np.isnan(curves).argmax(axis=1), len(sizes))
        last = counts.min(initial=len(sizes))
        lengths = np.append(0, sizes)[counts]
        notes += _ends(label, lengths, sizes[-1], ends)
        if last == 0:
            continue
        if algorithm in sets:
            chosen, marks = np.arange(last), None
        else:
            chosen = log_spaced(1, last, 100) - 1 if last > 1 else np.array([0])
            marks = markevery(i, len(styles))
        curves, at = curves[:, chosen], sizes[chosen] - 1
        median = np.median(curves, axis=0)
        medians[algorithm] = (n[at], median)
        color = line["color"]
        axes.fill_between(
            n[at], curves.min(axis=0), curves.max(axis=0), color=color, alpha=0.2, linewidth=0
        )
        axes.plot(
            n[at], median, **line, **style.MARKER, gid=f"median {algorithm}", markevery=marks,
            clip_on=algorithm not in sets,
        )  # fmt: skip
        if last < len(sizes) and lengths.min() not in ends:
            axes.plot(
                sizes[last - 1], median[-1], color=color, marker="x", markersize=8,
                linestyle="none", markeredgewidth=2, gid=f"end {algorithm}",
            )  # fmt: skip
    spread_n(axes, n)
    return medians, notes


def _ends(label, lengths, n, ends_of_sweeps):
    """Notes on where curves of an algorithm end before n: their sweep does, or float64 fails."""
    short = lengths[lengths < n]
    of_sweeps = np.isin(short, list(ends_of_sweeps))
    notes = []
    for ended, how, why in (
        (short[of_sweeps], ": run to", ""),
        (short[~of_sweeps], " ends at", " (float64)"),
    ):
        if len(ended):
            first, last = ended.min(), ended.max()
            where = f"{first}" if first == last else f"{first} to {last}"
            few = "" if len(ended) == len(lengths) else f" in {len(ended)} of {len(lengths)} seeds"
            notes.append(f"{label}{how} n\N{NO-BREAK SPACE}=\N{NO-BREAK SPACE}{where}{few}{why}")
    return notes


def draw_means(axes, n, values, look, back, **more):
    """Draw `back` of the means over seeds of `values` (S, len(n)), and of their 95 % intervals."""
    mean, low, high = back(np.array(mean_interval(values)))
    axes.fill_between(n, low, high, color=look["color"], alpha=0.2, linewidth=0)
    axes.plot(n, mean, **look, **style.MARKER, **more)


def markevery(i, count):
    """Where line i of `count` has its markers, so that they do not hide those of the others."""
    return (0.02 + 0.14 * i / count, 0.14)


def spread_n(axes, n):
    """Give a panel a logarithmic axis of n, with numbers such as 10 and 100."""
    axes.set(xscale="log", xlim=(n[0], n[-1]))
    axes.xaxis.set_major_formatter("{x:g}")


def draw_guides(axes, n, top):
    """The slopes 1/n and 1/sqrt(n), a little above the level `top` at the first n."""
    ends = n[[0, -1]].astype(float)
    for power, label in ((1.0, "$1/n$"), (0.5, r"$1/\sqrt{n}$")):
        level = 1.5 * top * (ends / ends[0]) ** -power
        axes.plot(ends, level, **style.GUIDE)
        axes.annotate(label, (ends[1], level[1]), xytext=(3, 0), va="center", **style.GUIDE_WORDS)


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


def draw_best_known(axes, n, value, largest):
    """The least MMD known, dotted, where n is at most `largest`."""
    inside = n <= largest
    marks = {"marker": "."} if len(n) < 20 else {}
    axes.plot(
        n[inside], value[inside], color="#333333", linewidth=1.1, linestyle=(0, (1, 1)), zorder=1.5,
        gid="best known", clip_on=False, **marks,
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


def legend(figure, *sentences, handles=None, columns=4):
    """The legend above the panels: sentences on what is drawn, and its lines.

    By default the lines are those that have labels in the panels. Sentences are broken
    into lines that fit into the figure, and long labels stand in fewer columns.
    """
    width = figure.get_figwidth()
    sentences = [textwrap.fill(sentence, int(LETTERS_AN_INCH * width)) for sentence in sentences]
    longest = max((len(handle.get_label()) for handle in handles or ()), default=0)
    columns = max(1, min(columns, int(width / (HANDLE + longest / LETTERS_AN_INCH))))
    figure.legend(
        handles=handles, loc="outside upper left", ncols=columns, handlelength=3.5,
        title="\n".join(sentences), title_fontsize=9, alignment="left",
    )  # fmt: skip


def handles(styles):
    """Lines for a legend, one for each algorithm."""
    return [
        Line2D([], [], **line, **style.MARKER, label=style.algorithm_name(algorithm))
        for algorithm, line in styles.items()
    ]


def styles_of(dataset):
    """Algorithm to keywords of ``Axes.plot``, for all algorithms of a dataset."""
    return style.line_styles(dataset["algorithm"].values.tolist(), sizes_of_sets(dataset))


def about_seeds(seeds):
    """What the lines and bands of :func:`draw_curves` are, for a legend."""
    if seeds == 1:
        return "One seed."
    return f"Lines with markers: median of {seeds} seeds. Bands: smallest to largest value."


def about_absent(dataset):
    """What to say of rules that cannot work on a problem, if there are any."""
    if not (dataset["status"] == DOES_NOT_APPLY).any():
        return []
    return ["A rule has no curve on a problem on which it cannot work."]


def about_sets(dataset):
    """How sets are drawn, for a legend: a sentence, or none if there are no sets."""
    sets = sizes_of_sets(dataset)
    return [SETS] if any(name in sets for name in dataset["algorithm"].values) else []


def about_means(seeds, kind="mean"):
    """What the lines and bands of :func:`draw_means` are, for a legend."""
    if seeds == 1:
        return "One seed."
    bands = f" Bands: 95 % interval of the {kind}." if seeds >= FEWEST_SEEDS else ""
    return f"Lines: {kind} of {seeds} seeds.{bands}"
