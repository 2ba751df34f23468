import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy import stats

from bqlib import over_seeds
from bqlib.streams import stream


@pytest.mark.parametrize("seeds, plain, widened", [(5, None, 0.92), (10, 0.90, 0.95)])
def test_intervals_of_normal_values_cover_as_often_as_the_page_says(seeds, plain, widened):
    values = np.random.default_rng(3).standard_normal((1500, seeds))
    intervals = np.array([over_seeds.mean_interval(own)[1:] for own in values])
    assert np.mean(intervals[:, 0] * intervals[:, 1] < 0) == pytest.approx(widened, abs=0.015)
    if plain:
        resamples = np.random.default_rng(4).integers(0, seeds, (4000, seeds))
        ends = [np.quantile(own[resamples].mean(axis=1), [0.025, 0.975]) for own in values]
        assert np.mean(np.prod(ends, axis=1) < 0) == pytest.approx(plain, abs=0.015)


def test_an_interval_needs_five_seeds_and_repeats_itself():
    values = np.array([1.0, 1.2, 0.9, 1.1, 1.05])
    assert np.isnan(over_seeds.mean_interval(values[:4])[1:]).all()
    mean, low, high = over_seeds.mean_interval(values)
    assert values.min() <= low < mean < high <= values.max()
    assert over_seeds.mean_interval(values) == (mean, low, high)


@pytest.mark.parametrize("seeds, rank", [(5, None), (6, 1), (10, 2), (20, 6)])
def test_the_interval_of_a_median_has_the_ranks_of_the_tables(seeds, rank):
    # Ranks at 95 % as in any table of the sign test.
    values = np.random.default_rng(1).permutation(np.arange(1.0, seeds + 1))
    median, low, high = over_seeds.median_interval(values)
    assert median == np.median(values)
    if rank is None:
        assert np.isnan([low, high]).all()
    else:
        assert (low, high) == (rank, seeds + 1 - rank)


def test_medians_leave_missing_seeds_out_and_may_be_infinite():
    values = np.array([[1.0, np.nan, np.inf], [3.0, np.nan, 2.0], [np.nan, np.nan, np.inf]])
    median, low, _ = over_seeds.median_interval(values)
    np.testing.assert_array_equal(median, [2.0, np.nan, np.inf])
    assert np.isnan(low).all()


def test_the_interval_of_a_median_covers():
    draws = np.random.default_rng(2).exponential(size=(10, 4000))
    _, low, high = over_seeds.median_interval(draws)
    covered = np.mean((low <= np.log(2)) & (np.log(2) <= high))
    assert covered == pytest.approx(0.9785, abs=0.008)  # exactly 1 - 2 * 11 / 1024


def test_one_sided_test_agrees_with_scipy():
    values = np.random.default_rng(5).normal(1.1, 0.3, 12)
    expected = stats.ttest_1samp(values, 1.0, alternative="greater").pvalue
    assert over_seeds.p_greater(values, 1.0) == pytest.approx(expected, rel=1e-12)
    both = stats.ttest_1samp(values, 1.0).pvalue
    assert over_seeds.p_different(values, 1.0) == pytest.approx(both, rel=1e-12)
    assert over_seeds.p_different(np.ones(6), 1.0) == 1.0
    assert over_seeds.p_greater(np.full(6, 1.5), 1.0) == 0.0
    assert over_seeds.p_greater(np.full(6, 1.0), 1.0) == 1.0


@pytest.mark.parametrize("seeds", [7, 12, 18, 19])
def test_rounding_is_no_evidence(seeds):
    same = np.full(seeds, 0.7)  # whose mean is not 0.7 for some numbers of seeds
    assert over_seeds.p_different(same, 0.7) == 1.0
    assert over_seeds.p_greater(1 + 1e-12 * np.arange(seeds), 1.0) == 1.0
    assert over_seeds.p_greater(1 + 1e-12 * np.arange(seeds), 1 - 1e-6) == 0.0
    assert over_seeds.p_different(np.full(seeds, -1e-6), 0.0) == 0.0
    assert np.isnan(over_seeds.p_greater(np.full(seeds, np.nan), 1.0))


@pytest.mark.parametrize("level", [0.0, 1.0, -0.5, 2.0, np.nan])
@pytest.mark.parametrize(
    "interval", [over_seeds.mean_interval, over_seeds.median_interval, over_seeds.student_interval]
)
def test_levels_lie_between_0_and_1(interval, level):
    with pytest.raises(ValueError, match=r"level is .*; it must lie between 0 and 1"):
        interval(np.arange(10.0), level)


@given(st.lists(st.floats(0, 1), min_size=1, max_size=6))
def test_holm_never_lowers_a_p_value_and_keeps_their_order(p):
    p = np.array(p)
    adjusted = over_seeds.holm(p)
    assert (adjusted >= p).all()
    assert (np.diff(adjusted[np.argsort(p, kind="stable")]) >= 0).all()
    assert adjusted.min() == min(1.0, len(p) * p.min())


def all_resamples(seeds):
    """Shares of the seeds in each of the resamples, one by one."""
    shares = np.full(seeds, 1 / seeds)
    return stream("bootstrap over seeds", 0).multinomial(seeds, shares, size=10_000) / seeds


@pytest.mark.parametrize("seeds, different", [(5, 126), (7, None)])
def test_quantiles_over_different_resamples_are_those_over_all(seeds, different):
    values = np.random.default_rng(8).standard_normal((seeds, 3, 2))
    means = np.tensordot(all_resamples(seeds), values, 1)
    assert different is None or len(np.unique(means.reshape(10_000, -1), axis=0)) == different
    _, low, high = over_seeds.mean_interval(values)
    scale = np.sqrt(seeds / (seeds - 1))
    tail = stats.norm.cdf(stats.t.ppf(0.025, seeds - 1) * scale)
    np.testing.assert_allclose([low, high], np.quantile(means, [tail, 1 - tail], 0), rtol=1e-12)
    largest = np.abs(means[..., 0]).max(axis=1)
    found = over_seeds.largest_of_resamples(values[..., 0], 0.99)
    assert found == pytest.approx(np.quantile(largest, 0.99), rel=1e-12)


def test_many_numbers_at_once_give_what_each_gives_alone():
    values = np.random.default_rng(9).normal(1.0, 0.2, (6, 3, 2))
    values[:, 0, 1] = 1.5  # all seeds agree
    together = [
        *over_seeds.mean_interval(values),
        over_seeds.p_greater(values, 1.0),
        over_seeds.p_different(values, 1.0),
    ]
    for place in np.ndindex(3, 2):
        own = values[:, *place].copy()
        alone = [
            *over_seeds.mean_interval(own),
            over_seeds.p_greater(own, 1.0),
            over_seeds.p_different(own, 1.0),
        ]
        np.testing.assert_allclose([found[place] for found in together], alone, rtol=1e-13)
    p = together[-1]
    np.testing.assert_array_equal(over_seeds.holm(p)[:, 1], over_seeds.holm(p[:, 1]))


def test_a_number_that_is_unknown_has_no_interval():
    values = np.ones((5, 2))
    values[3, 1] = np.nan
    for end in over_seeds.mean_interval(values):
        np.testing.assert_array_equal(end, [1.0, np.nan])


def test_students_interval_is_what_the_t_test_accepts():
    values = np.random.default_rng(10).standard_normal((7, 2))
    mean, low, high = over_seeds.student_interval(values)
    for i in range(2):
        expected = stats.ttest_1samp(values[:, i], 0.0).confidence_interval(0.95)
        np.testing.assert_allclose([low[i], high[i]], expected, rtol=1e-12)
        assert over_seeds.p_different(values[:, i], high[i]) == pytest.approx(0.05)
    assert mean == pytest.approx(values.mean(axis=0))
    with_gaps = np.vstack([values, np.full((1, 2), np.nan)])
    np.testing.assert_array_equal(over_seeds.student_interval(with_gaps), [mean, low, high])


def test_students_interval_needs_five_seeds_and_finite_values():
    assert np.isnan(over_seeds.student_interval(np.arange(4.0))[1:]).all()
    mean, low, high = over_seeds.student_interval(np.array([1.0, 2, 3, 4, np.inf]))
    assert mean == np.inf and np.isnan([low, high]).all()
    assert np.isnan(over_seeds.student_interval(np.array([-np.inf, 2, 3, 4, np.inf]))).all()
    assert np.isnan(over_seeds.student_interval(np.full(6, np.nan))).all()
    for agreed in (0.1, np.inf, -np.inf):
        assert over_seeds.student_interval(np.full(6, agreed)) == (agreed, agreed, agreed)
