"""Draws as people have them, and what is said of those that cannot be taken."""

from types import SimpleNamespace

import arviz_base
import numpy as np
import pandas
import pytest
import xarray

from bqlib import thin
from bqlib.samples import draws_of

DRAWS = np.random.default_rng(0).normal(size=(60, 2))
CHAINS = DRAWS.reshape(3, 20, 2)
TABLE = pandas.DataFrame(DRAWS, columns=["a", "b"])


def score(x):
    return -x


def posterior():
    """Three chains of mu and of theta, which has two numbers."""
    theta = np.random.default_rng(1).normal(size=(3, 20, 2))
    return arviz_base.from_dict({"posterior": {"mu": CHAINS[:, :, 0], "theta": theta}}), theta


def test_a_posterior_of_arviz_is_taken_and_can_be_subset():
    data, theta = posterior()
    draws = draws_of(data)
    expected = np.concatenate([DRAWS[:, :1], theta.reshape(-1, 2)], axis=1)
    np.testing.assert_array_equal(draws.points, expected)
    assert draws.names == ["mu", "theta[0]", "theta[1]"] and draws.shape == (3, 20, 3)
    design = thin(data, 7, rng=0)
    np.testing.assert_array_equal(expected[design.rows], design.points)
    stacked = data.posterior.dataset.stack(sample=["chain", "draw"])
    kept = stacked.isel(sample=design.rows)
    np.testing.assert_array_equal(kept["mu"], design.points[:, 0])
    np.testing.assert_array_equal(kept["theta"].T, design.points[:, 1:])
    assert [tuple(label) for label in design.labels] == kept["sample"].values.tolist()
    by_label = [data.posterior["mu"].sel(chain=c, draw=d).item() for c, d in design.labels]
    np.testing.assert_array_equal(by_label, design.points[:, 0])


def test_a_posterior_may_be_a_dataset_in_any_order_or_have_scores():
    data, _ = posterior()
    dataset = data.posterior.dataset
    turned = dataset.transpose("draw", "chain", ...)
    for other in (dataset, turned, SimpleNamespace(posterior=turned)):
        np.testing.assert_array_equal(draws_of(other).points, draws_of(data).points)
    points = draws_of(data).points
    as_function, as_chains = thin(data, 5, score, rng=0), thin(data, 5, -points, rng=0)
    np.testing.assert_array_equal(as_function.rows, as_chains.rows)
    again = thin(data, 5, -points.reshape(3, 20, 3), rng=0)
    np.testing.assert_array_equal(again.rows, as_chains.rows)


def test_columns_of_all_kinds_of_numbers_are_taken():
    table = TABLE.assign(
        count=np.arange(60) % 7, flag=DRAWS[:, 0] > 0, some=DRAWS[:, 1].astype("O")
    )
    draws = draws_of(table)
    assert draws.points.dtype == float and draws.names == ["a", "b", "count", "flag", "some"]
    np.testing.assert_array_equal(draws.points[:, 2], np.arange(60) % 7)
    np.testing.assert_array_equal(draws_of(DRAWS.astype(int)).points, DRAWS.astype(int))
    nullable = draws_of(TABLE.astype("Float64")).points
    np.testing.assert_array_equal(nullable, DRAWS)


def test_scores_of_a_table_are_matched_by_name_and_index():
    expected = thin(TABLE, 6, score, rng=0).rows
    scores = -TABLE[["b", "a"]].sample(frac=1, random_state=0)
    np.testing.assert_array_equal(thin(TABLE, 6, scores, rng=0).rows, expected)
    np.testing.assert_array_equal(thin(DRAWS, 6, scores[["a", "b"]], rng=0).rows, expected)
    np.testing.assert_array_equal(thin(TABLE, 6, -DRAWS, rng=0).rows, expected)


def with_a_bad(value, row=31, column=1):
    draws = DRAWS.copy()
    draws[row, column] = value
    return draws


def equal_draws_with_other_scores():
    draws, scores = DRAWS.copy(), -DRAWS
    draws[45] = draws[12]
    return draws, scores


@pytest.mark.parametrize(
    "samples, scores, error, said",
    [
        (
            with_a_bad(np.nan),
            None,
            ValueError,
            r"samples are NaN or infinite in 1 of 60 .* row 31:",
        ),
        (
            with_a_bad(np.inf).reshape(3, 20, 2),
            None,
            ValueError,
            r"first in row 31 \(chain 1, draw 11\)",
        ),
        (
            DRAWS,
            -with_a_bad(np.nan),
            ValueError,
            "scores are NaN or infinite in 1 of 60 .* row 31:",
        ),
        (CHAINS, -with_a_bad(np.nan), ValueError, r"scores .* row 31 \(chain 1, draw 11\)"),
        (
            np.repeat(DRAWS, 2, axis=0),
            lambda x: np.where(x > 2, np.nan, x),
            ValueError,
            "scores are",
        ),
        (
            *equal_draws_with_other_scores(),
            ValueError,
            "equal in row 12 and row 45, but their scores",
        ),
        ([CHAINS[0], CHAINS[1][:15]], None, ValueError, "the chains have from 15 to 20 draws"),
        (DRAWS, -DRAWS[:50], ValueError, r"scores have shape \(50, 2\), but samples have shape"),
        (
            DRAWS,
            -DRAWS[:, :1],
            ValueError,
            r"\(60, 1\), but samples .* give scores of shape \(60, 2\)",
        ),
        (CHAINS, -CHAINS[:2], ValueError, r"shape \(60, 2\) or \(3, 20, 2\)"),
        (DRAWS, lambda x: x[:, 0], ValueError, r"scores\(x\) returned shape \(60,\) for points"),
        (DRAWS, lambda x: None, TypeError, r"scores\(x\) returned None"),
        (DRAWS, "scores", TypeError, "scores must hold real numbers"),
        (
            DRAWS[:, 0],
            None,
            ValueError,
            r"shape \(60,\); .* for one parameter, pass samples\[:, None",
        ),
        (np.zeros((2, 2, 2, 2)), None, ValueError, r"\(draws, d\), or \(chains, draws, d\)"),
        (np.empty((0, 2)), None, ValueError, r"samples have shape \(0, 2\)"),
        (None, None, TypeError, "samples must be an array of numbers, not None"),
        (1j * DRAWS, None, TypeError, "real numbers, not complex128"),
        (
            TABLE.assign(model="m1"),
            None,
            TypeError,
            "the column 'model' of samples must hold real nu",
        ),
        (
            TABLE.assign(when=pandas.Timestamp("2020")),
            None,
            TypeError,
            "the column 'when' of samples must hold real numbers, not datetime",
        ),
        (TABLE[[]], None, ValueError, "a table without columns"),
        (
            TABLE,
            -TABLE[["a"]],
            ValueError,
            r"scores have the columns \['a'\], and samples \['a', 'b'",
        ),
        (
            TABLE,
            -TABLE.set_axis(range(100, 160)),
            ValueError,
            "the index of the values is not that of the points: 0 has no value",
        ),
        (xarray.Dataset({"mu": ("draw", DRAWS[:, 0])}), None, ValueError, 'must have "chain" and'),
        (xarray.Dataset(), None, ValueError, "the dataset has no variables"),
        (1e60 * DRAWS, None, ValueError, "between -1e50 and 1e50"),
    ],
)
def test_what_cannot_be_taken_is_told(samples, scores, error, said):
    with pytest.raises(error, match=said):
        thin(samples, 5, scores, rng=0)


def test_one_variable_of_a_posterior_is_taken():
    data, theta = posterior()
    for variable, expected in (("mu", DRAWS[:, :1]), ("theta", theta.reshape(-1, 2))):
        np.testing.assert_array_equal(draws_of(data.posterior[variable]).points, expected)


def test_scores_may_be_a_posterior_with_the_variables_in_any_order():
    data, _ = posterior()
    scores = -data.posterior.dataset
    expected = thin(data, 5, score, rng=0).rows
    for given in (scores, scores[["theta", "mu"]], SimpleNamespace(posterior=scores)):
        np.testing.assert_array_equal(thin(data, 5, given, rng=0).rows, expected)
    with pytest.raises(
        ValueError, match=r"scores have the columns \['mu'\], and samples \['mu', 't"
    ):
        thin(data, 5, scores[["mu"]], rng=0)


@pytest.mark.parametrize("beside", ["lp__", "divergent__", "chain", ".draw", "Iteration"])
def test_columns_that_samplers_write_beside_parameters_are_refused(beside):
    with pytest.raises(ValueError, match=rf"the columns \['{beside}'\], which are no parameters"):
        thin(TABLE.assign(**{beside: 1.0}), 5, rng=0)
    whole = TABLE.assign(**{beside: 1.0}).to_numpy()
    assert len(thin(whole, 5, rng=0).rows) == 5  # an array has no names


def test_names_of_columns_and_variables_are_no_attributes():
    table = TABLE.assign(posterior=1.0, data_vars=2.0, dims=3.0)
    assert draws_of(table).names == ["a", "b", "posterior", "data_vars", "dims"]
    chains = (("chain", "draw"), CHAINS[:, :, 0])
    draws = draws_of(xarray.Dataset({"posterior": chains, "mu": chains}))
    assert draws.names == ["posterior", "mu"] and draws.points.shape == (60, 2)
    turned = xarray.DataArray(CHAINS, dims=("chain", "draw", "x"), name="x").transpose("draw", ...)
    np.testing.assert_array_equal(draws_of(turned).points, DRAWS)


def test_each_draw_and_column_is_compared_with_its_own_repeats():
    draws = np.repeat(DRAWS, 3, axis=0)
    misaligned = np.roll(-draws, 1, axis=0)
    with pytest.raises(ValueError, match="their scores differ"):
        thin(np.vstack([draws, [[5, 5]]]), 5, np.vstack([misaligned, [[1e7, 0]]]), rng=0)
    with pytest.raises(ValueError, match="their scores differ"):
        thin(draws, 5, np.column_stack([-1e9 * draws[:, 0], misaligned[:, 1]]), rng=0)
    noisy = -draws * (1 + 1e-9 * np.random.default_rng(0).normal(size=draws.shape))
    assert len(thin(draws, 5, noisy, rng=0).rows) == 5


def test_names_of_columns_may_be_numbers():
    table = pandas.DataFrame(DRAWS)
    scores = pandas.DataFrame(-DRAWS, columns=["0", "1"])
    expected = thin(DRAWS, 5, -DRAWS, rng=0).rows
    np.testing.assert_array_equal(thin(table, 5, scores, rng=0).rows, expected)
    doubled = pandas.DataFrame(np.hstack([DRAWS, DRAWS[:, :1]]), columns=["a", "b", "a"])
    with pytest.raises(ValueError, match="they must have the same, each once"):
        thin(doubled, 5, -doubled.iloc[:, [0, 2, 1]], rng=0)
    assert len(thin(doubled, 5, -doubled, rng=0).rows) == 5
