"""Checking an archive: what is damaged or made up is told by file, and nothing of it is run."""

import json
import os
import re
import shutil
import time

import google_crc32c
import numpy as np
import pytest
import submitted
from numcodecs import Blosc

from bqlib.results.damage import sha256_of
from bqlib.suite.archive import UNFINISHED_ENTRY, add
from bqlib.suite.recheck import EQUAL, _room, check
from bqlib.suite.scores import score
from bqlib.suite.submission import write_submission

MIDPOINTS = (np.arange(16)[:, None] + 0.5) / 16
SETS = [("box_1d_brownian", 0, MIDPOINTS), ("normal_1d_matern12", 0, MIDPOINTS * 4 - 2)]
NAME = "bqbench-1/halves-1.0"
MMD = "curves.zarr/mmd/c.0.0.0.0.0.0"


@pytest.fixture(scope="module")
def whole(tmp_path_factory):
    folder = tmp_path_factory.mktemp("whole")
    submitted.write(folder / "mine", SETS)
    add(folder / "mine", folder / "archive")
    return folder / "archive"


@pytest.fixture
def entry(whole, tmp_path):
    shutil.copytree(whole, tmp_path / "archive")
    return tmp_path / "archive" / "bqbench-1" / "halves-1.0"


def told(entry):
    """All problems of the archive of an entry."""
    return [told for _, problems in check(entry.parent.parent) for told in problems]


def define(entry, change):
    """Change the definition of an entry."""
    content = json.loads((entry / "entry.json").read_text())
    change(content)
    (entry / "entry.json").write_text(json.dumps(content))


def forge(entry, name, data):
    """Write other bytes, and their sum into the definition."""
    (entry / name).write_bytes(data)
    new = {"sha256": sha256_of(data), "bytes": len(data)}
    define(entry, lambda content: content["files"].update({name: new}))


def packed(values):
    plain = Blosc("zstd", 5, Blosc.BITSHUFFLE).encode(values)
    return plain + google_crc32c.value(plain).to_bytes(4, "little")


def test_a_whole_archive_is_right(entry):
    assert told(entry) == []


def change_a_byte(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def replace_by(path, make):
    path.unlink()
    make(path)


@pytest.mark.parametrize("name", ["points.csv", "submission.json", MMD, "curves.zarr/zarr.json"])
@pytest.mark.parametrize(
    ("damage", "what"),
    [
        (change_a_byte, "its sha256 differs"),
        (os.unlink, "is missing"),
        (lambda path: path.write_bytes(path.read_bytes() + b" "), "bytes|its sha256 differs"),
        (lambda path: os.truncate(path, 20), "has 20 bytes|its sha256 differs"),
        (lambda path: os.truncate(path, 10**11), "has 100,000,000,000 bytes; the limit is"),
        (lambda path: replace_by(path, os.mkfifo), "is not a regular file"),
        (lambda path: replace_by(path, os.mkdir), "not a regular file|no entry has|is missing"),
        (lambda path: replace_by(path, lambda p: p.symlink_to("/etc/passwd")), "is a link"),
    ],
)
def test_damage_is_told_by_file(name, damage, what, entry):
    damage(entry / name)
    started = time.monotonic()
    problems = told(entry)
    assert time.monotonic() - started < 5
    assert any(p.startswith(f"{NAME}/{name}: ") for p in problems)

    assert any(re.search(what, p) for p in problems), problems


def test_what_is_too_much_is_told(entry):
    (entry / "extra.txt").touch()
    (entry / "curves.zarr" / "mmd" / "c.9").touch()
    (entry / "a" / "b" / "c").mkdir(parents=True)
    (entry / "curves.zarr" / "link").symlink_to("/etc")
    (entry / "curves.zarr" / "more\x1b[2J").touch()
    (entry.parent / ("." + "0" * 32 + ".halves-1.1")).mkdir()
    (entry.parent / "file").touch()
    (entry.parent.parent / "README").touch()
    assert told(entry) == [
        "README: is not part of an archive, which has a folder bqbench-1 alone",
        f"bqbench-1/.{'0' * 32}.halves-1.1: {UNFINISHED_ENTRY}",
        "bqbench-1/file: is no folder, or a link",
        f"{NAME}/a: is a folder that no entry has: remove it",
        f"{NAME}/extra.txt: is not in entry.json: remove it",
        f"{NAME}/curves.zarr/link: is a link: put the files themselves there",
        f"{NAME}/curves.zarr/more\\x1b[2J: is not in entry.json: remove it",
        f"{NAME}/curves.zarr/mmd/c.9: is not in entry.json: remove it",
    ]


def test_an_entry_has_the_name_of_its_method(entry):
    entry.rename(entry.with_name("quarters-1.0"))
    (problem,) = told(entry.with_name("quarters-1.0"))
    assert "quarters-1.0/entry.json: is of halves-1.0, not of the folder's name" in problem


BROWNIAN = "box_1d_brownian"


@pytest.mark.parametrize(
    ("change", "what"),
    [
        (lambda d: d["problems"][BROWNIAN].update(mmd=0.01), "mmd is 0.01, but that of the points"),
        (lambda d: d["problems"][BROWNIAN].update(mmd=None), "mmd is None"),
        (lambda d: d["problems"][BROWNIAN].update(levels=50), "levels is 50, not"),
        (lambda d: d["problems"][BROWNIAN].update(levels=52), "levels: must be at most of_levels"),
        (lambda d: d["problems"][BROWNIAN].update(seeds=5), "seeds is 5, not 1"),
        (lambda d: d["problems"][BROWNIAN].update(n=128), "n is 128, not 16"),
        (lambda d: d["problems"][BROWNIAN].update(sha256="0" * 64), "was another one"),
        (lambda d: d["problems"][BROWNIAN].update(version=2), "was another one"),
        (lambda d: d["problems"].pop(BROWNIAN), f"problem {BROWNIAN} has no scores"),
        (lambda d: d["problems"].update(other=d["problems"][BROWNIAN]), "other is not in"),
        (lambda d: d["files"].update({"../x": d["files"]["points.csv"]}), "is not a file of"),
        (lambda d: d["files"].update({"/etc/x": d["files"]["points.csv"]}), "is not a file of"),
        (lambda d: d["files"].pop("points.csv"), "lacks points.csv"),
        (lambda d: d["files"].pop(MMD), "is not in entry.json"),
        (lambda d: d["files"]["points.csv"].update(bytes=10**400), "bytes: must be"),
        (lambda d: d["files"]["points.csv"].update(bytes=-1), "bytes: must be"),
        (lambda d: d["files"][MMD].update(bytes=2**52), "more than 1,073,741,824 bytes"),
        (lambda d: d.update(version="../1"), "version: .*is not a valid version"),
        (lambda d: d.update(method="../m"), "method: .*is not a valid label"),
        (lambda d: d.update(suite="/etc"), "suite: is"),
        (lambda d: d.update(schema_version=2), "schema_version: is 2; this bqlib reads 1"),
        (lambda d: d.update(more=1), "unknown key"),
        (lambda d: d.pop("problems"), "problems: missing"),
    ],
)
def test_a_definition_that_is_not_of_the_points_is_told(change, what, entry):

    define(entry, change)
    problems = told(entry)
    assert any(re.search(what, problem) for problem in problems), problems


@pytest.mark.parametrize(
    ("data", "what"),
    [
        (b"", "is not JSON"),
        (b"[]", "must be a mapping"),
        (b"null", "must be a mapping"),
        (b"{" * 10**5, "is not JSON"),
        (b"[" * 10**5, "nested too deeply"),
        (b'{"a": NaN}', "no number of JSON"),
        (b'{"a": 1, "a": 1}', "is there twice"),
        (b"\xff", "is not text in UTF-8"),
        (b" " * (2**20 + 1), "the limit is"),
    ],
)
def test_a_definition_that_is_none_is_told(data, what, entry):
    (entry / "entry.json").write_bytes(data)
    (problem,) = told(entry)
    assert problem.startswith(f"{NAME}/entry.json:") and what in problem


def test_other_points_under_the_same_scores_are_told(entry):
    text = (entry / "points.csv").read_bytes().replace(b"0.03125", b"0.03126", 1)
    forge(entry, "points.csv", text)
    problems = told(entry)
    assert any(f"problem {BROWNIAN}: mmd is" in p for p in problems)
    assert any(f"{NAME}/{MMD}: MMDs of problem {BROWNIAN} are not those" in p for p in problems)
    assert not any("normal" in p for p in problems)


def test_other_curves_of_the_same_points_are_told(entry):
    data = (entry / MMD).read_bytes()
    values = np.frombuffer(Blosc().decode(data[:-4])).copy()
    there = np.flatnonzero(~np.isnan(values))
    values[there] *= 1 + 1e-15
    forge(entry, MMD, packed(values))
    assert told(entry) == []
    values[there[0]] *= 1 + 1e-9
    forge(entry, MMD, packed(values))
    (problem,) = told(entry)
    assert problem.startswith(f"{NAME}/{MMD}: MMDs of problem")


@pytest.mark.parametrize("name", ["weights", "weight_sum", "duplicates", "dim", "lengthscale"])
def test_other_variables_of_curves_are_compared(name, entry):
    (file,) = (entry / "curves.zarr" / name).glob("c.*")
    data = file.read_bytes()
    values = np.frombuffer(Blosc().decode(data[:-4]), float if name != "dim" else int).copy()
    values[np.flatnonzero(values == values)[0]] += 1
    forge(entry, file.relative_to(entry).as_posix(), packed(values))
    (problem,) = told(entry)
    assert problem.endswith(f"{name}/{file.name}: is not what the points come to")
    forge(entry, file.relative_to(entry).as_posix(), data[:-1])
    (problem,) = told(entry)
    assert f"{name}/{file.name}: is damaged: its checksum is wrong" in problem


def bomb(size):
    """A chunk that says it has many bytes."""
    data = bytearray(Blosc("zstd", 5, Blosc.BITSHUFFLE).encode(np.zeros(1000)))
    data[4:8] = size.to_bytes(4, "little")
    return bytes(data) + google_crc32c.value(bytes(data)).to_bytes(4, "little")


REASON = "curves.zarr/reason/c.0.0.0.0.0"


@pytest.mark.parametrize(
    ("name", "data"),
    [
        (MMD, b"x"),
        (MMD, b"x" * 300),
        (MMD, packed(np.zeros(3))),
        (MMD, bomb(2**31 - 1)),
        (REASON, bomb(2**31 - 1)),
        (REASON, packed((2**32 - 1).to_bytes(4, "little") + bytes(40))),
        (REASON, packed((42).to_bytes(4, "little") + b"\xff" * 400)),
    ],
)
def test_curves_that_could_take_all_memory_are_not_unpacked(name, data, entry):
    forge(entry, name, data)
    (problem,) = told(entry)
    assert problem.startswith(f"{NAME}/{name}: is damaged: ")


def test_metadata_of_curves_must_be_ours(entry):
    for name in ("curves.zarr/zarr.json", "curves.zarr/mmd/zarr.json"):
        content = json.loads((entry / name).read_text())
        content["attributes"]["numpy_version"] = "9"
        forge(entry, name, json.dumps(content).encode())
    assert told(entry) == [
        f"{NAME}/curves.zarr/mmd/zarr.json: is not what this bqlib writes of these points"
    ]


@pytest.mark.parametrize(
    "change",
    [{"title": "\x1b[31m"}, {"more": "1"}, {"numpy_version": "\x1b[31m"}, {"git_commit": 1}],
)
def test_attributes_of_curves_must_be_ours(entry, change):
    head = "curves.zarr/zarr.json"
    content = json.loads((entry / head).read_text())
    content["attributes"] |= change
    forge(entry, head, json.dumps(content).encode())
    assert told(entry) == [f"{NAME}/{head}: is not what this bqlib writes of these points"]


def test_a_submission_that_cannot_be_scored_is_told(entry):
    text = (entry / "points.csv").read_bytes().replace(b"0.03125", b"nan", 1)
    forge(entry, "points.csv", text)
    (problem,) = told(entry)
    assert f"{NAME}/points.csv:2: " in problem and "not a number" in problem


def test_mmds_may_differ_by_what_large_weights_round_to(tmp_path):
    x = np.linspace(0, 1, 17)[1:, None]
    about = submitted.ABOUT | {"kind": "set", "weights": "own"}
    rooms = []
    for i, size in enumerate((1.0, 1e4)):
        weights = size * (-1.0) ** np.arange(16)
        sets = [("box_1d_brownian", 0, x, weights)]
        scores = score(write_submission(tmp_path / str(i), about, sets))
        room = _room(scores)
        rooms.append(room.sel(target="box_1d_brownian", n=16).item())
    plain = EQUAL / np.sqrt(3)
    assert plain < rooms[0] < 1e-10 < rooms[1] < 1e-5


def test_large_weights_hide_no_forged_scores(tmp_path):
    """The breadth of their rounding is no room for any score."""
    about = submitted.ABOUT | {"kind": "set", "weights": "own", "version": "1.0"}
    for size in (1e3, 1e5, 1e7, 1e9):
        archive, folder = tmp_path / f"archive{size:g}", tmp_path / f"{size:g}"
        sets = [("box_1d_brownian", 0, [[0.9], [0.9], [0.9]], [size, -size, 0.0])]
        write_submission(folder, about, sets)
        path, _ = add(folder, archive)
        assert [problems for _, problems in check(archive)] == [()]
        scores = json.loads((path / "entry.json").read_text())["problems"]["box_1d_brownian"]
        assert scores["mmd"] > 0.5 and scores["levels"] <= 2
        content = json.loads((path / "entry.json").read_text())
        content["problems"]["box_1d_brownian"].update(mmd=1e-12, levels=51)
        (path / "entry.json").write_text(json.dumps(content))
        ((_, problems),) = check(archive)
        assert "levels is 51" in problems[0] and "mmd is 1e-12" in problems[1]


def claimed(path, **scores):
    """What a check tells if an entry claims these scores on its first problem."""
    content = json.loads((path / "entry.json").read_text())
    content["problems"]["box_1d_brownian"].update(scores)
    (path / "entry.json").write_text(json.dumps(content))
    ((_, problems),) = check(path.parent.parent)
    return problems


def test_large_weights_of_one_seed_are_no_room_for_the_others(tmp_path):
    about = submitted.ABOUT | {"kind": "set", "weights": "own", "version": "1.0"}
    good = [(np.arange(8)[:, None] + 0.5) / 8, np.full(8, 1 / 8)]
    bad = [np.full((8, 1), 0.9), 1e9 * (-1.0) ** np.arange(8)]  # of which rounding is all
    sets = [("box_1d_brownian", seed, *own) for seed, own in enumerate((good, good, bad))]
    write_submission(tmp_path / "mine", about, sets)
    path, _ = add(tmp_path / "mine", tmp_path / "archive")
    assert claimed(path) == ()
    mmd = 1 / (np.sqrt(12) * 8)  # of the midpoints, in closed form
    assert claimed(path, mmd=mmd) == ()
    (problem,) = claimed(path, mmd=1e-9)
    assert "mmd is 1e-09, but that of the points is 0.036" in problem


def test_no_score_may_be_below_its_mmd_without_rounding(tmp_path):
    about = submitted.ABOUT | {"kind": "set", "weights": "own", "version": "1.0"}
    points = (np.arange(9)[:, None] % 8 + 0.5) / 8  # the last is the first again
    mmd = 1 / (np.sqrt(12) * 8)  # of the midpoints, which both leave as they are
    large = mmd / (2 * np.sqrt(64 * np.finfo(float).eps * points.max()))
    weights = np.full(9, 1 / 8)
    weights[[0, 8]] = -large, large + 1 / 8
    write_submission(tmp_path / "mine", about, [("box_1d_brownian", 0, points, weights)])
    path, _ = add(tmp_path / "mine", tmp_path / "archive")
    scored = json.loads((path / "entry.json").read_text())["problems"]["box_1d_brownian"]["mmd"]
    assert 1.4 * mmd < scored < 1.5 * mmd  # its rounding is as large as MMD^2
    assert claimed(path, mmd=1.01 * mmd) == ()
    (problem,) = claimed(path, mmd=0.99 * mmd)
    assert f"but that of the points is {scored}" in problem
