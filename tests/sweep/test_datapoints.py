import os

import numpy as np
import pytest

from bqlib.sweep import datapoints
from bqlib.sweep.datapoints import (
    DataFileError,
    chosen,
    points_of,
    read_bytes,
    refuse_array,
    refuse_not_finite,
    refuse_size,
)


def test_only_regular_files_within_the_limit_are_read(tmp_path):
    file, pipe = tmp_path / "file", tmp_path / "pipe"
    file.write_bytes(b"x" * 11)
    (tmp_path / "link").symlink_to("file")
    assert read_bytes(file, 11) == read_bytes(tmp_path / "link") == b"x" * 11
    with pytest.raises(DataFileError, match="has more than 2 GiB, which is the limit"):
        read_bytes(file, 10)
    os.mkfifo(pipe)
    for path in (pipe, "/dev/zero"):
        with pytest.raises(OSError, match="is not a regular file"):
            read_bytes(path)
    with pytest.raises(OSError, match="symbolic link"):
        read_bytes(tmp_path / "link", flags=os.O_NOFOLLOW)


def test_a_file_that_grows_is_refused(tmp_path, monkeypatch):
    (tmp_path / "file").write_bytes(b"x" * 11)
    found = os.stat_result((0o100644, *[0] * 5, 5, 0, 0, 0))
    monkeypatch.setattr(datapoints.os, "fstat", lambda _: found)
    with pytest.raises(DataFileError, match="grew while it was read: give a file that nobody"):
        read_bytes(tmp_path / "file")


@pytest.mark.parametrize(
    "shape, told",
    [
        ((0, 2), r"holds no rows: its shape is \(0, 2\)"),
        ((2, 0), "holds no rows"),
        ((-2, 2), "holds no rows"),
        ((10_000_001, 1), "holds 10000001 points, and the limit is 10000000"),
        ((4, 5_000_000, 1), "holds 20000000 points"),
        ((1_000_000, 1000), r"holds \(1000000, 1000\) numbers, more than 2 GiB"),
    ],
)
def test_sizes_beyond_the_limits_are_refused(shape, told):
    with pytest.raises(DataFileError, match=told):
        refuse_size(shape, "rows")


def test_arrays_of_one_to_three_dimensions_are_points():
    cube = np.arange(12).reshape(2, 3, 2)
    assert np.array_equal(points_of(cube), cube.reshape(6, 2))  # one chain after the other
    assert np.array_equal(points_of(cube[0]), cube[0])
    assert points_of(cube[0, :, 0]).shape == (3, 1)
    for shape in ((), (2, 2, 2, 2)):
        with pytest.raises(DataFileError, match=r"it must be \(M, d\), \(M\) for points on the"):
            refuse_array(np.dtype(float), shape)


@pytest.mark.parametrize("kind", ["O", "c16", "bool", "U3", "M8[s]", [("x", "f8")]])
def test_arrays_of_no_numbers_are_refused(kind):
    with pytest.raises(DataFileError, match="and not of numbers"):
        refuse_array(np.dtype(kind), (2, 2))


def test_values_that_are_not_finite_are_named():
    with pytest.raises(DataFileError, match=r"holds nan at index \[1, 0\]: remove this point"):
        points_of(np.array([[0.0, 1.0], [np.nan, 2.0]]))
    with pytest.raises(DataFileError, match=r"holds inf at index \[1\]"):
        points_of(np.array([0.0, np.finfo(np.longdouble).max]))
    with pytest.raises(DataFileError, match='column "x", row 2: is missing or NaN'):
        refuse_not_finite(np.array([0.0, np.nan, np.inf]), "x")
    with pytest.raises(DataFileError, match='column "x", row 1: is -inf'):
        refuse_not_finite(np.array([-np.inf]), "x")


def test_columns_are_chosen_by_name():
    assert chosen(["a", "b"], None) == ["a", "b"]
    assert chosen(["a", "b", "c", "c"], ["b", "a"]) == ["b", "a"]
    with pytest.raises(DataFileError, match='has column "c" twice') as caught:
        chosen(["a", "c", "c"], None)
    assert caught.value.key == "file"
    with pytest.raises(DataFileError, match="has no columns"):
        chosen([], None)
    with pytest.raises(DataFileError, match='has column "c" twice'):
        chosen(["a", "c", "c"], ["c"])
    with pytest.raises(DataFileError) as caught:
        chosen(["alpha", "beta"], ["bta"])
    assert str(caught.value) == 'has no column "bta"; did you mean "beta"? It has: alpha, beta'
    assert caught.value.key == "columns"
    with pytest.raises(DataFileError, match="c18, c19 and 5 more"):
        chosen([f"c{i}" for i in range(25)], ["zzz"])


def test_columns_beside_the_parameters_are_taken_only_by_name():
    names = ["a", "chain", "lp__"]
    with pytest.raises(
        DataFileError, match=r"has the columns chain, lp__, which are no parameters"
    ):
        chosen(names, None)
    assert chosen(names, ["a", "lp__"]) == ["a", "lp__"]
    assert chosen(["a", "b"], None) == ["a", "b"]
