"""Arrays of targets, kernels and designs cannot be written, and those of the caller still can."""

import copy
import pickle

import numpy as np
import pytest

from bqlib import (
    Candidates,
    Empirical,
    ExponentiatedQuadratic,
    GaussianMixture,
    Matern,
    Product,
    RationalQuadratic,
    Stein,
    Uniform,
    embed,
    sbq,
)
from bqlib.designs.design import Design
from bqlib.weights import uniform

TWO = [0.5, 2.0]
MATRIX = [[1.0, 0.2], [0.2, 0.5]]
MIXTURE = GaussianMixture([0.5, 0.5], [[0.0, 0.0], [2.0, 1.0]], [MATRIX, MATRIX])
PLACES = np.random.default_rng(0).normal(size=(6, 2))
EMBEDDING = embed(Matern(1.0), Empirical(PLACES))
MAKERS = {
    "mixture": (GaussianMixture, [0.25, 0.75], [[0.0, 0.0], [2.0, 1.0]], [MATRIX, MATRIX]),
    "box": (Uniform, [0.0, 0.0], TWO),
    "data": (Empirical, PLACES, np.full(6, 1 / 6)),
    "data of equal weights": (Empirical, PLACES),
    "eq": (ExponentiatedQuadratic, TWO),
    "eq of a matrix": (ExponentiatedQuadratic, None, MATRIX),
    "matern": (Matern, TWO),
    "rq": (RationalQuadratic, TWO),
    "stein": (lambda lengthscale: Stein(MIXTURE, lengthscale), TWO),
    "design": (lambda points: Design(EMBEDDING, points, uniform), PLACES),
}


def arrays_of(item):
    return {name: array for name, array in vars(item).items() if isinstance(array, np.ndarray)}


@pytest.mark.parametrize("name", MAKERS)
def test_arrays_cannot_be_written(name):
    make, *given = MAKERS[name]
    given = [value if value is None else np.array(value) for value in given]
    item = make(*given)
    if name == "design":
        assert item.weights.sum() == pytest.approx(1)  # from here on, it is kept
    assert arrays_of(item)
    for made in (item, copy.copy(item), copy.deepcopy(item), pickle.loads(pickle.dumps(item))):
        for own, before in arrays_of(made).items():
            with pytest.raises(ValueError, match="read-only"):
                getattr(made, own)[...] = 4.0
            np.testing.assert_array_equal(before, arrays_of(item)[own])
    kept = {own: array.copy() for own, array in arrays_of(item).items()}
    for value in given:
        if value is not None:
            value[...] = 7.0  # the caller's own
    for own, array in arrays_of(item).items():
        np.testing.assert_array_equal(array, kept[own])


def test_arrays_of_blocks_and_of_what_a_target_makes_cannot_be_written():
    box = Uniform([0.0, 0.0], [1.0, 2.0])
    wide = Product([MIXTURE, MIXTURE]).inflated(2.0)
    for target in (*box.blocks, MIXTURE.inflated(2.0), *wide.blocks):
        assert not any(array.flags.writeable for array in arrays_of(target).values())
    assert not ExponentiatedQuadratic(covariance=MATRIX).metric(2).flags.writeable


def test_points_of_designs_cannot_be_written():
    pool = PLACES.copy()
    design = sbq(Empirical(PLACES), Matern(1.0), 3, rng=0, candidates=pool)
    with pytest.raises(ValueError, match="read-only"):
        design.points[0] = 0.0
    pool[:] = 0.0  # the caller's own
    assert (design.points != 0).all()


@pytest.mark.parametrize("kind", [list, tuple, np.array, np.float32])
def test_a_box_does_not_change_with_the_callers(kind):
    box = kind([[0.0, 1.0], [2.0, 3.0]])
    if kind is list:
        box = [list(ends) for ends in box]
    candidates = Candidates(50, source="box", box=box)
    before = candidates.draw(MIXTURE, 0)
    if kind is not tuple:
        box[0][1] = 9.0
    np.testing.assert_array_equal(candidates.draw(MIXTURE, 0), before)
    assert candidates == Candidates(50, source="box", box=[(0, 1), (2, 3)])
