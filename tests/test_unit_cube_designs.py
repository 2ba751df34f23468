"""Points of the unit cube, mapped to a target: Halton, Latin hypercubes, lattices, grids."""

import itertools
import re
from functools import partial

import numpy as np
import pytest
from project import PROJECT
from scipy import stats

from bqlib import (
    Candidates,
    Empirical,
    ExponentiatedQuadratic,
    GaussianMixture,
    Korobov,
    Marginals,
    Matern,
    Product,
    Uniform,
    embed,
    grid,
    halton,
    iid,
    latin_hypercube,
    lattice,
    mmd,
    sobol,
)
from bqlib.designs.design import is_point_set
from bqlib.designs.lattice import generating_vector, lattice_sizes
from bqlib.designs.unit_cube_map import from_cube, opened
from bqlib.discrepancy import mmd2
from bqlib.sweep import registry
from bqlib.weights import bq, uniform

INTERVAL, SQUARE, CUBE = (Uniform(np.zeros(d), np.ones(d)) for d in (1, 2, 3))
NORMAL = GaussianMixture([1.0], [[1.0]], [[[4.0]]])
MIXTURE = GaussianMixture([0.3, 0.7], [[0.0, 0.0], [2.0, 1.0]], [np.eye(2), 0.5 * np.eye(2)])
KERNEL = ExponentiatedQuadratic(0.7)
SETS = [grid, latin_hypercube, lattice]
RULES = [sobol, halton, *SETS]


def best(design):
    """MMD^2 with BQ weights, and these weights."""
    weights = bq(design.embedding, design.points).final(len(design.points))
    return mmd(design.embedding, design.points, weights) ** 2, weights


def equal(design):
    return mmd(design.embedding, design.points, design.weights) ** 2


# --- What all have in common


@pytest.mark.parametrize("rule", RULES)
def test_the_message_of_a_target_without_a_map_names_the_rule(rule):
    name = rule.__name__
    said = f"{name} cannot map the unit cube to Empirical; it works for GaussianMixture, Uniform"
    data = Empirical([[0.0]])
    for target in (data, Product([Uniform([0.0], [1.0]), data])):
        with pytest.raises(TypeError, match=said):
            rule(target, ExponentiatedQuadratic(1.0), 8, rng=0)
        with pytest.raises(TypeError, match=said):
            rule.requires(target, KERNEL, 8, candidates=Candidates(8))


def test_which_rules_make_sets():
    assert [is_point_set(rule) for rule in RULES] == [False, False, True, True, True]


@pytest.mark.parametrize("rule", SETS)
def test_a_set_is_made_as_one_or_given_as_one(rule):
    given = np.linspace(0.1, 0.9, 7)[:, None]
    design = rule(INTERVAL, KERNEL, 7, rng=0, initial=given)
    np.testing.assert_array_equal(design.points, given)
    assert design.rule is uniform and design.rows is None
    said = f"there are 7 initial points of n = 8; {rule.__name__} makes a set"
    with pytest.raises(ValueError, match=said):
        rule(INTERVAL, KERNEL, 8, rng=0, initial=given)


@pytest.mark.parametrize("rule", SETS)
@pytest.mark.parametrize(
    "options, error, said",
    [
        ({"n": 0}, ValueError, "n is 0; it must be at least 1"),
        ({"n": 2.5}, TypeError, "n is 2.5; it must be a whole number"),
        ({"rng": None}, TypeError, "rng is required"),
        ({"initial": np.zeros((3, 1)), "n": 2}, ValueError, "already 3 initial points"),
        ({"candidates": np.zeros((5, 3))}, ValueError, r"candidates have shape \(5, 3\)"),
        ({"kernel": ExponentiatedQuadratic([1.0, 1.0])}, ValueError, "dimension"),
    ],
)
def test_bad_arguments_of_sets_are_told(rule, options, error, said):
    arguments = {"target": INTERVAL, "kernel": KERNEL, "n": 8, "rng": 0} | options
    with pytest.raises(error, match=said):
        rule(**arguments)


@pytest.mark.parametrize("rule", [halton, latin_hypercube, lattice])
def test_each_point_alone_has_the_distribution_of_the_target(rule):
    target = Product([NORMAL, Uniform([2.0], [5.0])])
    kernel = ExponentiatedQuadratic(1.0)
    n = 4 if rule is lattice else 3
    points = np.array([rule(target, kernel, n, rng=seed).points for seed in range(500)])
    for i in range(n):
        assert stats.kstest(points[:, i, 0], stats.norm(1, 2).cdf).pvalue > 1e-3
        assert stats.kstest(points[:, i, 1], stats.uniform(2, 3).cdf).pvalue > 1e-3


@pytest.mark.parametrize("rule", [halton, latin_hypercube, lattice])
def test_points_follow_a_mixture(rule):
    design = rule(MIXTURE, KERNEL, 1024, rng=0)
    independent = (1 - design.embedding.prior_variance) / 1024
    assert equal(design) < independent * (0.8 if rule is latin_hypercube else 1 / 16)


def test_points_that_rounding_puts_on_a_side_have_a_quantile():
    sides = np.array([[0.0, 1.0], [0.5, 2.0**-53]])
    target = GaussianMixture([1.0], [[0.0, 0.0]], [np.eye(2)])
    assert np.isfinite(from_cube(target, opened(sides))).all()
    np.testing.assert_array_equal(opened(sides)[1], sides[1])
    assert np.abs(opened(sides) - sides).max() < 2.0**-52


def test_points_of_marginals_are_their_quantiles():
    inputs = Marginals([stats.expon()])
    points = grid(inputs, Matern(1.0), 4, rng=0).points
    np.testing.assert_allclose(points[:, 0], stats.expon().ppf([0.125, 0.375, 0.625, 0.875]))


# --- Halton


def test_halton_points_are_balanced_in_their_bases():
    points = halton(CUBE, Korobov(), 60, rng=3).points
    for column, base in zip(points.T, (2, 3, 5), strict=True):
        assert set(np.bincount((base * column).astype(int))) == {60 // base}
    assert len(np.unique(points[:, 0])) == 60


# --- Latin hypercubes


@pytest.mark.parametrize("n", [1, 7, 50])
def test_each_stratum_of_a_latin_hypercube_has_one_point(n):
    points = latin_hypercube(CUBE, Korobov(), n, rng=1).points
    np.testing.assert_array_equal(
        np.sort((n * points).astype(int), axis=0), np.arange(n)[:, None] + [0, 0, 0]
    )
    others = iid(CUBE, Korobov(), 50, rng=1).points  # which have no such strata
    assert len(np.unique((50 * others[:, 0]).astype(int))) < 50


# --- Grids


def test_a_grid_has_the_quantiles_of_the_mid_points():
    points = grid(NORMAL, KERNEL, 5, rng=0).points
    np.testing.assert_allclose(points[:, 0], stats.norm(1, 2).ppf([0.1, 0.3, 0.5, 0.7, 0.9]))
    np.testing.assert_array_equal(points, grid(NORMAL, KERNEL, 5, rng=1).points)


@pytest.mark.parametrize("n", [1, 5, 20, 80])
@pytest.mark.parametrize("rule", [grid, lattice, partial(lattice, shift=False)])
def test_a_grid_under_korobov(rule, n):
    # e = pi^2 / (3 n^2); as the kernel is periodic, the shift does not matter.
    design = rule(INTERVAL, Korobov(), n, rng=0)
    embedding = design.embedding
    e = np.pi**2 / (3 * n**2)
    assert mmd2(embedding, design.points, design.weights) == pytest.approx(e, rel=1e-10, abs=2e-15)
    gram = embedding.kernel(design.points, design.points)
    assert gram.mean() - 1 == pytest.approx(e, abs=1e-12)


@pytest.mark.parametrize(
    "target, said",
    [
        (SQUARE, "grid has points of one coordinate, but Uniform of dimension 2 needs 2: use latt"),
        (
            GaussianMixture([0.5, 0.5], [[0.0], [1.0]], [[[1.0]], [[1.0]]]),
            "GaussianMixture of dimension 1 needs 2 (one of them picks the component): use lattice",
        ),
    ],
)
def test_a_grid_of_more_coordinates_is_refused(target, said):
    with pytest.raises(ValueError, match=re.escape(said)):
        grid(target, KERNEL, 4, rng=0)
    with pytest.raises(ValueError, match=re.escape(said)):
        grid.requires(target, KERNEL, 4, candidates=Candidates(4))


# --- Lattices


@pytest.mark.parametrize(
    "order, e, least",
    [
        (1, 0.1315947253, 0.1162913916),
        (2, 0.0034634343, 0.0034514804),
        (3, 1.302199e-4, 1.302030e-4),
    ],
)
@pytest.mark.parametrize("rule", [grid, lattice])
def test_five_points_of_an_interval(rule, order, e, least):
    design = rule(INTERVAL, Korobov(order), 5, rng=0)
    assert equal(design) == pytest.approx(e, abs=0.51e-10)
    assert best(design)[0] == pytest.approx(least, abs=0.51e-10)


@pytest.mark.parametrize(
    "n, e, least",
    [
        (21, 0.2090894294, 0.1729313187),
        (55, 0.0381481402, 0.0367463359),
        (89, 0.0160331974, 0.0157801905),
    ],
)
def test_fibonacci_lattices(n, e, least):
    design = lattice(SQUARE, Korobov(), n, rng=0)
    assert equal(design) == pytest.approx(e, abs=0.51e-10)
    assert best(design)[0] == pytest.approx(least, abs=0.51e-10)


@pytest.mark.parametrize("order", [1, 2, 3])
@pytest.mark.parametrize(
    "target, n", [(INTERVAL, 5), (INTERVAL, 12), (SQUARE, 55), (SQUARE, 64), (CUBE, 128)]
)
def test_bq_weights_of_a_lattice_are_equal(target, n, order):
    design = lattice(target, Korobov(order), n, rng=1)
    e = equal(design)
    least, weights = best(design)
    np.testing.assert_allclose(weights, 1 / (n * (1 + e)), rtol=1e-9)
    assert least == pytest.approx(e / (1 + e), rel=1e-8, abs=1e-14)


def test_bq_weights_of_no_lattice_are_not_equal():
    weights = best(halton(SQUARE, Korobov(), 55, rng=1))[1]
    assert np.ptp(weights) > 0.1 * weights.mean()


def test_a_shift_moves_a_lattice_as_one():
    plain = lattice(SQUARE, Korobov(), 34, rng=0, shift=False).points
    moved = lattice(SQUARE, Korobov(), 34, rng=0).points
    other = lattice(SQUARE, Korobov(), 34, rng=1).points
    np.testing.assert_array_equal(plain[0], [0, 0])
    i = np.arange(34)
    np.testing.assert_array_equal(np.rint(34 * plain), np.column_stack([i, 21 * i % 34]))
    difference = (moved - plain) % 1
    np.testing.assert_allclose(difference, difference[:1] * np.ones((34, 1)), rtol=1e-12)
    assert not np.isin(moved, other).any()


@pytest.mark.parametrize(
    "target, n, said",
    [
        (SQUARE, 20, "2 coordinates has a Fibonacci number or a power of 2 as its n: use 16 or 21"),
        (SQUARE, 60, "2 coordinates has a Fibonacci number or a power of 2 as its n: use 55 or 64"),
        (CUBE, 60, "n is 60; a lattice of 3 coordinates has a power of 2 as its n: use 32 or 64"),
        (MIXTURE, 55, "a lattice of 3 coordinates has a power of 2 as its n: use 32 or 64"),
        (CUBE, 3, "use 2 or 4"),
    ],
)
def test_sizes_that_a_lattice_cannot_have(target, n, said):
    for call in (
        lambda: lattice(target, KERNEL, n, rng=0),
        lambda: lattice.requires(target, KERNEL, n, candidates=Candidates(n)),
    ):
        with pytest.raises(ValueError, match=re.escape(said)):
            call()
    for near in map(int, said.split("use ")[1].split(" or ")):
        assert len(lattice(target, KERNEL, near, rng=0).points) == near


def test_sizes_of_lattices():
    two = {1, 2, 3, 4, 5, 8, 13, 16, 21, 32, 34, 55, 64, 89, 128}
    assert {n for n in range(1, 130) if n in lattice_sizes(n, 2)} == two
    assert {n for n in range(1, 130) if n in lattice_sizes(n, 4)} == {2**m for m in range(8)}
    assert all(n in lattice_sizes(n, 1) for n in range(1, 130))


@pytest.mark.parametrize(
    "target",
    [NORMAL, MIXTURE, Marginals([stats.expon()]), Product([INTERVAL, NORMAL])],
    ids=lambda target: type(target).__name__,
)
def test_a_lattice_with_the_origin_needs_bounds(target):
    said = "the map takes to infinity for this"
    if isinstance(target, Marginals):  # bounded below, so that the origin has a place
        design = lattice(target, Matern(1.0), 8, rng=0, shift=False)
        assert design.points[0, 0] == 0 and np.isfinite(design.points).all()
        return
    with pytest.raises(ValueError, match=said):
        lattice(target, KERNEL, 8, rng=0, shift=False)
    with pytest.raises(ValueError, match=said):
        lattice.requires(target, KERNEL, 8, candidates=Candidates(8), shift=False)
    assert np.isfinite(lattice(target, KERNEL, 8, rng=0).points).all()


def test_a_shift_is_a_bool():
    with pytest.raises(TypeError, match=r"shift is 0\.5; it must be True or False"):
        lattice(SQUARE, KERNEL, 8, rng=0, shift=0.5)


def points_of(vector, n):
    return np.arange(n)[:, None] * vector % n / n


def e_of(vector, n, share):
    """MMD^2 of equal weights under the product of 1 + share (k_c - 1)."""
    parts = 1 + share * (Korobov()(np.zeros((1, 1)), points_of(vector, n).reshape(-1, 1)) - 1)
    return np.prod(parts.reshape(n, -1), axis=1).mean() - 1


@pytest.mark.parametrize("n", [8, 16, 32, 128])
@pytest.mark.parametrize("dim", [2, 3, 5])
def test_each_component_of_a_generating_vector_is_the_best(n, dim):
    vector = generating_vector(n, dim).tolist()
    assert vector[0] == 1
    for c in range(1, dim):
        found = [e_of(np.array([*vector[:c], z]), n, 2 / dim) for z in range(1, n, 2)]
        assert e_of(np.array(vector[: c + 1]), n, 2 / dim) == pytest.approx(min(found), rel=1e-12)


@pytest.mark.parametrize("n", [21, 55, 89])
def test_no_lattice_of_two_coordinates_is_better_than_that_of_fibonacci(n):
    found = [e_of(np.array([1, z]), n, 1.0) for z in range(1, n)]
    vector = generating_vector(n, 2)
    assert vector.tolist() == {21: [1, 13], 55: [1, 34], 89: [1, 55]}[n]
    assert e_of(vector, n, 1.0) == pytest.approx(min(found), rel=1e-12)


@pytest.mark.parametrize("dim", [10, 40])
def test_coordinates_of_a_long_vector_are_kept_apart(dim):
    vector = generating_vector(1024, dim)
    assert len(set(vector.tolist())) == dim
    independent = (4.2898681337**2 - 1) / 1024
    pairs = [e_of(np.array(pair), 1024, 1.0) for pair in itertools.combinations(vector, 2)]
    assert np.median(pairs) < independent / 20


@pytest.mark.parametrize("n", [1, 2, 4])
def test_the_smallest_lattices_lie_on_a_diagonal(n):
    design = lattice(CUBE, Korobov(), n, rng=0, shift=False)
    np.testing.assert_array_equal(design.points, np.arange(n)[:, None] / n + np.zeros(3))


def test_a_lattice_beats_other_points_of_the_square():
    found = {
        rule.__name__: np.mean([equal(rule(SQUARE, Korobov(), 55, rng=s)) for s in range(5)])
        for rule in (lattice, sobol, halton, latin_hypercube, iid)
    }
    assert found["lattice"] < 0.6 * min(found["sobol"], found["halton"])
    assert max(found["sobol"], found["halton"]) < found["latin_hypercube"] < found["iid"]


def test_smoother_kernels_have_smaller_errors_on_a_lattice():
    found = [equal(lattice(SQUARE, Korobov(order), 55, rng=0)) for order in (1, 2, 3)]
    assert found[1] < found[0] / 10 and found[2] < found[1] / 5


def test_the_page_has_the_errors_of_64_points():
    text = (PROJECT / "docs" / "designs.md").read_text(encoding="utf-8")
    table = text[text.index("| rule | order 1 |") : text.index("On a lattice, BQ weights")]
    rows = [line.strip("|").split("|") for line in table.strip().splitlines()[2:]]
    assert [row[0].strip(" `") for row in rows] == [
        *("iid", "latin_hypercube", "halton", "sobol", "lattice")
    ]
    for name, *promised in rows:
        rule = registry.find("design", name.strip(" `"))
        found = []
        for order in (1, 3):
            made = [rule(SQUARE, Korobov(order), 64, rng=seed) for seed in range(50)]
            found += [np.mean([equal(d) for d in made]), np.mean([best(d)[0] for d in made])]
        np.testing.assert_allclose(np.sqrt(found), np.array(promised, dtype=float), rtol=6e-3)


def test_the_algorithms_of_these_rules_are_registered():
    for name in ("halton", "latin_hypercube", "lattice", "grid"):
        assert registry.ALGORITHMS[name] == (name, "uniform")
        assert registry.ALGORITHMS[f"{name}_bq"] == (name, "bq")
    assert embed(Korobov(3), SQUARE).prior_variance == 1
