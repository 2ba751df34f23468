"""Designs in little memory: blocks of the pool in place of its whole basis, or a refusal."""

import os
import tracemalloc

import numpy as np
import pytest

from bqlib import Candidates, ExponentiatedQuadratic, GaussianMixture, omp, sbq

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


def test_too_little_memory_is_refused_before_the_start():
    with pytest.raises(MemoryError, match=r"5000 candidates and n = 30 need 0.00196 GB even in bl"):
        peak(memory=1e6)
    with pytest.raises(MemoryError, match=r"need 1.6e.14 GB even in blocks"):
        omp(NORMAL, KERNEL, 10**11, rng=0, candidates=Candidates(size=10**11, fresh=True))
