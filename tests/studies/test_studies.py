import json
import os
import pickle
import re
import shutil
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
from project import CONFIG, SHELF

import bqlib
from bqlib import (
    Candidates,
    Empirical,
    ExponentiatedQuadratic,
    GaussianMixture,
    Product,
    Uniform,
    embed,
    sbq,
)
from bqlib.discrepancy import mmd2
from bqlib.kernels import Brownian
from bqlib.results.store import open_dataset, write_dataset
from bqlib.schema import Variable
from bqlib.streams import stream
from bqlib.studies import Study, cost, kernel_choice, refinement, submodularity
from bqlib.studies.alternatives import STUDY as ALTERNATIVES
from bqlib.studies.plans import one_pool
from bqlib.studies.study import pack, unpack
from bqlib.sweep import registry
from bqlib.sweep.file import load
from bqlib.sweep.words import SweepError
from bqlib.trial import trial
from bqlib.weights import bq

NUMBERS = json.loads((SHELF / "chen2010_mixture.json").read_text())
MIXTURE = GaussianMixture(*(NUMBERS[key] for key in ("weights", "means", "covariances")))
KERNEL = ExponentiatedQuadratic(0.5, scale="density")
POOL = Candidates(400)
SIZES = {"alternatives": 56, "cost": 48, "kernel_choice": 50, "refinement": 50, "submodularity": 20}


@pytest.fixture(scope="module")
def results():
    """What each study gives for a small problem."""
    studies = {name: registry.find("study", name) for name in registry.PLACES["study"]}
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(kernel_choice, "FUNCTIONS", 50)
        patch.setattr(cost, "RUNS", 1)
        return {
            name: (study, [study.measure(MIXTURE, KERNEL, POOL, SIZES[name], s) for s in (0, 1)])
            for name, study in studies.items()
        }


def check_described(name, study, found):
    """Results are finite, and have the names, dimensions and attributes that the study says."""
    assert set(found[0]) == {*study.variables, *study.coordinates}
    dataset = study.dataset(found, {"study": name})
    for variable, about in study.variables.items():
        assert dataset[variable].dims == ("seed", *about.dims)
        assert dataset[variable].attrs == {"long_name": about.long_name, "units": about.units}
        known = dataset[variable]
        if variable == "seconds_by_pool":
            known = known.drop_sel(plan=list(cost.SLOW))
        assert known.size > 0 and np.isfinite(known).all()


@pytest.mark.parametrize("name", registry.PLACES["study"])
def test_results_are_what_the_study_says_of_them(results, name):
    study, found = results[name]
    check_described(name, study, found)
    for coordinate in study.coordinates:
        np.testing.assert_array_equal(found[0][coordinate], found[1][coordinate])


@pytest.mark.parametrize(
    "study", [ALTERNATIVES, kernel_choice.STUDY, refinement.STUDY, submodularity.STUDY]
)
def test_a_rerun_gives_the_same_bytes_and_another_seed_does_not(study, monkeypatch):
    monkeypatch.setattr(kernel_choice, "FUNCTIONS", 3)
    first, again, other = (study.measure(MIXTURE, KERNEL, POOL, 20, seed) for seed in (0, 0, 1))
    assert all(again[key].tobytes() == first[key].tobytes() for key in first)
    assert any(first[key].tobytes() != other[key].tobytes() for key in first)


@pytest.mark.parametrize("name", registry.PLACES["study"])
def test_two_points_of_three_candidates_give_results_as_well(name, monkeypatch):
    monkeypatch.setattr(kernel_choice, "FUNCTIONS", 2)
    monkeypatch.setattr(cost, "RUNS", 1)
    study = registry.find("study", name)
    found = study.measure(MIXTURE, KERNEL, Candidates(3), 2, 0)
    check_described(name, study, [found])
    if "n" in study.coordinates:
        assert found["n"].tolist() == [1, 2]


def test_texts_are_stored_as_objects():
    study = Study(None, 1, {"x": Variable(("plan",), "x")}, {"plan": ("plan", "")})
    results = [{"plan": np.array(["a", "bc"]), "x": np.zeros(2)}]
    assert study.dataset(results, {})["plan"].dtype == object


def test_plans_are_those_of_sweeps_on_the_same_pool(results):
    _, (found, _) = results["alternatives"]
    curves = dict(zip(found["plan"], found["mmd"], strict=True))
    n = found["n"]
    own = trial(MIXTURE, KERNEL, sbq, bq, POOL, 56, 0)["mmd"]
    np.testing.assert_array_equal(curves["sbq"], own[n - 1])
    before = n <= 50
    np.testing.assert_array_equal(curves["sbq_50_herding"][before], curves["sbq"][before])
    assert (curves["sbq_50_herding"][~before] > curves["sbq"][~before]).all()
    assert (curves["herding_bq"] <= curves["herding"]).all()
    assert (curves["sbq_nonnegative"] >= curves["sbq"] * (1 - 1e-9)).all()


def test_costs_follow_from_what_is_stored(results):
    _, (found, _) = results["cost"]
    assert list(found["plan"]) == [plan.name for plan in cost.STUDY.plans]
    assert {*cost.FRESH, *cost.SLOW} < set(found["plan"])
    peak = dict(zip(found["plan"], found["peak_bytes"], strict=True))
    half, size = 24, POOL.size
    assert peak["sbq"] >= 8 * half * size > peak["herding"] - 8 * 10 * size
    assert peak["sbq_fresh"] < 8 * half * size and cost.FRESH_SHARE < 1
    assert (found["seconds"] > 0).all()


def test_moving_all_points_beats_moving_each(results):
    _, found = results["refinement"]
    for result in found:
        mmd = dict(zip(result["plan"], result["mmd"], strict=True))
        assert list(result["n"]) == [2, 6, 12, 25, 50]
        assert (mmd["joint"][1:] < np.minimum(mmd["sbq"], mmd["refined"])[1:]).all()
        assert mmd["joint"][-1] < 0.9 * mmd["sbq"][-1]
        assert mmd["refined"][0] <= mmd["sbq"][0]


def test_one_pool_is_a_share_of_what_is_asked_for():
    fresh = Candidates(100, "inflated", 3.0, fresh=True)
    pool = one_pool(fresh, MIXTURE, np.random.default_rng(0), 0.25)
    np.testing.assert_array_equal(pool, MIXTURE.inflated(3.0).sample(25, np.random.default_rng(0)))


def test_no_other_weights_are_better_than_those_at_the_length_scale_of_the_mmd(results):
    _, found = results["kernel_choice"]
    for result in found:
        mmd = result["mmd"]
        best = np.einsum("aee->ae", mmd)[:, None, :]
        assert (mmd >= best * (1 - 1e-9)).all()


def test_the_true_length_scale_has_the_coverage_it_claims(results):
    study, found = results["kernel_choice"]
    dataset = study.dataset(found, {}).mean("seed")
    true = dataset.sel(recipe="true")
    assert (abs(true.coverage - 0.95) < 0.066).all()  # 100 functions, binomial sd 0.022
    short = dataset.sel(truth=0.5)
    assert short.coverage.sel(recipe="assumed") < 0.8
    assert float(dataset.fitted_factor.sel(truth=2.0)) == pytest.approx(2, rel=0.1)


def test_a_kernel_without_length_scale_is_refused_by_name():
    with pytest.raises(TypeError, match="this Brownian has no length-scale"):
        kernel_choice.kernel_choice(Uniform([0.0], [1.0]), Brownian(), POOL, 5, 0)


@pytest.mark.parametrize("study", [ALTERNATIVES, cost.STUDY])
def test_a_target_without_sobol_points_is_refused_by_name(study):
    data = Empirical([[0.0], [1.0]])
    for target in (data, Product([Uniform([0.0], [1.0]), data])):
        with pytest.raises(TypeError, match="cannot map the unit cube to Empirical; it works for"):
            study.precondition(target, KERNEL)
    study.precondition(MIXTURE, KERNEL)


def small_problem(seed=0, size=9):
    embedding = embed(KERNEL, MIXTURE)
    pool = MIXTURE.sample(size, np.random.default_rng(seed))
    return embedding, pool, KERNEL(pool, pool), embedding.kernel_mean(pool)


def test_values_of_sets_are_what_quadrature_gains():
    embedding, pool, gram, mean = small_problem()
    sets = np.array([[0, 3, 5], [8, 1, 2]])
    found = submodularity.values(gram, mean, sets)
    for own, value in zip(sets, found, strict=True):
        gained = embedding.prior_variance - mmd2(
            embedding, pool[own], bq(embedding, pool[own]).final(3)
        )
        assert value == pytest.approx(gained, rel=1e-11)
        assert submodularity.value(gram, mean, own) == pytest.approx(value, rel=1e-12)
    gain = submodularity.gains(gram, mean, [0, 3])
    assert gain[5] == pytest.approx(found[0] - submodularity.value(gram, mean, [0, 3]), rel=1e-9)
    assert gain[0] == gain[3] == 0


def test_greedy_picks_are_those_of_sbq():
    _, pool, gram, mean = small_problem()
    order = submodularity.greedy_order(gram, mean, 5)
    design = sbq(MIXTURE, KERNEL, 5, rng=0, candidates=pool)
    np.testing.assert_array_equal(pool[order], design.points)


@pytest.mark.parametrize("seed", range(5))
def test_the_submodularity_ratio_holds_what_it_promises(seed):
    _, _, gram, mean = small_problem(seed)
    order = submodularity.greedy_order(gram, mean, 3)
    ratio = submodularity.submodularity_ratio(gram, mean, order)
    lowest = np.linalg.eigvalsh(submodularity.correlation(gram))[0]
    assert lowest <= ratio <= 1 + 1e-9
    best = submodularity.values(gram, mean, submodularity._sets(9, 3)).max()
    assert submodularity.value(gram, mean, order) >= (1 - np.exp(-ratio)) * best


def test_orthogonal_atoms_are_modular():
    mean = np.array([3.0, 1.0, 2.0, 0.5])
    assert submodularity.submodularity_ratio(np.eye(4), mean, [0, 2]) == pytest.approx(1)
    assert submodularity.violation(np.eye(4), mean) == 0
    assert submodularity.greedy_order(np.eye(4), mean, 3) == [0, 2, 1]


def test_two_atoms_that_only_help_together_violate_submodularity():
    # t is orthogonal to the second atom, which gains nothing alone and something after the first.
    gram, mean = np.array([[1.0, 0.5], [0.5, 1.0]]), np.array([1.0, 0.0])
    assert submodularity.violation(gram, mean) == pytest.approx(0.25 / 0.75)
    assert submodularity.submodularity_ratio(gram, mean, [0, 1]) == pytest.approx(0.75)


def test_coherence_is_the_largest_correlation_of_two_points():
    pool = MIXTURE.sample(30, np.random.default_rng(3))
    gram = KERNEL(pool, pool) / KERNEL.height(2) - np.eye(30)
    assert submodularity.coherence(KERNEL, pool, rows=7) == pytest.approx(gram.max())


def test_pools_are_those_of_the_sweep(results):
    _, (found, _) = results["submodularity"]
    pool = POOL.draw(MIXTURE, stream("candidates", 0))
    assert found["pool_coherence"] == submodularity.coherence(KERNEL, pool)
    assert found["coherence"] == submodularity.coherence(KERNEL, pool[:16])
    assert (found["greedy"] <= found["best"] * (1 + 1e-12)).all()
    assert (np.diff(found["greedy"]) > 0).all() and found["best"][-1] < 1


# --- As parts of a sweep: read, planned, run and stored


SWEEP = """
name: small
targets: [chen2010_mixture]
kernels:
  first: {family: exponentiated_quadratic, scale: density}
  second: {family: exponentiated_quadratic}
lengthscales: [0.5, 1]
algorithms: [iid]
candidates: {size: 60}
n: 12
seeds: 3
rate_windows: [[2, 12]]
studies: [submodularity, alternatives]
"""


@pytest.fixture
def sweep(tmp_path):
    def read(*edits):
        text = SWEEP
        for old, new in edits:
            assert old in text
            text = text.replace(old, new)
        (tmp_path / "sweep.yaml").write_text(text)
        return load(tmp_path / "sweep.yaml", SHELF)

    return read


def test_a_study_runs_at_the_first_of_everything(sweep):
    spec = sweep().study("alternatives")
    assert spec.cell == ("chen2010_mixture", "first", 0.5)
    assert (spec.n, spec.candidates.size, spec.seeds) == (12, 60, 3)
    assert sweep(("seeds: 3", "seeds: 30")).study("alternatives").seeds == 5
    assert spec.about()["digest"] == spec.digest
    json.dumps(spec.about(), allow_nan=False)


@pytest.mark.parametrize(
    "old, new, told",
    [
        ("[submodularity, al", "[submodularty, al", 'unknown study "submodularty"; did you mean'),
        ("[submodularity, al", "[alternatives, al", '"alternatives" is already in the list'),
        ("studies: [submodularity, alternatives]", "studies: 3", "must be a list"),
    ],
)
def test_wrong_studies_are_told_with_their_line(sweep, old, new, told):
    with pytest.raises(SweepError) as error:
        sweep((old, new))
    assert "sweep.yaml:13: studies" in str(error.value) and told in str(error.value)


def test_a_study_that_cannot_run_on_the_pair_is_told_before_it_runs(sweep):
    full = "first: {family: exponentiated_quadratic, shape: [[1, 0.2], [0.2, 1]]}"
    sweep(("first: {family: exponentiated_quadratic, scale: density}", full))
    with pytest.raises(SweepError, match=r"kernel_choice cannot run: .* has no length-scale"):
        sweep(
            ("first: {family: exponentiated_quadratic, scale: density}", full),
            ("[submodularity,", "[kernel_choice,"),
        )


@pytest.mark.parametrize(
    "old, new",
    [
        ("family: exponentiated_quadratic, scale: density", "family: exponentiated_quadratic"),
        ("[0.5, 1]", "[1, 0.5]"),
        ("size: 60", "size: 61"),
        ("n: 12", "n: 13"),
        ("seeds: 3", "seeds: 4"),
    ],
)  # fmt: skip
def test_the_digest_changes_with_the_science(sweep, old, new):
    assert sweep((old, new)).study("alternatives").digest != sweep().study("alternatives").digest


@pytest.mark.parametrize(
    "old, new",
    [
        ("second: {family: exponentiated_quadratic}", "second: {family: stein}"),
        ("[0.5, 1]", "[0.5, 2]"),
        ("[iid]", "[iid, sbq]"),
        ("[submodularity, alternatives]", "[alternatives]"),
        ("[[2, 12]]", "[[1, 12]]"),
    ],
)  # fmt: skip
def test_the_digest_stays_with_everything_else(sweep, old, new):
    assert sweep((old, new)).study("alternatives").digest == sweep().study("alternatives").digest


def test_fingerprints_are_of_the_code_that_a_study_uses(sweep):
    specs = [sweep().study(name) for name in ("alternatives", "submodularity")]
    assert specs[0].fingerprint != specs[1].fingerprint
    assert all(spec.code_here() == spec.fingerprint for spec in specs)


@pytest.mark.parametrize("name", ["alternatives", "submodularity"])
def test_results_survive_the_way_to_the_store(sweep, tmp_path, name):
    spec = pickle.loads(pickle.dumps(sweep().study(name)))
    study = registry.find("study", name)
    results = [spec.run(seed)[0] for seed in range(2)]
    for before, after in zip(results, unpack(pack(results)), strict=True):
        assert before.keys() == after.keys()
        assert all(np.array_equal(before[key], after[key]) for key in before)
    write_dataset(study.dataset(unpack(pack(results)), spec.about()), tmp_path / "study.zarr")
    found = open_dataset(tmp_path / "study.zarr")
    assert found.attrs["study"] == name and found.sizes["seed"] == 2
    for variable in study.variables:
        np.testing.assert_array_equal(found[variable], [result[variable] for result in results])


DIGESTS = """
import json
from pathlib import Path
from bqlib.sweep.file import load
sweep = load("sweep.yaml", Path("targets"))
print(json.dumps({name: sweep.study(name).digest for name in sweep.studies}))
"""


@pytest.fixture(scope="module")
def digests(tmp_path_factory):
    """Digests of all studies by a copy of bqlib: as it is, and after an edit of one file."""
    folder = tmp_path_factory.mktemp("copy")
    shutil.copytree(Path(bqlib.__file__).parent, folder / "bqlib")
    shutil.copytree(SHELF, folder / "targets")
    studies = f"studies: [{', '.join(registry.PLACES['study'])}]"
    (folder / "sweep.yaml").write_text(re.sub("studies: .*", studies, SWEEP))

    def found():
        ran = subprocess.run(
            [sys.executable, "-B", "-c", DIGESTS],
            cwd=folder,
            env=os.environ | {"PYTHONPATH": str(folder)},
            capture_output=True,
            text=True,
            check=True,
        )
        return json.loads(ran.stdout)

    def after(path, old, new):
        file = folder / "bqlib" / path
        text = file.read_text()
        assert old in text
        file.write_text(text.replace(old, new, 1))
        try:
            return found()
        finally:
            file.write_text(text)

    return found(), after


@pytest.mark.parametrize(
    ("path", "old", "new", "changed"),
    [
        # designs and weight rules that a sweep's registry names
        ("designs/omp.py", "request = ", "request = _ = ", ["alternatives", "cost"]),
        ("designs/frank_wolfe.py", "(matrix)", "(matrix, *[])", ["alternatives", "cost"]),
        ("designs/joint.py", '"ftol": 0', '"ftol": 1', ["cost", "refinement"]),
        # one that studies alone have, and parameters
        ("studies/plans.py", "first = sbq(", "first = sbq(*[], ", ["alternatives", "cost"]),
        ("studies/plans.py", "(5, 20, 50)", "(5, 20)", ["alternatives", "cost"]),
        # code that finds designs, but is not a part of any
        ("sweep/plugins.py", "is_place(name):", "is_place(name, *others):", []),
    ],
)
def test_an_edit_of_a_plan_changes_the_digests_of_the_studies_that_run_it(
    digests, path, old, new, changed
):
    before, edited = digests
    after = edited(path, old, new)
    assert [name for name in before if before[name] != after[name]] == changed


def test_the_readme_names_every_study():
    text = (CONFIG / "README.md").read_text()
    assert all(f"- `{name}`:" in text for name in registry.PLACES["study"])


@pytest.mark.parametrize("size", [1, 3, 30])
def test_candidates_that_are_drawn_again_count_once(size):
    data = Empirical(np.arange(float(size))[:, None])
    kernel = ExponentiatedQuadratic(1.0)
    found = submodularity.submodularity(data, kernel, Candidates(100), 10, 0)
    assert found["picks"].tolist() == [1, 2, 3, 4, 5]  # a coordinate: the same for every seed
    for name in ("greedy", "best", "ratio"):
        assert np.isfinite(found[name]).tolist() == [k < size for k in range(5)]
    # Five picks are the whole target where it has so few points, and a part of a larger one.
    last = found["best"][min(size, 5) - 1]
    assert last == pytest.approx(1) if size <= 5 else 0 < last < 0.9
    assert found["pool_coherence"] == pytest.approx(np.exp(-0.5) if size > 1 else 0)
