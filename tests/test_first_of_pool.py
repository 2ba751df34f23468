"""Rules that look at the first candidates of a pool."""

import numpy as np
import pytest

import bqlib
from bqlib import Candidates, Korobov, Uniform
from bqlib.designs import first_of_pool
from bqlib.designs.design import is_point_set

SQUARE = Uniform([0.0, 0.0], [1.0, 1.0])
POOL = SQUARE.sample(200, 0)
RULES = {
    "herding_from_10n": ("herding", 100, {}),
    "omp_from_10n": ("omp", 100, {}),
    "sbq_from_10n": ("sbq", 100, {}),
    "recombination_from_10n": ("recombination", 100, {}),
    "recombination_of_n2": ("recombination", 100, {"mean": "pool"}),
}


@pytest.mark.parametrize("name", RULES)
def test_the_first_candidates_are_the_pool(name):
    rule, size, options = RULES[name]
    rule = getattr(bqlib, rule)
    limited = getattr(first_of_pool, name)
    assert is_point_set(limited)
    n = 10  # for which 10 n is n^2
    found = limited(SQUARE, Korobov(), n, rng=1, candidates=POOL)
    expected = rule(SQUARE, Korobov(), n, rng=1, candidates=POOL[:size], **options)
    np.testing.assert_array_equal(found.rows, expected.rows)
    np.testing.assert_array_equal(found.weights, expected.weights)


def test_pools_grow_with_n():
    few, more = (
        first_of_pool.recombination_of_n2(SQUARE, Korobov(), n, rng=1, candidates=POOL)
        for n in (5, 14)
    )
    assert few.rows.max() < 25 <= more.rows.max() < 196
    ten = first_of_pool.sbq_from_10n(SQUARE, Korobov(), 5, rng=1, candidates=POOL)
    assert 25 <= ten.rows.max() < 50


@pytest.mark.parametrize(
    "name, n, needed", [("sbq_from_10n", 21, 210), ("recombination_of_n2", 15, 225)]
)
def test_too_few_candidates_are_told_before_and_when_it_runs(name, n, needed):
    rule = getattr(first_of_pool, name)
    said = f"n = {n} takes {needed} candidates, but there are 200: use more"
    with pytest.raises(ValueError, match=said):
        rule(SQUARE, Korobov(), n, rng=0, candidates=POOL)
    with pytest.raises(ValueError, match=said):
        rule.requires(SQUARE, Korobov(), n, candidates=Candidates(200))
    with pytest.raises(ValueError, match="it needs one pool"):
        rule(SQUARE, Korobov(), 5, rng=0, candidates=Candidates(500, fresh=True))
    assert rule(SQUARE, Korobov(), 5, rng=0).rows is not None  # of the first draws
