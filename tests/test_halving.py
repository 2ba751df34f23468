"""Kernel halving, and the designs made of it: kernel thinning and Compress++."""

from itertools import product
from math import log

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

import bqlib
from bqlib import Candidates, Empirical, ExponentiatedQuadratic, GaussianMixture, Stein, embed, mmd
from bqlib.checks import checked_rng
from bqlib.designs import halving
from bqlib.designs.halving import COLUMNS, DELTA, PAIRS, evenly, halve, thinned

TARGET = GaussianMixture([0.6, 0.4], [[0.0, 0.0], [2.0, 1.0]], [np.eye(2), 0.3 * np.eye(2)])
KERNEL = ExponentiatedQuadratic(0.8)
STEIN = Stein(TARGET)
POOL = TARGET.sample(1000, np.random.default_rng(0))
RULES = ["compress", "kernel_thinning"]


def distance(points, pool=POOL, kernel=KERNEL):
    """MMD between the points and the pool, both with equal weights."""
    return mmd(embed(kernel, Empirical(pool)), points, np.full(len(points), 1 / len(points)))


def signs_one_by_one(kernel, points, uniforms):
    """The walk as the paper writes it, from the whole Gram matrix."""
    gram = kernel(points, points)
    first, second = [], []
    variance = 0.0
    for i in range(len(points) // 2):
        x, y = 2 * i, 2 * i + 1
        square = gram[x, x] + gram[y, y] - 2 * gram[x, y]
        pull = sum(gram[x, j] - gram[y, j] for j in first)
        pull -= sum(gram[x, j] - gram[y, j] for j in second)
        threshold = max(np.sqrt(square * variance * 2 * log(len(points) / DELTA)), square)
        variance += square * max(1 + (square - 2 * threshold) * variance / threshold**2, 0)
        if uniforms[i] <= (1 - pull / threshold) / 2:
            first.append(x), second.append(y)
        else:
            first.append(y), second.append(x)
    return sorted(first), sorted(second)


@pytest.mark.parametrize("kernel", [KERNEL, STEIN])
@pytest.mark.parametrize("pairs", [1, 2, PAIRS, PAIRS + 1, COLUMNS // 2 + PAIRS + 7])
def test_halves_are_those_of_the_walk_taken_step_by_step(kernel, pairs):
    points = TARGET.sample(2 * pairs, rng=pairs)
    uniforms = checked_rng(5).random(pairs)
    found = halve(kernel, points, checked_rng(5))
    for half, expected in zip(found, signs_one_by_one(kernel, points, uniforms), strict=True):
        assert half.tolist() == expected


@given(st.integers(1, 200), st.integers(0, 5), st.integers(0, 2**32))
def test_halves_take_one_of_each_two_points(pairs, distinct, seed):
    rng = np.random.default_rng(seed)
    points = rng.integers(distinct + 1, size=(2 * pairs, 1)).astype(float)  # with many repeats
    halves = halve(ExponentiatedQuadratic(1.0), points, checked_rng(seed))
    assert sorted(np.concatenate(halves)) == list(range(2 * pairs))
    assert all((half // 2).tolist() == list(range(pairs)) for half in halves)


@pytest.mark.parametrize("kernel, least", [(KERNEL, 1.4), (STEIN, 1.2)])
def test_halves_are_closer_to_each_other_than_random_ones(kernel, least):
    def between(halves):
        one, other = (POOL[half] for half in halves)
        gram = kernel(one, one).mean() + kernel(other, other).mean() - 2 * kernel(one, other).mean()
        return np.sqrt(gram)

    balanced = np.mean([between(halve(kernel, POOL, checked_rng(s))) for s in range(5)])
    order = [np.random.default_rng(s).permutation(1000) for s in range(5)]
    assert balanced < np.mean([between(np.split(rows, 2)) for rows in order]) / least


def test_rows_are_evenly_spaced():
    for size, count in product(range(1, 40), range(1, 40)):
        if count <= size:
            rows = evenly(size, count)
            gaps = np.diff(rows)
            assert len(rows) == count and rows[0] >= 0 and rows[-1] < size
            assert count == 1 or gaps.max() - gaps.min() <= 1
            assert abs(rows[0] - (size - 1 - rows[-1])) <= 1 + size // count
    assert evenly(7, 7).tolist() == list(range(7)) and evenly(9, 1).tolist() == [4]


@pytest.mark.parametrize("target", [TARGET, Empirical(POOL)])
def test_thinned_points_are_no_worse_than_any_part_that_was_halved(target, monkeypatch):
    embedding, n = embed(KERNEL, target), 60
    parts = [evenly(1000, n * 16)]
    rng = checked_rng(3)
    for _ in range(4):
        parts = [part[half] for part in parts for half in halve(KERNEL, POOL[part], rng)]
    assert {len(part) for part in parts} == {n} and len(parts) == 16
    equal = np.full(n, 1 / n)
    of_parts = [mmd(embedding, POOL[part], equal) for part in [*parts, evenly(1000, n)]]
    found = mmd(embedding, POOL[thinned(embedding, POOL, n, checked_rng(3))], equal)
    assert found < 0.8 * min(of_parts)
    monkeypatch.setattr(halving, "_exchanged", lambda kernel, pool, mean, rows, repeats: rows)
    best = mmd(embedding, POOL[thinned(embedding, POOL, n, checked_rng(3))], equal)
    assert best == min(of_parts)


@pytest.mark.parametrize("repeats", [True, False])
def test_each_point_is_exchanged_for_the_best_candidate(repeats):
    pool = np.concatenate([POOL[:30], POOL[:10]])
    embedding, equal = embed(KERNEL, TARGET), np.full(5, 0.2)
    rows = np.array([30, 0, 3, 7, 12])  # 30 repeats 0
    found = halving._exchanged(KERNEL, pool, embedding.kernel_mean(pool), rows, repeats)
    before = None
    while before is None or (rows != before).any():
        before = rows.copy()
        for i in range(5):
            others = pool[np.delete(rows, i)]
            values = [mmd(embedding, np.concatenate([[x], others]), equal) for x in pool]
            if not repeats:
                taken = [(others == x).all(axis=1).any() for x in pool]
                values = np.where(taken, np.inf, values)
            rows[i] = np.argmin(values)
    np.testing.assert_array_equal(pool[found], pool[rows])
    assert repeats or len(np.unique(pool[found], axis=0)) == 5


@pytest.mark.parametrize("rule", RULES)
def test_equal_weights_stay_right(rule):
    design = getattr(bqlib, rule)(TARGET, KERNEL, 50, rng=1, candidates=POOL)
    np.testing.assert_array_equal(design.points, POOL[design.rows])
    assert design.weights.tolist() == [1 / 50] * 50
    draws = np.sqrt((1 - design.embedding.prior_variance) / 50)
    assert mmd(design.embedding, design.points, design.weights) < draws / 5
    again, other = (
        getattr(bqlib, rule)(TARGET, KERNEL, 50, rng=s, candidates=POOL) for s in (1, 2)
    )
    assert (again.rows == design.rows).all() and (other.rows != design.rows).any()


@given(
    size=st.integers(1, 700),
    n=st.integers(1, 700),
    oversampling=st.integers(0, 5),
    repeats=st.booleans(),
    seed=st.integers(0, 2**32),
)
def test_a_pool_of_any_size_is_compressed(size, n, oversampling, repeats, seed):
    n = min(n, size)
    pool = np.random.default_rng(seed).normal(size=(size, 1))
    target = GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    design = bqlib.compress(
        target, KERNEL, n, rng=seed, candidates=pool, repeats=repeats, oversampling=oversampling
    )
    assert design.points.shape == (n, 1) and (pool[design.rows] == design.points).all()
    assert repeats or len(np.unique(design.rows)) == n


def test_compressed_points_are_about_as_close_as_thinned_ones():
    pool = TARGET.sample(4096, rng=2)
    found = {}
    for rule in RULES:
        designs = [
            getattr(bqlib, rule)(Empirical(pool), KERNEL, 64, rng=s, candidates=pool)
            for s in range(3)
        ]
        found[rule] = np.mean([distance(design.points, pool) for design in designs])
    assert found["compress"] < 1.5 * found["kernel_thinning"]
    assert found["compress"] < np.sqrt(1 / 64) / 5


def test_compression_without_repeats_takes_the_whole_pool_where_a_part_has_too_few_points():
    # Of 4,096 candidates, 1 in 8 is of its own, and 256 of the 4 n that are compressed.
    pool = np.repeat(POOL[:512], 8, axis=0)
    options = {"rng": 0, "candidates": pool, "repeats": False, "oversampling": 1}
    design = bqlib.compress(TARGET, KERNEL, 500, **options)
    assert len(np.unique(design.points, axis=0)) == 500


@pytest.mark.parametrize("rule", RULES)
def test_thinning_says_what_it_cannot_do(rule):
    def made(n=8, **options):
        return getattr(bqlib, rule)(TARGET, KERNEL, n, rng=0, **{"candidates": POOL} | options)

    with pytest.raises(ValueError, match="1 initial points of n = 8; thinning cannot start from"):
        made(initial=[[0.0, 0.0]])
    with pytest.raises(ValueError, match="needs one pool, of which it keeps a part: use fresh=Fal"):
        made(candidates=Candidates(50, fresh=True))
    doubled = np.concatenate([POOL[:5], POOL[:5]])
    with pytest.raises(ValueError, match="n is 8, but only 5 candidates are distinct"):
        made(candidates=doubled, repeats=False)
    assert len(made(candidates=doubled).points) == 8
    if rule == "compress":
        with pytest.raises(ValueError, match="oversampling is -1"):
            made(oversampling=-1)


@pytest.mark.parametrize("size, n", [(8000, 100), (500, 20), (8000, 80), (10_000, 100)])
def test_a_pool_is_never_compressed_to_less_than_the_points_asked_for(size, n):
    pool = TARGET.sample(size, rng=0)
    design = bqlib.compress(TARGET, KERNEL, n, rng=0, candidates=pool, oversampling=0)
    assert len(design.rows) == n
