"""Stores of an experiment: the curves, gathered from the pieces, and the datasets beside them."""

import difflib
import itertools
import json
import math
import subprocess
from pathlib import Path

import numpy as np
import scipy
import zarr

import bqlib
from bqlib.results.checked import CheckedStore, record_of
from bqlib.results.codec import codecs, create, empty_arrays, integrand_labels, quiet
from bqlib.results.damage import DamagedError, Fault, damaged, sha256_of
from bqlib.results.files import replacing
from bqlib.results.layout import (
    CURVES,
    RETRIED,
    Layout,
    head,
    path_of_head,
    piece_name,
    results_of,
)
from bqlib.results.pieces import read_piece
from bqlib.schema import (
    DOES_NOT_APPLY,
    SCHEMA_VERSION,
    SWEEP_DIMS,
    SchemaError,
    check_schema,
    tables,
)
from bqlib.sweep.spec import Cell

CHUNK_BYTES = 8 * 2**20
ONLY_PIECES = "no results at {} yet, only pieces: run the sweep again to finish it"


def gather(experiment, results):
    """Gather the pieces of an experiment into one dataset on the grid of its sweep.

    Parameters
    ----------
    experiment : bqlib.sweep.experiment.Experiment
    results : path-like
        The experiment's folder. If a piece is missing, its trials are missing in the dataset. An
        existing dataset is replaced once the new one is complete.

    Raises
    ------
    SchemaError
        If a piece belongs to another sweep, is damaged or departs from the schema. The message
        lists all these pieces, and nothing is replaced.

    Notes
    -----
    Holds one chunk of each variable at a time, whatever the size of the sweep.
    """
    labels = labels_of(experiment)
    sizes = {name: len(values) for name, values in labels.items()}
    runs = set(experiment.cells())
    chunks = _sweep_chunks(sizes)
    problems = []
    # An omitted chunk would look like a lost one.
    whole = zarr.config.set({"array.write_empty_chunks": True})
    at = Layout(results)
    with replacing(at.curves) as temporary, whole:
        root = create(temporary, labels, provenance(experiment), chunks)
        starts = [range(0, sizes[name], chunks[name]) for name in SWEEP_DIMS]
        for corner in itertools.product(*starts):
            block = tuple(
                slice(start, min(start + chunks[name], sizes[name]))
                for start, name in zip(corner, SWEEP_DIMS, strict=True)
            )
            own = {dim: labels[dim][part] for dim, part in zip(SWEEP_DIMS, block, strict=True)}
            shape = {dim: len(values) for dim, values in own.items()}
            arrays = empty_arrays(sizes | shape, SWEEP_DIMS)
            for index in np.ndindex(*shape.values()):
                cell = Cell(*(own[dim][i] for dim, i in zip(SWEEP_DIMS, index, strict=True)))
                rows = {name: values[index] for name, values in arrays.items()}
                if cell not in runs:
                    rows["status"][:] = DOES_NOT_APPLY
                    rows["reason"][:] = experiment.inapplicable[cell.algorithm][cell.target]
                    continue
                spec = experiment.spec(cell)
                for first, last in experiment.blocks():
                    piece = at.piece(piece_name(cell, (first, last)))
                    if piece.exists():
                        problems += read_piece(piece, spec, first, last, rows)
            for name, values in arrays.items():
                root[name][block] = values
        if problems:
            raise SchemaError(
                "these pieces cannot be gathered:\n"
                + "\n".join(problems)
                + "\nif the sweep, a data file or the code changed during the run: start it again"
                f"\nto recompute damaged pieces: bqlib retry --damaged {at.folder}, then run the "
                "sweep again; to recompute pieces of another sweep or code: bqlib retry --sweep "
                f"FILE {at.folder}"
            )


def labels_of(experiment):
    """Dimension to its labels, of the dataset of curves of a sweep."""
    return {
        "target": list(experiment.targets),
        "kernel": list(experiment.kernels),
        "lengthscale": list(experiment.lengthscales),
        "algorithm": [algorithm.name for algorithm in experiment.algorithms],
        "seed": range(experiment.seeds),
        "n": range(1, experiment.n + 1),
        "dim": range(max(target.dim for target in experiment.build_targets().values())),
        **integrand_labels(experiment.integrands),
    }


def write_curves(dataset, path):
    """Write a dataset of curves that is in memory as a store of the form that :func:`gather` makes.

    Whole or not at all.
    """
    labels = {name: dataset[name].values.tolist() for name in dataset.coords}
    sizes = {name: len(values) for name, values in labels.items()}
    chunks = _sweep_chunks(sizes)
    with replacing(path) as temporary, zarr.config.set({"array.write_empty_chunks": True}):
        root = create(temporary, labels, dataset.attrs, chunks)
        for name in tables(errors="integrand" in sizes)[1]:
            root[name][...] = dataset[name].values


def write_dataset(dataset, path):
    """Write a small dataset, for example of rates, as a Zarr store: whole or not at all."""
    # Zarr has no settled form for texts of one length, as a single label is.
    texts = {name: v.astype(object) for name, v in dataset.variables.items() if v.dtype.kind == "U"}
    dataset = dataset.assign(texts)
    encoding = {name: codecs() for name in dataset.variables}
    for name, variable in dataset.variables.items():
        if variable.dtype.kind in "iub":
            encoding[name]["_FillValue"] = None
    with replacing(path) as temporary, quiet():
        dataset.to_zarr(
            temporary, zarr_format=3, consolidated=True, encoding=encoding, write_empty_chunks=True
        )


def find_curves(path):
    """The store of curves at a path, or in the folder there; else an error that says what is."""
    at = Layout(path)
    if head(path / "mmd").exists() or (path.name == CURVES and head(path).exists()):
        return path
    if head(at.curves).exists():
        return at.curves
    for store in (path, at.curves):
        if (store / ".zgroup").exists():
            raise FileNotFoundError(
                f"{store} is a store of Zarr's format 2, which bqlib does not write: open it with "
                "xarray.open_zarr"
            )
        if store.name == CURVES and store.is_dir():
            if any(Layout(store.parent).pieces.rglob(f"*{RETRIED}.*")):  # by bqlib retry
                raise FileNotFoundError(ONLY_PIECES.format(store.parent))
            raise _damaged_head(store, "is missing")
    if head(path).exists():
        raise FileNotFoundError(
            f"{path} is a dataset, but not the curves: open it with "
            "bqlib.results.store.open_dataset, or give the folder results/<experiment>"
        )
    if path.is_file():
        raise FileNotFoundError(f"{path} is a file: give a folder results/<experiment>")
    if not path.exists():
        others = [p.name for p in path.parent.iterdir()] if path.parent.is_dir() else []
        near = difflib.get_close_matches(path.name, others, 1)
        hint = f'; did you mean "{path.with_name(near[0])}"?' if near else ""
        raise FileNotFoundError(f"{path}: no such file or folder{hint}")
    inside = sorted(p.name for p in path.iterdir() if head(Layout(p).curves).exists())
    if inside:
        raise FileNotFoundError(
            f"{path} holds several experiments: {', '.join(inside)}; give one of them, for example "
            f'"{path / inside[0]}", or a list'
        )
    if at.pieces.is_dir():
        raise FileNotFoundError(ONLY_PIECES.format(path))
    if (path / "submission.json").is_file():
        raise FileNotFoundError(f"{path} is a submission without scores: bqlib score {path}")
    raise FileNotFoundError(
        f"no results at {path}: give a folder results/<experiment> whose sweep has run"
    )


def open_dataset(path):
    """Open one store of an experiment: its curves, its rates, a study or another dataset.

    Parameters
    ----------
    path : path-like
        The store.

    Returns
    -------
    xarray.Dataset
        Loaded lazily.

    Raises
    ------
    FileNotFoundError
        If there is no store at the path.
    DamagedError
        If a file of the store is missing or damaged; also when values are read later.
    SchemaError
        If another schema version wrote the curves, or they depart from the schema.

    Notes
    -----
    Where there is a manifest, each file is compared with it when it is read. Where there is none,
    as in a run that has not finished, the checksums in the chunks are.
    """
    path = Path(path)
    if path.name == CURVES:
        return open_curves(find_curves(path))
    return _opened(path)


def open_curves(store):
    """Open the store of curves that :func:`find_curves` found; raises as :func:`open_dataset`."""
    dataset = _opened(store)
    check_schema(dataset, store)
    config, known = (dataset.attrs.get(name) for name in ("config", "config_sha256"))
    if known != sha256_of(str(config).encode()):
        raise _damaged_head(store, "is damaged: its config_sha256 is not that of its config")
    return dataset


def _opened(store):
    from bqlib.results.lazy import open_zarr  # loads xarray and pandas, 0.6 s; gathering does not

    record = record_of(store)
    try:
        return open_zarr(CheckedStore(store, record))
    except DamagedError:
        raise
    except Exception as error:  # of any kind, because any byte of the head can be wrong
        raise _damaged_head(store, f"is damaged: {error}") from error


def _damaged_head(store, what):
    """The error that says what is wrong with the head of a store."""
    results = results_of(store)
    path = Path(store).relative_to(results).as_posix()
    return damaged(results, [Fault(path_of_head(path), what)])


def _sweep_chunks(sizes):
    """Chunk lengths along the sweep: as many whole cells as make about CHUNK_BYTES."""
    _, variables = tables(errors="integrand" in sizes)
    largest = max(math.prod(sizes[dim] for dim in v.dims) for v in variables.values())
    room = max(1, CHUNK_BYTES // (8 * largest))
    chunks = {}
    for name in reversed(SWEEP_DIMS):
        chunks[name] = min(sizes[name], room)
        room = max(1, room // chunks[name])
    return {name: chunks[name] for name in SWEEP_DIMS}


def provenance(experiment):
    """Attributes of the curves: the sweep, and the versions of what gathers them."""
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
        "config_sha256": sha256_of(config.encode()),
    }


def _git_commit():
    """The commit of the checkout that bqlib runs from, with "-dirty" if it was changed; or ""."""
    command = ["git", "describe", "--always", "--dirty", "--abbrev=40", "--exclude=*"]
    try:
        found = subprocess.run(
            command, cwd=Path(__file__).parent, capture_output=True, text=True, check=True
        )
    except (OSError, subprocess.CalledProcessError):
        return ""
    return found.stdout.strip()
