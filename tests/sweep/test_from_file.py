"""Sweeps whose targets are data files: what they hold, and when their points are others."""

import json
import os
import pickle
import subprocess
import sys

import numpy as np
import pandas as pd
import pytest
from jsonschema import Draft202012Validator
from written_sweep import edited, loaded, problems_of

import bqlib
from bqlib.sweep import from_file
from bqlib.sweep.build import build_target
from bqlib.sweep.datapoints import DataFileError
from bqlib.sweep.file import json_schema, load
from bqlib.sweep.spec import science_of

POINTS = np.random.default_rng(0).normal(size=(50, 2))
TARGET = "[{name: posterior, family: empirical, file: draws.npy}]"
WRITTEN = edited(("[normal]", TARGET), ("[0.5, 1]", "[1]"), ("size: 100", "size: 40"))


def of_file(file, more=""):
    return WRITTEN.replace("file: draws.npy", f"file: {file}{more}")


@pytest.fixture(autouse=True)
def folder(sweep_folder, monkeypatch):
    """A folder with data files, and a process that has read none."""
    monkeypatch.setattr(from_file, "_held", {})
    np.save("draws.npy", POINTS)
    table = pd.DataFrame(POINTS, columns=["alpha", "beta"])
    table.to_csv("draws.csv", index=False)
    table.assign(name="x").to_parquet("draws.parquet")
    return sweep_folder


def digests(sweep):
    return [sweep.spec(cell).digest for cell in sweep.cells()]


def test_a_target_from_a_file_is_its_points_with_equal_weights(folder):
    sweep = loaded(WRITTEN)
    content = sweep.targets["posterior"]
    assert content == {
        "family": "empirical",
        "file": str(folder / "draws.npy"),
        "rows": 50,
        "sha256": content["sha256"],
    }
    target, _ = sweep.spec(sweep.cells()[0]).build()
    assert np.array_equal(target.points, POINTS) and set(target.weights) == {1 / 50}
    written = of_file("draws.npy").replace("file: draws.npy", f"points: {POINTS.tolist()}")
    same = loaded(written)
    for ours, theirs in zip(sweep.cells(), same.cells(), strict=True):
        found, expected = sweep.spec(ours).run(0)[0], same.spec(theirs).run(0)[0]
        assert np.array_equal(found["mmd"], expected["mmd"], equal_nan=True)


def test_the_family_may_be_named_by_its_place(folder):
    place = '"bqlib.targets:Empirical", file: draws.npy'
    sweep = loaded(WRITTEN.replace("empirical, file: draws.npy", place))
    assert sweep.targets == loaded(WRITTEN).targets and digests(sweep) == digests(loaded(WRITTEN))
    assert np.isfinite(sweep.spec(sweep.cells()[0]).run(0)[0]["mmd"]).any()


def test_points_that_are_written_out_are_stored_as_ever():
    """Or the digests of their trials would change, and with them all results."""
    sweep = loaded(of_file("draws.npy").replace("file: draws.npy", "points: [[0, 1], [1, 0]]"))
    content = {"family": "empirical", "points": [[0.0, 1.0], [1.0, 0.0]], "weights": None}
    assert sweep.targets["posterior"] == content
    assert science_of(content) == json.dumps(content, sort_keys=True)


def test_the_points_count_and_not_the_file(folder):
    expected = digests(loaded(WRITTEN))
    (folder / "below").mkdir()
    np.save("below/other.npy", np.asfortranarray(POINTS))
    for file in ("draws.csv", "draws.parquet, columns: [alpha, beta]", "below/other.npy"):
        assert digests(loaded(of_file(file))) == expected, file
    os.utime("draws.npy", (0, 0))
    assert digests(loaded(WRITTEN)) == expected
    assert digests(loaded(of_file("draws.npy", ", about: a text"))) == expected
    assert digests(loaded(of_file("draws.csv", ", columns: [beta, alpha]"))) != expected
    assert digests(loaded(of_file("draws.csv", ", columns: [alpha]"))) != expected
    points = POINTS.copy()
    points[3, 1] = np.nextafter(points[3, 1], 9)
    np.save("draws.npy", points)
    assert digests(loaded(WRITTEN)) != expected
    np.save("draws.npy", POINTS.reshape(100, 1))  # the same numbers as points on the line
    assert digests(loaded(WRITTEN)) != expected


def test_paths_start_at_the_sweep_or_at_the_target_file(folder, monkeypatch):
    expected = digests(loaded(WRITTEN))
    assert digests(loaded(of_file(folder / "draws.npy"))) == expected
    (folder / "sweeps").mkdir()
    (folder / "sweeps" / "sweep.yaml").write_text(of_file("../draws.npy"))
    assert digests(load("sweeps/sweep.yaml", "targets")) == expected
    (folder / "targets" / "posterior.json").write_text(
        json.dumps({"family": "empirical", "file": "../draws.npy", "about": "Draws."})
    )
    sweep = loaded(WRITTEN.replace(TARGET, "[posterior]"))
    assert digests(sweep) == expected and sweep.targets["posterior"]["about"] == "Draws."
    (folder / "link.npy").symlink_to("draws.npy")
    assert digests(loaded(of_file("link.npy"))) == expected
    monkeypatch.chdir("/")
    assert digests(load(folder / "sweep.yaml")) == expected


@pytest.mark.parametrize(
    "old, new, told",
    [
        ("draws.npy", "drows.npy", ".file: there is no file FOLDER/drows.npy; did you mean "),
        ("draws.npy", "draws.npy, columns: [x]", ".columns: FOLDER/draws.npy has no names of colu"),
        (
            "draws.npy",
            "draws.csv, columns: [x]",
            '.columns: FOLDER/draws.csv has no column "x". It',
        ),
        ("draws.npy", "draws.parquet", '.file: FOLDER/draws.parquet column "name" is of type '),
        ("draws.npy", "draws.csv, columns: []", ".columns: must not be empty: leave it out to tak"),
        ("draws.npy", "draws.csv, columns: [x, x]", ".columns: names a column twice"),
        ("draws.npy", "draws.csv, columns: x", ".columns: must be a list, such as [first, second]"),
        ("draws.npy", r'"x\0/y.zarr"', ".file: there is no file FOLDER/x"),
        ("draws.npy", "3", ".file: must be a text, not 3"),
        ("draws.npy", "draws.npy, weights: [1]", ".weights: cannot be given beside file: all poin"),
        ("draws.npy", "draws.npy, points: [[1]]", ".points: cannot be given beside file: all poin"),
        ("file: draws.npy", "points: [[1]], columns: [x]", ".columns: is allowed only with file"),
        (", file: draws.npy", "", ".points: missing: give points, or file with the path of a data"),
        ("file: draws.npy", "fil: draws.npy", '.fil: unknown key "fil"; did you mean "file"?'),
        (TARGET, "[draws.npy]", ": give the target a name: {name: ..., family: empirical, file: "),
    ],
)
def test_what_is_wrong_is_said_at_its_key(folder, old, new, told):
    assert old in WRITTEN
    text = WRITTEN.replace(old, new, 1)
    (problem, *others) = [p.replace(str(folder), "FOLDER") for p in problems_of(text)]
    assert problem.startswith(f"2: targets[0]{told}") and not others


def test_the_schema_takes_what_the_sweep_does():
    target = json_schema()["else"]["properties"]["targets"]["items"]
    validator = Draft202012Validator(target)
    named = {"name": "posterior", "family": "empirical"}
    for more in ({"file": "draws.npy"}, {"file": "a.csv", "columns": ["x"]}, {"points": [[1]]}):
        assert validator.is_valid(named | more), more
    for more in ({}, {"file": 3}, {"file": "a.csv", "columns": "x"}, {"fil": "a.csv"}):
        assert not validator.is_valid(named | more), more
    assert not validator.is_valid({"name": "p", "family": "uniform", "file": "draws.npy"})


def test_specs_and_the_stored_sweep_are_small(folder):
    np.save("draws.npy", np.random.default_rng(0).normal(size=(20_000, 5)))
    sweep = loaded(WRITTEN)
    assert len(pickle.dumps(sweep.spec(sweep.cells()[0]))) < 3000
    assert len(json.dumps(sweep.canonical())) < 3000


IN_ANOTHER = """
import pickle, sys
spec = pickle.load(open(sys.argv[1], "rb"))
print(spec.build()[0].points.sum().hex())
"""


def test_another_process_in_another_folder_reads_the_file_itself(folder, tmp_path_factory):
    sweep = loaded(of_file("draws.csv"))
    (folder / "spec").write_bytes(pickle.dumps(sweep.spec(sweep.cells()[0])))
    command = [sys.executable, "-c", IN_ANOTHER, str(folder / "spec")]
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    ran = subprocess.run(command, cwd=elsewhere, capture_output=True, text=True, check=True)
    assert float.fromhex(ran.stdout) == POINTS.sum()


def test_a_process_never_takes_other_points(folder, monkeypatch):
    sweep = loaded(WRITTEN)
    spec = pickle.loads(pickle.dumps(sweep.spec(sweep.cells()[0])))
    held = spec.build()[0]
    np.save("draws.npy", POINTS + 1)
    assert spec.build()[0] is held  # one object, which was read when the sweep was
    monkeypatch.setattr(from_file, "_held", {})
    with pytest.raises(DataFileError) as caught:
        spec.run(0)
    assert str(caught.value) == (
        f"{folder / 'draws.npy'} has changed since the sweep was read, so that its points are "
        "others: restore the file, or run the sweep again, which computes what is of other points"
    )
    os.remove("draws.npy")
    with pytest.raises(DataFileError, match=r"there is no file .*every machine of a run must see"):
        spec.run(0)
    np.save("draws.npy", POINTS)
    assert np.array_equal(spec.build()[0].points, POINTS)


def test_curves_in_python_take_a_data_file_too():
    target = {"name": "posterior", "family": "empirical", "file": "draws.csv"}
    own = {"n": 5, "seeds": 1, "candidates": {"size": 40}, "progress": False}
    found = bqlib.curves(target, bqlib.Matern(0.5), "sbq", **own)
    expected = bqlib.curves(bqlib.Empirical(POINTS), bqlib.Matern(0.5), "sbq", **own)
    assert np.array_equal(found.mmd, expected.mmd)


def test_a_process_holds_the_last_files_alone(folder, monkeypatch):
    monkeypatch.setattr(from_file, "MOST_HELD", 2)
    contents = []
    for k in range(3):
        np.save(f"{k}.npy", POINTS + k)
        content = {"family": "empirical", "file": f"{k}.npy"}
        contents.append(from_file.read_target(content, folder)[0])
    assert len(from_file._held) == 2
    for k, content in enumerate(contents):
        assert np.array_equal(build_target(content).points, POINTS + k)
    from_file.hold(contents[0])
    from_file.hold({"family": "uniform"})
    assert len(from_file._held) == 2


def test_a_moved_project_has_the_same_sweep(folder, tmp_path_factory):
    elsewhere = tmp_path_factory.mktemp("elsewhere")
    np.save(elsewhere / "draws.npy", POINTS)
    ours = loaded(WRITTEN)
    (elsewhere / "sweep.yaml").write_text(WRITTEN)
    theirs = load(elsewhere / "sweep.yaml")
    assert ours.canonical() != theirs.canonical() and ours.is_stored_as(theirs.canonical())
    assert ours.canonical(folders=False) == theirs.canonical(folders=False)
    assert ours.canonical(folders=False)["targets"]["posterior"]["file"] == "draws.npy"
    plain = loaded(edited())
    assert plain.canonical() == plain.canonical(folders=False)
    assert not plain.is_stored_as(ours.canonical())
