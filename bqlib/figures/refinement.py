"""What a local optimiser brings to SBQ."""

import numpy as np
from matplotlib import rc_context
from matplotlib.figure import Figure

from bqlib.figures import style
from bqlib.rates import mean_interval

_ALIKE = style.line_styles(["sbq", "joint"])
# Look and name of each plan of the study.
PLANS = {
    "sbq": (_ALIKE["sbq"], "SBQ from its pool"),
    "larger_pool": (
        {"color": "#6f6f6f", "linestyle": (0, (1, 1)), "marker": "v"},
        "SBQ from a pool four times as large",
    ),
    "refined": (
        {"color": "#6f6f6f", "linestyle": (0, (5, 1.5)), "marker": "<"},
        "SBQ, each pick moved by L-BFGS",
    ),
    "joint": (_ALIKE["joint"], "all points moved at once by L-BFGS"),
}


def refinement(study):
    """MMD of SBQ with and without local optimisation, and what it gains.

    Parameters
    ----------
    study : xarray.Dataset
        Of :mod:`bqlib.studies.refinement`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    n, mmd = study["n"].values, study["mmd"].transpose("plan", "seed", "n")
    own = mmd.sel(plan="sbq").values
    with rc_context(style.RC):
        figure = Figure(figsize=(style.WIDTH, 4.2), layout="constrained")
        left, right = figure.subplots(1, 2)
        for plan, (look, label) in PLANS.items():
            look = look | style.MARKER
            curves = mmd.sel(plan=plan).values
            _draw(left, n, np.log(curves), look, label)
            if plan != "sbq":
                _draw(right, n, np.log(own / curves), look)
        left.set(
            xscale="log", yscale="log", xlabel="number of points n", ylabel="MMD to the target"
        )
        right.set(xscale="log", yscale="log", xlabel="number of points n")
        right.set_ylabel("MMD of SBQ over this MMD")
        right.axhline(1, color="#808080", linewidth=0.9, zorder=1)
        for axes in (left, right):
            axes.set_xticks(n, [f"{size}" for size in n])
            axes.minorticks_off()
        top = 1.15 * right.get_ylim()[1]
        ticks = [tick for tick in (1, 2, 5, 10, 20, 50) if tick < top]
        right.set_yticks(ticks, [f"{tick}" for tick in ticks])
        right.set_ylim(0.9, top)
        figure.legend(
            loc="outside lower center", ncols=2, handlelength=3.5, alignment="left",
            title=f"Geometric means of {study.sizes['seed']} seeds, and their 95 % intervals.",
            title_fontsize=9,
        )  # fmt: skip
    return figure


def _draw(axes, n, logs, look, label=None):
    mean, low, high = np.exp(np.transpose([mean_interval(column) for column in logs.T]))
    axes.fill_between(n, low, high, color=look["color"], alpha=0.2, linewidth=0)
    axes.plot(n, mean, **look, label=label)
