"""Profiles and pairs of rules, against counts by hand over small tables."""

from itertools import product

import numpy as np
import pytest
from synthetic_points import CASES, points_of

from bqlib import profiles

BUDGETS = np.array([0.5, 1.0, 2.0, 3.0, 8.0, np.inf])


def table(seed, rules=3, problems=4, levels=3, seeds=2):
    """Small whole numbers with ties, censored ones and some that were not tried."""
    rng = np.random.default_rng(seed)
    points = rng.integers(1, 9, (rules, problems, levels, seeds)).astype(float)
    points[rng.random(points.shape) < 0.25] = np.inf
    points[rng.random(points.shape) < 0.1] = np.nan
    points[0, 1] = np.nan  # a problem that one rule has not tried
    return points


@pytest.mark.parametrize("seed", range(5))
def test_a_data_profile_counts_what_is_solved_within_a_budget(seed):
    points, dims = table(seed), np.array([1, 2, 3, 10])
    expected = []
    for own in points:
        shares = []
        for d, problem in zip(dims, own, strict=True):
            tried = [n for n in problem.ravel() if not np.isnan(n)]
            if tried:
                within = [sum(n / d <= b and n < np.inf for n in tried) for b in BUDGETS]
                shares.append(np.array(within) / len(tried))
        expected.append(np.mean(shares, axis=0))
    found = profiles.data_profile(points, dims, BUDGETS)
    np.testing.assert_allclose(found, expected, rtol=1e-14)


def test_seeds_of_one_problem_give_it_no_more_weight():
    points = np.full((2, 3, 4, 10), 5.0)
    points[0, 1:, :, 1:] = np.nan  # an easy problem with ten seeds, and others with one
    points[0, 1:, :, 0] = np.inf
    found = profiles.data_profile(points, np.ones(3), np.array([np.inf]))
    np.testing.assert_allclose(found[:, 0], [1 / 3, 1])
    pair = profiles.versus(points)
    np.testing.assert_allclose([pair.losses[0, 1], pair.ties[0, 1]], [2 / 3, 1 / 3])
    assert pair.ratio[0, 1] == np.inf and np.isnan(pair.ratio_low[0, 1])  # of the full seed alone


def test_one_more_problem_with_one_seed_leaves_the_ratio_as_it_is():
    rng = np.random.default_rng(0)
    points = rng.integers(1, 9, (2, 4, 7, 5)).astype(float)
    more = np.full((2, 1, 7, 5), np.nan)
    more[..., 0] = 3.0
    before, after = profiles.versus(points), profiles.versus(np.concatenate([points, more], 1))
    for name in ("ratio", "ratio_low", "ratio_high"):
        np.testing.assert_array_equal(getattr(before, name), getattr(after, name))
    assert np.isfinite(after.ratio_low[0, 1]) and after.problems[0, 1] == 5


@pytest.mark.parametrize("seed", range(5))
def test_average_runtime_shares_what_all_seeds_spent_among_those_that_got_there(seed):
    points, spent = table(seed, seeds=4), np.array([8, 9, 10, 11])[:, None, None]
    found = profiles.average_runtime(points, spent)
    for place in np.ndindex(found.shape):
        tried = [n for n in points[place].tolist() if not np.isnan(n)]
        got = [n for n in tried if n < np.inf]
        used = sum(got) + (len(tried) - len(got)) * (8 + place[1])
        if got:
            assert found[place] == used / len(got)
        else:
            np.testing.assert_equal(found[place], np.inf if tried else np.nan)


@pytest.mark.parametrize("seed", range(5))
def test_a_performance_profile_counts_what_is_near_the_best(seed):
    cost, factors = table(seed)[..., 0], np.array([1.0, 1.5, 2.0, 8.0, np.inf])
    expected = np.full((3, 5), np.nan)
    for a, f in product(range(3), range(5)):
        within = tried = 0
        for own in cost.reshape(3, -1).T:
            best = min(x for x in own if not np.isnan(x)) if (~np.isnan(own)).any() else np.nan
            tried += not np.isnan(own[a])
            within += own[a] < np.inf and own[a] <= factors[f] * best
        expected[a, f] = within / tried
    found = profiles.performance_profile(cost, factors)
    np.testing.assert_array_equal(found, expected)
    best = np.fmin.reduce(cost, axis=0)
    reached = [np.isfinite(own[~np.isnan(own)]).mean() for own in cost]
    np.testing.assert_allclose(found[:, -1], reached)
    assert np.isinf(best).any() or found[:, 0].sum() >= 1


@pytest.mark.parametrize("seed", range(5))
def test_versus_counts_pairs_one_by_one(seed):
    points = table(seed, seeds=6)
    found = profiles.versus(points)
    for i, j in product(range(3), repeat=2):
        if i == j:
            assert np.isnan(found.wins[i, j]) and found.problems[i, j] == 0
            continue
        expected = []
        for own, other in zip(points[i], points[j], strict=True):
            pairs = zip(own.ravel(), other.ravel(), strict=True)
            pairs = [(a, b) for a, b in pairs if not np.isnan(a + b)]
            counts = [sum(a < b for a, b in pairs), sum(a == b < np.inf for a, b in pairs)]
            counts += [sum(a > b for a, b in pairs), sum(a == b == np.inf for a, b in pairs)]
            if pairs:
                expected.append(np.array(counts) / len(pairs))
        shares = [own[i, j] for own in (found.wins, found.ties, found.losses, found.neither)]
        np.testing.assert_allclose(shares, np.mean(expected, axis=0), rtol=1e-14)
        both = [not np.isnan(points[i, p] + points[j, p]).all() for p in range(4)]
        assert found.problems[i, j] == sum(both)


def middle_fifth(values):
    """Its mean, with each value in five parts."""
    parts = sorted(5 * list(values))
    return np.mean(parts[2 * len(values) : 3 * len(values)])


def test_the_ratio_is_the_geometric_mean_of_the_middle_of_each_seed():
    points = np.ceil(np.random.default_rng(0).gamma(4.0, 5.0, (2, 5, 7, 6)))
    points[1, :, 5:] = np.inf
    points[:, 0, 6] = np.inf  # neither: left out
    found = profiles.versus(points)
    logs = []
    for s in range(6):
        own = zip(points[0, :, :, s].ravel(), points[1, :, :, s].ravel(), strict=True)
        ratios = [a / b for a, b in own if a < np.inf]
        assert ratios.count(0) == 9  # of 34
        logs.append(middle_fifth([np.log(ratio) if ratio else -1e9 for ratio in ratios]))
    assert found.ratio[0, 1] == pytest.approx(np.exp(np.mean(logs)), rel=1e-12)
    assert found.ratio_low[0, 1] < found.ratio[0, 1] < found.ratio_high[0, 1]
    np.testing.assert_allclose(found.ratio[0, 1] * found.ratio[1, 0], 1.0)
    np.testing.assert_allclose(found.ratio_low[0, 1] * found.ratio_high[1, 0], 1.0)


def test_what_rarely_gets_there_has_an_infinite_ratio():
    points = np.full((2, 1, 5, 6), 3.0)
    points[1, 0, 1:] = np.inf
    found = profiles.versus(points)
    assert (found.ratio[0, 1], found.ratio[1, 0]) == (0, np.inf)
    assert (found.ratio_low[1, 0], found.ratio_high[1, 0]) == (np.inf, np.inf)  # in all seeds
    some = points.copy()
    some[1, 0, :, 0] = 6.0
    found = profiles.versus(some)
    assert found.ratio[1, 0] == np.inf and np.isnan(found.ratio_low[1, 0])
    points[:, 0, :, 0] = points[::-1, 0, :, 0]  # one seed says the opposite
    assert np.isnan(profiles.versus(points).ratio[0, 1])
    halves = np.array([3.0, np.inf])
    even = profiles.versus(np.stack([halves, halves[::-1]])[:, None, :, None])
    assert even.ratio[0, 1] == 1.0


def test_middles_by_brute_force():
    rng = np.random.default_rng(0)
    for count in range(1, 12):
        row = rng.integers(0, 5, count).astype(float)
        with_gaps = np.append(row, [np.nan, np.nan])
        assert profiles.middles(with_gaps[None])[0] == pytest.approx(middle_fifth(row))
        assert profiles.middles(-with_gaps[None]) == -profiles.middles(with_gaps[None])
    assert np.isnan(profiles.middles(np.full((1, 3), np.nan)))[0]
    two_fifths = np.array([[-np.inf, -np.inf, 1.0, 2.0, 3.0], [-np.inf, -np.inf, -np.inf, 2.0, 3]])
    assert profiles.middles(two_fifths).tolist() == [1.0, -np.inf]


def test_a_rule_that_was_not_tried_has_no_numbers():
    points = table(0)
    points[2] = np.nan
    assert np.isnan(profiles.data_profile(points, np.ones(4), BUDGETS)[2]).all()
    assert np.isnan(profiles.average_runtime(points, np.array(9))[2]).all()
    assert np.isnan(profiles.performance_profile(points, np.array([1.0]))[2]).all()
    found = profiles.versus(points)
    assert np.isnan(found.wins[2]).all() and (found.problems[2] == 0).all()
    assert not np.isnan(found.wins[0, 1])


def test_what_makes_no_sense_is_refused():
    with pytest.raises(ValueError, match="smallest cost is 0; costs must be above 0"):
        profiles.versus(np.zeros((2, 1, 1, 1)))
    with pytest.raises(ValueError, match=r"smallest factor is 0.5; factors must be at least 1"):
        profiles.performance_profile(np.ones((2, 1)), np.array([0.5, 2.0]))


@pytest.mark.parametrize("case", ["common noise", "median ties"])
def test_intervals_of_ratios_cover(case):
    # benchmarks/profile_coverage.py has all cases. The error of a share is 1 %.
    rng = np.random.default_rng(1)
    true = np.log(profiles.versus(points_of(CASES[case], rng, 1, 20_000)[0]).ratio[0, 1])
    for seeds in (5, 10, 20):
        sets = points_of(CASES[case], rng, 400, seeds)
        ends = [profiles.versus(own) for own in sets]
        inside = [np.log(e.ratio_low[0, 1]) <= true <= np.log(e.ratio_high[0, 1]) for e in ends]
        assert 0.92 <= np.mean(inside) <= 0.98
