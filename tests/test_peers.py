"""What other packages publish or compute, by our rules: numbers of others, in tests/reference."""

import json
from math import exp
from pathlib import Path

import numpy as np
import pytest

import bqlib
from bqlib import (
    Empirical,
    ExponentiatedQuadratic,
    GaussianMixture,
    Korobov,
    RationalQuadratic,
    Stein,
    Uniform,
    embed,
    herding,
    iid,
    mmd,
    omp,
    sbq,
)
from bqlib.designs.design import Design
from bqlib.designs.interpolant import Interpolant
from bqlib.weights import bq, final, simplex, uniform

REFERENCE = Path(__file__).parent / "reference"
PUBLISHED = json.loads((REFERENCE / "published_by_peers.json").read_text())
COMPUTED = json.loads((REFERENCE / "computed_by_peers.json").read_text())
COREAX, EMUKIT = PUBLISHED["coreax"], PUBLISHED["emukit"]
QUADRATURE = PUBLISHED["kernel_quadrature"]
SQUARE = embed(Korobov(), Uniform([0.0, 0.0], [1.0, 1.0]))
TRIALS = 50  # as published


def rows(points, pool):
    """The first row of the pool that each point is."""
    return (points[:, None, :] == pool).all(axis=2).argmax(axis=1).tolist()


@pytest.mark.parametrize("beta", PUBLISHED["stein_thinning"]["rows"])
def test_stein_thinning_keeps_the_rows_that_its_package_keeps(beta):
    chain = np.array(COMPUTED["stein_thinning"]["chain"])
    # The package divides each coordinate by its mean absolute deviation. The chain is one of an
    # equal mixture of N(-1, I / 2) and N(1, I / 2).
    unit = np.abs(chain - chain.mean(axis=0)).mean(axis=0)
    target = GaussianMixture([0.5, 0.5], [-1 / unit, 1 / unit], [np.diag(0.5 / unit**2)] * 2)
    scores = target.score(chain[:3] / unit) / unit
    np.testing.assert_allclose(scores, COMPUTED["stein_thinning"]["score"], rtol=1e-12)
    kernel, pool = Stein(target, beta=float(beta)), chain / unit
    picks = rows(herding(target, kernel, 40, rng=0, candidates=pool).points, pool)
    assert picks == PUBLISHED["stein_thinning"]["rows"][beta]
    assert beta != "-0.5" or picks == COMPUTED["stein_thinning"]["rows"]


def test_thin_keeps_the_rows_of_stein_thinning_with_its_settings():
    chain = np.array(COMPUTED["stein_thinning"]["chain"])
    target = GaussianMixture([0.5, 0.5], [[-1.0] * 2, [1.0] * 2], [np.eye(2) / 2] * 2)
    unit = np.abs(chain - chain.mean(axis=0)).mean(axis=0)
    design = bqlib.thin(chain, 40, target.score, units=unit, lengthscale=1.0, rng=0)
    assert design.rows.tolist() == COMPUTED["stein_thinning"]["rows"]


@pytest.mark.parametrize(
    "name, n, options", [("kernel_thinning", 64, {}), ("compress", 32, {"oversampling": 2})]
)
def test_thinned_points_are_no_farther_from_the_pool_than_those_of_goodpoints(name, n, options):
    pool = np.random.default_rng(0).normal(size=(1024, 2))
    target, kernel = Empirical(pool), ExponentiatedQuadratic(1.0)
    rule = getattr(bqlib, name)
    designs = [rule(target, kernel, n, rng=s, candidates=pool, **options) for s in range(10)]
    found = [mmd(design.embedding, design.points, design.weights) for design in designs]
    assert np.mean(found) <= np.mean(COMPUTED["goodpoints"][name])
    assert min(found) > 0.5 * min(COMPUTED["goodpoints"][name])  # of the same kind


@pytest.mark.parametrize("case", COREAX["herding"]["cases"], ids=["equal", "weighted"])
def test_herding_by_hand(case):
    points = np.array(COREAX["herding"]["points"])
    embedding = embed(ExponentiatedQuadratic(0.5**0.5), Empirical(points, case["weights"]))
    np.testing.assert_allclose(embedding.kernel_mean(points), case["kernel_mean"], rtol=1e-14)
    made = herding(embedding.target, embedding.kernel, 2, rng=0, candidates=points)
    assert rows(made.points, points) == case["rows"]


def test_herding_of_100_points():
    expected = COREAX["herding_of_100"]
    points = np.random.default_rng(expected["seed"]).uniform(size=(100, 2))
    inverse_multiquadric = RationalQuadratic(2**0.5, alpha=0.5)
    picks = points[:0]
    for n in range(1, 11):  # it takes each row once
        left = points[~np.isin(np.arange(100), rows(picks, points))] if n > 1 else points
        target = Empirical(points)
        made = herding(target, inverse_multiquadric, n, rng=0, candidates=left, initial=picks)
        picks = made.points
    assert rows(picks, points) == expected["rows"]


def test_pivots_by_hand():
    expected = COREAX["pivots"]
    points = np.array(expected["points"])
    embedding = embed(ExponentiatedQuadratic(0.5**0.5), Empirical(points))
    interpolant = Interpolant(embedding, 2)
    for row, after in zip(expected["rows"], expected["power"], strict=True):
        interpolant.add(points[row], *interpolant.at(points[row]))
        columns = interpolant.columns(points)
        _, power = interpolant.residual_and_power(points, columns)
        np.testing.assert_allclose(power, after, atol=2e-7)  # printed from 32-bit numbers


def test_mmd_and_weights_of_two_among_three_points_by_hand():
    expected = COREAX["three_points"]
    points = np.array(expected["points"], dtype=float)
    embedding, kept = (
        embed(ExponentiatedQuadratic(1.0), Empirical(points)),
        points[expected["rows"]],
    )

    def formula(text):
        return eval(text, {"exp": exp})

    assert mmd(embedding, kept, [0.5, 0.5]) ** 2 == pytest.approx(formula(expected["mmd2"]))
    first = mmd(embedding, kept, [1.0, 0.0]) ** 2
    assert first == pytest.approx(formula(expected["mmd2_of_first"]))
    for rule, name in ((bq, "bq"), (simplex, "simplex")):
        np.testing.assert_allclose(
            final(rule, embedding, kept), list(map(formula, expected[name])), rtol=1e-12
        )


def normal(mean, variances):
    return GaussianMixture([1.0], [mean], [np.diag(variances)])


def inside(value, interval):
    return interval[0] < value < interval[1]


@pytest.mark.parametrize("case", EMUKIT["embeddings"])
def test_kernel_means_lie_in_the_intervals_of_emukit(case):
    facts = dict(case["kernel"])
    kernel = case["height"] * getattr(bqlib, facts.pop("family"))(**facts)
    if "mean" in case:
        target = normal(case["mean"], case["variances"])
    else:
        target = Uniform(case["lower"], case["upper"])
    embedding = embed(kernel, target)
    means = case["volume"] * embedding.kernel_mean(np.array(EMUKIT["points"]))
    assert all(map(inside, means, case["kernel_mean"]))
    assert inside(case["volume"] ** 2 * embedding.prior_variance, case["prior_variance"])


@pytest.mark.parametrize("model", COMPUTED["emukit"]["models"])
def test_integrals_are_those_of_emukit(model):
    if "mean" in model:
        target = normal(model["mean"], model["spread"])
    else:
        target = Uniform(model["lower"], model["upper"])
    kernel = model["height"] * ExponentiatedQuadratic(model["lengthscale"])
    design = Design(embed(kernel, target), np.array(COMPUTED["emukit"]["points"]), bq)
    found = design.integrate(values=COMPUTED["emukit"]["values"], rule=bq, output_scale=1.0)
    # Its values have a noise of variance 1e-10, and its matrix 1e-8 more on the diagonal.
    assert found.mean == pytest.approx(model["integral_mean"], rel=1e-7)
    assert found.std**2 == pytest.approx(model["integral_variance"], abs=1e-8)
    if model == COMPUTED["emukit"]["models"][0]:
        assert inside(found.mean, EMUKIT["model"]["integral_mean"])
        assert inside(found.std**2, EMUKIT["model"]["integral_variance"])


def halton(n, seed):
    return bqlib.halton(SQUARE.target, SQUARE.kernel, n, rng=seed).points


CELLS = {
    "iid_bq": (lambda n, seed: iid(SQUARE.target, SQUARE.kernel, n, rng=seed).points, bq),
    "halton": (halton, uniform),
    "halton_bq": (halton, bq),
}


@pytest.mark.parametrize("n", ["20", "40", "80"])
@pytest.mark.parametrize("rule", CELLS)
def test_squared_errors_of_kernel_quadrature(rule, n):
    draw, weights = CELLS[rule]
    errors = [
        mmd(SQUARE, points, final(weights, SQUARE, points)) ** 2
        for points in (draw(int(n), seed) for seed in range(TRIALS))
    ]
    mean, spread = QUADRATURE["square"][rule][n]
    # Two means of 50 trials differ by a fifth of the spread.
    assert abs(np.mean(errors) - mean) < 0.7 * spread
    assert 0.6 < np.std(errors) / spread < 1.6


def test_greedy_rules_are_below_the_recombination_of_kernel_quadrature():
    recombined = [
        [QUADRATURE["square"][name][str(n)][0] for n in (20, 40, 80)]
        for name in ("recombination", "recombination_qp", "empirical_recombination_qp")
    ]
    # Means of 50 pools.
    for rule, means in ((sbq, (0.217, 0.0797, 0.0278)), (omp, (0.215, 0.0795, 0.0275))):
        for n, mean, published in zip((20, 40, 80), means, np.min(recombined, axis=0), strict=True):
            pools = [SQUARE.target.sample(10 * n, rng=seed) for seed in range(4)]
            made = [rule(SQUARE.target, SQUARE.kernel, n, rng=0, candidates=pool) for pool in pools]
            errors = [mmd(SQUARE, design.points, design.weights) ** 2 for design in made]
            assert np.mean(errors) == pytest.approx(mean, rel=0.03)  # 2.4 % from pool to pool
            assert max(errors) < published


@pytest.mark.parametrize("n", QUADRATURE["grid"])
def test_grids_of_kernel_quadrature(n):
    embedding = embed(Korobov(), Uniform([0.0], [1.0]))
    points = np.arange(int(n))[:, None] / int(n)
    error = mmd(embedding, points, uniform(embedding, points).final(int(n))) ** 2
    assert error == pytest.approx(QUADRATURE["grid"][n], rel=1e-3)
