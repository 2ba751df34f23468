"""Claims on the rules and the experiments, judged by our errors at their settings."""

import numpy as np

from bqlib.claims.evidence import (
    CORRECTED,
    FAILS,
    HOLDS,
    MissingError,
    checks_of,
    claim,
)
from bqlib.claims.hayakawa2022.measured import (
    means,
    need_seeds,
    settings_of,
    sizes_of,
    squares,
    squares_of_grid,
    values,
)

ROUNDING = 1e-12
TWICE = 2.0  # the squared error of the best rule that is still said to compete with it


@claim(
    "Abstract",
    "The rules are convex: no weight is negative, and their sum is one",
    f"holds if it is so in every seed and at every n, to {ROUNDING:g}",
)
def rules_are_convex(evidence):
    least, off, count = np.inf, 0.0, 0
    for setting in settings_of(evidence):
        n = sizes_of(evidence, setting)
        least = min(least, values(evidence, setting, "min_weight", "recombination_10n", n).min())
        total = values(evidence, setting, "weight_sum", "recombination_10n", n)
        off, count = max(off, np.abs(total - 1).max()), count + total.size
    return (
        HOLDS if least >= 0 and off <= ROUNDING else FAILS,
        f"least weight {least:.1e}, sums of weights within {off:.0e} of one, in {count} designs",
        "weights of the smallest MMD on the same points are not negative either, but have another "
        "sum",
    )


@claim(
    "Abstract",
    "The rules can compete with the optimal bounds in well-known examples",
    "holds if in one dimension, at the largest n, the mean squared error of recombination with its "
    f"best weights is at most {TWICE:g} times that of the grid, which is optimal, for every order; "
    "with correction (for order 1) if it is so for order 1 alone; else not",
)
def competes_with_the_optimum(evidence):
    need_seeds(evidence)
    ratios = {}
    for setting in settings_of(evidence):
        if setting.dim == 1:
            n = sizes_of(evidence, setting)[-1:]
            (errors,) = means(evidence, [setting], ("recombination_10n_nonnegative",))
            ratios[setting.order] = float(errors[-1] / squares_of_grid(setting.order, n)[0])
    if set(ratios) != {1, 3}:
        raise MissingError("needs the unit line and the kernels of orders 1 and 3")
    close = {order for order, ratio in ratios.items() if ratio <= TWICE}
    return (
        HOLDS if close == {1, 3} else CORRECTED if 1 in close else FAILS,
        ", ".join(f"order {order}: {ratio:.3g} times" for order, ratio in ratios.items())
        + f" at n = {n[0]}",
        "the rules know only draws and the kernel; the published numbers have the same ratios at "
        "order 1",
    )


@claim(
    "Published errors",
    "With its best weights, recombination is better than draws with BQ weights",
    "holds if its mean squared error is smaller in every setting in which both are, at every n",
)
def better_than_draws(evidence):
    need_seeds(evidence)
    names = ("recombination_10n_nonnegative", "iid_bq")
    settings = [s for s in settings_of(evidence) if "iid_bq" in s.published]
    if not settings:
        raise MissingError("needs two or three dimensions")
    ours, draws = means(evidence, settings, names)
    ratios = ours / draws
    return (
        HOLDS if (ratios < 1).all() else FAILS,
        f"ratio from {ratios.min():.2f} to {ratios.max():.2f} in {ratios.size} cells",
        "its weights are not negative, and those of BQ may be",
    )


@claim(
    "Published errors",
    "Weights of the smallest worst-case error improve recombination at every n",
    "holds if the squared error is smaller in every seed, up to rounding",
)
def better_weights_help(evidence):
    worst, count = 0.0, 0
    for setting in settings_of(evidence):
        n = sizes_of(evidence, setting)
        own, best = (
            squares(evidence, setting, name, n)
            for name in ("recombination_10n", "recombination_10n_nonnegative")
        )
        if own.shape != best.shape:
            raise MissingError("needs seeds in which both weights ran")
        worst, count = max(worst, float(np.max((best - own) / (1e-13 + own)))), count + own.size
    return (
        HOLDS if worst <= 1e-3 else FAILS,
        f"larger by at most {max(worst, 0.0):.0e} of it, in {count} designs",
        "it is so by definition, as the rule's own weights are among those that are compared",
    )


CHECKS = checks_of(globals())
