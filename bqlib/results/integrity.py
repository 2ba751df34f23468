"""Integrity: whether a folder of results is as its run wrote it.

The last job of a run checks every file that the other jobs made, and records its sha256 in a
manifest that ``sha256sum -c`` reads too. The job of a piece records the sha256 of its piece at
once, in the timings.
"""

import contextlib
import json
from dataclasses import dataclass, replace

from bqlib.results.contents import fault_of_content, faults_of_store, faults_of_sum
from bqlib.results.damage import (
    FOREIGN_FILE,
    OTHER_SUM,
    Fault,
    damaged,
    manifest_text,
    read_attributes,
    read_manifest,
    sha256,
    sha256_of,
)
from bqlib.results.files import write_atomically
from bqlib.results.layout import (
    CURVES,
    MANIFEST,
    PARTS,
    PROVENANCE,
    Layout,
    has_results,
    head,
    path_of_head,
    path_of_piece,
    path_of_timing,
    piece_at,
    results_of,
    store_at,
)
from bqlib.results.records import is_record, sums_of_outputs
from bqlib.results.timings import checked_timing, made_by, timed_pieces
from bqlib.results.used import pieces_used, timings_used
from bqlib.schema import SCHEMA_VERSION, versions


@dataclass(frozen=True)
class Checked:
    """What a check found.

    Attributes
    ----------
    files, bytes : int
        How much was read.
    recorded : bool
        Whether the results have a manifest. Without it, files other than pieces are only checked
        by their own checksums and their content.
    faults : tuple of Fault
    unused : tuple of str
        Pieces that are not in the curves, because the sweep no longer asks for them: other cells
        or other blocks of seeds.
    """

    files: int
    bytes: int
    recorded: bool
    faults: tuple[Fault, ...]
    unused: tuple[str, ...] = ()


def write_manifest(results, wanted=()):
    """Check finished results, and write their provenance and the manifest of all their files.

    Parameters
    ----------
    results : path-like
        The experiment's folder, with its curves.
    wanted : iterable of str
        Paths below it of files that must be there.

    Raises
    ------
    DamagedError
        If a file is missing, or is not as its job wrote it, as far as its own checksums and its
        content tell. The message lists all these files, and nothing is written.

    Notes
    -----
    Both are the same bytes for the same files. For a piece, the sha256 is the one that its job
    recorded.
    """
    at = Layout(results)
    # Before the check: what is damaged in between then differs from its record.
    sums = {path: sha256(at.file(path)) for path in _made(at) if path != PROVENANCE}
    checked = _check_folder(at, "", {}, [])
    faults = [fault for fault in checked.faults if not fault.foreign and fault.path != PROVENANCE]
    told = {fault.path for fault in faults}
    lost = {p for p in (path_of_head(CURVES), *wanted) if p not in told and not at.file(p).exists()}
    faults += [Fault(path, "is missing") for path in sorted(lost)]
    if faults:
        raise damaged(results, faults)
    attributes = read_attributes(at.curves)
    # Pieces of earlier runs are reused, so that several versions can have made them.
    made = {
        json.dumps(software)
        for piece in timings_used(results)
        for software in made_by(results, piece)
    }
    provenance = {
        "title": attributes["title"],
        "versions": versions(attributes),
        "versions_of_pieces": [json.loads(text) for text in sorted(made)],
        "config_sha256": attributes["config_sha256"],
        "config": json.loads(attributes["config"]),
    }
    text = json.dumps(provenance, indent=1, ensure_ascii=False, allow_nan=False) + "\n"
    write_atomically(at.provenance, text.encode())
    sums |= {path: known for path, known in _recorded_pieces(at).items() if path in sums}
    sums[PROVENANCE] = sha256_of(text.encode())
    write_atomically(at.manifest, manifest_text(sums).encode())


def check(results):
    """Compare the files of an experiment with the records of its run.

    Parameters
    ----------
    results : path-like
        The experiment's folder, or one store in it.

    Returns
    -------
    Checked

    Raises
    ------
    FileNotFoundError
        If there are no results.

    Notes
    -----
    Reads every file once, in blocks, at about the speed of sha256. What has no record is checked
    by its own checksums and its content.
    """
    at, below = Layout(results), ""
    if not has_results(at.folder):
        store = at.folder
        if not head(store).exists():
            raise FileNotFoundError(f"no results at {results}: give a folder results/<experiment>")
        at = Layout(results_of(store))
        if not at.manifest.exists():
            return _check_store(store)
        below = f"{store.relative_to(at.folder).as_posix()}/"
    checked = _check_folder(at, below, *read_manifest(at.folder))
    faults = [fault for fault in checked.faults if fault.path.startswith((below, MANIFEST))]
    return replace(checked, faults=tuple(faults))


def _check_folder(at, below, manifest, faults):
    """What :func:`check` finds among the files whose paths start with `below`.

    `manifest` and `faults` are what :func:`bqlib.results.damage.read_manifest` gives.
    """
    manifest = {path: digest for path, digest in manifest.items() if path.startswith(below)}
    recorded = bool(manifest)
    pieces = {} if below else _recorded_pieces(at)
    outputs = {} if below or recorded else sums_of_outputs(at.folder)
    owners = {digest: path for path, digest in (pieces | outputs | manifest).items()}
    there = {path for path in _made(at) if path.startswith(below)}
    faults, size = list(faults), 0
    for path in sorted(there):
        size += at.file(path).stat().st_size
        if path in manifest:
            found = sha256(at.file(path))
            if found != manifest[path]:
                faults.append(Fault(path, _difference(at, path, owners.get(found))))
        elif path in outputs and sha256(at.file(path)) != outputs[path]:
            faults.append(Fault(path, OTHER_SUM))
        elif store_at(path):
            faults += [Fault(path, FOREIGN_FILE)] if recorded else []
        elif path in pieces:
            faults += faults_of_sum(at.folder, path, pieces[path])
        else:
            wrong = fault_of_content(at.folder, path)
            faults += [Fault(path, wrong)] if wrong else []
    if not recorded:
        for store in _stores(there):
            inside = sorted(path for path in there if store_at(path) == store)
            faults += faults_of_store(at.folder, store, inside)
    if not below:
        records = [path for path in at.records.rglob("*") if path.is_file()]
        wrong = [path for path in records if not is_record(path.read_bytes())]
        faults += [Fault(path.relative_to(at.folder).as_posix(), "is damaged") for path in wrong]
    faults += [Fault(path, "is missing") for path in _missing(at, there, manifest, pieces)]
    faults += _foreign_schema(at)
    first = {}  # what is wrong with each file, once
    for fault in sorted(faults, key=lambda fault: fault.path):
        first.setdefault(fault.path, fault)
    used = pieces_used(at.folder)
    there_too = (piece_at(path) for path in there if path == _piece_path(path))
    unused = sorted(path_of_piece(p) for p in there_too if used is not None and p not in used)
    return Checked(len(there), size, recorded, tuple(first.values()), tuple(unused))


def _missing(at, there, manifest, pieces):
    """Paths of files that must be there and are not; that of a store, if all of it is missing."""
    if manifest:
        missing = manifest.keys() - there
    else:
        used = pieces_used(at.folder)
        missing = {path for path in pieces.keys() - there if not used or piece_at(path) in used}
    of_pieces = {path for path in there if path == _piece_path(path)}
    missing |= {path_of_timing(piece_at(path)) for path in of_pieces} - there
    gone = {store for store in _stores(missing) if not at.file(store).exists()}
    return gone | {path for path in missing if store_at(path) not in gone}


def _piece_path(path):
    """Path of the piece that a piece or its timings belong to; None for others."""
    piece = piece_at(path)
    return None if piece is None else path_of_piece(piece)


def _made(at):
    """Paths below the results of the files of `PARTS`, except hidden ones."""
    for part in map(at.file, PARTS):
        for path in part.rglob("*") if part.is_dir() else [part]:
            relative = path.relative_to(at.folder)
            if path.is_file() and not any(name.startswith(".") for name in relative.parts):
                yield relative.as_posix()


def _check_store(store):
    results = results_of(store)
    files = [path for path in store.rglob("*") if path.is_file()]
    size = sum(path.stat().st_size for path in files)
    inside = [path.relative_to(results).as_posix() for path in files]
    faults = faults_of_store(results, store.relative_to(results).as_posix(), sorted(inside))
    return Checked(len(files), size, False, tuple(faults))


def _recorded_pieces(at):
    """sha256 of each piece as its job recorded it, where its file of timings is not damaged."""
    sums = {}
    for piece in timed_pieces(at.folder):
        with contextlib.suppress(ValueError, OSError):
            sums[path_of_piece(piece)] = checked_timing(at.folder, piece)["sha256"]
    return sums


def _difference(at, path, owner):
    """What is wrong with a file whose sha256 is not the recorded one."""
    if at.file(path).stat().st_size == 0:
        return "is empty"
    if owner is not None:
        return f"has the content of {owner}"
    found = fault_of_content(at.folder, path) if path == _piece_path(path) else None
    return found or OTHER_SUM


def _stores(paths):
    """The stores that hold the paths."""
    return sorted({store for store in map(store_at, paths) if store})


def _foreign_schema(at):
    """A fault if another schema version wrote the curves."""
    try:
        version = read_attributes(at.curves).get("schema_version")
    except (OSError, ValueError):
        return []
    if version == SCHEMA_VERSION:
        return []
    what = f"has schema version {version}, this bqlib reads version {SCHEMA_VERSION}"
    return [Fault(CURVES, what, foreign=True)]
