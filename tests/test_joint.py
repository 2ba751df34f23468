"""Joint optimisation: what it promises with BQ weights and with equal weights."""

import json

import numpy as np
import pytest
from scipy import stats

import bqlib
from bqlib import (
    Brownian,
    Candidates,
    Empirical,
    ExponentiatedQuadratic,
    GaussianMixture,
    Marginals,
    Matern,
    OnCoordinates,
    Product,
    Stein,
    Uniform,
    embed,
)
from bqlib.designs.design import is_point_set, support
from bqlib.designs.joint import WALL, _bq, _descend
from bqlib.discrepancy import mmd2, mmd2_of_prefixes, spectral_mmd2
from bqlib.streams import stream
from bqlib.weights import uniform

TARGET = GaussianMixture(
    [0.5, 0.3, 0.2],
    [[0.0, 0.0], [2.0, 1.0], [-1.0, 2.0]],
    [np.eye(2), [[0.5, 0.2], [0.2, 0.4]], 0.3 * np.eye(2)],
)
KERNEL = ExponentiatedQuadratic(0.6)
POOL = TARGET.sample(400, np.random.default_rng(0))
NORMAL = GaussianMixture([1.0], [[0.0]], [[[1.0]]])
PAPER_KERNEL = ExponentiatedQuadratic(0.5, scale="density")


def make(name, n=30, target=TARGET, kernel=KERNEL, candidates=POOL, rng=1, **options):
    return getattr(bqlib, name)(target, kernel, n, rng=rng, candidates=candidates, **options)


def equal(n=30, target=TARGET, kernel=KERNEL, candidates=POOL, **options):
    return make("joint", n, target, kernel, candidates, weights="uniform", **options)


def squared(design):
    return mmd2(design.embedding, design.points, design.weights)


@pytest.fixture(scope="module")
def paper(request):
    """The paper's target."""
    path = request.config.rootpath / "config" / "targets" / "chen2010_mixture.json"
    numbers = json.loads(path.read_text())
    return GaussianMixture(*(numbers[key] for key in ("weights", "means", "covariances")))


def curve(design):
    matrix = design.rule(design.embedding, design.points).matrix
    return np.sqrt(mmd2_of_prefixes(design.embedding, design.points[: len(matrix)], matrix))


# --- BQ weights -----------------------------------------------------------------------------------


def test_joint_goes_down_the_gradient_of_the_mmd():
    start = make("sbq", 12)
    embedding, h = start.embedding, 1e-6

    def variance(x):
        z = embedding.kernel_mean(x)
        return embedding.prior_variance - z @ np.linalg.solve(KERNEL(x, x), z)

    x = make("joint", 12, iterations=2000).points
    slopes = [
        (variance(x + h * step) - variance(x - h * step)) / (2 * h)
        for step in np.eye(x.size).reshape(-1, *x.shape)
    ]
    assert np.abs(slopes).max() < 1e-5 * np.sqrt(variance(x))  # stationary
    assert variance(x) < variance(start.points)


def test_joint_beats_sbq_as_the_spectral_oracle_confirms(paper):
    pool = Candidates().draw(paper, stream("candidates", 0))
    design = make("joint", 100, paper, PAPER_KERNEL, pool)
    found = np.sqrt(spectral_mmd2(design.embedding, design.points, design.weights))
    assert found < 0.0051  # SBQ: 0.0116
    assert curve(design)[-1] == pytest.approx(found, rel=1e-9)


def test_joint_says_that_its_limit_of_steps_was_reached():
    stopped, ended = make("joint", 12, iterations=5), make("joint", 12, iterations=2000)
    assert stopped.stop.startswith("joint stops at its limit of 5 steps") and ended.stop == ""
    assert "pass more iterations" in stopped.stop and len(stopped.points) == 12


def test_joint_does_not_feel_the_unit_of_length():
    target = GaussianMixture([1.0], [[0.0, 0.0]], [1e-6 * np.eye(2)])
    large = GaussianMixture([1.0], [[0.0, 0.0]], [np.eye(2)])
    pool = np.random.default_rng(0).standard_normal((200, 2))
    small = make("joint", 8, target, ExponentiatedQuadratic(1e-3), 1e-3 * pool)
    same = make("joint", 8, large, ExponentiatedQuadratic(1.0), pool)
    assert small.stop == same.stop == ""
    np.testing.assert_allclose(1e3 * small.points, same.points, atol=1e-4)


def test_joint_refuses_a_kernel_without_gradients_before_a_run():
    target = bqlib.Unnormalised(2, score=lambda x: -x)
    kernel = Stein(target, constant=1.0)
    box = Candidates(size=5, source="box", box=[(-1, 1), (-1, 1)])
    with pytest.raises(TypeError, match="needs the Hessian"):
        bqlib.joint.requires(target, kernel, 5, candidates=box)


def test_joint_keeps_initial_points_and_stays_in_the_box():
    box, initial = Uniform([0.0, 0.0], [1.0, 1.0]), [[0.25, 0.5]]
    design = make("joint", 20, box, candidates=Candidates(size=200), initial=initial)
    np.testing.assert_array_equal(design.points[:1], initial)
    assert (design.points >= 0).all() and (design.points <= 1).all()


@pytest.mark.parametrize("name, options", [("joint", {}), ("sbq", {"refine": 2})])
def test_points_that_move_stay_in_the_boxes_of_a_product(name, options):
    target = Product([Uniform([0.0], [0.5]), GaussianMixture([1.0], [[0.0]], [[[1.0]]])])
    points = make(name, 15, target, candidates=Candidates(size=100), **options).points
    assert points[:, 0].min() >= 0 and points[:, 0].max() <= 0.5


@pytest.mark.parametrize("name, options", [("joint", {}), ("sbq", {"refine": 2})])
def test_points_that_move_stay_where_the_kernel_is_defined(name, options):
    data = np.random.default_rng(0).random((200, 2))
    kernel = Brownian() + 2.0 * (OnCoordinates(Brownian(), [1]) * OnCoordinates(Matern(1.0), [0]))
    points = make(name, 6, Empirical(data), kernel, data, **options).points
    assert points.min() >= 0 and points.max() <= 1
    half = OnCoordinates(Brownian(), [1])
    lower, upper = support(embed(half, Empirical(data)))
    assert (lower[1], upper[1]) == (0, 1) and lower[0] < -1e9 and upper[0] > 1e9


def test_joint_is_sbq_where_its_mmd_is_below_rounding():
    kernel = ExponentiatedQuadratic(1e4)
    start, moved = (make(name, 60, kernel=kernel) for name in ("sbq", "joint"))
    assert np.isnan(mmd2(start.embedding, start.points, start.weights))
    np.testing.assert_array_equal(moved.points, start.points)


def test_points_that_meet_do_not_end_the_descent():
    points = np.zeros((2, 2))
    embedding = embed(KERNEL, TARGET)
    moved, found = _descend(embedding, points, 0, _bq(embedding, 0.0), 5)
    np.testing.assert_array_equal(moved, points)
    assert found.fun == WALL


@pytest.mark.parametrize(
    "target, kernel",
    [
        (TARGET, ExponentiatedQuadratic(0.3)),
        (TARGET, ExponentiatedQuadratic(1.5)),  # 60 points come near the floor of float64
        (Uniform([0.0, 0.0], [1.0, 1.0]), Matern(0.3, nu=0.5)),  # no gradient at x = y
        (Uniform([0.0], [1.0]), Brownian()),
        (TARGET, Stein(TARGET, constant=1.0)),
    ],
)
def test_joint_is_never_worse_than_sbq(target, kernel):
    pool = Candidates(size=300)
    start, moved = (
        make(name, 60, target, kernel, pool, **options)
        for name, options in (("sbq", {}), ("joint", {"iterations": 20}))
    )
    assert curve(moved)[-1] <= curve(start)[-1]


def test_joint_with_nothing_to_move_is_sbq():
    initial = [[0.0]]  # its kernel is zero, so the weights end before it
    start, moved = (
        make(name, 3, Uniform([0.0], [1.0]), Brownian(), np.array([[0.0]] * 3), initial=initial)
        for name in ("sbq", "joint")
    )
    np.testing.assert_array_equal(moved.points, start.points)


def test_joint_says_when_float64_ends():
    design = make("joint", 100, kernel=ExponentiatedQuadratic(5.0), iterations=5)
    assert len(design.points) < 100 and "n = " in design.stop


# --- Equal weights --------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "n, places, expected",
    [  # by a minimiser of another program
        (1, [0], 0.1631367068),
        (2, [-0.770795795, 0.770795795], 0.0107133218),
        (3, [-1.0424917, 0, 1.0424917], 0.0041822259),
        (5, None, 5.1708813e-4),
    ],
)
def test_equal_weights_reach_the_known_points(n, places, expected):
    design = equal(n, NORMAL, ExponentiatedQuadratic(1.0), Candidates(1000), iterations=3000)
    assert design.stop == "" and design.rule is uniform and is_point_set(bqlib.joint)
    np.testing.assert_array_equal(design.weights, np.full(n, 1 / n))
    assert squared(design) == pytest.approx(expected, rel=1e-7)
    if places is not None:
        np.testing.assert_allclose(np.sort(design.points[:, 0]), places, atol=2e-6)


@pytest.mark.parametrize("n, expected", [(20, 0.0862), (50, 0.0294), (100, 0.0117)])
def test_equal_weights_reach_what_is_known_of_the_papers_problem(paper, n, expected):
    pool = Candidates().draw(paper, stream("candidates", 0))
    design = equal(n, paper, PAPER_KERNEL, pool)
    found = np.sqrt(spectral_mmd2(design.embedding, design.points, design.weights))
    assert found == pytest.approx(expected, rel=0.1)  # herding: .0961, .0449, .0221
    assert found == pytest.approx(np.sqrt(squared(design)), rel=1e-9)


def test_equal_weights_at_a_minimum_are_exact_for_derivatives_of_the_kernel():
    design = equal(12, iterations=3000)
    x, embedding, h = design.points, design.embedding, 1e-5
    assert design.stop == ""

    def errors(points):
        """Of the mean over `points` of each derivative of k(., x_i), against its integral."""
        found = []
        for step in h * np.eye(2):
            slopes = (KERNEL(points, x + step) - KERNEL(points, x - step)) / (2 * h)
            integrals = embedding.kernel_mean(x + step) - embedding.kernel_mean(x - step)
            found.append(slopes.mean(axis=0) - integrals / (2 * h))
        return np.abs(found).max()

    assert errors(x) < 2e-5 * np.sqrt(squared(design))
    assert errors(x + 0.01) > 1e-3  # points that are not stationary have errors
    assert np.abs(KERNEL(x, x).mean(axis=0) - embedding.kernel_mean(x)).max() > 1e-3


def test_the_order_of_equal_weights_is_that_of_their_starts():
    start, moved = make("herding", 12, repeats=False), equal(12, iterations=2)
    order = np.linalg.norm(start.points[:, None] - moved.points[None], axis=2).argmin(axis=1)
    assert order.tolist() == list(range(12)) and (start.points != moved.points).all()


@pytest.mark.parametrize(
    "target, kernel",
    [
        (TARGET, ExponentiatedQuadratic(0.3)),
        (TARGET, ExponentiatedQuadratic(3.0)),
        (Uniform([0.0, 0.0], [1.0, 1.0]), Matern(0.3, nu=0.5)),  # no gradient at x = y
        (Uniform([0.0], [1.0]), Brownian()),
        (TARGET, Stein(TARGET)),  # the kernel mean is zero, with which SBQ could not work
    ],
)
@pytest.mark.parametrize("iterations", [0, 1, 30])
def test_equal_weights_are_never_worse_than_herding(target, kernel, iterations):
    start = make("herding", 40, target, kernel, pool := Candidates(300), repeats=False)
    moved = equal(40, target, kernel, pool, iterations=iterations)
    assert squared(moved) <= squared(start)
    if iterations == 0:
        np.testing.assert_array_equal(moved.points, start.points)
        assert moved.stop.startswith("joint stops at its limit of 0 steps")


def test_the_start_is_returned_if_no_move_is_better(monkeypatch):
    monkeypatch.setattr("bqlib.designs.joint._to_minimum", lambda _, x, *rest: (x + 5.0, ""))
    start, moved = make("herding", 9, repeats=False), equal(9)
    np.testing.assert_array_equal(moved.points, start.points)
    assert moved.stop == "these are the points of herding, as none better was found"


def test_equal_weights_below_rounding_are_herding():
    kernel = ExponentiatedQuadratic(1e9)
    start, moved = make("herding", 9, kernel=kernel, repeats=False), equal(9, kernel=kernel)
    np.testing.assert_array_equal(moved.points, start.points)
    assert moved.stop == "no point was moved: the MMD is below rounding"


def test_equal_weights_need_as_many_different_candidates():
    pool = np.concatenate([POOL[:4], POOL[:4]])
    design = equal(6, candidates=pool)
    assert len(design.points) == 4 and design.rows is None
    assert design.stop.startswith("design stops at n = 4 of 6: every candidate is picked already")


def test_equal_weights_keep_initial_points_and_stay_in_the_box():
    box, initial = Uniform([0.0, 0.0], [1.0, 1.0]), [[0.25, 0.5], [0.25, 0.5]]
    design = equal(20, box, candidates=Candidates(200, fresh=True), initial=initial)
    np.testing.assert_array_equal(design.points[:2], initial)
    assert (design.points >= 0).all() and (design.points <= 1).all()
    whole = equal(2, box, initial=initial)
    np.testing.assert_array_equal(whole.points, initial)


def test_equal_weights_do_not_feel_units():
    inputs = Marginals([stats.norm(5.0, 1e-3), stats.norm(0.0, 1e4)])
    normal = GaussianMixture([1.0], [[0.0, 0.0]], [np.eye(2)])
    pool = np.random.default_rng(0).standard_normal((200, 2))
    there = equal(8, inputs, ExponentiatedQuadratic(1.0), inputs.from_standard(pool))
    here = equal(8, normal, ExponentiatedQuadratic(1.0), pool)
    np.testing.assert_allclose(inputs.to_standard(there.points), here.points, atol=1e-4)
    assert squared(there) == pytest.approx(squared(here), rel=1e-7)


def test_equal_weights_are_the_same_in_a_second_run():
    np.testing.assert_array_equal(equal(15).points, equal(15).points)


@pytest.mark.parametrize("word", ["simplex", "", None, "BQ"])
def test_other_weights_are_refused(word):
    with pytest.raises(ValueError, match=r"it must be one of bq, uniform\. Points for other"):
        make("joint", 5, weights=word)
    with pytest.raises(ValueError, match=f"weights is {word!r}; it must be one of bq, uniform"):
        bqlib.joint.requires(TARGET, KERNEL, 5, candidates=Candidates(), weights=word)


def test_only_bq_weights_require_a_kernel_mean():
    arguments = {"candidates": Candidates()}
    bqlib.joint.requires(TARGET, Stein(TARGET), 5, **arguments, weights="uniform")
    with pytest.raises(ValueError, match="zero everywhere for a Stein kernel"):
        bqlib.joint.requires(TARGET, Stein(TARGET), 5, **arguments)
