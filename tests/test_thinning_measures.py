"""Measures of the benchmark of thinning against those of bqlib, which they do without."""

import importlib.util
from pathlib import Path

import numpy as np
import pytest

from bqlib import Empirical, ExponentiatedQuadratic, Stein, Unnormalised, embed, mmd

FILE = Path(__file__).parents[1] / "benchmarks" / "thinning" / "measures.py"
SPEC = importlib.util.spec_from_file_location("thinning_measures", FILE)
measures = importlib.util.module_from_spec(SPEC)
SPEC.loader.exec_module(measures)

RNG = np.random.default_rng(0)
DRAWS, WEIGHTS = RNG.standard_normal((250, 3)), RNG.random(250)


def test_the_ksd_is_the_mmd_with_a_stein_kernel():
    target = Unnormalised(3, score=lambda x: -(x**3))
    expected = mmd(embed(Stein(target), target), DRAWS, WEIGHTS)
    assert measures.ksd(DRAWS, -(DRAWS**3), WEIGHTS, np.ones(3)) == pytest.approx(expected)


def test_the_ksd_does_not_depend_on_units():
    scores, units = -(DRAWS**3), np.array([0.1, 1.0, 30.0])
    expected = measures.ksd(DRAWS, scores, WEIGHTS, np.ones(3))
    found = measures.ksd(DRAWS * units, scores / units, WEIGHTS, units)
    assert found == pytest.approx(expected)


def test_the_mmd_is_that_to_the_draws_as_a_data_set():
    points, weights = DRAWS[:20] + 0.1, WEIGHTS[:20] / 10
    expected = mmd(embed(ExponentiatedQuadratic(0.7), Empirical(DRAWS)), points, weights)
    pairs = measures.mean_of_pairs(DRAWS, 0.7)
    assert measures.mmd(DRAWS, points, weights, 0.7, pairs) == pytest.approx(expected)
    assert measures.mmd(DRAWS, DRAWS, np.full(250, 1 / 250), 0.7, pairs) < 1e-7


def test_scales_of_known_numbers():
    line = np.arange(5.0)[:, None]
    assert measures.median_distance(line) == 2.0
    np.testing.assert_allclose(measures.absolute_deviation(line), 1.2)
