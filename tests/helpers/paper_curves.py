"""MMD curves of the paper's problem, and curves with their noise about a known mean."""

import json

import numpy as np
from project import SHELF

import bqlib
from bqlib import weights
from bqlib.candidates import Candidates
from bqlib.trial import trial

RULES = {"iid": weights.uniform, "herding": weights.uniform, "sbq": weights.bq}


def paper_curves(algorithm, seeds, n, pool):
    """MMD of one algorithm at length-scale 0.5, shape (seeds, n)."""
    numbers = json.loads((SHELF / "chen2010_mixture.json").read_text())
    target = bqlib.GaussianMixture(*(numbers[key] for key in ("weights", "means", "covariances")))
    kernel = bqlib.ExponentiatedQuadratic(0.5, scale="density")
    design, rule = getattr(bqlib, algorithm), RULES[algorithm]
    runs = (trial(target, kernel, design, rule, Candidates(pool), n, s) for s in range(seeds))
    return np.array([run["mmd"] for run in runs])


def with_noise_of(curves, mean, rng, count):
    """Curves about `mean` (n,) with deviations of `curves` (S, n), resampled with random signs."""
    deviation = np.log(curves) - np.log(curves).mean(axis=0)
    deviation *= np.sqrt(len(curves) / (len(curves) - 1))
    signs = rng.choice([-1.0, 1.0], count)
    return mean * np.exp(signs[:, None] * deviation[rng.integers(0, len(curves), count)])


def broken(window, n, *slopes):
    """A power law whose rate changes, after equal parts of the window in log n."""
    x = np.log(n)
    breaks = np.linspace(*np.log(window), len(slopes) + 1)[1:-1]
    log_error = -slopes[0] * x
    for place, before, after in zip(breaks, slopes[:-1], slopes[1:], strict=True):
        log_error -= (after - before) * np.maximum(x - place, 0)
    return np.exp(log_error)


def bumped(window, n):
    """1 / n with a bump of a factor 1.5 over half an octave in the middle of the window."""
    middle = np.sqrt(np.prod(window))
    return np.where(np.abs(np.log2(n / middle)) <= 0.25, 1.5, 1.0) / n
