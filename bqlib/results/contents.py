"""What is wrong with a file of results by its own content, where no manifest covers it."""

import json
import zipfile
from xml.parsers import expat

from PIL import Image

from bqlib.results.checked import Record
from bqlib.results.damage import (
    FOREIGN_FILE,
    OTHER_SUM,
    DamagedError,
    Fault,
    faults_of_metadata,
    is_chunk,
    json_object,
    read_head,
    sha256,
)
from bqlib.results.files import read_regular
from bqlib.results.layout import (
    CLAIMS,
    FIGURES,
    HEAD,
    PROVENANCE,
    REPORT,
    TIMINGS,
    Layout,
    block_name,
    cell_of,
    path_of_head,
    path_of_piece,
    path_of_timing,
    piece_at,
    seeds_of,
)
from bqlib.results.pieces import refuse_compressed, seeds_of_piece
from bqlib.results.timings import checked_timing
from bqlib.schema import SCHEMA_VERSION, SWEEP_DIMS


def fault_of_content(results, path):
    """What is wrong with a file outside of stores, as far as it can be told; None if nothing is.

    Parameters
    ----------
    results : path-like
    path : str
        Below the results.
    """
    file = Layout(results).file(path)
    if not file.stat().st_size:
        return "is empty"
    if piece_at(path):
        is_timing = path.startswith(f"{TIMINGS}/")
        return (fault_of_timing if is_timing else fault_of_piece)(results, path)
    try:
        if path in (CLAIMS, PROVENANCE):
            json_object(file.read_bytes())
        elif path == REPORT and not file.read_bytes().rstrip().endswith(b"</html>"):
            return "is damaged: it does not end as a page"
        elif path.startswith(f"{FIGURES}/") and path.endswith(".svg"):
            expat.ParserCreate().Parse(file.read_bytes(), True)
        elif path.startswith(f"{FIGURES}/") and path.endswith(".png"):
            with Image.open(file, formats=["PNG"]) as image:
                image.verify()
    except Exception as error:  # of any kind, because any byte can be wrong
        return f"is damaged: {error}"
    return None


def fault_of_timing(results, path):
    """What is wrong with a file of timings by its content and its piece; None if nothing is."""
    piece = piece_at(path)
    try:
        timing = checked_timing(results, piece)
    except (ValueError, OSError) as error:
        return f"is damaged: {error}"
    try:
        with zipfile.ZipFile(Layout(results).piece(piece)) as archive:
            digest = json_object(archive.read(HEAD))["attributes"]["digest"]
    except Exception:  # of any kind, because any byte can be wrong; told of the piece itself
        return None
    if digest != timing["digest"]:
        return f"is damaged: its digest is not that of {path_of_piece(piece)}"
    return None


def faults_of_sum(results, path, known):
    """Faults of a piece whose sha256 may differ from the one in its timings."""
    if sha256(Layout(results).file(path)) == known:
        return []
    wrong = fault_of_content(results, path)
    if wrong:
        return [Fault(path, wrong)]
    timing = path_of_timing(piece_at(path))
    return [
        Fault(path, f"{OTHER_SUM} in {timing}"),
        Fault(timing, f"is damaged, if {path} is not: its sha256 is not that of the piece"),
    ]


def fault_of_piece(results, path):
    """What is wrong with a piece, by its own content and checksums; None if nothing is."""
    try:
        with zipfile.ZipFile(Layout(results).file(path)) as archive:
            refuse_compressed(archive)
            broken = archive.testzip()
            if broken is not None:
                return f"is damaged at {broken}"
            root = json.loads(archive.read(HEAD))
            attributes = dict(root["attributes"])
            seeds = seeds_of_piece({name: archive.read(name) for name in archive.namelist()}, root)
    except zipfile.BadZipFile:
        return "is cut short or damaged: the end of the zip file is missing"
    except Exception as error:  # of any kind, because any byte can be wrong
        return f"is damaged: {error}"
    version = attributes.get("schema_version")
    if version != SCHEMA_VERSION:
        return f"has schema version {version}, this bqlib reads version {SCHEMA_VERSION}"
    labels = [attributes.get(name) for name in SWEEP_DIMS]
    labels = [f"{label:.12g}" if isinstance(label, float) else str(label) for label in labels]
    if cell_of(piece_at(path)) != tuple(labels):
        return f"holds a piece of the cell {'/'.join(labels)}"
    if list(seeds_of(path)) != seeds:
        return f"holds the block {block_name(seeds[0], seeds[-1])} of its cell"
    return None


def faults_of_store(results, store, files):
    """The faults of a store, by its own metadata and checksums; reads a chunk at a time.

    Parameters
    ----------
    results : path-like
    store : str
        Path below the results.
    files : iterable of str
        Paths of what is there, below the results.
    """
    at = Layout(results)
    try:
        arrays = read_head(at.file(store))["consolidated_metadata"]["metadata"]
    except FileNotFoundError:
        return [Fault(path_of_head(store), "is missing")]
    except DamagedError as error:
        return list(error.faults)
    record = Record(str(results), store, {}, arrays)
    faults = faults_of_metadata(results, store, arrays)
    heads = {path_of_head(store), *(path_of_head(f"{store}/{name}") for name in arrays)}
    for path in files:
        key = path.removeprefix(f"{store}/")
        name, _, chunk = key.rpartition("/")
        if name in arrays and is_chunk(arrays[name], chunk):
            try:
                wrong = record.wrong(key, read_regular(at.file(path), record.most(key)))
            except OSError as error:
                wrong = error.strerror
            faults += [Fault(path, wrong)] if wrong else []
        elif path not in heads:
            faults.append(Fault(path, FOREIGN_FILE))
    return faults
