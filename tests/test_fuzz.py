"""Random kernels, targets, pools and sizes: what comes out is finite and right, or a clear error.

150 cases in `make test`. For two thousand, new ones on every run, in some minutes:

    make test ARGS="tests/test_fuzz.py --hypothesis-profile=fuzz"
"""

import traceback
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from hypothesis import event, given, settings
from hypothesis import strategies as st

import bqlib
from bqlib import (
    Brownian,
    BrownianBridge,
    Empirical,
    ExponentiatedQuadratic,
    GaussianMixture,
    IntegratedBrownian,
    Korobov,
    L2Star,
    Matern,
    OnCoordinates,
    Product,
    RationalQuadratic,
    Stein,
    Uniform,
    Unnormalised,
    embed,
)
from bqlib.discrepancy import mmd2, mmd2_and_rounding, mmd2_of_prefixes
from bqlib.pivots import distinct_points, first_occurrence
from bqlib.sweep import registry
from bqlib.weights import bq, nonnegative, simplex, sum_to_one, uniform

WITHOUT_POOL = ("grid", "halton", "iid", "latin_hypercube", "lattice", "sobol")
OFF_THE_POOL = ("joint", "msip")  # they move points
DESIGNS = [
    registry.find("design", name)
    for name in registry.PLACES["design"]
    if name not in (*WITHOUT_POOL, *OFF_THE_POOL)
]
REPEATING = (bqlib.frank_wolfe, bqlib.herding, bqlib.iid)
RULES = [uniform, bq, sum_to_one, nonnegative, simplex]
UNIT_CUBE = [Brownian, BrownianBridge, IntegratedBrownian, L2Star, Korobov]
# The six tests share the cases: this is not the most that one of them may have.
few = settings(max_examples=settings.default.max_examples // 2)
PACKAGE = str(Path(bqlib.__file__).parent)


@contextmanager
def clear_errors():
    """Let pass the errors that bqlib raises itself, and no error of what it is built on."""
    try:
        yield
    except (ValueError, TypeError) as error:
        frame = traceback.extract_tb(error.__traceback__)[-1]
        if not frame.filename.startswith(PACKAGE) or not frame.line.startswith("raise"):
            raise
        event("refused: " + str(error)[:60])


def number(rng, value):
    """A number in one of the types that numbers come in, and that hold this one."""
    kind = [float, np.float64, np.float32, np.array][rng.integers(4)]
    with np.errstate(over="ignore", under="ignore"):
        return kind(value) if float(kind(value)) == value else value


def lengths(rng, dim, ratio, unit):
    """Length-scales near `ratio`: one, or one for each coordinate."""
    if rng.random() < 0.5:
        return number(rng, ratio * unit)
    return ratio * unit * 2.0 ** rng.integers(-2, 3, dim)


def spd(rng, dim, unit):
    root = rng.standard_normal((dim, dim))
    return (root @ root.T + 0.1 * np.eye(dim)) * unit**2


def mixture(rng, dim, unit, diagonal):
    size = rng.integers(1, 4)
    covariances = np.array([spd(rng, dim, unit) for _ in range(size)])
    if diagonal:
        covariances = covariances * np.eye(dim)
    return GaussianMixture(
        rng.dirichlet(np.ones(size)), 2 * unit * rng.standard_normal((size, dim)), covariances
    )


def box(rng, dim, unit):
    lower = unit * rng.integers(-3, 3, dim)
    return Uniform(lower, lower + unit * rng.integers(1, 4, dim))


def build_target(kind, rng, dim, unit):
    match kind:
        case "full":
            return mixture(rng, dim, unit, diagonal=False)
        case "diagonal":
            return mixture(rng, dim, unit, diagonal=True)
        case "box":
            return box(rng, dim, unit)
        case "cube":
            return Uniform(np.zeros(dim), np.ones(dim))
        case "product":
            parts = [mixture(rng, 1, unit, diagonal=True), box(rng, 1, unit)]
            return Product([parts[i] for i in rng.integers(2, size=dim)])
        case "data":
            size = rng.integers(1, 20)
            data = unit * rng.standard_normal((size, dim)).round(rng.integers(0, 3))
            return Empirical(data, rng.dirichlet(np.ones(size)) if rng.random() < 0.5 else None)
        case "score":
            deviation = unit * 2.0 ** rng.integers(-1, 2)
            curvature = -np.eye(dim) / deviation**2
            return Unnormalised(
                dim,
                score=lambda x: -x / deviation**2,
                hessian=lambda x: np.broadcast_to(curvature, (len(x), dim, dim)),
            )


def build_kernel(family, rng, target, ratio, unit):
    dim = target.dim
    match family:
        case "eq":
            return ExponentiatedQuadratic(lengths(rng, dim, ratio, unit))
        case "eq_full":
            return ExponentiatedQuadratic(covariance=spd(rng, dim, ratio * unit))
        case "matern":
            return Matern(
                lengths(rng, dim, ratio, unit), nu=number(rng, rng.choice([0.5, 1.5, 2.5]))
            )
        case "rq":
            alpha = number(rng, rng.choice([0.25, 1.0, 2.5, 50.0]))
            return RationalQuadratic(lengths(rng, dim, ratio, unit), alpha=alpha)
        case "cube":
            return UNIT_CUBE[rng.integers(len(UNIT_CUBE))]()
        case "stein":
            constant = number(rng, 2.0 ** rng.integers(-3, 6) / unit**2)
            return Stein(target, lengths(rng, dim, ratio, unit), constant=constant)
        case "sum":
            short = ExponentiatedQuadratic(ratio * unit / 4)
            return ExponentiatedQuadratic(ratio * unit) + number(rng, 0.5) * short
        case "product":
            factors = [
                [
                    OnCoordinates(ExponentiatedQuadratic(ratio * unit), [c]),
                    OnCoordinates(Matern(ratio * unit, nu=1.5), [c]),
                ][rng.integers(2)]
                for c in range(dim)
            ]
            kernel = factors[0]
            for factor in factors[1:]:
                kernel = kernel * factor
            return kernel


FAMILIES = {
    "full": ["eq", "eq_full", "rq", "sum", "stein", "matern"],
    "diagonal": ["eq", "eq_full", "matern", "rq", "sum", "stein"],
    "box": ["eq", "matern", "rq", "sum", "product"],
    "cube": ["cube", "eq"],
    "product": ["eq", "matern", "rq", "product"],
    "data": ["eq", "eq_full", "matern", "rq", "sum"],
    "score": ["stein"],
}


@dataclass
class Case:
    """What makes a pair and its points; `build` makes them in any unit of length."""

    dim: int
    kind: str
    family: str
    ratio: float
    pool: str
    size: int
    seed: int

    def build(self, unit=1.0):
        rng = np.random.default_rng(self.seed)
        target = build_target(self.kind, rng, self.dim, unit)
        kernel = build_kernel(self.family, rng, target, self.ratio, unit)
        return kernel, target, unit * self._points(rng)

    def _points(self, rng):
        shape = (self.size, self.dim)
        points = rng.random(shape) if self.kind == "cube" else 2 * rng.standard_normal(shape)
        match self.pool:
            case "line":
                points = points[:1] + np.linspace(0, 1, self.size)[:, None] * (
                    points[-1] - points[0]
                )
            case "repeated":
                points = points[rng.integers(1 + self.size // 3, size=self.size)]
            case "one":
                points = np.repeat(points[:1], self.size, axis=0)
            case "integer":
                points = points.round()
            case "far" if self.kind != "cube":
                points = points + 100.0
            case "close":
                points = points[:1] + 1e-9 * (points - points[:1])
        return points.clip(0, 1) if self.kind == "cube" else points


@st.composite
def cases(draw):
    kind = draw(st.sampled_from(sorted(FAMILIES)))
    return Case(
        dim=draw(st.integers(1, 8)),
        kind=kind,
        family=draw(st.sampled_from(FAMILIES[kind])),
        ratio=10.0 ** draw(st.sampled_from([-6, -3, -1, 0, 0, 0, 1, 3, 6])),
        pool=draw(
            st.sampled_from(
                ["spread", "spread", "line", "repeated", "one", "integer", "far", "close"]
            )
        ),
        size=draw(st.integers(1, 40)),
        seed=draw(st.integers(0, 2**32 - 1)),
    )


def in_form(points, form):
    """Points as some callers have them."""
    match form:
        case "list":
            return points.tolist()
        case "fortran":
            return np.asfortranarray(points)
        case "read_only":
            points = points.copy()
            points.flags.writeable = False
            return points
        case "float32":
            return points.astype(np.float32)
        case "integer":
            return points.round().astype(int)
        case "view":
            return np.repeat(points, 2, axis=1)[::-1, ::2]
    return points


forms = st.sampled_from(["array", "list", "fortran", "read_only", "float32", "integer", "view"])
shares = st.sampled_from([0.1, 0.5, 1.0, 1.0, 1.1])


@few
@given(case=cases(), form=forms, design=st.sampled_from(DESIGNS), share=shares, start=shares)
def test_designs(case, form, design, share, start):
    n = max(round(share * case.size), 1)
    with clear_errors():
        kernel, target, points = case.build()
        pool = in_form(points, form)
        initial = in_form(points[::3][: round(start * n / 2)], form)
        before = np.array(pool, copy=True)
        made = design(target, kernel, n, rng=0, candidates=pool, initial=initial)
        np.testing.assert_array_equal(np.array(pool), before)
        check_design(made, design, n, len(initial))
        same = (made.points[:, None, :] == np.asarray(pool, dtype=float)[None]).all(axis=2)
        assert same.any(axis=1).all()
        event("made")


@few
@given(
    case=cases(),
    design=st.sampled_from([*DESIGNS, *(registry.find("design", name) for name in WITHOUT_POOL)]),
    source=st.sampled_from(["target", "inflated", "box"]),
    fresh=st.booleans(),
)
def test_designs_that_draw_their_candidates(case, design, source, fresh):
    with clear_errors():
        kernel, target, _ = case.build()
        box = [(0, 1)] * case.dim if source == "box" else None
        candidates = bqlib.Candidates(case.size, source, box=box, fresh=fresh)
        n = 1 + case.size // 2
        made = design(target, kernel, n, rng=case.seed, candidates=candidates)
        check_design(made, design, n)
        again = design(target, kernel, n, rng=case.seed, candidates=candidates)
        np.testing.assert_array_equal(made.points, again.points)
        event("made")


@few
@given(case=cases(), refine=st.integers(-1, 3))
def test_points_off_the_pool(case, refine):
    """`joint` for 0 and -1, with equal weights; SBQ with its picks refined for others."""
    with clear_errors():
        kernel, target, points = case.build()
        n = 1 + case.size // 3
        if refine > 0:
            made = bqlib.sbq(target, kernel, n, rng=0, candidates=points, refine=refine)
        else:
            weights = "uniform" if refine else "bq"
            made = bqlib.joint(
                target, kernel, n, rng=0, candidates=points, weights=weights, iterations=10
            )
        check_design(made, bqlib.sbq, n)
        if isinstance(target, Uniform):
            assert (target.density(made.points) > 0).all() or case.pool != "spread"
        event("made")


def check_design(made, design, n, given_points=0):
    assert np.isfinite(made.points).all()
    assert len(made.points) == n or made.stop
    if design not in REPEATING:
        picked = np.arange(len(made.points))[given_points:]
        assert (first_occurrence(made.points)[given_points:] == picked).all()
    assert np.isfinite(made.weights).all()
    check_optimum(made.embedding, made.points)
    result = made.integrate(lambda x: np.cos(x.sum()), output_scale=1.0)
    assert np.isfinite(result.mean) and np.isfinite(result.std)


def check_optimum(embedding, points):
    """bq against a direct solve, where that has digits."""
    _, distinct = np.unique(points, axis=0, return_index=True)
    points = points[np.sort(distinct)]
    gram = embedding.kernel(points, points)
    if not len(gram) or np.linalg.cond(gram) > 1e5:
        return
    mean = embedding.kernel_mean(points)
    expected = np.linalg.solve(gram, mean)
    weights = bq(embedding, points).final(len(points))
    scale = np.abs(expected).max()
    np.testing.assert_allclose(weights, expected, rtol=0, atol=1e-9 * scale)
    found = mmd2(embedding, points, weights)
    explained = mean @ expected
    assert np.isnan(found) or abs(found - (embedding.prior_variance - explained)) <= 1e-9 * max(
        embedding.prior_variance, explained
    )


@few
@given(case=cases())
def test_embeddings(case):
    """Kernel means and prior variances are those of one Hilbert space."""
    with clear_errors():
        kernel, target, points = case.build()
        embedding = embed(kernel, target)
        mean, diagonal = embedding.kernel_mean(points), kernel.diagonal(points)
        gram = kernel(points, points)
        variance = embedding.prior_variance
        assert np.isfinite(mean).all() and np.isfinite(gram).all() and np.isfinite(variance)
        assert variance >= 0 and (diagonal >= 0).all()
        np.testing.assert_array_equal(gram, gram.T)
        slack = 1 + 1e-9
        assert (np.abs(gram) <= slack * np.sqrt(diagonal[:, None] * diagonal)).all()
        assert (np.abs(mean) <= slack * np.sqrt(diagonal * variance)).all()
        # The squared distance of any weighted points is positive.
        weights = np.random.default_rng(case.seed).standard_normal((20, len(points)))
        weights *= np.sqrt(variance / diagonal.max()) if diagonal.any() else 1.0
        terms = variance - 2 * weights @ mean + np.einsum("ij,jk,ik->i", weights, gram, weights)
        size = variance + 2 * np.abs(weights) @ np.abs(mean)
        size += np.einsum("ij,jk,ik->i", *map(np.abs, (weights, gram, weights)))
        assert (terms >= -1e-12 * size).all()
        if case.family != "stein":
            gradient = embedding.kernel_mean_gradient(points)
            assert gradient.shape == points.shape and np.isfinite(gradient).all()
            assert np.isfinite(kernel.gradient(points, points)).all()
        event("made")


@few
@given(case=cases(), form=forms)
def test_weights(case, form):
    with clear_errors():
        kernel, target, points = case.build()
        given_points = in_form(points, form)
        before = np.array(given_points, copy=True)
        embedding = embed(kernel, target)
        known = {}
        for rule in RULES:
            made = rule(embedding, given_points)
            assert np.isfinite(made.matrix).all()
            assert len(made.matrix) == len(points) or made.stop
            np.testing.assert_array_equal(made.matrix, np.tril(made.matrix))
            if len(made.matrix):
                known[rule] = made.matrix[-1]
            found = mmd2_of_prefixes(embedding, given_points[: len(made.matrix)], made.matrix)
            assert not (found < 0).any()
        np.testing.assert_array_equal(np.array(given_points), before)
        points = np.asarray(given_points, dtype=float)
        check_optimum(embedding, points)
        if len(known) < len(RULES) or len(known[bq]) < len(points):
            event("no weights for all points")
            return
        for rule in (uniform, sum_to_one, simplex):
            assert abs(known[rule].sum() - 1) < 1e-6 * np.abs(known[rule]).sum()
        for rule in (uniform, nonnegative, simplex):
            assert (known[rule] >= 0).all()
        order = [(bq, sum_to_one), (bq, nonnegative), (sum_to_one, simplex)]
        order += [(nonnegative, simplex), (simplex, uniform)]
        errors = {rule: mmd2_and_rounding(embedding, points, known[rule]) for rule in RULES}
        near = len(distinct_points(kernel, points)[0]) < len(np.unique(points, axis=0))
        for better, worse in order:
            slack = 1e-9 * errors[worse][0] + 10 * (errors[better][1] + errors[worse][1])
            # Equal weights count near repeats; what the others lose without them is this at most.
            loss = 1e-4 * np.sqrt(kernel.diagonal(points).max()) if near and worse is uniform else 0
            most = (np.sqrt(max(errors[worse][0], 0)) + loss) ** 2
            assert errors[better][0] <= most + slack, (better, worse)
        event("made")


@few
@given(case=cases(), power=st.integers(-150, 150))
def test_units_of_length_do_not_matter(case, power):
    with clear_errors():
        unit = 1.0 if case.kind == "cube" else 2.0**power
        results = []
        for scale in (1.0, unit):
            kernel, target, points = case.build(scale)
            embedding = embed(kernel, target)
            rules = RULES if np.linalg.cond(kernel(points, points)) < 1e6 else [uniform]
            weights = [rule(embedding, points).final(len(points)) for rule in rules]
            made = bqlib.sbq(target, kernel, min(5, len(points)), rng=0, candidates=points)
            results.append((weights, made.points / scale, embedding.prior_variance))
        (weights, picked, variance), (own, own_picked, own_variance) = results
        factor = unit**-2 if case.family == "stein" else 1.0
        np.testing.assert_allclose(own_variance, factor * variance, rtol=1e-12)
        np.testing.assert_allclose(own_picked, picked, rtol=1e-12)
        for rule, one, other in zip(RULES, weights, own, strict=False):
            np.testing.assert_allclose(one, other, rtol=1e-6, atol=1e-9, err_msg=rule.__name__)
        event("made")
