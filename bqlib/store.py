"""Storage: pieces, the dataset gathered from them, and opening it again.

A piece is what one job writes: the curves of one cell for a block of seeds, as one zip file that
is the same bytes on every rerun. The dataset is one Zarr store on the grid of the whole sweep.
"""

import difflib
import hashlib
import io
import itertools
import json
import math
import os
import re
import subprocess
import warnings
import zipfile
import zlib
from contextlib import contextmanager
from pathlib import Path

import numpy as np
import scipy
import zarr
from numcodecs import Blosc, VLenUTF8
from zarr.codecs import BloscCodec, BloscShuffle, Crc32cCodec

import bqlib
from bqlib.experiment import build_target, piece_name
from bqlib.files import replacing
from bqlib.schema import (
    FAILED,
    MISSING,
    OK,
    QUANTILES,
    SCHEMA_VERSION,
    SWEEP_DIMS,
    SchemaError,
    check_schema,
    tables,
)

CHUNK_BYTES = 8 * 2**20
CHUNK = re.compile(r"c(\.\d+)*")  # name of a chunk's file
ZIP_DATE = (1980, 1, 1, 0, 0, 0)


def encode_piece(spec, seeds, trials):
    """A piece's bytes.

    Parameters
    ----------
    spec : bqlib.experiment.Spec
    seeds : sequence of int
    trials : sequence of (dict of ndarray, or str)
        For each seed the curves that :func:`bqlib.trial.run` returned, or why it failed.

    Returns
    -------
    bytes
        A zip file with a Zarr store inside. It holds no times, hosts or machines: equal results
        are equal bytes.
    """
    dim = next((t["points"].shape[1] for t in trials if not isinstance(t, str)), 1)
    labels = {"seed": list(seeds), "n": range(1, spec.n + 1), "dim": range(dim)}
    labels |= _integrand_labels(spec.integrands)
    arrays = _empty_arrays({name: len(values) for name, values in labels.items()})
    for i, curves in enumerate(trials):
        failed = isinstance(curves, str)
        arrays["status"][i] = FAILED if failed else OK
        if failed:
            arrays["reason"][i] = curves
            continue
        for name, values in curves.items():
            arrays[name][i] = values
    cell = {name: getattr(spec.cell, name) for name in SWEEP_DIMS}
    attributes = {"schema_version": SCHEMA_VERSION, "digest": spec.digest, **cell}
    memory = zarr.storage.MemoryStore()
    root = _create(memory, labels, attributes)
    for name, values in arrays.items():
        root[name][...] = values
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_STORED) as archive:
        for key, value in sorted(memory._store_dict.items()):
            archive.writestr(zipfile.ZipInfo(key, ZIP_DATE), value.to_bytes())
    return packed.getvalue()


def gather(experiment, pieces, path):
    """Gather the pieces of an experiment into one dataset on the grid of its sweep.

    Parameters
    ----------
    experiment : bqlib.experiment.Experiment
    pieces : path-like
        Folder of the pieces. Trials of a piece that is not there are missing in the dataset.
    path : path-like
        The store to write. One that is there is replaced once the new one is complete.

    Raises
    ------
    SchemaError
        If a piece belongs to another sweep, is damaged or departs from the schema; all such
        pieces are named, and nothing is replaced.

    Notes
    -----
    Holds one chunk of each variable at a time, whatever the size of the sweep.
    """
    dims = [build_target(content).dim for content in experiment.targets.values()]
    labels = {
        "target": list(experiment.targets),
        "kernel": list(experiment.kernels),
        "lengthscale": list(experiment.lengthscales),
        "algorithm": [algorithm.name for algorithm in experiment.algorithms],
        "seed": range(experiment.seeds),
        "n": range(1, experiment.n + 1),
        "dim": range(max(dims)),
        **_integrand_labels(experiment.integrands),
    }
    sizes = {name: len(values) for name, values in labels.items()}
    grid = [sizes[name] for name in SWEEP_DIMS]
    cells = np.empty(len(experiment.cells()), dtype=object)
    cells[:] = experiment.cells()
    cells = cells.reshape(grid)
    chunks = _sweep_chunks(sizes)
    problems = []
    # A chunk that is left out could not be told from one that was lost.
    whole = zarr.config.set({"array.write_empty_chunks": True})
    with replacing(path) as temporary, whole:
        root = _create(temporary, labels, _provenance(experiment), chunks)
        starts = [range(0, sizes[name], chunks[name]) for name in SWEEP_DIMS]
        for corner in itertools.product(*starts):
            block = tuple(
                slice(start, min(start + chunks[name], sizes[name]))
                for start, name in zip(corner, SWEEP_DIMS, strict=True)
            )
            members = cells[block]
            arrays = _empty_arrays(
                sizes | dict(zip(SWEEP_DIMS, members.shape, strict=True)), SWEEP_DIMS
            )
            for index, cell in np.ndenumerate(members):
                spec = experiment.spec(cell)
                rows = {name: values[index] for name, values in arrays.items()}
                for first, last in experiment.blocks():
                    piece = Path(pieces) / piece_name(cell, (first, last))
                    if piece.exists():
                        problems += _read_piece(piece, spec, first, last, rows)
            for name, values in arrays.items():
                root[name][block] = values
        if problems:
            folder = Path(path).parent
            raise SchemaError(
                "these pieces cannot be gathered:\n"
                + "\n".join(problems)
                + f"\nto have them made anew: bqlib retry --damaged {folder}, then run again; "
                f"those of another sweep or code: bqlib retry --sweep FILE {folder}"
            )


def write_dataset(dataset, path):
    """Write a small dataset, such as one of rates, as a Zarr store: whole or not at all."""
    encoding = {name: _codecs() for name in dataset.variables}
    for name, variable in dataset.variables.items():
        if variable.dtype.kind in "iub":
            encoding[name]["_FillValue"] = None
    with replacing(path) as temporary, _quiet():
        dataset.to_zarr(
            temporary, zarr_format=3, consolidated=True, encoding=encoding, write_empty_chunks=True
        )


def open_results(paths):
    """Open the curves of one experiment, or of several as one dataset.

    Parameters
    ----------
    paths : path-like, or sequence of path-like
        An experiment's folder of results, or the ``curves.zarr`` in it. Several are joined on the
        grid of all their labels, see :func:`bqlib.merge.merge`: what none of them has is NaN, with
        status 0.

    Returns
    -------
    xarray.Dataset
        Values are read when they are used. Dims are target, kernel, lengthscale, algorithm, seed
        and n; each variable says what it holds in its ``long_name``. Its ``.bq`` has what one does
        with curves, see :class:`bqlib.accessor.Results`.

    Raises
    ------
    FileNotFoundError
        If there are no curves at a path, or files of them are missing.
    SchemaError
        If results were written by another schema version, or depart from the schema.
    bqlib.merge.MergeError
        If experiments contradict each other; all conflicts are named.

    Notes
    -----
    Reads labels and attributes, and no curve unless two experiments have the same trials.
    """
    import xarray as xr

    import bqlib.accessor  # noqa: F401, as it registers .bq

    paths = [paths] if isinstance(paths, str | os.PathLike) else list(paths)
    stores, problems = [], []
    for path in map(Path, paths):
        try:
            stores.append(_curves_at(path))
        except FileNotFoundError as error:
            problems.append(str(error))
    if problems or not paths:
        raise FileNotFoundError("\n".join(problems) or "no path is given")
    datasets = []
    for store in stores:
        dataset = xr.open_zarr(store, chunks=None)
        check_schema(dataset, store)
        _check_whole(store)
        datasets.append(dataset)
    if len(datasets) == 1:
        return datasets[0]
    from bqlib.merge import merge

    return merge(datasets, [str(path) for path in paths])


def _curves_at(path):
    """The store of curves that a path means; if there is none, an error that says what is there."""
    if (path / "mmd" / "zarr.json").exists():
        return path
    if (path / "curves.zarr" / "zarr.json").exists():
        return path / "curves.zarr"
    if (path / "zarr.json").exists():
        raise FileNotFoundError(
            f"{path} is another dataset than the curves: open it with "
            "bqlib.store.open_dataset, or name the folder results/<experiment>"
        )
    if path.is_file():
        raise FileNotFoundError(f"{path} is a file: name a folder results/<experiment>")
    if not path.exists():
        others = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, others, 1)
        hint = f'; did you mean "{path.with_name(near[0])}"?' if near else ""
        raise FileNotFoundError(f"there is nothing at {path}{hint}")
    inside = sorted(p.parent.parent.name for p in path.glob("*/curves.zarr/zarr.json"))
    if inside:
        raise FileNotFoundError(
            f"{path} holds several experiments: {', '.join(inside)}; name one of them, such as "
            f'"{path / inside[0]}", or some in a list'
        )
    if (path / "pieces").is_dir():
        raise FileNotFoundError(
            f"no results at {path} yet: there are pieces, but they are gathered only after its "
            "sweep has run to the end; run it again to continue"
        )
    raise FileNotFoundError(
        f"no results at {path}: name a folder results/<experiment> after its sweep has run"
    )


def _check_whole(store):
    """Refuse a store that has lost files: Zarr would read NaN in their place, and say nothing."""
    head = json.loads((store / "zarr.json").read_bytes())
    lost = []
    for name, array in head["consolidated_metadata"]["metadata"].items():
        if array["chunk_key_encoding"]["configuration"]["separator"] != ".":
            continue  # not as gather writes them
        chunks = array["chunk_grid"]["configuration"]["chunk_shape"]
        wanted = math.prod(-(-n // c) for n, c in zip(array["shape"], chunks, strict=True))
        folder = store / name
        names = os.listdir(folder) if folder.is_dir() else []
        there = sum(CHUNK.fullmatch(name) is not None for name in names)
        if there < wanted:
            lost.append(f"{wanted - there} of {name}")
    if lost:
        results = store.parent.parent if store.parent.name == "studies" else store.parent
        raise FileNotFoundError(
            f"{store} has lost files: {', '.join(lost)}; to have it made anew: bqlib retry "
            f"--damaged {results}, then run the sweep again"
        )


def open_dataset(path):
    """Open any one store of an experiment: its curves, its rates or one of its studies."""
    import xarray as xr

    path = Path(path)
    if path.name == "curves.zarr":
        return open_results(path)
    _check_whole(path)
    return xr.open_zarr(path, chunks=None)


def _read_piece(path, spec, first, last, rows):
    """Fill the rows of a cell with a piece's values; return what is wrong with the piece."""
    try:
        with zipfile.ZipFile(path) as archive:  # reading a member checks its sum
            members = {name: archive.read(name) for name in archive.namelist()}
        root = json.loads(members["zarr.json"])
        version, digest = (root["attributes"].get(key) for key in ("schema_version", "digest"))
        if version != SCHEMA_VERSION:
            return [f"{path}: schema version {version}, this bqlib reads {SCHEMA_VERSION}"]
        if digest != spec.digest:
            return [f"{path}: made by another sweep, or by another version of the code"]
        seeds = seeds_of_piece(members, root)
        if seeds != list(range(first, last + 1)):
            return [f"{path}: holds seeds {seeds[0]} to {seeds[-1]} of its cell"]
        arrays = root["consolidated_metadata"]["metadata"]
        for name, row in rows.items():
            values = _decode(members, name, arrays[name])
            place = row[first : last + 1]
            if name == "points":  # targets of a sweep may differ in dimension
                place = place[..., : values.shape[-1]]
            if place.shape != values.shape:
                return [f"{path}: {name} has shape {values.shape}, not {place.shape}"]
            place[...] = values
    except (zipfile.BadZipFile, zlib.error, KeyError, ValueError, OSError, RuntimeError) as error:
        return [f"{path}: cannot be read ({error})"]
    return []


def seeds_of_piece(members, head):
    """The seeds of a piece, from its files by name and the content of its zarr.json."""
    seeds = _decode(members, "seed", head["consolidated_metadata"]["metadata"]["seed"])
    return [int(seed) for seed in seeds]


def _decode(members, name, metadata):
    """The one chunk of an array of a piece, as :func:`_codecs` packs it.

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


def _integrand_labels(integrands):
    return {"integrand": list(integrands), "quantile": QUANTILES} if integrands else {}


def _empty_arrays(sizes, leading=()):
    fill = {np.float64: np.nan, np.int8: MISSING, object: ""}
    _, variables = tables(errors="integrand" in sizes)
    return {
        name: np.full([sizes[d] for d in (*leading, *v.dims)], fill[v.dtype], dtype=v.dtype)
        for name, v in variables.items()
    }


def _sweep_chunks(sizes):
    """Chunk lengths along the sweep: whole cells, as many as make about CHUNK_BYTES."""
    _, variables = tables(errors="integrand" in sizes)
    largest = max(math.prod(sizes[dim] for dim in v.dims) for v in variables.values())
    room = max(1, CHUNK_BYTES // (8 * largest))
    chunks = {}
    for name in reversed(SWEEP_DIMS):
        chunks[name] = min(sizes[name], room)
        room = max(1, room // chunks[name])
    return {name: chunks[name] for name in SWEEP_DIMS}


def _create(store, labels, attributes, chunks=None):
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
            **_codecs(),
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
            **_codecs(),
        )
    with _quiet():
        return zarr.consolidate_metadata(store)


def _codecs():
    """How chunks are named and packed: the checksum makes a flipped bit an error."""
    return {
        "compressors": [
            BloscCodec(cname="zstd", shuffle=BloscShuffle.bitshuffle),
            Crc32cCodec(),
        ],
        "chunk_key_encoding": {"name": "default", "separator": "."},
    }


@contextmanager
def _quiet():
    """Consolidated metadata is an extension of Zarr v3, as the library warns at each writing."""
    with warnings.catch_warnings():
        warnings.filterwarnings("ignore", message="Consolidated metadata is currently")
        yield


def _provenance(experiment):
    config = json.dumps(experiment.canonical(), sort_keys=True, allow_nan=False)
    blas = np.show_config(mode="dicts")["Build Dependencies"]["blas"]
    return {
        "Conventions": "CF-1.11",
        "schema_version": SCHEMA_VERSION,
        "title": experiment.title,
        "bqlib_version": bqlib.__version__,
        "numpy_version": np.__version__,
        "scipy_version": scipy.__version__,
        "blas": f"{blas['name']} {blas['version']}",
        "git_commit": _git_commit(),
        "config": config,
        "config_sha256": hashlib.sha256(config.encode()).hexdigest(),
    }


def _git_commit():
    """The commit of the checkout that bqlib runs from, "-dirty" where it was changed; or ""."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        found = subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found.stdout.strip()
