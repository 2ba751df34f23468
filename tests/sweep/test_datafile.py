"""Data files of users: what is taken of each format, and what is refused in which words."""

import builtins
import os
import pickle
import sys

import numpy as np
import pandas as pd
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
import zarr

from bqlib.sweep.datafile import FORMATS, read_points
from bqlib.sweep.datapoints import DataFileError

POINTS = np.random.default_rng(0).normal(size=(6, 2)) * [1, 1e-300]
TABLE = pd.DataFrame(POINTS, columns=["alpha", "beta"])


def told(path, columns=None):
    """What is wrong with a file, without its folder."""
    with pytest.raises(DataFileError) as caught:
        read_points(str(path), columns)
    return str(caught.value).replace(f"{path.parent}{os.sep}", "")


def csv(folder, text):
    path = folder / "draws.csv"
    path.write_bytes(text if isinstance(text, bytes) else text.encode())
    return path


def test_all_formats_give_the_same_bits(tmp_path):
    np.save(tmp_path / "draws.npy", POINTS)
    TABLE.to_csv(tmp_path / "draws.csv", index=False)
    TABLE.to_parquet(tmp_path / "draws.parquet")
    zarr.save_array(tmp_path / "draws.zarr", POINTS)
    for suffix in FORMATS:
        found = read_points(str(tmp_path / f"draws{suffix}"))
        assert found.dtype == float and np.array_equal(found, POINTS), suffix
    for suffix in (".csv", ".parquet"):
        found = read_points(str(tmp_path / f"draws{suffix}"), ["beta", "alpha"])
        assert np.array_equal(found, POINTS[:, ::-1])


def test_a_file_that_is_not_there_or_of_no_format_is_named(tmp_path):
    np.save(tmp_path / "draws.npy", POINTS)
    assert told(tmp_path / "drows.npy") == ('there is no file drows.npy; did you mean "draws.npy"?')
    assert told(tmp_path / "x.csv") == "there is no file x.csv"
    assert told(tmp_path / "~" / "draws.npy").endswith("~ is not replaced, so write the whole path")
    assert told(tmp_path / "draws.txt") == (
        "draws.txt must end with .npy, .csv, .parquet, .zarr, which says how to read it"
    )
    os.mkfifo(tmp_path / "pipe.csv")
    assert told(tmp_path / "pipe.csv") == "pipe.csv cannot be read: is not a regular file"
    (tmp_path / "folder.npy").mkdir()
    assert told(tmp_path / "folder.npy") == "folder.npy cannot be read: Is a directory"
    assert "embedded null" in told(tmp_path / "a\0.npy")
    assert told(tmp_path / "x\0" / "y.zarr").startswith("there is no file ")


@pytest.mark.parametrize("suffix", [".npy", ".csv", ".parquet"])
def test_an_empty_file_is_refused(tmp_path, suffix):
    (tmp_path / f"draws{suffix}").touch()
    assert told(tmp_path / f"draws{suffix}") == f"draws{suffix} is empty"


# --- NumPy


def test_numpy_arrays_of_numbers_are_taken(tmp_path):
    path = tmp_path / "draws.npy"
    for array in (
        np.asfortranarray(POINTS),
        POINTS.astype(">f8"),
        POINTS.astype("f4"),
        np.array([[1, 2], [3, 4]], dtype=np.uint8),
    ):
        np.save(path, array)
        assert np.array_equal(read_points(str(path)), np.asarray(array, dtype=float))
    np.save(path, np.array([[-0.0]]))
    assert not np.signbit(read_points(str(path)))
    np.save(path, POINTS.reshape(2, 3, 2))
    assert np.array_equal(read_points(str(path)), POINTS)
    assert told(path, ["alpha"]).startswith("draws.npy has no names of columns: leave columns out")


class Payload:
    def __reduce__(self):
        return os.mkdir, ("run",)


def test_no_code_of_a_numpy_file_runs(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = tmp_path / "draws.npy"
    np.save(path, np.array([[Payload()]], dtype=object), allow_pickle=True)
    assert told(path) == "draws.npy holds an array of type object, and not of numbers"
    path.write_bytes(pickle.dumps(Payload()))
    assert told(path).startswith("draws.npy is not a NumPy file: ")
    assert not (tmp_path / "run").exists()


def test_a_header_that_lies_sets_no_memory_aside(tmp_path):
    path = tmp_path / "draws.npy"
    for shape, said in (
        ((10**6, 100), "ends too early: it was not copied or written as a whole"),
        ((10**7, 10**9), "holds (10000000, 1000000000) numbers, more than 2 GiB"),
        ((10**12, 1), "holds 1000000000000 points, and the limit is 10000000"),
        ((-1, 2), "holds no values"),
        ((0, 2), "holds no values"),
    ):
        with open(path, "wb") as file:
            header = {"descr": "<f8", "fortran_order": False, "shape": shape}
            np.lib.format.write_array_header_1_0(file, header)
            file.write(bytes(800))
        assert told(path).startswith(f"draws.npy {said}")
    with open(path, "wb") as file:
        header = {"descr": "<f8", "fortran_order": False, "shape": (True, 2)}
        np.lib.format.write_array_header_1_0(file, header)
        file.write(bytes(800))
    assert told(path).startswith("draws.npy is not a NumPy file: ")
    np.save(path, POINTS)
    path.write_bytes(path.read_bytes().replace(b"NUMPY\x01", b"NUMPY\x03"))
    assert "save a plain array" in told(path)


# --- CSV


def test_tables_of_numbers_are_taken(tmp_path):
    text = '\ufeffalpha,"be,ta",gamma\r\n 1.5,2,0\r\n-2e-3,+3,1\r\n\r\n'
    path = csv(tmp_path, text)
    assert read_points(str(path)).tolist() == [[1.5, 2, 0], [-0.002, 3, 1]]
    assert read_points(str(path), ["be,ta", "alpha"]).tolist() == [[2, 1.5], [3, -0.002]]
    path = csv(tmp_path, "x,y\n123456789012345678901234567890,1\n2,3\n")
    assert read_points(str(path))[0, 0] == 1.2345678901234568e29
    for end in ("", "\n", "\n\n\r\n \n\t\n"):
        assert read_points(str(csv(tmp_path, "x\n1\n2" + end))).tolist() == [[1], [2]]
    path = csv(tmp_path, "label,x\nfirst,1\nsecond,2\n")
    assert read_points(str(path), ["x"]).tolist() == [[1], [2]]


@pytest.mark.parametrize(
    "text, columns, said",
    [
        ("x,y\n1,2\n3,abc\n", None, 'column "y", row 2: "abc" is not a number (the first is row 1'),
        ("x,y\n1,2\n3,\n", None, 'column "y", row 2: is missing or NaN (the first is row 1)'),
        ("x,y\n1,2\n3\n", None, 'column "y", row 2: is missing or NaN'),
        ("x,y\n1,nan\n", None, 'column "y", row 1: is missing or NaN'),
        ("x,y\n1,2\n-inf,2\n", None, 'column "x", row 2: is -inf'),
        ("x,y\n1,2\n3,4,5\n", None, "has rows of different lengths: Expected 2 fields in line 3"),
        ("x,y\n1,2,3\n3,4,5\n", None, "has rows of different lengths: "),
        ("x,y\n1,2\n3,4,5\n", ["x"], "has rows of different lengths: "),
        ("x,x\n1,2\n", None, 'has column "x" twice: rename one of them'),
        ("x,x\n1,2\n", ["x"], 'has column "x" twice: rename one of them'),
        ("x,y\n1,2\n", ["z"], 'has no column "z". It has: x, y'),
        (",x\n0,2\n", None, "has no name for column 1, which may be an index: write the table wi"),
        ("1.5,2\n3,4\n", None, "has only numbers in its first row, which must name the columns"),
        ("x;y\n1;2\n", None, "must have its columns separated by commas"),
        ("x\ty\n1\t2\n", None, "must have its columns separated by commas"),
        ("x,y\nTrue,2\nFalse,1\n", None, 'column "x" holds true and false, and not numbers'),
        ("x,y\n", None, "holds no rows"),
        ("\n\n", None, "is empty"),
        ("\ufeff", None, "is empty"),
        ("\nx,y\n1,2\n", None, "begins with a blank line: its first row must name the columns"),
        ("\n\nx\n1\n", ["x"], "begins with a blank line"),
        ("  \nx\n1\n", None, "begins with a blank line"),
        ("x\n1\n\n3\n", None, 'column "x", row 2: is missing or NaN'),
        ('x\n1\n""\n', None, 'column "x", row 2: is missing or NaN'),
        ("x,y\n1,2\n\n3,4\n", None, 'column "x", row 2: is missing or NaN'),
        ("x,y\n1,2\n,\n\n", None, 'column "x", row 2: is missing or NaN'),
        ("x,y\n1,2\n3,abc\n\n", None, 'column "y", row 2: "abc" is not a number'),
        ("x\n1\n  \n3\n", None, 'column "x", row 2: '),
        (b"x,y\n1,\xff\n", None, "is not text in UTF-8"),
        ("x,y\n2020-01-01,1\n", None, 'column "x", row 1: "2020-01-01" is not a number'),
        ('x,y\n1,"2\n', None, "has rows of different lengths: "),
    ],
)
def test_what_is_wrong_with_a_table_is_said(tmp_path, text, columns, said):
    assert told(csv(tmp_path, text), columns).startswith(f"draws.csv {said}")


def test_an_index_without_a_name_is_no_coordinate(tmp_path):
    path = tmp_path / "draws.csv"
    TABLE.to_csv(path)
    assert "(index=False)" in told(path)
    assert np.array_equal(read_points(str(path), ["alpha", "beta"]), POINTS)


# --- Parquet


def test_parquet_columns_of_numbers_are_taken(tmp_path):
    path = tmp_path / "draws.parquet"
    table = pd.DataFrame({"a.b": [1, 2], "c[0]": np.float32([0.5, 2]), "d": ["x", "y"]})
    table.to_parquet(path)
    assert read_points(str(path), ["c[0]", "a.b"]).tolist() == [[0.5, 1], [2, 2]]
    assert told(path) == (
        'draws.parquet column "d" is of type large_string, and not of numbers: name the columns of '
        "numbers with columns"
    )
    assert "It has: a.b, c[0], d" in told(path, ["e"])


@pytest.mark.parametrize(
    "table, said",
    [
        ({"x": [1, None]}, 'column "x", row 2: is missing or NaN'),
        ({"x": pd.array([None, 2], dtype="Int64")}, 'column "x", row 1: is missing or NaN'),
        ({"x": [True, False]}, 'column "x" is of type bool'),
        ({"x": pd.to_datetime(["2020-01-01"])}, 'column "x" is of type timestamp'),
        ({"x": [[1.0], [2.0]]}, 'column "x" is of type list'),
        ({"x": np.empty(0)}, "holds no rows"),
    ],
)
def test_what_is_wrong_with_a_parquet_file_is_said(tmp_path, table, said):
    pd.DataFrame(table).to_parquet(tmp_path / "draws.parquet")
    assert told(tmp_path / "draws.parquet").startswith(f"draws.parquet {said}")


def test_a_damaged_parquet_file_is_refused(tmp_path):
    path = tmp_path / "draws.parquet"
    TABLE.to_parquet(path)
    whole = path.read_bytes()
    rng = np.random.default_rng(0)
    for data in (b"PAR1", whole[:-20], bytes(len(whole)), whole[:40] + rng.bytes(len(whole) - 40)):
        path.write_bytes(data)
        assert told(path).startswith("draws.parquet ")


def test_the_index_of_a_parquet_file_is_no_coordinate(tmp_path):
    TABLE[TABLE.alpha > 0].to_parquet(tmp_path / "draws.parquet")
    assert told(tmp_path / "draws.parquet") == (
        "draws.parquet holds the index of its table, __index_level_0__: write it without "
        "(index=False), or name the coordinates with columns"
    )


def test_a_named_index_of_a_parquet_file_is_no_coordinate(tmp_path):
    path = tmp_path / "draws.parquet"
    TABLE.set_index(pd.Index([3, 1, 4, 1, 5, 9], name="step")).to_parquet(path)
    assert "holds the index of its table, step: write it without" in told(path)
    assert read_points(str(path), ["step", "alpha"])[:, 0].tolist() == [3, 1, 4, 1, 5, 9]
    assert np.array_equal(read_points(str(path), ["alpha", "beta"]), POINTS)
    for text in (b"{", b"[]", b'{"index_columns": 3}', b'{"index_columns": [[], {}]}'):
        table = pa.table(TABLE).replace_schema_metadata({b"pandas": text})
        pq.write_table(table, path)
        assert np.array_equal(read_points(str(path)), POINTS)


def test_parquet_without_pyarrow_says_what_to_install(tmp_path, monkeypatch):
    TABLE.to_parquet(tmp_path / "draws.parquet")
    monkeypatch.setitem(sys.modules, "pyarrow", None)
    assert told(tmp_path / "draws.parquet") == (
        "draws.parquet needs pyarrow, which is not installed: pip install 'bqlib[export]', or save "
        "the table as .csv"
    )


def test_arrays_need_no_library_of_tables(tmp_path, monkeypatch):
    np.save(tmp_path / "draws.npy", POINTS)
    load = builtins.__import__

    def only_ours(name, *arguments):
        assert name.partition(".")[0] not in ("pandas", "pyarrow", "zarr", "xarray")
        return load(name, *arguments)

    monkeypatch.setattr(builtins, "__import__", only_ours)
    assert np.array_equal(read_points(str(tmp_path / "draws.npy")), POINTS)


def test_what_does_not_fit_into_memory_is_said(tmp_path, monkeypatch):
    np.save(tmp_path / "draws.npy", POINTS)

    def full(*arguments, **options):
        raise MemoryError

    monkeypatch.setattr(np, "load", full)
    assert told(tmp_path / "draws.npy").endswith("cannot be read: it does not fit into memory")
