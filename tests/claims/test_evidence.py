import full_size
import numpy as np
import pytest
from scipy.special import stdtrit

from bqlib.claims import Evidence
from bqlib.claims.evidence import MissingError, factor_over_seeds, over_seeds
from bqlib.over_seeds import mean_interval
from bqlib.schema import FAILED

FIVE = np.random.default_rng(0).standard_normal((4000, 5))


def coverage(interval, sets, truth):
    ends = np.array([interval(values)[1:] for values in sets])
    return np.mean((ends[:, 0] <= truth) & (truth <= ends[:, 1]))


def test_intervals_over_five_seeds_cover_what_they_say():
    assert coverage(over_seeds, FIVE, 0.0) == pytest.approx(0.95, abs=0.01)
    assert coverage(factor_over_seeds, np.exp(FIVE), 1.0) == pytest.approx(0.95, abs=0.01)


def test_the_bootstrap_of_five_seeds_is_as_short_as_is_said():
    assert coverage(mean_interval, FIVE[:1000], 0.0) == pytest.approx(0.92, abs=0.015)


def test_intervals_are_those_of_students_t():
    values = np.array([1.0, 2, 4, 3, 7])
    mean, low, high = over_seeds(values)
    half = stdtrit(4, 0.975) * values.std(ddof=1) / np.sqrt(5)
    np.testing.assert_allclose([mean, low, high], [3.4, 3.4 - half, 3.4 + half])
    np.testing.assert_allclose(factor_over_seeds(np.exp(values)), np.exp([mean, low, high]))


@pytest.mark.parametrize(
    "values, message", [([1.0], "needs 2 seeds"), ([1, np.nan, 2], "a value in every seed")]
)
def test_a_rule_is_not_judged_without_an_interval(values, message):
    with pytest.raises(MissingError, match=message):
        factor_over_seeds(values)


def test_algorithms_are_compared_in_the_seeds_in_which_all_of_them_ran():
    full = full_size.evidence()
    curves = full.curves.copy(deep=True)
    curves["status"].loc[{"algorithm": "herding", "seed": 0}] = FAILED
    curves["status"].loc[{"algorithm": "sbq", "seed": 3}] = FAILED
    evidence = Evidence(curves, full.rates, {})
    herding, sbq = evidence.paired("mmd", ("herding", "sbq"))
    ran = [1, 2, *range(4, full_size.SEEDS)]
    of = full.curves["mmd"].squeeze(drop=True).transpose("algorithm", "seed", "n")
    np.testing.assert_array_equal(herding, of.sel(algorithm="herding", seed=ran))
    np.testing.assert_array_equal(sbq, of.sel(algorithm="sbq", seed=ran))
    assert len(evidence.curve("mmd", "herding")) == full_size.SEEDS - 1
