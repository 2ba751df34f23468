"""How often the intervals and verdicts of fitted rates are right, on curves with known answers.

Curves have noise that is correlated along n as that of real ones is, 0.96 to 0.99 from one n to the
next. Prints each share beside its bounds, and exits with 1 where one is outside. Takes minutes.
Run: python benchmarks/rate_coverage.py
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np

from bqlib import rates

sys.path.append(str(Path(__file__).parent.parent / "tests" / "helpers"))
from synthetic_sweep import correlated_noise

WINDOW = (20, 400)
SIZES = rates.log_spaced(*WINDOW)
N = np.arange(1.0, WINDOW[1] + 1)
REPLICATIONS = 2000  # the error of a share is 0.5 %; of 500 it would be 1 %
SETS = 100
EXPONENTS = (0.5, 1.0, 1.5)
CORRELATIONS = (0.96, 0.99)
SEEDS = (10, 20)
# Curve, spread of the noise, the right verdict, and how often it must be given at least. Nothing
# but a power law may be named where noise drowns all else: it says that nothing speaks against one.
TRUTHS = {
    "0.8 / n": (0.8 / N, 0.02, "power_law", 0.2),
    "0.14 exp(-0.3 n^0.5)": (0.14 * np.exp(-0.3 * N**0.5), 0.02, "stretched_exponential", 0.95),
    "0.8 / n, floor of 0.02": (np.hypot(0.8 / N, 0.02), 0.02, "power_law_with_floor", 0.95),
    "0.8 / n, floor of 0.002": (np.hypot(0.8 / N, 0.002), 0.02, "power_law_with_floor", 0.95),
    "0.8 / n, floor of 0.0007": (np.hypot(0.8 / N, 0.0007), 0.02, "undecided", 0.9),
    "exp(-4 n^0.1), noise 0.05": (np.exp(-4 * N**0.1), 0.05, "undecided", 0.9),
    "exp(-4 n^0.1), noise 0.3": (np.exp(-4 * N**0.1), 0.3, "undecided", 0.2),
}
VERDICTS = ("power_law", "stretched_exponential", "power_law_with_floor", "undecided")


def coverage(rng, exponent, correlation, seeds):
    """Share of the replications whose interval holds the exponent, and the mean estimate."""
    noise = correlated_noise(rng, (REPLICATIONS * seeds, WINDOW[1]), 0.05, correlation)
    curves = (0.8 * N**-exponent * np.exp(noise))[:, SIZES - 1]
    estimates = rates.power_law(SIZES, curves)["rate"].reshape(REPLICATIONS, seeds)
    ends = np.array([rates.mean_interval(values)[1:] for values in estimates])
    return np.mean((ends[:, 0] <= exponent) & (exponent <= ends[:, 1])), estimates.mean()


def verdicts(rng, curve, spread, seeds=10):
    """How often each verdict is given."""
    noise = correlated_noise(rng, (SETS * seeds, WINDOW[1]), spread, 0.97)
    errors = (curve * np.exp(noise))[:, SIZES - 1]
    given = Counter()
    for block in np.split(errors, SETS):
        fits = {name: fit(SIZES, block) for name, fit in rates.MODELS.items()}
        given[rates.verdict(rates.wins(fits, len(SIZES)))] += 1
    return {name: given[name] / SETS for name in VERDICTS}


if __name__ == "__main__":
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
    print(f"\nverdicts over {SETS} sets of 10 seeds; * marks the right one and its least share")
    print(f"{'curve':26}" + "".join(f"{name:>23}" for name in VERDICTS))
    for name, (curve, spread, right, least) in TRUTHS.items():
        shares = verdicts(rng, curve, spread)
        richer = sum(shares[v] for v in VERDICTS[1:3] if v != right)
        wrong |= shares[right] < least or richer > 0.05
        marks = [f"{share:.0%}" + f" *{least:.0%}" * (v == right) for v, share in shares.items()]
        print(f"{name:26}" + "".join(f"{mark:>23}" for mark in marks))
    sys.exit(wrong)
