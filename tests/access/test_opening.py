"""Opening results: lazily, and never what is not whole."""

import shutil

import paper_sweep
import pytest
import xarray as xr
import zarr
from damage import files

import bqlib
from bqlib.results.damage import DamagedError
from bqlib.results.store import write_dataset
from bqlib.schema import VARIABLES, SchemaError

SWEEP = """
name: small
targets: [chen2010_mixture]
kernels: {eq: {family: exponentiated_quadratic}}
lengthscales: [0.5, 2]
algorithms: [herding, iid]
candidates: {size: 60}
n: 8
seeds: 3
rate_windows: [[2, 8]]
"""


@pytest.fixture
def gathered(tmp_path):
    """The folder of gathered results."""
    folder = tmp_path / "results" / "small"
    folder.mkdir(parents=True)
    paper_sweep.run(folder, SWEEP)
    return folder


@pytest.mark.parametrize(("form", "said"), [(2, "format 2"), (3, "lacks metadata of arrays")])
def test_what_xarray_wrote_is_told_from_damage(gathered, tmp_path, form, said):
    opened = bqlib.open_results(gathered)
    opened.to_zarr(tmp_path / "curves.zarr", zarr_format=form, consolidated=form == 2)
    for path in (tmp_path, tmp_path / "curves.zarr"):
        with pytest.raises((DamagedError, FileNotFoundError), match=rf"{said}.*xarray\.open_zarr"):
            bqlib.open_results(path)


def test_results_that_are_not_there_or_not_ours_are_refused(gathered, tmp_path):
    (tmp_path / "empty").mkdir()
    with pytest.raises(FileNotFoundError, match="whose sweep has run"):
        bqlib.open_results(tmp_path / "empty")
    group = zarr.open_group(gathered / "curves.zarr")
    group.attrs["schema_version"] = 99
    with pytest.raises(SchemaError, match="version 99"):
        bqlib.open_results(gathered)


def test_a_path_that_is_no_experiment_is_told_what_it_is(gathered, tmp_path):
    write_dataset(xr.Dataset({"rate": ("window", [0.5])}), gathered / "rates.zarr")
    (tmp_path / "ungathered" / "pieces").mkdir(parents=True)
    for path, said in {
        "results": r"several experiments: small; give one of them, for example .*results/small",
        "results/smal": r"smal: no such file or folder; did you mean \".*results/small\"",
        "elsewhere/small": r"elsewhere/small: no such file or folder$",
        "results/small/rates.zarr": r"a dataset, but not the curves: open it with .*open_dataset",
        "results/small/sweep.yaml": "is a file",
        "ungathered": "yet, only pieces: run the sweep again",
    }.items():
        with pytest.raises(FileNotFoundError, match=said):
            bqlib.open_results(tmp_path / path)
    with pytest.raises(FileNotFoundError) as caught:
        bqlib.open_results([tmp_path / "results/smal", gathered / "sweep.yaml"])
    assert len(str(caught.value).splitlines()) == 2
    with pytest.raises(FileNotFoundError, match="give at least one path"):
        bqlib.open_results([])
    for wrong in (None, 3, ["results/small", None]):
        with pytest.raises(TypeError, match=r"(None|3) is not a path: give a folder"):
            bqlib.open_results(wrong)
    for path in ("results/small", "results/small/curves.zarr"):
        assert bqlib.open_results(str(tmp_path / path)).sizes["seed"] == 3


def test_opening_reads_no_curve(gathered):
    for name in VARIABLES:
        for chunk in (gathered / "curves.zarr" / name).glob("c.*"):
            chunk.write_bytes(b"not to be read")
    curves = bqlib.open_results(gathered)
    assert curves.sizes["n"] == 8
    with pytest.raises(Exception, match=r"(?i)checksum|crc"):
        curves.mmd.load()


@pytest.mark.parametrize("lost", ["mmd", "mmd/c.*", "status/c.*"])
def test_curves_that_have_lost_files_are_not_opened_as_nan(gathered, lost):
    place = next((gathered / "curves.zarr").glob(lost))
    shutil.rmtree(place) if place.is_dir() else place.unlink()
    with pytest.raises(DamagedError, match=rf"{lost.split('/')[0]}/c\S* is missing"):
        bqlib.open_results(gathered)


def test_a_renamed_chunk_is_a_lost_one(gathered):
    chunk = files(gathered, "curves.zarr/mmd/c*")[0]
    chunk.rename(chunk.with_name(f"{chunk.name} (conflicted copy)"))
    with pytest.raises(DamagedError, match=rf"{chunk} is missing; to see"):
        bqlib.open_results(gathered)
