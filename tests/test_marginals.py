"""Marginals: maps, embeddings and designs against closed forms and the standard coordinates."""

import copy
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from scipy import stats
from scipy.integrate import quad
from scipy.special import ndtri, ndtri_exp

import bqlib
from bqlib import (
    Brownian,
    Candidates,
    Empirical,
    ExponentiatedQuadratic,
    GaussianMixture,
    L2Star,
    Marginals,
    Matern,
    OnCoordinates,
    Product,
    RationalQuadratic,
    Stein,
    Uniform,
    embed,
    joint,
    mmd,
    sbq,
)
from bqlib.designs.design import support
from bqlib.kernels import OnStandard
from bqlib.marginals import REACH
from bqlib.sweep import registry

MU, SIGMA = 7.71, 1.0056
INPUTS = Marginals(
    {
        "Tu": stats.uniform(63070, 52530),
        "rw": stats.norm(0.10, 0.0161812),
        "r": stats.lognorm(SIGMA, scale=np.exp(MU)),
    }
)
SHAPED = Marginals(
    [stats.beta(2, 3, 1, 4), stats.triang(0.3, -1, 2), stats.gamma(2.5), stats.norm()]
)
BOXED = Marginals([stats.uniform(-0.9, 1.7), stats.uniform(100, 50)])
KERNEL = Matern([0.5, 1.0, 2.0], nu=1.5)
DESIGNS = sorted({*registry.PLACES["design"]} - {"msip", "grid"})  # of one kernel, and of one input


def finite_difference(function, x, steps):
    columns = np.diag(steps)
    return np.stack([(function(x + c) - function(x - c)) / (2 * c.max()) for c in columns], axis=-1)


# --- The maps


def test_uniform_and_normal_inputs_are_mapped_linearly_and_take_points_outside():
    x = np.array([[63070.0, 0.1, 1.0], [115600.0, 0.1161812, 1.0], [10540.0, 0.0, 1.0]])
    found = INPUTS.to_standard(x)[:, :2]
    expected = [[0, 0], [1, 1], [-1, -0.1 / 0.0161812]]
    np.testing.assert_allclose(found, expected, rtol=1e-14, atol=1e-15)
    np.testing.assert_allclose(INPUTS.from_standard(INPUTS.to_standard(x))[:, :2], x[:, :2])


def test_the_score_of_a_lognormal_input_keeps_its_digits_in_both_tails():
    z = np.array([-37.0, -30.0, -8.0, -1.0, 0.0, 1e-3, 1.0, 6.0, 9.0, 20.0, 37.0])
    x = np.exp(MU + SIGMA * z)
    inputs = Marginals([INPUTS.marginals[2]])
    np.testing.assert_allclose(inputs.to_standard(x[:, None])[:, 0], z, rtol=1e-12, atol=1e-14)
    np.testing.assert_allclose(inputs.from_standard(z[:, None])[:, 0], x, rtol=1e-12)


def test_the_score_of_an_exponential_input_in_its_far_tail():
    inputs = Marginals([stats.expon()])
    x = np.array([[20.0], [100.0], [500.0]])
    np.testing.assert_allclose(inputs.to_standard(x), -ndtri_exp(-x), rtol=1e-12)
    assert np.isinf(ndtri(stats.expon.cdf(100.0)))  # which the other tail does not know


@pytest.mark.parametrize("inputs", [INPUTS, SHAPED, BOXED], ids=repr)
def test_maps_are_inverse_and_have_their_slopes(inputs):
    x = inputs.sample(40, rng=3)
    np.testing.assert_allclose(inputs.from_standard(inputs.to_standard(x)), x, rtol=1e-10)
    for row in x[:5]:
        found = finite_difference(inputs.to_standard, row[None], 1e-6 * np.abs(row))[0]
        np.testing.assert_allclose(np.diag(found), inputs.slopes(row[None])[0], rtol=1e-6)
        np.testing.assert_array_equal(found, np.diag(np.diag(found)))


def test_the_ends_of_a_bounded_input_have_the_largest_score_and_no_slope():
    inputs = Marginals([stats.beta(0.5, 0.5), stats.triang(0.5)])
    ends = np.array([[0.0, 0.0], [1.0, 1.0]])
    np.testing.assert_array_equal(inputs.to_standard(ends), [[-REACH] * 2, [REACH] * 2])
    np.testing.assert_array_equal(inputs.slopes(ends), np.zeros((2, 2)))
    np.testing.assert_allclose(inputs.from_standard([[-1e9] * 2, [1e9] * 2]), ends, atol=1e-150)


def test_rounding_does_not_lead_out_of_the_support():
    rng = np.random.default_rng(0)
    for _ in range(50):
        lower, width = rng.standard_normal(), rng.exponential()
        inputs = Marginals([stats.uniform(lower, width), stats.triang(0.2, lower, width)])
        (first, _), (last, _) = inputs.support()
        s = np.array([[0.0, -REACH], [np.nextafter(1, 0), 9.0], [1.0, REACH]])
        x = inputs.from_standard(s)
        assert first == x[0, 0] and last == x[-1, 0] and (first <= x).all() and (x <= last).all()
        assert (np.abs(inputs.to_standard(x)[:, 0] - 0.5) <= 0.5).all()


def test_points_outside_a_support_are_refused_by_row_and_name():
    x = INPUTS.sample(4, rng=0)
    x[[1, 3], 2] = -2.5
    problem = r"r is -2\.5 in row 1, which must lie between 0 and inf \(2 of 4 rows\)"
    for refusing in (INPUTS.to_standard, INPUTS.slopes, embed(KERNEL, INPUTS).kernel_mean):
        with pytest.raises(ValueError, match=problem):
            refusing(x)


# --- The target


@pytest.mark.parametrize("inputs", [INPUTS, SHAPED, BOXED], ids=repr)
def test_draws_have_the_marginals_and_start_with_those_of_a_shorter_sample(inputs):
    x = inputs.sample(2000, rng=5)
    assert x.shape == (2000, inputs.dim)
    np.testing.assert_array_equal(inputs.sample(7, np.random.default_rng(5)), x[:7])
    for marginal, column in zip(inputs.marginals, x.T, strict=True):
        assert stats.kstest(column, marginal.cdf).pvalue > 1e-3
    np.testing.assert_allclose(np.corrcoef(x.T), np.eye(inputs.dim), atol=5 / np.sqrt(2000))


def test_draws_that_round_to_an_end_have_a_score():
    inputs = Marginals([stats.beta(0.01, 0.01)])
    x = inputs.sample(500, rng=0)
    assert (x == 1).any()
    assert np.isfinite(embed(Matern(1.0), inputs).kernel_mean(x)).all()


def test_the_density_is_the_product_of_those_of_the_marginals():
    x = INPUTS.sample(20, rng=1)
    z = (np.log(x[:, 2]) - MU) / SIGMA
    expected = -np.log(52530) - np.square((x[:, 1] - 0.1) / 0.0161812) / 2 - np.square(z) / 2
    expected -= np.log(2 * np.pi * 0.0161812 * SIGMA * x[:, 2])
    np.testing.assert_allclose(INPUTS.log_density(x), expected, rtol=1e-12)
    np.testing.assert_allclose(INPUTS.density(x), np.exp(expected), rtol=1e-11)
    outside = np.array([[0.0, 0.1, 1.0]])
    assert INPUTS.density(outside) == 0 and INPUTS.log_density(outside) == -np.inf


def test_names_and_standard_coordinates():
    assert INPUTS.names == ("Tu", "rw", "r") and SHAPED.names == ("x0", "x1", "x2", "x3")
    assert [type(block) for block in INPUTS.standard.blocks] == [
        Uniform, GaussianMixture, GaussianMixture,
    ]  # fmt: skip
    assert isinstance(BOXED.standard, Uniform) and BOXED.dim == BOXED.standard.dim == 2
    assert repr(INPUTS) == (
        "Marginals(Tu: uniform(63070, 52530), rw: norm(0.1, 0.0161812), "
        "r: lognorm(1.0056, scale=2230.54))"
    )


class Own:
    """The exponential distribution, written by somebody else."""

    def __init__(self):
        own = stats.expon()
        for name in ("ppf", "isf", "cdf", "sf", "pdf", "logpdf", "support"):
            setattr(self, name, getattr(own, name))


def test_a_distribution_of_ones_own_is_taken():
    own, theirs = Marginals([Own()]), Marginals([stats.expon()])
    np.testing.assert_array_equal(own.sample(5, rng=0), theirs.sample(5, rng=0))
    assert repr(own) == "Marginals(x0: Own)"


@pytest.mark.parametrize(
    "marginals, problem",
    [
        ([], "there are no marginals; give at least one"),
        ({"": stats.norm()}, "a name is empty"),
        ({3: stats.norm()}, "3 is of type int; the name of an input must be a text"),
        ([stats.norm(0, -1)], r"x0 has the median nan.* parameters of norm\(0, -1\)"),
        ([stats.uniform(0, 0)], "x0 has the median nan"),
        ([stats.norm([0, 1])], r"x0 has parameters of shape \(2,\); they must be numbers"),
        ([stats.norm([0], [1])], r"x0 has parameters of shape \(1,\)"),
        ([stats.norm(0, 1e-60)], "x0 is .* its scale between 1e-50 and 1e50: change the unit"),
        ([stats.gamma(2, scale=1e60)], "its place must lie between -1e50 and 1e50"),
        ({"a": stats.beta(-1, 2), 4: stats.expon(np.inf)}, "4 is of type int.*; a has .*; 4 has"),
    ],
)
def test_parameters_and_names_that_are_refused(marginals, problem):
    with pytest.raises(ValueError, match=problem):
        Marginals(marginals)


@pytest.mark.parametrize(
    "marginals, problem",
    [
        (stats.norm(), "marginals is of type rv_continuous_frozen; it must be a dict of names"),
        ({"L": 1680.0}, "L is 1680.0, a number: leave it out, and let f use it as a constant"),
        ([stats.norm], "x0 is norm, not frozen: call it, such as"),
        ([stats.poisson(3)], r"x0 is discrete \(poisson\(3\)\): give a continuous"),
        ([stats.multivariate_normal()], "type multivariate_normal_frozen, which has no ppf, .*"),
        ([stats.Normal(mu=0, sigma=2)], r"class Normal, .* such as norm\(mu, sigma\)"),
        ([None, stats.norm(0, 0), 2], "x1 has the median.*; x0 is of type NoneType.*; x2 is 2"),
    ],
)
def test_what_is_no_marginal_is_refused_with_what_to_write(marginals, problem):
    with pytest.raises(TypeError, match=problem):
        Marginals(marginals)


# --- Embeddings


def test_uniform_inputs_have_the_embedding_of_their_box():
    lower, width = np.array([-0.9, 100.0]), np.array([1.7, 50.0])
    box, shares = Uniform(lower, lower + width), np.array([0.3, 0.7])
    x = np.concatenate([box.sample(20, rng=0), lower + width * [[-0.5, 1.5]]])
    for make in (ExponentiatedQuadratic, Matern):
        found, expected = embed(make(shares), BOXED), embed(make(shares * width), box)
        np.testing.assert_allclose(found.kernel_mean(x), expected.kernel_mean(x), rtol=2e-14)
        np.testing.assert_allclose(found.prior_variance, expected.prior_variance, rtol=1e-14)
        np.testing.assert_allclose(found.kernel(x, x), expected.kernel(x, x), rtol=1e-12)


def test_normal_inputs_have_the_embedding_of_a_gaussian():
    means, deviations = np.array([0.1, -50.0]), np.array([0.02, 7.0])
    inputs = Marginals([stats.norm(m, s) for m, s in zip(means, deviations, strict=True)])
    gaussian = GaussianMixture([1.0], [means], [np.diag(deviations**2)])
    x, scales = gaussian.sample(20, rng=0), np.array([0.5, 2.0])
    found, expected = embed(Matern(scales), inputs), embed(Matern(scales * deviations), gaussian)
    np.testing.assert_allclose(found.kernel_mean(x), expected.kernel_mean(x), rtol=1e-13)
    np.testing.assert_allclose(
        found.kernel_mean_gradient(x), expected.kernel_mean_gradient(x), rtol=1e-11, atol=1e-13
    )
    np.testing.assert_allclose(found.prior_variance, expected.prior_variance, rtol=1e-14)


@pytest.mark.parametrize("marginal", SHAPED.marginals[:2], ids=lambda m: m.dist.name)
def test_the_kernel_mean_is_the_integral_over_the_quantiles(marginal):
    inputs = Marginals([marginal])
    embedding = embed(ExponentiatedQuadratic(0.8), inputs)
    x = marginal.ppf([[0.3]])
    expected, _ = quad(lambda u: embedding.kernel(x, marginal.ppf([[u]]))[0, 0], 0, 1, epsabs=1e-10)
    assert embedding.kernel_mean(x)[0] == pytest.approx(expected, abs=1e-9)
    variance, _ = quad(lambda u: embedding.kernel_mean(marginal.ppf([[u]]))[0], 0, 1, epsabs=1e-10)
    assert embedding.prior_variance == pytest.approx(variance, abs=1e-9)


OF_INPUTS = {
    "eq": ExponentiatedQuadratic([0.3, 1.0, 2.0]),
    "matern": KERNEL,
    "rq": RationalQuadratic(1.0, alpha=0.7),
    "sum": Matern(0.8) + 2.0 * ExponentiatedQuadratic(1.0),
    "scaled": 3.0 * Matern(0.8),
    "product": OnCoordinates(Brownian(), [0]) * OnCoordinates(Matern([1.0, 0.5]), [2, 1]),
}


@pytest.mark.parametrize("kernel", OF_INPUTS.values(), ids=OF_INPUTS)
def test_every_kernel_acts_in_standard_coordinates(kernel):
    embedding, inner = embed(kernel, INPUTS), embed(kernel, INPUTS.standard)
    x, y = INPUTS.sample(6, rng=0), INPUTS.sample(3, rng=1)
    s, t = INPUTS.to_standard(x), INPUTS.to_standard(y)
    np.testing.assert_array_equal(embedding.kernel(x, y), kernel(s, t))
    np.testing.assert_array_equal(embedding.kernel.diagonal(x), kernel.diagonal(s))
    np.testing.assert_array_equal(embedding.kernel_mean(x), inner.kernel_mean(s))
    assert embedding.prior_variance == inner.prior_variance
    assert embedding.kernel.dim == 3


@pytest.mark.parametrize(
    "inputs, kernel",
    [(INPUTS, Matern([0.5, 1.0, 2.0], nu=2.5)), (SHAPED, ExponentiatedQuadratic(1.3))],
    ids=["inputs", "shaped"],
)
def test_gradients_are_those_of_finite_differences(inputs, kernel):
    embedding = embed(kernel, inputs)
    x, y = inputs.sample(4, rng=2), inputs.sample(5, rng=3)
    steps = 1e-5 * x.std(axis=0)
    of_mean = finite_difference(embedding.kernel_mean, x, steps)
    of_kernel = finite_difference(lambda x: embedding.kernel(x, y), x, steps)
    unit = 1e-8 / x.std(axis=0)
    gradient = embedding.kernel.gradient(x, y)
    assert (
        np.abs(embedding.kernel_mean_gradient(x) - of_mean) < 1e-6 * np.abs(of_mean) + unit
    ).all()
    assert (np.abs(gradient - of_kernel) < 1e-6 * np.abs(of_kernel) + unit).all()
    mean, slopes = embedding.kernel_mean_with_gradient(x)
    np.testing.assert_array_equal(mean, embedding.kernel_mean(x))
    np.testing.assert_allclose(slopes, embedding.kernel_mean_gradient(x), rtol=1e-12)
    gram, dot = embedding.kernel.with_gradient_dot(x, y)
    weights = np.random.default_rng(0).standard_normal((4, 5))
    np.testing.assert_allclose(gram, embedding.kernel(x, y), rtol=1e-13)
    expected = np.einsum("ijd,ij->id", gradient, weights)
    np.testing.assert_allclose(dot(weights), expected, rtol=1e-10, atol=1e-12)


def test_a_stein_kernel_of_the_standard_coordinates():
    inputs = Marginals([stats.norm(5, 2), stats.lognorm(0.5)])
    kernel = Stein(inputs.standard, 0.8, constant=2.0)
    embedding = pickle.loads(pickle.dumps(embed(kernel, inputs)))
    x = inputs.sample(5, rng=0)
    np.testing.assert_array_equal(embedding.kernel_mean(x), np.full(5, 2.0))
    np.testing.assert_allclose(embedding.kernel(x, x), kernel(*[inputs.to_standard(x)] * 2))


@pytest.mark.parametrize("again", [pickle.loads, copy.copy, copy.deepcopy])
def test_copies_give_the_same(again):
    design = sbq(INPUTS, KERNEL, 6, rng=0, candidates=Candidates(100))
    same = again(pickle.dumps(design) if again is pickle.loads else design)
    np.testing.assert_array_equal(same.weights, design.weights)
    x = INPUTS.sample(5, rng=1)
    embedding = same.embedding
    np.testing.assert_array_equal(embedding.kernel_mean(x), design.embedding.kernel_mean(x))
    assert embedding.kernel.inputs is embedding.target
    assert embed(embedding.kernel, embedding.target).kernel is embedding.kernel


def test_a_kernel_of_other_inputs_is_refused():
    kernel = embed(KERNEL, INPUTS).kernel
    with pytest.raises(ValueError, match="coordinates of other Marginals; use it with those"):
        embed(kernel, Marginals(dict(zip(INPUTS.names, INPUTS.marginals, strict=True))))
    with pytest.raises(TypeError, match="inputs is of type Uniform; it must be Marginals"):
        OnStandard(KERNEL, Uniform([0.0], [1.0]))


def test_a_kernel_of_inputs_has_an_embedding_with_data_in_their_units():
    data = INPUTS.sample(30, rng=0)
    kernel = embed(KERNEL, INPUTS).kernel
    found = embed(kernel, Empirical(data)).kernel_mean(data[:4])
    np.testing.assert_allclose(found, kernel(data[:4], data).mean(axis=1), rtol=1e-13)


@pytest.mark.parametrize(
    "kernel, target, problem",
    [
        (Brownian(), INPUTS, "Brownian with GaussianMixture.* in the standard coordinates of Marg"),
        (ExponentiatedQuadratic(covariance=np.eye(2)), BOXED, "use lengthscale=.* standard coord"),
        (Matern(1.0), Product([INPUTS, BOXED]), "put all inputs into one Marginals"),
        (RationalQuadratic(1.0), Product([BOXED]), "put all inputs into one Marginals"),
        (Matern(1.0) + Matern(2.0), Product([BOXED]), "put all inputs into one Marginals"),
    ],
)
def test_pairs_without_an_embedding(kernel, target, problem):
    with pytest.raises((TypeError, ValueError), match=problem):
        embed(kernel, target)


def test_a_kernel_is_defined_where_its_standard_coordinates_are():
    lower, upper = support(embed(L2Star(), BOXED))
    np.testing.assert_array_equal([lower, upper], BOXED.support())
    lower, upper = embed(KERNEL, INPUTS).kernel.domain(3)
    reach = np.exp(MU + SIGMA * REACH * np.array([-1, 1]))  # beyond, the score does not change
    np.testing.assert_allclose(lower, [-1e50, -0.0161812e50, reach[0]])
    np.testing.assert_allclose(upper, [1e50, 0.0161812e50, reach[1]])


def test_maps_that_are_remembered_belong_to_their_points():
    kernel, x = embed(KERNEL, INPUTS).kernel, INPUTS.sample(5, rng=0)
    first = kernel(x, x)
    x[:] = INPUTS.sample(5, rng=1)
    np.testing.assert_array_equal(kernel(x, x), KERNEL(*[INPUTS.to_standard(x)] * 2))
    assert (kernel(x, x) != first).any()


# --- Designs


@pytest.mark.parametrize("name", [name for name in DESIGNS if name != "stein_thinning"])
def test_a_design_is_the_one_in_standard_coordinates(name):
    design = getattr(bqlib, name)
    pool = INPUTS.sample(200, rng=7)
    found = design(INPUTS, KERNEL, 8, rng=0, candidates=pool)
    assert found.points.shape == (8, 3) and np.isfinite(found.weights).all()
    assert (found.points[:, 0] >= 63070).all() and (found.points[:, 2] > 0).all()
    inner = embed(KERNEL, INPUTS.standard)
    there = INPUTS.to_standard(found.points)
    value = mmd(found.embedding, found.points, found.weights)
    assert value == pytest.approx(mmd(inner, there, found.weights), abs=1e-12)
    expected = design(INPUTS.standard, KERNEL, 8, rng=0, candidates=INPUTS.to_standard(pool))
    np.testing.assert_allclose(there, expected.points, atol=1e-3 if name == "joint" else 1e-12)
    assert value == pytest.approx(mmd(inner, expected.points, expected.weights), rel=1e-6)
    # A kernel on the units of the user would take any two of these points as independent.
    assert value < 0.9 * np.sqrt(1 / 8) or name == "p_greedy"


def test_draws_and_fresh_pools_are_those_of_the_standard_coordinates():
    for pool in (Candidates(50), Candidates(50, fresh=True)):
        found, expected = (
            sbq(target, KERNEL, 5, rng=3, candidates=pool) for target in (INPUTS, INPUTS.standard)
        )
        np.testing.assert_allclose(INPUTS.to_standard(found.points), expected.points, atol=1e-12)


def test_refined_points_are_those_of_the_standard_coordinates():
    pool = INPUTS.sample(60, rng=0)
    found, expected = (
        sbq(target, KERNEL, 3, rng=0, candidates=own, refine=2)
        for target, own in ((INPUTS, pool), (INPUTS.standard, INPUTS.to_standard(pool)))
    )
    np.testing.assert_allclose(INPUTS.to_standard(found.points), expected.points, atol=1e-5)
    assert not np.isin(found.points, pool).any()


def test_joint_moves_points_within_supports_and_keeps_initial_ones():
    inputs = Marginals([stats.beta(0.5, 0.5, 10, 5), stats.uniform(-3, 6)])
    initial, pool = inputs.sample(2, rng=1), inputs.sample(100, rng=0)
    lower, upper = inputs.support()
    start, moved = (
        make(inputs, Matern(1.0, nu=2.5), 7, rng=0, candidates=pool, initial=initial)
        for make in (sbq, joint)
    )
    values = [mmd(d.embedding, d.points, d.weights) for d in (start, moved)]
    assert values[1] < 0.8 * values[0]
    np.testing.assert_array_equal(moved.points[:2], initial)
    assert inputs.to_standard(moved.points[:0]).shape == (0, 2)
    assert (moved.points >= lower).all() and (moved.points <= upper).all()


def test_unit_cube_kernels_take_uniform_inputs():
    design = joint(Marginals([stats.uniform(10, 7)]), Brownian(), n=3, rng=0)
    np.testing.assert_allclose(sorted(design.points[:, 0]), [12, 14, 16], atol=1e-3)


def test_an_integral_in_the_units_of_the_user():
    design = sbq(INPUTS, ExponentiatedQuadratic([1.0, 2.0, 2.0]), 60, rng=0)
    result = design.integrate(lambda x: x[0] * x[1] * np.log(x[2]))
    assert repr(design).endswith("bq weights, for ExponentiatedQuadratic, Marginals>")
    assert result.mean == pytest.approx((63070 + 52530 / 2) * 0.1 * MU, rel=1e-3)


@pytest.mark.parametrize(
    "pool, problem",
    [
        (Candidates(source="inflated"), "Marginals has no covariances to inflate; use source"),
        (Candidates(9, source="box", box=[(0, 1), (0, 1), (-1, 0)]), "r is -.* between 0 and inf"),
    ],
    ids=["inflated", "box"],
)
def test_pools_that_do_not_fit_are_refused(pool, problem):
    with pytest.raises((TypeError, ValueError), match=problem):
        sbq(INPUTS, KERNEL, 4, rng=0, candidates=pool)


# --- Tables


def test_a_table_is_taken_by_the_names_of_its_columns():
    x = INPUTS.sample(50, rng=0)
    table = INPUTS.table(x)
    assert list(table.columns) == ["Tu", "rw", "r"]
    mixed = table[["r", "Tu", "rw"]]
    np.testing.assert_array_equal(INPUTS.points_of(mixed), x)
    np.testing.assert_array_equal(INPUTS.points_of(mixed.to_numpy()), x[:, [2, 0, 1]])
    np.testing.assert_array_equal(INPUTS.to_standard(mixed), INPUTS.to_standard(x))
    np.testing.assert_array_equal(INPUTS.log_density(mixed), INPUTS.log_density(x))
    found, expected = (
        sbq(INPUTS, KERNEL, 6, rng=0, candidates=own[:40], initial=own[40:43]) for own in (mixed, x)
    )
    np.testing.assert_array_equal(found.points, expected.points)
    embedding = found.embedding
    np.testing.assert_array_equal(embedding.kernel(mixed, x), embedding.kernel(x, x))
    np.testing.assert_array_equal(embedding.kernel_mean(mixed), embedding.kernel_mean(x))
    weights = np.full(50, 0.02)
    assert mmd(embedding, mixed, weights) == mmd(embedding, x, weights)


@pytest.mark.parametrize(
    "change",
    [
        lambda table: table.drop(columns="rw"),
        lambda table: table.assign(y=1.0),
        lambda table: table.rename(columns={"rw": "Rw"}),
        lambda table: table[["Tu", "rw", "r", "r"]],
        lambda table: pd.DataFrame(table.to_numpy()),
    ],
)
def test_a_table_of_other_columns_is_refused_with_both(change):
    table = change(INPUTS.table(INPUTS.sample(3, rng=0)))
    problem = r"columns \[.*\]; it must have exactly the columns \['Tu', 'rw', 'r'\], in any order"
    for refusing in (INPUTS.points_of, embed(KERNEL, INPUTS).kernel_mean):
        with pytest.raises(ValueError, match=f"points are a table with the {problem}"):
            refusing(table)
    with pytest.raises(ValueError, match=f"candidates are a table with the {problem}"):
        sbq(INPUTS, KERNEL, 2, rng=0, candidates=table)


def test_a_table_needs_pandas(monkeypatch):
    monkeypatch.setitem(sys.modules, "pandas", None)
    with pytest.raises(ModuleNotFoundError, match=r"table needs pandas, .*bqlib\[workflow\]"):
        INPUTS.table(INPUTS.sample(3, rng=0))


def test_the_module_loads_neither_distributions_nor_tables():
    code = "import sys, bqlib; bqlib.Marginals; print({'pandas', 'scipy.stats'} & {*sys.modules})"
    ran = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert ran.stdout == "set()\n"
