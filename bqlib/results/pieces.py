"""Pieces: the curves of one cell for a block of seeds, as one zip file."""

import hashlib
import io
import json
import zipfile
from functools import lru_cache

import zarr

from bqlib.results.codec import create, decode, empty_arrays, encode, integrand_labels, is_empty
from bqlib.results.layout import HEAD, Layout
from bqlib.results.text import one_line
from bqlib.results.timings import digest_of, made_by, read_timing, sha256_of, timed_pieces
from bqlib.schema import FAILED, OK, SCHEMA_VERSION, SWEEP_DIMS, tables

ZIP_DATE = (1980, 1, 1, 0, 0, 0)


def encode_piece(spec, seeds, trials):
    """Pack the trials of one cell, for some seeds, as a piece.

    Parameters
    ----------
    spec : bqlib.sweep.spec.Spec
    seeds : sequence of int
    trials : sequence of (dict of ndarray, or str)
        For each seed, the curves that :func:`bqlib.trial.trial` returned, or why it failed.

    Returns
    -------
    bytes
        A zip file with a Zarr store inside. It holds no times, hosts or machines: equal results
        are equal bytes.
    """
    dim = next((t["points"].shape[1] for t in trials if not isinstance(t, str)), 1)
    labels = {"seed": list(seeds), "n": range(1, spec.n + 1), "dim": range(dim)}
    labels |= integrand_labels(spec.integrands)
    arrays = empty_arrays({name: len(values) for name, values in labels.items()})
    for i, curves in enumerate(trials):
        failed = isinstance(curves, str)
        arrays["status"][i] = FAILED if failed else OK
        if failed:
            arrays["reason"][i] = curves
            continue
        for name, values in curves.items():
            arrays[name][i] = one_line(values) if name == "reason" else values
    cell = {name: getattr(spec.cell, name) for name in SWEEP_DIMS}
    attributes = {"schema_version": SCHEMA_VERSION, "digest": spec.digest, **cell}
    empty = _empty_store(tuple((name, tuple(values)) for name, values in labels.items()))
    head = json.loads(empty[HEAD])
    files = empty | {HEAD: json.dumps(head | {"attributes": attributes}, indent=2).encode()}
    metadata = head["consolidated_metadata"]["metadata"]
    for name, values in arrays.items():
        if not is_empty(values):  # Zarr writes no chunk of these
            files[f"{name}/c.{'.'.join('0' * values.ndim)}"] = encode(values, metadata[name])
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for key, value in sorted(files.items()):
            archive.writestr(zipfile.ZipInfo(key, ZIP_DATE), value)
    return packed.getvalue()


@lru_cache(maxsize=16)
def _empty_store(labels):
    """Name to bytes of the files of a store with labels, which has no chunks of variables yet."""
    files = {}
    create(zarr.storage.MemoryStore(files), dict(labels), {})
    return {name: content.to_bytes() for name, content in files.items()}


def read_piece(path, spec, first, last, rows):
    """Fill the rows of a cell with a piece's values; return what is wrong with the piece."""
    try:
        members, root = _read(path)
        version, digest = (root["attributes"].get(key) for key in ("schema_version", "digest"))
        if version != SCHEMA_VERSION:
            return [f"{path}: has schema version {version}, this bqlib reads {SCHEMA_VERSION}"]
        if digest != spec.digest:
            return [f"{path}: comes from another sweep, or from another version of the code"]
        seeds = seeds_of_piece(members, root)
        if seeds != list(range(first, last + 1)):
            return [f"{path}: holds seeds {seeds[0]} to {seeds[-1]}, not {first} to {last}"]
        arrays = root["consolidated_metadata"]["metadata"]
        _, variables = tables(errors=bool(spec.integrands))
        for name, row in rows.items():
            values = decode(members, name, arrays[name])
            block = row[first : last + 1]
            if "n" in variables[name].dims:  # problems of a sweep may differ in n
                block = block[:, : spec.n]
            if name == "points":  # and targets in dimension
                block = block[..., : values.shape[-1]]
            if block.shape != values.shape:
                return [f"{path}: {name} has shape {values.shape}, not {block.shape}"]
            block[...] = values
    except Exception as error:  # of any kind, because any byte can be wrong
        return [f"{path}: cannot be read ({error})"]
    return []


def take_over(results, spec, seeds):
    """Trials at some seeds that pieces of a cell hold, whatever their blocks.

    Trials that failed are left out, and so are pieces that were made for another digest, that are
    damaged, or whose sha256 is not the recorded one.

    Parameters
    ----------
    results : path-like
        The experiment's folder of results.
    spec : bqlib.sweep.spec.Spec
    seeds : sequence of int

    Returns
    -------
    trials : dict of int to (dict of ndarray, float)
        Seed to the curves and the seconds of its trial.
    versions : list of dict
        Name to version of the software that made them.
    """
    taken, versions = {}, []
    for name in timed_pieces(results, spec.cell):
        seconds, _ = read_timing(results, name)
        wanted = [seed for seed in seeds if seed in seconds and seed not in taken]
        if wanted and digest_of(results, name) == spec.digest:
            trials = _trials(Layout(results).piece(name), spec, sha256_of(results, name))
            found = {seed: (trials[seed], seconds[seed]) for seed in wanted if seed in trials}
            taken |= found
            versions += made_by(results, name) if found else []
    return taken, [one for i, one in enumerate(versions) if one and one not in versions[:i]]


def _trials(path, spec, sha256):
    """Seed to curves of the trials of a piece that succeeded; none if it is not what was written.

    The inverse of :func:`encode_piece`.
    """
    try:
        data = path.read_bytes()
        if hashlib.sha256(data).hexdigest() != sha256:
            return {}
        members, root = _read(io.BytesIO(data))
        if root["attributes"]["schema_version"] != SCHEMA_VERSION:
            return {}
        if root["attributes"]["digest"] != spec.digest:
            return {}
        metadata = root["consolidated_metadata"]["metadata"]
        seeds, dim = seeds_of_piece(members, root), metadata["points"]["shape"][-1]
        labels = {"seed": seeds, "n": range(spec.n), "dim": range(dim)}
        labels |= integrand_labels(spec.integrands)
        arrays = {}
        for name, empty in empty_arrays({k: len(v) for k, v in labels.items()}).items():
            arrays[name] = decode(members, name, metadata[name])
            if arrays[name].shape != empty.shape:
                return {}
    except Exception:  # of any kind, because any byte can be wrong
        return {}
    status = arrays.pop("status")
    return {
        seed: {name: values[i] for name, values in arrays.items()}
        for i, seed in enumerate(seeds)
        if status[i] == OK
    }


def _read(file):
    """Name to bytes of a piece's members, and the content of its head."""
    with zipfile.ZipFile(file) as archive:  # reading a member checks its sum
        refuse_compressed(archive)
        members = {name: archive.read(name) for name in archive.namelist()}
    return members, json.loads(members[HEAD])


def refuse_compressed(archive):
    """Raise a ValueError if a piece's zip file holds something that may unpack to any size."""
    if any(member.compress_type != zipfile.ZIP_STORED for member in archive.infolist()):
        raise ValueError("it holds compressed files, and no piece does")


def seeds_of_piece(members, head):
    """The seeds of a piece, from its members (name to bytes) and the content of its head."""
    seeds = decode(members, "seed", head["consolidated_metadata"]["metadata"]["seed"])
    return [int(seed) for seed in seeds]
