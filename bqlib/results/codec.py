"""How arrays are packed in Zarr stores."""

import warnings
from contextlib import contextmanager

import numpy as np
import zarr
from numcodecs import Blosc, VLenUTF8
from zarr.codecs import BloscCodec, BloscShuffle, Crc32cCodec

from bqlib.schema import MISSING, QUANTILES, tables


def decode(members, name, metadata):
    """The one chunk of an array of a piece, as :func:`codecs` packs it.

    Zarr itself hands every chunk to a thread and takes ten times as long.
    """
    shape, is_text = metadata["shape"], metadata["data_type"] == "string"
    codecs = [codec["name"] for codec in metadata["codecs"]]
    if codecs != ["vlen-utf8" if is_text else "bytes", "blosc", "crc32c"]:
        raise ValueError(f"{name} is packed by {', '.join(codecs)}")
    chunk = members.get(f"{name}/c.{'.'.join('0' * len(shape))}")
    if chunk is None:  # Zarr leaves out what is all fill values
        return np.full(shape, "" if is_text else float(metadata["fill_value"]))
    plain = Blosc().decode(chunk[:-4])  # without its checksum, as the archive has its own
    if is_text:
        return VLenUTF8().decode(plain).reshape(shape)
    return np.frombuffer(plain, np.dtype(metadata["data_type"]).newbyteorder("<")).reshape(shape)


def integrand_labels(integrands):
    return {"integrand": list(integrands), "quantile": QUANTILES} if integrands else {}


def empty_arrays(sizes, leading=()):
    fill = {np.float64: np.nan, np.int8: MISSING, object: ""}
    _, variables = tables(errors="integrand" in sizes)
    return {
        name: np.full([sizes[d] for d in (*leading, *v.dims)], fill[v.dtype], dtype=v.dtype)
        for name, v in variables.items()
    }


def create(store, labels, attributes, chunks=None):
    """An empty store with coordinates `labels`, one array a variable, and all its metadata.

    The sweep's own dimensions lead the variables' where `chunks` gives their chunk lengths.
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
    """How chunks are named and packed: the checksum makes a flipped bit an error."""
    return {
        "compressors": [
            BloscCodec(cname="zstd", shuffle=BloscShuffle.bitshuffle),
            Crc32cCodec(),
        ],
        "chunk_key_encoding": {"name": "default", "separator": "."},
    }


@contextmanager
def quiet():
    """Consolidated metadata is an extension of Zarr v3, as the library warns at each writing."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Consolidated metadata is currently")
        yield
