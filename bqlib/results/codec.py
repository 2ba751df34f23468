"""Zarr stores of the schema's form: what is in an empty one, and how arrays are packed."""

import warnings
from contextlib import contextmanager

import numpy as np
import zarr
from numcodecs import Blosc, VLenUTF8
from numcodecs.checksum32 import CRC32C
from zarr.codecs import BloscCodec, BloscShuffle, Crc32cCodec

from bqlib.schema import MISSING, QUANTILES, tables

FILL = {np.float64: np.nan, np.int8: MISSING, object: "", np.object_: ""}


def encode(values, metadata):
    """Pack an array into one chunk, as Zarr would by the :func:`codecs` in the array's metadata.

    Zarr itself hands every chunk to a thread and takes ten times as long.
    """
    settings = next(c["configuration"] for c in metadata["codecs"] if c["name"] == "blosc")
    if metadata["data_type"] == "string":
        plain = VLenUTF8().encode(values)
    else:
        plain = np.ascontiguousarray(values, np.dtype(metadata["data_type"]).newbyteorder("<"))
    packed = Blosc(**settings | {"shuffle": Blosc.BITSHUFFLE}).encode(plain)
    return CRC32C(location="end").encode(packed).tobytes()


def decode(members, name, metadata):
    """Unpack the one chunk of an array of a piece, which :func:`encode` packed."""
    shape, is_text = metadata["shape"], metadata["data_type"] == "string"
    packed_by = [codec["name"] for codec in metadata["codecs"]]
    if packed_by != ["vlen-utf8" if is_text else "bytes", "blosc", "crc32c"]:
        raise ValueError(f"{name} is packed by {', '.join(packed_by)}, which bqlib does not use")
    chunk = members.get(f"{name}/c.{'.'.join('0' * len(shape))}")
    if chunk is None:  # Zarr writes no chunk that has fill values alone
        # A view of one value: the shape is what the file says.
        return np.broadcast_to("" if is_text else float(metadata["fill_value"]), shape)
    plain = Blosc().decode(chunk[:-4])  # without its checksum, as the archive has its own
    if is_text:
        return VLenUTF8().decode(plain).reshape(shape)
    return np.frombuffer(plain, np.dtype(metadata["data_type"]).newbyteorder("<")).reshape(shape)


def integrand_labels(integrands):
    """Labels of the dimensions that only sweeps with integrands have."""
    return {"integrand": list(integrands), "quantile": QUANTILES} if integrands else {}


def empty_arrays(sizes, leading=()):
    """Variable to array, every trial missing; dimensions `leading` come before the variable's."""
    _, variables = tables(errors="integrand" in sizes)
    return {
        name: np.full([sizes[d] for d in (*leading, *v.dims)], FILL[v.dtype], dtype=v.dtype)
        for name, v in variables.items()
    }


def is_empty(values):
    """Whether an array has nothing but the fill value of its type."""
    filled = np.isnan(values) if values.dtype == np.float64 else values == FILL[values.dtype.type]
    return bool(filled.all())


def create(store, labels, attributes, chunks=None):
    """Create a store with coordinates `labels`, all metadata, and an empty array per variable.

    `chunks` maps the sweep's own dimensions, if the variables have these, to chunk lengths.
    """
    chunks = chunks or {}
    sizes = {name: len(values) for name, values in labels.items()}
    coordinates, variables = tables(errors="integrand" in labels)
    root = zarr.create_group(store, attributes=attributes)
    for name, values in labels.items():
        values = np.asarray(values)
        array = root.create_array(
            name,
            shape=values.shape,
            dtype=str if values.dtype.kind == "U" else values.dtype,
            dimension_names=(name,),
            attributes=dict(zip(("long_name", "units"), coordinates[name], strict=True)),
            **codecs(),
        )
        array[...] = values
    for name, variable in variables.items():
        dims = (*chunks, *variable.dims)
        root.create_array(
            name,
            shape=[sizes[dim] for dim in dims],
            chunks=[chunks.get(dim, sizes[dim]) for dim in dims],
            dtype=str if variable.dtype is object else variable.dtype,
            fill_value=np.nan if variable.dtype is np.float64 else None,
            dimension_names=dims,
            attributes={"long_name": variable.long_name, "units": variable.units},
            config={"write_empty_chunks": True},
            **codecs(),
        )
    with quiet():
        return zarr.consolidate_metadata(store)


def codecs():
    """How chunks are named and packed. The checksum makes a flipped bit an error."""
    return {
        "compressors": [
            BloscCodec(cname="zstd", shuffle=BloscShuffle.bitshuffle),
            Crc32cCodec(),
        ],
        "chunk_key_encoding": {"name": "default", "separator": "."},
    }


@contextmanager
def quiet():
    """Silence Zarr's warning, at each write, that consolidated metadata is an extension."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Consolidated metadata is currently")
        yield
