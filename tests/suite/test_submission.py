"""Submissions as files: read and written. All that is in them is data."""

import os
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import submitted
from submitted import numbers, put, rows, said, sets_of, tree_of

from bqlib.suite import about as about_file
from bqlib.suite import table
from bqlib.suite.mistakes import SubmissionError
from bqlib.suite.submission import read_submission, write_submission
from bqlib.sweep.problems import problems


def test_a_submission_reads_back_as_it_was_written(own):
    found = read_submission(own)
    assert found.about.model_dump() == submitted.ABOUT | {"weights": "own"}
    assert list(found.sets) == [n for n in problems() if n in found.sets]  # in the suite's order
    assert found.seeds == 2
    for name, seed, points, weights in sets_of(True):
        own_set = found.sets[name][seed][len(points)]
        np.testing.assert_array_equal(own_set.points, points)
        np.testing.assert_array_equal(own_set.weights, weights)
        assert rows(own)[own_set.line - 1].startswith(f"{name},{seed},{len(points)},1,")


def test_the_order_of_sets_does_not_matter(own):
    before = numbers(read_submission(own))
    head, *lines, _ = rows(own)
    starts = [i for i, line in enumerate(lines) if line.split(",")[3] == "1"]
    sets = [lines[a:b] for a, b in zip(starts, [*starts[1:], len(lines)], strict=True)]
    put(own, [head, *(line for one in reversed(sets) for line in one), ""])
    assert numbers(read_submission(own)) == before


def test_a_byte_order_mark_and_other_ends_of_lines_are_taken(own):
    before = numbers(read_submission(own))
    for name in ("submission.json", "points.csv"):
        data = (own / name).read_bytes()
        (own / name).write_bytes(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"))
    assert numbers(read_submission(own)) == before
    (own / "points.csv").write_bytes((own / "points.csv").read_bytes().removesuffix(b"\r\n"))
    assert numbers(read_submission(own)) == before


def replaced(folder, name, how):
    os.unlink(folder / name)
    how(folder / name)


def test_a_link_is_not_followed(own, tmp_path):
    secret = tmp_path / "secret"
    for name in ("submission.json", "points.csv"):
        data = (own / name).read_bytes()
        secret.write_bytes(data)
        replaced(own, name, lambda path: path.symlink_to(secret))
        assert said(own) == (f"{name}: is a link: put the file itself there",)
        replaced(own, name, lambda path: path.symlink_to("/dev/zero"))
        assert said(own) == (f"{name}: is a link: put the file itself there",)
        replaced(own, name, lambda path, data=data: path.write_bytes(data))
    assert read_submission(own).sets


def test_what_is_no_file_is_refused_at_once(own):
    for how in (os.mkfifo, Path.mkdir):
        data = (own / "points.csv").read_bytes()
        replaced(own, "points.csv", how)
        assert said(own) == ("points.csv: is not a regular file",)
        (os.rmdir if how is Path.mkdir else os.unlink)(own / "points.csv")
        (own / "points.csv").write_bytes(data)
    os.unlink(own / "points.csv")
    assert said(own) == ("points.csv: is missing",)
    os.unlink(own / "submission.json")
    assert said(own) == ("submission.json: is missing", "points.csv: is missing")


def test_a_folder_that_is_none_is_an_error_of_the_system(own):
    with pytest.raises(FileNotFoundError):
        read_submission(own / "nowhere")
    with pytest.raises(NotADirectoryError):
        read_submission(own / "points.csv")


def test_files_beyond_the_limits_are_not_read(own):
    os.truncate(own / "submission.json", about_file.MOST_BYTES + 1)
    os.truncate(own / "points.csv", table.MOST_BYTES + 1)
    assert said(own) == (
        "submission.json: has 65,537 bytes; the limit is 65,536",
        "points.csv: has 200,000,001 bytes; the limit is 200,000,000",
    )


# Prints what was refused and the peak of memory in MB; getrusage may tell that of the parent.
LARGE = """
import re, sys
from bqlib.suite.mistakes import SubmissionError
from bqlib.suite.submission import read_submission, shapes_of_suite
shapes_of_suite()
try:
    read_submission(sys.argv[1])
except SubmissionError as error:
    print(error.problems[0])
print(int(re.search(r"VmHWM:\\s*(\\d+) kB", open("/proc/self/status").read())[1]) // 1024)
"""


@pytest.mark.parametrize(
    ("fill", "expected"),
    [
        (lambda file: os.truncate(file, table.MOST_BYTES), "points.csv:2: is longer than 4096"),
        (
            lambda file: file.write_bytes(b"\n" * table.MOST_BYTES),
            "points.csv: has more than 3,000,000 rows, which is the limit",
        ),
        (
            lambda file: file.write_text(submitted.HEAD + ("\n" + "," * 6) * 400_000),
            'points.csv:2: column problem: "" is no problem',
        ),
    ],
    ids=["one line", "blank lines", "empty cells"],
)
def test_large_tables_are_refused_within_a_gigabyte(fill, expected, own):
    put(own, [submitted.HEAD, ""])
    fill(own / "points.csv")
    done = subprocess.run(
        [sys.executable, "-c", LARGE, str(own)], capture_output=True, text=True, check=True
    )
    problem, peak = done.stdout.strip().split("\n")
    assert problem.startswith(expected)
    assert int(peak) < 1000


def test_nothing_is_written_that_could_not_be_scored(tmp_path):
    with pytest.raises(SubmissionError, match=r'points\.csv:3: column x_1: "nan" is not a number'):
        submitted.write(tmp_path / "a", [("box_1d_brownian", 0, [[0.5], [np.nan]])])
    with pytest.raises(SubmissionError, match='unknown kind "sets"'):
        submitted.write(tmp_path / "a", [], kind="sets")
    with pytest.raises(ValueError, match="each set must have one weight for each point"):
        submitted.write(tmp_path / "a", [("box_1d_brownian", 0, [[0.5]], [0.5])])
    with pytest.raises(ValueError, match=r"have shape \(1,\); they must have shape \(n, d\)"):
        submitted.write(tmp_path / "a", [("box_1d_brownian", 0, [0.5])])
    with pytest.raises(TypeError, match="problem box_1d_brownian, seed 0 must hold real numbers"):
        submitted.write(tmp_path / "a", [("box_1d_brownian", 0, [[0.5 + 0.1j]])])
    sets = [("box_1d_brownian", seed, np.full((3, 1), 0.5)) for seed in range(2)]
    sets.append(("normal_1d_matern12", 0, [[0.5], [1e60]]))
    with pytest.raises(SubmissionError, match=r"\(problem normal_1d_matern12, seed 0, 2 points\)$"):
        submitted.write(tmp_path / "a", sets)
    assert not (tmp_path / "a").exists()


def test_nothing_is_replaced(own, tmp_path):
    before = tree_of(tmp_path)
    with pytest.raises(FileExistsError, match=r"submission\.json is there already"):
        submitted.write(own, sets_of(True), weights="own")
    assert tree_of(tmp_path) == before
    (tmp_path / "link").mkdir()
    (tmp_path / "link" / "points.csv").symlink_to(tmp_path / "elsewhere")
    with pytest.raises(FileExistsError, match=r"points\.csv is there already"):
        submitted.write(tmp_path / "link", sets_of(False))
    assert not (tmp_path / "elsewhere").exists()


def test_what_was_read_can_be_written_again(own, tmp_path):
    found = read_submission(own)
    sets = [
        (name, seed, one.points, one.weights)
        for name, seeds in found.sets.items()
        for seed, sets in seeds.items()
        for one in sets.values()
    ]
    again = write_submission(tmp_path / "again", found.about, sets)
    assert numbers(again) == numbers(found)
    assert again.about == found.about
