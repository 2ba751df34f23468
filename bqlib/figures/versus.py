"""Wins and losses of each pair of rules, as a matrix."""

import textwrap

import numpy as np
from matplotlib.colors import LogNorm, Normalize
from matplotlib.patches import Rectangle

from bqlib.analysis import profiles
from bqlib.figures import panels, style

MOST_WITH_NUMBERS = 36  # rules
KINDS = ("wins", "ratio")
WIDEST, LINE = 0.5, 0.18  # inches of a cell, and of a line of the legend


def versus(dataset):
    """Wins, ties and losses of each pair of algorithms of a sweep.

    See :func:`bqlib.analysis.profiles.versus` for what is counted, and :func:`draw` for what is
    drawn.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it.

    Returns
    -------
    matplotlib.figure.Figure
    """
    return draw(profiles.versus(dataset))


def draw(found, kind="wins"):
    """Draw a matrix of pairs, the algorithm with the most wins in the first row.

    Parameters
    ----------
    found : xarray.Dataset
        As :func:`bqlib.analysis.profiles.versus` gives it.
    kind : {"wins", "ratio"}
        Numbers are the wins of the row in %, and the colours wins less losses; or the ratio of
        the points of the row over those of the column, framed where its interval holds 1 or
        there is none.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If the kind is unknown.
    """
    if kind not in KINDS:
        raise ValueError(f'kind is "{kind}"; it must be one of {", ".join(KINDS)}')
    order = profiles.by_wins(found)
    found = found.sel(algorithm=order, rival=order)
    names = [style.algorithm_name(name) for name in order]
    beside = 0.075 * max(map(len, names)) + 0.3
    cell = min(WIDEST, (style.WIDTH - beside - 1.0) / len(order))
    inches = cell * len(order)
    wide = max(5.5, inches + beside + 1.0)
    with style.ours():
        about = _about(found, kind)
        lines = sum(len(textwrap.wrap(one, int(panels.LETTERS_AN_INCH * wide))) for one in about)
        figure = style.figure(wide, inches + beside + LINE * lines + 0.7)
        axes = figure.subplots()
        if kind == "wins":
            values = (found["wins"] - found["losses"]).values
            shown = values
            image = axes.imshow(shown, cmap="PuOr", norm=Normalize(-1, 1), gid="values")
            texts = _each(found["wins"].values, lambda share: f"{100 * share:.0f}")
            label = "share of wins less losses of the row"
        else:
            values = found["ratio"].values
            ends = np.where(values > 0, values, np.nan)
            far = np.exp(np.nanmax(np.abs(np.log(ends[np.isfinite(ends)])), initial=np.log(2)))
            shown = np.clip(values, 1 / far, far)
            image = axes.imshow(shown, cmap="PuOr_r", norm=LogNorm(1 / far, far), gid="values")
            texts = _each(values, _short)
            label = f"{found.attrs['of']} of the row over those of the column"
            _frame(axes, values, found["ratio_low"].values, found["ratio_high"].values)
        if len(order) <= MOST_WITH_NUMBERS:
            for (i, j), text in np.ndenumerate(texts):
                red, green, blue, _ = image.cmap(image.norm(shown[i, j]))
                dark = 0.3 * red + 0.59 * green + 0.11 * blue < 0.45
                axes.text(
                    j, i, text, ha="center", va="center", fontsize=min(9.0, 24 * cell),
                    color="white" if dark and i != j else "black",
                )  # fmt: skip
        axes.set_xticks(range(len(names)), names, rotation=90)
        axes.set_yticks(range(len(names)), names)
        axes.set_anchor("N")
        axes.tick_params(length=0, labelsize=min(9.0, 30 * cell))
        axes.grid(False)
        axes.spines[:].set_visible(False)
        bar = figure.colorbar(image, ax=axes, shrink=0.6, aspect=30, pad=0.02, panchor=False)
        bar.set_label(label)
        if kind == "ratio":
            bar.ax.yaxis.set_major_formatter("{x:g}")
            bar.ax.yaxis.set_minor_formatter("{x:g}" if far < 10 else "")
        bar.outline.set_visible(False)
        panels.legend(figure, *about, handles=[])
    return figure


def _each(values, form):
    texts = np.full(values.shape, "", dtype=object)
    for place, value in np.ndenumerate(values):
        texts[place] = "" if np.isnan(value) else form(value)
    return texts


def _short(ratio):
    """A ratio in at most four letters."""
    if not np.isfinite(ratio):
        return "inf"
    return f"{ratio:.0f}" if ratio >= 9.5 or ratio == 0 else f"{ratio:.2g}"


def _frame(axes, values, low, high):
    """Frame the ratios whose interval holds 1, or that have no interval."""
    for i, j in np.argwhere(~np.isnan(values) & ~((low > 1) | (high < 1))):
        axes.add_patch(
            Rectangle(
                (j - 0.45, i - 0.45), 0.9, 0.9, fill=False, linewidth=0.8, edgecolor="#555555",
                linestyle=(0, (2, 2)), gid="not certain",
            )
        )  # fmt: skip


def _about(found, kind):
    """What the matrix shows, for the legend."""
    of = found.attrs["of"]
    problems = style.counted(found.sizes["problem"], "problem")
    if kind == "wins":
        what = (
            f"Numbers: % of {problems}, levels and seeds on which the row needs fewer {of} than "
            "the column. What neither reaches counts for neither."
        )
    else:
        what = (
            f"Numbers: {of} of the row over those of the column: the middle over {problems} and "
            "levels, then the geometric mean over seeds. Framed: the interval holds 1, or there is "
            "none."
        )
    return [what, *profiles.remarks(found, style.algorithm_name)]
