"""What all figures share: colours, lines and how they are written."""

import io
from itertools import cycle
from pathlib import Path

from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.backends.backend_svg import FigureCanvasSVG
from matplotlib.figure import Figure
from matplotlib.style import context

from bqlib.results.files import write_atomically

WIDTH = 9.0  # inches; at 100 dots an inch, the width of a README
RC = {
    "axes.axisbelow": True,
    "axes.grid": True,
    "axes.labelsize": 10,
    "axes.spines.right": False,
    "axes.spines.top": False,
    "axes.titlelocation": "left",
    "axes.titlesize": 10,
    "axes.titleweight": "bold",
    "font.size": 9.5,
    "grid.color": "#e4e4e4",
    "grid.linewidth": 0.6,
    "legend.frameon": False,
    "lines.linewidth": 1.5,
    "lines.markersize": 5,
    "savefig.dpi": 200,
    "svg.hashsalt": "bqlib",
    "xtick.labelsize": 9,
    "ytick.labelsize": 9,
}

# By the ending of a file: its canvas, and dots an inch at which matplotlib lays it out.
_CANVASES = {".svg": (FigureCanvasSVG, 72), ".png": (FigureCanvasAgg, RC["savefig.dpi"])}

# Hues of Okabe and Ito, which colour-blind people can tell apart; dashes and markers say the same
# to those who print in grey. The paper's algorithms look the same in every figure.
_KNOWN = {
    "iid": {"color": "#56B4E9", "linestyle": "-", "marker": "o"},
    "herding": {"color": "#D55E00", "linestyle": (0, (5, 1.5)), "marker": "s"},
    "herding_bq": {"color": "#009E73", "linestyle": (0, (5, 1.5, 1, 1.5)), "marker": "^"},
    "sbq": {"color": "#000000", "linestyle": "-", "marker": "D"},
    "joint": {"color": "#CC79A7", "linestyle": "-", "marker": "P"},
    "block_sbq_5": {"color": "#0072B2", "linestyle": (0, (5, 1.5)), "marker": "v"},
    "block_sbq_20": {"color": "#0072B2", "linestyle": (0, (1, 1)), "marker": "<"},
    "block_sbq_50": {"color": "#0072B2", "linestyle": "-", "marker": ">"},
    "sbq_50_herding": {"color": "#E69F00", "linestyle": (0, (8, 2)), "marker": "X"},
    "sbq_100_herding": {"color": "#E69F00", "linestyle": (0, (5, 1.5)), "marker": "h"},
    "sbq_200_herding": {"color": "#E69F00", "linestyle": (0, (1, 1)), "marker": "*"},
}
_COLORS = ["#0072B2", "#CC79A7", "#E69F00", "#7A4F00", "#5D5D5D"]
_DASHES = [(0, (1, 1)), (0, (8, 2)), "-", (0, (3, 1, 1, 1, 1, 1))]
_MARKERS = ["v", "P", "X", "<", ">", "*", "h"]
_NAMES = {
    **{f"block_sbq_{block}": f"SBQ in blocks of {block}" for block in (5, 20, 50)},
    **{f"sbq_{n}_herding": f"SBQ to {n}, then herding" for n in (50, 100, 200)},
    "block_sbq": "SBQ in blocks",
    "herding_nonnegative": "herding, non-negative weights",
    "sbq_nonnegative": "SBQ, non-negative weights",
    "sbq_simplex": "SBQ, weights on the simplex",
    "sbq_sum_to_one": "SBQ, weights that sum to one",
    "fp_greedy": "f·P-greedy",
    "frank_wolfe": "Frank–Wolfe",
    "halton": "Halton",
    "iid": "i.i.d.",
    "joint": "joint refinement",
    "joint_uniform": "joint refinement, equal weights",
    "latin_hypercube": "Latin hypercube",
    "msip": "mean-shift particles",
    "omp": "OMP",
    "p_greedy": "P-greedy",
    "rpcholesky": "RPCholesky",
    "sbq": "SBQ",
    "sobol": "Sobol",
    "stein_thinning": "Stein thinning",
}
FAINT = {"linewidth": 0.6}  # lines between the sizes of a set, where nothing was computed
MARKER = {"markerfacecolor": "white", "markeredgewidth": 1.2}
# Lines that curves are compared with, and the words beside them.
GUIDE = {"color": "#808080", "linewidth": 0.9, "linestyle": (0, (1, 2)), "zorder": 1}
GUIDE_WORDS = {"textcoords": "offset points", "color": "#555555", "fontsize": 8.5}


def line_styles(algorithms, sets=()):
    """Keywords of ``Axes.plot`` for each algorithm, all different.

    Parameters
    ----------
    algorithms : sequence of str
    sets : collection of str, optional
        Those whose points are sets: their lines only join the markers, and are thin.

    Returns
    -------
    dict
        Algorithm to {"color", "linestyle", "marker"}.
    """
    known = {name: _KNOWN[name] for name in algorithms if name in _KNOWN}
    taken = {(look["color"], look["marker"]) for look in known.values()}
    turns = zip(cycle(_COLORS), cycle(_DASHES), cycle(_MARKERS))
    free = (
        {"color": color, "linestyle": dashes, "marker": marker}
        for color, dashes, marker in turns
        if (color, marker) not in taken
    )
    looks = {name: known.get(name) or next(free) for name in algorithms}
    return {name: look | FAINT if name in sets else look for name, look in looks.items()}


def algorithm_name(algorithm):
    """An algorithm as people write it: ``"sbq"`` is ``"SBQ"``.

    Examples
    --------
    >>> from bqlib.figures.style import algorithm_name
    >>> algorithm_name("herding_bq")
    'herding, BQ weights'
    """
    design = algorithm.removesuffix("_bq")
    name = _NAMES.get(design, design.replace("_", " "))
    return name if design == algorithm else f"{name}, BQ weights"


def ours():
    """A context in which figures look the same, whatever style their user has chosen.

    All figures are made and written in it: in matplotlib's defaults with :data:`RC`. A font, a
    colour or LaTeX of a user's own matplotlibrc would change the bytes of figures, or break their
    words. Neither the backend nor what is drawn outside changes.
    """
    return context(["default", RC])


def counted(number, noun):
    """A number of things.

    Examples
    --------
    >>> from bqlib.figures.style import counted
    >>> counted(1, "seed"), counted(10, "seed")
    ('1 seed', '10 seeds')
    """
    return f"{number} {noun}" if number == 1 else f"{number} {noun}s"


def figure(width, height):
    """An empty figure of this size in inches, which notebooks show."""
    return _Figure(figsize=(width, height), layout="constrained")


class _Figure(Figure):
    """A figure that a notebook shows, whatever backend matplotlib has there."""

    def _repr_png_(self):
        buffer = io.BytesIO()
        with ours():
            self.savefig(buffer, format="png")
        width, height = (round(100 * inches) for inches in self.get_size_inches())
        return buffer.getvalue(), {"width": width, "height": height}  # on the page


def save(figure, path):
    """Write a figure, as SVG and as PNG, the same bytes on every run and in every style.

    Parameters
    ----------
    figure : matplotlib.figure.Figure
    path : path or sequence of paths
        Files to write, each ending in ``.svg`` or ``.png``; one path without such an ending gives
        both. Folders are made.

    Returns
    -------
    list of pathlib.Path
        The files written.
    """
    if not isinstance(path, str | Path):
        paths = [Path(name) for name in path]
    elif Path(path).suffix[1:] in figure.canvas.get_supported_filetypes():
        paths = [Path(path)]
    else:
        paths = [Path(f"{path}.svg"), Path(f"{path}.png")]
    metadata = {".svg": {"Date": None, "Creator": "bqlib"}, ".png": {"Software": "bqlib"}}
    unknown = [str(file) for file in paths if file.suffix not in metadata]
    if unknown:
        raise ValueError(f"cannot write {', '.join(unknown)}: a name must end in .svg or .png")
    layout = figure.get_layout_engine()
    with ours():
        if layout is not None:
            _lay_out(figure, paths[0].suffix)
            figure.set_layout_engine(None)
        for file in paths:
            buffer = io.BytesIO()
            figure.savefig(buffer, format=file.suffix[1:], metadata=metadata[file.suffix])
            write_atomically(file, buffer.getvalue())
    figure.set_layout_engine(layout)
    return paths


def _lay_out(figure, suffix):
    """Lay a figure out for a kind of file.

    Where ``savefig`` does that, it draws all of the figure once more: that takes as long.
    """
    kind, dpi = _CANVASES[suffix]
    canvas, before = figure.canvas, figure.dpi
    kind(figure)  # which the figure keeps
    figure.dpi = dpi
    figure.get_layout_engine().execute(figure)
    figure.dpi = before
    figure.set_canvas(canvas)
