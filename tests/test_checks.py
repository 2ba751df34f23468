"""What is wrong with an argument is said where the argument comes in, and with its row."""

import re
import warnings
from dataclasses import replace
from fractions import Fraction

import numpy as np
import pandas
import pytest
import xarray

import bqlib
from bqlib import (
    Candidates,
    Empirical,
    ExponentiatedQuadratic,
    GaussianMixture,
    Matern,
    Uniform,
    embed,
    fit_kernel,
    mmd,
)
from bqlib.checks import checked_count, checked_number, checked_points, checked_rng
from bqlib.discrepancy import mmd2_of_prefixes, spectral_mmd2, witness
from bqlib.posterior import integral
from bqlib.weights import bq, conditioning, uniform

NORMAL = GaussianMixture([1.0], [[0.0, 0.0]], [np.eye(2)])
EMBEDDING = embed(ExponentiatedQuadratic(1.0), NORMAL)
HERE = np.array([[0.0, 0.0], [1.0, 0.0], [0.0, 1.0]])
THIRDS = np.full(3, 1 / 3)


def with_row(row, values):
    points = HERE.copy()
    points[row] = values
    return points


@pytest.mark.parametrize(
    "call",
    [
        lambda points: NORMAL.density(points),
        lambda points: NORMAL.score(points),
        lambda points: Uniform([0, 0], [1, 1]).density(points),
        lambda points: EMBEDDING.kernel(HERE, points),
        lambda points: EMBEDDING.kernel.gradient(HERE, points),
        lambda points: EMBEDDING.kernel_mean(points),
        lambda points: EMBEDDING.kernel_mean_gradient(points),
        lambda points: uniform(EMBEDDING, points),
        lambda points: bq(EMBEDDING, points),
        lambda points: conditioning(EMBEDDING, points, THIRDS),
        lambda points: mmd(EMBEDDING, points, THIRDS),
        lambda points: mmd2_of_prefixes(EMBEDDING, points, np.eye(3)),
        lambda points: spectral_mmd2(EMBEDDING, points, THIRDS),
        lambda points: witness(EMBEDDING, points, THIRDS),
        lambda points: integral(EMBEDDING, points, THIRDS, THIRDS),
    ],
)
@pytest.mark.parametrize(
    "points, error, said",
    [
        (HERE[0], ValueError, "points have shape (2,); they must have shape (n, 2)"),
        (HERE[:, :1], ValueError, "points have shape (3, 1); they must have shape (n, 2)"),
        ([[0.0, 1.0], [2.0]], ValueError, "points must be an array of numbers with rows of equal"),
        (with_row(2, [1, np.nan]), ValueError, "NaN or infinity, first in row 2: [ 1. nan]"),
        (with_row(1, -np.inf), ValueError, "NaN or infinity, first in row 1: [-inf -inf]"),
        (with_row(1, 1e60), ValueError, "in row 1; all numbers must lie between -1e50 and 1e50"),
        (HERE + 1j, TypeError, "points must hold real numbers, not complex128"),
        ([["a", "b"]], TypeError, "points must hold real numbers, not <U1"),
        (np.ma.masked_equal(HERE, HERE[1, 0]), ValueError, "must not have masked entries: remove"),
    ],
)
def test_points(call, points, error, said):
    with pytest.raises(error, match=re.escape(said)):
        call(points)


@pytest.mark.parametrize(
    "call",
    [
        lambda weights: conditioning(EMBEDDING, HERE, weights),
        lambda weights: mmd(EMBEDDING, HERE, weights),
        lambda weights: spectral_mmd2(EMBEDDING, HERE, weights),
        lambda weights: witness(EMBEDDING, HERE, weights),
        lambda weights: integral(EMBEDDING, HERE, weights, THIRDS),
    ],
)
@pytest.mark.parametrize(
    "weights, said",
    [
        ([0.5, 0.5], "weights have shape (2,); 3 points need shape (3,)"),
        ([[0.5], [0.5], [0.5]], "weights have shape (3, 1); 3 points need shape (3,)"),
        ([0.5, np.nan, np.inf], "NaN or infinite at points [1, 2], counted from 0"),
    ],
)
def test_weights(call, weights, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        call(weights)


def test_weights_of_prefixes():
    with pytest.raises(
        ValueError, match=r"weights have shape \(2, 2\); 3 points need shape \(m, 3\)"
    ):
        mmd2_of_prefixes(EMBEDDING, HERE, np.eye(2))
    with pytest.raises(ValueError, match="weights hold NaN or infinity, first in row 1"):
        mmd2_of_prefixes(EMBEDDING, HERE, [THIRDS, THIRDS * np.nan])


def test_no_points():
    with pytest.raises(ValueError, match="there are no points"):
        conditioning(EMBEDDING, HERE[:0], [])
    assert mmd(EMBEDDING, HERE[:0], []) == np.sqrt(EMBEDDING.prior_variance)


@pytest.mark.parametrize(
    "target", [NORMAL, Uniform([0.0], [1.0]), Empirical(HERE), Candidates(size=5)]
)
def test_draws_need_a_seed(target):
    def draw(n, rng):
        if isinstance(target, Candidates):
            return target.draw(NORMAL, rng)
        return target.sample(n, rng)

    with pytest.raises(TypeError, match="missing 1 required positional argument: 'rng'"):
        target.draw(NORMAL) if isinstance(target, Candidates) else target.sample(5)
    with pytest.raises(TypeError, match="rng is required so that the result can be reproduced"):
        draw(5, None)
    np.testing.assert_array_equal(draw(5, 3), draw(np.int64(5), np.random.default_rng(3)))


@pytest.mark.parametrize("value", [2.5, 2.0, "3", None, [1], np.array([1, 2]), True, np.True_])
def test_what_is_no_whole_number(value):
    with pytest.raises(TypeError, match=r"n is .*; it must be a whole number"):
        checked_count(value, "n")


def test_counts_and_numbers_of_every_type():
    assert checked_count(np.array(3), "n") == checked_count(np.uint8(3), "n") == 3
    for value in (0.5, np.float32(0.5), np.array(0.5)):
        assert checked_number(value, "x") == 0.5
        assert type(checked_number(value, "x")) is float
    with pytest.raises(ValueError, match="n is 2; it must be at least 3"):
        checked_count(2, "n", 3)
    for value in (True, "1", None, [1.0], np.array([1.0]), 1j):
        with pytest.raises(TypeError, match="it must be a number"):
            checked_number(value, "x")


@pytest.mark.parametrize(
    "rng, error, said",
    [
        (None, TypeError, "rng is required so that the result can be reproduced: pass a seed"),
        (-1, ValueError, "rng is -1; it must be at least 0"),
        ("a", TypeError, "rng is 'a'; it must be a seed, that is, a whole number of at least 0"),
        (1.5, TypeError, "rng is 1.5; it must be a seed"),
        (True, TypeError, "rng is True; it must be a seed"),
        (
            np.random.RandomState(0),
            TypeError,
            "rng is a RandomState, which is not supported: pass a",
        ),
        (np.random, TypeError, "it must be a seed"),
    ],
)
def test_what_is_no_seed(rng, error, said):
    with pytest.raises(error, match=said):
        checked_rng(rng)


def test_seeds_and_generators():
    generator = np.random.default_rng(2)
    first, second = np.random.default_rng(2).random(2)
    assert checked_rng(np.uint8(2)).random() == checked_rng(2).random() == first
    # What is drawn is drawn from the one given.
    assert (checked_rng(generator).random(), generator.random()) == (first, second)
    once = checked_rng(generator)
    assert checked_rng(once) is once


@pytest.mark.parametrize("values", [[0.0, 1e300], [-1e120, 1.0], [1e-300, 1e-200]])
def test_values_of_f_whose_squares_float64_cannot_hold(values):
    with pytest.raises(
        ValueError, match=r"largest value of f is .*; it must lie between 1e-100 and 1"
    ):
        integral(EMBEDDING, HERE[:2], [0.5, 0.5], values)
    with pytest.raises(ValueError, match="change the unit of f"):
        fit_kernel(ExponentiatedQuadratic(1.0), HERE[:2], values)


def test_values_of_f_at_the_ends_of_their_range():
    for unit in (1e-99, 1e99):
        found = integral(EMBEDDING, HERE, THIRDS, unit * np.array([1.0, 2.0, 3.0]))
        assert found.mean == pytest.approx(2 * unit) and 0 < found.std / unit < 1
    assert integral(EMBEDDING, HERE, THIRDS, np.zeros(3)).mean == 0


def test_what_a_float_array_holds_is_not_copied():
    assert checked_points(HERE) is HERE
    assert checked_points(HERE.tolist(), 2).tolist() == HERE.tolist()
    assert checked_points(np.empty((0, 2)), 2).shape == (0, 2)


@pytest.mark.parametrize(
    "build, said",
    [
        (lambda: ExponentiatedQuadratic(1e-60), "lengthscale is 1e-60; it must lie between 1e-50"),
        (lambda: Matern([1.0, 1e60]), "lie between 1e-50 and 1e50: change the unit of length"),
        (lambda: ExponentiatedQuadratic(covariance=np.eye(2) * 1e-120), "a standard deviation"),
        (lambda: GaussianMixture([1], [[0]], [[[1e120]]]), "component 0 has a standard deviation"),
        (lambda: GaussianMixture([1], [[1e60]], [[[1.0]]]), "means hold .* in row 0; all numbers"),
        (lambda: Uniform([0.0], [1e60]), "an end beyond 1e50"),
        (lambda: Uniform([0.0], [1e-60]), "a side shorter than 1e-50"),
        (lambda: Empirical([[1.0], [1e60]]), "points hold .* in row 1; all numbers"),
        (lambda: 1e-200 * Matern(1.0), "the factor is 1e-200; it must lie between 1e-100"),
        (lambda: Matern(1e-40, scale="density")([[0, 0, 0]], [[0, 0, 0]]), 'use scale="unit"'),
        (lambda: Matern(1e40, scale="density").diagonal([[0] * 8]), "has height 0, out of the"),
    ],
)
def test_lengths_and_heights_that_float64_cannot_square(build, said):
    with pytest.raises(ValueError, match=said):
        build()


# --- Arrays of other libraries --------------------------------------------------------------------


class Labelled:
    """What numpy knows of the arrays of most other libraries."""

    def __init__(self, values):
        self.values = values

    def __array__(self, dtype=None, copy=None):
        return np.array(self.values, dtype=dtype)


def refused_by_numpy(error):
    class Refused:
        def __array__(self, dtype=None, copy=None):
            raise error

    return Refused()


TABLES = {
    "tuples": lambda points: [tuple(point) for point in points.tolist()],
    "objects": lambda points: points.astype(object),
    "fractions": lambda points: [[Fraction(x) for x in point] for point in points.tolist()],
    "labelled": Labelled,
    "frame": pandas.DataFrame,
    "nullable": lambda points: pandas.DataFrame(points).convert_dtypes(),
    "one nullable": lambda points: pandas.DataFrame(points).astype({0: "Float64"}),
    "data array": lambda points: xarray.DataArray(points, dims=("sample", "coordinate")),
    "masked": np.ma.masked_invalid,
}


@pytest.mark.parametrize("table", TABLES.values(), ids=TABLES)
def test_points_come_as_other_libraries_hold_them(table):
    np.testing.assert_array_equal(checked_points(table(HERE), 2), HERE)
    assert checked_points(table(HERE), 2).dtype == float
    made = bqlib.sbq(
        NORMAL, ExponentiatedQuadratic(1.0), 3, candidates=table(HERE), initial=None, rng=0
    )
    assert len(made.points) == 3


COLUMNS = {
    "list": list,
    "series": pandas.Series,
    "nullable series": lambda values: pandas.Series(values, dtype="Float64"),
    "frame": pandas.DataFrame,
    "nullable frame": lambda values: pandas.DataFrame(values, dtype="Float64"),
    "data array": xarray.DataArray,
    "column": lambda values: values[:, None],
    "labelled": Labelled,
    "labelled column": lambda values: Labelled(values[:, None]),
}


@pytest.mark.parametrize("column", COLUMNS.values(), ids=COLUMNS)
def test_values_come_as_other_libraries_hold_them(column):
    values = np.array([1.0, -2.0, 0.5])
    design = bqlib.iid(NORMAL, ExponentiatedQuadratic(1.0), 3, rng=0)
    expected = design.integrate(values=values)
    found = design.integrate(values=column(values))
    assert found.name in ("", "0")  # the label of a column
    assert vars(replace(found, name="")) == vars(expected)
    found = integral(EMBEDDING, HERE, THIRDS, column(values))
    assert found.mean == pytest.approx(-0.5 / 3)
    short = replace(design, stop="for a reason")
    assert short.integrate(values=column(values)).mean == pytest.approx(expected.mean)
    with pytest.raises(
        ValueError, match=r"shape \(2,( 1)?\), but there are 3 points \(for a reason\)"
    ):
        short.integrate(values=column(values[:2]))


@pytest.mark.parametrize(
    "points, error, said",
    [
        (
            pandas.DataFrame({"a": pandas.array([1, 2, None], dtype="Int64"), "b": [1, 2, 3]}),
            ValueError,
            "points must not have missing values, in row 2: remove or fill them",
        ),
        ([[0.0, 1.0], [None, 2.0]], ValueError, "must not have missing values, in row 1"),
        (pandas.DataFrame({"a": [1, 2], "b": ["x", 2]}), TypeError, "not str, in row 0"),
        ([[1, 10**400]], ValueError, "points hold a number that is too large for float64"),
        (None, TypeError, "points must be an array of numbers, not None"),
        ({"a": 1.0}, TypeError, "points must hold real numbers, not dict"),
        (xarray.Dataset({"a": ("x", [1.0])}), TypeError, "numpy cannot make one of this Dataset"),
        (
            refused_by_numpy(RuntimeError("on another device")),
            TypeError,
            "numpy cannot make one of this Refused: on another device",
        ),
        (np.array([["2020-01-01"]], dtype="M8[D]"), TypeError, "must hold real numbers, not date"),
    ],
)
def test_what_cannot_be_read_as_points(points, error, said):
    with pytest.raises(error, match=re.escape(said)):
        checked_points(points)


def test_a_missing_value_of_f_is_named_by_its_row():
    with pytest.raises(ValueError, match="values of f must not have missing values, in row 1"):
        integral(EMBEDDING, HERE, THIRDS, [1, None, 2])
    with pytest.raises(ValueError, match=r"values of f .* (at points \[1\]|in row 1)"):
        integral(EMBEDDING, HERE, THIRDS, pandas.Series([1, None, 2], dtype="Int64"))


# --- What f returns -------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "one, error, said",
    [
        (lambda x: None, TypeError, "f returned None; it must return numbers: check its return"),
        (lambda x: 1j * x[0], TypeError, "values of f must hold real numbers, not complex128"),
        (lambda x: "high", TypeError, "values of f must hold real numbers, not <U4"),
        (lambda x: {}, TypeError, "values of f must hold real numbers, not dict"),
        (lambda x: np.ma.masked, ValueError, "values of f must not have masked entries"),
        (lambda x: pandas.NA, ValueError, "values of f are NaN at points [0, 1, 2], counted from"),
        (lambda x: [[1.0, 2.0]], ValueError, "f returned shape (1, 2) for one point of shape (2,)"),
        (lambda x: [], ValueError, "f returned shape (0,) for one point of shape (2,)"),
        (lambda x: np.nan, ValueError, "values of f are NaN at points [0, 1, 2], counted from 0"),
        (lambda x: -np.inf, ValueError, "values of f are infinite at points [0, 1, 2], counted"),
    ],
)
@pytest.mark.parametrize("vectorized", [False, True])
def test_what_f_must_not_return(one, error, said, vectorized):
    design = bqlib.iid(NORMAL, ExponentiatedQuadratic(1.0), 3, rng=0)

    def f(x):
        if not vectorized:
            return one(x)
        answers = [one(point) for point in x]
        if answers[0] is None:
            return None
        return np.ma.stack(answers) if answers[0] is np.ma.masked else np.array(answers)

    if vectorized:
        said = re.sub(r"\(1, 2\) for one point.*", "(3, 1, 2) for points of shape (3, 2)", said)
        said = re.sub(r"\(0,\) for one point.*", "(3, 0) for points of shape (3, 2)", said)
    with warnings.catch_warnings(), pytest.raises(error, match=re.escape(said)):
        warnings.simplefilter("error")
        design.integrate(f, vectorized=vectorized)


def test_what_f_may_return():
    design = bqlib.iid(NORMAL, ExponentiatedQuadratic(1.0), 9, rng=0)
    for kind in (bool, int, np.float32, np.array, Fraction):
        each = design.integrate(lambda x, kind=kind: kind(float(x[0] > 0)))
        together = design.integrate(lambda x: (x[:, 0] > 0).astype(object), vectorized=True)
        given = design.integrate(values=design.points[:, 0] > 0)
        assert vars(each) == vars(together) == vars(given)


# --- Rounding of what a caller has ----------------------------------------------------------------


def inverse(seed, condition=1e8):
    """A covariance as the inverse of a precision matrix, with the rounding of that."""
    rng = np.random.default_rng(seed)
    turn = np.linalg.qr(rng.normal(size=(4, 4))).Q
    return np.linalg.inv((turn * np.geomspace(1, condition, 4)) @ turn.T)


@pytest.mark.parametrize(
    "weights",
    [
        np.float32([0.1, 0.2, 0.7]),
        np.float32([0.1, 0.2, 0.7]).tolist(),
        np.float32([0.1, 0.2, 0.7]).astype(float),
        [np.float32(0.1), np.float32(0.2), np.float32(0.7)],
        np.float16([0.1, 0.2, 0.7]),
        [0.1, 0.2, 0.7 - 1e-7],
        np.full(100_000, 1 / 100_000, dtype=np.float32),
    ],
)
def test_weights_that_sum_to_one_up_to_rounding_are_made_to(weights):
    size = len(weights)
    data = Empirical(np.arange(size)[:, None], weights)
    assert abs(np.asarray(weights, dtype=float).sum() - 1) > 1e-9
    assert data.weights.sum() == pytest.approx(1, abs=1e-14)
    np.testing.assert_allclose(data.weights, np.asarray(weights, dtype=float), rtol=1e-3)
    if size < 9:
        mixture = GaussianMixture(weights, np.zeros((size, 1)), np.ones((size, 1, 1)))
        np.testing.assert_array_equal(mixture.weights, data.weights)
        assert mixture.density([[0.0]])[0] == pytest.approx(1 / np.sqrt(2 * np.pi), rel=1e-14)


def test_weights_that_sum_to_one_in_float64_stay_as_they_are():
    weights = np.array([0.1, 0.2, 0.7]) * (1 + 1e-12)
    np.testing.assert_array_equal(Empirical(HERE, weights).weights, weights)


@pytest.mark.parametrize(
    "weights",
    [
        [0.1, 0.2, 0.69],
        np.float32([0.1, 0.2, 0.69]),
        np.float16([0.1, 0.2, 0.69]),
        [0.1, 0.2, 0.7 - 1e-5],
        np.float32([0.1, 0.2, 0.7 - 1e-5]),
    ],
)
def test_weights_with_another_sum_are_refused(weights):
    with pytest.raises(ValueError, match=r"weights sum to 0\.\d+; they must sum to 1"):
        Empirical(HERE, weights)


@pytest.mark.parametrize("seed", range(5))
def test_a_covariance_that_is_symmetric_up_to_rounding_is_made_so(seed):
    matrix = inverse(seed)
    assert not np.allclose(matrix, matrix.T, rtol=1e-12, atol=0)
    mixture = GaussianMixture([1.0], np.zeros((1, 4)), matrix[None])
    kernel = ExponentiatedQuadratic(covariance=matrix)
    for made in (mixture.covariances[0], kernel.covariance):
        np.testing.assert_array_equal(made, (matrix + matrix.T) / 2)
    x = np.random.default_rng(9).normal(size=(5, 4))
    np.testing.assert_array_equal(kernel(x, x), kernel(x, x).T)
    short = inverse(seed, 1e3).astype(np.float32)
    short[0, 1] *= 1 + 1e-6
    for form in (short, short.tolist()):
        made = ExponentiatedQuadratic(covariance=form).covariance
        np.testing.assert_array_equal(made, made.T)


def test_a_symmetric_covariance_stays_as_it_is():
    matrix = np.array([[1.0, 0.3 * (1 + 1e-15)], [0.3, 1.0]])
    np.testing.assert_array_equal(ExponentiatedQuadratic(covariance=matrix).covariance, matrix)


@pytest.mark.parametrize("difference", [0.2, 1e-3, 1e-6])
def test_an_asymmetric_covariance_is_refused(difference):
    matrix = [[1.0, 0.3 + difference], [0.3, 1.0]]
    with pytest.raises(ValueError, match="covariance is not symmetric; it must equal its transp"):
        ExponentiatedQuadratic(covariance=matrix)
    with pytest.raises(ValueError, match="covariance of component 0 is not symmetric"):
        GaussianMixture([1.0], [[0.0, 0.0]], [matrix])


def test_boxes_may_be_float32():
    box = Uniform(np.float32([0, 0]), np.float32([1, 0.1]))
    assert box.upper[1] == np.float32(0.1) and box.upper.dtype == float
    ends = np.float32([[0, 1], [0, 0.1]])
    inside = Candidates(50, source="box", box=ends).draw(box, 0)
    assert np.isfinite(box.log_density(inside)).all()
    assert embed(bqlib.Brownian(), Uniform(np.float32([0]), np.float32([1]))).prior_variance > 0


def test_float32_weights_with_sum_one_leave_the_mean_of_f_unknown():
    weights = np.float32([1 / 3, 1 / 3, 1 / 3])
    values = [10.0, 11.0, 12.0]
    for given in (weights, weights.tolist(), np.full(3, 1 / 3)):
        assert integral(EMBEDDING, HERE, given, values).freedom == 2
    assert integral(EMBEDDING, HERE, 0.99 * weights, values).freedom == 3
