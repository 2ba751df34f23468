"""All pieces of a sweep as one dataset."""

import json
import shutil

import numpy as np
import pytest
import xarray as xr
from damage import age, flip
from project import SHELF
from written_results import write_pieces

import bqlib
from bqlib.results import store
from bqlib.results.layout import Layout, piece_name
from bqlib.results.pieces import encode_piece
from bqlib.schema import (
    DOES_NOT_APPLY,
    ERROR_VARIABLES,
    FAILED,
    MISSING,
    OK,
    QUANTILES,
    SCHEMA_VERSION,
    VARIABLES,
    SchemaError,
    check_schema,
    ends_of_sweeps,
)
from bqlib.sweep.file import load

WITH_INTEGRANDS = """
name: small
targets: [chen2010_mixture]
kernels: {eq: {family: exponentiated_quadratic}}
lengthscales: [0.5, 2]
algorithms: [herding, iid]
candidates: {size: 60}
n: 8
seeds: 3
seeds_per_job: 2
rate_windows: [[2, 8]]
integrands:
  within: {family: rkhs_ball, functions: 5}
  ridges: {family: rough_bumps, functions: 5, narrowest: 0.1, widest: 1}
"""


def first_piece(pieces):
    return sorted(pieces.rglob("*.zip"))[0]


def test_what_is_gathered_is_what_the_trials_gave(experiment, pieces, tmp_path):
    store.gather(experiment, tmp_path)
    curves = bqlib.open_results(tmp_path)
    assert set(curves.data_vars) == set(VARIABLES)
    for cell in experiment.cells():
        place = {
            "target": cell.target, "kernel": cell.kernel, "lengthscale": cell.lengthscale,
            "algorithm": cell.algorithm,
        }  # fmt: skip
        for seed in range(experiment.seeds):
            ours = curves.sel(place | {"seed": seed})
            theirs, _ = experiment.spec(cell).run(seed)
            for name in ("mmd", "weight_sum", "weights", "rank_reached"):
                np.testing.assert_array_equal(ours[name], theirs[name])
            dim = theirs["points"].shape[1]
            np.testing.assert_array_equal(ours.points[:, :dim], theirs["points"])
            assert np.isnan(ours.points[:, dim:]).all()  # the other target has one more
            assert ours.status == OK and ours.reason.item() == theirs["reason"]


def test_errors_are_gathered_where_a_sweep_has_integrands(tmp_path):
    (tmp_path / "sweep.yaml").write_text(WITH_INTEGRANDS)
    experiment = load(tmp_path / "sweep.yaml", SHELF)
    cell = experiment.cells()[1]
    trials = [experiment.spec(cell).run(seed)[0] for seed in (0, 1)]
    piece = tmp_path / "pieces" / piece_name(cell, (0, 1))
    piece.parent.mkdir(parents=True)
    piece.write_bytes(encode_piece(experiment.spec(cell), [0, 1], trials))
    store.gather(experiment, tmp_path)
    curves = bqlib.open_results(tmp_path)
    assert set(curves.data_vars) == {*VARIABLES, *ERROR_VARIABLES}
    assert curves.integrand.values.tolist() == ["within", "ridges"]
    assert curves["quantile"].values.tolist() == list(QUANTILES)
    ours = curves.sel(lengthscale=cell.lengthscale, algorithm=cell.algorithm).squeeze()
    for seed, theirs in enumerate(trials):
        for name in ERROR_VARIABLES:
            np.testing.assert_array_equal(ours[name].sel(seed=seed), theirs[name])
    assert np.isnan(ours.error.sel(seed=2)).all()
    with pytest.raises(SchemaError, match=r"coordinate quantile is missing; .*error_quantile"):
        check_schema(curves.drop_vars(["quantile", "error_quantile"]), "here")


@pytest.mark.filterwarnings("error")
def test_the_dataset_opens_without_us_and_says_what_it_is(experiment, pieces, tmp_path):
    store.gather(experiment, tmp_path)
    curves = xr.open_zarr(tmp_path / "curves.zarr")
    for name, variable in curves.variables.items():
        assert variable.attrs["long_name"] and "units" in variable.attrs, name
    attributes = json.loads((tmp_path / "curves.zarr" / "zarr.json").read_text())["attributes"]
    assert attributes["schema_version"] == SCHEMA_VERSION
    assert json.loads(attributes["config"]) == experiment.canonical()
    assert {"bqlib_version", "numpy_version", "scipy_version", "blas", "git_commit"} <= set(
        attributes
    )
    assert curves.status.dtype == np.int8 and curves.seed.dtype == np.int64


def test_missing_and_failed_trials_are_told_apart(experiment, pieces, tmp_path):
    cell = experiment.cells()[0]
    spec = experiment.spec(cell)
    (pieces / piece_name(cell, (2, 2))).unlink()
    mixed = encode_piece(spec, [0, 1], ["MemoryError: no room", spec.run(1)[0]])
    (pieces / piece_name(cell, (0, 1))).write_bytes(mixed)
    store.gather(experiment, tmp_path)
    curves = bqlib.open_results(tmp_path).isel(target=0, kernel=0, lengthscale=0, algorithm=0)
    assert curves.status.values.tolist() == [FAILED, OK, MISSING]
    assert curves.reason.values.tolist() == ["MemoryError: no room", "", ""]
    assert np.isnan(curves.mmd).all("n").values.tolist() == [True, False, True]


def test_small_chunks_gather_the_same(experiment, pieces, tmp_path, monkeypatch):
    for name in ("whole", "parts"):
        shutil.copytree(pieces, tmp_path / name / "pieces")
    store.gather(experiment, tmp_path / "whole")
    monkeypatch.setattr(store, "CHUNK_BYTES", 3 * 8 * 3 * 8 * 2)  # three cells to a chunk
    store.gather(experiment, tmp_path / "parts")
    whole, parts = (bqlib.open_results(tmp_path / name).load() for name in ("whole", "parts"))
    xr.testing.assert_identical(whole, parts)
    assert len(list((tmp_path / "parts" / "curves.zarr" / "mmd").iterdir())) > 3


def truncate(path):
    path.write_bytes(path.read_bytes()[:-100])


def swap(path):
    path.write_bytes(sorted(path.parent.parent.rglob("*.zip"))[-1].read_bytes())


@pytest.mark.parametrize(
    "damage, said",
    [
        (truncate, r"cannot be read \("),
        (flip, r"cannot be read \("),
        (swap, "comes from another sweep"),
        (age, "schema version 0"),
    ],
)
def test_a_bad_piece_is_named_and_nothing_is_replaced(experiment, pieces, tmp_path, damage, said):
    path = tmp_path / "curves.zarr"
    store.gather(experiment, tmp_path)
    before = (path / "zarr.json").read_bytes()
    damage(first_piece(pieces))
    with pytest.raises(SchemaError, match=said) as caught:
        store.gather(experiment, tmp_path)
    assert str(first_piece(pieces)) in str(caught.value)
    assert (path / "zarr.json").read_bytes() == before
    assert sorted(p.name for p in tmp_path.iterdir() if "curves" in p.name) == ["curves.zarr"]


def test_a_dataset_that_cannot_be_written_leaves_the_old_one(tmp_path):
    path = tmp_path / "rates.zarr"
    store.write_dataset(xr.Dataset({"rate": ("window", [0.5])}), path)
    with pytest.raises(Exception, match="a"):
        store.write_dataset(xr.Dataset({"rate": ("window", np.array([object()]))}), path)
    assert xr.open_zarr(path).rate.values == [0.5]
    assert [p.name for p in tmp_path.iterdir()] == ["rates.zarr"]


OF_PROBLEMS = """
name: of_problems
problems: [banana_stein, chen2010_eq, box_1d_brownian]
algorithms: [halton, herding, grid_bq]
seeds: 2
seeds_per_job: 1
"""


def test_problems_of_other_n_and_rules_that_do_not_apply_are_gathered(tmp_path):
    (tmp_path / "sweep.yaml").write_text(OF_PROBLEMS)
    sweep = load(tmp_path / "sweep.yaml", SHELF)
    write_pieces(sweep, Layout(tmp_path).pieces)
    store.gather(sweep, tmp_path)
    curves = bqlib.open_results(tmp_path).squeeze(["kernel", "lengthscale"])
    short, long, line = sweep.targets
    assert curves.sizes["n"] == 400 and ends_of_sweeps(curves.attrs) == {128, 400}
    ended = curves.sel(target=line, algorithm="halton", seed=0)
    assert ended.mmd.notnull().values.tolist() == [True] * 128 + [False] * 272
    assert ended.reason.item() == "" and ended.rank_reached.item() == 128
    assert curves.mmd.sel(target=long, algorithm="halton").notnull().all()
    sizes = np.flatnonzero(curves.mmd.sel(target=line, algorithm="grid_bq", seed=0).notnull()) + 1
    assert sizes.tolist() == [16, 32, 64, 128]
    for target, algorithm in ((short, "halton"), (short, "grid_bq"), (long, "grid_bq")):
        cell = curves.sel(target=target, algorithm=algorithm)
        assert (cell.status == DOES_NOT_APPLY).all() and cell.mmd.isnull().all()
        assert cell.reason[0].item() == sweep.inapplicable[algorithm][target]
    assert sweep.is_stored_as(json.loads(curves.attrs["config"]))
