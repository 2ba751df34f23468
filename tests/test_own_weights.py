"""Weights that a design found with its points."""

import pickle

import numpy as np
import pytest

from bqlib import Brownian, Design, Uniform, embed
from bqlib.designs.own_weights import OwnWeights, own

EMBEDDING = embed(Brownian(), Uniform([0], [1]))
POINTS = [[0.2], [0.4], [0.8]]
WEIGHTS = [0.5, 0.2, 0.3]


def test_a_design_has_them():
    design = Design(EMBEDDING, POINTS, OwnWeights(WEIGHTS))
    assert design.weights.tolist() == WEIGHTS
    assert "own weights" in repr(design)
    again = pickle.loads(pickle.dumps(design))
    assert again.weights.tolist() == WEIGHTS and not again.rule.weights.flags.writeable


def test_they_do_not_follow_the_array_they_came_from():
    given = np.array(WEIGHTS)
    rule = OwnWeights(given)
    given[0] = 7
    assert rule.weights.tolist() == WEIGHTS


def test_they_are_of_all_points_together():
    rule = OwnWeights(WEIGHTS)
    with pytest.raises(
        ValueError, match=r"2 points, but the design has weights for 3.*pass a rule"
    ):
        rule(EMBEDDING, POINTS[:2])
    design = Design(EMBEDDING, POINTS, rule)
    values = [1.0, np.nan, 2.0]
    with pytest.raises(ValueError, match="pass a rule"):
        design.integrate(values=values, missing="drop")


@pytest.mark.parametrize("weights", [[0.5, np.nan], [np.inf, 1.0]])
def test_they_are_finite(weights):
    with pytest.raises(ValueError, match="weights"):
        OwnWeights(weights)


def test_points_alone_have_none():
    with pytest.raises(TypeError, match=r"use design\.weights, or another rule"):
        own(EMBEDDING, POINTS)
