"""The posterior of an integral: its mean, its error and whether that error is the right size."""

from dataclasses import replace

import numpy as np
import pandas
import pytest
from scipy.special import stdtr

from bqlib import (
    Brownian,
    Design,
    ExponentiatedQuadratic,
    GaussianMixture,
    Matern,
    Stein,
    Uniform,
    embed,
    herding,
    iid,
    sbq,
    sobol_points,
)
from bqlib.discrepancy import mmd
from bqlib.posterior import integral, integrals, joint_draws
from bqlib.weights import bq, final, nonnegative, simplex, sum_to_one, uniform

DRAWS = 1500


@pytest.fixture(scope="module")
def embedding():
    covariances = [np.eye(2), [[0.35, 0.1], [0.1, 0.35]]]
    target = GaussianMixture([0.4, 0.6], [[-1.0, -1.0], [0.75, 0.75]], covariances)
    return embed(ExponentiatedQuadratic(0.8), target)


@pytest.fixture(scope="module")
def points(embedding):
    return embedding.target.sample(8, np.random.default_rng(3))


def draws_of_the_model(embedding, points, output_scale, seed):
    """Pairs (integral, values at points) drawn from the Gaussian process, as rows."""
    mean = embedding.kernel_mean(points)
    gram = embedding.kernel(points, points)
    joint = np.block([[np.array([[embedding.prior_variance]]), mean[None]], [mean[:, None], gram]])
    values, vectors = np.linalg.eigh(joint)
    root = vectors * np.sqrt(np.maximum(values, 0.0))
    normal = np.random.default_rng(seed).standard_normal((DRAWS, len(joint)))
    return output_scale * normal @ root.T


def coverage(embedding, points, weights, pairs, level, **options):
    """Share of draws whose integral lies in its interval."""
    found = integrals(embedding, points, weights, pairs[:, 1:], **options)
    lower, upper = np.transpose([result.interval(level) for result in found])
    return np.mean((lower < pairs[:, 0]) & (pairs[:, 0] < upper))


def test_posterior_by_hand():
    # One point at the mean of a standard normal, length-scale 1: z = 2^-1/2, V0 = 3^-1/2.
    embedding = embed(ExponentiatedQuadratic(1.0), GaussianMixture([1.0], [[0.0]], [[[1.0]]]))
    point = np.zeros((1, 1))
    result = integral(embedding, point, bq(embedding, point).final(1), [3.0], output_scale=2.0)
    np.testing.assert_allclose(result.mean, 3 / np.sqrt(2), rtol=1e-14)
    np.testing.assert_allclose(result.std, 2 * np.sqrt(1 / np.sqrt(3) - 0.5), rtol=1e-12)
    np.testing.assert_allclose(
        result.interval(0.6826894921370859), [result.mean - result.std, result.mean + result.std]
    )


@pytest.mark.parametrize("rule", [bq, sum_to_one])
@pytest.mark.parametrize("level", [0.5, 0.95])
def test_intervals_hold_the_integral_as_often_as_they_say(embedding, points, rule, level):
    weights = rule(embedding, points).final(len(points))
    pairs = draws_of_the_model(embedding, points, output_scale=3.0, seed=4)
    if rule is sum_to_one:
        pairs += 1000.0
    error = np.sqrt(level * (1 - level) / DRAWS)
    fitted = coverage(embedding, points, weights, pairs, level)
    assert abs(fitted - level) < 4 * error
    known = coverage(embedding, points, weights, pairs, level, output_scale=3.0)
    assert abs(known - level) < 4 * error
    # Control: half the output scale covers less than it says.
    small = coverage(embedding, points, weights, pairs, level, output_scale=1.5)
    assert small < level - 10 * error


@pytest.mark.parametrize("rule", [uniform, nonnegative, simplex])
def test_std_of_other_rules_is_their_root_mean_squared_error(embedding, points, rule):
    weights = rule(embedding, points).final(len(points))
    pairs = draws_of_the_model(embedding, points, output_scale=3.0, seed=5)
    results = integrals(embedding, points, weights, pairs[:, 1:])
    errors = np.array([result.mean for result in results]) - pairs[:, 0]
    expected = 3.0 * mmd(embedding, points, weights)
    np.testing.assert_allclose(np.sqrt(np.mean(errors**2)), expected, rtol=0.06)
    np.testing.assert_allclose(
        np.sqrt(np.mean([result.std**2 for result in results])), expected, rtol=0.06
    )
    assert abs(coverage(embedding, points, weights, pairs, 0.95) - 0.95) < 0.02


def test_fitted_output_scale_is_the_maximum_of_the_likelihood(embedding, points):
    values = np.sin(points.sum(axis=1))
    weights = bq(embedding, points).final(len(points))
    found = integral(embedding, points, weights, values)
    gram = embedding.kernel(points, points)

    def log_likelihood(scale):
        _, log_det = np.linalg.slogdet(scale**2 * gram)
        return -0.5 * (values @ np.linalg.solve(gram, values) / scale**2 + log_det)

    best = log_likelihood(found.output_scale)
    assert found.freedom == len(points)
    for factor in (0.99, 1.01):
        assert log_likelihood(factor * found.output_scale) < best


def test_the_estimate_scales_with_f_and_the_error_ignores_the_kernel_s_height(embedding, points):
    values = np.cos(points[:, 0])
    weights = bq(embedding, points).final(len(points))
    result = integral(embedding, points, weights, values)
    tenfold = integral(embedding, points, weights, 10 * values)
    np.testing.assert_allclose([tenfold.mean, tenfold.std], [10 * result.mean, 10 * result.std])
    density = embed(replace(embedding.kernel, scale="density"), embedding.target)
    other = integral(density, points, weights, values)
    np.testing.assert_allclose([other.mean, other.std], [result.mean, result.std], rtol=1e-12)


def test_a_constant_costs_nothing_with_sum_one(embedding, points):
    values = np.cos(points[:, 0])
    weights = sum_to_one(embedding, points).final(len(points))
    result = integral(embedding, points, weights, values)
    raised = integral(embedding, points, weights, values + 1e6)
    np.testing.assert_allclose(raised.mean - 1e6, result.mean, rtol=1e-6)
    np.testing.assert_allclose(raised.std, result.std, rtol=1e-6)
    assert result.freedom == len(points) - 1
    # Control: a mean of zero takes the constant for variation.
    weights = bq(embedding, points).final(len(points))
    assert integral(embedding, points, weights, values + 1e6).std > 1e4 * result.std


def test_duplicates_change_neither_estimate_nor_variance(embedding, points):
    values = np.cos(points[:, 0])
    repeated, again = points[[0, 1, 0, *range(2, 8), 5]], values[[0, 1, 0, *range(2, 8), 5]]
    for rule in (bq, sum_to_one, nonnegative, simplex):
        once = integral(embedding, points, rule(embedding, points).final(8), values)
        twice = integral(embedding, repeated, rule(embedding, repeated).final(10), again)
        np.testing.assert_allclose(
            [twice.mean, twice.std, twice.freedom], [once.mean, once.std, once.freedom], rtol=1e-9
        )


def test_student_t_widens_the_interval(embedding):
    points = embedding.target.sample(3, np.random.default_rng(0))
    weights = bq(embedding, points).final(3)
    result = integral(embedding, points, weights, [1.0, 2.0, 3.0])
    lower, upper = result.interval(0.9)
    assert type(lower) is type(upper) is float  # they print as plain numbers
    np.testing.assert_allclose(stdtr(3, (upper - result.mean) / result.std), 0.95, rtol=1e-9)
    np.testing.assert_allclose(stdtr(3, (lower - result.mean) / result.std), 0.05, rtol=1e-9)


@pytest.mark.parametrize(
    ("values", "options", "message"),
    [
        ([1.0, 2.0], {}, r"values of f have shape \(2,\); 3 points need shape \(3,\)"),
        ([1.0, np.nan, np.inf], {}, r"NaN or infinite at points \[1, 2\]"),
        ([1.0, 2.0, 1.5], {}, "points 0 and 2 are equal, but f is 1.0 and 1.5"),
        ([1.0, 2.0, 1.0], {"output_scale": 0.0}, "output_scale is 0.0"),
    ],
)
def test_what_is_wrong_with_values(embedding, values, options, message):
    points = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 0.0]])
    with pytest.raises(ValueError, match=message):
        integral(embedding, points, np.ones(3), values, **options)


def test_one_point_cannot_show_the_scale_about_a_constant(embedding):
    point = np.zeros((1, 2))
    with pytest.raises(ValueError, match=r"1 distinct points are too few .*: give more points"):
        integral(embedding, point, np.ones(1), [2.0])
    assert integral(embedding, point, np.ones(1), [2.0], output_scale=1.0).mean == 2.0


def test_level_of_an_interval(embedding):
    result = integral(embedding, np.zeros((1, 2)), np.array([0.5]), [2.0])
    with pytest.raises(ValueError, match="level is 95; it must lie between 0 and 1"):
        result.interval(95)


@pytest.fixture(scope="module")
def design(embedding):
    return sbq(embedding.target, embedding.kernel, n=30, rng=0)


def test_integrate_in_three_ways(design):
    def f(x):
        return np.exp(-np.sum(np.square(x), axis=-1))

    calls = []

    def one(x):
        calls.append(x.shape)
        return f(x)

    scalar = design.integrate(one)
    assert calls == [(2,)] * 30
    weights = final(sum_to_one, design.embedding, design.points)
    assert scalar.mean == pytest.approx(weights @ f(design.points), rel=1e-14)
    # Gaussian integrals: exp(-|x|^2) = sqrt(2 pi / 2)^2 N(x; 0, I/2).
    target = design.embedding.target
    exact = sum(
        weight
        * np.exp(-0.5 * mean @ np.linalg.solve(covariance + 0.5 * np.eye(2), mean))
        / np.sqrt(np.linalg.det(np.eye(2) + 2 * covariance))
        for weight, mean, covariance in zip(
            target.weights, target.means, target.covariances, strict=True
        )
    )
    lower, upper = scalar.interval(0.99)
    assert lower < exact < upper
    assert scalar.std < 0.05 * exact
    for result in (
        design.integrate(f, vectorized=True),
        design.integrate(values=f(design.points)),
        design.integrate(values=f(design.points).tolist()),
    ):
        assert (result.mean, result.std) == pytest.approx((scalar.mean, scalar.std), rel=1e-12)


def test_integrate_calls_f_once_for_a_repeated_point(embedding):
    design = herding(
        embedding.target, embedding.kernel, 30, rng=0, candidates=np.eye(2).repeat(20, axis=0)
    )
    calls = []
    result = design.integrate(lambda x: calls.append(tuple(x)) or x[0])
    assert sorted(calls) == [(0.0, 1.0), (1.0, 0.0)]
    assert result.mean == pytest.approx(design.points[:, 0].mean(), rel=1e-14)
    assert design.integrate(lambda x: x[:, 0], vectorized=True).mean == result.mean


def test_integrate_with_another_rule_or_output_scale(design):
    def f(x):
        return 100 + x[0]

    result = design.integrate(f, rule=sum_to_one, output_scale=1.0)
    weights = sum_to_one(design.embedding, design.points).final(30)
    assert result.mean == pytest.approx(weights @ (100 + design.points[:, 0]), rel=1e-14)
    assert result.std == mmd(design.embedding, design.points, weights)
    assert abs(result.mean - 100.05) < 0.2 < abs(design.integrate(f, rule=bq).mean - 100.05)
    assert design.integrate(f, rule=bq).mean == design.weights @ f(design.points.T)


@pytest.mark.parametrize("kernel", [ExponentiatedQuadratic(0.3), Matern(0.5, nu=2.5)], ids=repr)
@pytest.mark.parametrize("n", [10, 30, 100])
def test_the_interval_of_a_design_does_not_depend_on_the_mean_of_f(kernel, n):
    normal = GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    design = Design(embed(kernel, normal), sobol_points(normal, n, rng=1))
    values, truths = joint_draws(design.embedding, design.points, 1200, 2)

    def covered(mean, **options):
        found = design.integrate(values=(values + mean).T, **options)
        ends = np.array([result.interval(0.95) for result in found])
        return np.mean((ends[:, 0] < truths + mean) & (truths + mean < ends[:, 1]))

    shares = covered(0.0), covered(10.0)
    assert all(0.93 < share < 0.97 for share in shares), shares
    assert shares[0] == pytest.approx(shares[1], abs=2e-3)  # but for rounding
    # Control: a mean of zero does not hold for f of mean 10.
    assert covered(10.0, rule=bq) < 0.9


def test_values_have_an_unknown_mean_by_default_and_other_rules_stay(design):
    f = 10 + np.cos(design.points[:, 0])
    default, known = (design.integrate(values=f, **o) for o in ({}, {"rule": bq}))
    weights = final(sum_to_one, design.embedding, design.points)
    assert vars(default) == vars(integral(design.embedding, design.points, weights, f))
    assert vars(known) == vars(integral(design.embedding, design.points, design.weights, f))
    assert (default.freedom, known.freedom) == (29, 30)
    np.testing.assert_array_equal(design.weights, final(bq, design.embedding, design.points))
    for rule in (uniform, nonnegative, simplex):
        own = replace(design, rule=rule).integrate(values=f)
        assert vars(own) == vars(design.integrate(values=f, rule=rule))


def test_equal_values_show_no_scale(design):
    result = design.integrate(values=np.full(30, 0.1))
    assert result.output_scale == result.std == 0 and result.mean == pytest.approx(0.1, rel=1e-12)
    (warning,) = result.warnings
    assert "all values are equal" in warning and "set output_scale" in warning
    assert "all values are equal" in result._repr_html_()
    # Not where the scale is given, nor where a mean of zero makes the values a scale.
    for options in ({"output_scale": 1.0}, {"rule": bq}):
        other = design.integrate(values=np.full(30, 0.1), **options)
        assert other.std > 0 and other.warnings == ()
    assert "all values are equal" in design.integrate(values=np.zeros(30), rule=bq).warnings[0]
    assert design.integrate(values=np.append(np.full(29, 0.1), 0.1 + 1e-9)).warnings == ()


def test_a_low_sum_of_weights_is_told(embedding):
    far = iid(embedding.target, ExponentiatedQuadratic(0.05), 9, rng=0)
    values = far.points[:, 0]
    total = final(bq, far.embedding, far.points).sum()
    (warning,) = far.integrate(values=values, rule=bq).warnings
    assert total < 0.1 and f"the weights sum to {total:.2g}: the points cover little" in warning
    assert "with the weights of bqlib.weights.sum_to_one" in warning
    assert far.integrate(values=values, rule=sum_to_one).warnings == ()
    near = iid(embedding.target, ExponentiatedQuadratic(2.0), 9, rng=0)
    assert near.integrate(values=values, rule=bq).warnings == ()


def test_each_of_many_integrals_is_the_integral_of_its_function(embedding, points):
    values = np.array([np.cos(points[:, 0]), points[:, 1], np.ones(8), 1e6 * points[:, 0]])
    for rule in (bq, sum_to_one):
        weights = rule(embedding, points).final(8)
        for options in ({}, {"output_scale": 2.0}):
            found = integrals(embedding, points, weights, values, **options)
            alone = [integral(embedding, points, weights, row, **options) for row in values]
            assert [vars(one) for one in found] == [vars(one) for one in alone]
    found = integrals(embedding, points, weights, values[:2], names="ab")
    assert [one.name for one in found] == ["a", "b"]
    with pytest.raises(ValueError, match=r"shape \(8,\); m functions need shape \(m, n\)"):
        integrals(embedding, points, weights, values[0])


def outputs(x):
    """Two outputs at points (n, 2), or at one (2,)."""
    return np.stack([np.cos(x[..., 0]), 10 + x[..., 1]], axis=-1)


def test_several_outputs_have_an_integral_each(design):
    values = outputs(design.points)
    alone = [design.integrate(values=column) for column in values.T]
    table = pandas.DataFrame(values, columns=["flow", "heat"])
    for found, names in [
        (design.integrate(values=values), ["", ""]),
        (design.integrate(values=table), ["flow", "heat"]),
        (design.integrate(values=table[::-1]), ["flow", "heat"]),
        (design.integrate(outputs), ["", ""]),
        (design.integrate(outputs, vectorized=True), ["", ""]),
        (design.integrate(lambda x: tuple(outputs(x))), ["", ""]),
        (
            design.integrate(
                lambda x: pandas.DataFrame(outputs(x), columns=["flow", "heat"]), vectorized=True
            ),
            ["flow", "heat"],
        ),
    ]:
        assert isinstance(found, tuple) and [one.name for one in found] == names
        assert [vars(replace(one, name="")) for one in found] == [vars(one) for one in alone]


def test_the_weights_of_several_outputs_are_computed_once(design):
    asked = []

    def rule(embedding, points):
        asked.append(len(points))
        return bq(embedding, points)

    design.integrate(values=outputs(design.points), rule=rule)
    assert asked == [30]


def test_one_output_has_one_integral_in_any_shape(design):
    f = np.cos(design.points[:, 0])
    expected = vars(design.integrate(values=f))
    for found in (
        design.integrate(values=f[:, None]),
        design.integrate(lambda x: np.cos(x[:1])),
        design.integrate(lambda x: [np.cos(x[0])]),
        design.integrate(lambda x: np.cos(x[:, :1]), vectorized=True),
    ):
        assert vars(found) == expected
    named = design.integrate(values=pandas.DataFrame({"flow": f}))
    assert named.name == "flow" and vars(replace(named, name="")) == expected


def test_a_series_in_another_order_is_the_same_values(design):
    series = pandas.Series(np.cos(design.points[:, 0]), name="flow")
    shuffled = series.sample(frac=1, random_state=1)
    assert list(shuffled.index) != list(series.index)
    found = design.integrate(values=shuffled)
    assert vars(found) == vars(design.integrate(values=series))
    with pytest.raises(
        ValueError, match="is not 0 to 29, the numbers of the points: 0 has no value"
    ):
        design.integrate(values=series.set_axis(range(1, 31)))


def test_a_failed_run_costs_one_point(design):
    f = np.cos(design.points[:, 0])
    failed = f.copy()
    failed[[4, 11]] = np.nan
    with pytest.raises(ValueError, match=r'NaN at points \[4, 11\].* with missing="drop"'):
        design.integrate(values=failed)
    found = design.integrate(values=failed, missing="drop")
    others = Design(design.embedding, np.delete(design.points, [4, 11], axis=0))
    expected = others.integrate(values=np.delete(f, [4, 11]))
    assert vars(replace(found, warnings=())) == vars(expected)
    assert found.warnings == (
        "the points [4, 11], counted from 0, have no value and were left out: the estimate is that "
        "of the other 28 points",
    )
    assert len(design.points) == 30  # the design itself keeps them
    both = design.integrate(values=np.column_stack([failed, f]), missing="drop")
    assert [one.warnings for one in both] == [found.warnings] * 2 and both[0].mean == both[1].mean
    called = design.integrate(
        lambda x: np.where(np.isin(x[0], design.points[[4, 11], 0]), np.nan, np.cos(x[0])),
        missing="drop",
    )
    assert vars(called) == vars(found)
    own = replace(design, rule=uniform).integrate(values=failed, missing="drop")
    assert own.mean == pytest.approx(np.nanmean(failed), rel=1e-12)


def test_nothing_is_told_where_nothing_is_missing(design):
    f = np.cos(design.points[:, 0])
    found = design.integrate(values=f, missing="drop")
    assert found.warnings == () and vars(found) == vars(design.integrate(values=f))
    for values in (np.where(np.arange(30) == 3, np.inf, f), np.full(30, np.nan)):
        with pytest.raises(ValueError, match=r"infinite at points \[3\]|all values of f are NaN"):
            design.integrate(values=values, missing="drop")
    with pytest.raises(ValueError, match="missing is 'omit'; it must be"):
        design.integrate(values=f, missing="omit")


@pytest.mark.parametrize(
    "f, vectorized, error, message",
    [
        (lambda x: None, False, TypeError, r"f returned None.* Where f fails, return NaN, and set"),
        (lambda x: None, True, TypeError, "f returned None; it must return numbers"),
        (lambda x: "1.0", False, TypeError, r"must hold real numbers, not <U3 \(text\)"),
        (lambda x: ["1.0"] * 30, True, TypeError, "must hold real numbers, not <U3"),
        (lambda x: x[0] + 1j, False, TypeError, r"not complex128 \(complex numbers\)"),
        (
            lambda x: pandas.DataFrame({"a": [1.0], "b": [2.0]}),
            False,
            ValueError,
            r"shape \(1, 2\) for one point of shape \(2,\); it must return a number, or shape \(m,",
        ),
        (
            lambda x: np.ones(1 + (x[0] > 0)),
            False,
            ValueError,
            r"shape \((1|2),\) at \[.*\] and shape \((1|2),\) at \[.*; it must return as many",
        ),
        (
            lambda x: 1.0 if x[0] > 0 else [1.0],
            False,
            ValueError,
            r"shape \(1?,?\) at .* and shape \(1?,?\) at",
        ),
        (lambda x: np.ones(29), True, ValueError, r"shape \(29,\) for points of shape \(30, 2\)"),
        (lambda x: np.ones((2, 30)), True, ValueError, r"shape \(2, 30\) .* or \(30, m\) for m"),
        (
            lambda x: pandas.Series(x[:, 0], index=range(5, 35)),
            True,
            ValueError,
            "is not 0 to 29, the numbers of the points: 0 has no value, nor have 4 more",
        ),
    ],
)
def test_what_f_returned_is_told(design, f, vectorized, error, message):
    with pytest.raises(error, match=message):
        design.integrate(f, vectorized=vectorized)


@pytest.mark.parametrize(
    ("arguments", "options", "message"),
    [
        ([], {}, "you gave neither f nor values; give"),
        ([np.sum], {"values": [1.0]}, "you gave both f and values; give"),
        ([lambda x: x[None]], {}, r"shape \(1, 2\) for one point .* set vectorized=True"),
        (
            [np.sum],
            {"vectorized": True},
            r"shape \(\) .* must return shape \(30,\), or .* set vectorized=F",
        ),
    ],
)
def test_integrate_says_what_is_wrong(design, arguments, options, message):
    with pytest.raises(ValueError, match=message):
        design.integrate(*arguments, **options)


def test_what_has_no_prior_variance_has_no_estimate():
    normal = GaussianMixture([1.0], [[0.0]], [[[1.0]]])
    stein = embed(Stein(normal), normal)
    points = np.array([[0.0], [1.0]])
    with pytest.raises(ValueError, match=r"prior variance zero.* Stein kernel set constant above"):
        integral(stein, points, np.zeros(2), [1.0, 2.0])
    assert integral(stein, points, [0.5, 0.5], [1.0, 2.0]).std > 0


@pytest.mark.parametrize("rule", [bq, sum_to_one])
def test_values_at_near_repeats_do_not_count(design, rule):
    f = np.cos(design.points[:, 0])
    alone = design.integrate(values=f, rule=rule)
    points = np.insert(design.points, 3, design.points[0] + 1e-6, axis=0)
    values = np.insert(f, 3, f[0] + 1e-9)  # as far off as the last digits of an expensive f
    found = replace(design, points=points).integrate(values=values, rule=rule)
    np.testing.assert_allclose([found.mean, found.std], [alone.mean, alone.std], rtol=1e-9)
    assert found.freedom == alone.freedom


def test_values_after_a_spent_point_count(embedding):
    crowd, far = np.linspace(0, 1, 40)[:, None] * [1.0, 0.0], [[-2.0, -1.0], [-1.0, 1.0]]
    points = np.concatenate([crowd, far])
    f = np.cos(points @ [1.0, 2.0])
    rank = len(bq(embedding, points).matrix)
    weights = final(bq, embedding, points)
    found = integral(embedding, points, weights, f)
    assert rank < 40 and found.freedom == np.count_nonzero(weights) >= rank + 2
    kept = weights != 0
    alone = integral(embedding, points[kept], weights[kept], f[kept])
    np.testing.assert_allclose(found.output_scale, alone.output_scale, rtol=1e-12)
    assert alone.freedom == found.freedom


def test_values_in_the_place_of_f_are_told(design):
    with pytest.raises(
        TypeError, match=r"f is of type ndarray; it must be a function.* as values="
    ):
        design.integrate(np.ones(30))


def test_values_for_points_that_were_asked_for_but_not_picked_are_told(embedding):
    short = sbq(embedding.target, ExponentiatedQuadratic(50.0), n=40, rng=0)
    with pytest.raises(ValueError, match=r"have shape \(40,\), but .* points \(design stops at n"):
        short.integrate(values=np.ones(40))


def test_functions_are_drawn_jointly_with_their_integrals(embedding, points):
    points = np.concatenate([points[:1], points])  # a repeat, which has no pivot of its own
    values = check_joint_draws(embedding, points)
    np.testing.assert_allclose(values[:, 0], values[:, 1], rtol=1e-9)


def test_functions_are_drawn_where_one_value_is_known():
    values = check_joint_draws(embed(Brownian(), Uniform([0.0], [1.0])), [[0.0], [0.3], [0.9]])
    assert not values[:, 0].any()


def check_joint_draws(embedding, points):
    points, size = np.asarray(points), 200_000
    values, integrals = joint_draws(embedding, points, size, np.random.default_rng(1))
    gram, mean = embedding.kernel(points, points), embedding.kernel_mean(points)
    np.testing.assert_allclose(values.T @ values / size, gram, atol=6 / np.sqrt(size))
    np.testing.assert_allclose(values.T @ integrals / size, mean, atol=6 / np.sqrt(size))
    assert np.mean(integrals**2) == pytest.approx(embedding.prior_variance, rel=0.02)
    return values
