"""Chunks of Zarr arrays that unpack to more than they may, and layouts that would take hours."""

import bz2
import gzip
import json
import lzma
import struct
import zlib

import numcodecs
import numpy as np
import pytest
import zarr
from zarr.codecs import BloscCodec, Crc32cCodec, GzipCodec, ZstdCodec
from zarr.codecs import numcodecs as more

from bqlib.sweep import zarrchunks
from bqlib.sweep.datafile import read_points
from bqlib.sweep.datapoints import DataFileError

POINTS = np.random.default_rng(0).normal(size=(6, 2))
BOMB = bytes(10**7)


def told(path):
    with pytest.raises(DataFileError) as caught:
        read_points(str(path))
    return str(caught.value).partition(".zarr ")[2]


def rewritten(path, **changes):
    """Change the head of an array."""
    file = next(path / name for name in ("zarr.json", ".zarray") if (path / name).exists())
    file.write_text(json.dumps(json.loads(file.read_text()) | changes))


@pytest.mark.parametrize(
    "codec, bomb",
    [
        (numcodecs.BZ2(), bz2.compress(BOMB)),
        (numcodecs.GZip(), gzip.compress(BOMB)),
        (numcodecs.Zlib(), zlib.compress(BOMB)),
        (numcodecs.LZMA(), lzma.compress(BOMB)),
        (numcodecs.LZ4(), numcodecs.LZ4().encode(BOMB)),
        (numcodecs.Zstd(), numcodecs.Zstd().encode(BOMB)),
        (numcodecs.Blosc(), numcodecs.Blosc().encode(BOMB)),
    ],
    ids=lambda codec: type(codec).__name__,
)
def test_a_chunk_unpacks_to_its_shape_alone(tmp_path, monkeypatch, codec, bomb):
    path = tmp_path / "draws.zarr"
    for filters in (None, [numcodecs.Shuffle(8)]):
        options = {"compressors": codec, "filters": filters, "zarr_format": 2}
        zarr.create_array(str(path), data=POINTS, overwrite=True, **options)
        assert np.array_equal(read_points(str(path)), POINTS)
    (path / "0.0").write_bytes(bomb)

    def never(*_):
        raise AssertionError("unpacked")

    if type(codec).__module__.endswith((".bz2", ".gzip", ".zlib", ".lzma")):
        monkeypatch.setattr(type(codec), "decode", never)
    assert told(path) == (
        "holds the chunk 0.0, which unpacks to more than its shape (6, 2): it is damaged"
    )
    for data in (b"", bomb[:3], bomb[:-9]):
        (path / "0.0").write_bytes(data)
        assert told(path)


def test_streams_in_a_row_are_refused(tmp_path):
    path = tmp_path / "draws.zarr"
    for codec in (numcodecs.BZ2(), numcodecs.GZip(), numcodecs.Zlib(), numcodecs.Zstd()):
        options = {"compressors": codec, "zarr_format": 2, "overwrite": True}
        zarr.create_array(str(path), data=POINTS, **options)
        (path / "0.0").write_bytes(2 * (path / "0.0").read_bytes())
        assert "holds a chunk of more than one " in told(path)


def test_zstandard_without_sizes_is_refused(tmp_path):
    path = tmp_path / "draws.zarr"
    zarr.create_array(str(path), data=POINTS)
    block = struct.pack("<I", 131072 << 3 | 1 << 1 | 1)[:3] + b"x"  # one byte, 131072 times
    head = b"\x28\xb5\x2f\xfd\x00\x58"
    (path / "c/0/0").write_bytes(head + block)
    assert told(path).startswith("holds chunks of Zstandard without their size, which are not read")
    for size in (10, 300, 70_000):  # in one, two and four bytes
        data = numcodecs.Zstd(checksum=size == 300).encode(bytes(size))
        assert zarrchunks._zstd_size(data, 0) == size


@pytest.mark.parametrize(
    "codecs",
    [
        (),
        (ZstdCodec(checksum=True),),
        (GzipCodec(),),
        (BloscCodec(),),
        (ZstdCodec(), Crc32cCodec()),
        (Crc32cCodec(), GzipCodec(), Crc32cCodec()),
        ("BZ2",),
        ("LZMA", Crc32cCodec()),
    ],
)
@pytest.mark.filterwarnings("ignore:Numcodecs codecs")
def test_what_zarr_packs_is_read_in_chunks_and_shards(tmp_path, codecs):
    path = str(tmp_path / "draws.zarr")
    codecs = [getattr(more, one)() if isinstance(one, str) else one for one in codecs]
    zarr.create_array(path, data=POINTS, chunks=(4, 2), compressors=codecs)
    assert np.array_equal(read_points(path), POINTS)
    options = {"chunks": (1, 2), "shards": (4, 2), "compressors": codecs, "overwrite": True}
    zarr.create_array(path, data=POINTS, **options)
    assert np.array_equal(read_points(path), POINTS)


@pytest.mark.parametrize("place", ["start", "end"])
def test_a_bomb_in_a_shard_is_refused(tmp_path, place):
    path = tmp_path / "draws.zarr"
    shards = {"shape": (6, 2), "index_location": place}
    zarr.create_array(str(path), data=POINTS, chunks=(6, 2), shards=shards, compressors=GzipCodec())
    assert np.array_equal(read_points(str(path)), POINTS)
    bomb = gzip.compress(BOMB)
    index = struct.pack("<QQ", 20 if place == "start" else 0, len(bomb)) + bytes(4)
    (path / "c/0/0").write_bytes(index + bomb if place == "start" else bomb + index)
    assert told(path).startswith("holds the chunk c/0/0, which unpacks to more than its shape")
    (path / "c/0/0").write_bytes(b"short")
    assert told(path).startswith("holds a shard that ends too early")


def test_only_one_codec_may_compress(tmp_path):
    path = tmp_path / "draws.zarr"
    zarr.create_array(str(path), data=POINTS, compressors=(GzipCodec(), ZstdCodec()))
    assert told(path) == (
        "is packed by the codecs BytesCodec, GzipCodec, ZstdCodec, of which only one may "
        "compress, as the last"
    )
    options = {"filters": [numcodecs.BZ2()], "compressors": numcodecs.BZ2(), "zarr_format": 2}
    zarr.create_array(str(path), data=POINTS, overwrite=True, **options)
    assert told(path).startswith("is packed by the codecs BZ2, BZ2, of which only one may")


def test_shards_beside_other_codecs_are_refused(tmp_path):
    path = tmp_path / "draws.zarr"
    zarr.create_array(str(path), data=POINTS, chunks=(1, 2), shards=(3, 2))
    (shard,) = json.loads((path / "zarr.json").read_text())["codecs"]
    gzipped = {"name": "gzip", "configuration": {"level": 1}}
    rewritten(path, codecs=[shard, gzipped])
    assert told(path) == "has shards that are packed once more, which are not read"
    inside = shard["configuration"]
    twice = {**shard, "configuration": {**inside, "codecs": [shard]}}
    rewritten(path, codecs=[twice])
    assert told(path) == "is packed by the codec ShardingCodec, which is not read from data files"
    index = [{"name": "bytes", "configuration": {"endian": "big"}}]
    rewritten(path, codecs=[{**shard, "configuration": {**inside, "index_codecs": index}}])
    assert told(path) == "has shards whose index is not little-endian, which are not read"


@pytest.mark.parametrize("version", [2, 3])
def test_too_many_chunks_are_refused_before_one_is_looked_for(tmp_path, version):
    path = tmp_path / "draws.zarr"
    zarr.create_array(str(path), data=POINTS, zarr_format=version)
    for shape, count in (([60_000, 2], 120_000), ([10**7, 20], 200_000_000)):
        grid = {"name": "regular", "configuration": {"chunk_shape": [1, 1]}}
        chunks = {"chunks": [1, 1]} if version == 2 else {"chunk_grid": grid}
        rewritten(path, shape=shape, **chunks)
        assert told(path) == (
            f"holds an array in {count} chunks of (1, 1), and the limit is 100000: use larger "
            "chunks"
        )
