import json
import pickle
import re
import subprocess
import sys
from dataclasses import fields, replace
from pathlib import Path

import numpy as np
import pytest
import yaml
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from bqlib import registry, yamlfile
from bqlib.candidates import Candidates
from bqlib.experiment import Algorithm, Cell, SweepError, load, piece_name

CONFIG = Path(__file__).parent.parent / "config"

NORMAL = {
    "family": "gaussian_mixture",
    "about": "A normal on the plane.",
    "weights": [1.0],
    "means": [[0.0, 0.0]],
    "covariances": [[[1.0, 0.0], [0.0, 1.0]]],
}

SWEEP = """\
name: tiny
targets: [normal]
kernels:
  eq: {family: exponentiated_quadratic, scale: density}
lengthscales: [0.5, 1]
algorithms: [iid, sbq]
candidates:
  size: 100
n: 40
seeds: 3
seeds_per_job: 2
rate_windows: [[5, 40]]
"""

KEYS = (
    "Allowed: name, title, targets, lengthscales, kernels, algorithms, candidates, "
    "integrands, n, seeds, seeds_per_job, rate_windows, studies"
)
COUNT = "must be a whole number without point or exponent, not"


# Each example overwrites the sweep file of the one before.
IN_ONE_FOLDER = settings(
    deadline=None,
    max_examples=40,
    suppress_health_check=[HealthCheck.function_scoped_fixture],
)


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """The working directory, with a shelf of two targets."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "targets").mkdir()
    line = NORMAL | {"means": [[0.0]], "covariances": [[[1.0]]]}
    for name, content in {"normal": NORMAL, "normal_line": line}.items():
        (tmp_path / "targets" / f"{name}.json").write_text(json.dumps(content))
    return tmp_path


def loaded(text):
    Path("sweep.yaml").write_text(text, encoding="utf-8")
    return load("sweep.yaml")


def edited(*edits):
    text = SWEEP
    for old, new in edits:
        assert text.count(old) == 1
        text = text.replace(old, new)
    return text


def problems_of(text):
    with pytest.raises(SweepError) as caught:
        loaded(text)
    assert str(caught.value) == "\n".join(caught.value.problems)
    assert all(problem.startswith("sweep.yaml:") for problem in caught.value.problems)
    return [problem.removeprefix("sweep.yaml:") for problem in caught.value.problems]


# --- What a good file gives


def test_the_default_is_the_paper():
    sweep = load(CONFIG / "config.yaml")
    assert sweep.name == "matching"
    assert list(sweep.targets) == ["chen2010_mixture"]
    assert sweep.kernels == {
        "eq_density": {"family": "exponentiated_quadratic", "scale": "density"}
    }
    assert sweep.lengthscales == (0.25, 0.5, 1.0)
    assert [algorithm.name for algorithm in sweep.algorithms] == [
        "iid",
        "herding",
        "herding_bq",
        "sbq",
    ]
    assert sweep.candidates == Candidates(size=10_000, source="target")
    assert (sweep.n, sweep.seeds, sweep.seeds_per_job) == (400, 10, 10)
    assert sweep.rate_windows == ((20, 200), (20, 400))
    target, kernel = sweep.spec(sweep.cells()[0]).build()
    assert target.dim == 2
    assert len(target.weights) == 20
    # The first and last numbers of the published mixture.
    assert target.weights[0] == 0.050762495658215584
    assert target.covariances[-1, -1, -1] == 0.4698938905296629
    assert (kernel.lengthscale, kernel.scale) == (0.25, "density")


def test_the_quick_sweep_is_small():
    sweep = load(CONFIG / "quick.yaml")
    assert sweep.name == "quick"
    assert len(sweep.cells()) * sweep.seeds * sweep.n * sweep.candidates.size <= 1e6


@pytest.mark.parametrize("n", range(4))
def test_the_sweeps_of_the_readme_load(tmp_path, n):
    blocks = re.findall(r"```yaml\n(.*?)```", (CONFIG / "README.md").read_text(), flags=re.DOTALL)
    assert len(blocks) == 4
    (tmp_path / "sweep.yaml").write_text(blocks[n])
    sweep = load(tmp_path / "sweep.yaml", CONFIG / "targets")
    for cell in sweep.cells():
        sweep.spec(cell).build()


def test_the_target_of_the_readme_loads(folder):
    (block,) = re.findall(r"```json\n(.*?)```", (CONFIG / "README.md").read_text(), re.DOTALL)
    (folder / "two_bumps.json").write_text(block)
    sweep = loaded(edited(("[normal]", "[two_bumps.json]")))
    target, _ = sweep.spec(sweep.cells()[0]).build()
    assert target.dim == 1


def test_the_readme_names_every_key():
    from bqlib.sweepfile import _Sweep

    rows = re.findall(r"^\| `(\w+)`", (CONFIG / "README.md").read_text(), flags=re.MULTILINE)
    assert set(rows) == set(_Sweep.model_fields)


def test_defaults(folder):
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


def test_cells_and_pieces_are_in_a_fixed_order(folder):
    sweep = loaded(SWEEP)
    assert sweep.cells() == [
        Cell("normal", "eq", 0.5, "iid"),
        Cell("normal", "eq", 0.5, "sbq"),
        Cell("normal", "eq", 1.0, "iid"),
        Cell("normal", "eq", 1.0, "sbq"),
    ]
    assert sweep.blocks() == [(0, 1), (2, 2)]
    assert piece_name(sweep.cells()[3], (2, 2)) == "normal/eq/1/sbq/seeds-2-2.zarr.zip"


def test_length_scales_keep_12_digits(folder):
    sweep = loaded(edited(("[0.5, 1]", "[0.30000000000000004, 1e-3, 12345.6789012345]")))
    assert sweep.lengthscales == (0.3, 0.001, 12345.6789012)
    names = [piece_name(cell, (0, 1)) for cell in sweep.cells()[::2]]
    assert [name.split("/")[2] for name in names] == ["0.3", "0.001", "12345.6789012"]


def test_shapes_are_multiplied_by_the_length_scale(folder):
    kernels = (
        "eq: {family: exponentiated_quadratic, scale: density}",
        "ard: {family: exponentiated_quadratic, shape: [1, 2]}\n"
        "  full: {family: exponentiated_quadratic, shape: [[1, 0.5], [0.5, 2]]}",
    )
    sweep = loaded(edited(kernels))
    ard, full = (
        sweep.spec(Cell("normal", label, 0.5, "sbq")).build()[1] for label in ("ard", "full")
    )
    np.testing.assert_allclose(ard.lengthscale, [0.5, 1.0])
    np.testing.assert_allclose(full.covariance, [[0.25, 0.125], [0.125, 0.5]])


def test_a_path_is_taken_from_where_the_sweep_is(folder):
    (folder / "sweeps").mkdir()
    (folder / "sweeps" / "mine.json").write_text(json.dumps(NORMAL))
    (folder / "sweeps" / "sweep.yaml").write_text(edited(("[normal]", "[mine.json, normal]")))
    sweep = load("sweeps/sweep.yaml", shelf="targets")
    assert list(sweep.targets) == ["mine", "normal"]
    assert sweep.targets["mine"] == NORMAL


def test_any_design_goes_with_any_weights(folder):
    sweep = loaded(edited(("[iid, sbq]", "[{name: mine, design: sbq, weights: uniform}]")))
    spec = sweep.spec(sweep.cells()[0])
    assert spec.cell.algorithm == "mine" and spec.algorithm == Algorithm("mine", "sbq", "uniform")


def test_plain_yaml_values_are_those_of_version_1_2(folder):
    sweep = loaded(edited(("n: 40", "n: 040"), ("[0.5, 1]", "[1e-1, 1_0]".replace("_", ""))))
    assert (sweep.n, sweep.lengthscales) == (40, (0.1, 10.0))
    assert problems_of(edited(("size: 100", "size: 100\n  fresh: no"))) == [
        '9: candidates.fresh: must be true or false, not the text "no"'
    ]


def test_aliases_are_followed(folder):
    text = edited(
        ("kernels:\n  eq: {", "kernels:\n  eq: &eq {"), ("lengthscales:", "  b: *eq\nlengthscales:")
    )
    assert loaded(text).kernels["b"] == loaded(SWEEP).kernels["eq"]


def test_fresh_pools_may_be_smaller_than_n(folder):
    assert loaded(edited(("size: 100", "size: 5\n  fresh: true"))).n == 40


def test_a_family_without_length_scale(folder):
    (folder / "cube.json").write_text('{"family": "uniform", "lower": [0, 0], "upper": [1, 1]}')
    text = edited(
        ("{family: exponentiated_quadratic, scale: density}", "{family: brownian}"),
        ("[normal]", "[cube.json]"),
    )
    assert problems_of(text) == [
        "4: kernels.eq: brownian has no length-scale: sweep it at lengthscales: [1]"
    ]
    sweep = loaded(text.replace("[0.5, 1]", "[1]"))
    _, kernel = sweep.spec(sweep.cells()[0]).build()
    assert kernel([[0.5, 1.0]], [[0.25, 0.5]]) == 0.25 * 0.5


def test_a_kernel_made_for_a_target_gets_it(folder, monkeypatch):
    class Bound(registry.find("kernel", "exponentiated_quadratic")):
        def __init__(self, target, lengthscale, strength: float = 1.0):
            super().__init__(lengthscale=lengthscale)
            object.__setattr__(self, "bound_to", (target, strength))

    _register_kernel(monkeypatch, "bound", Bound)
    kernel = "{family: bound, strength: 2, shape: [1, 2]}"
    sweep = loaded(edited(("{family: exponentiated_quadratic, scale: density}", kernel)))
    target, kernel = sweep.spec(sweep.cells()[0]).build()
    assert kernel.bound_to == (target, 2.0)
    full = edited(
        ("{family: exponentiated_quadratic, scale: density}", "{family: bound, shape: [[1]], x: 1}")
    )
    assert problems_of(full) == [
        '4: kernels.eq.x: unknown key "x". Allowed: family, strength, shape'
    ]
    assert problems_of(full.replace(", x: 1", "")) == [
        "4: kernels.eq.shape: bound takes a list of numbers, not a full matrix"
    ]


def _register_kernel(monkeypatch, name, family):
    monkeypatch.setitem(registry.PLACES["kernel"], name, f"{__name__}:{name}")
    monkeypatch.setattr(sys.modules[__name__], name, family, raising=False)


# --- What a bad file is told


@pytest.mark.parametrize(
    ("old", "new", "told"),
    [
        # names and near matches
        ("name: tiny", "name: Tiny-1", ['1: name: "Tiny-1" is no label: use lower-case letters']),
        ("name: tiny", f"name: {'a' * 65}", ["1: name: a label has at most 64 characters"]),
        ("[normal]", "[norml]", ['2: targets[0]: unknown target "norml"; did you mean "normal"?']),
        (
            "[normal]",
            "[x.json]",
            ["2: targets[0]: there is no file x.json; by name there are: norm"],
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
            ['4: kernels.EQ: "EQ" is no label: use lower-case letters, digits and _, a'],
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
            ["4: kernels.eq: with target normal: lengthscale is 1e+200, not from"],
        ),
        ("[0.5, 1]", "[1" + 400 * "0" + "]", ["5: lengthscales[0]: must be a number, not 1000000"]),
        ("n: 40", "n: 0", ["9: n: must be at least 1, not 0"]),
        ("n: 40", "n: 101", ["9: n: must be at most the 100 candidates, not 101"]),
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
            ['8: candidates.inflation: goes with source "inflated", and'],
        ),
        ("size: 100", "box: [[0, 1]]", ['8: candidates.box: box goes with source "box", and only']),
        (
            "size: 100",
            "source: box",
            ['7: candidates: box goes with source "box", and only with i'],
        ),
        (
            "size: 100",
            "source: box\n  box: [[0, 1]]",
            ["9: candidates.box: box has 1 coordinates, the target has dimension 2 (target "],
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
            ['4: kernels.eq.lengthscale: give length-scales in the key "lengthscales"; a "shape"'],
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
        ("[0.5, 1]", "[0.5, 1, 5e-1]", ["5: lengthscales[2]: 0.5 is in the list already"]),
        (
            "[normal]",
            "[normal, targets/normal.json]",
            ['2: targets[1]: "normal" is in the list al'],
        ),
        ("[iid, sbq]", "[sbq, sbq]", ['6: algorithms[1]: "sbq" is in the list already']),
        (
            "[[5, 40]]",
            "[[5, 40], [5, 40]]",
            ["12: rate_windows[1]: [5, 40] is in the list already"],
        ),
        ("seeds: 3", "seeds: 3\nn: 4", ["11: n: stands in line 9 already"]),
        # too large to plan
        (
            "seeds: 3",
            "seeds: 1000000000",
            ["10: seeds: 4 cells with 1000000000 seeds are 2000000000 jobs, and a sweep has at mo"],
        ),
        (
            "seeds: 3\nseeds_per_job: 2",
            "seeds: 1000000000\nseeds_per_job: 1000000000",
            ["10: seeds: a job has at most 10000 seeds: set seeds_per_job"],
        ),
        (
            "scale: density",
            "scale: unit, scale: unit",
            ["4: kernels.eq.scale: stands in line 4 alr"],
        ),
        (
            "sbq]",
            "{name: sbq, design: iid, weights: bq}]",
            ['6: algorithms[1]: "sbq" is the name of design sbq with weights bq; choose another'],
        ),
    ],
)
def test_each_problem_is_told_with_its_line(folder, old, new, told):
    found = problems_of(edited((old, new)))
    assert len(found) == len(told)
    for problem, start in zip(found, told, strict=True):
        assert problem.startswith(start)


def test_all_problems_are_told_at_once_in_the_order_of_their_lines(folder):
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
        "1: name: missing: give a label; results land in results/<name>",
        f'1: nmae: unknown key "nmae"; did you mean "name"? {KEYS}',
        '2: targets[0]: unknown target "norml"; did you mean "normal"? Allowed: normal, '
        "normal_line, or the path of a .json file",
        "2: targets[2]: must be the name or path of a target, or {name: ..., family: ...}, not 3",
        '4: kernels.eq.shap: unknown key "shap"; did you mean "shape"? Allowed: '
        "family, scale, shape",
        "5: lengthscales[1]: must be a finite positive number, not nan",
        "5: lengthscales[2]: 0.5 is in the list already",
        f'6: algorithms[0]: unknown algorithm "idd"; did you mean "iid"? Allowed: '
        f"{', '.join(registry.ALGORITHMS)}, or {{name: ..., design: ..., weights: ...}}",
        f'8: candidates.size: {COUNT} the text "100"',
        '9: candidates.source: unknown source "here". Allowed: target, inflated, box',
        "10: candidates.inflation: must be a finite positive number, not 0.0",
        f"11: n: {COUNT} 40.0",
        "12: seeds: must be at least 1, not 0",
        "13: seeds: stands in line 12 already",
        "15: rate_windows[0]: must be [first, last] with 1 <= first < last, not [40, 5]",
        "15: rate_windows[1]: must be a list, such as [first, second], not 5",
    ]


def test_a_problem_is_told_at_its_own_line_of_a_long_list(folder):
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
def test_a_pair_that_does_not_go_together(folder, family, target, told):
    (folder / "mine.json").write_text(json.dumps(target))
    text = edited(
        ("[normal]", "[mine.json]"),
        ("{family: exponentiated_quadratic, scale: density}", f"{{family: {family}}}"),
        ("[0.5, 1]", "[1]"),
    )
    (problem,) = problems_of(text)
    assert problem.startswith(f"4: kernels.eq: {told}")


def test_integrands_that_do_not_go_with_a_target(folder):
    (folder / "cube.json").write_text('{"family": "uniform", "lower": [0], "upper": [1]}')
    text = edited(
        ("[normal]", "[cube.json, normal]"),
        ("n: 40", "integrands: {a: {family: rough_bumps, narrowest: 1, widest: 2}}\nn: 40"),
    )
    assert problems_of(text) == [
        "9: integrands.a: with target cube: rough_bumps has exact integrals under GaussianMixture "
        "and Empirical, not under Uniform"
    ]


def test_integrands_of_a_sweep(folder):
    integrands = (
        "n: 40",
        "integrands:\n  b: {family: rkhs_ball}\n"
        "  a: {widest: 2, family: rough_bumps, narrowest: 1e-1, centre_variance: 3}\nn: 40",
    )
    sweep = loaded(edited(integrands))
    assert list(sweep.integrands) == ["b", "a"]
    assert sweep.integrands["a"]["centre_variance"] == 3.0
    spec = sweep.spec(sweep.cells()[0])
    (ball, defaults), (bumps, parameters) = spec.build_integrands()
    assert (ball, bumps) == tuple(
        registry.find("integrand", f) for f in ("rkhs_ball", "rough_bumps")
    )
    assert defaults == {"functions": 250, "terms": 10, "centre_variance": None}
    assert (parameters["narrowest"], parameters["widest"]) == (0.1, 2.0)
    assert pickle.loads(pickle.dumps(spec)).digest == spec.digest


def test_a_pool_that_does_not_go_with_a_target(folder):
    (folder / "cube.json").write_text('{"family": "uniform", "lower": [0], "upper": [1]}')
    text = edited(("[normal]", "[cube.json]"), ("size: 100", "source: inflated"))
    assert problems_of(text) == [
        '7: candidates: Uniform has no covariances to inflate; use source "target" or "box" '
        "(target cube)"
    ]


@pytest.mark.parametrize(
    ("content", "told"),
    [
        ('{"family":\n  gaussian}', " is not JSON: line 2, column 3: "),
        ("[1]", " must hold one JSON object, not a list"),
        ("", " is not JSON: line 1, column 1: "),
        (
            '{"family": "uniform", "family": "empirical"}',
            ' cannot be read: key "family" stands twice',
        ),
        ("{}", ": family: missing. Allowed: empirical, gaussian_mixture, uniform"),
        ({"family": 3}, ": family: must be a text, not 3. Allowed: empirical, gaussian_mixture, u"),
        ({"family": "gausian_mixture"}, ': family: unknown target family "gausian_mixture"; did y'),
        ({"mean": [[0, 0]]}, ': mean: unknown key "mean"; did you mean "means"? Allowed: family, '),
        ({"about": 3}, ": about: must be a text, not 3"),
        ({"weights": [0.9]}, ": weights sum to 0.9; they must sum to 1"),
        (
            {"weights": ["1"]},
            ': weights: must hold numbers and nothing else; it holds the text "1"',
        ),
        ({"weights": [True]}, ": weights: must hold numbers and nothing else; it holds true"),
        ({"weights": 1}, ": weights: must be a list of numbers, not 1"),
        ({"weights": []}, ": weights have shape (0,); "),
        ({"weights": [10**400]}, ": weights: holds a number that is too large"),
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
def test_each_problem_of_a_target_file_is_told_with_the_files_name(folder, content, told):
    if isinstance(content, dict):
        content = json.dumps(NORMAL | content)
    (folder / "mine.json").write_text(content)
    (problem,) = problems_of(edited(("[normal]", "[normal, mine.json]")))
    assert problem.startswith(f"2: targets[1]: mine.json{told}")


def test_all_problems_of_a_target_file_are_told(folder):
    (folder / "mine.json").write_text('{"family": "uniform", "lower": [0, "a"], "uper": [1]}')
    assert problems_of(edited(("[normal]", "[mine.json]"))) == [
        "2: targets[0]: mine.json: lower: must hold numbers and nothing else; it holds "
        'the text "a"',
        '2: targets[0]: mine.json: uper: unknown key "uper"; did you mean "upper"? Allowed: '
        "family, lower, upper, name, about, source, licence",
        "2: targets[0]: mine.json: upper: missing, and it has no default",
    ]


def test_a_target_file_with_a_name_that_is_no_label(folder):
    (folder / "My Target.json").write_text(json.dumps(NORMAL))
    (problem,) = problems_of(edited(("[normal]", '["My Target.json"]')))
    assert problem.startswith('2: targets[0]: "My Target" is no label')


@pytest.mark.parametrize(
    ("text", "told"),
    [
        ("n: [1, 2\nseeds: 3\n", "2: column 6: the list or mapping opened in line 1 lacks a comma"),
        ("n: {a: 1\nseeds: 3\n", "2: column 6: the list or mapping opened in line 1 lacks a comma"),
        ("n: 1\n\tseeds: 2\n", "2: column 1: a tab: indent with spaces"),
        ("a:\n  b: 1\n c: 2\n", "3: column 2: not indented like the lines it follows, from line 1"),
        ("a: b: c\n", '1: column 5: no ": " can stand here'),
        ("n 40\nseeds: 3\n", '2: column 6: no ": " can stand here'),
        ("a: 'x\nb: 1\n", "3: column 1: the quotation mark of line 1 has no partner"),
        ("a: |\n x\ny\n", '3: column 1: expected "key: value" here'),
        ("a: 1\n---\nb: 2\n", "2: column 1: a second document starts here"),
        ("a: @x\n", "1: column 4: put text that starts with @ in quotes"),
        ("a: *x\n", "1: column 4: put text that starts with * in quotes"),
        ("a: [1,,2]\n", "1: column 7: a value is missing before ,"),
        (
            'a: "\\q"\n',
            "1: column 6: cannot be read as YAML: while scanning a double-quoted scalar",
        ),
        ("a: 1\nb: \x07\n", "2: holds the control character '\\x07'"),
        ("? [a]\n: b\n", "1: has a list or a mapping for a key; a key is a word"),
        ("a:\n  ? [a]\n  : b\n", "2: a: has a list or a mapping for a key; a key is a word"),
        ("a: !foo 1\n", "1: a: the tag !foo has no meaning here: leave it out"),
        ("a: !!python/object:os.system x\n", "1: a: the tag !!python/object:os.system has no mean"),
        ("a: !!int x\n", "1: a: x does not go with the tag !!int"),
        ("a: &x [*x]\n", "1: a[0]: is an alias of something that holds it"),
        ("[" * 500, "1: holds lists in lists, too deep to read"),
        ("", "1: must hold a mapping, with each key as key: value"),
        ("# nothing\n", "1: must hold a mapping, with each key as key: value"),
        ("- a\n- b\n", "1: must hold a mapping, with each key as key: value"),
        ("just words\n", "1: must hold a mapping, with each key as key: value"),
    ],
)
def test_what_is_no_yaml_is_told_in_plain_words(folder, text, told):
    (problem,) = problems_of(text)
    assert problem.startswith(told)


def test_aliases_that_stand_for_too_much(folder, monkeypatch):
    monkeypatch.setattr(yamlfile, "MOST_VALUES", 1000)
    tens = [f"k{i}: &k{i} [{', '.join([f'*k{i - 1}'] * 10)}]" for i in range(1, 9)]
    (problem,) = problems_of("\n".join(["k0: &k0 x", *tens]))
    assert problem.split(": ", 2)[2].startswith("more than 1000 values up to here")


def test_files_that_cannot_be_read(folder):
    (folder / "latin.yaml").write_bytes("title: caf\u00e9".encode("latin-1"))
    for name, told in {
        "gone.yaml": "there is no such file",
        "targets": "cannot be read: Is a directory",
        "latin.yaml": "is not text in UTF-8",
    }.items():
        with pytest.raises(SweepError) as caught:
            load(name)
        assert str(caught.value) == f"{name}:1: {told}"


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


@settings(IN_ONE_FOLDER, max_examples=150)
@given(data=st.data())
def test_whatever_stands_in_a_file_is_loaded_or_told(folder, data):
    tree = yaml.safe_load(SWEEP)
    for _ in range(data.draw(st.integers(1, 3))):
        places = [place for place in _places(tree) if place]
        *around, last = data.draw(st.sampled_from(places))
        inside = tree
        for key in around:
            inside = inside[key]
        inside[last] = data.draw(VALUES)
    text = yaml.safe_dump(tree)
    try:
        loaded(text)
    except SweepError as error:
        last_line = text.count("\n")
        for problem in error.problems:
            line, message = re.fullmatch(r"sweep\.yaml:(\d+): (.+)", problem).groups()
            assert 1 <= int(line) <= last_line
            assert not re.search("pydantic|[Vv]alidat|http|input_|_type|Traceback", message)


# --- Digests and the canonical form


def only_spec(text):
    sweep = loaded(text)
    return sweep.spec(sweep.cells()[0])


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("scale: density", "scale: unit"),
        ("scale: density", "scale: density, shape: [1, 2]"),
        ("[0.5, 1]", "[0.500001]"),
        ("[normal]", "[normal_copy]"),
        ("[iid, sbq]", "[sbq]"),
        ("[iid, sbq]", "[iid_bq]"),
        ("size: 100", "size: 101"),
        ("size: 100", "size: 100\n  fresh: true"),
        ("size: 100", "size: 100\n  source: inflated"),
        ("n: 40", "n: 41"),
        ("n: 40", "n: 40\nintegrands: {a: {family: rkhs_ball}}"),
    ],
)
def test_the_digest_changes_with_the_science(folder, old, new):
    (folder / "targets" / "normal_copy.json").write_text(json.dumps(NORMAL))
    assert only_spec(edited((old, new))).digest != only_spec(SWEEP).digest


def test_the_digest_changes_with_the_numbers_of_the_target(folder):
    before = only_spec(SWEEP)
    moved = NORMAL | {"means": [[0.0, 1e-300]]}
    (folder / "targets" / "normal.json").write_text(json.dumps(moved))
    assert only_spec(SWEEP).digest != before.digest


def test_the_digest_changes_with_the_code(folder):
    spec = only_spec(SWEEP)
    assert replace(spec, fingerprint="other").digest != spec.digest
    assert replace(spec).digest == spec.digest


def test_a_cells_fingerprint_is_of_the_code_it_uses(folder):
    sweep = loaded(SWEEP)
    iid, sbq, *_ = (sweep.spec(cell) for cell in sweep.cells())
    assert iid.fingerprint != sbq.fingerprint
    assert sbq.fingerprint == sweep.spec(sweep.cells()[3]).fingerprint


@pytest.mark.parametrize(
    ("old", "new"),
    [
        ("name: tiny", "name: other\ntitle: Another"),
        ("[0.5, 1]", "[5.0e-1, 2, 3] # more"),
        ("[0.5, 1]", "[0.50000000000000011]"),
        ("[iid, sbq]", "[iid]"),
        ("[iid, sbq]", "[{weights: uniform, design: iid, name: iid}]"),
        ("{family: exponentiated_quadratic, scale: density}", "\n    scale: density\n"
         "    family: 'exponentiated_quadratic'"),
        ("size: 100", "size: 100\n  source: target\n  fresh: false"),
        ("seeds: 3", "seeds: 5"),
        ("job: 2", "job: 1"),
        ("[[5, 40]]", "[[5, 40], [10, 40]]"),
        ("n: 40", "n: 40\nintegrands: {}"),
    ],
)  # fmt: skip
def test_the_digest_stays_with_everything_else(folder, old, new):
    assert only_spec(edited((old, new))).digest == only_spec(SWEEP).digest


def test_the_digest_stays_when_a_target_file_is_only_written_otherwise(folder):
    before = only_spec(SWEEP).digest
    otherwise = {"licence": "none", "means": [[0, -0.0]]} | NORMAL | {"about": "Changed."}
    otherwise |= {"weights": [1], "means": [[0, -0.0]], "covariances": [[[1, 0], [0, 1e0]]]}
    (folder / "targets" / "normal.json").write_text(json.dumps(otherwise, indent=3))
    assert only_spec(SWEEP).digest == before


def test_a_default_that_is_written_out_changes_nothing(folder):
    short, long = (edited((", scale: density", scale)) for scale in ("", ", scale: unit"))
    assert only_spec(short) == only_spec(long)
    assert only_spec(short).digest == only_spec(long).digest


def test_the_digest_changes_with_each_word_on_the_integrands(folder):
    bodies = [
        "a: {family: rkhs_ball}",
        "b: {family: rkhs_ball}",
        "a: {family: rkhs_ball, terms: 11}",
        "a: {family: rkhs_ball}, b: {family: genz_oscillatory, difficulty: 2}",
        "b: {family: genz_oscillatory, difficulty: 2}, a: {family: rkhs_ball}",
    ]
    specs = [only_spec(edited(("n: 40", f"integrands: {{{body}}}\nn: 40"))) for body in bodies]
    assert len({spec.digest for spec in specs}) == len(bodies)
    assert all(spec.code_here() == spec.fingerprint for spec in specs)
    # Code that no integrand of the sweep uses does not count.
    assert specs[0].fingerprint == specs[2].fingerprint != specs[3].fingerprint


def test_specs_pickle_with_all_that_a_worker_needs(folder):
    spec = only_spec(SWEEP)
    copy = pickle.loads(pickle.dumps(spec))
    assert copy == spec
    assert copy.digest == spec.digest
    target, kernel = copy.build()
    assert (target.dim, kernel.lengthscale, kernel.scale) == (2, 0.5, "density")


LABELS = st.from_regex("[a-z][a-z0-9_]{0,8}", fullmatch=True)


@st.composite
def sweeps(draw):
    """A valid sweep as a tree."""
    n = draw(st.integers(2, 60))
    lengthscales = draw(
        st.lists(st.floats(0.01, 100), min_size=1, max_size=4, unique_by=lambda x: f"{x:.12g}")
    )
    shapes = st.none() | st.lists(st.integers(1, 5) | st.floats(0.1, 9), min_size=2, max_size=2)
    kernels = {}
    for label in draw(st.lists(LABELS, min_size=1, max_size=3, unique=True)):
        kernels[label] = {"family": "exponentiated_quadratic"}
        shape, scale = draw(shapes), draw(st.sampled_from([None, "unit", "density"]))
        kernels[label] |= {k: v for k, v in {"shape": shape, "scale": scale}.items() if v}
    algorithms = draw(
        st.lists(st.sampled_from(sorted(registry.ALGORITHMS)), min_size=1, max_size=4, unique=True)
    )
    return {
        "name": draw(LABELS),
        "title": draw(st.text(st.characters(exclude_categories=["C"]), max_size=20)),
        "targets": ["normal"],
        "kernels": kernels,
        "lengthscales": lengthscales,
        "algorithms": algorithms,
        "candidates": {
            "size": draw(st.integers(n, 100)),
            "source": "box",
            "box": [[-1, 1], [0, 2]],
        },
        "n": n,
        "seeds": draw(st.integers(1, 30)),
        "seeds_per_job": draw(st.integers(1, 30)),
        "rate_windows": [[1, n]],
    }


@IN_ONE_FOLDER
@given(tree=sweeps(), data=st.data())
def test_equal_sweeps_are_equal_however_they_are_written(folder, tree, data):
    sweep = loaded(yaml.safe_dump(tree))
    other = {key: tree[key] for key in data.draw(st.permutations(list(tree)))}
    other["lengthscales"] = [x * (1 + 1e-16) for x in tree["lengthscales"]]
    other["candidates"] = tree["candidates"] | {"fresh": False, "box": [[-1.0, 1e0], [0.0, 2.0]]}
    other["algorithms"] = [
        dict(zip(("name", "design", "weights"), (name, *registry.ALGORITHMS[name]), strict=True))
        for name in tree["algorithms"]
    ]
    other["kernels"] = {
        label: {"scale": "unit"} | parameters for label, parameters in tree["kernels"].items()
    }
    again = loaded(yaml.safe_dump(other, sort_keys=False, default_flow_style=True))
    assert again == sweep
    assert again.canonical() == sweep.canonical()
    text = json.dumps(sweep.canonical(), allow_nan=False)
    assert json.loads(text) == sweep.canonical()
    assert set(sweep.canonical()) == {field.name for field in fields(sweep)}


@IN_ONE_FOLDER
@given(tree=sweeps())
def test_cells_and_blocks_cover_the_sweep_once(folder, tree):
    sweep = loaded(yaml.safe_dump(tree))
    cells, blocks = sweep.cells(), sweep.blocks()
    counts = [len(tree[key]) for key in ("targets", "kernels", "lengthscales", "algorithms")]
    assert len(set(cells)) == len(cells) == np.prod(counts)
    assert [seed for first, last in blocks for seed in range(first, last + 1)] == list(
        range(tree["seeds"])
    )
    names = {piece_name(cell, block) for cell in cells for block in blocks}
    assert len(names) == len(cells) * len(blocks)
    for cell in cells:
        assert float(f"{cell.lengthscale:.12g}") == cell.lengthscale
    more = replace(sweep, seeds=sweep.seeds + 7).blocks()
    full = [block for block in blocks if block[1] - block[0] + 1 == sweep.seeds_per_job]
    assert more[: len(full)] == full


def test_the_canonical_form_is_a_copy(folder):
    sweep = loaded(SWEEP)
    sweep.canonical()["targets"]["normal"]["weights"].append(1.0)
    assert sweep == loaded(SWEEP)


# --- What importing costs


def test_workers_load_neither_the_grammar_nor_the_store():
    heavy = ["dask", "matplotlib", "pydantic", "xarray", "yaml", "zarr"]
    code = f"import sys, bqlib.experiment; print([m for m in {heavy} if m in sys.modules])"
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"


def test_reading_a_sweep_loads_no_store():
    heavy = ["dask", "matplotlib", "xarray", "zarr"]
    code = (
        "import sys; from bqlib.experiment import load; "
        f"load({str(CONFIG / 'config.yaml')!r}); print([m for m in {heavy} if m in sys.modules])"
    )
    answer = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, check=True
    )
    assert answer.stdout.strip() == "[]"
