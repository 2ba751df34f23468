"""Damage: what is said of it, and what the files of results must be.

Only the standard library is imported, because the process of each of Snakemake's jobs reads this.
"""

import hashlib
import itertools
import json
import os
import re
from dataclasses import dataclass

from bqlib.results.files import NOT_REGULAR, read_regular
from bqlib.results.layout import (
    MANIFEST,
    Layout,
    has_results,
    head,
    path_of_head,
    results_of,
)

MOST_SHOWN = 20  # files in a message
MOST_TOLD = 1000  # chunks of an array that are missing
OTHER_SUM = "is damaged: its sha256 differs from the recorded one"
FOREIGN_FILE = "was not written by the run"
CHUNK = re.compile(r"c(\.\d+)*")  # name of a chunk's file
_LACKING = (
    "it lacks metadata of arrays, which bqlib always writes (open what xarray wrote by "
    "xarray.open_zarr)"
)
_LINE = re.compile(r"([0-9a-f]{64})  (.+)")
_OWN_SUM = "# sha256 of the lines below: "  # sha256sum skips it


class DamagedError(ValueError):
    """Files of results are damaged; the message names them, and the commands that help.

    Attributes
    ----------
    faults : tuple of Fault
    """

    faults: tuple = ()


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


def damaged(results, faults):
    """The error that names damaged files of a folder of results.

    Parameters
    ----------
    results : path-like
    faults : sequence of Fault

    Returns
    -------
    DamagedError
    """
    at = Layout(results)
    lines = [f"{at.file(fault.path)} {fault.what}" for fault in faults[:MOST_SHOWN]]
    more = len(faults) - len(lines)
    lines += [f"... and {more} more"] if more else []
    if not at.curves.exists() and at.pieces.is_dir():
        advice = "run the sweep again, which gathers what is there"
    elif has_results(at.folder):
        advice = (
            f"to see all damage: bqlib check {at.folder}; to recompute what is damaged: "
            f"bqlib retry --damaged {at.folder}, then run the sweep again"
        )
    else:
        advice = "copy the store again, as its folder lacks what it was made from"
    if len(lines) == 1:
        error = DamagedError(f"{lines[0]}; {advice}")
    else:
        error = DamagedError("\n".join(["these files of results are damaged:", *lines, advice]))
    error.faults = tuple(faults)
    return error


def sha256(path):
    """sha256 of a file, as hexadecimal digits; reads it in blocks."""
    with open(path, "rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def sha256_of(data):
    """sha256 of bytes, as hexadecimal digits."""
    return hashlib.sha256(data).hexdigest()


def manifest_text(sums):
    """The text of a manifest, with a first line that tells whether the others are as written.

    Parameters
    ----------
    sums : dict of str to str
        Path below the results to sha256.
    """
    lines = "".join(f"{sums[path]}  {path}\n" for path in sorted(sums))
    return f"{_OWN_SUM}{sha256_of(lines.encode())}\n{lines}"


def read_manifest(results):
    """Path to sha256 of all files that a manifest covers, and what is wrong with the manifest.

    Parameters
    ----------
    results : path-like

    Returns
    -------
    sums : dict of str to str
        Empty if there is no manifest, as in a run that has not finished, or if it is damaged.
    faults : list of Fault
    """
    at = Layout(results)
    try:
        text = read_regular(at.manifest).decode()
    except FileNotFoundError:
        if not at.provenance.exists():  # it is written together with the manifest
            return {}, []
        return {}, [Fault(MANIFEST, "is missing: run the sweep again to write it")]
    except (OSError, ValueError):
        return {}, [Fault(MANIFEST, "is damaged")]
    if text.startswith(_OWN_SUM):
        own, _, text = text.removeprefix(_OWN_SUM).partition("\n")
        if own != sha256_of(text.encode()):
            return {}, [Fault(MANIFEST, "is damaged or cut short")]
    # Manifests of bqlib before 0.1.0 lack the first line.
    lines = [_LINE.fullmatch(line) for line in text.split("\n")[:-1]]
    if not lines or None in lines or not text.endswith("\n"):
        return {}, [Fault(MANIFEST, "is damaged or cut short")]
    return {line[2]: line[1] for line in lines}, []


def recorded(results):
    """Path to sha256, as :func:`read_manifest`; raises a DamagedError if the manifest is damaged.

    A manifest that is missing is none: retrying and running delete it first.
    """
    sums, faults = read_manifest(results)
    faults = [fault for fault in faults if Layout(results).manifest.exists()]
    if faults:
        raise damaged(results, faults)
    return sums


def is_there(results, path):
    """Whether a file of results exists; a DamagedError if it does not, but the manifest covers it.

    Parameters
    ----------
    results : path-like
    path : str
        Below the results.
    """
    if Layout(results).file(path).exists():
        return True
    if path in recorded(results):
        raise damaged(results, [Fault(path, "is missing")])
    return False


def read_object(results, path):
    """The JSON object in a file of results.

    Parameters
    ----------
    results : path-like
    path : str
        Below the results.

    Raises
    ------
    FileNotFoundError
    DamagedError
        If it holds no such object, or is not the file that the manifest covers.
    """
    data = read_regular(Layout(results).file(path))
    wrong, content = None, {}
    try:
        content = json_object(data)
    except ValueError as error:
        wrong = f"is damaged: {error}" if data else "is empty"
    if recorded(results).get(path, sha256_of(data)) != sha256_of(data):
        wrong = wrong or OTHER_SUM
    if wrong:
        raise damaged(results, [Fault(path, wrong)])
    return content


def json_object(data):
    """The object in a JSON text; raises a ValueError if there is none."""
    try:
        content = json.loads(data)
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    if not isinstance(content, dict):
        raise ValueError("it holds no JSON object")
    return content


def read_attributes(store):
    """Attributes of a store, which may be of another schema version.

    Raises
    ------
    FileNotFoundError
        If there is none.
    ValueError
        If it has no attributes, as its head is damaged.
    """
    attributes = json_object(read_regular(head(store))).get("attributes")
    if not isinstance(attributes, dict):
        raise ValueError(f"{head(store)} has no attributes")
    return attributes


def attributes_of(store):
    """Attributes of a store; none if it is missing or damaged."""
    try:
        return read_attributes(store)
    except (OSError, ValueError):
        return {}


def read_head(store):
    """The head of a store: its attributes, and the metadata of its arrays.

    Raises
    ------
    FileNotFoundError
        If there is none.
    DamagedError
        If it is not one.
    """
    try:
        content = json_object(read_regular(head(store)))
        attributes = content["attributes"]
        arrays = content["consolidated_metadata"]["metadata"]
        if not isinstance(attributes, dict):
            raise ValueError("its attributes are no JSON object")
        for array in arrays.values():
            _grid(array)
            [codec["name"] for codec in array["codecs"]]
            array["chunk_key_encoding"]["configuration"]["separator"] + ""
    except FileNotFoundError:
        raise
    except (OSError, ValueError, KeyError, TypeError, AttributeError) as error:
        results = results_of(store)
        path = path_of_head(head(store).parent.relative_to(results).as_posix())
        empty = head(store).is_file() and not head(store).stat().st_size
        why = error if isinstance(error, OSError | ValueError) else _LACKING
        what = "is empty" if empty else f"is damaged: {why}"
        raise damaged(results, [Fault(path, what)]) from None
    return content


def _grid(array):
    """How many chunks an array has along each axis."""
    chunks = array["chunk_grid"]["configuration"]["chunk_shape"]
    if any(chunk < 1 for chunk in chunks):
        raise ValueError("an array has chunks of no size")
    return [-(-size // chunk) for size, chunk in zip(array["shape"], chunks, strict=True)]


def faults_of_metadata(results, store, arrays):
    """Heads of arrays that are missing or disagree with the store's, and chunks that are missing.

    Parameters
    ----------
    results : path-like
    store : str
        Path below the results.
    arrays : dict
        Name to metadata, from the head of the store.

    Returns
    -------
    list of Fault
    """
    at, faults = Layout(results), []
    for name, array in arrays.items():
        path = f"{store}/{name}"
        try:
            own = json_object(read_regular(head(at.file(path))))
            if own != {key: value for key, value in array.items() if key in own}:
                what = f"disagrees with {path_of_head(store)} about {name}"
                faults.append(Fault(path_of_head(path), what))
        except FileNotFoundError:
            faults.append(Fault(path_of_head(path), "is missing"))
        except (OSError, ValueError) as error:
            faults.append(Fault(path_of_head(path), f"is damaged: {error}"))
        if array["chunk_key_encoding"]["configuration"]["separator"] != ".":
            continue  # no code of ours wrote it
        there = {}
        if at.file(path).is_dir():
            with os.scandir(at.file(path)) as entries:
                there = {entry.name: entry.is_file() for entry in entries}
        faults += [
            Fault(f"{path}/{key}", NOT_REGULAR if key in there else "is missing")
            # The shape may be one of far more chunks than there are files.
            for key in itertools.islice(_lacking(array, there), MOST_TOLD)
        ]
    return faults


def _lacking(array, there):
    """Names of chunks that are not among the files of a folder."""
    return (key for key in chunk_keys(array) if not there.get(key))


def chunk_keys(array):
    """Names of the files of all chunks of an array, from its metadata."""
    separator = array["chunk_key_encoding"]["configuration"]["separator"]
    for corner in itertools.product(*map(range, _grid(array))):
        yield separator.join(["c", *map(str, corner)])


def is_chunk(array, key):
    """Whether a file of a name is a chunk of an array, from its metadata."""
    separator, grid = array["chunk_key_encoding"]["configuration"]["separator"], _grid(array)
    first, *corner = key.split(separator)
    return (
        first == "c"
        and len(corner) == len(grid)
        and all(
            re.fullmatch("0|[1-9][0-9]{0,8}", part) and int(part) < count
            for part, count in zip(corner, grid, strict=True)
        )
    )
