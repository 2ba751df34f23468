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

MOST_FILES = 100_000
# Codecs of zarr and numcodecs that only unpack: the one called Pickle runs code.
CODECS = (
    "Blosc", "BloscCodec", "BytesCodec", "BZ2", "Crc32cCodec", "Delta", "GZip", "GzipCodec", "LZ4",
    "LZMA", "ShardingCodec", "Shuffle", "TransposeCodec", "VLenUTF8", "VLenUTF8Codec", "Zlib",
    "Zstd", "ZstdCodec",
)  # fmt: skip
_CHAINS = ("chain", "draw")


def read_zarr(path, columns):
    """The points that the store at a path has, or a group in it."""
    import zarr  # 0.5 s
    from zarr.core.buffer import cpu

    folder, inside = _store_of(path)
    files = {name: cpu.Buffer.from_bytes(data) for name, data in _files(folder).items()}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # of formats that may change
        store = zarr.storage.MemoryStore(files, read_only=True)
        try:
            node = zarr.open(store, path=inside, mode="r", use_consolidated=False)
            if isinstance(node, zarr.Array):
                if columns is not None:
                    raise DataFileError(NO_NAMES, "columns")
                _refuse_codecs(node)
                refuse_array(node.dtype, node.shape)
                return points_of(node[...])
            return _points_of_group(store, inside, node, columns)
        except (DataFileError, MemoryError):
            raise
        except FileNotFoundError:
            raise DataFileError(f"holds no array or group{inside and ' ' + inside}") from None
        except Exception as error:  # damage of any kind
            told = " ".join(str(error).split())
            raise DataFileError(f"cannot be read: {type(error).__name__}: {told}") from None


def _store_of(path):
    """The folder of a store, and the path of a group in it."""
    head, dot, inside = path.partition(".zarr/")
    return (head + ".zarr", inside.strip("/")) if dot else (path, "")


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


def _refuse_codecs(array):
    """Refuse an array of a store that would run code, or take too much memory, as it is read."""
    metadata = array.metadata
    if metadata.zarr_format == 2:
        todo = [*(metadata.filters or ()), metadata.compressor]
    else:
        todo = list(metadata.codecs)
    while todo:
        codec = todo.pop()
        name = type(codec).__name__
        if codec is not None and name not in CODECS:
            raise DataFileError(f"is packed by the codec {name}, which is not read from data files")
        todo += [*getattr(codec, "codecs", ()), *getattr(codec, "index_codecs", ())]
    for shape in (array.shape, array.chunks, array.shards or ()):
        if math.prod(shape) * array.dtype.itemsize > MOST_BYTES:
            raise DataFileError(
                f"holds an array of shape {in_words(array.shape)}, in chunks of "
                f"{in_words(shape)}, beyond the limit of {MOST_BYTES / 2**30:g} GiB"
            )


def _points_of_group(store, inside, group, columns):
    """Points from the variables of a dataset of xarray, each a coordinate."""
    import xarray as xr  # 1 s

    for _, array in group.arrays():
        _refuse_codecs(array)
    options = {"engine": "zarr", "chunks": None, "consolidated": False}
    with xr.open_dataset(
        store, group=inside or None, decode_times=False, cache=False, **options
    ) as dataset:
        names = sorted(str(name) for name in dataset.data_vars)  # stores have no order
        if columns is not None:  # a coordinate, such as the log density, may be asked for
            names += sorted(str(name) for name in dataset.coords)
        groups = sorted(name for name, _ in group.groups())
        if not names and groups:
            raise DataFileError(
                f"holds groups alone: add the name of one to the path ({listed(groups)})"
            )
        taken = chosen(names, columns, "variable")
        dims = dataset[taken[0]].dims
        for name in taken:
            variable = dataset[name]
            if variable.dtype.kind not in "fiu":
                raise DataFileError(
                    f"variable {quoted(name)} is of type {variable.dtype}, and not of numbers: "
                    "name the variables of numbers with columns"
                )
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
        points = np.empty(shape)
        for k, name in enumerate(taken):
            points[:, k] = dataset[name].transpose(*order).values.ravel()
            refuse_not_finite(points[:, k], name)
    return points
