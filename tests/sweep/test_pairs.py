"""What cannot work together is refused; what is accepted works."""

import re
from itertools import product

import numpy as np
import pytest
from written_sweep import loaded, problems_of

from bqlib.studies import cost, kernel_choice
from bqlib.sweep import registry
from bqlib.sweep.words import SweepError

TARGETS = {
    "normal": "{name: t, family: gaussian_mixture, weights: [1], means: [[0.3, 0.4]], "
    "covariances: [[[1, 0], [0, 1]]]}",
    "uniform": "{name: t, family: uniform, lower: [0, 0], upper: [1, 1]}",
    "data": "{name: t, family: empirical, points: [[0.1, 0.2], [0.8, 0.7], [0.5, 0.5]]}",
    "far": "{name: t, family: empirical, points: [[0.1, 0.2], [-8, 0.7], [0.5, 5]]}",
}
KERNELS = {name: f"{{family: {name}}}" for name in registry.PLACES["kernel"]}
KERNELS["stein_with_constant"] = "{family: stein, constant: 1}"
PARTS = {name: f"{{family: {name}, iterations: 2}}" for name in ("joint", "msip")}
PARTS["recombination"] = "{family: recombination, mean: pool}"  # others depend on the draws
BOX = "{size: 12, source: box, box: [[-3, -2], [2, 3]]}"


def sweep(target, kernel, algorithms, candidates="{size: 12}", more=""):
    lines = "\n".join(f"  - {algorithm}" for algorithm in algorithms)
    return (
        f"name: x\ntargets: [{target}]\nkernels: {{k: {kernel}}}\nlengthscales: [1]\n"
        f"algorithms:\n{lines}\ncandidates: {candidates}\nn: 4\nseeds: 2\n{more}"
    )


@pytest.fixture(autouse=True)
def folder(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)


@pytest.mark.parametrize("candidates", ["{size: 12}", BOX, "{size: 12, fresh: true}"])
@pytest.mark.parametrize("kernel", KERNELS)
@pytest.mark.parametrize("target", TARGETS)
def test_every_pair_of_registered_names_works_or_is_refused(target, kernel, candidates):
    rules = registry.PLACES["weights"] if candidates == "{size: 12}" else ["bq"]
    algorithms = [
        f"{{name: {design}_with_{weights}, design: {PARTS.get(design, design)}, "
        f"weights: {weights}}}"
        for design, weights in product(registry.PLACES["design"], rules)
    ]
    text = sweep(TARGETS[target], KERNELS[kernel], algorithms, candidates)
    try:
        experiment = loaded(text)
    except SweepError as error:
        refused = re.findall(r": algorithms\[(\d+)\]: ", str(error))
        assert refused or "kernels.k: " in str(error) or "candidates.box: " in str(error), error
        if not refused:
            return
        allowed = [a for i, a in enumerate(algorithms) if str(i) not in refused]
        experiment = loaded(sweep(TARGETS[target], KERNELS[kernel], allowed, candidates))
    for cell in experiment.cells():
        experiment.spec(cell).run(0)


@pytest.mark.parametrize("study", registry.PLACES["study"])
@pytest.mark.parametrize("kernel", ["exponentiated_quadratic", "stein", "korobov"])
@pytest.mark.parametrize("target", ["normal", "uniform", "data"])
def test_every_study_works_or_is_refused(target, kernel, study, monkeypatch):
    monkeypatch.setattr(kernel_choice, "FUNCTIONS", 3)  # whatever they measure
    monkeypatch.setattr(cost, "RUNS", 1)
    text = sweep(TARGETS[target], KERNELS[kernel], ["iid"], more=f"studies: [{study}]\n")
    try:
        experiment = loaded(text)
    except SweepError as error:
        assert "studies[0]: " in str(error) or "kernels.k: " in str(error)
    else:
        experiment.study(study).run(0)


def test_problems_of_pairs_are_told_with_their_lines_all_at_once():
    algorithms = [
        "sobol",
        "iid",
        "{name: b, design: {family: block_sbq, block: 0}, weights: bq}",
        "{name: r, design: {family: sbq, refine: -1}, weights: bq}",
    ]
    data = "{name: d, family: empirical, points: [[0.1, 0.2]]}, " + TARGETS["uniform"]
    told = [
        "6: algorithms[0]: design sobol cannot work: sobol cannot map the unit cube to Empirical",
        "8: algorithms[2]: design block_sbq cannot work: block is 0; it must be at least 1 ",
        "9: algorithms[3]: design sbq cannot work: refine is -1; it must be at least 0 (target d, ",
    ]
    problems = problems_of(sweep(data, KERNELS["matern"], algorithms))
    assert len(problems) == len(told)
    assert all(map(str.startswith, problems, told)), problems


def test_a_sweep_of_a_size_that_a_lattice_has_not_is_refused_with_the_nearest():
    text = sweep(TARGETS["uniform"], "{family: korobov, order: 3}", ["lattice", "halton_bq"])
    [problem] = problems_of(
        text.replace("n: 4", "n: 20\nsizes: [8, 20]").replace("size: 12", "size: 30")
    )
    assert "algorithms[0]: design lattice cannot work: n is 20; a lattice of 2 coord" in problem
    assert "use 16 or 21" in problem
    [problem] = problems_of(text.replace("order: 3", "order: 4"))
    assert "order is 4; it must be 1, 2 or 3" in problem
    experiment = loaded(text)
    for cell in experiment.cells():
        spec = experiment.spec(cell)
        assert "'order': 3" in repr(spec)
        assert np.isfinite(spec.run(0)[0]["mmd"][-1])


def test_parameters_of_joint_are_checked():
    [problem] = problems_of(
        sweep(
            TARGETS["normal"],
            KERNELS["matern"],
            ["{name: j, design: {family: joint, iterations: -1}, weights: bq}"],
        )
    )
    assert "design joint cannot work: iterations is -1" in problem


def test_a_plug_in_can_say_what_it_requires(tmp_path):
    (tmp_path / "mine.py").write_text(
        """
from bqlib.designs.design import requires
from bqlib.designs.iid import iid


def few(target, kernel, n, *, candidates, most=3):
    if n > most:
        raise ValueError(f"it has at most {most} points, not {n}")


@requires(few)
def mine(target, kernel, n, *, rng, candidates, most: int = 3):
    return iid(target, kernel, n, rng=rng)
"""
    )
    design = "{name: m, design: {family: mine.py:mine, most: %d}, weights: bq}"
    loaded(sweep(TARGETS["normal"], KERNELS["matern"], [design % 4]))
    [problem] = problems_of(sweep(TARGETS["normal"], KERNELS["matern"], [design % 2]))
    assert problem == (
        "6: algorithms[0]: design mine.py:mine cannot work: it has at most 2 points, not 4 "
        "(target t, kernel k)"
    )
