"""Data files of users: the points that a NumPy, CSV, Parquet or Zarr file holds.

A file is data, never code: it is read once into memory, within limits, and what would run code as
it is read is refused. Sizes that a header claims are checked before anything of that size is made.
"""

import codecs
import inspect
import io
import math
import os
import warnings
from difflib import get_close_matches

import numpy as np

from bqlib.sweep.datapoints import (
    MOST_ROWS,
    NO_NAMES,
    DataFileError,
    chosen,
    listed,
    points_of,
    quoted,
    read_bytes,
    refuse_array,
    refuse_not_finite,
    refuse_size,
)
from bqlib.sweep.zarrfile import read_zarr

BLANK = "begins with a blank line: its first row must name the columns"
FORMATS = (".npy", ".csv", ".parquet", ".zarr")


def read_points(path, columns=None):
    """The points that a data file holds.

    Parameters
    ----------
    path : str
        Of a ``.npy``, ``.csv`` or ``.parquet`` file, or of a ``.zarr`` folder or a group in one.
    columns : list of str, optional
        Names of the columns or variables that are the coordinates, in this order. Default: all,
        those of a table in its order and variables by their names. Refused of arrays, which have
        no names.

    Returns
    -------
    ndarray, shape (M, d)
        In float64, finite, without negative zeros. Of an array of three dimensions, such as
        (chains, draws, d), one chain after the other.

    Raises
    ------
    DataFileError

    Notes
    -----
    Takes the file's size and that of the points in memory, and for tables a few times that.
    """
    try:
        array = _READERS[format_of(path)](path, columns)
    except DataFileError as error:
        raise DataFileError(f"{path} {error}", error.key) from None
    except FileNotFoundError:
        raise DataFileError(f"there is no file {path}{_hint(path)}") from None
    except (OSError, ValueError, OverflowError) as error:
        told = getattr(error, "strerror", None) or " ".join(str(error).split())
        raise DataFileError(f"{path} cannot be read: {told}") from None
    except MemoryError:
        raise DataFileError(f"{path} cannot be read: it does not fit into memory") from None
    return array + 0.0


def format_of(path):
    """The suffix by which a file is read."""
    suffix = os.path.splitext(path)[1]
    if suffix not in FORMATS and ".zarr/" in path:
        return ".zarr"
    if suffix not in FORMATS:
        raise DataFileError(f"must end with {', '.join(FORMATS)}, which says how to read it")
    return suffix


def _hint(path):
    """What may help where there is no such file."""
    if "~" in path:
        return ": ~ is not replaced, so write the whole path"
    folder, name = os.path.split(path)
    try:
        names = [other for other in os.listdir(folder) if os.path.splitext(other)[1] in FORMATS]
    except (OSError, ValueError):  # a zero byte, say
        return ""
    near = get_close_matches(name, names, n=1)
    return f'; did you mean "{near[0]}"?' if near else ""


def _whole(path):
    """The bytes of a file that is not empty."""
    data = read_bytes(path)
    if not data:
        raise DataFileError("is empty")
    return data


def _read_npy(path, columns):
    data = _whole(path)
    if columns is not None:
        raise DataFileError(NO_NAMES, "columns")
    file = io.BytesIO(data)
    try:
        version = np.lib.format.read_magic(file)
        readers = {
            (1, 0): np.lib.format.read_array_header_1_0,
            (2, 0): np.lib.format.read_array_header_2_0,
        }
        if version not in readers:  # of names of fields alone
            raise DataFileError(f"is of version {version} of the NumPy format: save a plain array")
        shape, _, dtype = readers[version](file)
    except DataFileError:
        raise
    except Exception as error:  # its header is a text of any kind
        told = " ".join(str(error).split())
        raise DataFileError(f"is not a NumPy file: {told}") from None
    refuse_array(dtype, shape)
    if len(data) - file.tell() < math.prod(shape) * dtype.itemsize:
        raise DataFileError("ends too early: it was not copied or written as a whole")
    file.seek(0)
    try:
        array = np.load(file, allow_pickle=False)
    except MemoryError:
        raise
    except Exception as error:  # its header has passed, and may still be a lie
        told = " ".join(str(error).split())
        raise DataFileError(f"is not a NumPy file: {told}") from None
    return points_of(array)


def _read_csv(path, columns):
    data = _whole(path).rstrip(b" \t\r\n")  # only at the end may lines be blank
    import pandas as pd  # 0.5 s

    def table(**options):
        with warnings.catch_warnings():
            warnings.simplefilter("error")  # of rows that are longer than the header
            warnings.filterwarnings("ignore", ".*float_precision")
            file = io.BytesIO(data)
            always = {"encoding": "utf-8-sig", "index_col": False, "skip_blank_lines": False}
            return pd.read_csv(file, **always, **options)

    try:
        head = table(header=None, nrows=1, dtype=str, keep_default_na=False)
        names = head.iloc[0].tolist()
        _refuse_head(names, columns)
        # Pandas 4 is to have no such option, and to read all digits.
        exact = "float_precision" in inspect.signature(pd.read_csv).parameters
        options = {"float_precision": "round_trip"} if exact else {}
        found = table(low_memory=False, nrows=MOST_ROWS + 1, **options)
    except UnicodeDecodeError:
        raise DataFileError("is not text in UTF-8") from None
    except pd.errors.EmptyDataError:
        blank = data.removeprefix(codecs.BOM_UTF8)
        raise DataFileError(BLANK if blank else "is empty") from None
    except (pd.errors.ParserError, pd.errors.ParserWarning) as error:
        told = " ".join(str(error).split()).removeprefix("Error tokenizing data. C error: ")
        raise DataFileError(f"has rows of different lengths: {told}") from None
    taken = chosen(names, columns)
    refuse_size((len(found), len(taken)), "rows")
    points = np.empty((len(found), len(taken)))
    places = {name: place for place, name in enumerate(names)}
    for k, name in enumerate(taken):
        points[:, k] = _numbers_of(found.iloc[:, places[name]], name)
        refuse_not_finite(points[:, k], name)
    return points


def _refuse_head(names, columns):
    """Refuse a first row that does not name the columns."""

    def is_number(text):
        try:
            return math.isfinite(float(text))
        except ValueError:
            return False

    if [name.strip() for name in names] == [""]:
        raise DataFileError(BLANK)
    if any(mark in name for name in names for mark in ";\t"):
        raise DataFileError("must have its columns separated by commas")
    if all(map(is_number, names)):
        raise DataFileError(
            "has only numbers in its first row, which must name the columns: add this row"
        )
    if columns is None and "" in names:
        raise DataFileError(
            f"has no name for column {names.index('') + 1}, which may be an index: write the "
            "table without its index (index=False), or name the coordinates with columns",
        )


def _numbers_of(column, name):
    """A column of a table of pandas as numbers; its first other cell is told."""
    import pandas as pd  # 0.5 s, and loaded by now

    if pd.api.types.is_bool_dtype(column):
        raise DataFileError(f"column {quoted(name)} holds true and false, and not numbers")
    if pd.api.types.is_numeric_dtype(column):
        return column.to_numpy(dtype=float)
    numbers = pd.to_numeric(column, errors="coerce").astype(float)
    wrong = (numbers.isna() & column.notna()).to_numpy()
    if wrong.any():
        row = int(np.argmax(wrong))
        cell = str(column.iloc[row])
        raise DataFileError(
            f"column {quoted(name)}, row {row + 1}: {quoted(cell[:40])} is not a number (the "
            "first is row 1): name the columns of numbers with columns"
        )
    return numbers.to_numpy()


def _index_of(types):
    """The columns of a Parquet file that were the index of a table of pandas."""
    try:
        named = [name for name in types.pandas_metadata["index_columns"] if isinstance(name, str)]
    except Exception:  # none, or a text of any kind
        named = []
    return [name for name in types.names if name in named or name.startswith("__index_level_")]


def _read_parquet(path, columns):
    data = _whole(path)
    try:
        import pyarrow as pa  # 0.1 s, and an extra
        import pyarrow.parquet as pq
    except ImportError:
        raise DataFileError(
            "needs pyarrow, which is not installed: pip install 'bqlib[export]', or save the table "
            "as .csv"
        ) from None
    try:
        file = pq.ParquetFile(pa.BufferReader(data))
        types = file.schema_arrow
        if columns is None and (index := _index_of(types)):
            raise DataFileError(
                f"holds the index of its table, {listed(index)}: write it without (index=False), "
                "or name the coordinates with columns"
            )
        taken = chosen(types.names, columns)
        for name in taken:
            kind = types.field(name).type
            if not (pa.types.is_integer(kind) or pa.types.is_floating(kind)):
                raise DataFileError(
                    f"column {quoted(name)} is of type {kind}, and not of numbers: name the "
                    "columns of numbers with columns"
                )
        shape = (file.metadata.num_rows, len(taken))
        refuse_size(shape, "rows")
        points = np.empty(shape)
        for k, name in enumerate(taken):  # one after the other, as each takes memory
            read = file.read(columns=[name]).column(name)
            points[:, k] = read.to_numpy().astype(float)
            refuse_not_finite(points[:, k], name)
    except pa.ArrowException as error:
        told = " ".join(str(error).split())
        raise DataFileError(f"is not a Parquet file, or it is damaged: {told}") from None
    return points


_READERS = {".npy": _read_npy, ".csv": _read_csv, ".parquet": _read_parquet, ".zarr": read_zarr}
