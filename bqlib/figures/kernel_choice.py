"""What a wrong length-scale costs, and what fitting it brings."""

import numpy as np
from matplotlib.colors import LogNorm

from bqlib.figures import style

EVALUATE = (0.5, 1.0, 2.0)
LOOKS = {
    "assumed": {"color": "#E69F00", "marker": "v", "label": "assumed length-scale"},
    "fitted": {
        "color": "#0072B2",
        "marker": "o",
        "label": "length-scale fitted by marginal likelihood",
    },
    "true": {"color": "#5D5D5D", "marker": "X", "label": "true length-scale"},
}


def kernel_choice(study):
    """Points selected at one length-scale, weighted at another and judged at a third; and the fit.

    Above, each cell is the MMD at one length-scale, divided by the MMD of points and weights made
    at that length-scale. Below, three recipes estimate the integrals of functions that were drawn
    at a true length-scale.

    Parameters
    ----------
    study : xarray.Dataset
        Of :mod:`bqlib.studies.kernel_choice`.

    Returns
    -------
    matplotlib.figure.Figure
    """
    mmd = np.exp(np.log(study["mmd"]).mean("seed"))
    own = study.attrs["lengthscale"]
    with style.ours():
        figure = style.figure(style.WIDTH, 7.6)
        above, below = figure.subfigures(2, 1, height_ratios=(1, 0.95))
        panels = above.subplots(1, 3, sharey=True)
        for axes, factor in zip(panels, EVALUATE, strict=True):
            shown = mmd.sel(evaluate=factor)
            shown = shown / shown.sel(select=factor, weigh=factor)
            _draw_matrix(axes, shown.transpose("select", "weigh"), own)
            axes.set_title(f"judged at length-scale {factor * own:g}")
        panels[0].set_ylabel("length-scale of the points")
        panels[1].set_xlabel(
            "length-scale of the weights\nNumbers: MMD divided by the MMD of points and weights "
            "made at the length-scale of the panel."
        )
        _draw_recipes(below, study, own)
    return figure


def _draw_matrix(axes, shown, own):
    values = shown.values
    axes.imshow(values, cmap="viridis_r", norm=LogNorm(1, 100), aspect="auto")
    for (i, j), value in np.ndenumerate(values):
        axes.text(
            j, i, f"{value:.2g}" if value < 99.5 else f"{value:.0f}", ha="center", va="center",
            fontsize=8.5, color="white" if value > 8 else "black",
        )  # fmt: skip
    ticks = [f"{factor * own:.2g}" for factor in shown["weigh"].values]
    axes.set_xticks(range(len(ticks)), ticks)
    axes.set_yticks(range(len(ticks)), ticks)
    axes.grid(False)


def _draw_recipes(figure, study, own):
    mean = study[["error", "coverage"]].mean("seed")
    x = np.arange(study.sizes["truth"])
    left, right = figure.subplots(1, 2)
    for i, (recipe, look) in enumerate(LOOKS.items()):
        look = look | {"linestyle": "none", "markersize": 7}
        shift = 0.14 * (i - 1)
        left.plot(x + shift, mean["error"].sel(recipe=recipe), **look)
        right.plot(x + shift, 100 * mean["coverage"].sel(recipe=recipe), **look)
    left.set(yscale="log", ylabel="mean absolute error", title="error of the integral")
    right.set(ylabel="% of integrals", title="inside their 95 % intervals", ylim=(0, 104))
    right.axhline(95, color="#808080", linewidth=0.9, linestyle=(0, (4, 2)), zorder=1)
    for axes in (left, right):
        axes.set_xticks(x, [f"{truth * own:g}" for truth in study["truth"].values])
        axes.set_xlim(-0.5, len(x) - 0.5)
        axes.set_xlabel(f"true length-scale of f (assumed: {own:g})")
    handles, labels = left.get_legend_handles_labels()
    figure.legend(handles, labels, loc="outside lower center", ncols=3)
