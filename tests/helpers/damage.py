"""Damage to results."""

import json
import zipfile
from itertools import product

from bqlib.results.layout import MANIFEST
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


# Kinds of files of a finished folder, by a pattern.
KINDS = {
    "piece": "pieces/**/*.zip",
    "timing": "timings/**/*.json",
    "head of a store": "*.zarr/zarr.json",
    "head of a study": "studies/*.zarr/zarr.json",
    "head of an array": "**/*.zarr/*/zarr.json",
    "chunk of the curves": "curves.zarr/*/c.*.*",
    "chunk of the rates": "rates.zarr/*/c.*.*",
    "chunk of the errors": "function_errors.zarr/*/c.*.*",
    "chunk of a study": "studies/*.zarr/*/c.*.*",
    "coordinate": "**/*.zarr/*/c.0",
    "figure": "figures/*",
    "claims": "claims.json",
    "report": "report.html",
    "provenance": "provenance.json",
    "manifest": MANIFEST,
}


# Each takes a file, other files to swap it with, and a generator of random numbers. It returns the
# files that are damaged, or None where this cannot be done to the file.


def flip_a_bit(path, others, rng):
    flip(path, rng.integers(path.stat().st_size), rng.integers(8))
    return [path]


def cut_short(path, others, rng):
    data = path.read_bytes()
    path.write_bytes(data[: rng.integers(1, len(data))])
    return [path]


def empty(path, others, rng):
    path.write_bytes(b"")
    return [path]


def remove(path, others, rng):
    path.unlink()
    return [path]


def swap(path, others, rng):
    data = path.read_bytes()
    other = others[rng.integers(len(others))]
    if other.read_bytes() == data:
        return None
    path.write_bytes(other.read_bytes())
    other.write_bytes(data)
    return [path, other]


def swap_with_its_like(path, others, rng):
    """With a file of the same name in another folder, or of the same length: the hardest to see."""
    data = path.read_bytes()
    alike = [
        other
        for other in others
        if other.suffix == path.suffix
        and (other.name == path.name or other.stat().st_size == len(data))
        and other.read_bytes() != data
    ]
    return swap(path, alike, rng) if alike else None


def append(path, others, rng):
    with open(path, "ab") as file:
        file.write([b"\n", b"\0", path.read_bytes()][rng.integers(3)])
    return [path]


def change_a_value(path, others, rng):
    if path.suffix != ".json":
        return None
    content = json.loads(path.read_text())
    places = list(_places(content))
    inside, key = places[rng.integers(len(places))]
    inside[key] = _another(inside[key])
    path.write_text(json.dumps(content, indent=1))
    return [path]


def _places(content):
    """(container, key) of every value in JSON data."""
    items = content.items() if isinstance(content, dict) else enumerate(content)
    for key, value in items:
        yield content, key
        if isinstance(value, dict | list):
            yield from _places(value)


def _another(value):
    """A value of another content, of the same type where there is one."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int | float):
        return value + 1
    if isinstance(value, str):
        return value + "x"
    return [value]


def add_a_file(path, others, rng):
    if ".zarr/" not in str(path):
        return None
    new = path.with_name(["c.0.0.9", "notes.txt", "zarr.json.bak"][rng.integers(3)])
    if new.exists():
        return None
    new.write_bytes(path.read_bytes())
    return [new]


DAMAGES = (flip_a_bit, cut_short, empty, remove, swap, swap_with_its_like, append, change_a_value,
           add_a_file)  # fmt: skip


def damages(results, count, rng):
    """Damage a folder so many times, each time mended after it is yielded.

    Every kind of file gets every damage that can be done to it, before any comes again.

    Yields
    ------
    str
        What was done to what.
    list of path
        The damaged files.
    """
    there = {kind: files(results, pattern) for kind, pattern in KINDS.items()}
    assert all(there.values()), "a kind of file is missing"
    sound = {path: path.read_bytes() for paths in there.values() for path in paths}
    done = 0
    while done < count:
        pairs = list(product(KINDS, DAMAGES))
        for index in rng.permutation(len(pairs)):
            kind, damage = pairs[index]
            path = there[kind][rng.integers(len(there[kind]))]
            found = damage(path, [other for other in sound if other != path], rng)
            if found is not None:
                yield f"{damage.__name__} to {path.relative_to(results)}", found
                done += 1
            for path in found or ():
                if path in sound:
                    path.write_bytes(sound[path])
                else:
                    path.unlink()
            if done == count:
                return
