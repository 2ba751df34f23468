"""Several experiments opened as one."""

import hashlib
import json

import numpy as np
import pytest
import xarray as xr
import zarr
from merged_sweeps import run

import bqlib
from bqlib.results.merge import MergeError
from bqlib.schema import FAILED, MISSING, OK, SchemaError, check_schema

CELL = {"target": "chen2010_mixture", "kernel": "eq"}


@pytest.fixture(scope="module")
def first(tmp_path_factory):
    return run(tmp_path_factory.mktemp("merged") / "first")


@pytest.fixture(scope="module")
def second(first):
    own = {"lengthscales": [2, 0.5], "algorithms": "[omp, sbq]", "seeds": 3, "windows": [[3, 12]]}
    integrands = "integrands: {within: {family: rkhs_ball, functions: 5}}"
    return run(first.parent / "second", integrands, **own)


@pytest.fixture
def copies(first, second, tmp_path):
    """Both results, to be changed."""
    stores = []
    for folder in (first, second):
        target = tmp_path / folder.name / "curves.zarr"
        target.parent.mkdir()
        for path in (folder / "curves.zarr").rglob("*"):
            copy = target / path.relative_to(folder / "curves.zarr")
            copy.parent.mkdir(parents=True, exist_ok=True)
            if path.is_file():
                copy.write_bytes(path.read_bytes())
        stores.append(target)
    return stores


def change(store, name, values, **index):
    """Write values over one variable of one trial."""
    array = zarr.open_group(store)[name]
    where = [0, 0, index["lengthscale"], index["algorithm"], index["seed"]]
    block = (*map(slice, where, [i + 1 for i in where]),)
    array[block] = np.broadcast_to(values, array[block].shape)


def damage(store, name="mmd"):
    for chunk in (store / name).glob("c.*"):
        chunk.write_bytes(b"not to be read")


def test_each_trial_is_what_its_experiment_has_and_others_are_missing(first, second):
    merged = bqlib.open_results([first, second])
    a, b = bqlib.open_results(first), bqlib.open_results(second)
    assert merged["lengthscale"].values.tolist() == [0.5, 1.0, 2.0]
    assert merged["algorithm"].values.tolist() == ["herding", "sbq", "omp"]
    assert merged["seed"].values.tolist() == [0, 1, 2]
    for labels in np.ndindex(3, 3, 3):
        chosen = {
            dim: merged[dim].values[i]
            for dim, i in zip(("lengthscale", "algorithm", "seed"), labels, strict=True)
        }
        sources = [d for d in (a, b) if all(x in d[dim].values for dim, x in chosen.items())]
        ours = merged.sel(CELL | chosen)
        if not sources:
            assert ours["status"] == MISSING and ours["reason"].item() == ""
            assert all(ours[n].isnull().all() for n in ("mmd", "points", "error", "rank_reached"))
            continue
        assert ours["status"] == OK
        for name in sources[0].data_vars:
            np.testing.assert_array_equal(ours[name], sources[0].sel(CELL | chosen)[name])


def test_a_merged_dataset_has_the_form_of_one(first, second):
    merged = bqlib.open_results([first, second])
    one = bqlib.open_results(second)
    assert set(merged.data_vars) == set(one.data_vars)
    for name, values in one.variables.items():
        assert merged[name].dims == values.dims and merged[name].attrs == values.attrs
    assert merged["status"].dtype == np.int8
    config = json.loads(merged.attrs["config"])
    assert merged.attrs["title"] == "Sweep first; Sweep second"
    assert config["name"] == "first+second" and config["seeds"] == 3
    assert config["rate_windows"] == [[2, 12], [3, 12]]
    assert {a["name"] for a in config["algorithms"]} == {"herding", "sbq", "omp"}
    assert list(config["integrands"]) == ["within"]
    assert [d["title"] for d in json.loads(merged.attrs["merged_from"])] == [
        "Sweep first", "Sweep second",
    ]  # fmt: skip


@pytest.mark.parametrize(
    "name, values, said",
    [
        ("seed", [0, 0], "coordinate seed has repeated labels"),
        ("n", list(range(12, 0, -1)), "coordinate n is not 1, 2, 3, ..."),
        (None, None, "attribute config is missing"),
    ],
)
def test_a_store_whose_labels_cannot_be_joined_is_refused(copies, name, values, said):
    dataset = bqlib.open_results(copies[0])
    if name is None:
        del dataset.attrs["config"]
    else:
        dataset = dataset.assign_coords({name: values})
    with pytest.raises(SchemaError, match=f"^here does not match the schema: {said}$"):
        check_schema(dataset, "here")


def test_any_selection_of_merged_curves_is_that_of_the_loaded_ones(first, second):
    loaded = bqlib.open_results([first, second]).load()
    lazy = bqlib.open_results([first, second])
    for select in (
        {"lengthscale": [2, 0], "seed": slice(None, None, -1)},
        {"algorithm": 1, "n": slice(2, 9, 3)},
        {"lengthscale": 2, "algorithm": 0, "seed": 0},
        {"seed": xr.DataArray([2, 0], dims="draw"), "n": xr.DataArray([3, 5], dims="draw")},
        {"n": []},
    ):
        xr.testing.assert_identical(lazy.isel(select).compute(), loaded.isel(select))


def test_opening_experiments_without_common_trials_reads_no_values(copies):
    zarr.open_group(copies[1])["seed"][...] = [7, 8, 9]
    for store in copies:
        for name in ("mmd", "status", "points"):
            damage(store, name)
    merged = bqlib.open_results(copies)
    assert merged["seed"].values.tolist() == [0, 1, 7, 8, 9]
    with pytest.raises(Exception, match=r"(?i)checksum|crc"):
        merged["mmd"].load()


def test_a_part_of_merged_curves_reads_only_the_experiments_that_have_it(copies):
    zarr.open_group(copies[1])["seed"][...] = [7, 8, 9]
    damage(copies[1])
    merged = bqlib.open_results(copies)["mmd"]
    own = bqlib.open_results(copies[0])["mmd"].sel(seed=[0], algorithm="sbq")
    found = merged.sel(seed=[0], algorithm="sbq", lengthscale=own["lengthscale"])
    np.testing.assert_array_equal(found, own)
    with pytest.raises(Exception, match=r"(?i)checksum|crc"):
        merged.sel(seed=7).load()


def test_merged_values_are_kept_once_read_and_can_be_assigned(copies):
    merged = bqlib.open_results(copies)
    once = merged["mmd"].values.copy()
    merged["status"][...] = FAILED
    assert (merged["status"] == FAILED).all()
    for store in copies:
        damage(store)
    np.testing.assert_array_equal(merged["mmd"].values, once)
    assert (bqlib.open_results(copies[0])["status"] == OK).all()


def test_of_common_trials_the_one_that_succeeded_is_taken(copies):
    first, second = copies
    index = {"lengthscale": 0, "algorithm": 1, "seed": 0}
    expected = bqlib.open_results(second)["mmd"].sel(
        CELL | {"lengthscale": 0.5, "algorithm": "sbq"}
    )
    expected = expected.sel(seed=0).values
    change(first, "mmd", np.nan, **index)
    change(first, "status", FAILED, **index)
    for order in (copies, copies[::-1]):
        merged = bqlib.open_results(order).sel(CELL | {"lengthscale": 0.5, "algorithm": "sbq"})
        assert merged["status"].sel(seed=0) == OK
        np.testing.assert_array_equal(merged["mmd"].sel(seed=0), expected)


def test_rounding_is_no_conflict_and_other_values_are(copies):
    first, _ = copies
    own = bqlib.open_results(first)["mmd"].sel(CELL | {"lengthscale": 0.5, "algorithm": "sbq"})
    own = own.sel(seed=1).values
    index = {"lengthscale": 0, "algorithm": 1, "seed": 1}
    change(first, "mmd", own * (1 + 1e-9), **index)
    bqlib.open_results(copies)
    change(first, "mmd", own * (1 + 1e-4), **index)
    change(first, "weight_sum", np.nan, **index)
    with pytest.raises(MergeError) as caught:
        bqlib.open_results(copies)
    said = str(caught.value).splitlines()[1:]
    assert len(said) == 1
    assert said[0].startswith("chen2010_mixture/eq/0.5/sbq, seeds 1: different mmd, weight_sum in ")


def test_every_conflict_of_science_is_named(tmp_path):
    mine = "[iid, {{name: mine, design: herding, weights: {}}}]"
    one = run(tmp_path / "one", algorithms=mine.format("bq"))
    other = run(
        tmp_path / "other", kernel=", scale: density", size=70, n=10, windows=[[2, 10]],
        algorithms=mine.format("uniform"),
    )  # fmt: skip
    with pytest.raises(MergeError) as caught:
        bqlib.open_results([one, other])
    text = str(caught.value)
    assert f'kernel "eq" has scale "unit" in {one}, but scale "density" in {other}' in text
    assert f'algorithm "mine" has weights "bq" in {one}, but weights "uniform"' in text
    assert len(text.splitlines()) == 3


def set_config(group, text):
    group.attrs.update(config=text, config_sha256=hashlib.sha256(text.encode()).hexdigest())


def test_targets_differ_by_their_numbers_and_not_by_their_words(copies):
    first, second = copies
    for store, about, weight in ((first, "one", 0.25), (second, "two", 0.25)):
        group = zarr.open_group(store)
        config = json.loads(group.attrs["config"])
        config["targets"]["chen2010_mixture"] |= {"about": about, "weights": [weight]}
        set_config(group, json.dumps(config))
    bqlib.open_results(copies)
    group = zarr.open_group(second)
    set_config(group, group.attrs["config"].replace("[0.25]", "[0.75]"))
    with pytest.raises(MergeError, match=r'target "chen2010_mixture" has weights \[0\.25\]'):
        bqlib.open_results(copies)


def test_rates_of_merged_experiments_are_those_of_each(first, second):
    merged = bqlib.open_results([first, second]).bq.rates()
    alone = bqlib.open_results(first).bq.rates([(2, 12)])
    chosen = {"lengthscale": [0.5, 1.0], "algorithm": ["herding"], "window": ["2-12"]}
    xr.testing.assert_equal(
        merged["rate"].sel(chosen), alone["rate"].sel(chosen | {"window": ["2-12"]})
    )
    assert (
        merged["reason"].sel(lengthscale=2, algorithm="herding") == "3 of 3 seeds missing"
    ).all()


def test_an_integrand_that_one_experiment_has_is_never_lost(tmp_path):
    few = {"lengthscales": [0.5], "algorithms": "[iid]"}
    ball, bumps = (
        f"{label}: {{{content}, functions: 5}}"
        for label, content in (
            ("ball", "family: rkhs_ball"),
            ("bumps", "family: rough_bumps, narrowest: 0.1, widest: 2"),
        )
    )
    folders = {
        name: run(tmp_path / name, f"integrands: {{{content}}}" if content else "", **few)
        for name, content in {
            "neither": "", "ball": ball, "bumps": bumps, "both": f"{ball}, {bumps}"
        }.items()
    }  # fmt: skip
    whole = bqlib.open_results(folders["both"]).load()
    for names in (["ball", "both"], ["neither", "both"], ["neither", "ball", "bumps"]):
        for order in (names, names[::-1]):
            merged = bqlib.open_results([folders[name] for name in order])
            for name in whole.data_vars:
                found = merged[name]
                if "integrand" in found.dims:
                    found = found.sel(integrand=["ball", "bumps"])
                np.testing.assert_array_equal(found, whole[name])
            one = merged["error"].isel(seed=[1], n=slice(3, 5)).sel(integrand="bumps")
            np.testing.assert_array_equal(
                one, whole["error"].isel(seed=[1], n=slice(3, 5)).sel(integrand="bumps")
            )


def test_plugins_of_two_folders_are_one_where_their_files_are_equal(tmp_path):
    own = {
        "lengthscales": [0.5],
        "algorithms": "[{name: mine, design: iid, weights: mine.py:mine}]",
    }
    code = (
        "from bqlib.integrands import rkhs_ball\nfrom bqlib.weights import uniform\n\n\n"
        "def mine(embedding, points):\n    return uniform(embedding, points)\n\n\n"
        "def waves(embedding, rng):\n    return rkhs_ball(embedding, rng, functions=5)\n"
    )
    folders = [tmp_path / "one", tmp_path / "two"]
    for folder in folders:
        folder.mkdir()
        (folder / "mine.py").write_text(code)
        run(folder, "integrands: {w: {family: mine.py:waves}}", **own)
    one, two = folders
    assert (bqlib.open_results(folders)["status"] == OK).all()

    def said():
        with pytest.raises(MergeError) as caught:
            bqlib.open_results(folders)
        return str(caught.value).splitlines()[1:]

    (two / "mine.py").write_text(code.replace("=5", "=6"))
    integrand, algorithm = said()
    assert f'integrand "w" is {one}/mine.py:waves in {one}, but {two}/mine.py:waves in' in integrand
    assert f'algorithm "mine" is {one}/mine.py:mine in {one}, but {two}/mine.py:mine' in algorithm
    assert "these files differ, or one no longer exists; restore" in integrand
    (two / "mine.py").unlink()
    assert said() == [integrand, algorithm]
