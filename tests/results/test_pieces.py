"""Pieces: the same trials are the same bytes, and can be taken over into others."""

import json
import zipfile
from dataclasses import replace
from hashlib import sha256
from io import BytesIO

import numpy as np
import pytest
import zarr
from damage import age, flip
from zarr.storage import MemoryStore

from bqlib.results.codec import create
from bqlib.results.layout import Layout, piece_name
from bqlib.results.pieces import encode_piece, read_piece, take_over

SOFTWARE = {"numpy": "2.0"}


def write(results, spec, block, trials, **record):
    """A piece of a block of seeds, and its timings; its path and that of the timings."""
    at, name = Layout(results), piece_name(spec.cell, block)
    piece, timing = at.piece(name), at.timing(name)
    for path in (piece, timing):
        path.parent.mkdir(parents=True, exist_ok=True)
    seeds = range(block[0], block[1] + 1)
    piece.write_bytes(encode_piece(spec, seeds, trials))
    pairs = zip(seeds, trials, strict=True)
    seconds = {seed: None if isinstance(trial, str) else 1.5 for seed, trial in pairs}
    about = {"digest": spec.digest, "sha256": sha256(piece.read_bytes()).hexdigest()}
    timing.write_text(json.dumps(about | {"seconds": seconds, "versions": SOFTWARE} | record))
    return piece, timing


def replace_in(path, old, new):
    path.write_text(path.read_text().replace(old, new))


def test_equal_trials_are_equal_bytes(experiment):
    spec = experiment.spec(experiment.cells()[0])
    first, again = (encode_piece(spec, [0, 1], [spec.run(s)[0] for s in (0, 1)]) for _ in "ab")
    assert first == again
    assert first != encode_piece(spec, [0, 2], [spec.run(s)[0] for s in (0, 2)])


def test_pieces_are_what_zarr_writes(experiment):
    spec = experiment.spec(experiment.cells()[0])
    integrands = {"f": {"family": "rkhs_ball", "functions": 3, "centre_variance": 1.0}}
    good = [spec.run(0)[0], replace(spec, integrands=integrands).run(0)[0]]
    for cell_spec, trials in [
        (spec, [good[0], "failed: é"]),
        (spec, ["failed", "failed"]),
        (replace(spec, integrands=integrands), [good[1], good[1] | {"reason": "ended early"}]),
    ]:
        with zipfile.ZipFile(BytesIO(encode_piece(cell_spec, [3, 4], trials))) as archive:
            made = {name: archive.read(name) for name in archive.namelist()}
        files = {name: zarr.core.buffer.cpu.Buffer.from_bytes(data) for name, data in made.items()}
        found = zarr.open_group(MemoryStore(files), mode="r")
        coordinates = {"seed", "n", "dim", "integrand", "quantile"} & set(found.array_keys())
        labels = {name: found[name][...] for name in coordinates}
        written = {}
        root = create(MemoryStore(written), labels, dict(found.attrs))
        for name in set(found.array_keys()) - set(labels):
            root[name][...] = found[name][...]
        assert {name: data.to_bytes() for name, data in written.items()} == made


def test_trials_taken_over_make_the_same_bytes(experiment, tmp_path):
    # One whose curves end early, one that failed, and points of one dimension where others have 2.
    cell = experiment.cells()[-1]
    integrands = {"f": {"family": "rkhs_ball", "functions": 3, "centre_variance": 1.0}}
    spec = replace(experiment.spec(cell), integrands=integrands)
    trials = [spec.run(seed)[0] for seed in range(4)]
    trials[1] |= {"reason": "ended early", "mmd": np.where(np.arange(8) < 5, 0.5, np.nan)}
    write(tmp_path, spec, (0, 1), trials[:2])
    write(tmp_path, spec, (2, 3), [trials[2], "out of memory"], versions={"numpy": "2.1"})
    taken, versions = take_over(tmp_path, spec, range(1, 4))
    assert sorted(taken) == [1, 2] and {seconds for _, seconds in taken.values()} == {1.5}
    assert versions == [SOFTWARE, {"numpy": "2.1"}]
    again = [taken[1][0], taken[2][0], trials[3]]
    # A reason of a plug-in may hold what UTF-8 cannot.
    odd, escaped = ([trials[1] | {"reason": text}] for text in ("\udce9", r"\udce9"))
    assert encode_piece(spec, [1], odd) == encode_piece(spec, [1], escaped)
    assert encode_piece(spec, [1, 2, 3], again) == encode_piece(spec, [1, 2, 3], trials[1:])


@pytest.mark.parametrize(
    "harm",
    [
        lambda piece, timing: flip(piece),
        lambda piece, timing: piece.unlink(),
        lambda piece, timing: piece.write_bytes(piece.read_bytes()[:-9]),
        lambda piece, timing: timing.write_text("{"),
        lambda piece, timing: replace_in(timing, "sha256", "sha255"),
        lambda piece, timing: replace_in(timing, 'digest": "', 'digest": "0'),
    ],
    ids=["bit", "gone", "cut", "timing", "no sum", "digest"],
)  # fmt: skip
def test_damaged_pieces_are_not_taken_over(experiment, tmp_path, harm):
    spec = experiment.spec(experiment.cells()[0])
    trials = [spec.run(0)[0]]
    paths = write(tmp_path, spec, (0, 0), trials)
    assert list(take_over(tmp_path, spec, [0, 1])[0]) == [0]
    harm(*paths)
    assert take_over(tmp_path, spec, [0, 1]) == ({}, [])


def test_what_the_timings_say_of_a_piece_is_not_enough(experiment, tmp_path):
    # The sum fits, but the content is of other science, of other sizes or of another schema.
    spec, other = (experiment.spec(cell) for cell in experiment.cells()[:2])
    trials = [spec.run(0)[0]]
    write(tmp_path, replace(other, cell=spec.cell), (0, 0), trials, digest=spec.digest)
    assert take_over(tmp_path, spec, [0])[0] == {}
    short = replace(spec, n=5)
    short.__dict__["digest"] = spec.digest
    write(tmp_path, short, (0, 0), [short.run(0)[0]])
    assert take_over(tmp_path, spec, [0])[0] == {}
    piece, timing = write(tmp_path, spec, (0, 0), trials)
    age(piece)
    about = json.loads(timing.read_text()) | {"sha256": sha256(piece.read_bytes()).hexdigest()}
    timing.write_text(json.dumps(about))
    assert take_over(tmp_path, spec, [0])[0] == {}


def test_a_piece_that_may_unpack_to_any_size_is_not_unpacked(experiment, tmp_path):
    spec = experiment.spec(experiment.cells()[0])
    rows = {"status": np.zeros(1, np.int8)}
    piece = tmp_path / "piece.zarr.zip"
    with zipfile.ZipFile(piece, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zarr.json", " " * 10**7)
    assert "cannot be read (it holds compressed files" in read_piece(piece, spec, 0, 0, rows)[0]
