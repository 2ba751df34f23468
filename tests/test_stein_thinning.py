"""Regularised Stein thinning."""

import numpy as np
import pytest
from scipy import stats

import bqlib
from bqlib import (
    Candidates,
    GaussianMixture,
    Marginals,
    Product,
    Stein,
    Unnormalised,
    stein_thinning,
)

MODES = GaussianMixture([0.7, 0.3], [[-2.0, 0.0], [2.0, 1.0]], [np.eye(2), 0.5 * np.eye(2)])
KERNEL = Stein(MODES, 0.9, units=[1.0, 2.0], constant=3.0)
POOL = MODES.sample(300, rng=0)


def one_by_one(n, entropy, laplace, initial=()):
    """Picks by the formula of the paper, in the units of the kernel."""
    gram, units = KERNEL(POOL, POOL) - 3.0, np.array([1.0, 2.0])
    second = np.diagonal(MODES.hessian(POOL), axis1=1, axis2=2) * units**2
    fixed = np.diag(gram) + laplace * np.where(second > 0, second, 0.0).sum(axis=1)
    picks = list(initial)
    while len(picks) < n:
        value = fixed + 2 * gram[picks].sum(axis=0)
        value -= (len(picks) + 1) * entropy * MODES.log_density(POOL)
        picks.append(int(np.argmin(value)))
    return picks


@pytest.mark.parametrize("laplace", [True, False])
@pytest.mark.parametrize("entropy", [None, 0, 0.2])
def test_points_are_those_of_the_formula(entropy, laplace):
    design = stein_thinning(
        MODES, KERNEL, 40, rng=0, candidates=POOL, entropy=entropy, laplace=laplace
    )
    weight = 1 / 40 if entropy is None else entropy
    assert design.rows.tolist() == one_by_one(40, weight, laplace)
    assert design.weights.tolist() == [1 / 40] * 40


def test_terms_matter():
    plain = one_by_one(40, 0, False)
    assert (
        len({tuple(plain), tuple(one_by_one(40, 0.2, False)), tuple(one_by_one(40, 0, True))}) == 3
    )


def test_without_its_terms_it_is_herding():
    options = {"rng": 0, "candidates": POOL}
    plain = stein_thinning(MODES, KERNEL, 60, entropy=0, laplace=False, **options)
    assert plain.rows.tolist() == bqlib.herding(MODES, KERNEL, 60, **options).rows.tolist()


def test_it_goes_on_from_points_and_from_fresh_pools():
    options = {"rng": 0, "candidates": POOL, "entropy": 0.1}
    whole = stein_thinning(MODES, KERNEL, 30, **options)
    again = stein_thinning(MODES, KERNEL, 30, initial=whole.points[:12], **options)
    np.testing.assert_array_equal(again.points, whole.points)
    assert again.rows.tolist() == whole.rows.tolist()[12:]
    np.testing.assert_array_equal(
        stein_thinning(MODES, KERNEL, 20, **options).points, whole.points[:20]
    )
    fresh = stein_thinning(MODES, KERNEL, 10, rng=0, candidates=Candidates(50, fresh=True))
    assert fresh.points.shape == (10, 2) and fresh.rows is None


def test_known_values_of_plain_stein_thinning():
    # Published values: N(0, 1), candidates -2, -1.5, ..., 2, base (1 + r^2)^(-1/2).
    normal = GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    grid = np.arange(-2, 2.1, 0.5)[:, None]
    design = stein_thinning(
        normal, Stein(normal), 6, rng=0, candidates=grid, entropy=0, laplace=False
    )
    assert design.points[:, 0].tolist() == [0.0, -1.0, 1.0, 0.0, -0.5, 0.5]
    squared = bqlib.mmd(design.embedding, design.points, design.weights) ** 2
    assert squared == pytest.approx(0.0744124877, rel=1e-9)


def test_candidates_without_repeats_end():
    pool = np.concatenate([POOL[:6], POOL[:6]])
    options = {"rng": 0, "candidates": pool, "repeats": False}
    design = stein_thinning(MODES, KERNEL, 10, **options)
    assert len(np.unique(design.points, axis=0)) == len(design.points) == 6
    assert design.stop == "design stops at n = 6 of 10: every candidate is picked already"
    plain = bqlib.herding(MODES, bqlib.ExponentiatedQuadratic(1.0), 10, initial=POOL[:2], **options)
    assert len(plain.points) == 6 and len(plain.rows) == 4


def test_it_works_in_units_of_the_user():
    inputs = Marginals({"a": stats.norm(5, 2)})
    kernel = Stein(inputs.standard)
    pool = inputs.sample(100, rng=0)
    design = stein_thinning(inputs, kernel, 10, rng=0, candidates=pool)
    standard = inputs.to_standard(pool)
    inner = stein_thinning(inputs.standard, kernel, 10, rng=0, candidates=standard)
    assert design.rows.tolist() == inner.rows.tolist()


@pytest.mark.parametrize(
    "target, options, error, said",
    [
        (
            Unnormalised(2, score=MODES.score),
            {},
            TypeError,
            "log_density .*entropy=0.* and hessian",
        ),
        (
            Unnormalised(2, MODES.log_density, MODES.score),
            {},
            TypeError,
            r"has: hessian \(which laplace=False does without\)",
        ),
        (MODES, {"entropy": -1.0}, ValueError, "entropy is -1.0; it must be finite and not negat"),
        (MODES, {"entropy": np.nan}, ValueError, "entropy is nan"),
        (MODES, {"entropy": "a"}, TypeError, "entropy is 'a'; it must be a number"),
    ],
)
def test_what_it_lacks_is_told(target, options, error, said):
    with pytest.raises(error, match=said):
        stein_thinning(target, Stein(target), 5, rng=0, candidates=POOL, **options)


def test_it_needs_a_stein_kernel():
    with pytest.raises(TypeError, match="needs a Stein kernel, not ExponentiatedQuadratic"):
        stein_thinning(MODES, bqlib.ExponentiatedQuadratic(1.0), 5, rng=0, candidates=POOL)


def test_what_a_target_lacks_may_not_be_needed():
    bare = Unnormalised(2, score=MODES.score)
    design = stein_thinning(bare, Stein(bare), 5, rng=0, candidates=POOL, entropy=0, laplace=False)
    assert len(design.points) == 5
    both = Product([MODES, MODES])
    assert len(stein_thinning(both, Stein(both), 5, rng=0, candidates=Candidates(50)).points) == 5
