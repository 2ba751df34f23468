"""Damage of every kind, done to the results of a small sweep: all of it is found and named."""

import json
import shutil
import subprocess

import numpy as np
import pytest
import zarr
from damage import age, files, flip

from bqlib.cli.main import main
from bqlib.results import store
from bqlib.results.damage import DamagedError
from bqlib.results.integrity import check, write_manifest
from bqlib.results.layout import MANIFEST, PROVENANCE


def found(results):
    return {fault.path: fault.what for fault in check(results).faults}


def flip_somewhere(path, rng):
    flip(path, rng.integers(path.stat().st_size), rng.integers(8))


def unfinish(results):
    """Take away what the last job of a run writes."""
    for name in (MANIFEST, PROVENANCE):
        (results / name).unlink()


def test_results_as_they_were_written_have_no_faults(results):
    checked = check(results)
    assert checked.faults == () and checked.recorded
    own, *lines = (results / MANIFEST).read_text().splitlines()
    paths = [line.split("  ")[1] for line in lines]
    assert own.startswith("# sha256 of the lines below: ")
    assert checked.files == len(paths) == len(set(paths))
    assert {"report.html", "figures/mmd.svg", PROVENANCE, "curves.zarr/zarr.json"} < set(paths)
    assert "notes.txt" not in paths and sum(path.startswith("pieces/") for path in paths) == 8


def test_sha256sum_reads_the_manifest(results):
    subprocess.run(["sha256sum", "--check", "--quiet", MANIFEST], cwd=results, check=True)


def test_manifest_and_provenance_are_the_same_bytes_again(results):
    before = [(results / name).read_bytes() for name in (MANIFEST, PROVENANCE)]
    unfinish(results)
    write_manifest(results)
    assert [(results / name).read_bytes() for name in (MANIFEST, PROVENANCE)] == before
    provenance = json.loads(before[1])
    assert provenance["config"]["n"] == 6 and "numpy_version" in provenance["versions"]
    assert provenance["versions_of_pieces"] == [{"numpy": "2.0"}, {"numpy": "2.1"}]
    timing = files(results, "timings/**/*.json")[0]
    record = json.loads(timing.read_text()) | {"other_versions": [{"numpy": "1.9"}]}
    timing.write_text(json.dumps(record))
    write_manifest(results)
    software = json.loads((results / PROVENANCE).read_text())["versions_of_pieces"]
    assert software == [{"numpy": "1.9"}, {"numpy": "2.0"}, {"numpy": "2.1"}]


PIECES, CHUNKS, METADATA = "pieces/**/*.zip", "curves.zarr/**/c*", "curves.zarr/**/zarr.json"


@pytest.mark.parametrize(
    "what, recorded",
    [(PIECES, True), (CHUNKS, True), (METADATA, True), (PIECES, False), (CHUNKS, False)],
)
def test_forty_of_forty_flipped_bits_are_found(results, what, recorded):
    if not recorded:  # as in a run that has not finished
        unfinish(results)
    rng = np.random.default_rng(40)
    places, named = files(results, what), []
    while len(named) < 40:  # one flip in each file, up to 40, then one check
        chosen = rng.permutation(len(places))[: 40 - len(named)]
        sound = {places[i]: places[i].read_bytes() for i in chosen}
        for path in sound:
            flip_somewhere(path, rng)
        faults = found(results)
        named += [str(path.relative_to(results)) in faults for path in sound]
        for path, data in sound.items():
            path.write_bytes(data)
    assert sum(named) == 40
    assert found(results) == {}


def test_flips_in_the_records_themselves_are_found(results):
    rng = np.random.default_rng(41)
    sound = (results / MANIFEST).read_bytes()
    for _ in range(10):
        flip_somewhere(results / MANIFEST, rng)
        assert found(results)
        (results / MANIFEST).write_bytes(sound)
    timing = files(results, "timings/**/*.json")[0]
    record = json.loads(timing.read_text())
    timing.write_text(json.dumps(record | {"sha256": "0" * 64}))
    assert list(found(results)) == [str(timing.relative_to(results))]
    timing.write_text("{")
    assert "its sha256 differs" in found(results)[str(timing.relative_to(results))]


def test_what_was_done_to_a_piece_is_named(results):
    first, second, third, fourth, fifth = files(results, "pieces/**/*.zip")[:5]
    names = [str(p.relative_to(results)) for p in (first, second, third, fourth, fifth)]
    first.write_bytes(first.read_bytes()[:-100])
    swapped = second.read_bytes()
    second.write_bytes(third.read_bytes())
    third.write_bytes(swapped)
    fourth.unlink()
    fifth.write_bytes(b"")
    assert found(results) == {
        names[0]: "is cut short or damaged: the end of the zip file is missing",
        names[1]: f"has the content of {names[2]}",
        names[2]: f"has the content of {names[1]}",
        names[3]: "is missing",
        names[4]: "is empty",
    }


def test_pieces_that_the_sweep_does_not_ask_for_any_more_are_named(results, capsys):
    assert check(results).unused == ()
    piece = files(results, "pieces/**/*.zip")[0]
    longer = piece.with_name("seeds-0-1.zarr.zip")
    other = piece.parent.parent / "sbq" / piece.name
    other.parent.mkdir()
    for copy in (longer, other):
        shutil.copy(piece, copy)
    assert set(check(results).unused) == {str(p.relative_to(results)) for p in (longer, other)}
    main(["check", str(results)])
    assert "2 pieces are not in the curves" in capsys.readouterr().out


def test_pieces_without_a_record_are_checked_by_what_they_say(results):
    unfinish(results)
    shutil.rmtree(results / "timings")
    first, second, third, fourth = files(results, "pieces/**/*.zip")[:4]
    age(first)
    second.write_bytes(files(results, "pieces/**/*.zip")[-1].read_bytes())
    flip_somewhere(third, np.random.default_rng(3))
    said = found(results)
    missing = {path for path in said if said[path] == "is missing"}
    assert len(missing) == 8 and all(path.startswith("timings/") for path in missing)
    wrong = {str(path.relative_to(results)) for path in (first, second, third)}
    assert said.keys() - missing == wrong
    assert "schema version 0" in said[str(first.relative_to(results))]
    wrong = said[str(second.relative_to(results))]
    assert "holds a piece of the cell chen2010_mixture/eq/2/iid" in wrong
    assert fourth.exists()


@pytest.mark.parametrize("recorded", [True, False], ids=["manifest", "without"])
def test_a_missing_chunk_is_named(results, recorded):
    if not recorded:
        unfinish(results)
    chunk = files(results, "curves.zarr/mmd/c*")[0]
    chunk.unlink()
    assert found(results) == {str(chunk.relative_to(results)): "is missing"}
    (results / "curves.zarr" / "mmd" / "zarr.json").unlink()
    assert found(results)["curves.zarr/mmd/zarr.json"] == "is missing"


def test_a_store_that_is_gone_is_named_once(results):
    shutil.rmtree(results / "curves.zarr")
    assert found(results) == {"curves.zarr": "is missing"}


def test_a_store_alone_can_be_checked(results, tmp_path):
    alone = shutil.copytree(results / "curves.zarr", tmp_path / "alone.zarr")
    assert check(alone).faults == () and check(alone).files > 20
    next((alone / "weights").glob("c*")).write_bytes(b"nothing")
    assert [fault.path.startswith("alone.zarr/weights/c") for fault in check(alone).faults] == [
        True
    ]


def test_a_chunk_that_the_run_did_not_write_is_named(results):
    (results / "curves.zarr" / "mmd" / "c.9.9.9.9.9.9").write_bytes(b"foreign")
    (results / "figures" / "my-own.svg").write_text("<svg></svg>")
    assert found(results) == {"curves.zarr/mmd/c.9.9.9.9.9.9": "was not written by the run"}


def test_results_of_another_schema_are_told_and_kept(results, capsys):
    group = zarr.open_group(results / "curves.zarr")
    group.attrs["schema_version"] = 0
    unfinish(results)
    write_manifest(results)
    assert "schema version 0, this bqlib reads version 1" in found(results)["curves.zarr"]
    assert main(["check", str(results)]) == 1
    assert "use the bqlib that wrote it" in capsys.readouterr().out
    main(["retry", "--damaged", str(results)])
    assert (results / "curves.zarr" / "zarr.json").exists()


def test_results_that_are_not_there(tmp_path, capsys):
    with pytest.raises(FileNotFoundError, match="no results at"):
        check(tmp_path)
    assert main(["check", str(tmp_path / "nope")]) == 2
    assert "no such folder" in capsys.readouterr().err


def test_seeds_of_another_block_are_named_and_not_gathered(finished, results):
    unfinish(results)
    shutil.rmtree(results / "timings")
    first, second = files(results, "pieces/**/*.zip")[:2]
    first.write_bytes(second.read_bytes())
    path = str(first.relative_to(results))
    assert found(results)[path] == "holds the block seeds-1-1 of its cell"
    with pytest.raises(store.SchemaError, match="holds seeds 1 to 1, not 0 to 0"):
        store.gather(finished[0], results)


def test_a_piece_whose_bits_no_longer_unpack_is_named(results):
    unfinish(results)
    piece = files(results, "pieces/**/*.zip")[0]
    data = bytearray(piece.read_bytes())
    place = data.index(b"PK\x01\x02") + 10  # how the first file is packed, in the directory
    data[place] ^= 8
    piece.write_bytes(data)
    assert found(results)[str(piece.relative_to(results))].startswith("is damaged")


def test_a_store_is_checked_by_the_manifest_beside_it(results):
    head = results / "curves.zarr" / "zarr.json"
    head.write_text(head.read_text() + " ")
    checked = check(results / "curves.zarr")
    assert checked.recorded
    assert [fault.path for fault in checked.faults] == ["curves.zarr/zarr.json"]


def test_a_manifest_that_ends_early_is_named_and_not_the_files(results, capsys):
    lines = (results / MANIFEST).read_text().splitlines(keepends=True)
    (results / MANIFEST).write_text("".join(lines[:5]))
    assert found(results) == {MANIFEST: "is damaged or cut short"}
    main(["check", str(results)])
    assert f"(without {MANIFEST}): 1 fault" in capsys.readouterr().out


def test_a_manifest_that_is_gone_is_named(results):
    (results / MANIFEST).unlink()
    assert found(results) == {MANIFEST: "is missing: run the sweep again to write it"}


def damage_png(path):
    data = bytearray(path.read_bytes())
    data[len(data) // 2] ^= 1
    path.write_bytes(data)


def cut(path):
    path.write_bytes(path.read_bytes()[:-20])


def recreate_what_is_missing(results, sound):
    """As a run does: a store without its head is written anew as a whole, and other files."""
    for path in files(sound, "**/*"):
        ours = results / path.relative_to(sound)
        if ours.exists() or ours.name in (MANIFEST, PROVENANCE):
            continue
        if ours.parent.suffix == ".zarr" and ours.name == "zarr.json":
            shutil.rmtree(ours.parent, ignore_errors=True)
            shutil.copytree(path.parent, ours.parent)
        elif not any(parent.suffix == ".zarr" for parent in ours.parents):
            shutil.copy(path, ours)


@pytest.mark.parametrize(
    ("pattern", "damage"),
    [
        ("pieces/**/seeds-0-0.zarr.zip", cut),
        ("pieces/**/seeds-0-0.zarr.zip", lambda path: path.unlink()),
        ("timings/**/seeds-0-0.json", lambda path: path.unlink()),
        ("curves.zarr/mmd/c.*", cut),
        ("curves.zarr/zarr.json", cut),
        ("rates.zarr/rate/c.*", lambda path: flip(path, 20)),
        ("rates.zarr/zarr.json", lambda path: path.write_bytes(b"")),
        ("function_errors.zarr/mmd/zarr.json", lambda path: path.unlink()),
        ("studies/cost.zarr/seconds/c.*", lambda path: path.unlink()),
        ("studies/cost.zarr/seconds/c.*", lambda path: shutil.copy(path, f"{path}.9")),
        ("claims.json", lambda path: path.write_bytes(b"")),
        ("claims.json", cut),
        ("report.html", cut),
        ("figures/mmd.svg", cut),
        ("figures/mmd.svg", lambda path: path.unlink()),
        ("figures/mmd.png", damage_png),
        ("figures/mmd.png", lambda path: path.write_bytes(b"")),
    ],
)  # fmt: skip
def test_no_manifest_vouches_for_what_is_damaged_and_one_command_mends_it(
    complete, tmp_path, pattern, damage, capsys
):
    _, sound = complete
    results = shutil.copytree(sound, tmp_path / "small")
    unfinish(results)
    wanted = ["figures/mmd.svg"]
    path = files(results, pattern)[0]
    there = set(files(results, "**/*"))
    damage(path)
    (path,) = set(files(results, "**/*")) - there or {path}
    with pytest.raises(DamagedError) as caught:
        write_manifest(results, wanted)
    command = f"bqlib retry --damaged {results}"
    assert str(path) in str(caught.value) and f"{command}, then run" in str(caught.value)
    assert not (results / MANIFEST).exists() and not (results / PROVENANCE).exists()
    assert main(command.split()[1:]) == 0
    recreate_what_is_missing(results, sound)
    write_manifest(results, wanted)
    assert check(results).faults == () and check(results).recorded


def test_pieces_that_were_deleted_as_unused_keep_no_run_from_its_end(finished, results):
    unfinish(results)
    piece = files(results, "pieces/**/*.zip")[0]
    timing = results / "timings" / piece.relative_to(results / "pieces")
    unused = timing.with_name("seeds-5-5.json")
    text = timing.with_name("seeds-0-0.json").read_text().replace('"0"', '"5"')
    unused.write_text(text)
    write_manifest(results)
    assert check(results).faults == ()


def test_a_manifest_of_an_older_version_is_read(results):
    lines = (results / MANIFEST).read_text().splitlines(keepends=True)[1:]
    (results / MANIFEST).write_text("".join(line for line in lines if "timings/" not in line))
    assert check(results).faults == () and check(results).recorded
