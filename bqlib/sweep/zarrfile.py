"""Points in a Zarr store: an array, or the variables of a dataset of xarray.

The files of a store are read into memory first. So what is checked is what is read, and its codecs
are checked before one of them unpacks anything.
"""

import errno
import math
import os
import stat
import warnings

import numpy as np

from bqlib.sweep.datapoints import (
    MOST_BYTES,
    NO_NAMES,
    DataFileError,
    chosen,
    in_words,
    listed,
    points_of,
    quoted,
    read_bytes,
    refuse_array,
    refuse_not_finite,
    refuse_size,
)
from bqlib.sweep.zarrchunks import refuse_chunks, refuse_layout

MOST_FILES = 100_000
HEADS = ("zarr.json", ".zgroup", ".zarray")  # the files that make a folder a store
_CHAINS = ("chain", "draw")


def read_zarr(path, columns):
    """The points that the store at a path has, or a group in it."""
    import zarr  # 0.5 s
    from zarr.core.buffer import cpu

    folder, inside = _store_of(path)
    files = _files(folder)
    buffers = {name: cpu.Buffer.from_bytes(data) for name, data in files.items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of formats that may change
        store = zarr.storage.MemoryStore(buffers, read_only=True)
        try:
            node = zarr.open(store, path=inside, mode="r", use_consolidated=False)
            if isinstance(node, zarr.Array):
                if columns is not None:
                    raise DataFileError(NO_NAMES, "columns")
                refuse_layout(node)
                refuse_array(node.dtype, node.shape)
                refuse_chunks(node, files)
                return points_of(node[...])
            return _points_of_group(store, files, inside, node, columns)
        except (DataFileError, MemoryError):
            raise
        except FileNotFoundError:
            raise DataFileError(f"holds no array or group{inside and ' ' + inside}") from None
        except Exception as error:  # damage of any kind
            told = " ".join(str(error).split())
            raise DataFileError(f"cannot be read: {type(error).__name__}: {told}") from None


def _store_of(path):
    """The folder of a store, and the path of a group in it."""
    parts = path.split("/")
    ends = [k + 1 for k, part in enumerate(parts) if part.endswith(".zarr")]
    folders = ["/".join(parts[:end]) for end in ends]
    # A folder above the store may be called so too.
    stores = [one for one in folders if any(os.path.lexists(f"{one}/{head}") for head in HEADS)]
    folder = (stores or folders[-1:])[0]
    return folder, path[len(folder) :].strip("/")


def _files(folder):
    """Path to bytes of all files in a folder, within the limits; links and the like are refused."""
    if not os.path.exists(folder):
        raise FileNotFoundError(errno.ENOENT, "no such file", folder)
    if not os.path.isdir(folder):
        raise DataFileError("is no folder, as Zarr stores are")
    found, left = {}, MOST_BYTES
    for place, folders, names in os.walk(folder):
        for name in (*folders, *names):
            other = os.path.join(place, name)
            mode = os.lstat(other).st_mode
            below = os.path.relpath(other, folder)
            if name in names and stat.S_ISREG(mode):
                try:
                    found[below] = read_bytes(other, left, os.O_NOFOLLOW)
                except DataFileError as error:
                    raise DataFileError(f"cannot be read: {below} {error}") from None
                left -= len(found[below])
            elif not stat.S_ISDIR(mode):
                raise DataFileError(f"holds {below}, which is neither a file nor a folder")
            if len(found) > MOST_FILES:
                raise DataFileError(f"holds more than {MOST_FILES} files: use larger chunks")
    return found


def _points_of_group(store, files, inside, group, columns):
    """Points from the variables of a dataset of xarray, each a coordinate."""
    import xarray as xr  # 1 s

    arrays = dict(group.arrays())
    for array in arrays.values():
        refuse_layout(array)
    # Labels of a dimension, such as chain, are read as a dataset is opened.
    labels = {name for name, array in arrays.items() if _dims_of(array) == [name]}
    for name in labels & set(columns or ()):
        _refuse_kind(name, arrays[name].dtype)
        refuse_chunks(arrays[name], files)
    left = sorted(labels - set(columns or ()))
    options = {"engine": "zarr", "chunks": None, "consolidated": False, "drop_variables": left}
    with xr.open_dataset(
        store, group=inside or None, decode_times=False, cache=False, **options
    ) as dataset:
        names = sorted(str(name) for name in dataset.data_vars)  # stores have no order
        if columns is not None:  # a coordinate, such as the log density, may be asked for
            names += sorted({str(name) for name in dataset.coords} | labels)
        groups = sorted(name for name, _ in group.groups())
        if not names and groups:
            raise DataFileError(
                f"holds groups alone: add the name of one to the path ({listed(groups)})"
            )
        taken = chosen(names, columns, "variable")
        dims = dataset[taken[0]].dims
        for name in taken:
            variable = dataset[name]
            _refuse_kind(name, variable.dtype)
            if set(variable.dims) != set(dims) or not (
                len(dims) == 1 or sorted(dims) == sorted(_CHAINS)
            ):
                raise DataFileError(
                    f"variable {quoted(name)} has the dimensions {in_words(variable.dims)}; all "
                    f"must have the same one, or {' and '.join(_CHAINS)}: name others with "
                    "columns, or save one array"
                )
        order = dims if len(dims) == 1 else _CHAINS
        shape = (math.prod(dataset.sizes[dim] for dim in order), len(taken))
        refuse_size(shape, "rows")
        for name in taken:
            refuse_chunks(arrays[name], files)
        points = np.empty(shape)
        for k, name in enumerate(taken):
            points[:, k] = dataset[name].transpose(*order).values.ravel()
            refuse_not_finite(points[:, k], name)
    return points


def _dims_of(array):
    """The names that xarray gives to the dimensions of an array."""
    if array.metadata.zarr_format == 2:
        return array.attrs.get("_ARRAY_DIMENSIONS")
    return list(array.metadata.dimension_names or ())


def _refuse_kind(name, dtype):
    if dtype.kind not in "fiu":
        raise DataFileError(
            f"variable {quoted(name)} is of type {dtype}, and not of numbers: name the variables "
            "of numbers with columns"
        )
