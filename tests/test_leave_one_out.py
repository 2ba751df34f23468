"""Leave-one-out errors."""

import numpy as np
import pytest

from bqlib import Matern
from bqlib.leave_one_out import left_out

X = np.random.default_rng(0).random((9, 2))
F = np.sin(5 * X[:, 0]) + 10
K = Matern(0.5)(X, X) + 0.01 * np.eye(9)


@pytest.mark.parametrize("constant", [True, False])
def test_predictions_are_those_without_the_value(constant):
    found = left_out(K, F, 2.0, constant, np.arange(9))
    for i in range(9):
        others = np.delete(np.arange(9), i)
        inverse = np.linalg.inv(K[np.ix_(others, others)])
        across, ones = K[i, others], np.ones(8)
        mean = ones @ inverse @ F[others] / (ones @ inverse @ ones) if constant else 0.0
        prediction = mean + across @ inverse @ (F[others] - mean)
        variance = K[i, i] - across @ inverse @ across
        if constant:
            variance += (1 - across @ inverse @ ones) ** 2 / (ones @ inverse @ ones)
        assert found.predictions[i] == pytest.approx(prediction)
        assert found.stds[i] == pytest.approx(2.0 * np.sqrt(variance))
    np.testing.assert_allclose(found.standardised, (F - found.predictions) / found.stds)


def test_one_value_that_makes_the_scale_large_is_still_a_surprise():
    """The error of one of eight is at most the root of seven of its own scale."""
    f = np.zeros(8)
    f[2] = 1.0
    scale = np.sqrt(f.var(ddof=1))
    found = left_out(np.eye(8), f, scale, True, np.arange(8))
    assert np.abs(found.standardised).max() == pytest.approx(np.sqrt(7))
    chances = found.surprises(7.0)
    assert chances[2] < 1e-12 < 0.1 < np.delete(chances, 2).min()
    assert found.surprises(np.inf)[2] == pytest.approx(0.00815, abs=1e-4)


def test_chances_of_surprises_are_uniform_under_the_model():
    rng = np.random.default_rng(0)
    chances = []
    for _ in range(400):
        f = rng.standard_normal(6)
        found = left_out(np.eye(6), f, np.sqrt(f.var(ddof=1)), True, np.arange(6))
        chances.append(found.surprises(5.0)[0])
    assert abs(np.mean(np.array(chances) < 0.3) - 0.3) < 0.08
