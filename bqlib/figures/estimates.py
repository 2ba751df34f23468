"""Checks of an estimate to look at: left-out values, and the estimate against n."""

import numpy as np

from bqlib.checks import checked_count, checked_number
from bqlib.figures import style
from bqlib.posterior import Integral

QUANTILE = 1.96  # of a normal distribution, for 95 %
LINE, FILL, TRUTH, OUTSIDE = "#0072B2", "#9cc7e3", "#7A4F00", "#D55E00"
MOST_NAMED = 5  # values outside their interval that get their row as a label


def plot_left_out(estimate):
    """Each value of f against what the others predict for it, with its 95 % interval.

    About one value in twenty lies outside its interval if the model is right. Those that do are
    drawn in another colour, and the farthest five have the number of their row.

    Parameters
    ----------
    estimate : Integral
        What :func:`bqlib.integrate` returned.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    TypeError
        If `estimate` is no Integral that :func:`bqlib.integrate` made.

    Notes
    -----
    O(n log n) time for n values. The formulas are those of :mod:`bqlib.leave_one_out`.

    Examples
    --------
    >>> import bqlib
    >>> box = bqlib.Uniform([0], [1])
    >>> points = bqlib.sobol_points(box, 16, rng=0)
    >>> figure = bqlib.plot_left_out(bqlib.integrate(box, points, points[:, 0] ** 2))
    >>> figure.axes[0].get_xlabel()
    'predicted from all other values'
    """
    if isinstance(estimate, tuple):
        raise TypeError("these are several estimates; pass one of them, such as estimates[0]")
    found = getattr(estimate, "left_out", None)
    if found is None:
        raise TypeError(
            f"the estimate is of type {type(estimate).__name__}, without left-out values; pass one "
            "that bqlib.integrate returned"
        )
    errors = found.standardised
    outside = np.abs(errors) > QUANTILE
    with style.ours():
        figure = style.figure(0.6 * style.WIDTH, 4.6)
        axes = figure.subplots()
        ends = np.array([found.values.min(), found.values.max()])
        axes.plot(ends, ends, **style.GUIDE)
        for chosen, color, label in (
            (~outside, LINE, "value in its 95 % interval"),
            (outside, OUTSIDE, f"outside: {outside.sum()} of {len(errors)}"),
        ):
            axes.errorbar(
                found.predictions[chosen], found.values[chosen], fmt="o", color=color,
                xerr=QUANTILE * found.stds[chosen], elinewidth=0.9, markersize=3.5, label=label,
            )  # fmt: skip
        for i in np.argsort(-np.abs(errors))[:MOST_NAMED]:
            if outside[i]:
                # Away from the diagonal, where all other values are
                way, places = (-1, ("right", "bottom")) if errors[i] > 0 else (1, ("left", "top"))
                axes.annotate(
                    f"row {found.rows[i]}", (found.predictions[i], found.values[i]),
                    xytext=(5 * way, -4 * way), ha=places[0], va=places[1], **style.GUIDE_WORDS,
                )  # fmt: skip
        name = getattr(estimate, "name", "") or "f"
        axes.set_xlabel("predicted from all other values")
        axes.set_ylabel(f"value of {name}", parse_math=False)  # a dollar is a dollar
        axes.set_title("Each value, left out")
        figure.legend(loc="outside lower center", ncols=2)
    return figure


def plot_against_n(sizes, estimates, true=None):
    """An estimate and its 95 % interval, against the number of points.

    Parameters
    ----------
    sizes : sequence of int
        Numbers of points.
    estimates : sequence of Integral
        One for each size.
    true : float, optional
        The integral, if you know it: a line.

    Returns
    -------
    matplotlib.figure.Figure

    Raises
    ------
    ValueError
        If there is not one estimate for each size, or none.
    TypeError
        If an estimate is no Integral.

    Notes
    -----
    O(k) time for k sizes.

    Examples
    --------
    >>> import bqlib
    >>> box = bqlib.Uniform([0], [1])
    >>> points = bqlib.sobol_points(box, 16, rng=0)
    >>> estimates = [bqlib.integrate(box, points[:n], points[:n, 0] ** 2) for n in (8, 16)]
    >>> figure = bqlib.plot_against_n([8, 16], estimates, true=1 / 3)
    >>> figure.axes[0].get_ylabel()
    'mean of f'
    """
    if isinstance(estimates, Integral):
        raise TypeError("estimates is one Integral; give a list of them, one for each size")
    sizes = [checked_count(size, "a size", 1) for size in sizes]
    estimates = list(estimates)
    if len(estimates) != len(sizes) or not estimates:
        raise ValueError(
            f"there are {len(sizes)} sizes and {len(estimates)} estimates; give one for each size"
        )
    if any(isinstance(own, tuple) for own in estimates):
        raise TypeError(
            "estimates hold tuples, one estimate for each output: take one output, such as "
            "[own[0] for own in estimates]"
        )
    strangers = [type(own).__name__ for own in estimates if not isinstance(own, Integral)]
    if strangers:
        raise TypeError(
            f"estimates hold objects of type {strangers[0]}; they must be what bqlib.integrate or "
            "Design.integrate returned"
        )
    order = np.argsort(sizes, kind="stable")
    sizes, estimates = [sizes[i] for i in order], [estimates[i] for i in order]
    lower, upper = np.transpose([own.interval(0.95) for own in estimates])
    means = np.array([own.mean for own in estimates])
    with style.ours():
        figure = style.figure(0.75 * style.WIDTH, 3.6)
        axes = figure.subplots()
        axes.errorbar(
            sizes, means, yerr=[means - lower, upper - means], fmt="o-", color=LINE, ecolor=FILL,
            elinewidth=5, label="estimate and 95 % interval",
        )  # fmt: skip
        if true is not None:
            axes.axhline(
                checked_number(true, "true"), color=TRUTH, linestyle=(0, (4, 2)), label="true mean"
            )
        axes.set_xlabel("number of points")
        axes.set_ylabel(f"mean of {estimates[-1].name or 'f'}", parse_math=False)
        figure.legend(loc="outside lower center", ncols=3)
    return figure
