import random

import numpy as np
import pytest

from bqlib import Embedding, ExponentiatedQuadratic, GaussianMixture, Uniform, embed
from bqlib.cli.main import main
from bqlib.designs.design import Design, checked_request, point_set
from bqlib.designs.herding import herding
from bqlib.embeddings import register
from bqlib.integrands import Integrands, rkhs_ball
from bqlib.kernels import Kernel
from bqlib.sweep import registry
from bqlib.sweep.check_plugin import check_plugin
from bqlib.weights import PrefixWeights, bq, uniform

PARAMETERS = {
    "empirical": {"points": np.random.default_rng(0).random((30, 2))},
    "gaussian_mixture": {
        "weights": [0.3, 0.7],
        "means": [[0.0, 0.0], [1.0, 1.0]],
        "covariances": [np.eye(2), np.eye(2) / 2],
    },
    "logistic_posterior": {"features": [[1.0, 2.0], [2.0, -1.0]], "labels": [0, 1]},
    "genz_gaussian_peak": {"difficulty": 3.0},
    "genz_oscillatory": {"difficulty": 3.0},
    "rough_bumps": {"narrowest": 0.1, "widest": 1.0},
}
BOX = {"lower": np.zeros(2), "upper": np.array([1.0, 2.0])}
OURS = [
    (kind, name) for kind, names in registry.PLACES.items() if kind != "study" for name in names
]


@pytest.mark.parametrize(("kind", "name"), OURS)
def test_ours_pass(kind, name):
    parameters = BOX if (kind, name) == ("target", "uniform") else PARAMETERS.get(name, {})
    findings = check_plugin(kind, registry.find(kind, name), parameters)
    assert len(findings) >= 5 or name == "own"
    failed = [finding.text.partition(":")[0] for finding in findings if not finding.passed]
    expected = []
    if name == "grid":  # nothing is drawn
        expected = ["another stream gives another result"]
    if name == "own":  # of designs: points alone have none
        expected = ["it returns PrefixWeights"]
    assert failed == expected


def failures(kind, function, **parameters):
    return [
        finding.text for finding in check_plugin(kind, function, parameters) if not finding.passed
    ]


class Normal(GaussianMixture):
    def __init__(self):
        super().__init__([1.0], [[0.0, 0.0]], [np.eye(2)])


class Flat(ExponentiatedQuadratic):
    def __init__(self, lengthscale):
        super().__init__(lengthscale=lengthscale)


def wrong(base, name, function):
    """A class whose method `name` spoils what that of its base returns."""

    def method(self, *arguments):
        return function(getattr(base, name)(self, *arguments), *arguments)

    return type("Wrong", (base,), {name: method})


@pytest.mark.parametrize(
    ("target", "told"),
    [
        (
            wrong(Normal, "sample", lambda x, n, rng: x[:, :1]),
            "sample has shape (7, 1), not (7, 2)",
        ),
        (
            wrong(Normal, "sample", lambda x, n, rng: x.astype("f4")),
            "sample has dtype float32, not",
        ),
        (
            wrong(Normal, "sample", lambda x, n, rng: x[::-1].copy()),
            "4 draws are not the first 4 of",
        ),
        (
            wrong(Normal, "sample", lambda x, n, rng: x + np.random.random()),  # noqa: NPY002
            "it draws from a global random state",
        ),
        (
            wrong(Normal, "sample", lambda x, n, rng: x + np.random.default_rng().random()),
            "two calls with the same stream differ",
        ),
        (
            wrong(Normal, "sample", lambda x, n, rng: np.ones((n, 2))),
            "two different streams give the same",
        ),
        (wrong(Normal, "score", lambda score, x: 1.01 * score), "score is the derivative of log_"),
        (
            wrong(Normal, "hessian", lambda hessian, x: hessian - 1),
            "hessian is the derivative of s",
        ),
        (wrong(Normal, "density", lambda density, x: 2 * density), "density is the exponential of"),
        # its embeddings are those of draws that are not shifted
        (
            wrong(Normal, "sample", lambda x, n, rng: x + 0.05),
            "kernel mean, against 100000 draws: 0.",
        ),
    ],
)
def test_a_wrong_target_is_told(target, told):
    assert any(told in failure for failure in failures("target", target))


def test_a_target_that_nothing_goes_with_is_told():
    class Bare:
        dim = 2

    assert failures("target", Bare) == [
        "it has an embedding: no kernel has one with Bare: register one, make Bare a subclass of a "
        "target of bqlib, or give it a score for the Stein kernel"
    ]

    class Worse:
        dim = 2.0

    assert failures("target", Worse) == [
        "dim is the dimension of its points: dim is 2.0; it must be a whole number of at least 1"
    ]


@pytest.mark.parametrize(
    ("kernel", "told"),
    [
        (wrong(Flat, "__call__", lambda gram, x, y: gram.T), "kernel(x, y) has shape (9, 12), not"),
        (wrong(Flat, "__call__", lambda gram, x, y: gram + x[:, :1]), "it is symmetric: "),
        (
            wrong(Flat, "__call__", lambda gram, x, y: gram - 0.5),
            "21 points has eigenvalues from -",
        ),
        (wrong(Flat, "diagonal", lambda diagonal, x: 2 * diagonal), "2, but 1 by the matrix"),
        (
            wrong(Flat, "gradient", lambda slope, x, y: -slope),
            "gradient(x, y) is the derivative in",
        ),
        (wrong(Flat, "gradient", lambda slope, x, y: slope + 0.1), "gradient of k(x, x) is twice"),
    ],
)
def test_a_wrong_kernel_is_told(kernel, told):
    assert any(told in failure for failure in failures("kernel", kernel))


class Scaled(Flat):
    factors, diagonal_only = (1, 1, 1, 1), False


@register(Scaled, GaussianMixture)
def scaled_mixture(kernel, target):
    if Scaled.diagonal_only and target.covariances[0, 0, 1]:
        raise ValueError("only diagonal covariances have a closed form")
    found = embed(ExponentiatedQuadratic(kernel.lengthscale), target)
    mean, slope, variance, both = Scaled.factors
    return Embedding(
        kernel,
        target,
        lambda x: mean * found.kernel_mean(x),
        lambda x: slope * found.kernel_mean_gradient(x),
        variance * found.prior_variance,
        lambda x: (mean * found.kernel_mean(x), both * slope * found.kernel_mean_gradient(x)),
    )


@pytest.mark.parametrize("diagonal_only", [False, True])
@pytest.mark.parametrize(
    ("factors", "told"),
    [
        ((1, 1, 1, 1), []),
        ((1.05, 1.05, 1.05, 1), ["kernel mean, against 100000 draws"]),
        ((1, 1.001, 1, 1), ["gradient of the kernel mean"]),
        ((1, 1, 1, 1.001), ["gradient of the kernel mean"]),
        ((1, 1, 1.05, 1), ["prior variance, against 100000 draws"]),
    ],
)
def test_a_wrong_embedding_is_told(factors, told, diagonal_only, monkeypatch):
    monkeypatch.setattr(Scaled, "factors", factors)
    monkeypatch.setattr(Scaled, "diagonal_only", diagonal_only)
    pair = "embedding of Scaled with GaussianMixture"
    found = [text.split(": ") for text in failures("kernel", Scaled)]
    assert {text[1] for text in found if text[0] == pair} == set(told)


def elsewhere(change, size=lambda n: n, stop=""):
    """A design whose points are changed."""

    def design(target, kernel, n, *, rng, candidates, initial=None):
        request = checked_request(target, kernel, n, rng, candidates, initial)
        points = change(request.pool, n, request.rng)
        return Design(request.embedding, points[: size(n)], uniform, stop)

    return design


@pytest.mark.parametrize(
    ("design", "told"),
    [
        (elsewhere(lambda pool, n, rng: pool), []),
        (elsewhere(lambda pool, n, rng: pool[:n][::-1]), ["the first points are the"]),
        (elsewhere(lambda pool, n, rng: pool, size=lambda n: n - 1), ["it returns a Design of"]),
        (elsewhere(lambda pool, n, rng: pool, stop="tired"), ["it returns a Design of"]),
        (point_set(elsewhere(lambda pool, n, rng: pool, stop="tired")), []),
        (
            point_set(elsewhere(lambda pool, n, rng: pool, lambda n: n - 1)),
            ["it returns a Design of"],
        ),
        (elsewhere(lambda pool, n, rng: pool * np.nan), ["it returns a Design of"]),
        (elsewhere(lambda pool, n, rng: pool + random.random()), ["the same stream gives",
                                                       "the first points are the"]),
        (elsewhere(lambda pool, n, rng: np.ones((n, 2))), ["another stream gives"]),
        (lambda target, kernel, n, *, rng, candidates: np.ones((n, 2)), ["it returns a Design of"]),
    ],
)  # fmt: skip
def test_a_wrong_design_is_told(design, told):
    found = failures("design", design)
    assert len(found) == len(told)
    assert all(text.startswith(start) for text, start in zip(found, told, strict=True))


def test_a_set_need_not_start_with_a_smaller_one():
    assert failures("design", point_set(elsewhere(lambda pool, n, rng: pool[:n][::-1]))) == []


def test_a_design_whose_rng_has_a_default_fits():
    def mine(target, kernel, n, *, rng=None, candidates=None, initial=None):
        return herding(target, kernel, n, rng=rng, candidates=candidates)

    assert failures("design", mine) == []


def test_a_design_that_changes_its_pool_or_leaves_it_is_told():
    def shifting(target, kernel, n, *, rng, candidates):
        made = herding(target, kernel, n, rng=rng, candidates=candidates)
        if isinstance(candidates, np.ndarray):
            candidates += 1
        return made

    assert failures("design", shifting) == [
        "it picks from the pool, and leaves it unchanged: it changes the pool"
    ]
    for rows in ([*range(1, 17)], [*range(15)], [*range(15), 999], [*range(15), 0.5]):

        def first(target, kernel, n, *, rng, candidates, rows=rows):
            request = checked_request(target, kernel, n, rng, candidates, None)
            return Design(request.embedding, request.pool[:n], uniform, rows=rows[:n])

        assert failures("design", first) == [
            "it picks from the pool, and leaves it unchanged: its rows are not those of its points "
            "in the pool"
        ]
    notes = [finding.text for finding in check_plugin("design", registry.find("design", "iid"), {})]
    assert any("(16 points are not from the pool)" in note for note in notes)


@pytest.mark.parametrize(
    ("change", "told"),
    [
        (lambda matrix, rng: matrix, []),
        (lambda matrix, rng: matrix + 1e-9, ["row n has no weights after n: row 1"]),
        (lambda matrix, rng: np.tril(matrix) / len(matrix), ["row n does not depend on"]),
        (lambda matrix, rng: matrix[:-1, :-1], ["it returns PrefixWeights: it has"]),
        (lambda matrix, rng: matrix + np.tril(np.full(matrix.shape, 1e-12)) * rng.random(),
         ["two calls give the same weights, and global random states do not change: two calls"]),
    ],
)  # fmt: skip
def test_a_wrong_weight_rule_is_told(change, told):
    rng = np.random.default_rng(0)

    def rule(embedding, points):
        return PrefixWeights(change(bq(embedding, points).matrix, rng))

    found = failures("weights", rule)
    assert len(found) == len(told)
    assert all(text.startswith(start) for text, start in zip(found, told, strict=True))


@pytest.mark.parametrize(
    ("integrals", "norms", "told"),
    [
        (1, 1, []),
        (1.1, 1, ["integrals, against 100000 draws: "]),
        (1, 0.01, ["errors are at most norm times MMD: an error is "]),
        (1, 0, ["it returns Integrands: a norm is 0"]),
    ],
)
def test_wrong_integrands_are_told(integrals, norms, told):
    def family(embedding, rng, *, functions: int):
        if isinstance(embedding.target, Uniform):
            raise TypeError("not with Uniform")
        found = rkhs_ball(embedding, rng, functions=functions)
        return Integrands(found.evaluate, integrals * found.integrals, norms * found.norms)

    found = [text for text in failures("integrand", family) if "GaussianMixture" in text]
    assert len(found) == len(told)
    assert all(
        f"under GaussianMixture: {start}" in text for text, start in zip(found, told, strict=True)
    )


def test_the_command_says_what_fails_and_exits_with_1(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        "from bqlib.weights import PrefixWeights, uniform\n\n"
        "def plus(embedding, points, by: float = 0.0):\n"
        "    return PrefixWeights(uniform(embedding, points).matrix + by)\n"
    )
    assert main(["check-plugin", "mine.py:plus"]) == 0
    assert capsys.readouterr().out.endswith("mine.py:plus, weights: 6 checks, 0 failed\n")
    assert main(["check-plugin", "mine.py:plus", "by=1e-3"]) == 1
    assert "FAIL row n has no weights after n: row 1 has a weight for point 2" in (
        capsys.readouterr().out
    )
    assert main(["check-plugin", "sbq", "refine=0"]) == 0
    for arguments, code, told in [
        (["mine.py:plas"], 1, 'has no "plas"; did you mean "plus"?'),
        (["mine.py:plus", "bye=2"], 2, 'bye: unknown key "bye"; did you mean "by"?'),
        (["mine.py:plus", "by"], 2, '"by" must be parameter=value'),
        (["uniform"], 2, '"uniform" is a target and a weight rule: write pack'),
        (["nothing"], 2, '"nothing" is not registered: write file.py'),
        (["mine.py:plus", "by="], 2, "by: must be a number, not empty"),
        (["mine.py:plus", "by=["], 2, "by: column 2: a value is missing before the end"),
        (["mine.py:plus", "by=*x"], 2, "by: column 1: put text that starts with * in quotes"),
        (["mine.py:plus", "by=\x07"], 2, "by: contains the control character '\\x07'"),
        (["mine.py:plus", 'by="\\ud800"'], 2, "by: contains \\ud800, half of a character"),
    ]:
        assert main(["check-plugin", *arguments]) == code
        assert told in capsys.readouterr().err


EXIT = "SystemExit in mine.py:6: 0"


@pytest.mark.parametrize(
    ("head", "body", "told"),
    [
        ("def mine(embedding, points):", "sys.exit(0)", f"it returns PrefixWeights: {EXIT}"),
        (
            "def mine(embedding, rng):",
            "sys.exit(0)",
            f"under GaussianMixture: it returns Integrands: {EXIT}",
        ),
        (
            "class mine(ExponentiatedQuadratic):\n  def __init__(self):",
            "sys.exit(0)",
            "it can be built from its parameters: SystemExit in mine.py:7: 0",
        ),
        (
            "class mine(ExponentiatedQuadratic):\n  @property\n  def dim(self):",
            "sys.exit(0)",
            "all checks can run: SystemExit in mine.py:8: 0",
        ),
        (
            "class mine:\n  @property\n  def dim(self):",
            "return 1 // 0",
            "dim is the dimension of its points: ZeroDivisionError in mine.py:8: ",
        ),
        ("def mine(embedding, points):", "raise KeyboardInterrupt", None),
    ],
)
def test_what_would_end_bqlib_fails_and_an_interrupt_interrupts(
    tmp_path, monkeypatch, capsys, head, body, told
):
    monkeypatch.chdir(tmp_path)
    (tmp_path / "mine.py").write_text(
        f"import sys\n\nfrom bqlib import ExponentiatedQuadratic\n\n{head}\n    {body}\n"
    )
    assert main(["check-plugin", "mine.py:mine"]) == (1 if told else 130)
    assert f"FAIL {told}" in capsys.readouterr().out or not told


def test_kernels_of_another_kind_of_points_are_checked_there():
    class Unit(Kernel):
        dim = 1

        def __call__(self, x, y):
            x, y = self._points(x, y)
            if min(x.min(), y.min()) < 0 or max(x.max(), y.max()) > 1:
                raise ValueError("a point lies outside")
            return np.minimum(x, y.T)

        def diagonal(self, x):
            return x[:, 0]

        def gradient(self, x, y):
            return ((x < y.T) + 0.5 * (x == y.T))[:, :, None]

    assert failures("kernel", Unit) == []
