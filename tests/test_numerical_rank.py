"""The paper's problem from the shortest to the longest length-scales: where float64 has no more
points to tell apart, a design ends and says so, and all before it has its digits."""

import json
from pathlib import Path

import numpy as np
import pytest

from bqlib import ExponentiatedQuadratic, GaussianMixture, sbq
from bqlib.discrepancy import mmd2_and_rounding, mmd2_of_prefixes, spectral_mmd2
from bqlib.weights import bq, conditioning, first_occurrence

CHEN2010 = Path(__file__).parent.parent / "config" / "targets" / "chen2010_mixture.json"


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
