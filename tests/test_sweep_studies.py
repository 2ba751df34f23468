"""Studies as parts of a sweep: read, planned, run and stored."""

import json
import pickle
from pathlib import Path

import numpy as np
import pytest

from bqlib import registry
from bqlib.experiment import SweepError, load
from bqlib.store import open_dataset, write_dataset
from bqlib.studies.study import pack, unpack

SHELF = Path(__file__).parent.parent / "config" / "targets"
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
        ("[submodularity, al", "[alternatives, al", '"alternatives" is in the list already'),
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


def test_the_readme_names_every_study():
    text = (SHELF.parent / "README.md").read_text()
    assert all(f"- `{name}`:" in text for name in registry.PLACES["study"])
