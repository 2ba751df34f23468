"""Results in the files of other programs: CSV, Parquet and NetCDF."""

import math
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import numpy as np
import pandas as pd
import xarray as xr

from bqlib.results.files import replacing
from bqlib.schema import FAILED, MISSING, OK, SWEEP_DIMS, TRIAL_DIMS

BLOCK_BYTES = 16 * 2**20  # of values read at a time; a table of them takes several times as much
STATUS = {OK: "ok", FAILED: "failed", MISSING: "missing"}
NEEDS = {".parquet": ("pyarrow",), ".nc": ("h5netcdf", "h5py")}
POINTS = ("points", "weights")


def export(dataset, path, points=False):
    """Write results to a file of the kind that its suffix names.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it, or a selection of it that keeps all dimensions.
    path : path-like
        Ends in ``.csv`` or ``.parquet`` for a table with a row for each cell, seed and n, or in
        ``.nc`` for a NetCDF file of the same form as the dataset. A file that is there is
        replaced once the new one is complete.
    points : bool
        Whether the points and their weights at the largest n are written too.

    Returns
    -------
    rows, missing : int
        Rows of the table (values of the MMD in a NetCDF file), and how many trials are missing.
        These have no rows; failed trials have, with the reason.

    Raises
    ------
    ValueError
        If the suffix is another one, or the dataset has lost a dimension, or has no labels of one.
    IsADirectoryError
        If the path is a folder.
    TypeError
        If `dataset` is no dataset.
    ImportError
        If a library for the file is not installed.

    Notes
    -----
    In a table the columns are the sweep's labels, `seed`, `n`, `status`, `reason`, and the
    dataset's variables. Those over integrands have a column for each, such as
    ``error_rkhs_ball``, and those over quantiles too, ``error_quantile_rkhs_ball_0.1``; points
    have one for each coordinate, ``point_0``, and a ``weight``. Numbers read back as the
    same bits. Reads about 16 MB of values at a time, whatever the size of the results.
    """
    if not isinstance(dataset, xr.Dataset):
        raise TypeError(
            f"what to export is of type {type(dataset).__name__}; give the dataset of "
            "bqlib.open_results, or a selection of it by lists"
        )
    path = Path(path)
    writers = {".csv": _write_csv, ".parquet": _write_parquet, ".nc": _write_netcdf}
    suffix = path.suffix.lower()
    if suffix not in writers:
        raise ValueError(f'cannot export to "{path}": it must end in {", ".join(writers)}')
    absent = [name for name in NEEDS.get(suffix, ()) if find_spec(name) is None]
    if absent:
        raise ImportError(
            f"{suffix} files need {' and '.join(absent)}: pip install {' '.join(absent)}, or "
            "export to .csv"
        )
    lost = [dim for dim in (*TRIAL_DIMS, "n") if dim not in dataset.dims]
    if lost:
        raise ValueError(
            f"the dataset has no dimension {', '.join(lost)}: select with lists, such as "
            ".sel(lengthscale=[0.5]), to keep it"
        )
    if not points:
        dataset = dataset.drop_vars([name for name in POINTS if name in dataset])
    empty = [dim for dim, size in dataset.sizes.items() if not size]
    if empty:
        raise ValueError(f"there is nothing to export: the dataset has no {', '.join(empty)}")
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: name a file to write")
    with replacing(path) as temporary:
        rows = writers[suffix](dataset, temporary)
    missing = int((dataset["status"] == MISSING).sum())
    return rows, missing


def _write_csv(dataset, path):
    rows = 0
    with open(path, "x", encoding="utf-8", newline="") as file:
        for columns in _tables(dataset):
            pd.DataFrame(columns).to_csv(file, index=False, header=file.tell() == 0)
            rows += len(columns["n"])
    return rows


def _write_parquet(dataset, path):
    import pyarrow as pa
    import pyarrow.parquet as pq

    types = {"i": pa.int64(), "f": pa.float64(), "O": pa.string()}
    rows, writer = 0, None
    for columns in _tables(dataset):
        schema = pa.schema([(name, types[c.dtype.kind]) for name, c in columns.items()])
        writer = writer or pq.ParquetWriter(path, schema, compression="zstd")
        writer.write_table(pa.table(columns, schema))
        rows += len(columns["n"])
    writer.close()
    return rows


def _write_netcdf(dataset, path):
    import dask

    dataset = dataset.drop_encoding()
    texts = [name for name, values in dataset.variables.items() if values.dtype.kind not in "iuf"]
    # As one array: Dask would load them twice, to find out what kind of objects they are.
    loaded = {name: dataset[name].astype(object).load() for name in texts}
    encoding = {name: {"zlib": True, "complevel": 1} for name in dataset.data_vars}
    for name, values in dataset.variables.items():
        if name in loaded:
            encoding[name] = {}
        elif values.dtype.kind in "iu":
            encoding[name] = encoding.get(name, {}) | {"_FillValue": None}
    with dask.config.set(scheduler="single-threaded"):
        chunked = dataset.chunk(_steps(dataset)).assign(loaded)
        chunked.to_netcdf(path, engine="h5netcdf", encoding=encoding)
    return dataset["mmd"].size


def _steps(dataset):
    """How many labels of each dimension of the sweep a block has: whole cells, of BLOCK_BYTES."""
    each = 8 * sum(
        math.prod(dataset.sizes[dim] for dim in values.dims if dim not in SWEEP_DIMS)
        for values in dataset.data_vars.values()
    )
    room = max(1, BLOCK_BYTES // each)
    steps = {}
    for dim in reversed(SWEEP_DIMS):
        steps[dim] = min(dataset.sizes[dim], room)
        room = max(1, room // steps[dim])
    return steps


def _tables(dataset):
    """Columns of the rows of a dataset, name to array, a block of cells at a time."""
    steps = _steps(dataset)
    for corner in product(*(range(0, dataset.sizes[dim], steps[dim]) for dim in SWEEP_DIMS)):
        block = {d: slice(i, i + steps[d]) for d, i in zip(SWEEP_DIMS, corner, strict=True)}
        yield _table(dataset.isel(block).load())


def _table(part):
    status = part["status"].transpose(*TRIAL_DIMS).values
    there = status != MISSING
    size = part.sizes["n"]
    columns = {
        dim: np.repeat(_plain(part[dim].values)[place], size)
        for dim, place in zip(TRIAL_DIMS, np.nonzero(there), strict=True)
    }
    columns["n"] = np.tile(part["n"].values, there.sum())
    words = np.array([STATUS[value] for value in status[there].tolist()], dtype=object)
    columns["status"] = np.repeat(words, size)
    for name, values in _columns(part):
        own = values.transpose(*TRIAL_DIMS, ...).values[there]
        own = own.reshape(-1) if "n" in values.dims else np.repeat(own, size)
        columns[name] = _plain(own)
    return columns


def _plain(values):
    """The same numbers, or texts as Python's own."""
    return values if values.dtype.kind in "if" else values.astype(object)


def _columns(part):
    """Name and values, over the trial and maybe n, of each column of a table."""
    for name, values in part.data_vars.items():
        if name == "status":
            continue
        others = [dim for dim in values.dims if dim not in (*TRIAL_DIMS, "n")]
        column = {"points": "point", "weights": "weight"}.get(name, name)
        for labels in product(*(part[dim].values.tolist() for dim in others)):
            chosen = dict(zip(others, labels, strict=True))
            yield "_".join(map(str, (column, *labels))), values.sel(chosen, drop=True)
