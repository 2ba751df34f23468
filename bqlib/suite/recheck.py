"""Checking an archive: every file against the definitions, and every submission scored again."""

import os
import re
import tempfile

import google_crc32c
import numpy as np
from numcodecs import Blosc, VLenUTF8

from bqlib.results.damage import json_object, sha256_of
from bqlib.results.layout import CURVES, HEAD, Layout
from bqlib.results.text import printable
from bqlib.suite.about import ABOUT
from bqlib.suite.archive import (
    DEEPEST,
    MOST_FILES,
    is_folder,
    most_of,
    names_in,
    opened,
    opened_suite,
    read_entry,
)
from bqlib.suite.definition import DEFINITION
from bqlib.suite.mistakes import Mistakes, SubmissionError
from bqlib.suite.scores import rounding_of_square, rows_of, score, scored_mmd, write_scores
from bqlib.suite.submission import bytes_of, checked
from bqlib.suite.table import POINTS
from bqlib.sweep.problems import SUITE
from bqlib.sweep.problems import problems as problems_of_suite

MOST_BYTES = 2**30  # of the files of an entry
EQUAL = 1e-12  # MMDs may differ by this share of the MMD of no points
MOST_ROOM = 0.5  # of an MMD: what float64 gives is right to a third of it, or else NaN
# BQ weights of points that nearly repeat each other round in other ways on other processors.
WEIGHTS = ("weights", "weight_sum", "weight_l1", "min_weight")
WEIGHTS_EQUAL = 1e-3  # of the largest
VERSIONS = ("bqlib_version", "numpy_version", "scipy_version", "blas", "git_commit")
_VERSION = re.compile(r"[ -~]{0,200}")


def check(archive):
    """Check all entries of an archive, one after the other.

    Parameters
    ----------
    archive : path-like

    Yields
    ------
    name : str
        Of an entry, or of what is in the archive but is none.
    problems : tuple of str
        Each as ``path: message``; none if all is right.

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If there is no such folder.

    Notes
    -----
    The cost of an entry is that of scoring its submission.
    """
    with opened(archive) as top:
        names, strange = names_in(top)
        for name, told in strange.items():
            yield name, (f"{name}: {told}",)
        for name in names:
            mistakes = Mistakes()
            with opened_suite(top) as suite, opened(name, suite) as here:
                _check_entry(here, name, mistakes)
            path = f"{SUITE}/{printable(name)}"
            yield path, tuple(f"{path}/{told}" for told in mistakes.told())


def _check_entry(here, name, mistakes):
    entry = read_entry(here, name, mistakes)
    if entry is None:
        return
    files = _files_in(here, entry.definition, mistakes)
    suite = problems_of_suite()
    for problem, scored in entry.definition.problems.items():
        if problem not in suite:
            mistakes.add(DEFINITION, 0, f"problem {problem} is not in {SUITE}")
        elif suite[problem].sha256 != scored.sha256 or suite[problem].version != scored.version:
            mistakes.add(DEFINITION, 0, f"problem {problem} was another one when it was scored")
    if mistakes.count:
        return
    try:
        submission = checked(files[ABOUT], files[POINTS])
        dataset = score(submission)
    except SubmissionError as error:
        for told in error.problems:
            mistakes.add(told, 0, "so that it cannot be scored")
        return
    _compare_scores(entry.definition, dataset, mistakes)
    with tempfile.TemporaryDirectory() as folder:
        write_scores(dataset, folder)
        store = Layout(folder).curves
        fresh = {
            file.relative_to(folder).as_posix(): file.read_bytes()
            for file in sorted(store.rglob("*"))
            if file.is_file()
        }
    stored = {path: data for path, data in files.items() if path not in (ABOUT, POINTS)}
    _compare_curves(stored, fresh, dataset, mistakes)


def _files_in(here, definition, mistakes):
    """Bytes of the files of an entry that are as its definition says."""
    wanted, found, seen, count = definition.files, {}, set(), 0
    if sum(file.bytes for file in wanted.values()) > MOST_BYTES:
        mistakes.add(DEFINITION, 0, f"has files of more than {MOST_BYTES:,} bytes in all")
        return found
    for folder, folders, names, place in os.fwalk(".", dir_fd=here, follow_symlinks=False):
        above = [part for part in folder.split("/") if part != "."]
        for name in list(folders):
            path = "/".join([*above, name])
            if not is_folder(place, name):
                mistakes.add(printable(path), 0, "is a link: put the files themselves there")
                folders.remove(name)
            elif len(above) + 2 > DEEPEST or not any(w.startswith(f"{path}/") for w in wanted):
                mistakes.add(printable(path), 0, "is a folder that no entry has: remove it")
                folders.remove(name)
        count += len(names)
        if count > MOST_FILES:
            mistakes.add(printable(folder), 0, f"there are more than {MOST_FILES:,} files")
            return found
        for name in names:
            path = "/".join([*above, name])
            if path == DEFINITION:
                continue
            if path not in wanted:
                mistakes.add(printable(path), 0, f"is not in {DEFINITION}: remove it")
                continue
            seen.add(path)
            own = Mistakes()
            data = bytes_of(place, name, min(most_of(path), wanted[path].bytes), own)
            for told in own.told():
                mistakes.add(path, 0, told.partition(": ")[2])
            if data is None:
                continue
            if len(data) != wanted[path].bytes:
                told = f"has {len(data):,} bytes, not {wanted[path].bytes:,}"
                mistakes.add(path, 0, told)
            elif sha256_of(data) != wanted[path].sha256:
                mistakes.add(path, 0, f"is damaged: its sha256 differs from that in {DEFINITION}")
            found[path] = data
    for path in wanted:
        if path not in seen:
            mistakes.add(path, 0, "is missing")
    return found


def _compare_scores(definition, dataset, mistakes):
    """Compare the scores in a definition with those of the points."""
    least, most = _scored_elsewhere(dataset)
    low, rows, high = (
        {row["problem"]: row for row in rows_of(dataset, mmds)}
        for mmds in (least, scored_mmd(dataset), most)
    )
    stored = definition.problems
    for name in sorted(rows.keys() ^ stored.keys()):
        other = "has no scores" if name in rows else "has scores, but no points"
        mistakes.add(DEFINITION, 0, f"problem {name} {other}")
    for name in [name for name in rows if name in stored]:
        row, own = rows[name], stored[name]
        for key in ("seeds", "n", "of_levels"):
            if row[key] != getattr(own, key):
                told = f"problem {name}: {key} is {getattr(own, key)}, not {row[key]}"
                mistakes.add(DEFINITION, 0, told)
        if not high[name]["levels"] <= own.levels <= low[name]["levels"]:
            told = f"problem {name}: levels is {own.levels}, not {row['levels']}"
            mistakes.add(DEFINITION, 0, told)
        ends = low[name]["mmd"], high[name]["mmd"]
        if not (
            own.mmd == row["mmd"] if None in (own.mmd, *ends) else ends[0] <= own.mmd <= ends[1]
        ):
            told = f"problem {name}: mmd is {own.mmd}, but that of the points is {row['mmd']}"
            mistakes.add(DEFINITION, 0, told)


def _scored_elsewhere(dataset):
    """The least and the largest MMDs that count where another processor rounds.

    If rounding counts in full, the least is the MMD without it, but not below the rounding itself.
    """
    mmd, of_square, room = scored_mmd(dataset), rounding_of_square(dataset), _digits(dataset)
    least = np.sqrt(np.maximum(mmd**2 - of_square, of_square))
    return np.minimum(least, mmd) - room, np.sqrt(mmd**2 + 2 * of_square) + room


def _room(dataset):
    """By how much MMDs may differ where another processor rounds: the form of the curves."""
    mmd = dataset["mmd"]
    of_mmd = np.minimum(rounding_of_square(dataset) / mmd, MOST_ROOM * mmd).fillna(0)
    return (_digits(dataset) + of_mmd).transpose(*mmd.dims)


def _digits(dataset):
    """By how much MMDs may differ in any case, over targets."""
    suite = problems_of_suite()
    variances = np.array([suite[name].prior_variance for name in dataset["target"].values])
    return EQUAL * np.sqrt(dataset["target"].copy(data=variances))


def _compare_curves(stored, fresh, dataset, mistakes):
    """Compare the files of stored curves with those of the same curves, written anew."""
    for path in sorted(stored.keys() ^ fresh.keys()):
        other = "is missing" if path in fresh else "is no file that this bqlib writes of curves"
        mistakes.add(path, 0, other)
    for path in sorted(stored.keys() & fresh.keys()):
        _, *array, file = path.split("/")
        if stored[path] == fresh[path]:
            continue
        if file == HEAD:
            if _metadata(stored[path], not array) != _metadata(fresh[path], not array):
                mistakes.add(path, 0, "is not what this bqlib writes of these points")
        else:
            head = json_object(fresh[f"{CURVES}/{array[0]}/{HEAD}"])
            try:
                found, expected = (_values(files[path], head) for files in (stored, fresh))
            except ValueError as error:
                mistakes.add(path, 0, f"is damaged: {error}")
                continue
            if array[0] == "mmd":
                _compare_mmds(path, found, expected, head, dataset, mistakes)
            elif not _same(found, expected, array[0] in WEIGHTS):
                mistakes.add(path, 0, "is not what the points come to")


def _same(found, expected, of_weights):
    """Whether the values of a chunk are those expected; weights need not have all their digits."""
    if not of_weights:
        return np.array_equal(found, expected, equal_nan=found.dtype.kind == "f")
    room = WEIGHTS_EQUAL * np.nanmax(np.abs(expected), initial=0.0)
    return np.allclose(found, expected, rtol=0, atol=room, equal_nan=True)


def _compare_mmds(path, found, expected, head, dataset, mistakes):
    """Compare a chunk of MMDs; targets are its first axis."""
    names, room = dataset["target"].values.tolist(), _room(dataset).values
    first = int(path.rpartition("/")[2].split(".")[1]) * _chunk(head)[0]
    for i, name in enumerate(names[first : first + len(found)]):
        off = np.abs(found[i] - expected[i]) > room[first + i]
        if (off | (np.isnan(found[i]) != np.isnan(expected[i]))).any():
            mistakes.add(path, 0, f"MMDs of problem {name} are not those of its points")


def _metadata(data, of_store):
    """Metadata of an array or a store, without what differs between versions of software."""
    try:
        content = json_object(data)
        if of_store:
            of_software = {key: "" for key in VERSIONS if key in content["attributes"]}
            if not all(_VERSION.fullmatch(content["attributes"][key]) for key in of_software):
                return "a version is no plain text"
            content["attributes"] |= of_software
    except (ValueError, KeyError, TypeError, AttributeError) as error:
        return str(error)
    return content


def _chunk(head):
    return head["chunk_grid"]["configuration"]["chunk_shape"]


def _values(data, head):
    """Values of a chunk, whose form is that of an array of ours; a ValueError if it is another."""
    packed, shape = data[:-4], _chunk(head)
    if google_crc32c.value(packed) != int.from_bytes(data[-4:], "little"):
        raise ValueError("its checksum is wrong")
    count, is_text = int(np.prod(shape, dtype=int)), head["data_type"] == "string"
    # Blosc's head of 16 bytes, which it believes: bytes 4 to 7 are the size that it sets aside.
    size, packed_size = (int.from_bytes(packed[at : at + 4], "little") for at in (4, 12))
    room = 4 + 4096 * count if is_text else np.dtype(head["data_type"]).itemsize * count
    if (
        len(packed) < 16
        or packed_size != len(packed)
        or not (size <= room if is_text else size == room)
    ):
        raise ValueError("it has not the size of its array")
    try:
        plain = Blosc().decode(packed)
        if not is_text:
            dtype = np.dtype(head["data_type"]).newbyteorder("<")
            return np.frombuffer(plain, dtype).reshape(shape)
        if int.from_bytes(plain[:4], "little") != count:
            raise ValueError("it has not the number of texts of its array")
        return VLenUTF8().decode(plain).reshape(shape)
    except RuntimeError as error:  # of Blosc
        raise ValueError(str(error)) from None
