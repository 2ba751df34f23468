"""Values of f as people have them: shapes, tables matched by their index, and missing values."""

import re

import numpy as np
import pandas
import pytest
import xarray

from bqlib.tables import listed, outputs_of, without_missing

POINTS = np.arange(8.0).reshape(4, 2)
ONE = np.array([1.0, -2.0, 0.5, 3.0])
TWO = np.column_stack([ONE, 10 * ONE])


@pytest.mark.parametrize(
    "values, columns, names, single",
    [
        (ONE, [ONE], ("",), True),
        (ONE[:, None], [ONE], ("",), True),
        (TWO, TWO.T, ("", ""), False),
        (ONE.tolist(), [ONE], ("",), True),
        (ONE > 0, [ONE > 0], ("",), True),
        (pandas.Series(ONE), [ONE], ("",), True),
        (pandas.Series(ONE, name="flow"), [ONE], ("flow",), True),
        (pandas.DataFrame({"flow": ONE}), [ONE], ("flow",), True),
        (pandas.DataFrame(TWO, columns=["flow", "heat"]), TWO.T, ("flow", "heat"), False),
        (pandas.DataFrame(TWO), TWO.T, ("0", "1"), False),
        (xarray.DataArray(ONE, name="flow"), [ONE], ("flow",), True),
        (xarray.DataArray(TWO, name="flow"), TWO.T, ("", ""), False),
        (xarray.DataArray(ONE, coords={"index": [3, 2, 1, 0]}, dims="index"), [ONE], ("",), True),
    ],
)
def test_outputs_have_a_row_each(values, columns, names, single):
    found = outputs_of(values, POINTS, 4)
    np.testing.assert_array_equal(found.columns, columns)
    assert found.columns.dtype == float
    assert (found.names, found.single) == (names, single)


@pytest.mark.parametrize("order", [[0, 1, 2, 3], [2, 0, 3, 1], [3, 2, 1, 0]])
@pytest.mark.parametrize("labels", [[0, 1, 2, 3], list("abcd"), [7.0, 5.0, 6.0, 4.0]], ids=str)
def test_rows_are_matched_by_their_index(order, labels):
    table = pandas.DataFrame(TWO, index=labels, columns=["flow", "heat"]).iloc[order]
    points = pandas.DataFrame(POINTS, index=labels)
    np.testing.assert_array_equal(outputs_of(table, points, 4).columns, TWO.T)
    np.testing.assert_array_equal(outputs_of(table["heat"], points, 4).columns, TWO.T[1:])
    if labels == [0, 1, 2, 3]:
        np.testing.assert_array_equal(outputs_of(table, POINTS, 4).columns, TWO.T)
    # Control: what has no index is taken in its order.
    in_order = outputs_of(table.to_numpy(), points, 4).columns
    np.testing.assert_array_equal(in_order, TWO[order].T)


def test_an_index_with_repeats_is_taken_in_its_order_if_the_points_have_the_same():
    labels = ["a", "a", "b", "c"]
    points = pandas.DataFrame(POINTS, index=labels)
    np.testing.assert_array_equal(
        outputs_of(pandas.Series(ONE, index=labels), points, 4).columns, [ONE]
    )


@pytest.mark.parametrize(
    "index, of_points, said",
    [
        ([1, 2, 3, 4], None, "is not 0 to 3, the numbers of the points: 0 has no value. Give"),
        (
            [7, 8, 9, 3],
            None,
            "0 has no value, nor have 2 more. Give each row the number of its point as",
        ),
        (list("abcd"), None, "0 has no value, nor have 3 more"),
        ([0, 0, 1, 2], None, "has a label more than once, so that rows cannot be matched. Give"),
        (list("abce"), list("abcd"), "is not that of the points: 'd' has no value. Give both"),
        (list("abcd"), list("aabc"), "has a label more than once"),
        (list("aabc"), list("abca"), "has a label more than once"),
        ([np.nan, 1, 2, 3], None, "0 has no value"),
    ],
)
def test_an_index_that_does_not_match_is_refused(index, of_points, said):
    points = POINTS if of_points is None else pandas.DataFrame(POINTS, index=of_points)
    for values in (pandas.Series(ONE, index=index), pandas.DataFrame(TWO, index=index)):
        with pytest.raises(ValueError, match=re.escape(said)):
            outputs_of(values, points, 4)


@pytest.mark.parametrize(
    "values, error, said",
    [
        (ONE[:3], ValueError, "shape (3,), but there are 4 points, which need shape (4,), or (4,"),
        (TWO.T, ValueError, "shape (2, 4), but there are 4 points"),
        (TWO[None], ValueError, "shape (1, 4, 2), but there are 4 points"),
        (np.empty((4, 0)), ValueError, "shape (4, 0), but there are 4 points"),
        (1.0, ValueError, "shape (), but there are 4 points"),
        (pandas.Series(ONE[:3]), ValueError, "shape (3,), but there are 4 points"),
        ([[1.0], [1.0, 2.0], [1.0], [1.0]], ValueError, "rows of equal length"),
        (None, TypeError, "values of f must be an array of numbers, not None"),
        (ONE + 1j, TypeError, "values of f must hold real numbers, not complex128"),
        (["1", "2", "3", "4"], TypeError, "values of f must hold real numbers, not <U1"),
        (pandas.Series([1, "x", 2, 3]), TypeError, "real numbers, not str, in row 1"),
        (np.sum, TypeError, "values is a function; it must be an array of the values of f: pass"),
        (np.ma.masked_less(ONE, 0), ValueError, "values of f must not have masked entries"),
    ],
)
def test_what_values_cannot_be(values, error, said):
    with pytest.raises(error, match=re.escape(said)):
        outputs_of(values, POINTS, 4)


def test_the_reason_for_few_points_is_told():
    with pytest.raises(ValueError, match=r"there are 4 points \(design stops at n = 4\), which"):
        outputs_of(np.ones(9), POINTS, 4, "design stops at n = 4")


MISSING = {
    "nan": [1.0, np.nan, 0.5, 3.0],
    "none": [1.0, None, 0.5, 3.0],
    "series": pandas.Series([1.0, None, 0.5, 3.0]),
    "nullable series": pandas.Series([1.0, None, 0.5, 3.0], dtype="Float64"),
    "objects": pandas.Series([1.0, pandas.NA, 0.5, 3.0], dtype=object),
}


@pytest.mark.parametrize("values", MISSING.values(), ids=MISSING)
def test_points_without_a_value_are_dropped_by_name(values):
    before = outputs_of(values, POINTS, 4)
    outputs, points, rows = without_missing(before, POINTS, "drop")
    np.testing.assert_array_equal(outputs.columns, [[1.0, 0.5, 3.0]])
    np.testing.assert_array_equal(points, POINTS[[0, 2, 3]])
    assert rows == (1,) and outputs.single
    with pytest.raises(ValueError, match=r'NaN at points \[1\].* leave .* with missing="drop"'):
        without_missing(before, POINTS, "refuse")
    if isinstance(values, pandas.Series):  # what a caller has stays as it is
        assert values.isna().sum() == 1


def test_a_point_without_one_of_its_outputs_is_dropped():
    table = pandas.DataFrame(TWO, columns=["flow", "heat"])
    table.loc[0, "heat"] = table.loc[3, "flow"] = np.nan
    outputs, points, rows = without_missing(outputs_of(table, POINTS, 4), POINTS, "drop")
    np.testing.assert_array_equal(outputs.columns, TWO[1:3].T)
    np.testing.assert_array_equal(points, POINTS[1:3])
    assert rows == (0, 3) and outputs.names == ("flow", "heat") and not outputs.single


@pytest.mark.parametrize("missing", ["refuse", "drop"])
def test_nothing_changes_where_nothing_is_missing(missing):
    outputs = outputs_of(TWO, POINTS, 4)
    found, points, rows = without_missing(outputs, POINTS, missing)
    assert found is outputs and points is POINTS and rows == ()


@pytest.mark.parametrize(
    "values, missing, said",
    [
        ([np.inf, 1, -np.inf, 2], "drop", "infinite at points [0, 2], counted from 0; they must"),
        ([np.inf, np.nan, 1, 2], "drop", "infinite at points [0]"),
        ([np.inf, np.nan, 1, 2], "refuse", 'missing="drop"; values of f are infinite at points [0'),
        ([np.nan] * 4, "drop", "all values of f are NaN; at least one must be a number"),
        ([np.nan] * 4, "refuse", "NaN at points [0, 1, 2, 3], counted from 0: if these runs"),
        (ONE, "skip", 'missing is \'skip\'; it must be "refuse" or "drop"'),
    ],
)
def test_values_that_stay_refused(values, missing, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        without_missing(outputs_of(values, POINTS, 4), POINTS, missing)


def test_long_lists_of_rows_are_cut():
    assert listed((0, 3)) == "[0, 3]"
    assert listed(range(10)) == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9]"
    assert listed(list(range(12))) == "[0, 1, 2, 3, 4, 5, 6, 7, 8, 9] and 2 more"
