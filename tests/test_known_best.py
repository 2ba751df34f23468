"""The best designs known: each has the MMD that is written beside it."""

import json
from dataclasses import replace

import numpy as np
import pytest
from project import PROJECT

import bqlib
from bqlib import (
    Brownian,
    ExponentiatedQuadratic,
    GaussianMixture,
    Korobov,
    Matern,
    Uniform,
    best_known,
    joint,
    mmd,
)
from bqlib.discrepancy import mmd2, spectral_mmd2
from bqlib.known_best import PROVEN, _found, best_known_curve
from bqlib.weights import bq

# What earlier searches reached.
REACHED = {
    5: 0.1056895704,
    10: 0.0839145789,
    20: 0.0548989880,
    50: 0.0201487397,
    100: 0.0048191419,
    200: 4.934e-4,
    400: 1.912e-5,
}


def test_there_is_a_design_of_each_size():
    assert [int(n) for n in _found()["designs"]] == list(REACHED)
    assert "bqlib" in _found()["source"] and _found()["licence"]


@pytest.mark.parametrize("n", REACHED)
def test_the_spectral_oracle_confirms_each_design(n):
    design = best_known("paper", n)
    assert design.points.shape == (n, 2) and design.rule is bq and design.stop == ""
    found = np.sqrt(spectral_mmd2(design.embedding, design.points, design.weights))
    assert found <= REACHED[n]
    assert found == pytest.approx(_found()["designs"][str(n)]["mmd"], rel=1e-9)
    assert mmd(design.embedding, design.points, design.weights) == pytest.approx(found, rel=1e-5)


def test_no_joint_design_of_one_start_is_better():
    best = best_known("paper", 20)
    made = joint(best.embedding.target, best.embedding.kernel, 20, rng=0)
    limit = mmd(best.embedding, best.points, best.weights)
    assert mmd(made.embedding, made.points, made.weights) >= limit * (1 - 1e-9)


@pytest.mark.parametrize("n", [1, 2, 5, 40])
@pytest.mark.parametrize("problem", PROVEN)
def test_the_formulas_are_those_of_their_points(problem, n):
    design = best_known(problem, n)
    found = mmd2(design.embedding, design.points, design.weights)
    assert found == pytest.approx(PROVEN[problem].squared(n), rel=1e-9)
    moved = replace(
        design, points=np.clip(design.points + 0.01 * (-1) ** np.arange(n)[:, None], 0, 1)
    )
    if n > 1:  # one point is as good anywhere on the circle of Korobov
        assert mmd2(moved.embedding, moved.points, moved.weights) > found


@pytest.mark.parametrize("problem", PROVEN)
def test_joint_reaches_what_is_proven(problem):
    best = best_known(problem, 5)
    target, kernel = best.embedding.target, best.embedding.kernel
    made = joint(target, kernel, 5, rng=0, iterations=3000)
    limit = mmd(best.embedding, best.points, best.weights)
    assert mmd(made.embedding, made.points, made.weights) == pytest.approx(limit, rel=1e-6)


def test_known_values_of_korobov():
    """The MMD^2 of five points, with 40 digits."""
    assert PROVEN["korobov"].squared(5) == pytest.approx(0.1162913916, rel=1e-9)


def test_what_is_not_there_is_refused_with_what_is():
    with pytest.raises(
        ValueError, match="no best design of 7 points is known for paper; there are"
    ):
        best_known("paper", 7)
    with pytest.raises(ValueError, match="designs of 5, 10, 20, 50, 100, 200, 400 points"):
        best_known("paper", 7)
    with pytest.raises(
        ValueError, match=r"problem is 'normal'; it must be paper \(with 5, 10, .*400"
    ):
        best_known("normal", 5)
    with pytest.raises(ValueError, match=r"one of brownian, brownian_bridge, korobov \(with any"):
        best_known("", 5)
    with pytest.raises(ValueError, match="problem is"):
        best_known(["paper"], 5)
    with pytest.raises(ValueError, match="n is 0"):
        best_known("brownian", 0)
    with pytest.raises(TypeError, match="n is"):
        best_known("paper", 5.5)


def test_the_papers_problem_is_that_of_the_sweeps():
    numbers = json.loads((PROJECT / "config" / "targets" / "chen2010_mixture.json").read_text())
    keys = ("weights", "means", "covariances")
    assert _found()["target"] == {key: numbers[key] for key in keys}
    target = GaussianMixture(*(numbers[key] for key in keys))
    n, found = best_known_curve(target, ExponentiatedQuadratic(0.5, scale="density"))
    assert n.tolist() == list(REACHED) and (np.diff(found) < 0).all()
    assert found[2] == pytest.approx(0.0548989879, abs=1e-10)
    for kernel in (ExponentiatedQuadratic(0.5), ExponentiatedQuadratic(0.25, scale="density")):
        assert best_known_curve(target, kernel) is None
    heavier = GaussianMixture(numbers["weights"][::-1], numbers["means"], numbers["covariances"])
    assert best_known_curve(heavier, ExponentiatedQuadratic(0.5, scale="density")) is None


@pytest.mark.parametrize("problem", PROVEN)
def test_a_curve_is_that_of_its_designs(problem):
    design = best_known(problem, 3)
    n, found = best_known_curve(Uniform([0], [1]), type(design.embedding.kernel)())
    assert (n[0], n[-1], len(n)) == (1, 400, 400)
    at_three = mmd(design.embedding, design.points, design.weights)
    assert found[2] == pytest.approx(at_three, rel=1e-9)


@pytest.mark.parametrize(
    "target, kernel",
    [
        (Uniform([0], [2]), Brownian()),
        (Uniform([0, 0], [1, 1]), Korobov()),
        (Uniform([0], [1]), Matern(0.2)),
        (Uniform([0], [1]), Brownian() + Brownian()),
    ],
)
def test_other_pairs_have_no_curve(target, kernel):
    assert best_known_curve(target, kernel) is None


def test_the_name_is_public():
    assert bqlib.best_known is best_known
