"""Densities known up to a constant: their derivatives, and what they refuse."""

import copy

import numpy as np
import pytest
from scipy.special import expit

from bqlib import Banana, Candidates, LogisticPosterior, Stein, iid, recombination, sbq

FEATURES = np.random.default_rng(0).normal(size=(12, 3))
LABELS = np.random.default_rng(1).integers(0, 2, 12)
TARGETS = [Banana(), Banana(-1.3), LogisticPosterior(FEATURES, LABELS, 0.7)]


@pytest.mark.parametrize("target", TARGETS)
def test_score_and_hessian_are_derivatives(target):
    x = np.random.default_rng(2).normal(size=(5, target.dim))
    step = 1e-6
    for i in range(target.dim):
        to = np.eye(target.dim)[i] * step
        slope = (target.log_density(x + to) - target.log_density(x - to)) / (2 * step)
        assert target.score(x)[:, i] == pytest.approx(slope, abs=1e-7)
        bend = (target.score(x + to) - target.score(x - to)) / (2 * step)
        assert target.hessian(x)[:, i] == pytest.approx(bend, abs=1e-7)


def test_the_banana_is_a_bent_normal():
    x = np.random.default_rng(3).normal(size=(4, 2))
    bent = np.stack([x[:, 0], x[:, 1] + 0.5 * (x[:, 0] ** 2 - 1)], axis=1)
    assert Banana(0.5).log_density(bent) == pytest.approx(-(x**2).sum(axis=1) / 2)


def test_the_posterior_is_likelihood_times_prior():
    x = np.random.default_rng(4).normal(size=(4, 3))
    share = expit(x @ FEATURES.T)
    likelihood = np.where(LABELS == 1, share, 1 - share).prod(axis=1)
    expected = np.log(likelihood) - (x**2).sum(axis=1) / (2 * 0.7**2)
    assert TARGETS[2].log_density(x) == pytest.approx(expected)


def test_a_stein_kernel_takes_them():
    target = Banana()
    pool = Candidates(400, source="box", box=[(-3, 3), (-3, 5)])
    design = sbq(target, Stein(target, constant=100.0), 60, rng=0, candidates=pool)
    assert design.integrate(lambda x: x[0] ** 2).mean == pytest.approx(1, abs=0.1)


def test_they_are_not_drawn_from():
    target = Banana()
    with pytest.raises(TypeError, match="Banana cannot be drawn from: pass the candidates"):
        iid(target, Stein(target), 3, rng=0)
    with pytest.raises(TypeError, match="Banana cannot be drawn from: pass the candidates"):
        sbq(target, Stein(target, constant=1.0), 3, rng=0)
    pool = np.random.default_rng(0).normal(size=(100, 2))
    design = recombination(target, Stein(target, constant=1.0), 5, rng=0, candidates=pool)
    assert len(design.points) == 5
    with pytest.raises(TypeError, match="Banana cannot be drawn from"):
        iid.requires(target, Stein(target), 3, candidates=Candidates(5))


@pytest.mark.parametrize("bend", [np.nan, np.inf])
def test_a_bend_is_finite(bend):
    with pytest.raises(ValueError, match=r"bend is .*; it must be finite"):
        Banana(bend)


@pytest.mark.parametrize(
    ("features", "labels", "deviation", "told"),
    [
        ([[1.0], [2.0]], [1], 1, "one label for each of the 2 rows"),
        ([[1.0], [2.0]], [1, 0.5], 1, "zeros and ones"),
        ([[1.0], [np.nan]], [1, 0], 1, "features"),
        ([[1.0], [2.0]], [1, 0], 0, "deviation is 0.0; it must be finite and positive"),
    ],
)
def test_a_bad_regression_is_refused(features, labels, deviation, told):
    with pytest.raises(ValueError, match=told):
        LogisticPosterior(features, labels, deviation)


def test_a_copy_is_the_same_and_cannot_be_written():
    target = copy.deepcopy(TARGETS[2])
    assert target.score([[0.1, 0.2, 0.3]]).tolist() == TARGETS[2].score([[0.1, 0.2, 0.3]]).tolist()
    with pytest.raises(ValueError, match="read-only"):
        target.features[0] = 0
