"""Synthetic points that two rules need to reach levels, with what makes intervals hard."""

from dataclasses import dataclass

import numpy as np


@dataclass(frozen=True)
class Rules:
    """Two rules on some problems: the second needs exp(gap) times as many points on the average.

    Points are whole numbers, so that many tie. Those above `largest` are censored. The noise has a
    part that all problems of a seed have in common, one of each problem, and one along the levels.
    """

    gap: float = 0.5
    rough: float = 0.6  # sd of the gap between problems
    common: float = 0.4
    own: float = 0.2
    along: float = 0.3
    problems: int = 8
    levels: int = 21
    largest: int = 128


CASES = {
    "common noise": Rules(),
    "noise of problems": Rules(common=0.0, own=0.4),
    "common noise alone": Rules(common=0.5, own=0.0, along=0.1, gap=0.6),
    "little noise": Rules(common=0.05, own=0.1, along=0.1, gap=0.3),
    "few points": Rules(common=0.3, own=0.3, gap=0.6, largest=40),
    "much censored": Rules(rough=2.0, largest=60),
    "median ties": Rules(gap=0.1),
    "one problem": Rules(common=0.3, own=0.3, along=0.5, rough=0.0, gap=0.6, problems=1),
    "three problems": Rules(common=0.3, own=0.3, along=0.5, gap=0.6, problems=3),
    "30 problems": Rules(common=0.3, own=0.3, rough=0.8, problems=30, levels=51),
}


def points_of(rules, rng, sets, seeds):
    """Points of shape (sets, 2, problems, levels, seeds); the problems are always the same."""
    fixed = np.random.default_rng(7)
    hardest = np.log(rules.largest) * fixed.uniform(0.9, 1.5, rules.problems)
    gap = rules.gap + rules.rough * fixed.standard_normal(rules.problems) / 2
    depth = np.linspace(0, 1, rules.levels)[:, None]
    found = np.empty((sets, 2, rules.problems, rules.levels, seeds))
    for rule in range(2):
        noise = rules.common * rng.standard_normal((sets, 1, 1, seeds))
        noise = noise + rules.own * rng.standard_normal((sets, rules.problems, 1, seeds))
        steps = rng.standard_normal((sets, rules.problems, rules.levels, seeds))
        noise = noise + rules.along * np.cumsum(steps, axis=2) / np.sqrt(rules.levels)
        mean = hardest + 2 * gap * rule
        log_n = (mean[:, None, None] + noise) * depth
        found[:, rule] = np.maximum.accumulate(np.ceil(np.exp(np.maximum(log_n, 0))), axis=2)
    found[found > rules.largest] = np.inf
    return found
