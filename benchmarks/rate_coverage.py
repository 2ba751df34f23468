"""How often intervals, verdicts and the test for faster than 1/n are right, on known curves.

Intervals: noise that is correlated along n as that of real curves is, 0.96 to 0.99 from one n to
the next. Verdicts: i.i.d. points of the paper's problem, whose curves are power laws, and curves
with the noise of herding and of SBQ there. Prints each share beside its bounds, and exits with 1
where one is outside. Takes some minutes.
Run: python benchmarks/rate_coverage.py
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np

from bqlib import over_seeds, rates

sys.path.append(str(Path(__file__).parent.parent / "tests" / "helpers"))
from paper_curves import broken, bumped, paper_curves, with_noise_of
from synthetic_sweep import correlated_noise

WINDOW = (20, 400)
SIZES = rates.log_spaced(*WINDOW)
N = np.arange(1.0, WINDOW[1] + 1)
REPLICATIONS = 2000  # the error of a share is 0.5 %; of 500 it would be 1 %
SETS = 200
EXPONENTS = (0.5, 1.0, 1.5)
CORRELATIONS = (0.96, 0.99)
SEEDS = (10, 20)
WINDOWS = ((20, 200), (20, 400))
POOL, REAL_SEEDS = 10_000, 24  # of the curves whose noise is resampled
NOT_NAMED = (rates.NONE_FITS, rates.UNDECIDED)
VERDICTS = (*rates.MODELS, *NOT_NAMED)
# Name of a curve, the verdicts that are right, their least share, and the noises. None: the curves
# themselves. What noise hides is named a power law: 0.0 asks for nothing, and shows how often.
POWER, EXPONENTIAL, FLOOR = rates.MODELS
TRUTHS = [
    ("i.i.d.", (POWER,), 0.90, (None,)),
    ("1 / n", (POWER,), 0.90, ("herding", "sbq")),
    ("n^-1/2 to n^-1", NOT_NAMED, 0.95, ("herding", "sbq")),
    ("n^-1 to n^-1/2", NOT_NAMED, 0.95, ("herding", "sbq")),
    ("n^-1/2 to n^-1 and back", NOT_NAMED, 0.95, ("herding", "sbq")),
    ("n^-1/2 to n^-1", NOT_NAMED, 0.0, ("iid",)),
    ("bump", NOT_NAMED, 0.95, ("herding", "sbq", "iid")),
    ("log(n) / n", (EXPONENTIAL, FLOOR, *NOT_NAMED), 1.0, ("herding", "sbq")),
    ("log(n) / n", (EXPONENTIAL, FLOOR, *NOT_NAMED), 0.0, ("iid",)),
    ("exp(-0.3 n^0.5)", (EXPONENTIAL,), 0.95, ("sbq", "iid")),
    ("exp(-4 n^0.1)", (EXPONENTIAL,), 0.90, ("sbq",)),
    ("1 / n, floor 0.02", (FLOOR,), 0.95, ("herding", "sbq")),
    ("1 / n, floor 0.0025", (FLOOR,), 0.90, ("herding", "sbq")),
]


def mean_curve(name, window):
    return {
        "1 / n": 1 / N,
        "n^-1/2 to n^-1": broken(window, N, 0.5, 1.0),
        "n^-1 to n^-1/2": broken(window, N, 1.0, 0.5),
        "n^-1/2 to n^-1 and back": broken(window, N, 0.5, 1.0, 0.5),
        "bump": bumped(window, N),
        "log(n) / n": np.log(N + (N == 1)) / N,
        "exp(-0.3 n^0.5)": np.exp(-0.3 * np.sqrt(N)),
        "exp(-4 n^0.1)": np.exp(-4 * N**0.1),
        "1 / n, floor 0.02": np.hypot(1 / N, 0.02),
        "1 / n, floor 0.0025": np.hypot(1 / N, 0.0025),
    }[name]


def coverage(rng, exponent, correlation, seeds):
    """Share of the replications whose interval holds the exponent, and the mean estimate."""
    noise = correlated_noise(rng, (REPLICATIONS * seeds, WINDOW[1]), 0.05, correlation)
    curves = (0.8 * N**-exponent * np.exp(noise))[:, SIZES - 1]
    estimates = rates.power_law(SIZES, curves)["rate"].reshape(REPLICATIONS, seeds)
    ends = np.array([over_seeds.mean_interval(values)[1:] for values in estimates])
    return np.mean((ends[:, 0] <= exponent) & (exponent <= ends[:, 1])), estimates.mean()


def verdicts(curves, window, seeds):
    """Share of the sets of curves with each verdict."""
    sizes = rates.log_spaced(*window)
    sets = curves[: SETS * seeds, sizes - 1].reshape(SETS, seeds, -1)
    given = Counter(rates.verdict(sizes, errors).name for errors in sets)
    return {name: given[name] / SETS for name in VERDICTS}


def faster(curves, seeds):
    """Share of the sets of curves that are shown to be faster than 1/n."""
    slopes = rates.local_slopes(curves)[:, [99, 199]].reshape(-1, seeds, 2)
    tests = (
        over_seeds.holm(np.array([over_seeds.p_greater(s, 1.0) for s in own.T])) for own in slopes
    )
    return np.mean([(p <= 0.05).all() for p in tests])


def main():
    rng = np.random.default_rng(0)
    wrong = False
    print(f"95 % intervals that hold the exponent, of {REPLICATIONS}; 93 to 97 % are asked for")
    print("exponent  correlation  seeds  covered  mean estimate")
    for exponent in EXPONENTS:
        for correlation in CORRELATIONS:
            for seeds in SEEDS:
                share, mean = coverage(rng, exponent, correlation, seeds)
                wrong |= not 0.93 <= share <= 0.97
                print(f"{exponent:8} {correlation:12} {seeds:6} {share:8.1%} {mean:14.4f}")

    real = {name: paper_curves(name, REAL_SEEDS, WINDOW[1], POOL) for name in ("herding", "sbq")}
    real["iid"] = paper_curves("iid", SETS * max(SEEDS), WINDOW[1], POOL)
    print(f"\nfaster than 1/n, of {REPLICATIONS} sets of curves 1/n; at most 5 % are asked for")
    for noise, own in real.items():
        for seeds in SEEDS:
            share = faster(with_noise_of(own, 1 / N, rng, REPLICATIONS * seeds), seeds)
            wrong |= share > 0.05
            print(f"noise of {noise:8} {seeds:4} seeds {share:8.1%}")

    print(f"\nverdicts over {SETS} sets of curves; right: share of right ones, and the least")
    print(f"{'curve':25}{'noise':9}{'window':9}seeds" + "".join(f"{v:>23}" for v in VERDICTS))
    for name, right, least, noises in TRUTHS:
        for noise in noises:
            for window in WINDOWS:
                for seeds in SEEDS:
                    curves = (
                        real["iid"]
                        if noise is None
                        else with_noise_of(real[noise], mean_curve(name, window), rng, SETS * seeds)
                    )
                    shares = verdicts(curves, window, seeds)
                    found = sum(shares[v] for v in right)
                    wrong |= found < least - 1e-9
                    print(
                        f"{name:25}{noise or 'its own':9}{window[0]}-{window[1]:<6}{seeds:5}"
                        + "".join(f"{shares[v]:>23.1%}" for v in VERDICTS)
                        + f"   right {found:.1%} of {least:.0%}",
                        flush=True,
                    )
    return bool(wrong)  # numpy's own is no exit code


if __name__ == "__main__":
    sys.exit(main())
