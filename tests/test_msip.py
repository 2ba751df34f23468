"""Mean-shift interacting particles."""

import json

import numpy as np
import pytest
from scipy import stats

import bqlib
from bqlib import (
    Candidates,
    Empirical,
    ExponentiatedQuadratic,
    GaussianMixture,
    Marginals,
    Matern,
    RationalQuadratic,
    Uniform,
    embed,
    msip,
    sbq,
)
from bqlib.designs.design import is_point_set
from bqlib.designs.msip import _moved
from bqlib.discrepancy import mmd2, spectral_mmd2
from bqlib.streams import stream
from bqlib.weights import bq

NORMAL = GaussianMixture([1.0], [[0.0]], [[[1.0]]])
LINE = ExponentiatedQuadratic(1.0)
TARGET = GaussianMixture(
    [0.6, 0.4], [[0.0, 0.0], [2.0, 1.0]], [np.eye(2), [[0.5, 0.2], [0.2, 0.4]]]
)
KERNEL = ExponentiatedQuadratic(0.8)
POOL = TARGET.sample(400, np.random.default_rng(0))
OPTIONS = {"damping": 0.5, "limit": 2000}


def squared(design):
    return mmd2(design.embedding, design.points, design.weights)


@pytest.mark.parametrize(
    "n, expected",
    [(1, 0.0773502691896), (2, 0.00747350495093), (3, 6.47205589233e-4)],
)
def test_the_least_mmd_of_points_on_the_line_is_reached(n, expected):
    """The least of symmetric points, found with 40 digits."""
    design = msip(NORMAL, LINE, n, rng=0, iterations=2000)
    assert design.stop == "" and design.rule is bq and design.rows is None and is_point_set(msip)
    assert squared(design) == pytest.approx(expected, rel=2e-7)


def test_two_points_go_to_their_known_places():
    design = msip(NORMAL, LINE, 2, rng=0, candidates=[[-1.0], [1.1]])
    np.testing.assert_allclose(np.sort(design.points[:, 0]), [-0.7411519, 0.7411519], atol=2e-5)


def test_a_step_is_the_formula_of_the_fixed_point():
    kernel = ExponentiatedQuadratic(covariance=[[0.6, 0.2], [0.2, 0.3]])
    embedding, y = embed(kernel, TARGET), sbq(TARGET, kernel, 8, rng=0, candidates=POOL).points
    mean, slopes = embedding.kernel_mean_with_gradient(y)
    first = slopes @ kernel.covariance + y * mean[:, None]
    inverse = np.linalg.inv(kernel(y, y))
    expected = 0.7 * y + 0.3 * (inverse @ first) / (inverse @ mean)[:, None]
    moved, stop = _moved(embedding, y, 0, 0.3, 1)
    np.testing.assert_allclose(moved, expected, rtol=1e-9)
    assert stop.startswith("msip stops at its limit of 1 steps")


def test_the_points_are_stationary_for_any_lengthscales():
    for kernel in (
        ExponentiatedQuadratic([0.9, 1.4]),
        ExponentiatedQuadratic(1.0, scale="density"),
    ):
        design = msip(TARGET, kernel, 6, rng=0, candidates=POOL, iterations=4000)
        x, w = design.points, design.weights
        _, dot = kernel.with_gradient_dot(x, x)
        slopes = design.embedding.kernel_mean_gradient(x) - dot(w)
        start = sbq(TARGET, kernel, 6, rng=0, candidates=POOL)
        _, dot = kernel.with_gradient_dot(start.points, start.points)
        before = design.embedding.kernel_mean_gradient(start.points) - dot(start.weights)
        assert design.stop == "" and np.abs(slopes).max() < 1e-4 * np.abs(before).max()


@pytest.mark.parametrize("n, expected", [(20, 0.0559), (50, 0.0208), (100, 0.0057)])
def test_the_papers_problem(request, n, expected):
    path = request.config.rootpath / "config" / "targets" / "chen2010_mixture.json"
    numbers = json.loads(path.read_text())
    target = GaussianMixture(*(numbers[key] for key in ("weights", "means", "covariances")))
    pool = Candidates().draw(target, stream("candidates", 0))
    kernel = ExponentiatedQuadratic(0.5, scale="density")
    design = msip(target, kernel, n, rng=0, candidates=pool)
    found = np.sqrt(spectral_mmd2(design.embedding, design.points, design.weights))
    assert found == pytest.approx(expected, rel=0.03)  # SBQ: .0603, .0279, .0116
    assert found == pytest.approx(np.sqrt(squared(design)), rel=1e-9)
    assert "msip stops at its limit of 300 steps" in design.stop


@pytest.mark.parametrize("damping", [0.1, 1.0])  # undamped steps alone would diverge
@pytest.mark.parametrize("lengthscale", [0.2, 0.5, 2.0])
@pytest.mark.parametrize("target", [TARGET, Uniform([0.0, -1.0], [1.0, 2.0]), Empirical(POOL)])
def test_no_design_is_worse_than_its_start(target, lengthscale, damping):
    kernel, pool = ExponentiatedQuadratic(lengthscale), Candidates(200)
    start = sbq(target, kernel, 50, rng=3, candidates=pool)
    moved = msip(target, kernel, 50, rng=3, candidates=pool, iterations=15, damping=damping)
    assert squared(moved) <= squared(start)


def test_every_step_lowers_the_mmd():
    embedding, x = embed(KERNEL, TARGET), sbq(TARGET, KERNEL, 40, rng=0, candidates=POOL).points
    last = np.inf
    for _ in range(25):
        found = mmd2(embedding, x, np.linalg.solve(KERNEL(x, x), embedding.kernel_mean(x)))
        assert found < last
        x, last = _moved(embedding, x, 0, 1.0, 1)[0], found


def test_points_stay_in_the_box_of_a_uniform_target():
    box = Uniform([0.0, 0.0], [1.0, 2.0])
    embedding = embed(ExponentiatedQuadratic(0.1), box)
    corner = np.array([[0.0, 0.0], [0.02, 0.0], [1.0, 2.0], [0.5, 1.0]])
    moved, _ = _moved(embedding, corner, 0, 1.0, 50)
    assert (moved >= 0).all() and (moved <= [1.0, 2.0]).all() and (moved[:2] != corner[:2]).any()
    design = msip(box, ExponentiatedQuadratic(0.3), 25, rng=0, candidates=Candidates(200))
    assert (design.points >= 0).all() and (design.points <= [1.0, 2.0]).all()


def test_a_point_of_weight_zero_does_not_move_and_one_of_small_weight_not_far():
    embedding = embed(LINE, NORMAL)
    far = np.array([[0.5], [-0.6], [60.0]])  # where the kernel mean underflows
    moved, _ = _moved(embedding, far, 0, **OPTIONS)
    assert moved[2, 0] == 60.0
    np.testing.assert_allclose(moved[:2, 0], [0.7411519, -0.7411519], atol=2e-5)
    nearly_zero = np.array([[0.5], [-0.6], [53.0]])  # its weight is 1e-305
    moved, _ = _moved(embedding, nearly_zero, 0, **OPTIONS)
    assert moved[2, 0] == 53.0
    at_edge = np.array([[0.5], [-0.6], [9.0]])  # its weight is 1e-9
    moved, _ = _moved(embedding, at_edge, 0, 1.0, 1)
    assert 0 < abs(moved[2, 0] - 9.0) <= 2.0


def test_the_iteration_does_not_end_while_a_step_lowers_the_mmd():
    """Twenty close points, where a limit of one length-scale for each step alone would end it."""
    normal = GaussianMixture([1.0], [[0.0, 0.0]], [np.eye(2)])
    start, design = (make(normal, LINE, 20, rng=0) for make in (sbq, msip))
    assert design.stop.startswith("msip stops at its limit of 300 steps")
    assert squared(design) < 0.5 * squared(start)


def test_points_that_are_not_distinct_are_no_harm():
    repeated = np.array([[0.4], [0.4], [-0.5]])
    moved, _ = _moved(embed(LINE, NORMAL), repeated, 0, **OPTIONS)
    assert np.isfinite(moved).all()
    initial = [[0.4], [0.4], [0.4 + 1e-9]]
    design = msip(NORMAL, LINE, 5, rng=0, initial=initial)
    np.testing.assert_array_equal(design.points[:3], initial)
    start = sbq(NORMAL, LINE, 5, rng=0, initial=initial)
    assert squared(design) < squared(start) and np.isfinite(design.weights).all()


def test_initial_points_do_not_move():
    initial = POOL[:3]
    design = msip(TARGET, KERNEL, 12, rng=0, candidates=POOL, initial=initial)
    np.testing.assert_array_equal(design.points[:3], initial)
    assert squared(design) < squared(
        sbq(TARGET, KERNEL, 12, rng=0, candidates=POOL, initial=initial)
    )


def test_marginals_move_in_standard_coordinates():
    inputs = Marginals([stats.norm(5.0, 1e-3), stats.norm(0.0, 1e4)])
    normal = GaussianMixture([1.0], [[0.0, 0.0]], [np.eye(2)])
    pool = np.random.default_rng(0).standard_normal((200, 2))
    there = msip(inputs, LINE, 8, rng=0, candidates=inputs.from_standard(pool))
    here = msip(normal, LINE, 8, rng=0, candidates=pool)
    np.testing.assert_allclose(inputs.to_standard(there.points), here.points, atol=1e-6)


def test_points_below_rounding_stay():
    kernel = ExponentiatedQuadratic(1e4)
    start, moved = (make(NORMAL, kernel, 9, rng=0) for make in (sbq, msip))
    np.testing.assert_array_equal(moved.points, start.points)
    assert "below rounding" in moved.stop


def test_a_second_run_is_the_same():
    first, second = (msip(TARGET, KERNEL, 10, rng=0, candidates=POOL) for _ in range(2))
    np.testing.assert_array_equal(first.points, second.points)


@pytest.mark.parametrize("kernel", [Matern(0.5), RationalQuadratic(0.5), KERNEL + KERNEL])
def test_other_kernels_are_refused_with_what_takes_them(kernel):
    target = Uniform([0.0, 0.0], [1.0, 1.0])
    for refused in (
        lambda: msip(target, kernel, 5, rng=0),
        lambda: msip.requires(target, kernel, 5, candidates=Candidates()),
    ):
        with pytest.raises(TypeError, match=f"of type {type(kernel).__name__}: use joint, which"):
            refused()
    assert len(bqlib.joint(target, kernel, 5, rng=0, iterations=1).points) == 5


@pytest.mark.parametrize(
    "options, told",
    [
        ({"damping": 0.0}, "damping is 0.0; it must be above 0 and at most 1"),
        ({"damping": 1.5}, "damping is 1.5"),
        ({"damping": float("nan")}, "damping is nan"),
        ({"iterations": -1}, "iterations is -1"),
    ],
)
def test_wrong_options_are_refused(options, told):
    with pytest.raises(ValueError, match=told):
        msip(TARGET, KERNEL, 5, rng=0, candidates=POOL, **options)
    with pytest.raises(ValueError, match=told):
        msip.requires(TARGET, KERNEL, 5, candidates=Candidates(), **options)
