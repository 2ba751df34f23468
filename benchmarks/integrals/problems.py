"""Integrals with known values: what people who have an expensive model would integrate.

Each problem draws its own parameters, from a generator of the problem and the repetition.
"""

from collections.abc import Callable
from dataclasses import dataclass
from itertools import product
from typing import Any

import numpy as np
from scipy import stats
from scipy.special import erf

# The sums of the parameters a of Genz's families: the larger, the harder.
DIFFICULTY = {
    "oscillatory": 9.0,
    "product peak": 7.25,
    "corner peak": 1.85,
    "Gaussian": 7.03,
    "continuous": 20.4,
}
GENZ_DIM = 6


@dataclass(frozen=True)
class Problem:
    """One f, its inputs by name, and its mean under them."""

    marginals: dict[str, Any]
    f: Callable[[np.ndarray], np.ndarray]  # (n, d) to (n,)
    mean: float


def _box(dim, lower=0.0, upper=1.0):
    return {f"x{c}": stats.uniform(lower, upper - lower) for c in range(dim)}


def ishigami(rng):
    """sin x0 + 7 sin^2 x1 + 0.1 x2^4 sin x0 on [-pi, pi]^3, from Ishigami and Homma (1990)."""

    def f(x):
        return np.sin(x[:, 0]) * (1 + 0.1 * x[:, 2] ** 4) + 7 * np.sin(x[:, 1]) ** 2

    return Problem(_box(3, -np.pi, np.pi), f, 3.5)


def _genz(family):
    """A family of Genz (1984), scaled to the difficulty above, with u and a drawn uniformly."""

    def draw(rng):
        u, a = rng.random((2, GENZ_DIM))
        a *= DIFFICULTY[family] / a.sum()
        f, mean = FAMILIES[family](a, u)
        return Problem(_box(GENZ_DIM), f, float(mean))

    draw.__doc__ = f"{family}, from Genz (1984)"
    return draw


def _oscillatory(a, u):
    turn = np.exp(2j * np.pi * u[0]) * np.prod((np.exp(1j * a) - 1) / (1j * a))
    return lambda x: np.cos(2 * np.pi * u[0] + x @ a), turn.real


def _product_peak(a, u):
    mean = np.prod(a * (np.arctan(a * (1 - u)) + np.arctan(a * u)))
    return lambda x: np.prod(1 / (a**-2 + (x - u) ** 2), axis=1), mean


def _corner_peak(a, u):
    d = len(a)
    corners = np.array(list(product((0, 1), repeat=d)))
    signs = (-1.0) ** corners.sum(axis=1)
    mean = np.sum(signs / (1 + corners @ a)) / np.prod(np.arange(1, d + 1) * a)
    return lambda x: (1 + x @ a) ** -(d + 1.0), mean


def _gaussian(a, u):
    mean = np.prod(np.sqrt(np.pi) / (2 * a) * (erf(a * (1 - u)) + erf(a * u)))
    return lambda x: np.exp(-np.square(a * (x - u)).sum(axis=1)), mean


def _continuous(a, u):
    mean = np.prod((2 - np.exp(-a * u) - np.exp(-a * (1 - u))) / a)
    return lambda x: np.exp(-np.abs(x - u) @ a), mean


FAMILIES = {
    "oscillatory": _oscillatory,
    "product peak": _product_peak,
    "corner peak": _corner_peak,
    "Gaussian": _gaussian,
    "continuous": _continuous,
}

# Water through a borehole, from Harper and Gupta (1983): m^3/year from m, m^2/year and m/year.
BOREHOLE = {
    "rw": stats.norm(0.10, 0.0161812),
    "r": stats.lognorm(1.0056, scale=np.exp(7.71)),
    "Tu": stats.uniform(63070, 115600 - 63070),
    "Hu": stats.uniform(990, 1110 - 990),
    "Tl": stats.uniform(63.1, 116 - 63.1),
    "Hl": stats.uniform(700, 820 - 700),
    "L": stats.uniform(1120, 1680 - 1120),
    "Kw": stats.uniform(9855, 12045 - 9855),
}


def flow(x):
    rw, r, tu, hu, tl, hl, length, kw = np.moveaxis(np.asarray(x), -1, 0)
    log = np.log(r / rw)
    return 2 * np.pi * tu * (hu - hl) / (log * (1 + tu / tl) + 2 * length * tu / (rw**2 * kw))


def borehole(rng):
    """Flow through a borehole, from Harper and Gupta (1983); its mean by 2^22 Sobol points."""
    return Problem(BOREHOLE, flow, BOREHOLE_MEAN)


BOREHOLE_MEAN = 73.73894

PROBLEMS = {
    "Ishigami": ishigami,
    **{family: _genz(family) for family in FAMILIES},
    "borehole": borehole,
}
