"""Damage of every kind to every kind of file: it is named, and no other values are read."""

import json
import os
import pickle
import shutil

import numpy as np
import pytest
from damage import files
from every_damage import failures

import bqlib
from bqlib.cli.main import main
from bqlib.report.html import write_report
from bqlib.report.summary import summary
from bqlib.results.damage import DamagedError, damaged
from bqlib.results.integrity import Fault, check
from bqlib.results.layout import CLAIMS, MANIFEST, PROVENANCE, Layout
from bqlib.results.store import open_dataset

SAMPLE = 60  # tests/helpers/every_damage.py does as many as it is told


@pytest.fixture
def whole(complete, tmp_path):
    """A copy of finished results with every kind of file, to damage."""
    return shutil.copytree(complete[1], tmp_path / "small")


@pytest.fixture
def unrecorded(whole):
    """The same without a manifest, as before the last job of a run."""
    for name in (MANIFEST, PROVENANCE):
        (whole / name).unlink()
    return whole


def test_every_damage_is_named_and_no_other_values_are_read(whole):
    assert failures(whole, SAMPLE) == []


def test_the_error_says_what_is_damaged_and_what_to_do_and_crosses_processes(tmp_path):
    (tmp_path / CLAIMS).touch()
    faults = [Fault(f"figures/{i}.svg", "is empty") for i in range(25)]
    error = pickle.loads(pickle.dumps(damaged(tmp_path, faults)))
    assert error.faults == tuple(faults)
    lines = str(error).splitlines()
    assert lines[1] == f"{tmp_path}/figures/0.svg is empty" and lines[-2] == "... and 5 more"
    assert f"bqlib check {tmp_path}; " in lines[-1]
    assert f"bqlib retry --damaged {tmp_path}, then run the sweep again" in lines[-1]


def cut(path):
    path.write_bytes(path.read_bytes()[:-9])


def of_other_types(path):
    path.write_text("[" * 100_000)


def field_of_another_type(path):
    content = json.loads(path.read_text())
    content["attributes"] = 3
    path.write_text(json.dumps(content))


def take_from(path, other):
    path.write_bytes(files(path.parents[1], f"{other}/c.*")[0].read_bytes())


@pytest.mark.parametrize(
    ("pattern", "damage"),
    [
        ("curves.zarr/zarr.json", cut),
        ("curves.zarr/zarr.json", of_other_types),
        ("curves.zarr/zarr.json", field_of_another_type),
        ("curves.zarr/zarr.json", lambda path: path.unlink()),
        ("curves.zarr/zarr.json", lambda path: path.write_text("{}")),
        ("curves.zarr/mmd/zarr.json", cut),
        ("curves.zarr/mmd/zarr.json", field_of_another_type),
        ("curves.zarr/mmd/zarr.json", lambda path: path.unlink()),
        ("curves.zarr/seed/c.0", lambda path: path.unlink()),
        ("curves.zarr/seed/c.0", lambda path: path.write_bytes(b"")),
        ("curves.zarr/target/c.0", cut),
        ("curves.zarr/mmd/c.*", cut),
        ("curves.zarr/mmd/c.*", lambda path: path.write_bytes(b"")),
        ("curves.zarr/mmd/c.*", lambda path: take_from(path, "status")),
        ("curves.zarr/reason/c.*", lambda path: take_from(path, "mmd")),
    ],
)  # fmt: skip
def test_without_a_manifest_a_damaged_store_is_told_in_our_words(
    unrecorded, pattern, damage, capsys
):
    (path,) = files(unrecorded, pattern)
    damage(path)
    commands = f"; to see all damage: bqlib check {unrecorded}; to recompute what is damaged: bqlib"
    for read in (
        lambda: bqlib.open_results(unrecorded).load(),
        lambda: open_dataset(unrecorded / "curves.zarr").load(),
        lambda: bqlib.open_results([unrecorded, unrecorded]).load(),
    ):
        with pytest.raises(DamagedError) as caught:
            read()
        assert str(caught.value).startswith(f"{path} ") and commands in str(caught.value)
    assert path.relative_to(unrecorded).as_posix() in {f.path for f in check(unrecorded).faults}
    assert main(["export", str(unrecorded), str(unrecorded / "out.csv")]) == 2
    said = capsys.readouterr().err
    assert said.startswith(f"bqlib: {path} ") and commands in said


@pytest.mark.parametrize(
    ("put", "what"),
    [
        (lambda path: path.symlink_to("/dev/zero"), "is not a regular file"),
        (os.mkfifo, "is not a regular file"),
        (lambda path: (path.touch(), os.truncate(path, 2**40)), "bytes, more than"),
    ],
    ids=["device", "pipe", "hole"],
)
def test_a_chunk_that_has_no_end_is_not_read(unrecorded, put, what):
    chunk = next((unrecorded / "curves.zarr" / "mmd").glob("c.*"))
    chunk.unlink()
    put(chunk)
    with pytest.raises(DamagedError, match=what):
        open_dataset(unrecorded / "curves.zarr").load()
    (fault,) = check(unrecorded).faults
    assert what in fault.what and fault.path == str(chunk.relative_to(unrecorded))


def test_a_shape_without_end_is_not_listed(unrecorded):
    for head in (unrecorded / "curves.zarr", unrecorded / "curves.zarr" / "mmd"):
        content = json.loads((head / "zarr.json").read_text())
        array = content
        if "consolidated_metadata" in content:
            array = content["consolidated_metadata"]["metadata"]["mmd"]
        array["shape"] = [10**6] * len(array["shape"])
        (head / "zarr.json").write_text(json.dumps(content))
    with pytest.raises(DamagedError, match="is missing"):
        open_dataset(unrecorded / "curves.zarr")
    assert len(check(unrecorded).faults) >= 1000


def test_chunks_of_no_size_are_told(unrecorded):
    path = unrecorded / "curves.zarr" / "zarr.json"
    content = json.loads(path.read_text())
    array = content["consolidated_metadata"]["metadata"]["mmd"]
    array["chunk_grid"]["configuration"]["chunk_shape"][0] = 0
    path.write_text(json.dumps(content))
    with pytest.raises(DamagedError, match="an array has chunks of no size"):
        bqlib.open_results(unrecorded)


def test_a_config_that_was_changed_is_told_without_a_manifest(unrecorded):
    path = unrecorded / "curves.zarr" / "zarr.json"
    path.write_text(path.read_text().replace(r"\"n\": 12", r"\"n\": 13"))
    with pytest.raises(DamagedError, match="its config_sha256 is not that of its config"):
        bqlib.open_results(unrecorded)


def test_claims_and_rates_that_are_damaged_or_lost_are_told(whole):
    at = Layout(whole)
    for path, damage in ((at.claims, cut), (at.claims, lambda path: path.unlink()),
                         (at.rates / "zarr.json", lambda path: path.unlink())):  # fmt: skip
        sound = path.read_bytes()
        damage(path)
        for read in (lambda: summary(whole), lambda: write_report(whole, ["mmd"])):
            with pytest.raises(DamagedError, match=str(path)):
                read()
        path.write_bytes(sound)
    assert summary(whole)["rates"]


def test_a_store_in_the_place_of_another_is_not_read(whole):
    """Both are sound by their own checksums."""
    first, second = (whole / "studies" / f"{name}.zarr" for name in ("cost", "refinement"))
    aside = first.rename(first.with_name("aside.zarr"))
    second.rename(first)
    aside.rename(second)
    with pytest.raises(DamagedError, match="sha256 differs"):
        open_dataset(first)


def test_values_of_a_checked_store_are_those_of_the_files(whole):
    import xarray as xr

    xr.testing.assert_identical(
        bqlib.open_results(whole).load(), xr.open_zarr(whole / "curves.zarr", chunks=None).load()
    )
    assert np.isfinite(bqlib.open_results(whole).mmd).all()
