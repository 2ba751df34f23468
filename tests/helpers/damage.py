"""Damage to results."""

import zipfile

from bqlib.schema import SCHEMA_VERSION


def files(results, pattern):
    return sorted(path for path in results.glob(pattern) if path.is_file())


def flip(path, place=1000, bit=0):
    data = bytearray(path.read_bytes())
    data[place] ^= 1 << bit
    path.write_bytes(data)


def age(path):
    """Rewrite a piece as another schema version would have it."""
    with zipfile.ZipFile(path) as archive:
        content = {name: archive.read(name) for name in archive.namelist()}
    old = content["zarr.json"].replace(
        f'"schema_version": {SCHEMA_VERSION}'.encode(), b'"schema_version": 0'
    )
    assert old != content["zarr.json"]
    with zipfile.ZipFile(path, "w") as archive:
        for name, data in {**content, "zarr.json": old}.items():
            archive.writestr(name, data)
