"""Templates of submissions: valid, without points, and never in place of a file."""

import csv
import json
import resource

import numpy as np
import pytest

from bqlib.candidates import Candidates
from bqlib.designs.iid import iid
from bqlib.suite.mistakes import SubmissionError
from bqlib.suite.scores import score
from bqlib.suite.submission import read_submission, shapes_of_suite
from bqlib.suite.template import pool_of, write_template
from bqlib.sweep.problems import problems
from bqlib.trial import trial
from bqlib.weights import uniform


def test_a_template_is_valid_and_has_no_points(tmp_path):
    files = write_template(tmp_path, "kmeans")
    assert {path.name for path in tmp_path.iterdir()} == {path.name for path in files}
    found = read_submission(tmp_path)
    assert found.sets == {} and found.seeds == 0
    assert (found.about.method, found.about.suite) == ("kmeans", "bqbench-1")
    with pytest.raises(SubmissionError, match=r"points\.csv: has no rows: there is nothing to"):
        score(found)
    readme = (tmp_path / "README.txt").read_text().split("\n")
    assert len(readme) <= 12 and max(map(len, readme)) <= 100


def test_a_template_that_is_filled_in_is_scored(tmp_path):
    write_template(tmp_path, "kmeans")
    with open(tmp_path / "points.csv", "a") as file:
        file.write("box_1d_brownian,0,1,1,0.5" + "," * 19 + "\n")
    assert score(read_submission(tmp_path))["status"].values.ravel().tolist().count(1) == 1


def test_the_problems_are_those_of_the_suite(tmp_path):
    write_template(tmp_path, "kmeans")
    told = json.loads((tmp_path / "problems.json").read_text())
    assert list(told) == list(problems())
    for name, problem in problems().items():
        assert (told[name]["dim"], told[name]["n"]) == shapes_of_suite()[name]
        assert told[name]["sha256"] == problem.sha256
        assert told[name]["kernel"] == problem.kernel


def given_to_designs(problem, seed):
    """The pool that a design gets in a trial of a sweep."""
    pools = []

    def design(target, kernel, n, *, rng, candidates):
        pools.append(candidates)
        return iid(target, kernel, n, rng=rng, candidates=candidates)

    target, kernel = problem.build()
    trial(target, kernel, design, uniform, problem.candidates, 1, seed)
    return pools[0]


@pytest.mark.parametrize("name", ["normal_2d_eq", "rings_eq"])
def test_a_pool_is_that_of_a_sweep(name):
    for seed in range(2):
        np.testing.assert_array_equal(pool_of(name, seed), given_to_designs(problems()[name], seed))
    assert not np.array_equal(pool_of(name, 0), pool_of(name, 1))


def test_pools_are_written_with_all_their_digits(tmp_path, monkeypatch):
    names = ["rings_eq", "banana_stein"]
    few = {name: problems()[name] for name in names}
    monkeypatch.setattr("bqlib.suite.template.problems_of_suite", lambda: few)
    files = write_template(tmp_path, "kmeans", pools=True, seeds=2)
    assert len(files) == 4 + 4
    for name in names:
        for seed in range(2):
            with open(tmp_path / "pools" / name / f"{seed}.csv", newline="") as file:
                head, *rows = csv.reader(file)
            assert head == ["x_1", "x_2"]
            np.testing.assert_array_equal(np.array(rows, dtype=float), pool_of(name, seed))
    assert read_submission(tmp_path).sets == {}


@pytest.mark.parametrize("name", ["README.txt", "submission.json", "points.csv", "problems.json"])
def test_a_template_replaces_nothing(name, tmp_path):
    (tmp_path / name).symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError, match=f"has {name} already"):
        write_template(tmp_path, "kmeans")
    assert [path.name for path in tmp_path.iterdir()] == [name]


def test_of_a_template_that_cannot_be_written_no_file_is_left(tmp_path):
    (tmp_path / "mine.txt").touch()
    limits = resource.getrlimit(resource.RLIMIT_FSIZE)
    resource.setrlimit(resource.RLIMIT_FSIZE, (10_000, limits[1]))  # bytes, as of a full disk
    try:
        with pytest.raises(OSError):
            write_template(tmp_path, "kmeans")
    finally:
        resource.setrlimit(resource.RLIMIT_FSIZE, limits)
    assert [path.name for path in tmp_path.iterdir()] == ["mine.txt"]
    assert write_template(tmp_path, "kmeans")


def test_pools_replace_nothing(tmp_path):
    (tmp_path / "pools").mkdir()
    with pytest.raises(FileExistsError, match="has pools already"):
        write_template(tmp_path, "kmeans", pools=True)
    assert write_template(tmp_path, "kmeans")


@pytest.mark.parametrize(
    ("method", "seeds", "said"),
    [
        ("sbq", 5, '"sbq" is an algorithm of bqlib'),
        ("../a", 5, "is not a valid label"),
        ("kmeans", 0, "seeds is 0; it must be a whole number from 1 to 100"),
        ("kmeans", 101, "seeds is 101"),
    ],
)
def test_what_no_template_may_have_is_told(method, seeds, said, tmp_path):
    with pytest.raises(ValueError, match=said):
        write_template(tmp_path, method, seeds=seeds)
    assert not list(tmp_path.iterdir())


def test_pools_of_the_suite_are_kept_for_the_whole_design():
    assert not any(problem.candidates.fresh for problem in problems().values())
    assert all(isinstance(problem.candidates, Candidates) for problem in problems().values())
