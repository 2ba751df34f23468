"""Integrity: whether a folder of results is as its run wrote it.

The last job of a run records the sha256 of every file that the others made, in a manifest that
``sha256sum -c`` reads too. The job of a piece records that of its piece at once, in its timings.
"""

import hashlib
import itertools
import json
import re
import zipfile
import zlib
from dataclasses import dataclass, replace
from pathlib import Path

from bqlib.files import write_atomically
from bqlib.schema import SCHEMA_VERSION, SWEEP_DIMS, versions
from bqlib.timings import (
    PIECE,
    digest_of,
    failed_trials,
    made_by,
    piece_of,
    timed_pieces,
    timing_of,
)

MANIFEST = "manifest-sha256.txt"
PROVENANCE = "provenance.json"
# What a run makes and the manifest covers; logs, benchmarks and timings tell of one run alone.
PARTS = (
    "pieces",
    "curves.zarr",
    "rates.zarr",
    "function_errors.zarr",
    "studies",
    "figures",
    "claims.json",
    "report.html",
    PROVENANCE,
)
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")


@dataclass(frozen=True)
class Fault:
    """A file that is not as it was written.

    Attributes
    ----------
    path : str
        Below the results.
    what : str
        What is wrong with it.
    foreign : bool
        Whether that is no damage: another bqlib wrote it, and can read it.
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
        Whether the results have a manifest: without it, files other than pieces are only checked
        by the sums that they carry themselves.
    faults : tuple of Fault
    unused : tuple of str
        Pieces that are not in the curves, as their sweep does not ask for them any more: other
        cells or, since seeds came to a block that was not full, other blocks.
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
    """Write the provenance of finished results, and the manifest of all that their run made.

    Parameters
    ----------
    results : path-like
        The experiment's folder, with its curves.

    Notes
    -----
    Both are the same bytes for the same results. A piece is recorded by what its job wrote, not by
    what is there now.
    """
    results = Path(results)
    attributes = _attributes(results / "curves.zarr")
    # Pieces of earlier runs stay, whatever made them.
    made = {json.dumps(made_by(results, piece)) for piece in timings_used(results)}
    provenance = {
        "title": attributes["title"],
        "versions": versions(attributes),
        "versions_of_pieces": [json.loads(text) for text in sorted(made)],
        "config_sha256": attributes["config_sha256"],
        "config": json.loads(attributes["config"]),
    }
    text = json.dumps(provenance, indent=1, ensure_ascii=False, allow_nan=False)
    write_atomically(results / PROVENANCE, text.encode() + b"\n")
    recorded, _ = _recorded_pieces(results)
    sums = {path: recorded.get(path) or sha256(results / path) for path in _made(results)}
    lines = [f"{sums[path]}  {path}\n" for path in sorted(sums)]
    write_atomically(results / MANIFEST, "".join(lines).encode())


def check(results):
    """Compare the files of an experiment with what its run recorded of them.

    Parameters
    ----------
    results : path-like
        The experiment's folder, or any one store.

    Returns
    -------
    Checked

    Raises
    ------
    FileNotFoundError
        If there are no results.

    Notes
    -----
    Reads every file once, in blocks, at about the speed of sha256. Stores without a record are read
    chunk by chunk.
    """
    results, below = Path(results), ""
    if not any((results / part).exists() for part in (*PARTS, MANIFEST)):
        if not (results / "zarr.json").exists():
            raise FileNotFoundError(f"no results at {results}: name a folder results/<experiment>")
        if not (results.parent / MANIFEST).exists():
            return _check_store(results)
        results, below = results.parent, f"{results.name}/"
    checked = _check_folder(results, below)
    faults = [fault for fault in checked.faults if fault.path.startswith((below, MANIFEST))]
    return replace(checked, faults=tuple(faults))


def _check_folder(results, below):
    """What :func:`check` finds; of the files, only those whose paths start with `below`."""
    pieces, faults = ({}, []) if below else _recorded_pieces(results)
    manifest, manifest_faults = _read_manifest(results)
    faults += manifest_faults
    there = {path for path in _made(results) if path.startswith(below)}
    beyond = [path for path in there if manifest and path > max(manifest)]
    if len(beyond) > 1 and not there - manifest.keys() - set(beyond):
        manifest, faults = {}, [*faults, Fault(MANIFEST, "is cut short")]
    manifest = {path: digest for path, digest in manifest.items() if path.startswith(below)}
    recorded = bool(manifest)
    sums = pieces | manifest
    owners = {digest: path for path, digest in sums.items()}
    missing = (manifest or pieces).keys() - there
    whole = {store for store in _stores(missing) if not (results / store).exists()}
    missing = whole | {path for path in missing if not whole.intersection(_stores([path]))}
    faults += [Fault(path, "is missing") for path in missing]
    size = 0
    for path in sorted(there):
        size += (results / path).stat().st_size
        if path in sums:
            found = sha256(results / path)
            if found == sums[path] == pieces.get(path, found):
                continue
            if found == sums[path]:
                faults.append(
                    Fault(_timing_of(path), f"is damaged: it has not the sha256 of {path}")
                )
            elif found == pieces.get(path):
                faults.append(Fault(MANIFEST, f"is damaged: it has not the sha256 of {path}"))
            else:
                faults.append(Fault(path, _damage(results, path, owners.get(found))))
        elif recorded and ".zarr/" in path:
            faults.append(Fault(path, "was not written by the run"))
        elif _is_piece(path):
            wrong = _fault_of_piece(results, path)
            faults += [Fault(path, wrong)] if wrong else []
    if not recorded:
        faults += [fault for store in _stores(there) for fault in _faults_of_store(results, store)]
    faults += _foreign_schema(results)
    faults = sorted(set(faults), key=lambda fault: fault.path)
    used, made = pieces_used(results), {path for path in there if _is_piece(path)}
    unused = sorted(path for path in made if used is not None and _piece(path) not in used)
    return Checked(len(there), size, recorded, tuple(faults), tuple(unused))


def pieces_used(results):
    """Names of the pieces that the curves ask for; None where there are no curves to tell it.

    Others may be there as well: of other cells or, since seeds came to a block that was not full,
    of other blocks.
    """
    from bqlib.experiment import Algorithm, Experiment, piece_name  # loads numerics

    try:
        config = json.loads(_attributes(Path(results, "curves.zarr"))["config"])
        algorithms = [Algorithm(**algorithm) for algorithm in config["algorithms"]]
        sweep = Experiment(**config | {"algorithms": algorithms})
    except (OSError, ValueError, KeyError, TypeError):  # damage, which is told as such
        return None
    return {piece_name(cell, block) for cell in sweep.cells() for block in sweep.blocks()}


def timings_used(results):
    """Names of the pieces in use that have a file of timings, in their order."""
    used = pieces_used(results)
    return [piece for piece in timed_pieces(results) if used is None or piece in used]


def all_failed(results):
    """(piece, seed, reason) of each failed trial of the pieces in use that are there."""
    there = (piece for piece in timings_used(results) if Path(results, "pieces", piece).exists())
    return failed_trials(results, there)


def _made(results):
    """Paths below the results of the files of `PARTS`, without hidden ones."""
    for part in PARTS:
        place = results / part
        for path in place.rglob("*") if place.is_dir() else [place]:
            relative = path.relative_to(results)
            if path.is_file() and not any(name.startswith(".") for name in relative.parts):
                yield relative.as_posix()


def _check_store(store):
    paths = [path for path in store.rglob("*") if path.is_file()]
    faults = _faults_of_store(store.parent, store.name)
    return Checked(len(paths), sum(path.stat().st_size for path in paths), False, tuple(faults))


def _is_piece(path):
    return path.startswith("pieces/") and path.endswith(PIECE)


def _piece(path):
    return path.removeprefix("pieces/")


def _timing_of(path):
    return "timings/" + timing_of(_piece(path))


def _recorded_pieces(results):
    """sha256 of each piece by what its job wrote, and files of timings that cannot be read."""
    sums, faults = {}, []
    for piece in timed_pieces(results):
        path = _timing_of(f"pieces/{piece}")
        try:
            record = json.loads((results / path).read_bytes())
            recorded = record.get("sha256")
            [float(seconds) for seconds in record["seconds"].values() if seconds is not None]
        except (ValueError, AttributeError, KeyError, TypeError):
            faults.append(Fault(path, "is damaged"))
            continue
        if recorded:
            sums[f"pieces/{piece}"] = recorded
    return sums, faults


def _read_manifest(results):
    """sha256 by path; and the manifest itself where a line of it is damaged."""
    try:
        lines = (results / MANIFEST).read_bytes().decode(errors="replace").split("\n")
    except FileNotFoundError:
        if not (results / PROVENANCE).exists():  # which is written with it
            return {}, []
        return {}, [Fault(MANIFEST, "is missing: run the sweep again to have it made anew")]
    sums = {}
    for line in lines[:-1]:
        found = _LINE.fullmatch(line)
        if found is None:
            return {}, [Fault(MANIFEST, "is damaged")]
        sums[found[2]] = found[1]
    if lines[-1] or not sums:
        return {}, [Fault(MANIFEST, "is cut short")]
    return sums, []


def _damage(results, path, owner):
    """What has become of a file that is not as it was written."""
    if (results / path).stat().st_size == 0:
        return "is empty"
    if owner is not None:
        return f"holds what belongs to {owner}"
    found = _fault_of_piece(results, path) if _is_piece(path) else None
    return found or "is damaged: its sha256 is not the recorded one"


def _fault_of_piece(results, path):
    """What is wrong with a piece, by what it says itself; None where that is nothing."""
    from bqlib.store import seeds_of_piece  # loads numerics

    try:
        with zipfile.ZipFile(results / path) as archive:
            damaged = archive.testzip()
            if damaged is not None:
                return f"is damaged at {damaged}"
            head = json.loads(archive.read("zarr.json"))
            attributes = head["attributes"]
            seeds = seeds_of_piece({name: archive.read(name) for name in archive.namelist()}, head)
    except zipfile.BadZipFile:
        return "is cut short or damaged: the end of the zip file is missing"
    except (KeyError, ValueError, OSError, RuntimeError, zlib.error) as error:
        return f"is damaged: {error}"
    version = attributes.get("schema_version")
    if version != SCHEMA_VERSION:
        return f"has schema version {version}, this bqlib reads version {SCHEMA_VERSION}"
    labels = [attributes.get(name) for name in SWEEP_DIMS]
    cell = "/".join(f"{label:.12g}" if isinstance(label, float) else str(label) for label in labels)
    if path.split("/")[1:-1] != cell.split("/"):
        return f"holds a piece of {cell}"
    block = f"seeds-{seeds[0]}-{seeds[-1]}"
    if not path.endswith(f"/{block}{PIECE}"):
        return f"holds {block} of its cell"
    return None


def _stores(paths):
    """The stores among the paths, by their folders."""
    ends = (path[: path.index(".zarr/") + 5] for path in paths if ".zarr/" in path)
    return sorted(set(ends))


def _faults_of_store(results, store):
    """What is wrong with a store, by its own metadata and checksums; one chunk at a time."""
    import zarr

    try:
        head = json.loads((results / store / "zarr.json").read_bytes())
        arrays = head["consolidated_metadata"]["metadata"]
    except FileNotFoundError:
        yield Fault(f"{store}/zarr.json", "is missing")
        return
    except (ValueError, KeyError, TypeError):
        yield Fault(f"{store}/zarr.json", "is damaged")
        return
    for name, metadata in arrays.items():
        place = f"{store}/{name}"
        try:
            own = json.loads((results / place / "zarr.json").read_bytes())
            array = zarr.open_array(results / place, mode="r", zarr_format=3)
        except FileNotFoundError:
            yield Fault(f"{place}/zarr.json", "is missing")
            continue
        except Exception as error:  # of many kinds, as any byte may be another
            yield Fault(f"{place}/zarr.json", f"is damaged: {error}")
            continue
        if own != {key: value for key, value in metadata.items() if key in own}:
            yield Fault(f"{place}/zarr.json", f"is not what {store}/zarr.json says of {name}")
            continue
        counts = [
            range(-(-length // chunk))
            for length, chunk in zip(array.shape, array.chunks, strict=True)
        ]
        for corner in itertools.product(*counts):
            key = f"{place}/{array.metadata.encode_chunk_key(corner)}"
            if not (results / key).exists():
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


def _attributes(store):
    return json.loads((store / "zarr.json").read_text(encoding="utf-8"))["attributes"]


def _foreign_schema(results):
    """The curves, where another schema version wrote them."""
    try:
        version = _attributes(results / "curves.zarr").get("schema_version")
    except (OSError, ValueError, KeyError):
        return []
    if version == SCHEMA_VERSION:
        return []
    what = f"has schema version {version}, this bqlib reads version {SCHEMA_VERSION}"
    return [Fault("curves.zarr", what, foreign=True)]


def outdated(results, experiment):
    """Finished files that another sweep or other code made, by what is recorded of them.

    Parameters
    ----------
    results : path-like
    experiment : bqlib.experiment.Experiment

    Returns
    -------
    list of str
        Paths below the results. Files that the sweep does not ask for are not among them.
    """
    from bqlib.experiment import piece_name  # loads numerics

    results, paths = Path(results), []
    for cell in experiment.cells():
        digest = experiment.spec(cell).digest
        for block in experiment.blocks():
            piece = piece_name(cell, block)
            made = (results / "pieces" / piece).exists()
            if made and digest_of(results, piece) not in (digest, None):
                paths.append(f"pieces/{piece}")
    for name in experiment.studies:
        attributes = _record(results / f"studies/{name}.zarr/zarr.json").get("attributes", {})
        if attributes and attributes.get("digest") != experiment.study(name).digest:
            paths.append(f"studies/{name}.zarr/zarr.json")
    attributes = _record(results / "curves.zarr/zarr.json").get("attributes", {})
    if attributes and json.loads(attributes.get("config", "{}")) != experiment.canonical():
        paths.append("curves.zarr/zarr.json")
    return paths


def _record(path):
    try:
        return json.loads(path.read_text(encoding="utf-8"))
    except (OSError, ValueError):
        return {}


def delete(results, paths):
    """Delete files of results so that the next run makes them anew.

    Of a store, the head goes; with a piece its timings and the head of the curves, and with
    anything the manifest and the provenance, or Snakemake would not miss them.

    Parameters
    ----------
    results : path-like
    paths : iterable of str
        Below the results.

    Returns
    -------
    int
        How many files were there to delete.
    """
    results, gone = Path(results), set()
    for path in paths:
        if path.startswith("timings/"):
            path = "pieces/" + piece_of(path.removeprefix("timings/"))
        if _is_piece(path):
            gone |= {path, _timing_of(path), "curves.zarr/zarr.json"}
        elif ".zarr/" in path:
            gone.add(path[: path.index(".zarr/")] + ".zarr/zarr.json")
        else:
            gone.add(path)
        gone |= {MANIFEST, PROVENANCE}
    there = [path for path in gone if (results / path).exists()]
    for path in there:
        (results / path).unlink()
    return len(there)
