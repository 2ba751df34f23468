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
