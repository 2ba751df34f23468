"""Sweep files: what a good one gives, and what is told of a bad one."""

import copy
import json
import random
import re

import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from jsonschema import Draft202012Validator
from project import CONFIG
from threadpoolctl import threadpool_info, threadpool_limits
from written_sweep import NORMAL, SWEEP, edited, loaded, problems_of

from bqlib.candidates import Candidates
from bqlib.sweep import registry
from bqlib.sweep.build import build_integrand
from bqlib.sweep.file import json_schema, keys, load
from bqlib.sweep.words import SweepError

KEYS = (
    "Allowed: name, title, targets, lengthscales, kernels, algorithms, candidates, "
    "integrands, n, sizes, seeds, seeds_per_job, rate_windows, studies"
)
COUNT = "must be a whole number without point or exponent, not"


# --- What a good file gives


@pytest.mark.parametrize("n", range(7))
def test_the_sweeps_of_the_readme_load(tmp_path, n):
    blocks = re.findall(r"```yaml\n(.*?)```", (CONFIG / "README.md").read_text(), flags=re.DOTALL)
    assert len(blocks) == 7
    (tmp_path / "draws.csv").write_text("alpha,beta\n0,1\n1,0\n")
    (tmp_path / "sweep.yaml").write_text(blocks[n])
    sweep = load(tmp_path / "sweep.yaml", CONFIG / "targets")
    for cell in sweep.cells():
        sweep.spec(cell).build()


def test_the_target_of_the_readme_loads(sweep_folder):
    (block,) = re.findall(r"```json\n(.*?)```", (CONFIG / "README.md").read_text(), re.DOTALL)
    (sweep_folder / "two_bumps.json").write_text(block)
    sweep = loaded(edited(("[normal]", "[two_bumps.json]")))
    target, _ = sweep.spec(sweep.cells()[0]).build()
    assert target.dim == 1


def test_the_readme_names_every_key():
    rows = re.findall(r"^\| `(\w+)`", (CONFIG / "README.md").read_text(), flags=re.MULTILINE)
    assert set(rows) == set(keys())


def test_defaults(sweep_folder):
    lines = [
        line
        for line in SWEEP.splitlines()
        if not line.startswith(("candidates", "  size", "seeds_", "rate_"))
    ]
    sweep = loaded("\n".join(lines))
    assert sweep.title == "tiny"
    assert sweep.candidates == Candidates()
    assert sweep.seeds_per_job == 10
    assert sweep.rate_windows == ()


def test_what_is_built_to_try_it_has_one_thread(monkeypatch):
    seen = []

    def build(parameters):
        seen.extend(pool["num_threads"] for pool in threadpool_info())
        return build_integrand(parameters)

    monkeypatch.setattr("bqlib.sweep.keys.build_integrand", build)
    with threadpool_limits(2):
        load(CONFIG / "config.yaml")
    assert set(seen) == {1}


def test_a_path_is_taken_from_where_the_sweep_is(sweep_folder):
    (sweep_folder / "sweeps").mkdir()
    (sweep_folder / "sweeps" / "mine.json").write_text(json.dumps(NORMAL))
    (sweep_folder / "sweeps" / "sweep.yaml").write_text(edited(("[normal]", "[mine.json, normal]")))
    sweep = load("sweeps/sweep.yaml", shelf="targets")
    assert list(sweep.targets) == ["mine", "normal"]
    assert sweep.targets["mine"] == NORMAL


def test_fresh_pools_may_be_smaller_than_n(sweep_folder):
    assert loaded(edited(("size: 100", "size: 5\n  fresh: true"))).n == 40


def test_a_family_without_length_scale(sweep_folder):
    (sweep_folder / "cube.json").write_text(
        '{"family": "uniform", "lower": [0, 0], "upper": [1, 1]}'
    )
    text = edited(
        ("{family: exponentiated_quadratic, scale: density}", "{family: brownian}"),
        ("[normal]", "[cube.json]"),
    )
    assert problems_of(text) == [
        "4: kernels.eq: brownian has no length-scale: write lengthscales: [1]"
    ]
    sweep = loaded(text.replace("[0.5, 1]", "[1]"))
    _, kernel = sweep.spec(sweep.cells()[0]).build()
    assert kernel([[0.5, 1.0]], [[0.25, 0.5]]) == 0.25 * 0.5


# --- What a bad file is told


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        # names and near matches
        ("name: tiny", "name: Tiny-1", ['1: name: "Tiny-1" is not a valid label: start with a']),
        ("name: tiny", "name: nan", ['1: name: "nan" cannot be a label: programs that read an']),
        ("eq: {fam", "null: {fam", ['4: kernels.null: "null" cannot be a label: programs that']),
        (
            "[iid, sbq]",
            "[iid, {name: na, design: iid, weights: bq}]",
            ['6: algorithms[1].name: "na" cannot be a label: programs that read an exported'],
        ),
        (
            "[normal]",
            "[{name: infinity, family: uniform, lower: [0], upper: [1]}]",
            ['2: targets[0].name: "infinity" cannot be a label: programs that read an'],
        ),
        (
            "n: 40",
            "n: 40\nintegrands: {none: {family: rkhs_ball, functions: 2}}",
            ['10: integrands.none: "none" cannot be a label: programs that read an exported'],
        ),
        ("name: tiny", f"name: {'a' * 65}", ["1: name: a label has at most 64 characters, this"]),
        ("[normal]", "[norml]", ['2: targets[0]: unknown target "norml"; did you mean "normal"?']),
        (
            "[normal]",
            "[x.json]",
            ["2: targets[0]: there is no file x.json. Named targets: normal"],
        ),
        (
            "exponentiated_quadratic",
            "Exponentiated",
            [
                '4: kernels.eq.family: unknown kernel family "Exponentiated"; did you mean '
                '"exponentiated_quadratic"? Allowed: '
            ],
        ),
        (
            "scale: d",
            "scal: d",
            ['4: kernels.eq.scal: unknown key "scal"; did you mean "scale"? Al'],
        ),
        (
            "eq:",
            "EQ:",
            ['4: kernels.EQ: "EQ" is not a valid label: start with a letter, then'],
        ),
        (
            "sbq]",
            "SBQ]",
            ['6: algorithms[1]: unknown algorithm "SBQ"; did you mean "sbq"? Allowed'],
        ),
        (
            "sbq]",
            "\n  {name: a, design: sbqq, weights: bqq}]",
            [
                '7: algorithms[1].design: unknown design "sbqq"; did you mean "sbq"? Allowed: ',
                '7: algorithms[1].weights: unknown weight rule "bqq"; did you mean "bq"? Allowed: ',
            ],
        ),
        (
            "  size: 100",
            "  source: traget",
            [
                '8: candidates.source: unknown source "traget"; did you mean "target"? Allowed: '
                "target, inflated, box"
            ],
        ),
        # missing
        ("n: 40\n", "", ["1: n: missing: give the largest number of points"]),
        ("family: ", "", ["4: kernels.eq.family: missing. Allowed: brownian, "]),
        (
            "sbq]",
            "{name: a, design: sbq}]",
            ["6: algorithms[1].weights: missing: give the name of"],
        ),
        # types
        ("n: 40", 'n: "40"', [f'9: n: {COUNT} the text "40"']),
        ("n: 40", "n: 4e1", [f"9: n: {COUNT} 40.0"]),
        ("n: 40", "n:", [f"9: n: {COUNT} empty"]),
        ("seeds: 3", "seeds: true", [f"10: seeds: {COUNT} true"]),
        ("[5, 40]", "[5, 40.0]", [f"12: rate_windows[0][1]: {COUNT} 40.0"]),
        ("name: tiny", "name: 3", ["1: name: must be a text, not 3"]),
        (
            "[normal]",
            "normal",
            ["2: targets: must be a list, such as [first, second], not the text"],
        ),
        (
            "[normal]",
            "[[normal]]",
            ["2: targets[0]: must be the name or path of a target, or {name: "],
        ),
        (
            "{family: exponentiated_quadratic, scale: density}",
            "eq",
            ["4: kernels.eq: must be a map"],
        ),
        ("[0.5, 1]", '[0.5, "1"]', ['5: lengthscales[1]: must be a number, not the text "1"']),
        ("[0.5, 1]", "[0.5, true]", ["5: lengthscales[1]: must be a number, not true"]),
        (
            "sbq]",
            "3]",
            ["6: algorithms[1]: must be the name of an algorithm or {name: ..., design"],
        ),
        (
            "  size: 100",
            "  [1]",
            ["7: candidates: must be a mapping, such as {key: value}, not a l"],
        ),
        ("scale: density", "scale: 1", ["4: kernels.eq.scale: must be a text, not 1"]),
        # values
        (
            "[0.5, 1]",
            "[0, -1]",
            ["5: lengthscales[0]: must be a finite positive number, not 0", "5"],
        ),
        (
            "[0.5, 1]",
            "[.nan, .inf]",
            ["5: lengthscales[0]: must be a finite positive", "5: lengths"],
        ),
        (
            "[0.5, 1]",
            "[1e200]",
            ["4: kernels.eq: with target normal: lengthscale is 1e+200; it must lie"],
        ),
        ("[0.5, 1]", "[1" + 400 * "0" + "]", ["5: lengthscales[0]: must be a number, not 1000000"]),
        ("n: 40", "n: 0", ["9: n: must be at least 1, not 0"]),
        ("n: 40", "n: 101", ["9: n: must be at most 100, the number of candidates, not"]),
        ("n: 40", "n: 30", ["12: rate_windows[0]: must end at n = 30 or before, not at 40"]),
        (
            "[5, 40]",
            "[40, 40]",
            ["12: rate_windows[0]: must be [first, last] with 1 <= first < la"],
        ),
        (
            "[5, 40]",
            "[0, 4]",
            ["12: rate_windows[0]: must be [first, last] with 1 <= first < last"],
        ),
        (
            "[5, 40]",
            "[1, 2, 3]",
            ["12: rate_windows[0]: must be [first, last] with 1 <= first < l"],
        ),
        ("seeds: 3", "seeds: 0", ["10: seeds: must be at least 1, not 0"]),
        ("job: 2", "job: -1", ["11: seeds_per_job: must be at least 1, not -1"]),
        ("size: 100", "size: 0", ["8: candidates.size: must be at least 1, not 0"]),
        (
            "size: 100",
            "inflation: 3",
            ['8: candidates.inflation: is allowed only with source "infl'],
        ),
        ("size: 100", "box: [[0, 1]]", ['8: candidates.box: box must be given if source is "box"']),
        (
            "size: 100",
            "source: box",
            ['7: candidates: box must be given if source is "box", and'],
        ),
        (
            "size: 100",
            "source: box\n  box: [[0, 1]]",
            ["9: candidates.box: box has 1 coordinates; it must have 2, the dimension of "],
        ),
        (
            "size: 100",
            "source: box\n  box: [1, [2]]",
            ["9: candidates.box: its rows must have equal"],
        ),
        ("scale: density", "scale: tall", ["4: kernels.eq.scale: scale is 'tall'; it must be "]),
        (
            "scale: density",
            "shape: [1, 2, 3]",
            ["4: kernels.eq: with target normal: the kernel is for points of dimension 3, the "],
        ),
        (
            "scale: density",
            "shape: [1, 0]",
            ["4: kernels.eq.shape: must be a list of finite posit"],
        ),
        ("scale: density", "shape: 2", ["4: kernels.eq.shape: must be a list of numbers, not 2"]),
        (
            "scale: density",
            "shape: [[1, 2], [2, 1]]",
            ["4: kernels.eq.shape: the matrix is not positive definite (smallest eigenvalue -1)"],
        ),
        (
            "scale: density",
            "lengthscale: 2",
            ['4: kernels.eq.lengthscale: set length-scales with the key "lengthscales"; each'],
        ),
        # integrands
        (
            "n: 40",
            "integrands: {a: {family: rkhs}}\nn: 40",
            ['9: integrands.a.family: unknown integrand family "rkhs"; did you mean "rkhs_ball"?'],
        ),
        (
            "n: 40",
            "integrands: {a: {family: rough_bumps, narrowest: 0.1}}\nn: 40",
            ["9: integrands.a.widest: missing, and it has no default"],
        ),
        (
            "n: 40",
            "integrands: {a: {family: rkhs_ball, functions: 2.0, centre_variance: low}}\nn: 40",
            [
                "9: integrands.a.centre_variance: must be a number, not the text",
                f"9: integrands.a.functions: {COUNT} 2.0",
            ],
        ),
        (
            "n: 40",
            "integrands: {a: {family: rkhs_ball, functions: 0}}\nn: 40",
            ["9: integrands.a.functions: functions is 0; it must be at least 1"],
        ),
        (
            "n: 40",
            "integrands: {a: {family: rough_bumps, narrowest: 3, widest: 2}}\nn: 40",
            ["9: integrands.a.narrowest: narrowest is 3 and widest 2; they must be positive"],
        ),
        ("n: 40", "integrands: [rkhs_ball]\nn: 40", ["9: integrands: must be a mapping, such as"]),
        # empty and twice
        ("[normal]", "[]", ["2: targets: must not be empty"]),
        ("[iid, sbq]", "[]", ["6: algorithms: must not be empty"]),
        ("[0.5, 1]", "[0.5, 1, 5e-1]", ["5: lengthscales[2]: 0.5 is already in the list"]),
        (
            "[normal]",
            "[normal, targets/normal.json]",
            ['2: targets[1]: "normal" is already in the li'],
        ),
        ("[iid, sbq]", "[sbq, sbq]", ['6: algorithms[1]: "sbq" is already in the list']),
        (
            "[[5, 40]]",
            "[[5, 40], [5, 40]]",
            ["12: rate_windows[1]: [5, 40] is already in the list"],
        ),
        ("seeds: 3", "seeds: 3\nn: 4", ["11: n: is already set in line 9"]),
        # too large to plan
        (
            "seeds: 3",
            "seeds: 1000000000",
            ["10: seeds: 4 cells with 1000000000 seeds are 2000000000 jobs, but a sweep can have"],
        ),
        (
            "size: 100\nn: 40",
            f"size: 5\n  fresh: true\nn: {10**30}",
            [f"10: n: must be at most 1000000000, not {10**30}"],
        ),
        (
            "size: 100",
            f"size: {10**40}",
            ["8: candidates.size: must be at most 1000000000, not 1"],
        ),
        (
            "n: 40",
            f"integrands: {{a: {{family: rkhs_ball, functions: {10**40}}}}}\nn: 40",
            ["9: integrands.a.functions: must be at most 1000000000, not 1"],
        ),
        (
            "seeds: 3\nseeds_per_job: 2",
            "seeds: 1000000000\nseeds_per_job: 1000000000",
            ["10: seeds: a job can have at most 10000 seeds: use a smaller seeds_per_job"],
        ),
        (
            "scale: density",
            "scale: unit, scale: unit",
            ["4: kernels.eq.scale: is already set in line 4"],
        ),
        (
            "sbq]",
            "{name: sbq, design: iid, weights: bq}]",
            ['6: algorithms[1]: "sbq" is already the name of design sbq with weights bq: choose'],
        ),
        (
            "sbq]",
            "{name: joint_uniform, design: joint, weights: uniform}]",
            [
                '6: algorithms[1]: "joint_uniform" is already the name of design joint (weights: '
                "uniform) with weights uniform: choose another name"
            ],
        ),
        (
            "sbq]",
            "{name: mine, design: {family: joint, weights: simplex}, weights: simplex}]",
            [
                '6: algorithms[1].design.weights: unknown value "simplex". Allowed: bq, uniform',
            ],
        ),
    ],
)
def test_each_problem_is_told_with_its_line(sweep_folder, old, new, told):
    found = problems_of(edited((old, new)))
    assert len(found) == len(told)
    for problem, start in zip(found, told, strict=True):
        assert problem.startswith(start)


def test_all_problems_are_told_at_once_in_the_order_of_their_lines(sweep_folder):
    text = edited(
        ("name: tiny", "nmae: tiny"),
        ("[normal]", "[norml, normal_line, 3]"),
        ("scale: density", "scale: tall, shap: 1"),
        ("[0.5, 1]", "[0.5, .nan, 0.50]"),
        ("[iid, sbq]", "[idd, sbq]"),
        ("size: 100", 'size: "100"\n  source: here\n  inflation: 0'),
        ("n: 40", "n: 40.0"),
        ("seeds: 3", "seeds: 0\nseeds: 3"),
        ("[[5, 40]]", "[[40, 5], 5]"),
    )
    assert problems_of(text) == [
        "1: name: missing: give a label; the results go to results/<name>",
        f'1: nmae: unknown key "nmae"; did you mean "name"? {KEYS}',
        '2: targets[0]: unknown target "norml"; did you mean "normal"? Allowed: normal, '
        "normal_line, or the path of a .json file",
        "2: targets[2]: must be the name or path of a target, or {name: ..., family: ...}, not 3",
        '4: kernels.eq.shap: unknown key "shap"; did you mean "shape"? Allowed: '
        "family, scale, shape",
        "5: lengthscales[1]: must be a finite positive number, not nan",
        "5: lengthscales[2]: 0.5 is already in the list",
        f'6: algorithms[0]: unknown algorithm "idd"; did you mean "iid"? Allowed: '
        f"{', '.join(registry.ALGORITHMS)}, or {{name: ..., design: ..., weights: ...}}",
        f'8: candidates.size: {COUNT} the text "100"',
        '9: candidates.source: unknown source "here". Allowed: target, inflated, box',
        "10: candidates.inflation: must be a finite positive number, not 0.0",
        f"11: n: {COUNT} 40.0",
        "12: seeds: must be at least 1, not 0",
        "13: seeds: is already set in line 12",
        "15: rate_windows[0]: must be [first, last] with 1 <= first < last, not [40, 5]",
        "15: rate_windows[1]: must be a list, such as [first, second], not 5",
    ]


def test_a_problem_is_told_at_its_own_line_of_a_long_list(sweep_folder):
    text = edited(("[0.5, 1]", "\n- 0.5\n\n# none\n- -2"))
    assert problems_of(text) == ["9: lengthscales[1]: must be a finite positive number, not -2.0"]


@pytest.mark.parametrize(
    ("family", "target", "told"),
    [
        (
            "brownian",
            NORMAL,
            "with target mine: no closed-form embedding for Brownian with GaussianMixture; ",
        ),
        (
            "matern",
            NORMAL | {"covariances": [[[1.0, 0.5], [0.5, 1.0]]]},
            "with target mine: ",
        ),
        (
            "stein",
            {"family": "uniform", "lower": [0.0], "upper": [1.0]},
            "with target mine: a Stein kernel needs the score of its target",
        ),
    ],
)
def test_a_pair_that_does_not_go_together(sweep_folder, family, target, told):
    (sweep_folder / "mine.json").write_text(json.dumps(target))
    text = edited(
        ("[normal]", "[mine.json]"),
        ("{family: exponentiated_quadratic, scale: density}", f"{{family: {family}}}"),
        ("[0.5, 1]", "[1]"),
    )
    (problem,) = problems_of(text)
    assert problem.startswith(f"4: kernels.eq: {told}")


PLUGINS = """
import sys
from bqlib import GaussianMixture

class Normal(GaussianMixture):
    def __init__(self):
        super().__init__([1.0], [[0.0, 0.0]], [[[1.0, 0.0], [0.0, 1.0]]])

class Nowhere(Normal):
    @property
    def dim(self):
        return 1 // 0

class Ends(Normal):
    def __init__(self):
        sys.exit(0)

class Half(Normal):
    def __init__(self):
        raise ValueError("\\ud800")

class Silent(Normal):
    def __init__(self):
        raise ValueError("")

class Taken(Normal):
    def __init__(self, model_config: int = 1):
        super().__init__()

def taken(target, kernel, n, *, rng, candidates, model_fields: int = 1):
    pass
"""


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        ("normal", "{name: a, family: 'mine.py:Nowhere'}", "ZeroDivisionError in mine.py:12"),
        ("normal", "{name: a, family: 'mine.py:Ends'}", "SystemExit in mine.py:16: 0"),
        ("normal", "{name: a, family: 'mine.py:Half'}", "\\ud800"),
        ("normal", "{name: a, family: 'mine.py:Silent'}", "an error without a message"),
        ("normal", "{name: a, family: 'mine.py:Taken'}", 'can be called "model_config": rename'),
        ("sbq", "{name: a, design: 'mine.py:taken', weights: bq}", 'called "model_fields": rename'),
        ("normal", '"\\ud800"', "contains \\ud800, half of a character"),
    ],
)
def test_what_plugins_may_do_is_told(sweep_folder, old, new, told):
    (sweep_folder / "mine.py").write_text(PLUGINS)
    (problem,) = problems_of(edited((f"{old}]", f"{new}]")))
    assert problem.startswith(("2: ", "6: ")) and told in problem


def test_integrands_that_do_not_go_with_a_target(sweep_folder):
    (sweep_folder / "cube.json").write_text('{"family": "uniform", "lower": [0], "upper": [1]}')
    text = edited(
        ("[normal]", "[cube.json, normal]"),
        ("n: 40", "integrands: {a: {family: rough_bumps, narrowest: 1, widest: 2}}\nn: 40"),
    )
    assert problems_of(text) == [
        "9: integrands.a: with target cube: rough_bumps has exact integrals under GaussianMixture "
        "and Empirical, not under Uniform"
    ]


def test_a_pool_that_does_not_go_with_a_target(sweep_folder):
    (sweep_folder / "cube.json").write_text('{"family": "uniform", "lower": [0], "upper": [1]}')
    text = edited(("[normal]", "[cube.json]"), ("size: 100", "source: inflated"))
    assert problems_of(text) == [
        '7: candidates: Uniform has no covariances to inflate; use source "target" or "box" '
        "(target cube)"
    ]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"family":\n  gaussian}', " is not JSON: line 2, column 3: "),
        ("[1]", " must be one JSON object, not a list"),
        ("", " is not JSON: line 1, column 1: "),
        (
            '{"family": "uniform", "family": "empirical"}',
            ' cannot be read: key "family" is given twice',
        ),
        (
            "{}",
            ": family: missing. Allowed: banana, empirical, gaussian_mixture, logistic_",
        ),
        (
            {"family": 3},
            ": family: must be a text, not 3. Allowed: banana, empirical, gaussian_",
        ),
        ({"family": "gausian_mixture"}, ': family: unknown target family "gausian_mixture"; did y'),
        ({"mean": [[0, 0]]}, ': mean: unknown key "mean"; did you mean "means"? Allowed: family, '),
        ({"about": 3}, ": about: must be a text, not 3"),
        ({"weights": [0.9]}, ": weights sum to 0.9; they must sum to 1"),
        (
            {"weights": ["1"]},
            ': weights: must contain only numbers, not the text "1"',
        ),
        ({"weights": [True]}, ": weights: must contain only numbers, not true"),
        ({"weights": 1}, ": weights: must be a list of numbers, not 1"),
        ({"weights": []}, ": weights have shape (0,); "),
        ({"weights": [10**400]}, ": weights: contains a number that is too large"),
        ({"means": [[0, 0], [0]]}, ": means: its rows must have equal lengths"),
        ({"means": [[0, float("nan")]]}, ": means hold NaN or infinity"),
        (
            {"covariances": [[[1, 0], [0, -1]]]},
            ": covariance of component 0 is not positive defini",
        ),
        ({"covariances": [[[1, 1], [0, 1]]]}, ": covariance of component 0 is not symmetric"),
        ({"covariances": None}, ": covariances: must be a list of numbers, not empty"),
    ],
)
def test_each_problem_of_a_target_file_is_told_with_the_files_name(sweep_folder, content, told):
    if isinstance(content, dict):
        content = json.dumps(NORMAL | content)
    (sweep_folder / "mine.json").write_text(content)
    (problem,) = problems_of(edited(("[normal]", "[normal, mine.json]")))
    assert problem.startswith(f"2: targets[1]: mine.json{told}")


def test_all_problems_of_a_target_file_are_told(sweep_folder):
    (sweep_folder / "mine.json").write_text('{"family": "uniform", "lower": [0, "a"], "uper": [1]}')
    assert problems_of(edited(("[normal]", "[mine.json]"))) == [
        '2: targets[0]: mine.json: lower: must contain only numbers, not the text "a"',
        '2: targets[0]: mine.json: uper: unknown key "uper"; did you mean "upper"? Allowed: '
        "family, lower, upper, name, about, source, licence",
        "2: targets[0]: mine.json: upper: missing, and it has no default",
    ]


def test_a_target_file_with_a_name_that_is_no_label(sweep_folder):
    (sweep_folder / "My Target.json").write_text(json.dumps(NORMAL))
    (problem,) = problems_of(edited(("[normal]", '["My Target.json"]')))
    assert problem.startswith('2: targets[0]: "My Target" is not a valid label')


def test_a_file_that_cannot_be_read_is_told_with_its_name_and_line(sweep_folder):
    with pytest.raises(SweepError) as caught:
        load("gone.yaml")
    assert str(caught.value) == "gone.yaml:1: there is no such file"
    (problem,) = problems_of("n: 1\n\tseeds: 2\n")
    assert problem.startswith("2: column 1: a tab: indent with spaces")


VALUES = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-3, 200)
    | st.floats()
    | st.sampled_from(["sbq", "normal", "normal.json", "a b", "two\nlines", "", "{x}"]),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(st.sampled_from(["family", "name", "x", "A"]), inner, max_size=3)
    ),
    max_leaves=4,
)


def _places(tree, here=()):
    yield here
    if isinstance(tree, dict | list):
        for key, item in tree.items() if isinstance(tree, dict) else enumerate(tree):
            yield from _places(item, (*here, key))


def _at(tree, place):
    for key in place:
        tree = tree[key]
    return tree


# Each example overwrites the sweep file of the one before.
@settings(
    deadline=None,
    max_examples=150,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)
@given(data=st.data())
def test_whatever_stands_in_a_file_is_loaded_or_told(sweep_folder, data):
    tree = yaml.safe_load(SWEEP)
    for _ in range(data.draw(st.integers(1, 3))):
        places = [place for place in _places(tree) if place]
        *around, last = data.draw(st.sampled_from(places))
        _at(tree, around)[last] = data.draw(VALUES)
    text = yaml.safe_dump(tree)
    try:
        loaded(text)
    except SweepError as error:
        last_line = text.count("\n")
        for problem in error.problems:
            line, message = re.fullmatch(r"sweep\.yaml:(\d+): (.+)", problem).groups()
            assert 1 <= int(line) <= last_line
            assert not re.search("pydantic|[Vv]alidat|http|input_|_type|Traceback", message)


def test_targets_are_those_beside_the_sweep_or_those_of_bqlib(tmp_path):
    (tmp_path / "sweep.yaml").write_text(SWEEP.replace("[normal]", "[chen2010_mixture]"))
    assert list(load(tmp_path / "sweep.yaml").targets) == ["chen2010_mixture"]
    (tmp_path / "targets").mkdir()
    with pytest.raises(SweepError, match="targets has no targets: give another folder with"):
        load(tmp_path / "sweep.yaml")


# --- The schema for editors

DOCUMENTED = [
    *(path.read_text() for path in sorted(CONFIG.glob("*.yaml"))),
    *re.findall(r"```yaml\n(.*?)```", (CONFIG / "README.md").read_text(), flags=re.DOTALL),
]
SCHEMA = Draft202012Validator(json_schema())


def test_the_schema_is_one():
    Draft202012Validator.check_schema(json_schema())


@pytest.mark.parametrize("text", DOCUMENTED)
def test_the_schema_accepts_every_sweep_of_the_project(text):
    assert not [error.message for error in SCHEMA.iter_errors(yaml.safe_load(text))]


def test_the_schema_accepts_what_a_sweep_accepts_and_finds_most_mistakes(tmp_path):
    rng, caught = random.Random(0), {"key": [], "type": [], "name": [], "number": []}
    for number in range(200):
        kind = list(caught)[number % 4]
        sweep = yaml.safe_load(SWEEP)
        sweep["algorithms"].append({"name": "ours", "design": "iid", "weights": "bq"})
        sweep["integrands"] = {"ridges": {"family": "rough_bumps", "narrowest": 0.1}}
        sweep["targets"] = [{"name": "normal"} | copy.deepcopy(NORMAL)]
        _mutate(sweep, kind, rng)
        file = tmp_path / "mutated.yaml"
        file.write_text(yaml.safe_dump(sweep))
        try:
            load(file)
        except SweepError as error:
            assert error.problems
            caught[kind].append(not SCHEMA.is_valid(sweep))
        else:
            assert SCHEMA.is_valid(sweep), sweep
    mistakes = caught["key"] + caught["type"] + caught["name"]
    assert len(mistakes) > 120 and sum(mistakes) >= 0.9 * len(mistakes)


def _mutate(sweep, kind, rng):
    """Make one mistake in a sweep, or change a number of it."""
    places = [place for place in _places(sweep) if place]
    if kind == "key":
        holders = [place for place in places if isinstance(_at(sweep, place), dict)]
        mistaken = rng.choice(["seed", "lengthscale", "Family", "tpye", "x"])
        _at(sweep, rng.choice([(), *holders]))[mistaken] = 1
        return
    wanted = {"type": object, "name": str, "number": int | float}[kind]
    *around, key = rng.choice([p for p in places if isinstance(_at(sweep, p), wanted)])
    holder = _at(sweep, around)
    if kind == "type":
        holder[key] = rng.choice([None, True, "word", 1.5, [], [["a"]], {"a": 1}])
    elif kind == "name":
        holder[key] += rng.choice(["x", "-", " ", "2"])
    else:
        holder[key] *= rng.choice([0, -1, 2, 0.5])


# --- Sizes of sets

SET = ("algorithms: [", "algorithms: [joint, ")


def test_only_sets_have_sizes(sweep_folder):
    sweep = loaded(edited(SET, ("n: 40", "n: 40\nsizes: [3, 8, 40]")))
    sizes = {algorithm.name: algorithm.sizes for algorithm in sweep.algorithms}
    assert sizes.pop("joint") == (3, 8, 40) and set(sizes.values()) == {()}


def test_sets_have_usual_sizes(sweep_folder):
    joint, *_ = loaded(edited(SET)).algorithms
    assert joint.sizes == (5, 10, 20, 40)


def test_sizes_change_the_cells_of_sets_alone(sweep_folder):
    digests = []
    for sizes in ("[3, 8]", "[3, 9]"):
        sweep = loaded(edited(SET, ("n: 40", f"n: 40\nsizes: {sizes}")))
        digests.append({cell: sweep.spec(cell).digest for cell in sweep.cells()})
    changed = {cell.algorithm for cell in digests[0] if digests[0][cell] != digests[1][cell]}
    assert changed == {"joint"}


@pytest.mark.parametrize(
    "edits, problem",
    [
        ([SET, ("n: 40", "n: 40\nsizes: [3, 41]")], "sizes[1]: must be at most n = 40, not 41"),
        (
            [SET, ("n: 40", "n: 40\nsizes: [8, 3]")],
            "sizes[1]: must be in rising order, but 3 follows a larger number",
        ),
        ([SET, ("n: 40", "n: 40\nsizes: [8, 8]")], "sizes[1]: 8 is already in the list"),
        ([SET, ("n: 40", "n: 40\nsizes: [0]")], "sizes[0]: must be at least 1, not 0"),
        (
            [("n: 40", "n: 40\nsizes: [8]")],
            "sizes[0]: is only for designs whose points are a set, such as joint, and this sweep "
            "has none: leave it out. Other designs are measured at every n",
        ),
    ],
)
def test_wrong_sizes_are_told(sweep_folder, edits, problem):
    [found] = problems_of(edited(*edits))
    assert found.partition(": ")[2] == problem
