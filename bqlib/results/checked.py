"""A Zarr store that gives nothing which is missing or damaged, and says what is."""

import asyncio
import math
from dataclasses import dataclass

import google_crc32c
import numpy as np
from numcodecs import Blosc
from zarr.core.buffer import default_buffer_prototype
from zarr.storage import LocalStore

from bqlib.results.damage import (
    CHUNK,
    FOREIGN_FILE,
    OTHER_SUM,
    Fault,
    damaged,
    faults_of_metadata,
    read_head,
    recorded,
    sha256_of,
)
from bqlib.results.files import read_regular
from bqlib.results.layout import HEAD, Layout, path_of_head, results_of

MOST_BYTES = 2**30  # of a file


@dataclass(frozen=True)
class Record:
    """What the files of a store must be.

    Attributes
    ----------
    results, store : str
        The folder of results, and the path of the store below it.
    sums : dict of str to str
        Path below the results to sha256, from the manifest; empty where there is none.
    arrays : dict
        Name to metadata, from the head of the store.
    """

    results: str
    store: str
    sums: dict
    arrays: dict

    def wrong(self, key, data):
        """What is wrong with the bytes of a file (None if there is no file); None if nothing is.

        Without a manifest, a chunk is known by its checksum and its size alone, so that one in the
        place of another of the same form is not found.
        """
        name, _, chunk = key.rpartition("/")
        array = self.arrays.get(name) if CHUNK.fullmatch(chunk) else None
        if data is None:
            ours = array and array["chunk_key_encoding"]["configuration"]["separator"] == "."
            return "is missing" if ours else None
        if not len(data):
            return "is empty"
        if not self.sums:
            return fault_of_chunk(data, array) if array else None
        known = self.sums.get(f"{self.store}/{key}")
        if known is None:
            return FOREIGN_FILE
        return None if sha256_of(data) == known else OTHER_SUM

    def most(self, key):
        """Most bytes that a file may have."""
        name, _, chunk = key.rpartition("/")
        array = self.arrays.get(name) if CHUNK.fullmatch(chunk) else None
        try:
            value = np.dtype(array["data_type"]) if array else None
        except TypeError:  # of texts
            value = None
        if value is None:
            return MOST_BYTES
        count = math.prod(array["chunk_grid"]["configuration"]["chunk_shape"])
        return min(2 * count * value.itemsize + 2**16, MOST_BYTES)  # packing may add a little

    def check(self, key, data):
        """Raise a DamagedError if a file is not as it must be."""
        wrong = self.wrong(key, data)
        if wrong:
            raise damaged(self.results, [Fault(f"{self.store}/{key}", wrong)])


def fault_of_chunk(data, array):
    """What is wrong with a chunk by its checksum and its array's metadata; None if nothing is."""
    packed_by = [codec["name"] for codec in array["codecs"]]
    if packed_by[-2:] != ["blosc", "crc32c"]:
        return None  # no code of ours wrote it
    data = bytes(data)
    if google_crc32c.value(data[:-4]) != int.from_bytes(data[-4:], "little"):
        return "is damaged: its checksum is wrong"
    try:
        plain = Blosc().decode(data[:-4])
        if array["data_type"] == "string":
            size = int.from_bytes(plain[:4], "little")  # texts start with their number
        else:
            size = len(plain) / np.dtype(array["data_type"]).itemsize
    except (ValueError, RuntimeError, TypeError) as error:
        return f"is damaged: {error}"
    expected = np.prod(array["chunk_grid"]["configuration"]["chunk_shape"], dtype=int)
    return None if size == expected else f"is damaged: it has {size:g} values, not {expected}"


def record_of(store):
    """What the files of a store must be.

    Parameters
    ----------
    store : path-like

    Returns
    -------
    Record

    Raises
    ------
    FileNotFoundError
        If there is no store.
    DamagedError
        If its metadata, its list of files, or the manifest beside it is damaged.
    """
    results = results_of(store)
    path = Layout(store).folder.relative_to(results).as_posix()
    sums = {file: sum_ for file, sum_ in recorded(results).items() if file.startswith(f"{path}/")}
    if not Layout(store).folder.is_dir():
        raise FileNotFoundError(f"{store}: no such store")
    try:
        arrays = read_head(store)["consolidated_metadata"]["metadata"]
    except FileNotFoundError:
        raise damaged(results, [Fault(path_of_head(path), "is missing")]) from None
    record = Record(str(results), path, sums, arrays)
    record.check(HEAD, Layout(store).file(HEAD).read_bytes())
    faults = faults_of_metadata(results, path, arrays)
    if faults:
        raise damaged(results, faults)
    return record


class CheckedStore(LocalStore):
    """A store on this disk, to be read; each file is checked when it is.

    Parameters
    ----------
    root : path-like
    record : Record
    read_only : bool
    """

    def __init__(self, root, record, *, read_only=True):
        super().__init__(root, read_only=read_only)
        self.record = record

    def with_read_only(self, read_only=False):
        return type(self)(self.root, self.record, read_only=read_only)

    async def get(self, key, prototype=None, byte_range=None):
        return await asyncio.to_thread(self._checked, key, prototype, byte_range)

    def get_sync(self, key, *, prototype=None, byte_range=None):
        return self._checked(key, prototype, byte_range)

    def _checked(self, key, prototype, byte_range):
        if byte_range is not None:  # parts of chunks have no checksum
            raise damaged(
                self.record.results,
                [Fault(f"{self.record.store}/{key}", "is read in parts, which bqlib never writes")],
            )
        try:
            data = read_regular(self.root / key, self.record.most(key))
        except (FileNotFoundError, NotADirectoryError, IsADirectoryError):
            data = None
        except OSError as error:
            wrong = error.strerror
            raise damaged(
                self.record.results, [Fault(f"{self.record.store}/{key}", wrong)]
            ) from None
        self.record.check(key, data)
        if data is None:
            return None
        return (prototype or default_buffer_prototype()).buffer.from_bytes(data)
