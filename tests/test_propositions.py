import json

import numpy as np
import pytest

from bqlib import ExponentiatedQuadratic, GaussianMixture, embed, herding, sbq
from bqlib.discrepancy import mmd, mmd2, mmd2_of_prefixes
from bqlib.propositions import (
    adversary,
    counterexample,
    eigenvalues_of_a_pair,
    gain_alone_and_after,
    printed_herding,
    printed_herding_variance,
    sbq_with_jitter,
    variance_and_mmd2,
    with_jitter,
)
from bqlib.streams import stream
from bqlib.studies.submodularity import violation
from bqlib.weights import bq, uniform

TARGET = GaussianMixture(
    [0.4, 0.6], [[-1.0, 0.0], [1.5, 0.5]], [[[0.5, 0.1], [0.1, 0.3]], [[0.4, 0], [0, 0.8]]]
)
EMBEDDING = embed(ExponentiatedQuadratic(0.7, scale="density"), TARGET)
POOL = TARGET.sample(400, np.random.default_rng(0))


def test_variance_and_mmd2_agree_three_ways():
    rng = np.random.default_rng(1)
    weights = rng.standard_normal(12)
    formula, spectral, simulated, error = variance_and_mmd2(
        EMBEDDING, POOL[:12], weights, rng, draws=50_000
    )
    assert formula == pytest.approx(spectral, rel=1e-11)
    assert abs(simulated - formula) < 4 * error < 0.05 * formula


def test_the_adversary_is_zero_at_the_points_and_attains_the_bound():
    largest, ratio = adversary(EMBEDDING, POOL[:20])
    assert largest < 1e-10 and ratio == pytest.approx(1, abs=1e-10)


def test_the_printed_herding_rule_levels_off():
    n = 200
    equal = np.full(n, 1 / n)
    printed = mmd(EMBEDDING, printed_herding(EMBEDDING, POOL, n), equal)
    derived = herding(TARGET, EMBEDDING.kernel, n, rng=0, candidates=POOL).points
    assert printed > 3 * mmd(EMBEDDING, derived, equal)


def test_the_printed_herding_rule_on_the_papers_problem(request):
    path = request.config.rootpath / "config" / "targets" / "chen2010_mixture.json"
    numbers = json.loads(path.read_text())
    target = GaussianMixture(*(numbers[key] for key in ("weights", "means", "covariances")))
    embedding = embed(ExponentiatedQuadratic(0.5, scale="density"), target)
    points = printed_herding(embedding, target.sample(10_000, stream("candidates", 0)), 200)
    found = np.sqrt(mmd2_of_prefixes(embedding, points, uniform(embedding, points).matrix))
    assert found[[99, 199]] == pytest.approx([0.068, 0.069], rel=0.05)


def test_the_printed_variance_is_off_by_half_the_cross_term():
    points = POOL[:15]
    printed = printed_herding_variance(EMBEDDING, points)
    right = mmd2(EMBEDDING, points, np.full(15, 1 / 15))
    assert printed - right == pytest.approx(EMBEDDING.kernel_mean(points).mean(), rel=1e-12)


@pytest.mark.parametrize("jitter", [1e-6, 1e-3, 0.5])
def test_what_a_jitter_reports_is_an_upper_bound(jitter):
    reported, true, norm2 = with_jitter(EMBEDDING, POOL[:30], jitter)
    assert reported == pytest.approx(true + jitter * norm2, rel=1e-11)
    assert true >= mmd2(EMBEDDING, POOL[:30], bq(EMBEDDING, POOL[:30]).final(30)) * (1 - 1e-12)


def test_sbq_with_hardly_any_jitter_is_sbq():
    own = sbq(TARGET, EMBEDDING.kernel, 15, rng=0, candidates=POOL).points
    np.testing.assert_array_equal(sbq_with_jitter(EMBEDDING, POOL, 15, 1e-9), own)
    noisy = sbq_with_jitter(EMBEDDING, POOL, 15, 0.3)
    # With noise the variance left decides, so it falls below that of the other points.
    assert with_jitter(EMBEDDING, noisy, 0.3)[0] < with_jitter(EMBEDDING, own, 0.3)[0]


@pytest.mark.parametrize("coherence, n", [(0.1, 90), (0.05, 380), (0.2, 24)])
def test_the_counterexample_is_one(coherence, n):
    gram, mean = counterexample(coherence, n)
    np.testing.assert_allclose(np.diag(gram), 1, rtol=1e-12)
    np.testing.assert_allclose(np.abs(gram - np.eye(n + 1)).max(), coherence, rtol=1e-12)
    assert np.linalg.eigvalsh(gram)[0] > 0
    assert mean @ np.linalg.solve(gram, mean) == pytest.approx(1)  # the target, of norm one
    alone, after = gain_alone_and_after(gram, mean)
    assert alone == pytest.approx(0, abs=1e-25)
    assert after == pytest.approx(n * coherence**2, rel=1e-9)
    assert after > 4 * coherence


def test_a_small_counterexample_by_brute_force():
    gram, mean = counterexample(0.4, 4)
    assert violation(gram, mean) == pytest.approx(4 * 0.4**2, rel=1e-9)


def test_a_counterexample_needs_room():
    with pytest.raises(ValueError, match="below 1 / coherence"):
        counterexample(0.1, 100)


def test_eigenvalues_of_two_points():
    near, far = eigenvalues_of_a_pair(EMBEDDING.kernel, np.array([0.01, 10.0]))
    height = EMBEDDING.kernel.height(2)
    np.testing.assert_allclose(far, [height, height, 2 * height], rtol=1e-12)
    assert near[0] < 1e-3 * height and near[1] == pytest.approx(2 * height, rel=1e-3)
