"""The problems of the suite: what they are, and that they stay as they are."""

import importlib.util
import json
import re

import numpy as np
import pytest
from project import CONFIG, PROJECT

from bqlib import embed
from bqlib.sweep.problems import SUITE, hash_of, problems
from bqlib.sweep.values import checked_label

ALL = problems()
KINDS = {
    "gaussian_mixture": "mixture",
    "uniform": "box",
    "empirical": "data set",
    "banana": "unnormalised",
    "logistic_posterior": "unnormalised",
}


def written_by():
    """The script that writes the suite, as a module."""
    file = PROJECT / "benchmarks" / "suite_problems.py"
    spec = importlib.util.spec_from_file_location("suite_problems", file)
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def test_the_problems_are_those_of_their_version():
    """A changed number is a new version: then this file gets the new hash."""
    known = json.loads((PROJECT / "tests" / "reference" / "problems.json").read_text("utf-8"))
    assert known == {f"{name}@{one.version}": one.sha256 for name, one in ALL.items()}


def test_the_suite_has_all_kinds_dims_and_kernels():
    assert len(ALL) >= 40
    assert {KINDS[one.target["family"]] for one in ALL.values()} == set(KINDS.values())
    assert {one.build()[0].dim for one in ALL.values()} == {1, 2, 3, 5, 10, 20}
    kernels = [
        (one.kernel["family"], one.kernel.get("nu", one.kernel.get("order")))
        for one in ALL.values()
    ]
    assert {("matern", nu) for nu in (0.5, 1.5, 2.5)} <= set(kernels)
    assert {("korobov", order) for order in (1, 2, 3)} <= set(kernels)
    assert {"exponentiated_quadratic", "rational_quadratic", "brownian", "stein"} <= dict(
        kernels
    ).keys()


@pytest.mark.parametrize("name", ALL)
def test_a_problem_is_what_it_says(name):
    problem = ALL[name]
    assert checked_label(name) == name
    target, kernel = problem.build()
    variance = embed(kernel, target).prior_variance
    assert problem.prior_variance == pytest.approx(variance, rel=1e-12)
    levels = np.array(problem.levels)
    assert len(levels) == 51
    assert levels[0] == pytest.approx(np.sqrt(variance), rel=1e-5)
    assert np.diff(np.log(levels)) == pytest.approx(np.log(levels[-1] / levels[0]) / 50, rel=1e-2)
    assert problem.sizes[-1] == problem.n == (400 if name == "chen2010_eq" else 128)
    pool = problem.candidates.draw(target, np.random.default_rng(0))
    assert pool.shape == (problem.candidates.size, target.dim)
    assert np.isfinite(kernel.diagonal(pool)).all()


@pytest.mark.parametrize("name", ALL)
def test_the_best_known_values_lie_below_the_first_level_and_never_rise(name):
    problem = ALL[name]
    sizes, best, sources = zip(*problem.best_known, strict=True)
    assert sizes[-1] == problem.n and list(sizes) == sorted(sizes)
    assert best[0] < problem.levels[0] and all(np.diff(best) <= 0)
    assert best[-1] <= problem.levels[-1] * (1 + 1e-5)
    assert all(re.fullmatch(r"[\w.]+", source) for source in sources)


def test_the_hash_covers_every_number_but_not_the_best_known():
    content = {"name": "a", "version": 1, "levels": [1.0, 0.5], "n": 3}
    assert hash_of(content) == hash_of(dict(reversed(content.items())))
    for key, value in {"version": 2, "levels": [1.0, 0.25], "n": 4, "name": "b"}.items():
        assert hash_of(content | {key: value}) != hash_of(content)
    text = (CONFIG / "suites" / f"{SUITE}.yaml").read_text("utf-8")
    assert "best_known:" in text


def test_the_targets_are_those_of_their_seeded_generators():
    folder = CONFIG / "suites" / "targets"
    made = written_by().files()
    assert {path.stem for path in folder.glob("*.json")} == set(made)
    for name, content in made.items():
        there = json.loads((folder / f"{name}.json").read_text("utf-8"))
        numbers = {key: value for key, value in content.items() if isinstance(value, list)}
        for key, value in numbers.items():  # other versions of numpy may draw other numbers
            assert np.shape(there[key]) == np.shape(value)
        assert there.keys() == content.keys()
