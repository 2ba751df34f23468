"""Points in Zarr stores: arrays, datasets of xarray and groups in them, and hostile stores."""

import json
import os
import pickle
import warnings

import numpy as np
import pytest
import xarray as xr
import zarr

from bqlib.sweep import zarrfile
from bqlib.sweep.datafile import read_points
from bqlib.sweep.datapoints import DataFileError

POINTS = np.random.default_rng(0).normal(size=(6, 2))


def told(path, columns=None):
    with pytest.raises(DataFileError) as caught:
        read_points(str(path), columns)
    return str(caught.value).partition(".zarr")[2].lstrip()


def dataset(**more):
    """A posterior as ArviZ has it."""
    beta, alpha = (POINTS[:, k].reshape(2, 3) for k in (1, 0))
    return xr.Dataset(
        {"beta": (("chain", "draw"), beta), "alpha": (("draw", "chain"), alpha.T), **more},
        {"chain": [0, 1], "lp": (("chain", "draw"), np.zeros((2, 3)))},
    )


def write(dataset, path, **options):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of zarr, on formats that may change
        dataset.to_zarr(path, mode="w", **options)


@pytest.mark.parametrize("version", [2, 3])
def test_variables_of_a_dataset_are_coordinates(tmp_path, version):
    path = tmp_path / "draws.zarr"
    write(dataset(), path, zarr_format=version)
    assert np.array_equal(read_points(str(path)), POINTS)  # by their names, as stores have no order
    assert np.array_equal(read_points(str(path), ["beta"]), POINTS[:, 1:])
    assert np.array_equal(read_points(str(path), ["beta", "lp"])[:, 1], np.zeros(6))
    assert told(path, ["gamma"]) == 'has no variable "gamma". It has: alpha, beta, chain, lp'
    write(dataset(), path, group="posterior", zarr_format=version)
    assert np.array_equal(read_points(f"{path}/posterior"), POINTS)


def test_a_store_of_groups_alone_names_them(tmp_path):
    path = tmp_path / "draws.zarr"
    for group in ("prior", "posterior"):
        write(dataset(), path, group=group)
    write(xr.Dataset(), path)
    for group in ("prior", "posterior"):
        dataset().to_zarr(path, group=group, consolidated=False)
    assert told(path) == ("holds groups alone: add the name of one to the path (posterior, prior)")
    assert told(path / "posteriors").endswith("holds no array or group posteriors")


@pytest.mark.parametrize("version", [2, 3])
def test_arrays_are_points(tmp_path, version):
    path = str(tmp_path / "draws.zarr")
    for array in (POINTS, POINTS.reshape(2, 3, 2), POINTS.astype("f4"), POINTS[:, 0]):
        zarr.create_array(path, data=array, zarr_format=version, overwrite=True)
        assert np.array_equal(read_points(path).ravel(), array.astype(float).ravel())
    assert "has no names of columns" in told(tmp_path / "draws.zarr", ["x"])
    zarr.create_array(path, data=POINTS, chunks=(1, 2), shards=(3, 2), overwrite=True)
    assert np.array_equal(read_points(path), POINTS)


def test_variables_that_are_no_coordinates_are_named(tmp_path):
    path = tmp_path / "draws.zarr"
    write(dataset(theta=(("chain", "draw", "k"), np.zeros((2, 3, 2)))), path)
    assert told(path).startswith('variable "theta" has the dimensions (chain, draw, k); all must')
    assert np.array_equal(read_points(str(path), ["alpha", "beta"]), POINTS)
    write(xr.Dataset({"points": (("draw", "dim"), POINTS)}), path)
    assert told(path).startswith('variable "points" has the dimensions (draw, dim); all must have')
    write(dataset(name=(("chain", "draw"), np.full((2, 3), "a", dtype=object))), path)
    assert told(path).startswith('variable "name" is of type')
    write(xr.Dataset({"x": ("draw", [1.0, np.nan]), "y": ("draw", [1, 2])}), path)
    assert told(path).startswith('column "x", row 2: is missing or NaN')
    write(xr.Dataset({"x": ("draw", [1, 2]), "y": ("other", [1, 2])}), path)
    assert told(path).startswith('variable "y" has the dimensions (other)')
    write(xr.Dataset(), path)
    assert told(path) == "has no variables"


def test_links_and_pipes_in_a_store_are_refused(tmp_path):
    path = tmp_path / "draws.zarr"
    zarr.save_array(str(path), POINTS)
    os.mkfifo(path / "c" / "pipe")
    assert told(path) == "holds c/pipe, which is neither a file nor a folder"
    (path / "c" / "pipe").unlink()
    (path / "link").symlink_to("/dev/zero")
    assert told(path) == "holds link, which is neither a file nor a folder"
    (path / "link").unlink()
    (path / "folder").symlink_to("/")
    assert told(path) == "holds folder, which is neither a file nor a folder"


def test_a_store_beyond_the_limits_is_refused(tmp_path, monkeypatch):
    path = tmp_path / "draws.zarr"
    zarr.save_array(str(path), POINTS)
    head = json.loads((path / "zarr.json").read_text())
    for shape, chunk, said in (
        ([10**9, 2], [10**9, 2], "holds an array of shape (1000000000, 2), in chunks of (10000000"),
        ([6, 2], [10**9, 2], "holds an array of shape (6, 2), in chunks of (1000000000, 2), beyon"),
        ([20_000_000, 2], [1000, 2], "holds 20000000 points, and the limit is 10000000"),
    ):
        grid = {"name": "regular", "configuration": {"chunk_shape": chunk}}
        (path / "zarr.json").write_text(json.dumps(head | {"shape": shape, "chunk_grid": grid}))
        assert told(path).startswith(said)
    (path / "zarr.json").write_text(json.dumps(head))
    monkeypatch.setattr(zarrfile, "MOST_FILES", 1)
    assert told(path) == "holds more than 1 files: use larger chunks"
    monkeypatch.setattr(zarrfile, "MOST_FILES", 10)
    monkeypatch.setattr(zarrfile, "MOST_BYTES", 10)
    assert told(path).startswith("cannot be read: ") and "has more than" in told(path)


def test_damage_is_refused(tmp_path):
    path = tmp_path / "draws.zarr"
    (tmp_path / "draws.zarr").write_text("a file")
    assert told(path) == "is no folder, as Zarr stores are"
    path.unlink()
    path.mkdir()
    assert told(path) == "holds no array or group"
    zarr.save_array(str(path), POINTS)
    chunk = next(file for file in (path / "c").rglob("*") if file.is_file())
    whole = chunk.read_bytes()
    chunk.write_bytes(b"damaged")
    assert told(path) == "holds a chunk that is not of Zstandard: it is damaged"
    chunk.write_bytes(whole[:-8])
    assert told(path) == "holds a chunk of more than one frame, or it is damaged"
    (path / "zarr.json").write_text("{")
    assert told(path).startswith("cannot be read: ")


class Payload:
    def __reduce__(self):
        return os.mkdir, ("run",)


@pytest.mark.parametrize("kind", ["<f8", "|O"])
@pytest.mark.parametrize("place", ["filters", "compressor"])
@pytest.mark.parametrize("name", ["x", "draw"])
def test_no_code_of_a_store_runs(tmp_path, monkeypatch, kind, place, name):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "draws.zarr"
    write(xr.Dataset({"x": ("draw", [1.0, 2.0])}, {"draw": [0, 1]}), path, zarr_format=2)
    array = path / name
    for file in path.glob(".zmetadata"):
        file.unlink()
    head = json.loads((array / ".zarray").read_text())
    codec = {"id": "pickle", "protocol": 5}
    head |= {"filters": None, "compressor": None, "dtype": kind, "fill_value": None}
    head |= {place: [codec] if place == "filters" else codec}
    (array / ".zarray").write_text(json.dumps(head))
    (array / "0").write_bytes(pickle.dumps(Payload()))
    for said in (told(path), told(path / name)):  # of zarr, or ours
        assert "'object_codec_id': 'pickle'" in said or "is packed by the codec Pickle" in said
    assert not (tmp_path / "run").exists()
    pickle.loads((array / "0").read_bytes())
    assert (tmp_path / "run").exists()


def test_codecs_that_are_not_known_are_refused(tmp_path):
    path = tmp_path / "draws.zarr"
    zarr.save_array(str(path), POINTS, zarr_format=2)
    head = json.loads((path / ".zarray").read_text())
    head["filters"] = [{"id": "quantize", "digits": 3, "dtype": "<f8", "astype": "<f8"}]
    (path / ".zarray").write_text(json.dumps(head))
    assert told(path) == "is packed by the codec Quantize, which is not read from data files"


def test_the_store_is_the_folder_that_has_its_head(tmp_path):
    above = tmp_path / "project.zarr" / "old.zarr"
    above.mkdir(parents=True)
    (above / "notes.txt").write_text("no part of the store")
    zarr.save_array(str(above / "draws.zarr"), POINTS)
    assert np.array_equal(read_points(str(above / "draws.zarr")), POINTS)
    write(dataset(), above / "other.zarr", group="posterior.zarr")
    assert np.array_equal(read_points(str(above / "other.zarr" / "posterior.zarr")), POINTS)
    with pytest.raises(DataFileError, match=r"there is no file .*gone.zarr"):
        read_points(str(above / "gone.zarr"))


@pytest.mark.parametrize("version", [2, 3])
def test_a_chunk_that_is_missing_is_no_zeros(tmp_path, version):
    path = tmp_path / "draws.zarr"
    data = np.arange(1, 13).reshape(6, 2)
    zarr.create_array(str(path), data=data, chunks=(3, 2), zarr_format=version)
    assert np.array_equal(read_points(str(path)), data)
    key = "1.0" if version == 2 else "c/1/0"
    (path / key).unlink()
    assert told(path) == (
        f"lacks 1 of 2 chunks, such as {key}: copy the whole store, or, if they were left out as "
        "they hold zeros alone, write it with write_empty_chunks=True"
    )
    draws = xr.Dataset({"x": ("draw", [1, 2]), "y": ("draw", [3, 4])}, {"draw": [0, 1]})
    write(draws, path, zarr_format=version)
    key = "0" if version == 2 else "c/0"
    (path / "draw" / key).unlink()  # not read, as nobody asks for it
    assert read_points(str(path)).tolist() == [[1, 3], [2, 4]]
    assert told(path, ["draw"]).startswith(f"lacks 1 of 1 chunks, such as draw/{key}: ")
    (path / "y" / key).unlink()
    assert told(path).startswith(f"lacks 1 of 1 chunks, such as y/{key}: ")
    assert read_points(str(path), ["x"]).tolist() == [[1], [2]]


@pytest.mark.parametrize("version", [2, 3])
def test_zeros_that_are_written_out_are_points(tmp_path, version):
    path = tmp_path / "draws.zarr"
    draws = xr.Dataset({"x": ("draw", [0, 0])})
    options = {"zarr_format": version, "encoding": {"x": {"_FillValue": None}}}
    write(draws, path, **options, write_empty_chunks=True)
    assert read_points(str(path)).tolist() == [[0], [0]]
    write(draws, path, **options, write_empty_chunks=False)
    assert told(path).endswith("write it with write_empty_chunks=True")


def test_labels_that_are_texts_are_left(tmp_path):
    path = tmp_path / "draws.zarr"
    draws = xr.Dataset({"x": ("draw", [1.0, 2.0])}, {"draw": ["a", "b"]})
    for version in (2, 3):
        write(draws, path, zarr_format=version)
        assert read_points(str(path)).tolist() == [[1], [2]]
        assert told(path, ["draw"]).startswith('variable "draw" is of type ')
