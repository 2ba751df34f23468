import numpy as np

from bqlib import ExponentiatedQuadratic
from bqlib.pivots import first_occurrence, leading_cholesky, not_spent


def test_a_repeat_among_signed_zeros():
    assert first_occurrence(np.array([[0.0, 1.0], [-0.0, 1.0], [0.0, -1.0]])).tolist() == [0, 0, 2]


def test_the_points_that_are_left_have_pivots_above_tolerance_in_their_own_order():
    kernel, crowd = ExponentiatedQuadratic(1.0), np.linspace(-1, 1, 30)[:, None]
    kept = not_spent(kernel, np.concatenate([crowd, crowd, [[2.5]]]))
    assert kept[-1] == 60 and (kept[:-1] < 30).all() and len(kept) < 31
    points = np.concatenate([crowd, crowd, [[2.5]]])[kept]
    assert leading_cholesky(kernel(points, points))[1] == len(points)
    assert leading_cholesky(kernel(crowd, crowd))[1] < len(crowd)
