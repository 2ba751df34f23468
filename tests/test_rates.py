import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from paper_curves import broken, bumped, paper_curves, with_noise_of
from scipy import optimize, stats
from synthetic_sweep import correlated_noise, power_curves

import bqlib
from bqlib import over_seeds, rates

WINDOW = (20, 400)
SIZES = rates.log_spaced(*WINDOW)


@given(st.integers(1, 500), st.integers(1, 2000))
def test_log_spaced_sizes_are_distinct_enough_and_keep_the_ends(low, width):
    sizes = rates.log_spaced(low, low + width)
    assert (sizes[0], sizes[-1]) == (low, low + width)
    assert (np.diff(sizes) > 0).all()
    assert len(sizes) >= min(width + 1, 20)
    assert len(sizes) <= 40


@pytest.mark.parametrize("low, high", [(0, 5), (5, 5), (9, 3)])
def test_log_spaced_refuses_what_is_no_range(low, high):
    with pytest.raises(ValueError, match=f"{low} to {high}; it must satisfy 1 <= low < high"):
        rates.log_spaced(low, high)


@pytest.mark.parametrize("rate", [0.5, 1.0, 1.5])
def test_known_exponents_are_recovered_within_their_interval(rate):
    curves = power_curves(rate, seeds=20)
    mean, low, high = over_seeds.mean_interval(rates.power_law(SIZES, curves[:, SIZES - 1])["rate"])
    assert low < rate < high
    assert high - low < 0.06
    assert mean == pytest.approx(rate, abs=0.03)


def test_curves_that_are_exactly_powers_are_power_laws_whatever_their_rounding():
    n = np.array([5, 10, 20, 50, 100, 200, 500, 512])
    target, kernel = bqlib.Uniform([0], [1]), bqlib.Brownian()
    embedding = bqlib.embed(kernel, target)
    designs = [bqlib.grid(target, kernel, int(m), rng=0) for m in n]
    error = [bqlib.mmd(embedding, design.points, design.weights) for design in designs]
    np.testing.assert_allclose(error, 1 / np.sqrt(12) / n, rtol=1e-9)
    found = rates.verdict(n, np.tile(error, (6, 1)))
    assert (found.name, found.curvature_p) == ("power_law", 1.0)


@pytest.mark.parametrize("wrong", [0.0, np.nan])
@pytest.mark.filterwarnings("ignore:.*encountered in:RuntimeWarning")
def test_of_a_curve_that_is_not_positive_nothing_is_decided(wrong):
    error = np.vstack([np.tile(1 / SIZES, (5, 1)), np.full(len(SIZES), wrong)])
    assert rates.verdict(SIZES, error).name == rates.UNDECIDED


@pytest.mark.parametrize("seeds", [10, 20])
def test_intervals_over_seeds_cover_and_those_from_one_curve_do_not(seeds):
    trials = 500
    rng = np.random.default_rng(7)
    noise = correlated_noise(rng, (trials * seeds, WINDOW[1]), 0.05)[:, SIZES - 1]
    fit = rates.power_law(SIZES, np.exp(noise) / SIZES)
    estimates = fit["rate"].reshape(trials, seeds)
    intervals = np.array([over_seeds.mean_interval(values)[1:] for values in estimates])
    covered = np.mean((intervals[:, 0] <= 1.0) & (intervals[:, 1] >= 1.0))
    assert 0.93 <= covered <= 0.97

    x = np.log(SIZES) - np.log(SIZES).mean()
    naive = np.sqrt(np.square(fit["residual"]).sum(axis=1) / (len(SIZES) - 2) / (x @ x))
    reach = stats.t.ppf(0.975, len(SIZES) - 2) * naive
    assert np.mean(np.abs(fit["rate"] - 1.0) <= reach) < 0.7


def test_first_n_within_a_level_by_brute_force():
    rng = np.random.default_rng(0)
    error = np.abs(rng.standard_normal((3, 2, 30)))
    error[0, 0, 20:] = np.nan
    level = np.concatenate([rng.random((3, 2, 8)), error[..., [4, 0]]], axis=-1)
    level[1, 1, 3] = np.nan
    found = rates.first_n_within(error, level)
    for place in np.ndindex(level.shape):
        below = np.flatnonzero(error[place[:2]] <= level[place])
        expected = below[0] + 1 if len(below) else np.inf
        np.testing.assert_equal(found[place], np.nan if np.isnan(level[place]) else expected)
    assert np.isinf(rates.first_n_within(np.full(5, np.nan), np.array([1.0])))
    np.testing.assert_array_equal(rates.first_n_within(error, np.array([9.0])), np.ones((3, 2, 1)))


def test_local_slopes_compare_n_with_2n():
    n = np.arange(1, 402)
    slopes = rates.local_slopes(np.array([3.0 / n, np.exp(-np.sqrt(n))]))
    assert slopes.shape == (2, 200)
    np.testing.assert_allclose(slopes[0], 1.0, rtol=1e-12)
    expected = (np.sqrt(200) - np.sqrt(100)) / np.log(2)
    assert slopes[1, 99] == pytest.approx(expected, rel=1e-12)


def independent_noise(curve, sd=0.02, seeds=20):
    noise = np.random.default_rng(3).standard_normal((seeds, len(curve)))
    return curve * np.exp(sd * noise)


N = np.arange(1.0, 401)


def test_a_stretched_exponential_is_told_from_a_power_law():
    errors = independent_noise(0.14 * np.exp(-0.3 * N**0.5))[:, SIZES - 1]
    assert rates.verdict(SIZES, errors).name == "stretched_exponential"
    fit = rates.stretched_exponential(SIZES, errors)
    np.testing.assert_allclose(fit["exponent"], 0.5, atol=0.05)
    assert fit["decay"].mean() == pytest.approx(0.3, abs=0.03)
    assert fit["log_constant"].mean() == pytest.approx(np.log(0.14), abs=0.1)


@pytest.mark.parametrize("rate", [0.5, 0.92, 2.0])
def test_a_power_law_is_told_from_richer_models(rate):
    errors = independent_noise(0.8 * N**-rate)[:, SIZES - 1]
    assert rates.verdict(SIZES, errors).name == "power_law"


@pytest.mark.parametrize("floor", [0.002, 0.02])
def test_a_floor_is_detected(floor):
    errors = independent_noise(np.hypot(0.8 / N, floor))[:, SIZES - 1]
    assert rates.verdict(SIZES, errors).name == "power_law_with_floor"
    fit = rates.power_law_with_floor(SIZES, errors)
    np.testing.assert_allclose(fit["floor"], floor, rtol=0.15)
    assert fit["rate"].mean() == pytest.approx(1.0, abs=0.05)
    assert np.exp(fit["log_constant"]).mean() == pytest.approx(0.8, rel=0.1)


@pytest.mark.parametrize("name", rates.MODELS)
def test_models_fit_their_own_curves_exactly(name):
    curve = {
        "power_law": 2.0 * N**-0.7,
        "stretched_exponential": 2.0 * np.exp(-0.4 * N**0.6),
        "power_law_with_floor": np.hypot(2.0 * N**-0.9, 0.03),
    }[name]
    fit = rates.MODELS[name](SIZES, curve[None, SIZES - 1])
    assert np.abs(fit["residual"]).max() < 1e-6
    assert fit["log_constant"][0] == pytest.approx(np.log(2.0), abs=1e-4)


def test_a_floor_never_makes_the_fit_worse():
    errors = power_curves(0.9, seeds=30)[:, SIZES - 1]
    plain, floor = (
        np.square(fit(SIZES, errors)["residual"]).sum(axis=1)
        for fit in (rates.power_law, rates.power_law_with_floor)
    )
    assert (floor <= plain * (1 + 1e-6)).all()


SHORT = (20, 200)


@pytest.fixture(scope="module")
def real():
    """Curves of the paper's problem to n = 200."""
    seeds = {"iid": 100, "herding": 12, "sbq": 12}
    return {name: paper_curves(name, count, SHORT[1], 3000) for name, count in seeds.items()}


def names(curves, seeds=10):
    sizes = rates.log_spaced(*SHORT)
    sets = curves[:, sizes - 1].reshape(-1, seeds, len(sizes))
    return [rates.verdict(sizes, errors).name for errors in sets]


def test_independent_points_are_named_a_power_law(real):
    assert names(real["iid"]).count("power_law") >= 9


@pytest.mark.parametrize("noise", ["herding", "sbq"])
@pytest.mark.parametrize(
    "shape, allowed",
    [
        ("steeper", rates.NONE_FITS),
        ("flatter", rates.NONE_FITS),
        ("bump", rates.NONE_FITS),
        ("log", "stretched_exponential"),
    ],
)
def test_what_is_no_power_law_is_not_named_one(real, shape, allowed, noise):
    n = np.arange(1.0, SHORT[1] + 1)
    mean = {
        "steeper": broken(SHORT, n, 0.5, 1.0),
        "flatter": broken(SHORT, n, 1.0, 0.5),
        "bump": bumped(SHORT, n),
        "log": np.log(n + (n == 1)) / n,
    }[shape]
    found = names(with_noise_of(real[noise], mean, np.random.default_rng(6), 50))
    assert "power_law" not in found
    assert found.count(allowed) >= 4


def test_noise_that_drowns_everything_decides_nothing():
    curves = power_curves(0.5, sd=2.0, seeds=10)[:, SIZES - 1]
    found = rates.verdict(SIZES, curves)
    assert found.noise > rates.LARGEST_NOISE and found.name == rates.UNDECIDED


def test_a_shape_that_two_models_miss_alike_is_undecided():
    # A wave of 3 % on a slight bend: no model follows it, and two stay within 4 %.
    x = np.log(N)
    mean = N**-0.9 * np.exp(0.025 * np.sin(6 * x) - 0.01 * (x - 4.5) ** 2)
    found = rates.verdict(SIZES, independent_noise(mean, sd=0.002)[:, SIZES - 1])
    assert max(found.misfit["power_law"], found.misfit["stretched_exponential"]) < 0.04
    assert found.curvature_p < rates.CURVATURE_LEVEL and found.name == rates.UNDECIDED


def test_exact_power_laws_are_named_in_spite_of_rounding():
    found = rates.verdict(SIZES, np.tile(0.8 / SIZES, (5, 1)))
    assert found.name == "power_law" and found.misfit["power_law"] < rates.ROUNDING
    assert rates.verdict(SIZES, np.tile(0.8 / SIZES, (4, 1))).name == rates.UNDECIDED


@pytest.mark.parametrize("seeds", [3, 6])
def test_several_cells_get_the_verdicts_of_each(seeds):
    cells = np.array([power_curves(rate, seeds=seeds, rng=7)[:, SIZES - 1] for rate in (0.5, 1, 2)])
    together = rates.verdicts(SIZES, cells)
    # As texts, for NaN is no number that equals itself.
    assert list(map(str, together)) == [str(rates.verdict(SIZES, own)) for own in cells]
    assert [found.name == rates.UNDECIDED for found in together] == [seeds < 5] * 3


def test_the_floor_is_where_scipy_s_own_differences_lead():
    """The fit takes the steps of scipy's least_squares, to the last digit, in less time."""
    curves = np.hypot(power_curves(1.0, seeds=4), [[0.0], [1e-3], [0.02], [0.1]])[:, SIZES - 1]
    log_n, found = np.log(SIZES), rates.power_law_with_floor(SIZES, curves)
    start = rates.power_law(SIZES, curves)
    for s, y in enumerate(np.log(curves)):

        def residual(p, y=y):
            return p[0] + 0.5 * np.logaddexp(-2 * p[1] * log_n, 2 * p[2]) - y

        intercept, rate = start["log_constant"][s], start["rate"][s]
        fits = [
            optimize.least_squares(
                residual, [intercept, 1.3 * rate, y.min() - intercept - gap], method="lm"
            )
            for gap in (2.3, 0.0)
        ]
        best = min(fits, key=lambda fit: fit.cost)
        ours = [found[name][s] for name in ("log_constant", "rate")]
        np.testing.assert_allclose(ours, best.x[:2], rtol=1e-9)
        assert found["floor"][s] == pytest.approx(np.exp(best.x[0] + best.x[2]), rel=1e-9)
