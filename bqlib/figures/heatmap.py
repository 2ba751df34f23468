"""Maps of one number over two dimensions of a sweep, such as target and length-scale."""

import textwrap
from itertools import product

import numpy as np
from matplotlib.colors import LogNorm, Normalize
from matplotlib.patches import Rectangle

from bqlib.analysis import maps, stored
from bqlib.analysis.fits import label_of
from bqlib.figures import panels, style
from bqlib.figures.curves import named
from bqlib.schema import SWEEP_DIMS

MOST_WITH_NUMBERS = 12  # columns in a panel that leave room for numbers and words
KINDS = ("rate", "error", "points", "seconds")


def heatmap(
    dataset, kind="rate", *, n=None, error=None, seconds=None, window=None, quantity="mmd",
    x="lengthscale", y=None, rates=None,
):  # fmt: skip
    """A number for each cell of a sweep, in panels over two of its dimensions.

    A cell without a number is white and says why: trials are "missing" or "failed"; the curve of a
    seed "ends early", before n; or the error is "not reached" by the median seed. A hatched cell
    has the mean slope of a curve that is not a power law, see
    :func:`bqlib.analysis.maps.map_of_rates`.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it, or a selection of it.
    kind : {"rate", "error", "points", "seconds"}
        The rate of convergence; the error at `n`; the points needed for `error`; or the seconds
        of trials that reach `error`. All but the rate are medians over seeds.
    n : int, optional
    error : float, optional
    seconds : xarray.DataArray, optional
        As :func:`bqlib.analysis.seconds.trial_seconds` gives them.
    window : (int, int), optional
        Range of n that the rate is fitted on; by default the first window of the sweep.
    quantity : str
        Variable that errors are taken from; rates are those of the MMD.
    x, y : str
        Dimensions of the sweep. `y` is by default the target, or the algorithm in a sweep of one
        target. The others have a panel for each label.

    rates : xarray.Dataset, optional
        As :func:`bqlib.analysis.fits.fit_rates` gives them, in this window. By default those that a
        run has stored are taken, and others fitted.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If the kind is unknown, or something that it needs is not given.
    """
    needs = {"rate": (), "error": ("n",), "points": ("error",), "seconds": ("error", "seconds")}
    given = {"n": n, "error": error, "seconds": seconds}
    if kind not in needs:
        raise ValueError(f'kind is "{kind}"; it must be one of {", ".join(KINDS)}')
    absent = [name for name in needs[kind] if given[name] is None]
    if absent:
        raise ValueError(f'a heat map of kind "{kind}" needs the argument {" and ".join(absent)}')
    if kind == "rate":
        rates = stored.rates_in_one(dataset, window) if rates is None else rates
        return draw(maps.map_of_rates(rates, label_of(rates, window)), x, y)
    if kind == "error":
        return draw(maps.map_of_error(dataset, n, quantity), x, y, logarithmic=True)
    if kind == "points":
        return draw(maps.map_of_points(dataset, error, quantity), x, y, logarithmic=True)
    found = maps.map_of_seconds(dataset, error, seconds, quantity)
    return draw(found, x, y, logarithmic=True)


def draw(found, x="lengthscale", y=None, *, logarithmic=False):
    """Draw a map of :mod:`bqlib.analysis.maps`: a panel for each label of its other dimensions.

    Parameters
    ----------
    found : xarray.Dataset
        With ``value`` and ``word``.
    x, y : str
    logarithmic : bool
        Whether colours follow the logarithm of the value.

    Returns
    -------
    matplotlib.figure.Figure
    """
    dims = ", ".join(SWEEP_DIMS)
    if set(found.dims) != set(SWEEP_DIMS):
        raise ValueError(
            f"a map must have the dimensions {dims}, and this has {', '.join(found.dims)}: select "
            "one label of any other dimension"
        )
    if y is None:
        y = "target" if found.sizes["target"] > 1 or x == "algorithm" else "algorithm"
    if x == y or not {x, y} <= set(SWEEP_DIMS):
        raise ValueError(f"x is {x} and y is {y}; they must be two different ones of {dims}")
    others = [dim for dim in SWEEP_DIMS if dim not in (x, y)]
    cells = list(product(*(found[dim].values.tolist() for dim in others)))
    several = [dim for dim in others if found.sizes[dim] > 1]
    numbers = found["value"].values[~np.isnan(found["value"].values)]
    scale = _scale(numbers, logarithmic)
    across, down = found.sizes[x], found.sizes[y]
    readable = across <= MOST_WITH_NUMBERS
    form = _rounded if logarithmic else "{:.2f}".format
    width = min(len(cells), max(1, MOST_WITH_NUMBERS // across))
    with style.ours():
        figure, (grid,) = panels.grid(
            len(cells), width, height=0.55 + 0.44 * down, margin=1.5,
            width=max(5.0, 1.6 + 0.78 * across * width) if readable else style.WIDTH,
            xlabel="length-scale" if x == "lengthscale" else x,
        )  # fmt: skip
        for axes, labels in zip(grid, cells, strict=True):
            chosen = dict(zip(others, labels, strict=True))
            _draw_panel(axes, found.sel(chosen).transpose(y, x), scale, readable and form)
            title = ", ".join(named(dim, chosen[dim]) for dim in several)
            letters = int(15 * figure.get_figwidth() / min(width, len(cells)))
            axes.set_title(textwrap.fill(title, letters))
            _number(axes, found, x, y)
        bar = figure.colorbar(grid[0].images[0], ax=figure.axes, shrink=0.9, aspect=30, pad=0.02)
        tall = int(11 * figure.get_figheight())  # letters that go along the bar
        bar.set_label(textwrap.fill(found["value"].attrs["long_name"], tall))
        bar.outline.set_visible(False)
        note = textwrap.fill(_note(found, readable), int(13 * figure.get_figwidth()))
        if note:
            figure.supxlabel(note, fontsize=9, x=0.01, ha="left")
    return figure


def _scale(numbers, logarithmic):
    if len(numbers) == 0:
        return Normalize(0, 1)
    low, high = numbers.min(), numbers.max()
    if logarithmic and low > 0:
        return LogNorm(low / 1.05, high * 1.05)
    return Normalize(low - 0.02, high + 0.02)


def _draw_panel(axes, panel, scale, form):
    """Draw one panel; without a form for numbers, there is no room for them."""
    values, words = panel["value"].values, panel["word"].values
    image = axes.imshow(values, cmap="viridis", norm=scale, aspect="auto", gid="values")
    for (i, j), value in np.ndenumerate(values):
        word, nothing = words[i, j], np.isnan(value)
        if word and not nothing:
            axes.add_patch(
                Rectangle(
                    (j - 0.5, i - 0.5), 1, 1, fill=False, hatch="////", linewidth=0,
                    edgecolor=(1, 1, 1, 0.35), gid="hatched",
                )
            )  # fmt: skip
        if not form:
            continue
        ink = "#555555"
        if not nothing:
            red, green, blue, _ = image.cmap(scale(value))
            ink = "black" if 0.3 * red + 0.59 * green + 0.11 * blue > 0.5 else "white"
        text = word if nothing else f"{form(value)}\n{word}".strip()
        axes.text(j, i, text, ha="center", va="center", fontsize=8, color=ink, linespacing=1.1)
    axes.grid(False)
    if form:
        for count, line in zip(values.shape, (axes.axhline, axes.axvline), strict=True):
            for place in range(1, count):
                line(place - 0.5, color="white", linewidth=1)
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0)


def _rounded(value):
    return (
        f"{value:.0f}" if 99.5 <= value < 1e5 else f"{value:.2g}" if value < 1 else f"{value:.3g}"
    )


def _number(axes, found, x, y):
    columns, rows = found[x].values.tolist(), found[y].values.tolist()
    step = -(-len(columns) // MOST_WITH_NUMBERS)
    axes.set_xticks(range(0, len(columns), step), [_tick(x, c) for c in columns[::step]])
    axes.set_yticks(range(len(rows)), [_tick(y, row) for row in rows])


def _tick(dim, label):
    if dim == "algorithm":
        return style.algorithm_name(label)
    return f"{label:.3g}" if dim == "lengthscale" else label


def _note(found, readable):
    known = set(found["word"].values.ravel()) - {""}
    note = ""
    if known & {"exp", "floor", "none fits", "undecided"}:
        note = (
            "Hatched: the curve is not shown to be a power law, and the number is its mean slope. "
            "The word names the model that it follows: exp(-c n^b) (exp) or a power law with a "
            "floor (floor). None fits: every model misses by more than the noise and 4 %. "
            "Undecided: the data do not tell. "
        )
    if not readable and np.isnan(found["value"].values).any():
        note += "White: no number."
    return note
