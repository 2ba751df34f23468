"""Answers of kernels, targets and embeddings that others wrote: a bad one is named by its point."""

import re
from dataclasses import dataclass

import numpy as np
import pytest
from hypothesis import event, given
from hypothesis import strategies as st

import bqlib
from bqlib import (
    Candidates,
    Embedding,
    Empirical,
    ExponentiatedQuadratic,
    GaussianMixture,
    Product,
    Stein,
    Unnormalised,
    embed,
    mmd,
)
from bqlib.designs.design import Design
from bqlib.embeddings import register
from bqlib.integrands import Integrands
from bqlib.kernels import Kernel
from bqlib.sweep import registry
from bqlib.weights import PrefixWeights, bq, conditioning, final, sum_to_one, uniform

DESIGNS = sorted({*registry.PLACES["design"]} - {"msip"})  # which takes one kernel alone
CUBE = ["grid", "halton", "latin_hypercube", "lattice", "sobol"]  # mapped from the unit cube
ONE_POOL = ("compress", "kernel_thinning", "recombination")  # not fresh ones, nor initial points
FREE = ["iid", *CUBE]  # they look at no candidates
SIZE = 40
POOL = np.random.default_rng(0).normal(size=(SIZE, 2))
NORMAL = GaussianMixture([1.0], [[0.0, 0.0]], [np.eye(2)])
INNER = ExponentiatedQuadratic(0.8)


class Blob:
    """A target of somebody else: a normal distribution with faults."""

    dim = 2

    def __init__(self, bad=None, value=np.nan, kind=""):
        self.bad, self.value, self.kind = bad, value, kind

    def faulty(self, x, answer, kind):
        assert len(x), f"{kind} is called without points"
        answer = np.array(answer)
        if kind == self.kind:
            answer[(x == self.bad).all(axis=1)] = self.value
        return answer

    def sample(self, n, rng):
        return self.faulty(x := rng.normal(size=(n, 2)), x, "sample")

    def score(self, x):
        return self.faulty(x, [-row for row in x], "score")

    def hessian(self, x):
        return self.faulty(x, [-np.eye(2) for row in x], "hessian")

    def log_density(self, x):
        return self.faulty(x, [-row @ row / 2 for row in x], "log_density")


@dataclass(frozen=True, eq=False)
class Wrapped(Kernel):
    """A kernel of somebody else, with the faults of a Blob."""

    blob: Blob
    dim = 2

    def __call__(self, x, y):
        gram = self.blob.faulty(x, INNER(x, y), "rows")
        return self.blob.faulty(y, gram.T, "gram").T

    def diagonal(self, x):
        return self.blob.faulty(x, INNER.diagonal(x), "diagonal")

    def gradient(self, x, y):
        return self.blob.faulty(x, INNER.gradient(x, y), "gradient")


@register(Wrapped, Blob)
def wrapped_blob(kernel, target):
    own = embed(INNER, NORMAL)
    return Embedding(
        kernel,
        target,
        lambda x: target.faulty(x, own.kernel_mean(x), "kernel_mean"),
        lambda x: target.faulty(x, own.kernel_mean_gradient(x), "kernel_mean_gradient"),
        own.prior_variance,
    )


def pair(kind, bad=None, value=np.nan):
    """A target and a kernel with one fault, of a kind; and a pair without, for ``""``."""
    blob = Blob(bad, value, kind)
    if kind in ("score", "hessian"):
        return blob, Stein(blob, 0.8, constant=1.0)
    return blob, Wrapped(blob)


@given(
    name=st.sampled_from([name for name in DESIGNS if name not in FREE]),
    kind=st.sampled_from(["score", "diagonal", "gram", "kernel_mean"]),
    row=st.integers(0, SIZE - 1),
    value=st.sampled_from([np.nan, np.inf, -np.inf]),
    start=st.booleans(),
)
def test_a_design_names_the_candidate_with_a_bad_answer(name, kind, row, value, start):
    target, kernel = pair(kind, POOL[row], value)
    if kind == "diagonal" and name == "frank_wolfe":
        event("k(x, x) of a candidate is not looked at")
        return
    if name == "stein_thinning":
        kind = "score"  # it takes Stein kernels alone
        target, kernel = pair(kind, POOL[row], value)
    if name in ("compress", "kernel_thinning"):
        start = False
    initial = [[0.1, 0.2]] if start else None
    with pytest.raises(ValueError, match=rf"infinite.* row {row}: {re.escape(str(POOL[row]))}"):
        getattr(bqlib, name)(target, kernel, 8, rng=0, candidates=POOL, initial=initial)


@pytest.mark.parametrize("name", DESIGNS)
@pytest.mark.parametrize("kind", ["", "score"])
@pytest.mark.parametrize("fresh", [False, True])
def test_no_function_is_called_without_points(name, kind, fresh):
    target, kernel = pair(kind, np.zeros(2))
    if name == "grid":
        return  # one dimension
    if name in CUBE:
        target = GaussianMixture(NORMAL.weights, NORMAL.means, NORMAL.covariances)
        kernel = Stein(target, 0.8, constant=1.0)
    pool = Candidates(SIZE, fresh=True) if fresh else POOL
    if name == "stein_thinning":
        kernel = Stein(target, 0.8)
    if name in ONE_POOL and fresh:
        return
    if name == "recombination":
        target, kernel = pair("", np.zeros(2))
    # Some do not start from points.
    whole = name in (*ONE_POOL, "latin_hypercube", "lattice")
    for initial in (None, np.empty((0, 2)), POOL[:3] + 0.01)[: 2 if whole else 3]:
        options = {"rng": 0, "candidates": pool, "initial": initial}
        design = getattr(bqlib, name)(target, kernel, 5, **options)
        assert np.isfinite(design.weights).all()


@pytest.mark.parametrize("rule", [uniform, bq, sum_to_one])
def test_no_function_is_called_without_points_by_weights_and_discrepancies(rule):
    target, kernel = pair("")
    embedding, nothing = embed(kernel, target), np.empty((0, 2))
    assert rule(embedding, nothing).matrix.shape == (0, 0)
    assert mmd(embedding, nothing, []) == np.sqrt(embedding.prior_variance)
    assert embedding.kernel_mean(nothing).shape == (0,)
    assert embedding.kernel_mean_gradient(nothing).shape == (0, 2)
    stein = Stein(target)
    assert stein(nothing, POOL).shape == (0, SIZE) and stein.diagonal(nothing).shape == (0,)
    assert stein.gradient(nothing, POOL).shape == (0, SIZE, 2)
    both = Product([target, Unnormalised(1, log_density=lambda x: np.array([-x[0][0]] * len(x)))])
    assert both.log_density(np.empty((0, 3))).shape == (0,)
    both = Product([target, target])
    assert both.score(np.empty((0, 4))).shape == (0, 4)
    assert both.hessian(np.empty((0, 4))).shape == (0, 4, 4)


ROW = 7
OPTIONS = {"rng": 0, "candidates": POOL}


@pytest.mark.parametrize(
    "kind, call",
    [
        ("score", lambda target, kernel: kernel(POOL, POOL)),
        ("score", lambda target, kernel: Product([target]).score(POOL)),
        ("score", lambda target, kernel: bq(embed(kernel, target), POOL)),
        ("hessian", lambda target, kernel: kernel.gradient(POOL, POOL)),
        ("hessian", lambda target, kernel: Product([target]).hessian(POOL)),
        ("log_density", lambda target, kernel: Product([target]).log_density(POOL)),
        ("log_density", lambda target, kernel: Product([target]).density(POOL)),
        ("kernel_mean", lambda target, kernel: embed(kernel, target).kernel_mean(POOL)),
        (
            "kernel_mean_gradient",
            lambda target, kernel: embed(kernel, target).kernel_mean_gradient(POOL),
        ),
        ("gram", lambda target, kernel: bq(embed(kernel, target), POOL)),
        ("gram", lambda target, kernel: mmd(embed(kernel, target), POOL, np.ones(SIZE))),
        ("gram", lambda target, kernel: conditioning(embed(kernel, target), POOL, np.ones(SIZE))),
        ("diagonal", lambda target, kernel: sum_to_one(embed(kernel, target), POOL)),
        ("diagonal", lambda target, kernel: embed(kernel, Empirical(POOL))),
        (
            "gradient",
            lambda target, kernel: bqlib.joint(target, kernel, 30, rng=0, candidates=POOL),
        ),
    ],
)
def test_a_bad_answer_is_named_with_its_point(kind, call):
    with pytest.raises(ValueError, match="NaN or infinite") as caught:
        call(*pair(kind, POOL[ROW]))
    assert "row " in str(caught.value) and str(POOL[ROW]) in str(caught.value)


def test_a_block_of_a_data_set_names_the_row_among_all():
    points = np.random.default_rng(1).normal(size=(1500, 2))
    for kind in ("diagonal", "rows"):
        kernel = pair(kind, points[1300])[1]
        with pytest.raises(ValueError, match=r"infinite.* row 1300"):
            embed(kernel, Empirical(POOL)).kernel_mean(points)


class Shorter(Kernel):
    """A kernel of somebody else that forgets the second points."""

    dim = 2

    def __call__(self, x, y):
        return np.ones(len(x))

    def diagonal(self, x):
        return np.ones(len(x))

    def gradient(self, x, y):
        return np.ones(x.shape)


def test_a_block_of_a_data_set_must_have_its_shape():
    with pytest.raises(ValueError, match=r"k\(x, y\) of Shorter returned shape \(2,\) for"):
        embed(Shorter(), Empirical(POOL))


def test_f_may_return_one_array_again_and_again():
    design = bqlib.iid(NORMAL, INNER, 6, rng=0)
    kept = np.zeros(())

    def f(x):
        kept[...] = x[0]
        return kept

    assert design.integrate(f).mean == design.integrate(lambda x: x[0]).mean


def test_minus_infinity_is_a_log_density():
    outside = Product([pair("log_density", POOL[ROW], -np.inf)[0]])
    assert outside.log_density(POOL)[ROW] == -np.inf and outside.density(POOL)[ROW] == 0


@pytest.mark.parametrize(
    "answer, error, said",
    [
        (None, TypeError, "the score of Unnormalised returned None; it must return numbers"),
        (POOL[:3], ValueError, r"returned shape (3, 2) for points of shape (40, 2); it must"),
        (POOL[:, 0], ValueError, "returned shape (40,) for points of shape (40, 2); it must"),
        (1j * POOL, TypeError, "what the score of Unnormalised returned must hold real numbers"),
        (POOL.astype(str), TypeError, "what the score of Unnormalised returned must hold real"),
    ],
)
def test_answers_of_another_form_are_told(answer, error, said):
    target = Unnormalised(2, score=lambda x: answer)
    with pytest.raises(error, match=re.escape(said)):
        bqlib.sbq(target, Stein(target, constant=1.0), 5, rng=0, candidates=POOL)


@pytest.mark.parametrize("fresh", [False, True])
@pytest.mark.parametrize(
    "draws, said",
    [
        (lambda n: np.full((n, 2), np.nan), "draws from Blob hold NaN or infinity, first in row 0"),
        (lambda n: np.zeros((n, 3)), r"draws from Blob have shape \(\d+, 3\); they must have"),
        (lambda n: np.zeros((n - 1, 2)), r"draws from Blob are \d+, not \d+: sample\(n, rng\)"),
    ],
)
def test_draws_of_a_target_are_checked(draws, said, fresh):
    target, kernel = pair("")
    target.sample = lambda n, rng: draws(n)
    for name in DESIGNS:
        if name in CUBE or (fresh and name in ONE_POOL):
            continue
        own = Stein(target) if name == "stein_thinning" else kernel
        with pytest.raises(ValueError, match=said):
            getattr(bqlib, name)(target, own, 5, rng=0, candidates=Candidates(9, fresh=fresh))


@pytest.mark.parametrize("value", [np.nan, np.inf])
def test_a_prior_variance_is_finite(value):
    with pytest.raises(ValueError, match=f"prior variance of .* under .* is {value}; it must be"):
        Embedding(INNER, NORMAL, lambda x: x[:, 0], lambda x: x, value)


def test_a_prior_variance_is_a_number_of_its_own():
    variance = np.array(0.5)
    embedding = Embedding(INNER, NORMAL, lambda x: x[:, 0], lambda x: x, variance)
    variance[...] = 2.0
    assert embedding.prior_variance == 0.5


def test_points_of_a_design_of_somebody_else_are_checked():
    embedding = embed(INNER, NORMAL)
    with pytest.raises(ValueError, match="points of the design hold NaN or infinity, first in row"):
        Design(embedding, np.full((3, 2), np.nan), uniform)
    with pytest.raises(ValueError, match=r"points of the design have shape \(3, 1\)"):
        Design(embedding, POOL[:3, :1], uniform)


def test_a_rule_of_somebody_else_is_checked():
    design = bqlib.iid(NORMAL, INNER, 3, rng=0)
    with pytest.raises(TypeError, match="the rule returned ndarray; it must return PrefixWeights"):
        final(lambda embedding, points: np.ones(3), design.embedding, design.points)
    nan = PrefixWeights(np.full((3, 3), np.nan))
    with pytest.raises(ValueError, match=r"weights are NaN or infinite at points \[0, 1, 2\]"):
        design.integrate(lambda x: x[0], rule=lambda embedding, points: nan)


def test_integrands_of_somebody_else_are_checked():
    def made(answer):
        return Integrands(lambda x: np.full((len(x), 2), answer), np.zeros(2))

    assert made(1.0).errors(np.empty((0, 2)), np.empty((0, 0))).shape == (0, 2)
    assert made(1.0).errors(POOL[:2], np.eye(2)).tolist() == [[1.0, 1.0], [1.0, 1.0]]
    with pytest.raises(ValueError, match="evaluate of Integrands is NaN or infinite at 2 of 2"):
        made(np.nan).errors(POOL[:2], np.eye(2))
    with pytest.raises(ValueError, match=r"returned shape \(2, 2\) for points .* shape \(2, 3\)"):
        Integrands(made(1.0).evaluate, np.zeros(3)).errors(POOL[:2], np.eye(2))
