"""Candidates: each source draws what it says."""

import numpy as np
import pytest

from bqlib import Candidates, Empirical, GaussianMixture, Product, Uniform, Unnormalised

NORMAL = GaussianMixture([1.0], [[3.0]], [[[4.0]]])
QUARTIC = Unnormalised(1, log_density=lambda x: -(x[:, 0] ** 4))


def test_from_the_target():
    pool = Candidates(size=200).draw(NORMAL, np.random.default_rng(0))
    np.testing.assert_array_equal(pool, NORMAL.sample(200, np.random.default_rng(0)))


@pytest.mark.parametrize("target", [NORMAL, Product([NORMAL, NORMAL])], ids=["normal", "product"])
def test_inflated_multiplies_the_spread(target):
    plain = Candidates(size=50).draw(target, np.random.default_rng(0))
    wide = Candidates(size=50, source="inflated", inflation=9.0)
    pool = wide.draw(target, np.random.default_rng(0))
    np.testing.assert_allclose(pool - 3.0, 3 * (plain - 3.0), rtol=1e-12)


def test_from_a_box_for_any_target():
    box = [(-1.0, 2.0), (5.0, 6.0)]
    pool = Candidates(size=1000, source="box", box=box).draw(
        Unnormalised(2, score=np.negative), np.random.default_rng(0)
    )
    assert pool.shape == (1000, 2)
    assert (pool >= [-1, 5]).all() and (pool <= [2, 6]).all()
    np.testing.assert_allclose(pool.mean(axis=0), [0.5, 5.5], atol=0.15)


@pytest.mark.parametrize(
    "target",
    [Uniform([0.0], [1.0]), Empirical([[0.0]]), QUARTIC, Product([NORMAL, QUARTIC])],
    ids=["Uniform", "Empirical", "Unnormalised", "Product"],
)
def test_what_has_no_covariances_is_not_inflated(target):
    name = type(target).__name__
    with pytest.raises(TypeError, match=f'{name} has no covariances to inflate; use source "targ'):
        Candidates(source="inflated").draw(target, np.random.default_rng(0))


def test_what_cannot_be_sampled_says_so():
    with pytest.raises(TypeError, match="cannot be sampled"):
        Candidates().draw(QUARTIC, np.random.default_rng(0))


def test_a_box_of_another_dimension():
    with pytest.raises(ValueError, match="box has 2 coordinates; it must have 1, the dimension"):
        Candidates(source="box", box=[(0, 1)] * 2).draw(NORMAL, np.random.default_rng(0))


@pytest.mark.parametrize(
    "arguments, problem",
    [
        ({"size": 0}, "size is 0"),
        ({"source": "targets"}, "source is 'targets'; it must be one of target, inflated, box"),
        ({"source": "inflated", "inflation": 0.0}, "inflation is 0.0"),
        ({"source": "inflated", "inflation": np.inf}, "inflation is inf"),
        ({"source": "box"}, 'box must be given if source is "box", and only then'),
        ({"box": [(0, 1)]}, 'box must be given if source is "box", and only then'),
        ({"source": "box", "box": [0, 1]}, "box must hold a finite lower and upper end"),
        ({"source": "box", "box": [(0, np.inf)]}, "box must hold a finite lower and upper end"),
        (
            {"source": "box", "box": [(1, 1)]},
            "box goes from 1 to 1 in coordinate 0; each lower end must",
        ),
    ],
)
def test_bad_arguments(arguments, problem):
    with pytest.raises(ValueError, match=problem):
        Candidates(**arguments)
