"""Sweeps from Python: objects become what a sweep file would say of them."""

from functools import partial

import numpy as np
import pytest

from bqlib import (
    Candidates,
    Empirical,
    ExponentiatedQuadratic,
    GaussianMixture,
    Korobov,
    Matern,
    RationalQuadratic,
    Stein,
    Uniform,
    Unnormalised,
    integrands,
    sbq,
    weights,
)
from bqlib.kernels import Brownian
from bqlib.sweep.objects import experiments_of, united
from bqlib.sweep.words import SweepError

SQUARE = Uniform([0.0, 0.0], [1.0, 1.0])
NORMAL = GaussianMixture([1.0], [[0.0, 0.5]], [[[1.0, 0.5], [0.5, 2.0]]])


def experiments(target=SQUARE, kernel=Matern(0.5), algorithms="sbq", n=5, seeds=1, **others):  # noqa: B008
    keys = {"lengthscales": None, "candidates": {"size": 20}, "integrands": None}
    keys |= {"rate_windows": ()} | others
    return experiments_of(target, kernel, algorithms, n, seeds, **keys)


def only(**arguments):
    (experiment,) = experiments(**arguments)
    return experiment


@pytest.mark.parametrize(
    ("kernel", "content", "lengthscale"),
    [
        (Matern(0.3, nu=1.5), {"family": "matern", "nu": 1.5, "scale": "unit"}, 0.3),
        (
            RationalQuadratic([0.3, 2.0], alpha=2.0),
            {"family": "rational_quadratic", "alpha": 2.0, "scale": "unit", "shape": [0.3, 2.0]},
            1.0,
        ),
        (
            ExponentiatedQuadratic(covariance=[[2.0, 1.0], [1.0, 2.0]], scale="density"),
            {
                "family": "exponentiated_quadratic",
                "scale": "density",
                "shape": [[2.0, 1.0], [1.0, 2.0]],
            },
            1.0,
        ),
        (Korobov(), {"family": "korobov", "order": 1}, 1.0),
        (Korobov(3), {"family": "korobov", "order": 3}, 1.0),
    ],
    ids=lambda value: type(value).__name__,
)
def test_a_kernel_is_described_as_in_a_sweep_file(kernel, content, lengthscale):
    target = NORMAL if getattr(kernel, "covariance", None) is not None else SQUARE
    experiment = only(kernel={"mine": kernel}, target=target)
    assert experiment.kernels == {"mine": content}
    assert experiment.lengthscales == (lengthscale,)
    x = np.random.default_rng(0).random((3, 2))
    _, same = experiment.unsigned_spec(experiment.cells()[0]).build()
    assert np.array_equal(same(x, x), kernel(x, x))


@pytest.mark.parametrize(
    "target", [NORMAL, SQUARE, Empirical([[0.0, 1.0], [2.0, 3.0]], [0.2, 0.8])]
)
def test_a_target_is_described_as_in_a_sweep_file(target):
    experiment = only(target=target, kernel=ExponentiatedQuadratic(0.5), candidates={"size": 5})
    ((label, content),) = experiment.targets.items()
    assert content["family"] == label
    same = experiment.build_targets()[label]
    assert type(same) is type(target)
    for name in content.keys() - {"family"}:
        assert np.array_equal(getattr(same, name), getattr(target, name))


@pytest.mark.parametrize("kernel", [Matern(0.5) + Matern(1.0), 2 * Matern(0.5)])
def test_what_no_sweep_file_can_say_stays_the_object_it_is(kernel):
    experiment = only(kernel=kernel)
    assert experiment.unsigned_spec(experiment.cells()[0]).build()[1] is kernel
    (label,) = experiment.kernels
    assert label in ("sum_kernel", "scaled_kernel")
    family = experiment.canonical()["kernels"][label]["family"]
    assert family.startswith("bqlib.kernels.") and family.endswith(type(kernel).__name__)


def test_a_kernel_of_a_target_goes_with_that_target():
    stein = Stein(NORMAL, 0.5, constant=1.0)
    experiment = only(target=NORMAL, kernel=stein)
    assert experiment.kernels["stein"] == {
        "family": "stein",
        "beta": -0.5,
        "constant": 1.0,
        "units": None,
    }
    assert experiment.lengthscales == (0.5,)
    density = Unnormalised(2, score=NORMAL.score)
    box = {"size": 9, "source": "box", "box": [[-1, 1], [-1, 1]]}
    kernel = Stein(density, 0.5, constant=1.0)
    experiment = only(target=density, kernel=kernel, candidates=box)
    target, same = experiment.unsigned_spec(experiment.cells()[0]).build()
    assert target is density
    assert same.target is density
    with pytest.raises(SweepError, match=r"iid cannot work: it draws .* cannot be drawn from"):
        only(target=density, kernel=kernel, candidates=box, algorithms=["iid", "sbq"])
    other = GaussianMixture([1.0], [[0.0, 0.5]], [np.eye(2)])
    with pytest.raises(SweepError, match="belongs to another target"):
        experiments(target=[NORMAL, other], kernel=stein)


def test_classes_and_functions_that_sweeps_know_have_their_names():
    known = only(
        kernel=Matern,
        lengthscales=0.5,
        algorithms=[
            sbq,
            {"name": "fine", "design": {"family": sbq, "refine": 5}, "weights": weights.simplex},
        ],
        integrands={"ball": {"family": integrands.rkhs_ball, "functions": 2}},
        candidates=Candidates(30, source="box", box=[(0, 1), (0, 1)]),
    ).canonical()
    assert known["kernels"]["matern"]["family"] == "matern"
    assert [a["design"] for a in known["algorithms"]] == ["sbq", "sbq"]
    assert known["algorithms"][1]["weights"] == "simplex"
    assert known["algorithms"][1]["design_parameters"] == {"refine": 5}
    assert known["integrands"]["ball"]["family"] == "rkhs_ball"
    assert known["candidates"] == {
        "box": [[0.0, 1.0], [0.0, 1.0]], "fresh": False, "inflation": 2.0, "size": 30,
        "source": "box",
    }  # fmt: skip


def test_kernels_are_grouped_by_their_length_scales():
    kernels = [Matern(0.3), Matern(0.3, nu=1.5), Matern(0.6), ExponentiatedQuadratic(1.0)]
    found = experiments(kernel=kernels)
    assert [(list(e.kernels), e.lengthscales) for e in found] == [
        (["matern"], (0.3, 0.6)),
        (["matern_2"], (0.3,)),
        (["exponentiated_quadratic"], (1.0,)),
    ]
    whole = united(found)
    assert list(whole.kernels) == ["matern", "matern_2", "exponentiated_quadratic"]
    assert whole.lengthscales == (0.3, 0.6, 1.0)


def test_length_scales_are_of_all_kernels_that_are_no_objects():
    found = experiments(kernel=[Matern(0.3), ExponentiatedQuadratic], lengthscales=(1, 2))
    assert [(list(e.kernels), e.lengthscales) for e in found] == [
        (["matern"], (0.3,)),
        (["exponentiated_quadratic"], (1.0, 2.0)),
    ]


def test_several_of_each_can_come_from_any_iterable():
    found = only(target=iter([SQUARE]), kernel=iter([Matern(0.5)]), algorithms=iter(["iid", "sbq"]))
    assert list(found.targets) == ["uniform"]
    assert [a.name for a in found.algorithms] == ["iid", "sbq"]


def test_targets_of_one_family_get_numbers():
    assert list(only(target=[SQUARE, Uniform([0, 0], [2, 2])]).targets) == ["uniform", "uniform_2"]


@pytest.mark.parametrize(
    ("wrong", "said"),
    [
        ({"target": "chen"}, 'targets[0]: unknown target "chen". Allowed: chen2010_mixture'),
        ({"target": {"mine": "chen2010_mixture"}}, "mine is the text 'chen2010_mixture'"),
        ({"target": np.ones((3, 2))}, "is of type ndarray; it must be a target"),
        ({"target": Uniform}, "is the class Uniform; it must be a target"),
        ({"target": []}, "target: must not be empty"),
        ({"target": {"Bad Name": SQUARE}}, '"Bad Name" is not a valid label'),
        ({"target": "a\udce9"}, "has characters that UTF-8 cannot hold"),
        ({"target": {None: SQUARE}}, "target: the label None must be a text"),
        ({"target": {"": SQUARE}}, '"" is not a valid label'),
        ({"kernel": {"": Matern(0.5)}}, '"" is not a valid label'),
        ({"kernel": Matern, "lengthscales": [[0.5]]}, "must be a list of positive numbers"),
        ({"candidates": 0}, "candidates: is of type int; it must be a bqlib.Candidates"),
        ({"integrands": 0}, "integrands: must be a mapping"),
        (
            {"algorithms": {"name": "mine", "design": partial(sbq, refine=5), "weights": "bq"}},
            "a design must be a function(target, kernel, n, rng=, candidates=, ...)",
        ),
        ({"kernel": 3}, "is of type int; it must be a kernel"),
        ({"kernel": {}}, "kernel: must not be empty"),
        ({"kernel": "matern"}, "lengthscales: missing: give a list of positive numbers"),
        ({"kernel": "brownian", "lengthscales": 2}, "brownian has no length-scale"),
        ({"lengthscales": 0.5}, "all kernels are objects, which have their own"),
        ({"kernel": Brownian(), "target": NORMAL}, "Brownian"),
        ({"algorithms": lambda target: 0}, "has no weights: give {'name': ..., 'design': ..."),
        (
            {"algorithms": {"name": "mine", "design": lambda target: 0, "weights": "bq"}},
            "takes (target); a design must be a function(target, kernel, n, rng=, candidates=",
        ),
        ({"algorithms": []}, "algorithms: must not be empty"),
        ({"n": 2.5}, "n: must be a whole number"),
        ({"seeds": [1, 2]}, "seeds: must be a whole number"),
        ({"candidates": np.ones((9, 2))}, "is of type ndarray; it must be a bqlib.Candidates"),
        ({"integrands": 3}, "integrands: must be a mapping"),
        ({"rate_windows": 3}, "rate_windows: must be a list"),
        ({"rate_windows": [(2, 9)]}, "rate_windows[0]: must end at n = 5 or before, not at 9"),
    ],
)
def test_what_is_wrong_is_told(wrong, said):
    with pytest.raises(SweepError) as caught:
        experiments(**wrong)
    assert str(caught.value).startswith("bqlib.curves: ")
    assert said in str(caught.value)
