"""Sweeps that list problems of the suite in place of a grid."""

import json

import pytest
from jsonschema import Draft202012Validator
from written_sweep import loaded, problems_of

from bqlib.candidates import Candidates
from bqlib.sweep.file import json_schema
from bqlib.sweep.problems import SUITE, problems
from bqlib.sweep.spec import Cell

SWEEP = """\
name: three
problems: [box_1d_brownian, rings_eq@1, chen2010_eq]
algorithms: [iid, halton_bq, sbq, lattice]
seeds: 2
rate_windows: [[5, 300]]
"""


@pytest.fixture(autouse=True)
def _folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


def edited(old, new):
    assert SWEEP.count(old) == 1
    return SWEEP.replace(old, new)


def test_a_problem_gives_its_cells_target_kernel_pool_and_n():
    sweep = loaded(SWEEP)
    assert list(sweep.targets) == ["box_1d_brownian", "rings_eq", "chen2010_eq"]
    assert sweep.n == 400
    for name in sweep.targets:
        problem, spec = problems()[name], sweep.spec(Cell(name, "of_problem", 1.0, "sbq"))
        assert (spec.n, spec.candidates) == (problem.n, problem.candidates)
        ours, theirs = problem.build(), spec.build()
        assert [vars(one).keys() for one in ours] == [vars(one).keys() for one in theirs]
        pool = problem.candidates.draw(ours[0], 0)[:5]
        assert (ours[1](pool, pool) == theirs[1](pool, pool)).all()


def test_the_papers_problem_is_the_papers_cell():
    _, kernel = problems()["chen2010_eq"].build()
    assert type(kernel.lengthscale) is float and kernel.lengthscale == 0.5


def test_sets_have_the_sizes_of_each_problem():
    sweep = loaded(SWEEP)
    sizes = {
        name: sweep.spec(Cell(name, "of_problem", 1.0, "lattice")).algorithm.sizes
        for name in ("box_1d_brownian",)
    }
    assert sizes == {"box_1d_brownian": (16, 32, 64, 128)}
    (lattice,) = (one for one in sweep.algorithms if one.name == "lattice")
    assert lattice.sizes == (16, 32, 50, 64, 100, 128, 200, 400)


def test_a_rule_that_cannot_work_on_a_problem_is_left_out_there_and_told():
    sweep = loaded(SWEEP)
    assert sweep.inapplicable.keys() == {"halton_bq", "lattice"}
    assert "cannot map the unit cube to Empirical" in sweep.inapplicable["halton_bq"]["rings_eq"]
    assert len(sweep.cells()) == 3 * 4 - sum(map(len, sweep.inapplicable.values()))
    assert Cell("rings_eq", "of_problem", 1.0, "halton_bq") not in sweep.cells()


def test_the_name_of_the_suite_stands_for_all_its_problems():
    assert list(
        loaded(edited("[box_1d_brownian, rings_eq@1, chen2010_eq]", f"[{SUITE}]")).targets
    ) == list(problems())


def test_what_a_sweep_stores_says_all_of_its_problems():
    stored = loaded(SWEEP).canonical()
    assert stored["problems"]["rings_eq"] == json.loads(
        json.dumps(problems()["rings_eq"].settings())
    )
    assert stored["problems"]["rings_eq"]["sha256"] == problems()["rings_eq"].sha256


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("rings_eq@1", "ring_eq", '2: problems[1]: unknown problem "ring_eq"; did you mean "ri'),
        ("rings_eq@1", "rings_eq@2", "2: problems[1]: rings_eq has version 1 here, not 2"),
        ("rings_eq@1", "chen2010_eq", '2: problems[2]: "chen2010_eq" is already in the list'),
        ("rings_eq@1", SUITE, '2: problems[1]: "box_1d_brownian" is already in the list'),
        ("rings_eq@1", "rings_eq@", "2: problems[1]: rings_eq has version 1 here, not"),
        ("rings_eq@1", "3", "2: problems[1]: must be a text, not 3"),
        ("[box_1d_brownian, rings_eq@1, chen2010_eq]", "[]", "2: problems: must not be empty"),
        ("[box_1d_brownian, rings_eq@1, chen2010_eq]", "all", "2: problems: must be a list"),
        ("seeds: 2", "seeds: 2\nn: 30", "5: n: cannot be given beside problems,"),
        ("seeds: 2", "seeds: 2\ntargets: []", "5: targets: cannot be given beside problems"),
        ("seeds: 2", "seeds: 2\nkernel: 3", '5: kernel: unknown key "kernel"'),
        ("[[5, 300]]", "[[5, 401]]", "5: rate_windows[0]: must end at n = 400 or before"),
        ("lattice]", "stein_thinning]", "3: algorithms[3]: stein_thinning works on none of the"),
    ],
)  # fmt: skip
def test_what_is_wrong_is_told_with_its_line(old, new, told):
    (problem,) = problems_of(edited(old, new))
    assert problem.startswith(told)


def test_the_schema_takes_both_kinds_of_sweeps():
    schema = Draft202012Validator(json_schema())
    sweep = {"name": "a", "problems": ["rings_eq", SUITE], "algorithms": ["iid"], "seeds": 1}
    assert schema.is_valid(sweep)
    for wrong in ({"problems": ["no_problem"]}, {"n": 3}, {"seeds": "x"}):
        assert not schema.is_valid(sweep | wrong)


def test_a_sweep_of_a_grid_has_the_pool_it_had():
    grid = "name: a\ntargets: [{name: u, family: uniform, lower: [0], upper: [1]}]\n"
    grid += (
        "kernels: {b: {family: brownian}}\nlengthscales: [1]\nalgorithms: [iid]\nn: 5\nseeds: 1\n"
    )
    sweep = loaded(grid)
    assert sweep.candidates == Candidates() and not sweep.problems and not sweep.inapplicable
