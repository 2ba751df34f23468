"""Integrity: whether a folder of results is as its run wrote it.

The last job of a run records the sha256 of every file that the other jobs made, in a manifest that
``sha256sum -c`` reads too. The job of a piece records the sha256 of its piece at once, in the
timings.
"""

import hashlib
import itertools
import json
import re
import zipfile
import zlib
from dataclasses import dataclass, replace

import zarr

from bqlib.results.files import read_head, write_atomically
from bqlib.results.layout import (
    CURVES,
    HEAD,
    MANIFEST,
    PARTS,
    PIECE,
    Layout,
    block_name,
    cell_of,
    head,
    path_of_head,
    path_of_piece,
    path_of_timing,
    piece_at,
    results_of,
    store_at,
)
from bqlib.results.pieces import seeds_of_piece
from bqlib.results.records import is_record
from bqlib.results.timings import made_by, timed_pieces
from bqlib.results.used import pieces_used, timings_used
from bqlib.schema import SCHEMA_VERSION, SWEEP_DIMS, versions

_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


@dataclass(frozen=True)
class Fault:
    """A file that is not as it was written.

    Attributes
    ----------
    path : str
        Below the results.
    what : str
        What is wrong.
    foreign : bool
        Whether it is not damaged: another version of bqlib wrote it, and can read it.
    """

    path: str
    what: str
    foreign: bool = False


@dataclass(frozen=True)
class Checked:
    """What a check found.

    Attributes
    ----------
    files, bytes : int
        How much was read.
    recorded : bool
        Whether the results have a manifest. Without it, files other than pieces are only checked
        by their own checksums.
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


def sha256(path):
    """sha256 of a file, as hexadecimal digits; reads it in blocks."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def write_manifest(results):
    """Write the provenance of finished results, and the manifest of all files that the run made.

    Parameters
    ----------
    results : path-like
        The experiment's folder, with its curves.

    Notes
    -----
    Both are the same bytes for the same results. For a piece, the sha256 is the one that its job
    recorded, not the one of the file now.
    """
    at = Layout(results)
    attributes = read_head(at.curves)["attributes"]
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
    text = json.dumps(provenance, indent=1, ensure_ascii=False, allow_nan=False)
    write_atomically(at.provenance, text.encode() + b"\n")
    recorded, _ = _recorded_pieces(at)
    sums = {path: recorded.get(path) or sha256(at.file(path)) for path in _made(at)}
    lines = [f"{sums[path]}  {path}\n" for path in sorted(sums)]
    write_atomically(at.manifest, "".join(lines).encode())


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
    Reads every file once, in blocks, at about the speed of sha256. Stores without a record are
    read chunk by chunk.
    """
    at, below = Layout(results), ""
    if not any(at.file(part).exists() for part in (*PARTS, MANIFEST)):
        store = at.folder
        if not head(store).exists():
            raise FileNotFoundError(f"no results at {results}: give a folder results/<experiment>")
        at = Layout(results_of(store))
        if not at.manifest.exists():
            return _check_store(store)
        below = f"{store.relative_to(at.folder).as_posix()}/"
    checked = _check_folder(at, below)
    faults = [fault for fault in checked.faults if fault.path.startswith((below, MANIFEST))]
    return replace(checked, faults=tuple(faults))


def _check_folder(at, below):
    """What :func:`check` finds among the files whose paths start with `below`."""
    pieces, faults = ({}, []) if below else _recorded_pieces(at)
    manifest, manifest_faults = _read_manifest(at)
    faults += manifest_faults
    there = {path for path in _made(at) if path.startswith(below)}
    beyond = [path for path in there if manifest and path > max(manifest)]
    if len(beyond) > 1 and not there - manifest.keys() - set(beyond):
        manifest, faults = {}, [*faults, Fault(MANIFEST, "is cut short")]
    manifest = {path: digest for path, digest in manifest.items() if path.startswith(below)}
    recorded = bool(manifest)
    sums = pieces | manifest
    owners = {digest: path for path, digest in sums.items()}
    missing = (manifest or pieces).keys() - there
    whole = {store for store in _stores(missing) if not at.file(store).exists()}
    missing = whole | {path for path in missing if not whole.intersection(_stores([path]))}
    faults += [Fault(path, "is missing") for path in missing]
    size = 0
    for path in sorted(there):
        size += at.file(path).stat().st_size
        if path in sums:
            found = sha256(at.file(path))
            if found == sums[path] == pieces.get(path, found):
                continue
            if found == sums[path]:
                timing = path_of_timing(piece_at(path))
                faults.append(Fault(timing, f"is damaged: its sha256 of {path} is wrong"))
            elif found == pieces.get(path):
                faults.append(Fault(MANIFEST, f"is damaged: its sha256 of {path} is wrong"))
            else:
                faults.append(Fault(path, _damage(at, path, owners.get(found))))
        elif recorded and store_at(path):
            faults.append(Fault(path, "was not written by the run"))
        elif piece_at(path):
            wrong = _fault_of_piece(at, path)
            faults += [Fault(path, wrong)] if wrong else []
    if not recorded:
        faults += [fault for store in _stores(there) for fault in _faults_of_store(at, store)]
    if not below:
        records = [path for path in at.records.rglob("*") if path.is_file()]
        damaged = [path for path in records if not is_record(path.read_bytes())]
        faults += [Fault(path.relative_to(at.folder).as_posix(), "is damaged") for path in damaged]
    faults += _foreign_schema(at)
    faults = sorted(set(faults), key=lambda fault: fault.path)
    used, pieces_there = pieces_used(at.folder), {path for path in there if piece_at(path)}
    unused = sorted(p for p in pieces_there if used is not None and piece_at(p) not in used)
    return Checked(len(there), size, recorded, tuple(faults), tuple(unused))


def _made(at):
    """Paths below the results of the files of `PARTS`, except hidden ones."""
    for part in map(at.file, PARTS):
        for path in part.rglob("*") if part.is_dir() else [part]:
            relative = path.relative_to(at.folder)
            if path.is_file() and not any(name.startswith(".") for name in relative.parts):
                yield relative.as_posix()


def _check_store(store):
    paths = [path for path in store.rglob("*") if path.is_file()]
    results = results_of(store)
    faults = _faults_of_store(Layout(results), store.relative_to(results).as_posix())
    return Checked(len(paths), sum(path.stat().st_size for path in paths), False, tuple(faults))


def _recorded_pieces(at):
    """sha256 of each piece as its job recorded it, and faults of unreadable files of timings."""
    sums, faults = {}, []
    for piece in timed_pieces(at.folder):
        path = path_of_timing(piece)
        try:
            record = json.loads(at.timing(piece).read_bytes())
            recorded = record.get("sha256")
            [float(seconds) for seconds in record["seconds"].values() if seconds is not None]
        except (ValueError, AttributeError, KeyError, TypeError):
            faults.append(Fault(path, "is damaged"))
            continue
        if recorded:
            sums[path_of_piece(piece)] = recorded
    return sums, faults


def _read_manifest(at):
    """Path to sha256, and a fault if the manifest itself is damaged."""
    try:
        lines = at.manifest.read_bytes().decode(errors="replace").split("\n")
    except FileNotFoundError:
        if not at.provenance.exists():  # it is written together with the manifest
            return {}, []
        return {}, [Fault(MANIFEST, "is missing: run the sweep again to write it")]
    sums = {}
    for line in lines[:-1]:
        found = _LINE.fullmatch(line)
        if found is None:
            return {}, [Fault(MANIFEST, "is damaged")]
        sums[found[2]] = found[1]
    if lines[-1] or not sums:
        return {}, [Fault(MANIFEST, "is cut short")]
    return sums, []


def _damage(at, path, owner):
    """What is wrong with a file whose sha256 is not the recorded one."""
    if at.file(path).stat().st_size == 0:
        return "is empty"
    if owner is not None:
        return f"has the content of {owner}"
    found = _fault_of_piece(at, path) if piece_at(path) else None
    return found or "is damaged: its sha256 differs from the recorded one"


def _fault_of_piece(at, path):
    """What is wrong with a piece, by its own content and checksums; None if nothing is."""
    try:
        with zipfile.ZipFile(at.file(path)) as archive:
            damaged = archive.testzip()
            if damaged is not None:
                return f"is damaged at {damaged}"
            root = json.loads(archive.read(HEAD))
            attributes = root["attributes"]
            seeds = seeds_of_piece({name: archive.read(name) for name in archive.namelist()}, root)
    except zipfile.BadZipFile:
        return "is cut short or damaged: the end of the zip file is missing"
    except (KeyError, ValueError, OSError, RuntimeError, zlib.error) as error:
        return f"is damaged: {error}"
    version = attributes.get("schema_version")
    if version != SCHEMA_VERSION:
        return f"has schema version {version}, this bqlib reads version {SCHEMA_VERSION}"
    labels = [attributes.get(name) for name in SWEEP_DIMS]
    labels = [f"{label:.12g}" if isinstance(label, float) else str(label) for label in labels]
    if cell_of(piece_at(path)) != tuple(labels):
        return f"holds a piece of the cell {'/'.join(labels)}"
    block = block_name(seeds[0], seeds[-1])
    if not path.endswith(f"/{block}{PIECE}"):
        return f"holds the block {block} of its cell"
    return None


def _stores(paths):
    """The stores that hold the paths."""
    return sorted({store for store in map(store_at, paths) if store})


def _faults_of_store(at, store):
    """The faults of a store, by its own metadata and checksums; reads a chunk at a time."""
    try:
        arrays = read_head(at.file(store))["consolidated_metadata"]["metadata"]
    except FileNotFoundError:
        yield Fault(path_of_head(store), "is missing")
        return
    except (ValueError, KeyError, TypeError):
        yield Fault(path_of_head(store), "is damaged")
        return
    for name, metadata in arrays.items():
        path = f"{store}/{name}"
        try:
            own = read_head(at.file(path))
            array = zarr.open_array(at.file(path), mode="r", zarr_format=3)
        except FileNotFoundError:
            yield Fault(path_of_head(path), "is missing")
            continue
        except Exception as error:  # of any kind, because any byte can be wrong
            yield Fault(path_of_head(path), f"is damaged: {error}")
            continue
        if own != {key: value for key, value in metadata.items() if key in own}:
            yield Fault(path_of_head(path), f"disagrees with {path_of_head(store)} about {name}")
            continue
        counts = [
            range(-(-length // chunk))
            for length, chunk in zip(array.shape, array.chunks, strict=True)
        ]
        for corner in itertools.product(*counts):
            key = f"{path}/{array.metadata.encode_chunk_key(corner)}"
            if not at.file(key).exists():
                yield Fault(key, "is missing")
                continue
            block = tuple(
                slice(i * chunk, (i + 1) * chunk)
                for i, chunk in zip(corner, array.chunks, strict=True)
            )
            try:
                array[block]
            except Exception as error:
                yield Fault(key, f"is damaged: {error}")


def _foreign_schema(at):
    """A fault if another schema version wrote the curves."""
    try:
        version = read_head(at.curves)["attributes"].get("schema_version")
    except (OSError, ValueError, KeyError):
        return []
    if version == SCHEMA_VERSION:
        return []
    what = f"has schema version {version}, this bqlib reads version {SCHEMA_VERSION}"
    return [Fault(CURVES, what, foreign=True)]
