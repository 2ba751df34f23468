"""How often the intervals of ratios of points hold the true ratio.

First on synthetic rules: points are whole numbers that tie, many are censored, and the problems of
a seed have a part of their noise in common. Then on rules of the paper's target with four
length-scales, where sets of seeds are drawn from 200. Columns: the true ratio; the shares of
problems, levels and seeds on which the rules tie, one rule alone gets there, and none does; the
seeds of a set; the share of sets without an interval, because a seed has an infinite ratio; and
the shares of intervals that hold the true ratio: ours, those of the widened percentile bootstrap,
and Student's for medians in place of the middle fifth. Exits with 1 where ours are not within 93
to 97 %, apart from rules whose seeds differ by less than 1 %: no interval can be told there from
none. Takes some minutes.
Run: python benchmarks/profile_coverage.py
"""

import sys
import tempfile
from itertools import combinations
from pathlib import Path

import numpy as np

from bqlib import profiles
from bqlib.analysis.profiles import points_to_levels
from bqlib.over_seeds import mean_interval, student_interval

sys.path.append(str(Path(__file__).parent.parent / "tests" / "helpers"))
import paper_sweep
from synthetic_points import CASES, points_of

SEEDS = (5, 10, 20)
SETS = 4000  # the error of a share is 0.35 %
AT_ONCE = 100
OF_THE_TRUTH = 40_000  # seeds
REAL_SEEDS = 200
SMALL = 0.01  # sd of the log ratio of a seed
LEAST, MOST = 0.93, 0.97
RULES = ("iid", "herding", "herding_bq", "sbq", "rpcholesky")
HEADINGS = ("ratio", "ties", "one", "none", "seeds", "no int", "ours", "boot", "median")


def of_seeds(points):
    """Middle fifth and median of the log ratios of each seed, and what is special of them."""
    with np.errstate(invalid="ignore"):
        logs = np.log(points[0]) - np.log(points[1])
    rows = logs.reshape(-1, logs.shape[-1]).T
    medians = [np.median(own[~np.isnan(own)]) for own in rows]
    special = [(logs == 0).mean(), np.isinf(logs).mean(), np.isnan(logs).mean()]
    return np.array([profiles.middles(rows), medians]), special


def synthetic(rules, rng, count, seeds):
    """What `of_seeds` gives of each of some sets, shape (2, count, seeds), and its mean."""
    found, special = [], []
    for start in range(0, count, AT_ONCE):
        for own in points_of(rules, rng, min(AT_ONCE, count - start), seeds):
            values, more = of_seeds(own)
            found.append(values)
            special.append(more)
    return np.moveaxis(found, 1, 0), np.mean(special, axis=0)


def real_points():
    """Points of rules at four length-scales of the paper's target, (A, P, L, S)."""
    text = paper_sweep.SWEEP.replace("1500", "300").replace("n: 120", "n: 40")
    text = text.replace("seeds: 5", f"seeds: {REAL_SEEDS}").replace("[0.5]", "[0.25, 0.5, 1, 2]")
    text = text.replace("[[10, 120], [20, 120]]", "[[5, 40]]")
    text = text.replace("[iid, herding, herding_bq, sbq]", f"[{', '.join(RULES)}]")
    with tempfile.TemporaryDirectory() as folder:
        return points_to_levels(paper_sweep.run(Path(folder), text))["points"].values


def told(name, sets, special, true):
    """Print the row of one case and number of seeds; whether ours holds what is asked for."""
    middles, medians = (own[np.isfinite(own).all(axis=1)] for own in sets)
    shares = [1 - len(middles) / sets.shape[1]]
    for interval, values, truth in (
        (student_interval, middles, true[0]),
        (mean_interval, middles, true[0]),
        (student_interval, medians, true[1]),
    ):
        _, low, high = interval(values.T)
        shares.append(float(np.mean((low <= truth + 1e-12) & (truth - 1e-12 <= high))))
    small = bool(middles.std() < SMALL)
    row = [f"{np.exp(true[0]):9.3f}", *(f"{share:9.1%}" for share in special)]
    row += [f"{sets.shape[2]:9}", *(f"{share:9.1%}" for share in shares)]
    print(f"{name:22}" + "".join(row) + "   seeds hardly differ" * small, flush=True)
    return small or LEAST <= shares[1] <= MOST


def main():
    rng = np.random.default_rng(0)
    right = True
    print(f"95 % intervals that hold the true ratio, of {SETS}; 93 to 97 % are asked for")
    print(f"{'case':22}" + "".join(f"{heading:>9}" for heading in HEADINGS))
    for name, rules in CASES.items():
        many, special = synthetic(rules, rng, OF_THE_TRUTH // 20, 20)
        true = [own[np.isfinite(own)].mean() for own in many]  # hardly any is not
        for seeds in SEEDS:
            sets, _ = synthetic(rules, rng, SETS, seeds)
            right &= told(name, sets, special, true)
    points = real_points()
    for pair in combinations(range(len(RULES)), 2):
        values, special = of_seeds(points[list(pair)])
        finite = values[:, np.isfinite(values).all(axis=0)]
        name = "/".join(RULES[i] for i in pair)
        if finite.shape[1] < REAL_SEEDS / 2:
            print(f"{name:22} one of them rarely gets as far as the other")
            continue
        for seeds in SEEDS:
            sets = finite[:, rng.integers(0, finite.shape[1], (SETS, seeds))]
            right &= told(name, sets, special, finite.mean(axis=1))
    return not right


if __name__ == "__main__":
    sys.exit(main())
