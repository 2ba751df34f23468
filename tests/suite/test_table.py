"""The table points.csv: what is wrong with it, by its rows."""

import re

import numpy as np
import pytest
import submitted
from submitted import change, put, rows, said

from bqlib.suite import table
from bqlib.suite.mistakes import MOST_SHOWN, SubmissionError
from bqlib.suite.submission import read_submission, shapes_of_suite

# What to replace in which line of a table, and what must be said of it. Line 2 is
# box_1d_brownian,0,3,1,x,,w and line 18 normal_2d_eq,0,3,1,x,y,w.
CELLS = [
    (2, 0, "box_9d", 'points.csv:2: column problem: "box_9d" is no problem of the suite'),
    (2, 0, "../../etc/passwd", 'column problem: "../../etc/passwd" is no problem'),
    (2, 0, "/etc/passwd", 'column problem: "/etc/passwd" is no problem'),
    (2, 0, "", 'points.csv:2: column problem: "" is no problem'),
    (2, 0, " box_1d_brownian", '" box_1d_brownian" is no problem'),
    (2, 0, "box_1d_brownian@1", '@1" is no problem of the suite; did you mean "box_1d_brownian"?'),
    (2, 0, "box2d_eq", 'did you mean "box_2d_eq"?'),
    (2, 0, "\x1b[2Jbox", '"\\x1b[2Jbox" is no problem'),
    (2, 0, "é", '"\\xc3\\xa9" is no problem'),
    (
        2,
        1,
        "100",
        'points.csv:2: column seed: "100" is not allowed; it must be a whole number from',
    ),
    (2, 1, "-1", 'column seed: "-1" is not allowed'),
    (2, 1, "0.0", 'column seed: "0.0" is not allowed'),
    (2, 1, "00", 'column seed: "00" is not allowed'),
    (2, 1, "", 'column seed: "" is not allowed'),
    (2, 1, "0" * 50, "column seed: "),
    (2, 2, "129", 'column n: "129" is not allowed; it must be a whole number from 1 to 128'),
    (2, 2, "0", 'column n: "0" is not allowed'),
    (2, 2, "٣", "column n: "),
    (2, 3, "0", 'points.csv:2: column index: "0" is not allowed'),
    (2, 3, "2", "points.csv:2: column index: is 2, but 1 must follow"),
    (2, 3, "4", 'column index: "4" is not allowed; it must be a whole number from 1 to 3'),
    (2, 3, "1e0", 'column index: "1e0" is not allowed'),
    (3, 3, "1", "points.csv:3: column index: is 1, but 2 must follow"),
    (2, 4, "", "points.csv:2: column x_1: is empty; it must be a number"),
    (2, 4, "nan", 'points.csv:2: column x_1: "nan" is not a number such as 0.25'),
    (2, 4, "NaN", 'column x_1: "NaN" is not a number'),
    (2, 4, "inf", 'column x_1: "inf" is not a number'),
    (2, 4, "-Infinity", 'column x_1: "-Infinity" is not a number'),
    (2, 4, "0x1p-2", 'column x_1: "0x1p-2" is not a number'),
    (2, 4, "1_0", 'column x_1: "1_0" is not a number'),
    (2, 4, "٠.5", "column x_1: "),
    (2, 4, "\uff11", "column x_1: "),
    (2, 4, "0,5", "has 8 cells, but the table has 7 columns; numbers have a decimal point"),
    (2, 4, "0.5 ", 'column x_1: "0.5 " is not a number'),
    (2, 4, "--1", 'column x_1: "--1" is not a number'),
    (2, 4, ".", 'column x_1: "." is not a number'),
    (2, 4, "1e", 'column x_1: "1e" is not a number'),
    (2, 4, "1d3", 'column x_1: "1d3" is not a number'),
    (2, 4, "True", 'column x_1: "True" is not a number'),
    (2, 4, "=1+1", 'column x_1: "=1+1" is not a number'),
    (2, 4, "__import__('os').system('id')", "column x_1: "),
    (2, 4, "1e999", "points.csv:2: column x_1: is inf; it must lie between -1e50 and 1e50"),
    (2, 4, "0." + "1" * 63, "column x_1: "),
    (2, 4, "1" * 5000, "points.csv:2: is longer than 4096 bytes"),
    (2, 4, '"0.5"', "points.csv:2: has quotes: write the table without them"),
    (2, 4, '"0.5\n', "points.csv:2: has quotes"),
    (2, 4, "0.5\r", "points.csv:2: column x_1: "),
    (2, 4, "0.5\0", "points.csv:2: column x_1: "),
    (2, 4, "1.5", "points.csv:2: column x_1: 1.5 lies outside [0, 1], where the kernel of problem"),
    (2, 4, "-1e-9", "points.csv:2: column x_1: -1e-09 lies outside [0, 1]"),
    (2, 5, "0", 'points.csv:2: column x_2: "0" must be empty, as problem box_1d_brownian has 1'),
    (2, 6, "", "points.csv:2: column weight: is empty; it must be a number"),
    (2, 6, "nan", 'column weight: "nan" is not a number'),
    (2, 6, "1e51", "points.csv:2: column weight: is 1e+51; it must lie between"),
    (18, 5, "", "points.csv:18: column x_2: is empty; it must be a number"),
    (18, 5, "1e51", "points.csv:18: column x_2: is 1e+51"),
]


@pytest.mark.parametrize(("line", "column", "cell", "expected"), CELLS)
def test_a_wrong_cell_is_told(line, column, cell, expected, own):
    lines = rows(own)
    cells = lines[line - 1].split(",")
    cells[column] = cell
    put(own, [*lines[: line - 1], ",".join(cells), *lines[line:]])
    problems = said(own)
    assert any(expected in text for text in problems), problems


@pytest.mark.parametrize(
    ("points", "allowed"), [("box_2d_eq", True), ("box_1d_korobov1", False), ("rings_eq", True)]
)
def test_points_are_refused_only_where_the_kernel_is_not_defined(points, allowed, tmp_path):
    far = [[7.0] * shapes_of_suite()[points][0]]
    if allowed:
        assert submitted.write(tmp_path, [(points, 0, far)]).sets
        return
    with pytest.raises(SubmissionError, match=r"7\.0 lies outside \[0, 1\]"):
        submitted.write(tmp_path, [(points, 0, far)])
    assert not list(tmp_path.iterdir())  # nothing was written


HEAD = submitted.HEAD
HEADS = [
    ("", "points.csv:1: is empty: the columns must be problem, seed, n, index, x_1, x_2, ..."),
    ("problem,seed,n,index,x_1,x_1,weight", 'has the column "x_1" twice'),
    ("seed,problem,n,index,x_1,x_2,weight", 'column 1 is "seed": the columns must be'),
    ("problem,seed,n,index,x_1,x_2", 'has no last column "weight", but the weights are your own: '),
    ("problem,seed,n,index,x_2,x_1,weight", 'column 5 is "x_2"'),
    ("problem,seed,n,index,x_1,x_2,Weight", 'column 7 is "Weight"'),
    ("problem,seed,n,x_1,x_2,weight", 'column 4 is "x_1"'),
    ('"problem",seed,n,index,x_1,x_2,weight', "has quotes"),
    (HEAD.replace(",", ";"), "has semicolons or tabs between its cells: use commas"),
    (HEAD + "\rbox_1d_brownian,0,1,1,0.5,,1", "has lines that end in CR alone"),
    (HEAD.replace("weight", "x_3"), 'has no last column "weight"'),
    (HEAD + ",x_3", 'column 7 is "weight"'),
    (HEAD + ",".join(f"x_{i}" for i in range(9000)), "is longer than 4096 bytes"),
    ("problem,seed,n,index," + ",".join(f"x_{i + 1}" for i in range(21)) + ",weight", "26 columns"),
]


@pytest.mark.parametrize(("head", "expected"), HEADS)
def test_a_wrong_head_is_told(head, expected, own):
    put(own, [head, *rows(own)[1:]])
    (problem,) = said(own)
    assert expected in problem


def test_a_table_as_windows_may_write_it_is_told(own):
    text = (own / "points.csv").read_text()
    (own / "points.csv").write_bytes(text.encode("utf-16"))
    (problem,) = said(own)
    assert problem == "points.csv:1: is UTF-16: write the table as ASCII or UTF-8"


def test_rows_that_are_missing_repeated_or_mixed_are_told(own):
    head, *lines, last = rows(own)
    cases = {
        "points.csv:4: column index: is 3, but 2 must follow": [*lines[:1], *lines[2:]],
        "points.csv:3: problem box_1d_brownian, seed 0, n 3 ends after 2 of 3 rows": [
            *lines[:2], *lines[3:],
        ],
        "points.csv:3: column index: is 1, but 2 must follow": [lines[0], *lines],
        "points.csv:5: column index: is 1, but the set is whole": [*lines[:3], *lines],
        "began at line 2: its rows must follow one another": [*lines, *lines[:3]],
        "points.csv:3: is blank: remove this line": [lines[0], "", *lines[1:]],
        f"points.csv:{len(lines) + 2}: is blank": [*lines, ""],
        "points.csv:3: has 6 cells, but the table has 7 columns": [
            lines[0], lines[1].rpartition(",")[0], *lines[2:],
        ],
        f"points.csv:{len(lines)}: problem banana_stein, seed 1, n 5 ends after 4 of 5": lines[:-1],
    }  # fmt: skip
    for expected, changed in cases.items():
        put(own, [head, *changed, last])
        problems = said(own)
        if "index: is 3" in expected:
            expected = "points.csv:3: column index: is 3, but 2 must follow"
        assert any(expected in text for text in problems), (expected, problems)


def test_gaps_in_seeds_are_told(own):
    lines = [line.replace("normal_2d_eq,1,", "normal_2d_eq,2,") for line in rows(own)]
    put(own, lines)
    first = next(i for i, line in enumerate(lines) if line.startswith("normal_2d_eq,2,"))
    assert said(own) == (f"points.csv:{first + 1}: problem normal_2d_eq has seed 2, but no seed 1",)


def test_kinds_and_weights_that_do_not_fit_the_table_are_told(own, sequence):
    change(own, weights="uniform")
    assert 'has the column "weight", but the weights are ours' in said(own)[0]
    change(own, weights="own", kind="sequence")
    problems = said(own)
    assert len(problems) == 6
    assert (
        "points.csv:2: problem box_1d_brownian, seed 0, n 3: this is not point 1 of n 5 (line "
        in (problems[0])
    )
    change(sequence, weights="own")
    assert 'has no last column "weight"' in said(sequence)[0]
    head, *lines, _ = rows(sequence)
    shorter = [re.sub(r"^(\w+),0,5", r"\1,0,2", line) for line in lines[:2]]
    put(sequence, [head, *lines, *shorter, ""])
    change(sequence, weights="bq")
    (problem,) = said(sequence)
    assert "has n 2 and 5: a sequence with bq weights lists its largest n alone" in problem
    change(sequence, kind="set")
    assert set(read_submission(sequence).sets["box_1d_brownian"][0]) == {2, 5}


def test_a_sequence_with_weights_of_its_own_lists_prefixes(tmp_path):
    points = np.linspace(0.1, 0.9, 5)[:, None]
    sets = [("box_1d_brownian", 0, points[:n], np.full(n, 1 / n)) for n in (2, 5)]
    found = submitted.write(tmp_path, sets, kind="sequence", weights="own")
    assert list(found.sets["box_1d_brownian"][0]) == [2, 5]


def test_many_mistakes_are_counted(own):
    put(own, [line.replace("5,", "x,") for line in rows(own)])
    lines = rows(own)
    put(own, [lines[0], *(f"nowhere,0,1,{i}" for i in range(1000))])
    problems = said(own)
    assert len(problems) == MOST_SHOWN + 1
    assert problems[-1] == "and 950 more"


def test_a_table_with_too_many_numbers_is_not_read_on(own, monkeypatch):
    monkeypatch.setattr(table, "MOST_NUMBERS", 8)
    (problem,) = said(own)
    # Two sets of one coordinate and a weight each are at line 9; the next row ends the second one.
    assert problem == "points.csv:10: has more than 8 numbers up to here"
