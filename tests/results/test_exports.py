import datetime
import subprocess
import sys

import numpy as np
import paper_sweep
import pytest
import xarray as xr

import bqlib
from bqlib.cli.main import main
from bqlib.results import exports
from bqlib.schema import DOES_NOT_APPLY, FAILED, MISSING
from bqlib.sweep.values import checked_label

SWEEP = """
name: small
targets: [chen2010_mixture]
kernels: {eq: {family: exponentiated_quadratic}}
lengthscales: [0.5, 1]
algorithms: [herding, sbq]
candidates: {size: 60}
integrands: {within: {family: rkhs_ball, functions: 5}}
n: 8
seeds: 3
rate_windows: [[2, 8]]
"""
pd = pytest.importorskip("pandas")


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    folder = tmp_path_factory.mktemp("exports")
    paper_sweep.run(folder, SWEEP)
    return folder


@pytest.fixture
def curves(folder):
    """With a failed and a missing trial."""
    curves = bqlib.open_results(folder).load()
    for seed, value, reason in ((0, FAILED, 'ran "out", of memory\nat n = 3'), (1, MISSING, "")):
        place = {"lengthscale": 0.5, "algorithm": "sbq", "seed": seed}
        curves["status"].loc[place] = value
        curves["reason"].loc[place] = reason
        for name in ("mmd", "weights", "error"):
            curves[name].loc[place] = np.nan
    return curves


def read(path):
    if path.suffix == ".parquet":
        return pd.read_parquet(path)
    return pd.read_csv(path).fillna({"reason": ""})


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_a_row_for_each_cell_seed_and_n_with_the_same_bits(curves, tmp_path, suffix):
    path = tmp_path / f"made/curves{suffix}"
    assert bqlib.export(curves, path) == (11 * 8, 1)
    table = read(path)
    assert len(table) == 11 * 8
    assert list(table.columns[:7]) == [
        "target", "kernel", "lengthscale", "algorithm", "seed", "n", "status",
    ]  # fmt: skip
    assert {"error_within", "bound_ratio_within", "error_quantile_within_0.5"} <= set(table.columns)
    assert not {"point_0", "weight"} & set(table.columns)
    for row in table.itertuples():
        own = curves.sel(
            target=row.target, kernel=row.kernel, lengthscale=row.lengthscale,
            algorithm=row.algorithm, seed=row.seed, n=row.n,
        )  # fmt: skip
        np.testing.assert_equal(row.mmd, own["mmd"].item())
        np.testing.assert_equal(row.error_within, own["error"].item())
        assert row.rank_reached == own["rank_reached"] and row.reason == own["reason"].item()
        assert row.status == {1: "ok", 2: "failed"}[own["status"].item()]
    assert [p.name for p in path.parent.iterdir()] == [path.name]


@pytest.mark.parametrize("suffix", [".csv", ".parquet"])
def test_blocks_of_cells_make_the_same_file_and_points_come_when_asked(
    curves, tmp_path, suffix, monkeypatch
):
    whole, parts = tmp_path / f"whole{suffix}", tmp_path / f"parts{suffix}"
    bqlib.export(curves, whole, points=True)
    monkeypatch.setattr(exports, "BLOCK_BYTES", 1)
    bqlib.export(curves, parts, points=True)
    pd.testing.assert_frame_equal(read(whole), read(parts))
    last = read(whole).iloc[-1]
    own = curves.isel(target=0, kernel=0, lengthscale=-1, algorithm=-1, seed=-1, n=-1)
    assert [last.point_0, last.point_1, last.weight] == [
        *own["points"].values,
        own["weights"].item(),
    ]


NEAR = ["nil", "no", "yes", "on", "off", "t", "f", "n_a", "na_", "nan1", "nulls", "e5", "inf_"]


@pytest.mark.parametrize("label", NEAR)
def test_a_label_like_a_missing_value_is_read_back_from_a_table(curves, tmp_path, label):
    one = curves.isel(algorithm=[0]).assign_coords(algorithm=[label])
    exports.export(one, str(tmp_path / "table.csv"), points=False)
    table = pd.read_csv(tmp_path / "table.csv")
    assert checked_label(label) == label
    assert table["algorithm"].tolist() == [label] * len(table)


def test_no_word_that_pandas_takes_as_missing_can_be_a_label():
    from pandas._libs.parsers import STR_NA_VALUES  # it has no public name

    words = {spelling for word in STR_NA_VALUES for spelling in (word, word.lower())}
    assert {"nan", "null", "na", "none"} <= words
    for word in words | {"true", "false", "inf", "infinity"}:
        with pytest.raises(ValueError, match="label"):
            checked_label(word)


@pytest.mark.parametrize("block", [exports.BLOCK_BYTES, 1])
def test_netcdf_holds_the_dataset(curves, tmp_path, monkeypatch, block):
    monkeypatch.setattr(exports, "BLOCK_BYTES", block)
    curves.attrs["config"] = curves.attrs["config"] + " " * 100_000  # as with a data set
    bqlib.export(curves, tmp_path / "curves.nc", points=True)
    with xr.open_dataset(tmp_path / "curves.nc", engine="h5netcdf") as found:
        xr.testing.assert_equal(found.load(), curves)
        assert found.attrs["config"] == curves.attrs["config"]
        assert found["mmd"].attrs == curves["mmd"].attrs and found["status"].dtype == np.int8


def test_what_cannot_be_exported_says_why(curves, tmp_path, monkeypatch):
    with pytest.raises(ValueError, match=r"must end in \.csv or \.parquet or \.nc"):
        bqlib.export(curves, tmp_path / "curves.xlsx")
    with pytest.raises(ValueError, match="lacks the dimension lengthscale: select with lists"):
        bqlib.export(curves.sel(lengthscale=0.5), tmp_path / "curves.csv")
    with pytest.raises(TypeError, match="cannot export a DataArray: give the dataset that"):
        bqlib.export(curves["mmd"], tmp_path / "curves.csv")
    monkeypatch.setattr(exports, "find_spec", lambda name: None)
    with pytest.raises(ImportError, match="need h5netcdf and h5py: pip install h5netcdf h5py"):
        bqlib.export(curves, tmp_path / "curves.nc")
    assert list(tmp_path.iterdir()) == []


def test_a_file_that_cannot_be_finished_leaves_the_old_one(curves, tmp_path, monkeypatch):
    path = tmp_path / "curves.csv"
    path.write_text("old")
    monkeypatch.setattr(exports, "_columns", lambda part: 1 / 0)
    with pytest.raises(ZeroDivisionError):
        bqlib.export(curves, path)
    assert path.read_text() == "old" and len(list(tmp_path.iterdir())) == 1


# In a process of its own, which HDF5 would end.
ON_A_FULL_DISK = """
import resource, sys
import bqlib
curves, path, size = bqlib.open_results(sys.argv[1]), sys.argv[2], int(sys.argv[3])
resource.setrlimit(resource.RLIMIT_FSIZE, (size, size))
try:
    bqlib.export(curves, path, points=True)
except OSError as error:
    print(error.filename, error.strerror)
"""


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".nc"])
@pytest.mark.parametrize("size", [10, 3000])
def test_a_full_disk_is_an_error_and_nothing_is_left(folder, tmp_path, suffix, size):
    path = tmp_path / f"curves{suffix}"
    done = subprocess.run(
        [sys.executable, "-c", ON_A_FULL_DISK, folder, path, str(size)],
        capture_output=True,
        text=True,
    )
    assert done.returncode == 0, done.stderr
    assert done.stdout.startswith(str(path)) and "File too large" in done.stdout
    assert list(tmp_path.iterdir()) == []


def test_the_command_line_exports(folder, tmp_path, capsys):
    path = tmp_path / "curves.csv"
    assert main(["export", str(folder), str(path), "--points"]) == 0
    assert capsys.readouterr().out == f"{path}: 96 rows\n"
    assert "point_1" in path.read_text().splitlines()[0]
    assert main(["export", str(tmp_path), str(path)]) == 2
    assert "no results at" in capsys.readouterr().err


def test_a_folder_is_never_replaced_by_a_file(curves, tmp_path):
    (tmp_path / "d.csv").mkdir()
    with pytest.raises(IsADirectoryError, match="is a folder: give the name of a file"):
        exports.export(curves, tmp_path / "d.csv")


def test_what_does_not_apply_has_no_rows(curves, tmp_path):
    before = bqlib.export(curves, tmp_path / "all.csv")
    status = curves["status"].copy()
    status[dict.fromkeys(status.dims, 0)] = DOES_NOT_APPLY
    rows, missing = bqlib.export(curves.assign(status=status), tmp_path / "a.csv")
    assert (rows + curves.sizes["n"], missing) == before


def test_nothing_cannot_be_exported(curves, tmp_path):
    with pytest.raises(ValueError, match="nothing to export: no seed is selected"):
        exports.export(curves.isel(seed=[]), tmp_path / "d.csv")


ATTRIBUTES = {
    "none": None,
    "text": "t",
    "number": 0.1,
    "infinite": np.inf,
    "numbers": [1, 2],
    "texts": np.array(["a", "bc"]),
    "truth": True,
    "numpys_truth": np.True_,
    "mixed": [1, "b", None],
    "nested": {"a": {"b": 1}},
    "date": datetime.date(2020, 1, 2),
    "huge": 2**70,
}
WRITTEN = {
    "text": "t",
    "number": 0.1,
    "infinite": np.inf,
    "numbers": [1, 2],
    "texts": ["a", "bc"],
    "truth": "true",
    "numpys_truth": "true",
    "mixed": '[1, "b", null]',
    "nested": '{"a": {"b": 1}}',
    "date": "2020-01-02",
    "huge": str(2**70),
}


def test_attributes_of_any_kind_are_exported_by_the_rule_that_is_stated(curves, tmp_path):
    plain = curves.attrs.keys()
    given = curves.assign_attrs(ATTRIBUTES)
    given["mmd"].attrs["none"] = given["seed"].attrs["none"] = None
    for suffix in (".csv", ".parquet", ".nc"):
        bqlib.export(given, tmp_path / f"curves{suffix}")
    with xr.open_dataset(tmp_path / "curves.nc", engine="h5netcdf") as found:
        own = {name: found.attrs[name] for name in found.attrs if name not in plain}
        assert own.keys() == WRITTEN.keys()
        for name, value in WRITTEN.items():
            np.testing.assert_array_equal(own[name], value)
        assert "none" not in found["mmd"].attrs and found["mmd"].attrs["units"] == "1"
    assert given.attrs["none"] is None and given["mmd"].attrs["none"] is None


@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".nc"])
def test_variables_of_other_types_and_dimensions_read_back_as_they_are(curves, tmp_path, suffix):
    given = curves.assign(
        good=curves["mmd"] < 0.3,
        single=curves["mmd"].astype(np.float32),
        note=curves["reason"].copy(data=np.full(curves["reason"].shape, None)),
        over_seeds=curves["weight_sum"].max("seed"),
    )
    path = tmp_path / f"curves{suffix}"
    bqlib.export(given, path)
    if suffix == ".nc":
        with xr.open_dataset(path, engine="h5netcdf") as found:
            assert found["good"].dtype == bool and found["single"].dtype == np.float32
            assert (found["note"] == "").all()
            np.testing.assert_array_equal(found["over_seeds"], given["over_seeds"])
        return
    row = read(path).iloc[-1]
    own = given.isel(target=0, kernel=0, lengthscale=-1, algorithm=-1, seed=-1, n=-1)
    assert row.good == own["good"].item() and np.float32(row.single) == own["single"].item()
    assert row.over_seeds == own["over_seeds"].item()
    if suffix == ".parquet":
        assert row.note == ""


@pytest.mark.parametrize("labels", [["sbq", "omp"], [1, 2], ["1a", "inf_"], ["x,y", 'a "b"\n']])
@pytest.mark.parametrize("suffix", [".csv", ".parquet", ".nc"])
def test_labels_read_back_as_they_were(curves, tmp_path, labels, suffix):
    given = curves.assign_coords(algorithm=labels)
    path = tmp_path / f"curves{suffix}"
    bqlib.export(given, path)
    if suffix == ".nc":
        with xr.open_dataset(path, engine="h5netcdf") as found:
            assert found["algorithm"].values.tolist() == labels
    else:
        assert read(path)["algorithm"].unique().tolist() == labels


def test_labels_that_would_be_read_as_others_are_refused(curves, tmp_path):
    for label in ("nan", "null", "NA", "None", ""):
        given = curves.assign_coords(algorithm=["sbq", label])
        with pytest.raises(ValueError, match=rf'take the labels "{label}" of algorithm for numb'):
            bqlib.export(given, tmp_path / "curves.csv")
        bqlib.export(given, tmp_path / "curves.parquet")
        found = pd.read_parquet(tmp_path / "curves.parquet")["algorithm"].unique().tolist()
        assert found == ["sbq", label]
    for labels in (["1", "2"], ["true", "false"]):
        with pytest.raises(ValueError, match=r"export to \.parquet or \.nc; or give other labels"):
            bqlib.export(curves.assign_coords(algorithm=labels), tmp_path / "curves.csv")
    for labels in (["a", None], ["a", 2]):
        given = curves.assign_coords(algorithm=np.array(labels, dtype=object))
        for suffix in (".csv", ".parquet", ".nc"):
            with pytest.raises(ValueError, match="algorithm are neither all texts nor all numb"):
                bqlib.export(given, tmp_path / f"other{suffix}")
