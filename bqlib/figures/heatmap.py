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
from bqlib.schema import of_problems, sweep_dims

MOST_WITH_NUMBERS = 12  # cells side by side that leave room for numbers and words
MOST_WITH_SMALL_NUMBERS = 20
LOWEST_WITH_NUMBERS = 0.26  # inches of a cell
TALLEST = 9.8  # inches
LINE = 0.17  # inches of a line of a title
LABEL, LABELS = 0.085, 0.7  # inches of a letter of a row's name, and of the names that have room
FRAME = "#c8c8c8"  # of what has no number
KINDS = ("rate", "error", "points", "seconds")


def heatmap(
    dataset, kind="rate", *, n=None, error=None, seconds=None, window=None, quantity="mmd",
    x=None, y=None, rows=None, columns=None, rates=None,
):  # fmt: skip
    """A number for each cell of a sweep, in panels over two of its dimensions.

    A cell without a number is white and says why: trials are "missing" or "failed"; the curve of a
    seed "ends early", before n; its sweep was "run to 30" alone; the error is "not reached" by the
    median seed; or the number is "inf". A hatched cell has the mean slope of a curve that is not a
    power law, see :func:`bqlib.analysis.maps.map_of_rates`.

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
    x, y : str, optional
        Dimensions of the sweep, of each panel. `x` is by default the length-scale, or the algorithm
        in a sweep of problems. `y` is by default the target, or the algorithm in a
        sweep of one target or where numbers have room that way only.
    rows, columns : str, optional
        Which of the two other dimensions has a row of panels for each label, and which a column. By
        default the first of target, kernel, length-scale and algorithm has the rows, such as the
        kernel, and the other the columns, such as the algorithm.

    rates : xarray.Dataset, optional
        As :func:`bqlib.analysis.fits.fit_rates` gives them, in this window. By default those that a
        run has stored are taken, and others fitted.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If the kind is unknown, something that it needs is not given, or two of `x`, `y`, `rows` and
        `columns` are the same dimension.
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
        found = maps.map_of_rates(rates, label_of(rates, window))
    elif kind == "error":
        found = maps.map_of_error(dataset, n, quantity)
    elif kind == "points":
        found = maps.map_of_points(dataset, error, quantity)
    else:
        found = maps.map_of_seconds(dataset, error, seconds, quantity)
    return draw(found, x, y, rows, columns, logarithmic=kind != "rate")


def draw(found, x=None, y=None, rows=None, columns=None, *, logarithmic=False):
    """Draw a map of :mod:`bqlib.analysis.maps`: a panel for each label of its other dimensions.

    Parameters
    ----------
    found : xarray.Dataset
        With ``value`` and ``word``.
    x, y, rows, columns : str
        As :func:`heatmap` takes them.
    logarithmic : bool
        Whether colours follow the logarithm of the value.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If the map has other dimensions than a sweep, or two of the four are the same.
    """
    own = sweep_dims(found)
    dims = ", ".join(own)
    if set(found.dims) != set(own):
        raise ValueError(
            f"a map must have the dimensions {dims}, and this has {', '.join(found.dims)}: select "
            "one label of any other dimension"
        )
    if x is None:
        x = "algorithm" if of_problems(found) and y != "algorithm" else "lengthscale"
    y = _default_y(found, x, {rows, columns}) if y is None else y
    if x == y or not {x, y} <= set(own):
        raise ValueError(f"x is {x} and y is {y}; they must be two different ones of {dims}")
    given = rows is not None or columns is not None
    rows, columns = _places(own, x, y, rows, columns)
    others = [dim for dim in own if dim not in (x, y, rows, columns)]  # of several pools
    facets = (rows, *others, columns)
    cells = list(product(*(found[dim].values.tolist() for dim in facets)))
    several = [dim for dim in facets if found.sizes[dim] > 1]
    numbers = found["value"].values[np.isfinite(found["value"].values)]
    scale = _scale(numbers, logarithmic)
    across, down = found.sizes[x], found.sizes[y]
    width = found.sizes[columns]
    if not given and len(several) < 2:  # one dimension alone may be folded
        width = min(len(cells), max(1, MOST_WITH_NUMBERS // across))
    lines = -(-len(cells) // width)
    tall = max(0.1, min(0.44, ((TALLEST - 1.5) / lines - 0.55) / down))  # inches of a cell
    wide = 0.78 if across * width <= MOST_WITH_NUMBERS else 0.58
    readable = across * width <= MOST_WITH_SMALL_NUMBERS and tall >= LOWEST_WITH_NUMBERS
    form = _rounded if logarithmic else "{:.2f}".format
    inches = wide * across if readable else max(1.9, (style.WIDTH - 1.6) / width)  # of a panel
    chosen = [dict(zip(facets, labels, strict=True)) for labels in cells]
    names = [[named(dim, panel[dim]) for dim in several] for panel in chosen]
    titles = panels.titles(names, inches)
    above = LINE * max(title.count("\n") for title in titles)  # of titles with several lines
    tall = max(0.1, min(tall, ((TALLEST - 1.5) / lines - 0.55 - above) / down))
    beside = max(0.0, LABEL * max(len(_tick(y, row)) for row in found[y].values.tolist()) - LABELS)
    with style.ours():
        figure, (grid,) = panels.grid(
            len(cells), width, height=0.55 + above + tall * down, margin=1.5,
            width=beside + max(5.0, 1.6 + inches * width),
            xlabel="length-scale" if x == "lengthscale" else x,
        )  # fmt: skip
        for axes, panel, title in zip(grid, chosen, titles, strict=True):
            shown = found.sel(panel).transpose(y, x)
            _draw_panel(axes, shown, scale, readable and form, 8 if wide > 0.6 else 7)
            axes.set_title(title)
            _number(axes, found, x, y, int(inches / 0.38))
        bar = figure.colorbar(grid[0].images[0], ax=figure.axes, shrink=0.9, aspect=30, pad=0.02)
        along = int(11 * max(1.2, lines * tall * down))  # letters that go along the bar
        bar.set_label(textwrap.fill(found["value"].attrs["long_name"], along))
        bar.outline.set_visible(False)
        note = textwrap.fill(_note(found, readable), int(13 * figure.get_figwidth()))
        if note:
            figure.supxlabel(note, fontsize=9, x=0.01, ha="left")
    return figure


def _default_y(found, x, taken):
    """The target or the algorithm: the first that leaves room for numbers, if either does."""
    one_target = found.sizes["target"] == 1 and x != "algorithm"
    order = ("algorithm", "target") if one_target else ("target", "algorithm")
    free = [dim for dim in (*order, "kernel", "lengthscale") if dim not in {x, *taken}]
    if len(free) > 1 and not one_target and set(free[:2]) == set(order) and x in found.dims:
        _, columns = _places(sweep_dims(found), x, free[0], None, None)
        if found.sizes[x] * found.sizes[columns] > MOST_WITH_SMALL_NUMBERS:
            return free[1]
    return free[0]


def _places(dims, x, y, rows, columns):
    """The dimensions of the rows and of the columns, which are among those that x and y leave."""
    left = [dim for dim in dims if dim not in (x, y)]
    wrong = [dim for dim in (rows, columns) if dim is not None and dim not in left]
    if wrong or (rows is not None and rows == columns):
        raise ValueError(
            f"rows is {rows} and columns is {columns}; with {x} as x and {y} as y, they must be "
            + (
                f"{' and '.join(left)}, in either order"
                if len(left) == 2
                else f"two different ones of {', '.join(left)}"
            )
        )
    if rows is None:
        rows = next(dim for dim in left if dim != columns)
    if columns is None:
        columns = next(dim for dim in reversed(left) if dim != rows)
    return rows, columns


def _scale(numbers, logarithmic):
    if len(numbers) == 0:
        return Normalize(0, 1)
    low, high = numbers.min(), numbers.max()
    if logarithmic and low > 0:
        return LogNorm(low / 1.05, high * 1.05)
    return Normalize(low - 0.02, high + 0.02)


def _draw_panel(axes, panel, scale, form, points):
    """Draw one panel, with numbers of so many points; without a form, there is no room for them."""
    values, words = panel["value"].values, panel["word"].values
    image = axes.imshow(values, cmap="viridis", norm=scale, aspect="auto", gid="values")
    for (i, j), value in np.ndenumerate(values):
        word, nothing = words[i, j], not np.isfinite(value)
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
        if nothing:  # a white cell needs a frame to be seen as one
            axes.add_patch(
                Rectangle(
                    (j - 0.46, i - 0.46), 0.92, 0.92, fill=False, linewidth=0.8, edgecolor=FRAME,
                    gid="empty",
                )
            )  # fmt: skip
            text = word.replace(" ", "\n", 1) if np.isnan(value) else str(value)
        else:
            text = f"{form(value)}\n{word}".strip()
        axes.text(j, i, text, ha="center", va="center", fontsize=points, color=ink, linespacing=1.1)
    axes.grid(False)
    if form:
        for count, line in zip(values.shape, (axes.axhline, axes.axvline), strict=True):
            for place in range(1, count):
                line(place - 0.5, color="white", linewidth=1)
    axes.spines[:].set(visible=not form and not np.isfinite(values).all(), color=FRAME)
    axes.tick_params(length=0)


def _rounded(value):
    return (
        f"{value:.0f}" if 99.5 <= value < 1e5 else f"{value:.2g}" if value < 1 else f"{value:.3g}"
    )


def _number(axes, found, x, y, most):
    """Name the rows, and as many of the columns as `most`, or all where the names are words."""
    columns, rows = found[x].values.tolist(), found[y].values.tolist()
    words = found[x].dtype.kind in "OUT"
    step = 1 if words else -(-len(columns) // min(most, MOST_WITH_NUMBERS))
    names = [_tick(x, column) for column in columns[::step]]
    axes.set_xticks(range(0, len(columns), step), names)
    if words and max(map(len, names)) * LABEL > axes.bbox.width / axes.figure.dpi / len(columns):
        axes.tick_params(axis="x", labelrotation=90)
    axes.set_yticks(range(len(rows)), [_tick(y, row) for row in rows])


def _tick(dim, label):
    if dim == "algorithm":
        return style.algorithm_name(label)
    return f"{label:.3g}" if dim == "lengthscale" else str(label)


def _note(found, readable):
    known = set(found["word"].values.ravel()) - {""}
    note = ""
    hatched = known & {"exp", "floor", "none fits", "undecided"}
    if hatched and not readable:
        note = (
            "Hatched: the curve is not shown to be a power law, and the colour is its mean slope. "
        )
    elif hatched:
        note = (
            "Hatched: the curve is not shown to be a power law, and the number is its mean slope. "
            "The word names the model that it follows: exp(-c n^b) (exp) or a power law with a "
            "floor (floor). None fits: every model misses by more than the noise and 4 %. "
            "Undecided: the data do not tell, or fewer than 5 seeds allow no test. "
        )
    if not readable and not np.isfinite(found["value"].values).all():
        note += "White: no number."
    return note
