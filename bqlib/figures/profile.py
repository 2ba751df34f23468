"""Shares of problems solved against budgets, and against factors of the best rule."""

import numpy as np

from bqlib.analysis import profiles
from bqlib.figures import panels, style

MOST_STRONG = 8  # lines in colours; more cannot be told apart
MOST_NAMES = 30  # that have room beside a panel
GREY = {"color": "#b4b4b4", "linewidth": 0.8, "linestyle": "-", "zorder": 1.2}
HEIGHT = 4.4  # inches of a panel
NAME, GAP = 7.5, 0.031  # size of a name in points, and the least distance of names in shares


def profile(dataset):
    """Data profiles and performance profiles of the algorithms of a sweep.

    See :func:`bqlib.analysis.profiles.profile` for what is counted, and :func:`draw` for what is
    drawn.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it.

    Returns
    -------
    matplotlib.figure.Figure
    """
    return draw(profiles.profile(dataset))


def draw(found, highlight=None):
    """Draw profiles, the name of each algorithm beside the end of its line.

    Parameters
    ----------
    found : xarray.Dataset
        As :func:`bqlib.analysis.profiles.profile` gives it.
    highlight : sequence of str, optional
        Algorithms in strong lines; the others are grey. By default all of 8 or fewer, and the 8
        with the largest area below the data profile, on its logarithmic axis, of more.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If an algorithm to highlight is unknown.
    """
    names = found["algorithm"].values.tolist()
    strong = _best(found) if highlight is None else list(highlight)
    unknown = [name for name in strong if name not in names]
    if unknown:
        raise ValueError(
            f"highlight has {', '.join(unknown)}; the algorithms are {', '.join(names)}"
        )
    styles = style.line_styles(strong)
    seconds = found.attrs["of"] == "seconds"
    sides = (
        ("data_profile", "budget", "seconds" if seconds else "points for each dimension, n/d"),
        ("performance_profile", "factor", "factor of the best average runtime"),
    )
    with style.ours():
        figure = style.figure(style.WIDTH, HEIGHT + 1.0)
        for axes, (name, dim, label) in zip(figure.subplots(1, 2, sharey=True), sides, strict=True):
            x = found[dim].values
            for i, algorithm in enumerate(names):
                marks = {**style.MARKER, "markevery": panels.markevery(i, len(names))}
                look = {**styles[algorithm], **marks} if algorithm in styles else GREY
                share = found[name].sel(algorithm=algorithm).values
                axes.plot(
                    x, share, **look, drawstyle="steps-post", gid=f"{name} {algorithm}",
                )  # fmt: skip
            axes.set(xscale="log", xlim=(x[0], x[-1]) if x[-1] > x[0] else None, xlabel=label)
            axes.set(ylim=(0, 1))
            axes.xaxis.set_major_formatter("{x:g}")
            _name(axes, found[name].isel({dim: -1}), styles)
        first, second = figure.axes
        first.set(ylabel="share solved", title="Data profile")
        second.set_title("Performance profile")
        panels.legend(figure, *_about(found), *_grey(names, strong, highlight), handles=[])
    return figure


def _best(found):
    """The algorithms with the largest areas below their data profiles, in the order of the data."""
    areas = found["data_profile"].mean("budget").fillna(-1.0).values
    chosen = np.sort(np.argsort(-areas, kind="stable")[:MOST_STRONG])
    return found["algorithm"].values[chosen].tolist()


def _grey(names, strong, highlight):
    if len(strong) == len(names):
        return []
    if highlight is not None:
        return ["Grey: the other algorithms."]
    return [f"Grey: all but the {len(strong)} with the largest area below the data profile."]


def _name(axes, ends, styles):
    """Write the names of lines beside their ends, from the highest down, without overlaps."""
    ends = ends.dropna("algorithm")
    if ends.sizes["algorithm"] > MOST_NAMES:
        ends = ends.sel(algorithm=[name in styles for name in ends["algorithm"].values])
    order = np.argsort(-ends.values, kind="stable")
    places = _apart(ends.values[order])
    for algorithm, end, place in zip(
        ends["algorithm"].values[order].tolist(), ends.values[order], places, strict=True
    ):
        color = styles[algorithm]["color"] if algorithm in styles else "#777777"
        axes.annotate(
            style.algorithm_name(algorithm), (1.0, end), (1.06, place), "axes fraction",
            "axes fraction", color=color, fontsize=NAME, va="center", gid=f"name {algorithm}",
            annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": color, "linewidth": 0.5, "shrinkA": 0,
                        "shrinkB": 0, "relpos": (0, 0.5)},
        )  # fmt: skip


def _apart(ends):
    """Falling heights as near to `ends` as distances of at least GAP allow, least squares.

    Neighbours that are too near share one block, whose middle is that of its ends.
    """
    blocks = []  # of height of the first name, and how many names
    for end in ends:
        blocks.append([end, 1])
        while len(blocks) > 1 and blocks[-2][0] - blocks[-2][1] * GAP < blocks[-1][0]:
            top, count = blocks.pop()
            above, many = blocks.pop()
            middle = (many * above + count * (top + many * GAP)) / (many + count)
            blocks.append([middle, many + count])
    places = np.concatenate([top - GAP * np.arange(count) for top, count in blocks] or [[]])
    return places + max(0.0, -places.min(initial=0.0))


def _about(found):
    """What the two panels show, for the legend."""
    of = "points for each dimension" if found.attrs["of"] == "points" else "seconds"
    problems = style.counted(found.sizes["problem"], "problem")
    levels = style.counted(found.sizes["level"], "level")
    return [
        f"Left: share solved within a budget of {of}, of {problems} with {levels} of the MMD, in "
        "each seed. Right: share of problems and levels on which the average runtime is within a "
        "factor of the best.",
        *profiles.remarks(found, style.algorithm_name),
    ]
