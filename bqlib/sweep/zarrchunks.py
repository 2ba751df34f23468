"""The chunks of a Zarr array: that all are there, and how large each is, before one is unpacked.

A chunk of a few kilobytes can unpack to gigabytes. What it unpacks to is bounded by its own shape:
by the size in its header where the codec keeps to that, or by unpacking no more than this.
"""

import bz2
import lzma
import math
import struct
import zlib

import numpy as np

from bqlib.sweep.datapoints import MOST_BYTES, DataFileError, in_words, listed

MOST_CHUNKS = 100_000
MOST_MEMORY = 2**28  # of the dictionary of LZMA, whose strongest preset takes a quarter of it
_ADDED = 64  # bytes that codecs which do not compress may add to a chunk, such as checksums
_NONE = 2**64 - 1  # offset and length, in the index of a shard, of a chunk of the fill value
_SHARDING, _CHECKSUM = "ShardingCodec", "Crc32cCodec"


def refuse_layout(array):
    """Refuse an array that would run code, or take too much memory or time, as it is read."""
    codecs = _codecs_of(array)
    shards = [codec for codec in codecs if _name(codec) == _SHARDING]
    for shard in shards:
        _refuse_codecs([codec for codec in codecs if codec is not shard])
        _refuse_codecs([*shard.codecs, *shard.index_codecs])
        index = [_name(codec) for codec in shard.index_codecs]
        if len(codecs) > 1 or index not in (["BytesCodec"], ["BytesCodec", _CHECKSUM]):
            raise DataFileError("has shards that are packed once more, which are not read")
        if getattr(shard.index_codecs[0].endian, "value", "") != "little":
            raise DataFileError("has shards whose index is not little-endian, which are not read")
        codecs = list(shard.codecs)
    _refuse_codecs(codecs)
    while codecs and _name(codecs[-1]) == _CHECKSUM:
        codecs.pop()
    if any(_name(codec) in _SIZES for codec in codecs[:-1]):
        raise DataFileError(
            f"is packed by the codecs {listed([_name(codec) for codec in codecs])}, of which only "
            "one may compress, as the last"
        )
    for shape in (array.shape, array.chunks, array.shards or ()):
        if math.prod(shape) * array.dtype.itemsize > MOST_BYTES:
            raise DataFileError(
                f"holds an array of shape {in_words(array.shape)}, in chunks of "
                f"{in_words(shape)}, beyond the limit of {MOST_BYTES / 2**30:g} GiB"
            )
    count = math.prod(_counts(array.shape, _outer(array))) * _inner_count(array)
    if count > MOST_CHUNKS:
        raise DataFileError(
            f"holds an array in {count} chunks of {in_words(array.chunks)}, and the limit is "
            f"{MOST_CHUNKS}: use larger chunks"
        )


def refuse_chunks(array, files):
    """Refuse an array, whose layout is not refused, for its chunks in the files of its store.

    Parameters
    ----------
    array : zarr.Array
    files : dict
        Path in the store to bytes.

    Raises
    ------
    DataFileError
        If a chunk is missing, or unpacks to more than its shape says.
    """
    most = math.prod(array.chunks) * array.dtype.itemsize + _ADDED
    missing, counts = [], _counts(array.shape, _outer(array))
    for place in np.ndindex(*counts):
        key = array.metadata.encode_chunk_key(place)
        path = f"{array.path}/{key}" if array.path else key
        if path not in files:
            missing.append(path)
            continue
        for codecs, data in _packed(array, files[path]):
            if _size(codecs, data, most) > most:
                raise DataFileError(
                    f"holds the chunk {path}, which unpacks to more than its shape "
                    f"{in_words(array.chunks)}: it is damaged"
                )
    if missing:
        raise DataFileError(
            f"lacks {len(missing)} of {math.prod(counts)} chunks, such as {missing[0]}: copy the "
            "whole store, or, if they were left out as they hold zeros alone, write it with "
            "write_empty_chunks=True"
        )


def _name(codec):
    return type(codec).__name__


def _codecs_of(array):
    """The codecs of an array, in the order in which they pack."""
    metadata = array.metadata
    if metadata.zarr_format == 2:
        codecs = [*(metadata.filters or ()), metadata.compressor]
        return [codec for codec in codecs if codec is not None]
    return list(metadata.codecs)


def _refuse_codecs(codecs):
    for codec in codecs:
        name = _name(codec)
        if name not in (*_PLAIN, *_SIZES):
            raise DataFileError(f"is packed by the codec {name}, which is not read from data files")


def _outer(array):
    return array.shards or array.chunks


def _counts(shape, chunk):
    return [-(-length // size) for length, size in zip(shape, chunk, strict=True)]


def _inner_count(array):
    """How many chunks a shard has, or 1 of an array without shards."""
    return math.prod(_counts(_outer(array), array.chunks))


def _packed(array, data):
    """(codecs, bytes) of each chunk in a file of an array: one, or those of a shard."""
    codecs = _codecs_of(array)
    if not codecs or _name(codecs[0]) != _SHARDING:
        return [(codecs, data)]
    shard, count = codecs[0], _inner_count(array)
    length = 16 * count + 4 * (len(shard.index_codecs) - 1)
    if len(data) < length:
        raise DataFileError("holds a shard that ends too early: it was not copied as a whole")
    start = 0 if shard.index_location.value == "start" else len(data) - length
    index = np.frombuffer(data, "<u8", 2 * count, start).reshape(-1, 2).tolist()
    return [
        (shard.codecs, data[offset : offset + size])
        for offset, size in index
        if (offset, size) != (_NONE, _NONE)
    ]


def _size(codecs, data, most):
    """How many bytes a chunk unpacks to; if more than `most`, some number above it."""
    codecs = list(codecs)
    while codecs and _name(codecs[-1]) == _CHECKSUM:
        codecs.pop()
        data = data[:-4]
    measure = _SIZES.get(_name(codecs[-1])) if codecs else None
    try:
        return measure(data, most) if measure else len(data)
    except (struct.error, IndexError):
        raise DataFileError("holds a chunk that ends too early: it is damaged") from None


def _in_header(place):
    """Of codecs whose header has the size, of which they set aside no more."""
    return lambda data, most: struct.unpack_from("<I", data, place)[0]


def _streamed(decoder):
    """Of codecs that have no size: unpacked as far as is allowed."""

    def size(data, most):
        stream = decoder()
        found = len(stream.decompress(data, most + 1))
        if stream.unused_data:
            raise DataFileError("holds a chunk of more than one stream: it is damaged")
        return found

    return size


def _zstd_size(data, most):
    """Of Zstandard: by the header of its one frame, which ends where the data does."""
    magic, flags = struct.unpack_from("<IB", data)
    if magic != 0xFD2FB528:
        raise DataFileError("holds a chunk that is not of Zstandard: it is damaged")
    single, kind = flags >> 5 & 1, flags >> 6
    if not single and kind == 0:
        raise DataFileError(
            "holds chunks of Zstandard without their size, which are not read: write the store "
            "with zarr or xarray"
        )
    place = 5 + (1 - single) + (0, 1, 2, 4)[flags & 3]
    width = 1 << kind
    found = int.from_bytes(data[place : place + width], "little") + (256 if kind == 1 else 0)
    place, last = place + width, False
    while not last:  # the blocks
        head = int.from_bytes(data[place : place + 3], "little")
        if place + 3 > len(data):
            raise IndexError
        last = bool(head & 1)
        place += 3 + (1 if head >> 1 & 3 == 1 else head >> 3)
    if place + 4 * (flags >> 2 & 1) != len(data):
        raise DataFileError("holds a chunk of more than one frame, or it is damaged")
    return found


# Codecs of zarr and numcodecs that only unpack: the one called Pickle runs code. Those that give
# as many bytes as they take (texts are never unpacked), and those that compress.
_PLAIN = ("BytesCodec", _CHECKSUM, "Shuffle", "TransposeCodec", "VLenUTF8", "VLenUTF8Codec")
_SIZES = {
    **dict.fromkeys(("Blosc", "BloscCodec"), _in_header(4)),
    "LZ4": _in_header(0),
    **dict.fromkeys(("Zstd", "ZstdCodec"), _zstd_size),
    **dict.fromkeys(("GZip", "GzipCodec"), _streamed(lambda: zlib.decompressobj(wbits=31))),
    "Zlib": _streamed(zlib.decompressobj),
    "BZ2": _streamed(bz2.BZ2Decompressor),
    "LZMA": _streamed(lambda: lzma.LZMADecompressor(memlimit=MOST_MEMORY)),
}
