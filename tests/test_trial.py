import numpy as np
import pytest

from bqlib import Candidates, ExponentiatedQuadratic, GaussianMixture, embed, herding, iid, sbq
from bqlib.streams import stream
from bqlib.trial import trial
from bqlib.weights import bq, uniform

TARGET = GaussianMixture([0.4, 0.6], [[0.0, 1.0], [2.0, -1.0]], [np.eye(2), 0.5 * np.eye(2)])
KERNEL = ExponentiatedQuadratic(0.7)
POOL = Candidates(size=300)


def test_curves_are_those_of_the_library():
    curves = trial(TARGET, KERNEL, sbq, bq, POOL, 30, seed=4)
    pool = POOL.draw(TARGET, stream("candidates", 4))
    design = sbq(TARGET, KERNEL, 30, rng=0, candidates=pool)
    np.testing.assert_array_equal(curves["points"], design.points)
    np.testing.assert_array_equal(curves["weights"], design.weights)
    embedding = embed(KERNEL, TARGET)
    for n in (1, 7, 30):
        x = design.points[:n]
        w = np.linalg.solve(KERNEL(x, x), embedding.kernel_mean(x))
        mmd2 = embedding.prior_variance - w @ embedding.kernel_mean(x)
        assert curves["mmd"][n - 1] == pytest.approx(np.sqrt(mmd2), rel=1e-9)
        assert curves["weight_sum"][n - 1] == pytest.approx(w.sum(), rel=1e-9)
        assert curves["weight_l1"][n - 1] == pytest.approx(np.abs(w).sum(), rel=1e-9)
        assert curves["min_weight"][n - 1] == pytest.approx(w.min(), rel=1e-7)
    assert curves["rank_reached"] == 30 and curves["reason"] == ""


def test_algorithms_share_the_pool_of_a_seed_and_no_other():
    def points(design, seed):
        return trial(TARGET, KERNEL, design, uniform, POOL, 20, seed)["points"]

    pool = {tuple(x) for x in POOL.draw(TARGET, stream("candidates", 1))}
    assert {tuple(x) for x in points(sbq, 1)} <= pool
    assert {tuple(x) for x in points(herding, 1)} <= pool
    assert not {tuple(x) for x in points(herding, 2)} & pool
    assert not {tuple(x) for x in points(iid, 1)} & pool


def test_a_rerun_is_bit_identical_and_a_longer_run_starts_alike():
    short, again = (trial(TARGET, KERNEL, herding, bq, POOL, 20, 7) for _ in range(2))
    longer = trial(TARGET, KERNEL, herding, bq, POOL, 40, 7)
    for name, values in short.items():
        np.testing.assert_array_equal(values, again[name])
    np.testing.assert_array_equal(short["points"], longer["points"][:20])
    np.testing.assert_allclose(short["mmd"], longer["mmd"][:20], rtol=1e-9)


def test_curves_that_end_early_say_so():
    wide = ExponentiatedQuadratic(30.0)
    curves = trial(TARGET, wide, sbq, bq, POOL, 50, 0)
    rank = int(curves["rank_reached"])
    assert 3 < rank < 50 and f"n = {rank}" in curves["reason"]
    assert np.isfinite(curves["points"][:rank]).all() and np.isnan(curves["points"][rank:]).all()
    assert np.isnan(curves["mmd"][rank:]).all()
    repeated = trial(TARGET, KERNEL, herding, uniform, Candidates(size=25), 25, 0)
    assert repeated["duplicates"][-1] == 25 - len(np.unique(repeated["points"], axis=0)) > 0


def test_fresh_pools_are_shared_too():
    fresh = Candidates(size=50, fresh=True)
    first = trial(TARGET, KERNEL, herding, uniform, fresh, 10, 5)["points"][0]
    embedding = embed(KERNEL, TARGET)
    pool = fresh.draw(TARGET, stream("candidates", 5))
    np.testing.assert_array_equal(first, pool[np.argmax(embedding.kernel_mean(pool))])
