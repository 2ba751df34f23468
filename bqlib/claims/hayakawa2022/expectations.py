"""What our results must reach beside the published errors, and what we found of greedy rules."""

import numpy as np

from bqlib.claims.evidence import MissingError, checks_of, expectation
from bqlib.claims.hayakawa2022.measured import (
    RANDOM,
    means,
    need_seeds,
    settings_of,
    sizes_of,
    squares,
    squares_of_grid,
)

CLOSE, SHARE = 2, 0.9
GREEDY = ("sbq_10n", "omp_10n", "herding_10n_bq")


@expectation(
    f"Mean squared errors are within {CLOSE} of the published standard deviations of the published "
    f"means, in {SHARE:.0%} of all cells of random rules"
)
def published_means(evidence):
    need_seeds(evidence)
    off, worst = [], (0.0, "")
    for setting in settings_of(evidence):
        for name in RANDOM:
            if name not in setting.published or name not in evidence.curves["algorithm"].values:
                continue
            inside = sizes_of(evidence, setting)
            _, mean, deviation = (part[: len(inside)] for part in setting.published[name])
            ours = squares(evidence, setting, name, inside).mean(axis=0)
            away = np.where(np.isnan(ours), np.inf, np.abs(ours - mean) / deviation)
            off += away.tolist()
            at = int(np.argmax(away))
            worst = max(worst, (float(away[at]), f"{name}, {setting.name}, n = {inside[at]}"))
    if not off:
        raise MissingError("needs an algorithm of which errors are published")
    near = int(np.sum(np.array(off) <= CLOSE))
    text = f"{near} of {len(off)}; the farthest by {worst[0]:.1f} deviations ({worst[1]})"
    return near >= SHARE * len(off), text


@expectation("The squared errors of the grid are the published ones, to their three digits")
def published_grid(evidence):
    wrong, count = [], 0
    for setting in settings_of(evidence):
        if setting.dim != 1:
            continue
        n, theirs, _ = setting.published["grid"]
        ours = squares_of_grid(setting.order, n)
        count += len(n)
        for size, own, published in zip(n, ours, theirs, strict=True):
            if f"{own:.2e}" != f"{published:.2e}":
                wrong.append(f"{setting.name}, n = {size}: {own:.2e} for {published:.2e}")
    if not count:
        raise MissingError("needs the unit line")
    return not wrong, "; ".join(wrong) or f"equal in {count} of {count} cells"


@expectation("The squared errors of the grid at s = 1 are pi^2 / (3 n^2), to 1e-12 of 1 + them")
def exact_grid(evidence):
    for setting in settings_of(evidence):
        if (setting.dim, setting.order) == (1, 1):
            n = setting.published["grid"][0]
            exact = np.pi**2 / (3 * n**2)
            off = np.abs(squares_of_grid(1, n) - exact) / (1 + exact)
            return bool(off.max() <= 1e-12), f"difference at most {off.max():.0e}"
    raise MissingError("needs the unit line and the kernel of order 1")


@expectation(
    "From 10 n draws, SBQ and orthogonal matching pursuit, and for order 1 also herding with BQ "
    "weights, have a smaller mean squared error than recombination with its best weights at every "
    "n, except for order 3 in one dimension"
)
def greedy_rules_are_better(evidence):
    need_seeds(evidence)
    met, told = [], []
    for setting in settings_of(evidence):
        errors = means(evidence, [setting], (*GREEDY, "recombination_10n_nonnegative"))
        largest = dict(zip(GREEDY, (errors[:-1] / errors[-1]).max(axis=1), strict=True))
        told += [f"{setting.name}: {name} {ratio:.2f}" for name, ratio in largest.items()]
        if (setting.dim, setting.order) != (1, 3):
            better = [ratio < 1 for ratio in largest.values()]
            met += better if setting.order == 1 else better[:2]
    if not met:
        raise MissingError("needs another setting than order 3 in one dimension")
    return all(met), f"largest ratio at {', '.join(told)}"


CHECKS = checks_of(globals())
