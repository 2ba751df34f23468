"""Greedy designs at their ends: little memory, or points that float64 cannot tell apart."""

import json
import os
import tracemalloc
from pathlib import Path

import numpy as np
import pytest

from bqlib import (
    Candidates,
    ExponentiatedQuadratic,
    GaussianMixture,
    Stein,
    Unnormalised,
    fp_greedy,
    omp,
    p_greedy,
    rpcholesky,
    sbq,
)
from bqlib.designs import pools
from bqlib.discrepancy import mmd2_and_rounding, mmd2_of_prefixes, spectral_mmd2
from bqlib.pivots import first_occurrence
from bqlib.weights import bq, conditioning

CHEN2010 = Path(__file__).parent.parent / "config" / "targets" / "chen2010_mixture.json"
NORMAL = GaussianMixture([1.0], [[0.0, 0.0]], [np.eye(2)])
KERNEL = ExponentiatedQuadratic(0.5)
POOL = NORMAL.sample(5000, 0)


def peak(**options):
    """Points of a design, and the most bytes that were in use while it was made."""
    tracemalloc.start()
    try:
        points = sbq(NORMAL, KERNEL, 30, rng=0, candidates=POOL, **options).points
        return points, tracemalloc.get_traced_memory()[1]
    finally:
        tracemalloc.stop()


@pytest.mark.parametrize("refine", [0, 1])
def test_blocks_pick_the_same_points_in_less_memory(refine):
    whole, most = peak(refine=refine)
    blocks, least = peak(refine=refine, memory=2.5e6)
    np.testing.assert_allclose(blocks, whole, atol=1e-6 if refine else 0)
    assert most > POOL.shape[0] * 30 * 8 and least < 2.5e6 + POOL.nbytes


def test_where_the_machine_does_not_say_its_memory_all_is_used(monkeypatch):
    monkeypatch.setattr(os, "sysconf", lambda name: int(name))  # a ValueError, as for a strange one
    np.testing.assert_array_equal(peak()[0], peak(memory=1e9)[0])


@pytest.fixture
def foreseen(monkeypatch):
    """How many picks each guess foresaw; guesses are made from the first step on."""
    found = []
    guess = pools.Foresight._picks_from

    def spy(*arguments):
        picks = guess(*arguments)
        found.append(len(picks))
        return picks

    monkeypatch.setattr(pools, "LEAST_BYTES", 1)
    monkeypatch.setattr(pools.Foresight, "_picks_from", spy)
    return found


@pytest.mark.parametrize("few", [2048, 256, 3])  # which is so few that most guesses are wrong
@pytest.mark.parametrize("rule", [sbq, omp, fp_greedy, p_greedy])
def test_picks_do_not_depend_on_what_was_foreseen(foreseen, monkeypatch, rule, few):
    pool = np.concatenate([POOL[:1500], POOL[:500]])  # some of it twice
    monkeypatch.setattr(pools, "few_of", lambda size: min(few, size))
    points = rule(NORMAL, KERNEL, 120, rng=0, candidates=pool, initial=POOL[3000:3004]).points
    guesses = len(foreseen)
    assert 0 < guesses < (110 if few == 3 else 50)
    monkeypatch.setattr(pools, "LEAST_BYTES", np.inf)
    plain = rule(NORMAL, KERNEL, 120, rng=0, candidates=pool, initial=POOL[3000:3004]).points
    np.testing.assert_array_equal(points, plain)
    assert len(foreseen) == guesses


@pytest.mark.parametrize(
    "size, few", [(5, 5), (256, 256), (9_000, 256), (50_000, 1000), (100_000, 2000), (10**7, 2048)]
)
def test_picks_are_foreseen_among_a_share_of_the_pool(size, few):
    assert pools.few_of(size) == few


def test_a_design_ends_alike_where_its_picks_are_foreseen(foreseen):
    few = POOL[:300]
    design = sbq(NORMAL, ExponentiatedQuadratic(3.0), 300, rng=0, candidates=few)
    assert foreseen and design.stop.startswith(f"design stops at n = {len(design.points)} of 300")


def test_what_is_drawn_or_refined_is_not_foreseen(foreseen):
    rpcholesky(NORMAL, KERNEL, 30, rng=0, candidates=POOL)
    sbq(NORMAL, KERNEL, 10, rng=0, candidates=POOL[:500], refine=1)
    assert not foreseen


def test_a_stein_kernel_scores_the_pool_once_where_picks_are_foreseen(foreseen):
    scored = []

    def score(x):
        scored.append(len(x))
        return -x

    target = Unnormalised(2, score=score)
    sbq(target, Stein(target, 1.0, constant=1.0), 40, rng=0, candidates=POOL)
    assert foreseen and scored.count(len(POOL)) == 1


def test_too_little_memory_is_refused_before_the_start():
    with pytest.raises(
        MemoryError, match=r"5000 candidates and n = 30 need 0.002 GB even in bl.* but only"
    ):
        peak(memory=1e6)
    with pytest.raises(MemoryError, match=r"need 1.6e.14 GB even in blocks"):
        omp(NORMAL, KERNEL, 10**11, rng=0, candidates=Candidates(size=10**11, fresh=True))


@pytest.mark.parametrize(
    ("sigma", "least", "most"),
    [(0.05, 400, 400), (0.5, 400, 400), (1.0, 330, 400), (2.0, 120, 190), (50.0, 5, 15)],
)
def test_four_hundred_points_or_the_numerical_rank(sigma, least, most):
    facts = json.loads(CHEN2010.read_text())
    target = GaussianMixture(facts["weights"], facts["means"], facts["covariances"])
    kernel = ExponentiatedQuadratic(sigma, scale="density")
    pool = target.sample(4000, np.random.default_rng(0))
    design = sbq(target, kernel, 400, rng=0, candidates=pool)
    n = len(design.points)
    assert least <= n <= most
    assert (n < 400) == design.stop.startswith(f"design stops at n = {n} of 400: ")
    assert (first_occurrence(design.points) == np.arange(n)).all()
    assert {a.dtype for a in (design.points, design.weights)} == {np.dtype(float)}

    weights = bq(design.embedding, design.points)
    assert (len(weights.matrix), weights.stop) == (n, "")
    assert np.isfinite(weights.matrix).all()
    # Not garbage: none so large that it would multiply the rounding of f into the estimate.
    assert np.abs(weights.matrix).sum(axis=1).max() < 1e4
    diary = conditioning(design.embedding, design.points, weights.matrix[-1])
    assert diary.rank == n and (diary.pivots > 1e-12).all()

    mmd2 = mmd2_of_prefixes(design.embedding, design.points, weights.matrix)
    assert (mmd2 > 0).all() and (np.diff(mmd2) < 0).all()
    if sigma >= 0.5:  # below it, the integral over frequencies takes seconds
        last = design.points, weights.matrix[-1]
        _, rounding = mmd2_and_rounding(design.embedding, *last)
        assert abs(mmd2[-1] - spectral_mmd2(design.embedding, *last)) < rounding
    else:
        gram = kernel(design.points, design.points)
        direct = np.linalg.solve(gram, design.embedding.kernel_mean(design.points))
        np.testing.assert_allclose(weights.matrix[-1], direct, rtol=1e-10, atol=1e-15)
