"""A hundred of 8,000 draws of a Markov chain: what thinning keeps of a known posterior.

Prints one row for each rule. Each seed is a chain of its own, and the seed of rules that draw
numbers; the numbers are root mean squares over them, and medians of seconds of the processor.

KSD: the kernel Stein discrepancy with the kernel and the settings of stein_thinning, which are the
kernel (1 + |x - y|^2)^(-1/2) of draws in units of their mean absolute deviations. KSD med: the same
with its preconditioner `med`, that is, with the median distance as length-scale. MMD: that to all
draws of the chain, with an exponentiated-quadratic kernel of draws in units of their standard
deviations, whose length-scale is the median distance. mean, sd: errors of the means and the
standard deviations against the true ones, in units of the true standard deviations, as root mean
squares over coordinates too. Weights count in all of these; those of every rule have the sum one.
distinct: how many points are not equal.

stein_thinning and goodpoints run in environments of their own, as in benchmarks/peers. The rules of
goodpoints get the kernel of the MMD. Its Compress++ takes 4,096 evenly spaced draws, the largest
power of four, and gives their root, 64 points; its kernel thinning takes 6,400 and gives 100. One
thread for all.
Run: python benchmarks/thinning/table.py [--problem NAME] [--seeds S] [--json FILE]
"""

import argparse
import json
import sys
from pathlib import Path

import numpy as np
from files import run
from measures import absolute_deviation, ksd, mean_of_pairs, median_distance, mmd
from problems import DRAWS, PROBLEMS, chain

sys.path.append(str(Path(__file__).parents[1] / "peers"))
from environments import THREADS, python_of  # of the peers

POINTS = 100
# What runs: the code, its name of the rule, and ours.
ROWS = [
    ("bqlib", "default", "without scores (compress)"),
    ("bqlib", "kernel thinning", "without scores, kernel_thinning"),
    ("bqlib", "herding", "without scores, herding"),
    ("bqlib", "sbq", "without scores, sbq, its weights"),
    ("goodpoints", "compress++, g = 0", "Compress++, g = 0: 64 points"),
    ("goodpoints", "compress++, g = 4", "Compress++, g = 4: 64 points"),
    ("goodpoints", "kernel thinning, matrix", "kernel thinning"),
    ("bqlib", "scores", "scores (herding)"),
    ("bqlib", "scores, regularised", "scores, stein_thinning (regularised)"),
    ("bqlib", "scores, sbq", "scores, sbq, its weights"),
    ("bqlib", "scores, sbq, simplex", "scores, sbq, simplex weights"),
    ("bqlib", "scores, as stein_thinning", "scores, settings of stein_thinning"),
    ("stein_thinning", "defaults", "its defaults"),
    ("bqlib", "scores, as stein_thinning, sbq", "scores, its settings, sbq, its weights"),
    ("stein_thinning", "med", "preconditioner med"),
    ("bqlib", "scores, as med, sbq", "scores, its med, sbq, its weights"),
    ("stein_thinning", "sclmed", "preconditioner sclmed"),
    ("bqlib", "every", f"every {DRAWS // POINTS}th draw"),
    ("all", "all", "all draws"),
]
TWINS = ("scores, as stein_thinning", "defaults")  # the same rule in two codes
COLUMNS = ("KSD", "KSD med", "MMD", "mean", "sd")


def moments(points, weights):
    mean = weights @ points
    return mean, np.sqrt(np.maximum(weights @ np.square(points - mean), 0))


class Judge:
    """The measures of points of one chain; what they share is computed once."""

    def __init__(self, problem, output):
        self.problem, self.output = problem, output
        self.scale = output.draws.std(axis=0)
        self.standard = output.draws / self.scale
        self.lengthscale = median_distance(self.standard)
        self.pairs = mean_of_pairs(self.standard, self.lengthscale)
        self.deviation = absolute_deviation(output.draws)
        self.median = median_distance(output.draws / self.deviation)

    def __call__(self, rows, weights):
        draws, scores, problem = self.output.draws[rows], self.output.scores[rows], self.problem
        mean, sd = moments(draws, weights)
        x = self.standard[rows]
        return {
            "KSD": ksd(draws, scores, weights, self.deviation),
            # In units in which the length-scale is one, the kernel is median^2 times as high.
            "KSD med": ksd(draws, scores, weights, self.deviation * self.median) / self.median,
            "MMD": mmd(self.standard, x, weights, self.lengthscale, self.pairs),
            "mean": float(np.sqrt(np.mean(((mean - problem.mean) / problem.sd) ** 2))),
            "sd": float(np.sqrt(np.mean(((sd - problem.sd) / problem.sd) ** 2))),
            "distinct": len(np.unique(draws, axis=0)),
        }


def one_chain(name, seed, pythons):
    """What every rule gives for one chain: rows, weights, seconds and measures."""
    output = chain(name, seed)
    judge = Judge(PROBLEMS[name](), output)
    given = {
        "draws": output.draws,
        "scores": output.scores,
        "log_densities": output.log_densities,
        "hessians": output.hessians,
        "n": POINTS,
        "seed": seed,
        "scale": judge.scale,
        "lengthscale": judge.lengthscale,
    }
    found = {}
    for code, python in pythons.items():
        names = [rule for other, rule, _ in ROWS if other == code]
        for rule, facts in run(python, code, names, THREADS, **given).items():
            rows, weights = np.array(facts["rows"]), np.array(facts["weights"])
            found[code, rule] = facts | judge(rows, weights)
    rows = np.arange(DRAWS)
    everything = {"rows": [], "seconds": 0.0} | judge(rows, np.full(DRAWS, 1 / DRAWS))
    everything["MMD"] = 0.0  # but for rounding
    return found | {("all", "all"): everything}


def summary(chains, key):
    """The numbers of one row."""
    columns = {c: np.array([one[key][c] for one in chains]) for c in COLUMNS}
    row = {c: float(np.sqrt(np.mean(np.square(values)))) for c, values in columns.items()}
    for c in ("seconds", "distinct"):
        row[c] = float(np.median([one[key][c] for one in chains]))
    return row


def same_picks(chains):
    """In how many chains both codes pick the same rows, in the same order."""
    pairs = [(one["bqlib", TWINS[0]], one["stein_thinning", TWINS[1]]) for one in chains]
    return sum(ours["rows"] == its["rows"] for ours, its in pairs)


if __name__ == "__main__":
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--problem", choices=PROBLEMS, help="only this one (default: both)")
    parser.add_argument("--seeds", type=int, default=10, help="chains of each (default: 10)")
    parser.add_argument("--json", metavar="FILE", help="write the numbers of each seed here too")
    asked = parser.parse_args()
    pythons = {code: python_of(code) for code in ("bqlib", "goodpoints", "stein_thinning")}
    for code in [code for code, python in pythons.items() if python is None]:
        print(f"{code} could not be installed and is left out", file=sys.stderr)
        del pythons[code]
    kept = {}
    for name in [asked.problem] if asked.problem else PROBLEMS:
        chains = [one_chain(name, seed, pythons) for seed in range(asked.seeds)]
        print(f"{name}, {POINTS} of {DRAWS} draws, {asked.seeds} chains")
        print(
            f"{'code':15} {'rule':38} {'KSD':>7} {'KSD med':>7} {'MMD':>7} {'mean':>6} {'sd':>6} "
            f"{'distinct':>8} {'seconds':>7}"
        )
        for code, rule, label in ROWS:
            if (code, rule) not in chains[0]:
                continue
            row = summary(chains, (code, rule))
            print(
                f"{'' if code == 'all' else code:15} {label:38} {row['KSD']:7.4f} "
                f"{row['KSD med']:7.4f} {row['MMD']:7.1e} {row['mean']:6.4f} {row['sd']:6.4f} "
                f"{row['distinct']:8.0f} {row['seconds']:7.3f}",
                flush=True,
            )
        if "stein_thinning" in pythons:
            print("Chains of which bqlib and stein_thinning pick the same draws: ", end="")
            print(f"{same_picks(chains)} of {len(chains)}\n", flush=True)
        kept[name] = [
            {" / ".join(key): facts for key, facts in one.items() if key[0] != "all"}
            for one in chains
        ]
    if asked.json:
        Path(asked.json).write_text(json.dumps(kept))
