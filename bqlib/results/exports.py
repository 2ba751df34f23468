"""Exports: results as CSV, Parquet and NetCDF files, for other programs."""

import io
import json
import math
from contextlib import contextmanager
from importlib.util import find_spec
from itertools import product
from pathlib import Path

import dask
import numpy as np
import pandas as pd
import xarray as xr

from bqlib.results.files import replacing
from bqlib.schema import DOES_NOT_APPLY, FAILED, MISSING, OK, TRIAL_DIMS, ends_of_sweeps, sweep_dims

BLOCK_BYTES = 16 * 2**20  # values read at a time; their table takes several times as much
STATUS = {OK: "ok", FAILED: "failed"}
NEEDS = {".parquet": ("pyarrow",), ".nc": ("h5netcdf", "h5py")}
POINTS = ("points", "weights")


def export(dataset, path, points=False):
    """Write results to a file; the suffix of its name says of which kind.

    Parameters
    ----------
    dataset : xarray.Dataset
        As :func:`bqlib.open_results` gives it, or a selection of it that keeps all dimensions.
    path : path-like
        Ends in ``.csv`` or ``.parquet`` for a table with a row for each cell, seed and n, or in
        ``.nc`` for a NetCDF file of the same form as the dataset. An existing file is replaced
        once the new one is complete.
    points : bool
        Whether to write the points and their weights at the largest n too (default: False).

    Returns
    -------
    rows, missing : int
        Rows of the table (values of the MMD in a NetCDF file), and how many trials are missing.
        Missing trials and those of a rule that does not apply have no rows; failed ones have rows,
        with the reason. A trial of a merged sweep with a smaller n has no rows beyond that n.

    Raises
    ------
    ValueError
        If the suffix is another one; if the dataset lacks a dimension, or has no labels of one; if
        labels are texts and numbers in one dimension; or if a text as a label would be read back
        from CSV as a number or as missing.
    IsADirectoryError
        If the path is a folder.
    OSError
        If the file cannot be written, for example on a full disk. Nothing is left of it then.
    TypeError
        If `dataset` is not a dataset.
    ImportError
        If a library for this kind of file is not installed.

    Notes
    -----
    In a table the columns are the sweep's labels, `seed`, `n`, `status`, `reason`, and the
    dataset's variables. A variable over integrands has a column for each, for example
    ``error_rkhs_ball``, and one over quantiles too, ``error_quantile_rkhs_ball_0.1``. Points have
    a column for each coordinate, ``point_0``, and a ``weight``. Numbers and labels read back as
    they were. A text that is None is written as an empty text.

    Tables hold no attributes. A NetCDF file holds texts, numbers and lists of one of these; an
    attribute that is None is left out, and any other one is written as a text: JSON for truth
    values, lists and dicts, and what ``str`` gives for the rest.

    O(N) time for N values. Reads about 16 MB of values at a time, whatever the size of the results.

    Examples
    --------
    After ``make run CONFIG=config/quick.yaml``, in the same folder:

    >>> import bqlib
    >>> curves = bqlib.open_results("results/quick")  # doctest: +SKIP
    >>> part = curves.sel(algorithm=["herding", "sbq"]).isel(n=[7])  # doctest: +SKIP
    >>> rows, missing = bqlib.export(part, "curves.csv")  # doctest: +SKIP
    >>> rows == part["mmd"].size, missing  # doctest: +SKIP
    (True, 0)
    """
    if not isinstance(dataset, xr.Dataset):
        raise TypeError(
            f"cannot export a {type(dataset).__name__}: give the dataset that bqlib.open_results "
            "returns, or a selection of it by lists"
        )
    path = Path(path)
    writers = {".csv": _write_csv, ".parquet": _write_parquet, ".nc": _write_netcdf}
    suffix = path.suffix.lower()
    if suffix not in writers:
        raise ValueError(f'cannot export to "{path}": the name must end in {" or ".join(writers)}')
    absent = [name for name in NEEDS.get(suffix, ()) if find_spec(name) is None]
    if absent:
        raise ImportError(
            f"{suffix} files need {' and '.join(absent)}: pip install {' '.join(absent)}, or "
            "export to .csv"
        )
    lost = [dim for dim in (*TRIAL_DIMS, "n") if dim not in dataset.dims]
    if lost:
        raise ValueError(
            f"the dataset lacks the dimension {', '.join(lost)}: select with lists to keep it, for "
            "example .sel(lengthscale=[0.5])"
        )
    if not points:
        dataset = dataset.drop_vars([name for name in POINTS if name in dataset])
    empty = [dim for dim, size in dataset.sizes.items() if not size]
    if empty:
        raise ValueError(f"there is nothing to export: no {', '.join(empty)} is selected")
    _check_labels(dataset, suffix)
    if path.is_dir():
        raise IsADirectoryError(f"{path} is a folder: give the name of a file to write")
    with replacing(path) as temporary:
        rows = writers[suffix](dataset, temporary)
    missing = int((dataset["status"] == MISSING).sum())
    return rows, missing


def _check_labels(dataset, suffix):
    """Raise a ValueError for labels that would not read back as they are."""
    problems = []
    for dim in dataset.dims:
        labels = dataset[dim].values.tolist()
        if dataset[dim].dtype.kind in "iufb":
            continue
        if not all(isinstance(label, str) for label in labels):
            problems.append(f"the labels of {dim} are neither all texts nor all numbers")
        elif suffix == ".csv" and dim in sweep_dims(dataset):
            text = pd.DataFrame({dim: labels}).to_csv(index=False)
            found = pd.read_csv(io.StringIO(text), skip_blank_lines=False)[dim].tolist()
            lost = [label for label, read in zip(labels, found, strict=True) if label != read]
            if lost:
                words = ", ".join(f'"{label}"' for label in lost)
                problems.append(
                    f"programs that read CSV take the labels {words} of {dim} for numbers or for "
                    "missing: export to .parquet or .nc"
                )
    if problems:
        raise ValueError("; ".join(problems) + "; or give other labels by .assign_coords")


def _write_csv(dataset, path):
    rows = 0
    with open(path, "x", encoding="utf-8", newline="") as file:
        for columns in _tables(dataset):
            pd.DataFrame(columns).to_csv(file, index=False, header=file.tell() == 0)
            rows += len(columns["n"])
    return rows


def _write_parquet(dataset, path):
    import pyarrow as pa  # of the extra export
    import pyarrow.parquet as pq  # of the same extra

    rows, writer = 0, None
    for columns in _tables(dataset):
        schema = pa.schema(
            [
                (name, pa.string() if c.dtype == object else pa.from_numpy_dtype(c.dtype))
                for name, c in columns.items()
            ]
        )
        writer = writer or pq.ParquetWriter(path, schema, compression="zstd")
        writer.write_table(pa.table(columns, schema))
        rows += len(columns["n"])
    writer.close()
    return rows


class _NetcdfFile(io.FileIO):
    """A file for HDF5, which ends the process if a write fails: `error` keeps the first one."""

    error = None

    def write(self, data):
        left = memoryview(data)
        with self._keeping():
            while left and not self.error:
                left = left[super().write(left) :]
        self.seek(len(left), io.SEEK_CUR)
        return len(data)

    def truncate(self, size=None):
        with self._keeping():
            return super().truncate(size)

    @contextmanager
    def _keeping(self):
        try:
            yield
        except OSError as error:
            self.error = self.error or error


def _write_netcdf(dataset, path):
    dataset = dataset.drop_encoding()
    dataset.attrs = _attributes(dataset.attrs)
    for values in dataset.variables.values():
        values.attrs = _attributes(values.attrs)
    texts = [name for name, values in dataset.variables.items() if values.dtype.kind in "OUT"]
    # Each as one array: Dask would load them twice, to find out the kind of their objects.
    loaded = {name: dataset[name].copy(data=_plain(dataset[name].values)) for name in texts}
    encoding = {name: {"zlib": True, "complevel": 1} for name in dataset.data_vars}
    for name, values in dataset.variables.items():
        if name in loaded:
            encoding[name] = {}
        elif values.dtype.kind in "iu":
            encoding[name] = encoding.get(name, {}) | {"_FillValue": None}
    with dask.config.set(scheduler="single-threaded"), _NetcdfFile(path, "x+") as file:
        chunked = dataset.chunk(_steps(dataset)).assign(loaded)
        chunked.to_netcdf(file, engine="h5netcdf", encoding=encoding)
        if file.error:
            raise file.error
    return dataset["mmd"].size


def _steps(dataset):
    """Labels per block of each dimension of the sweep: whole cells, BLOCK_BYTES in all."""
    dims = sweep_dims(dataset)
    each = 8 * sum(
        math.prod(dataset.sizes[dim] for dim in values.dims if dim not in dims)
        for values in dataset.data_vars.values()
    )
    room = max(1, BLOCK_BYTES // each)
    steps = {}
    for dim in reversed(dims):
        steps[dim] = min(dataset.sizes[dim], room)
        room = max(1, room // steps[dim])
    return {dim: steps[dim] for dim in dims}


def _tables(dataset):
    """The table of a dataset, a block of cells at a time, as columns: name to array."""
    steps = _steps(dataset)
    for corner in product(*(range(0, dataset.sizes[dim], step) for dim, step in steps.items())):
        block = {d: slice(i, i + steps[d]) for d, i in zip(steps, corner, strict=True)}
        yield _table(dataset.isel(block).load())


def _table(part):
    dims = (*sweep_dims(part), "seed")
    status = part["status"].transpose(*dims).values
    there = (status != MISSING) & (status != DOES_NOT_APPLY)
    size = part.sizes["n"]
    columns = {
        dim: np.repeat(_plain(part[dim].values)[index], size)
        for dim, index in zip(dims, np.nonzero(there), strict=True)
    }
    columns["n"] = np.tile(part["n"].values, there.sum())
    words = np.array([STATUS[value] for value in status[there].tolist()], dtype=object)
    columns["status"] = np.repeat(words, size)
    for name, values in _columns(part):
        own = values.transpose(*dims, ...).values[there]
        own = own.reshape(-1) if "n" in values.dims else np.repeat(own, size)
        columns[name] = _plain(own)
    ends = ends_of_sweeps(part.attrs)
    if not ends or "rank_reached" not in columns:
        return columns
    # A shorter sweep that was merged has no trial of more points than its n.
    rank = columns["rank_reached"]
    asked = (columns["n"] <= rank) | ~np.isin(rank, list(ends))
    return {name: values[asked] for name, values in columns.items()}


def _plain(values):
    """Numbers as they are, texts as Python's strings."""
    if values.dtype.kind not in "OUT":
        return values
    texts = values.astype(object)
    texts[np.equal(texts, None)] = ""
    return texts


def _attributes(attributes):
    """Attributes as a NetCDF file can hold them; :func:`export` states the rule."""
    return {name: _attribute(value) for name, value in attributes.items() if value is not None}


def _attribute(value):
    several = isinstance(value, list | tuple | np.ndarray)
    plain = value.tolist() if isinstance(value, np.ndarray | np.generic) else value
    items = np.ravel(np.array(plain, dtype=object)).tolist() if several else [plain]
    if all(isinstance(item, str) and "\0" not in item for item in items):
        return plain
    if all(type(item) is float or (type(item) is int and abs(item) < 2**63) for item in items):
        return plain
    if several or isinstance(plain, bool | dict | str):
        return json.dumps(plain, default=str)
    return str(plain)


def _columns(part):
    """Name and values of each column of a table; values are over the trial, and maybe n."""
    dims = (*sweep_dims(part), "seed")
    for name, values in part.data_vars.items():
        if name == "status":
            continue
        lacking = {dim: part[dim] for dim in dims if dim not in values.dims}
        values = values.expand_dims(lacking)
        others = [dim for dim in values.dims if dim not in (*dims, "n")]
        column = {"points": "point", "weights": "weight"}.get(name, name)
        for labels in product(*(part[dim].values.tolist() for dim in others)):
            chosen = dict(zip(others, labels, strict=True))
            yield "_".join(map(str, (column, *labels))), values.sel(chosen, drop=True)
