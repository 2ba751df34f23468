"""What a local optimiser brings to SBQ."""

import numpy as np

from bqlib.figures import panels, style
from bqlib.studies.refinement import steps_in_words

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
    with style.ours():
        figure = style.figure(style.WIDTH, 4.2)
        left, right = figure.subplots(1, 2)
        for plan, (look, label) in PLANS.items():
            curves = mmd.sel(plan=plan).values
            panels.draw_means(left, n, np.log(curves), look, np.exp, label=label)
            if plan != "sbq":
                panels.draw_means(right, n, np.log(own / curves), look, np.exp)
        left.set(
            xscale="log", yscale="log", xlabel="number of points n", ylabel="MMD to the target"
        )
        right.set(xscale="log", yscale="log", xlabel="number of points n")
        right.set_ylabel("MMD of SBQ divided by this MMD")
        right.axhline(1, color="#808080", linewidth=0.9, zorder=1)
        for axes in (left, right):
            axes.set_xticks(n, [f"{size}" for size in n])
            axes.xaxis.minorticks_off()
        top = 1.15 * right.get_ylim()[1]
        ticks = [tick for tick in (1, 2, 5, 10, 20, 50) if tick < top]
        right.set_yticks(ticks, [f"{tick}" for tick in ticks])
        right.yaxis.minorticks_off()
        right.set_ylim(0.9, top)
        said = panels.about_means(study.sizes["seed"], "geometric mean")
        panels.legend(figure, said, f"All at once: {steps_in_words(study)}.", columns=2)
    return figure
