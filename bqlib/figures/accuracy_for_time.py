"""Accuracy against seconds: which algorithm to take for the time there is."""

import numpy as np

from bqlib.figures import panels, style
from bqlib.studies.refinement import steps_in_words

PLANS = (
    "iid", "herding", "herding_bq", "sbq_100_herding", "block_sbq_50", "block_sbq_20",
    "block_sbq_5", "sbq", "joint",
)  # fmt: skip


def accuracy_for_time(alternatives, cost, refinement):
    """MMD against the CPU time that it takes, at the four largest numbers of points measured.

    Parameters
    ----------
    alternatives, cost, refinement : xarray.Dataset
        Of the studies of these names.

    Returns
    -------
    matplotlib.figure.Figure
    """
    looks = style.line_styles(PLANS)
    seconds = cost["seconds"].median("seed")
    sizes = cost["n"].values
    with style.ours():
        figure = style.figure(7.4, 5.6)
        axes = figure.subplots()
        for plan in PLANS:
            if plan == "joint":
                curves = refinement["mmd"].sel(plan="joint")
            else:
                curves = alternatives["mmd"].sel(plan=plan)
            there = np.isin(sizes, curves["n"].values)
            mmd = np.exp(np.log(curves.sel(n=sizes[there])).mean("seed"))
            axes.plot(
                seconds.sel(plan=plan, n=sizes[there]), mmd.transpose("n"), **looks[plan],
                **style.MARKER, label=style.algorithm_name(plan), gid=plan,
            )  # fmt: skip
        axes.set(xscale="log", yscale="log", ylabel="MMD to the target")
        axes.set_xlabel("CPU seconds on one thread, without drawing the pool")
        axes.annotate(
            "better", (0.03, 0.03), (0.12, 0.12), xycoords="axes fraction",
            textcoords="axes fraction", color="#555555", fontsize=9,
            arrowprops={"arrowstyle": "->", "color": "#808080"},
        )  # fmt: skip
        panels.legend(
            figure, f"Markers: n = {', '.join(f'{n}' for n in sizes)}; "
            f"{style.counted(cost.sizes['seed'], 'seed')}, pool of {cost['pool'].values.max()}.",
            f"Joint refinement: {steps_in_words(refinement)}.",
            columns=3,
        )  # fmt: skip
    return figure
