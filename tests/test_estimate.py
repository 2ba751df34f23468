"""From values of f to its integral, with a kernel fitted in the same call."""

import re

import numpy as np
import pandas as pd
import pytest
from scipy import stats

import bqlib
from bqlib import (
    Brownian,
    Empirical,
    ExponentiatedQuadratic,
    GaussianMixture,
    Matern,
    Uniform,
    integrate,
)
from bqlib.designs.sobol import sobol

BOX = Uniform([0.0, 0.0], [1.0, 1.0])
X = sobol(BOX, Matern(1.0), 20, rng=0).points
F = np.exp(-X[:, 0]) * np.cos(2 * X[:, 1])
EXACT = (1 - np.exp(-1)) * np.sin(2) / 2
ONE = Matern([1.0, 1.0])  # one kernel only: a quarter of the time


def test_an_estimate_is_near_and_its_interval_holds_the_integral():
    result = integrate(BOX, X, F)
    lower, upper = result.interval(0.95)
    assert lower < EXACT < upper
    assert abs(result.mean - EXACT) < 1e-3 < abs(F.mean() - EXACT)
    assert upper - lower < 0.02
    assert result.warnings == ()
    assert result.freedom == 19
    again = integrate(BOX, X, F)
    assert (again.mean, again.std) == (result.mean, result.std)


def test_several_kernels_are_weighted_and_the_best_is_named():
    gram = Matern(0.3, nu=0.5)(X, X)
    rough = np.linalg.cholesky(gram) @ np.random.default_rng(0).standard_normal(20)
    kernels = [Matern([1.0, 1.0], nu=0.5), ExponentiatedQuadratic([1.0, 1.0])]
    assert integrate(BOX, X, rough, kernel=kernels).kernel.nu == 0.5
    assert isinstance(integrate(BOX, X, F, kernel=kernels).kernel, ExponentiatedQuadratic)
    alone = [integrate(BOX, X, F, kernel=kernel).mean for kernel in kernels]
    together = integrate(BOX, X, F, kernel=kernels).mean
    assert min(alone) <= together <= max(alone)


def test_units_of_f_and_of_the_inputs_drop_out():
    first = integrate(BOX, X, F, kernel=ONE)
    other = integrate(BOX, X, 1e6 * F + 3e6, kernel=ONE)
    assert other.mean == pytest.approx(1e6 * first.mean + 3e6, rel=1e-6)
    assert other.std == pytest.approx(1e6 * first.std, rel=1e-4)
    wide = Uniform([-5.0, 0.0], [5.0, 1e-3])
    moved = integrate(wide, X * [10, 1e-3] + [-5, 0], F, kernel=ONE)
    assert moved.mean == pytest.approx(first.mean, rel=1e-6)
    assert moved.std == pytest.approx(first.std, rel=1e-2)


def test_a_constant_mean_does_not_pull_the_estimate_to_zero():
    few = X[:6]
    values = 10 + 0.1 * np.sin(20 * few[:, 0] + 30 * few[:, 1])
    constant = integrate(BOX, few, values, kernel=ONE)
    zero = integrate(BOX, few, values, kernel=ONE, mean="zero")
    assert abs(constant.mean - 10) < 0.2
    assert zero.std > 2 * constant.std
    assert (constant.freedom, zero.freedom) == (5, 6)


def test_parameters_make_the_interval_wider_than_the_best_of_them():
    """Ten points: what the fitted kernel alone says is too narrow."""
    result = integrate(BOX, X[:10], F[:10], kernel=ONE)
    embedding = bqlib.embed(result.kernel, BOX)
    plain = bqlib.Design(embedding, X[:10], bqlib.weights.sum_to_one).integrate(values=F[:10])
    assert result.std > 1.2 * plain.std


def test_intervals_hold_for_draws_of_the_process():
    """With unknown parameters 95 %, so that at least 20 of 24 have a chance of 99.8 %."""
    kernel = Matern([0.4, 1.5], nu=1.5)
    embedding = bqlib.embed(kernel, BOX)
    values, integrals = bqlib.posterior.joint_draws(embedding, X[:10], 24, rng=1)
    held = 0
    for f, truth in zip(10 + 2 * values, 10 + 2 * integrals, strict=True):
        lower, upper = integrate(BOX, X[:10], f, kernel=Matern([1.0, 1.0], nu=1.5)).interval()
        held += lower < truth < upper
    assert held >= 20


def test_marginals_are_integrated_in_their_own_units():
    inputs = bqlib.Marginals({"a": stats.lognorm(0.2), "b": stats.uniform(10, 5)})
    points = sobol(inputs, Matern(1.0), 32, rng=0).points
    table = inputs.table(points)[["b", "a"]]
    result = integrate(inputs, table, points[:, 0] * points[:, 1])
    lower, upper = result.interval(0.95)
    exact = np.exp(0.02) * 12.5
    assert lower < exact < upper
    assert abs(result.mean - exact) < 0.05
    # Ten more points, planned with the kernel that was fitted.
    more = bqlib.sbq(inputs, result.kernel, n=42, rng=0, initial=points).points
    np.testing.assert_array_equal(more[:32], points)


def test_rows_of_tables_are_matched_by_their_index():
    labels = [f"run {i}" for i in range(20)]
    points = pd.DataFrame(X, index=labels)
    values = pd.DataFrame({"flow": F, "head": 2 * F}, index=labels).sample(frac=1, random_state=0)
    flow, head = integrate(BOX, points, values, kernel=ONE)
    assert (flow.name, head.name) == ("flow", "head")
    assert flow.mean == integrate(BOX, X, F, kernel=ONE).mean
    assert head.mean == pytest.approx(2 * flow.mean)
    with pytest.raises(ValueError, match="'run 0' has no value, nor have 19 more"):
        integrate(BOX, points, pd.Series(F), kernel=ONE)


def test_a_failed_run_costs_one_point():
    broken = F.copy()
    broken[3] = np.nan
    with pytest.raises(ValueError, match=r'NaN at points \[3\].*missing="drop"'):
        integrate(BOX, X, broken, kernel=ONE)
    result = integrate(BOX, X, broken, kernel=ONE, missing="drop", noise=None)
    others = np.delete(np.arange(20), 3)
    assert result.mean == integrate(BOX, X[others], F[others], kernel=ONE).mean
    assert "left out: [3]" in result.warnings[0]
    assert result.left_out.rows.tolist() == others.tolist()


def test_the_variance_of_f():
    mean, variance = integrate(BOX, X, F, kernel=ONE, variance=True)
    exact = (1 - np.exp(-2)) / 2 * (0.5 + np.sin(4) / 8) - EXACT**2
    assert mean.mean == integrate(BOX, X, F, kernel=ONE).mean
    lower, upper = variance.interval(0.95)
    assert lower < exact < upper
    assert variance.mean == pytest.approx(exact, rel=0.01)
    assert abs(F.var() - exact) > 2 * abs(variance.mean - exact)
    assert variance.name == "variance of f"
    units = integrate(BOX, X, 1e6 * F + 3e6, kernel=ONE, variance=True)[1]
    assert units.mean == pytest.approx(1e12 * variance.mean, rel=1e-4)
    two_valued = integrate(BOX, X, np.sign(F - np.median(F)), variance=True)[1]
    assert two_valued.mean == pytest.approx(1, abs=0.2)


def test_noise_of_known_variance():
    """Its share of the interval is that of an average where f has no structure to learn."""
    rng = np.random.default_rng(0)
    noisy = F + 0.3 * rng.standard_normal(20)
    result = integrate(BOX, X, noisy, kernel=ONE, noise=0.09)
    assert np.isinf(result.freedom)
    lower, upper = result.interval(0.95)
    assert lower < EXACT < upper
    assert 0.3 / np.sqrt(20) < 1.2 * result.std
    each = integrate(BOX, X, noisy, kernel=ONE, noise=np.full(20, 0.09))
    assert each.mean == result.mean
    shuffled = pd.Series(np.linspace(0.01, 0.2, 20)).sample(frac=1, random_state=0)
    matched = integrate(BOX, X, noisy, kernel=ONE, noise=shuffled)
    assert matched.mean == integrate(BOX, X, noisy, kernel=ONE, noise=shuffled.sort_index()).mean
    noisy[4] = np.nan
    failed = np.where(np.arange(20) == 4, np.nan, 0.09)
    assert integrate(BOX, X, noisy, kernel=ONE, noise=failed, missing="drop").std > 0
    equal = integrate(BOX, X, np.ones(20), kernel=ONE, noise=0.09)
    assert equal.mean == pytest.approx(1)
    silent = integrate(BOX, X, F, kernel=ONE, noise=1e-10)
    assert silent.mean == pytest.approx(integrate(BOX, X, F, kernel=ONE).mean, abs=1e-3)


def test_repeated_points_are_allowed_with_noise_alone():
    twice, f = np.repeat(X, 2, axis=0), np.repeat(F, 2)
    f[::2] += 0.1
    f[1::2] -= 0.1
    with pytest.raises(ValueError, match=r"points 0 and 1 are equal.*noise="):
        integrate(BOX, twice, f, kernel=ONE)
    result = integrate(BOX, twice, f, kernel=ONE, noise=0.02)
    once = integrate(BOX, X, F, kernel=ONE, noise=0.01)
    assert result.mean == pytest.approx(once.mean, abs=1e-3)
    same = integrate(BOX, twice, np.repeat(F, 2), kernel=ONE)
    assert same.mean == pytest.approx(integrate(BOX, X, F, kernel=ONE).mean, rel=1e-6)


def test_what_should_be_checked_is_said():
    rng = np.random.default_rng(0)
    few = integrate(BOX, X[:5], rng.standard_normal(5), kernel=ONE).warnings
    assert any("do not tell the length-scales" in said for said in few)
    noisy = integrate(BOX, X, rng.standard_normal(20), kernel=ONE).warnings
    assert any("not explained by any" in said or "cover" in said for said in noisy)
    wild = F.copy()
    wild[7] += 3
    said = integrate(BOX, X, wild, kernel=ONE).warnings
    assert any("in row 7 is" in text for text in said)
    few = F[:8].copy()
    few[3] += 1e6
    said = integrate(BOX, X[:8], few, kernel=ONE).warnings
    assert any("value in row 3 is" in text for text in said)
    said = integrate(BOX, X + np.array([1.01, 0.0]), F, kernel=ONE).warnings
    assert "20 of 20 points lie outside the target, such as row 0" in said[0]
    inputs = bqlib.Marginals([stats.beta(1, 0.01)])
    ends = bqlib.sobol_points(inputs, 16, rng=0)
    assert "near to the end" in integrate(inputs, ends, ends[:, 0], kernel=Matern(1.0)).warnings[0]
    deep = rng.random((10, 8))
    box = Uniform(np.zeros(8), np.ones(8))
    said = integrate(box, deep, deep.sum(axis=1), kernel=Matern(np.ones(8))).warnings
    assert any("Add points" in text for text in said)


def test_leave_one_out_errors_are_those_of_the_best_kernel():
    found = integrate(BOX, X, F, kernel=ONE).left_out
    np.testing.assert_array_equal(found.values, F)
    assert np.abs(found.predictions - F).max() < 0.3
    assert 0.3 < np.sqrt(np.mean(np.square(found.standardised))) < 1.7


def test_targets_without_a_box():
    normal = GaussianMixture([1.0], [[0.0, 0.0]], [[[1.0, 0.5], [0.5, 1.0]]])
    points = sobol(normal, ExponentiatedQuadratic(1.0), 24, rng=0).points
    result = integrate(normal, points, points[:, 0] * points[:, 1])
    assert abs(result.mean - 0.5) < 0.1
    assert "only ExponentiatedQuadratic" in result.warnings[0]
    data = Empirical(X)
    result = integrate(data, X, F, kernel=Matern(1.0))
    assert result.mean == pytest.approx(F.mean(), abs=0.01)


def test_rows_are_named_by_the_labels_of_the_table_and_values_in_their_units():
    points = pd.DataFrame(X, index=[f"run {i}" for i in range(20)])
    values = pd.Series(F, points.index)
    values["run 7"] = 300.0
    values["run 2"] = np.nan
    found = integrate(BOX, points, values, kernel=ONE, missing="drop")
    assert "left out: ['run 2']" in found.warnings[0]
    assert any("in row run 7 is 300, and the others predict" in said for said in found.warnings)
    with pytest.raises(ValueError, match=r"give them NaN: values.reindex\(points.index\)"):
        integrate(BOX, points, values.drop("run 2"), kernel=ONE, missing="drop")


def test_a_target_beyond_all_points_is_told():
    points = sobol(bqlib.Marginals([stats.norm(0, 1)]), Matern(1.0), 16, rng=0).points
    moved = bqlib.Marginals({"load": stats.norm(1.5, 1)})
    found = integrate(moved, points, np.sin(points[:, 0]), kernel=Matern(1.0))
    assert any("lies beyond all points in load" in said for said in found.warnings)
    same = integrate(bqlib.Marginals([stats.norm()]), points, np.sin(points[:, 0])).warnings
    assert not any("beyond" in said for said in same)


def test_inputs_among_the_outputs_are_refused():
    inputs = bqlib.Marginals({"a": stats.uniform(), "b": stats.uniform()})
    with pytest.raises(ValueError, match="names of inputs: a"):
        integrate(inputs, X, pd.DataFrame({"f": F, "a": X[:, 0]}))


def test_smooth_values_without_doubt_have_no_warning():
    box = Uniform([0.0], [1.0])
    x = bqlib.sobol_points(box, 64, rng=0)
    assert integrate(box, x, np.exp(x[:, 0]), kernel=ExponentiatedQuadratic([1.0])).warnings == ()


def test_points_that_are_nearly_the_same_count_once():
    near = np.concatenate([X, X + 1e-12])
    twice = integrate(BOX, near, np.tile(F, 2), kernel=ONE)
    assert twice.freedom == 19
    assert twice.std == pytest.approx(integrate(BOX, X, F, kernel=ONE).std)


@pytest.mark.parametrize(
    "changes, error, said",
    [
        ({"values": lambda x: 1.0}, TypeError, "values is a function"),
        ({"values": None}, TypeError, "not None"),
        ({"values": ["a"] * 20}, TypeError, "real numbers"),
        ({"values": F + 0j}, TypeError, "not complex128"),
        ({"values": F[:19]}, ValueError, "there are 20 points, which need shape (20,), or (20, m)"),
        ({"values": np.full(20, np.inf)}, ValueError, "values of f are infinite at points [0, 1"),
        ({"values": np.full(20, 3.0)}, ValueError, "all values of f are equal, 3, up to rounding"),
        ({"values": np.full(20, np.nan), "missing": "drop"}, ValueError, "all values of f are NaN"),
        ({"missing": "ignore"}, ValueError, 'must be "refuse" or "drop"'),
        ({"noise": -0.1}, ValueError, "noise must be finite and above zero"),
        ({"noise": 0.0}, ValueError, "Leave it out if the values have none"),
        ({"noise": np.ones(3)}, ValueError, "one for each of 20 points"),
        ({"mean": "one"}, ValueError, 'mean is \'one\'; it must be "constant" or "zero"'),
        ({"variance": True, "noise": 0.1}, ValueError, "the noise of the values would count"),
        ({"noise": 1e200}, ValueError, "beyond all that the values can tell"),
        ({"noise": pd.Series(np.ones(20), range(1, 21))}, ValueError, "0 has no value"),
        ({"values": np.c_[F, np.full(20, np.nan)], "missing": "drop"}, ValueError, "of '' are NaN"),
        ({"kernel": []}, ValueError, "empty list"),
        ({"kernel": "matern"}, TypeError, "kernel is 'matern'"),
        ({"kernel": Brownian()}, TypeError, "no length-scales to fit: Brownian"),
        ({"kernel": Matern([1.0, 1.0, 1.0])}, ValueError, "dimension 3"),
        ({"points": X * [1, 0]}, ValueError, "the same coordinate 1"),
        ({"points": X[:3], "values": F[:3]}, ValueError, "there are 3 distinct points"),
        ({"target": "box"}, TypeError, "the target is of type str"),
    ],
    ids=lambda value: str(value)[:20] if isinstance(value, str) else None,
)
def test_what_is_wrong_is_told(changes, error, said):
    given = {"target": BOX, "points": X, "values": F, "kernel": ONE} | changes
    with pytest.raises(error, match=re.escape(said)):
        integrate(**given)
