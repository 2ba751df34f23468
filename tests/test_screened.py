"""A pool that is screened in float32: its picks against those of a pool in float64."""

import tracemalloc

import numpy as np
import pytest

from bqlib import (
    Brownian,
    ExponentiatedQuadratic,
    GaussianMixture,
    IntegratedBrownian,
    Matern,
    OnCoordinates,
    RationalQuadratic,
    Stein,
    Uniform,
    embed,
    sbq,
)
from bqlib.designs import screened
from bqlib.designs.interpolant import Interpolant
from bqlib.designs.pools import FixedPool, scores
from bqlib.designs.sbq import decrement
from bqlib.designs.screened import ScreenedPool

INTERVAL = Uniform([0.0], [1.0])
SQUARE = Uniform([0.0, 0.0], [1.0, 1.0])
PLANE = GaussianMixture([0.4, 0.6], [[-1.0, 0.0], [1.0, 0.5]], [np.eye(2), 0.3 * np.eye(2)])
BLOCK = 700


def normal(dim):
    return GaussianMixture([1.0], [np.zeros(dim)], [np.eye(dim)])


CASES = {
    "narrow, d = 1": (INTERVAL, ExponentiatedQuadratic(0.02)),
    "wide, d = 1": (INTERVAL, ExponentiatedQuadratic(2.0)),
    "d = 2": (PLANE, ExponentiatedQuadratic(0.5, scale="density")),
    "wide, d = 2": (PLANE, ExponentiatedQuadratic(1.5)),
    "rough, d = 2": (normal(2), Matern(0.7, 0.5)),
    "Matern, d = 2": (normal(2), Matern(1.0, 2.5)),
    "heavy tails, d = 3": (normal(3), RationalQuadratic(1.0, 1.5)),
    "d = 5": (normal(5), ExponentiatedQuadratic(1.0)),
    "d = 10": (normal(10), ExponentiatedQuadratic(3.0)),
    "narrow, d = 10": (normal(10), Matern(0.3, 1.5)),
    "heights from 0": (INTERVAL, Brownian()),
    "smooth, heights from 0": (INTERVAL, IntegratedBrownian()),
    "a sum": (PLANE, ExponentiatedQuadratic(0.3) + 1e-3 * ExponentiatedQuadratic(3.0)),
    "a product": (SQUARE, OnCoordinates(Brownian(), [0]) * OnCoordinates(Matern(0.3, 1.5), [1])),
    "Stein": (PLANE, Stein(PLANE, 0.6, constant=1.0)),
}


def pool_of(target, size, seed):
    """Draws, of which a third is there twice."""
    rng = np.random.default_rng(seed)
    pool = target.sample(size, rng)
    return np.concatenate([pool, pool[: size // 3]])[rng.permutation(size + size // 3)]


def in_step(embedding, pool, n, initial=()):
    """For each pick in float64 down to pivots of 1e-9: it, what is picked by screen, both pools.

    Both pools learn what float64 picks, as one difference would make all later picks differ.
    """
    interpolant = Interpolant(embedding, n + len(initial))
    plain = FixedPool(embedding.kernel, pool, embedding.kernel_mean(pool), n + len(initial))
    mine = ScreenedPool(interpolant, pool, n + len(initial), BLOCK)

    def learn(x, column, residual, power):
        plain.learn(interpolant.rank, x, column, residual, power)
        mine.learn(x, column, residual, power)
        interpolant.add(x, column, residual, power)

    for x in initial:
        learn(x, *interpolant.at(x))
    for _ in range(n):
        i = int(np.argmax(scores(plain, decrement)))
        if plain.power[i] <= 1e-9 * plain.heights[i]:
            return
        few, j, score = mine.best()
        yield pool[i], few.pool[j], plain, mine
        assert score == decrement(few.residual, few.power)[j]
        learn(pool[i], plain.column(interpolant, i), plain.residual[i], plain.power[i])


def differences(embedding, pool, n, **options):
    """At how many picks they differ, and how many of the steps had a screen."""
    found = [
        (np.any(x != y), mine._screen is not None)
        for x, y, _, mine in in_step(embedding, pool, n, **options)
    ]
    return np.sum(found, axis=0)


@pytest.fixture
def few(monkeypatch):
    """So few candidates are known at first that most picks are new ones."""
    monkeypatch.setattr(screened, "SAMPLE", 32)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("case", CASES)
def test_picks_are_those_of_float64(few, case, seed):
    target, kernel = CASES[case]
    wrong, screens = differences(embed(kernel, target), pool_of(target, 3000, seed), 120)
    assert wrong == 0 and screens >= 2


def test_picks_differ_where_errors_are_thought_smaller(few, monkeypatch):
    monkeypatch.setattr(screened, "SAFETY", screened.SAFETY / 1000)
    wrong = 0
    for target, kernel in CASES.values():
        wrong += differences(embed(kernel, target), pool_of(target, 3000, 0), 120)[0]
    assert wrong > 10


def test_picks_after_initial_points_are_those_of_float64(few):
    embedding = embed(ExponentiatedQuadratic(0.7), PLANE)
    initial = PLANE.sample(5, 7)
    assert tuple(differences(embedding, pool_of(PLANE, 3000, 1), 60, initial=initial)) == (0, 60)


@pytest.mark.parametrize("factor", [1e-60, 1e60])
def test_heights_that_float32_cannot_hold_change_nothing(few, factor):
    kernel, pool = ExponentiatedQuadratic(0.4), pool_of(PLANE, 3000, 2)
    known = []
    for embedding in (embed(kernel, PLANE), embed(factor * kernel, PLANE)):
        steps = list(in_step(embedding, pool, 60))
        assert all(np.array_equal(x, y) for x, y, *_ in steps)
        known.append(sum(map(len, steps[-1][-1]._rows)))
    assert known[0] == known[1] < len(pool) / 3


@pytest.mark.parametrize("case", ["d = 2", "Matern, d = 2", "d = 5", "heights from 0", "Stein"])
def test_errors_stay_within_what_the_screen_says(case):
    target, kernel = CASES[case]
    pool = pool_of(target, 3000, 3)
    screen = None
    for _, _, plain, mine in in_step(embed(kernel, target), pool, 150):
        screen = mine._screen
        if screen is None:
            break
        explained = np.maximum(1 - plain.power / np.maximum(plain.heights, 1e-300), 0.0)
        rooms = np.sqrt([screen.residual_sum, screen.power_sum * explained])
        rooms *= screened.SAFETY * screen.errors[:, None] * [[screen.unit], [1.0]]
        rooms *= [np.sqrt(plain.heights), plain.heights]
        live = (plain.power > plain.floors) & ~screen.done
        wrong = [screen.residual - plain.residual, screen.power - plain.power]
        rounding = 1e-14 * np.array([[screen.unit], [1.0]]) * plain.heights.max()
        assert (np.abs(wrong) <= rooms + rounding)[:, live].all()
    assert screen is None or screen.errors.max() < 1e-5


def test_the_first_of_equals_is_picked_and_not_all_are_known():
    grid = (np.arange(3000) + 0.5)[:, None] / 3000
    embedding = embed(ExponentiatedQuadratic(1e-3), INTERVAL)
    mine = ScreenedPool(Interpolant(embedding, 5), grid, 5, BLOCK)
    mean = embedding.kernel_mean(grid)
    few, i, _ = mine.best()
    assert np.count_nonzero(mean == mean.max()) > 100
    assert few.pool[i] == grid[mean.argmax()]
    assert mine._screen is not None and sum(map(len, mine._rows)) < 300


def test_all_become_known_where_float32_has_no_digits_left():
    embedding = embed(ExponentiatedQuadratic(3.0), PLANE)
    pool = pool_of(PLANE, 3000, 4)
    *_, (_, _, plain, mine) = in_step(embedding, pool, 200)
    assert mine._screen is None and [len(few.pool) for few in mine._known] == [700] * 5 + [500]
    # What repeats a pick stays without power, though it was not known then.
    power = np.concatenate([few.power for few in mine._known])
    repeated = mine._interpolant.repeated(pool)
    assert np.count_nonzero(repeated) > 20 and (power[repeated] <= 0).all()
    np.testing.assert_allclose(power, plain.power, atol=1e-12)


def test_spent_is_asked_of_all():
    embedding = embed(ExponentiatedQuadratic(1.0), PLANE)
    x = PLANE.sample(1, 0)
    for pool, spent in ((np.repeat(x, 2000, axis=0), True), (PLANE.sample(2000, 0), False)):
        interpolant = Interpolant(embedding, 1)
        mine = ScreenedPool(interpolant, pool, 1, BLOCK)
        assert not mine.spent()
        mine = ScreenedPool(interpolant, pool, 1, BLOCK)
        pick = x[0], *interpolant.at(x[0])
        mine.learn(*pick)
        interpolant.add(*pick)
        assert mine.spent() == spent and (mine.best() is None) == spent


def test_a_pool_without_use_has_no_best():
    embedding = embed(ExponentiatedQuadratic(1.0), PLANE)
    mine = ScreenedPool(Interpolant(embedding, 1), np.full((500, 2), 1e6), 1, BLOCK)
    assert mine.best() is None and not mine.spent()


@pytest.mark.parametrize("wide", [False, True])
def test_memory(wide):
    """Half of float64's where there is a screen, and never more than sharded.sbq says."""
    n, size = 100, 40_000
    embedding = embed(ExponentiatedQuadratic(3.0 if wide else 0.5), PLANE)
    pool = PLANE.sample(size, 0)
    interpolant = Interpolant(embedding, n)
    tracemalloc.start()
    mine = ScreenedPool(interpolant, pool, n, 400)
    for _ in range(n):
        few, i, _ = mine.best()
        if few.power[i] <= 1e-12 * few.heights[i]:
            break
        pick = few.pool[i].copy(), few.column(interpolant, i), few.residual[i], few.power[i]
        mine.learn(*pick)
        interpolant.add(*pick)
    most = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()
    assert (mine._screen is None) == wide
    part = 1 if wide else 2 / 3
    assert 4 * size * n < most + pool.nbytes < part * 8 * size * (n + 2 + 16)


def test_designs_are_those_of_sbq():
    embedding, pool, n = embed(ExponentiatedQuadratic(0.5), PLANE), pool_of(PLANE, 3000, 5), 60
    interpolant = Interpolant(embedding, n)
    mine = ScreenedPool(interpolant, pool, n, BLOCK)
    for _ in range(n):
        few, i, _ = mine.best()
        pick = few.pool[i].copy(), few.column(interpolant, i), few.residual[i], few.power[i]
        mine.learn(*pick)
        interpolant.add(*pick)
    points = sbq(PLANE, embedding.kernel, n, rng=0, candidates=pool).points
    np.testing.assert_array_equal(interpolant.points, points)
