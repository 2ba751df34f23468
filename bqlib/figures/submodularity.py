"""Greedy picks against the best ones, and what theory promises."""

import numpy as np

from bqlib.figures import panels, style

REACHED, PROMISED, WEAKER = "#000000", "#0072B2", "#E69F00"


def submodularity(study):
    """What greedy picks reach of the best of all sets on small pools, and two lower bounds on it.

    Parameters
    ----------
    study : xarray.Dataset
        Of :mod:`bqlib.studies.submodularity`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    picks = study["picks"].values
    reached = (study["greedy"] / study["best"]).transpose("seed", "picks").values
    promised = 1 - np.exp(-study["ratio"].transpose("seed", "picks").values)
    weaker = 1 - np.exp(-study["eigenvalue"].values[:, None] * np.ones(len(picks)))
    with style.ours():
        figure = style.figure(6.6, 4.6)
        axes = figure.subplots()
        for values, color, marker, label in (
            (reached, REACHED, "D", "reached by greedy picks"),
            (promised, PROMISED, "p", "guaranteed by the submodularity ratio"),
            (weaker, WEAKER, "^", "guaranteed by the smallest eigenvalue"),
        ):
            axes.fill_between(
                picks, values.min(axis=0), values.max(axis=0), color=color, alpha=0.2, linewidth=0
            )
            axes.plot(
                picks, np.median(values, axis=0), color=color, marker=marker, **style.MARKER,
                label=label,
            )  # fmt: skip
        axes.set(xlabel="number of points picked", ylim=(0, 1.03), xticks=picks)
        axes.set_ylabel(r"$V_0 - \mathrm{MMD}^2$, greedy picks / best set")
        pools = style.counted(study.sizes["seed"], "pool")
        panels.legend(
            figure, f"Median and range of {pools}. Every set of each pool was tried.", columns=2
        )
    return figure
