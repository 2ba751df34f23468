"""Submissions as files: read, refused by row, and written. All that is in them is data."""

import json
import os
import random
import re
import subprocess
import sys
from pathlib import Path

import numpy as np
import pytest
import submitted

from bqlib.suite import about as about_file
from bqlib.suite import table
from bqlib.suite.mistakes import MOST_SHOWN, SubmissionError
from bqlib.suite.submission import read_submission, shapes_of_suite, write_submission
from bqlib.sweep.problems import problems

MESSAGE = re.compile(r"(submission\.json|points\.csv)(:[1-9]\d*)?: .+|and \d+ more")


def sets_of(weights):
    """Small point sets of three problems, two seeds and two n."""
    rng = np.random.default_rng(1)
    return [
        (name, seed, rng.uniform(0, 1, (n, dim)), *([rng.normal(size=n)] if weights else []))
        for name, dim in (("box_1d_brownian", 1), ("normal_2d_eq", 2), ("banana_stein", 2))
        for seed in range(2)
        for n in (3, 5)
    ]


@pytest.fixture
def own(tmp_path):
    """A folder with a valid submission of sets with weights of their own."""
    submitted.write(tmp_path / "own", sets_of(True), weights="own")
    return tmp_path / "own"


@pytest.fixture
def sequence(tmp_path):
    """A folder with a valid submission of sequences with BQ weights."""
    sets = [own for own in sets_of(False) if len(own[2]) == 5]
    submitted.write(tmp_path / "sequence", sets, kind="sequence", weights="bq")
    return tmp_path / "sequence"


def rows(folder):
    return (folder / "points.csv").read_text().split("\n")


def put(folder, lines):
    (folder / "points.csv").write_text("\n".join(lines))


def said(folder):
    """What is said of a submission that is refused."""
    with pytest.raises(SubmissionError) as refused:
        read_submission(folder)
    assert all(map(MESSAGE.fullmatch, refused.value.problems))
    assert str(refused.value) == "\n".join(refused.value.problems)
    return refused.value.problems


def numbers(submission):
    """All that scores depend on."""
    return [
        (name, seed, n, found.points.tolist(), None if found.weights is None else [*found.weights])
        for name, seeds in submission.sets.items()
        for seed, sets in seeds.items()
        for n, found in sets.items()
    ]


def tree_of(folder):
    """Every path below a folder with what tells a change of it."""
    return {
        str(path.relative_to(folder)): (os.lstat(path).st_mode, os.lstat(path).st_mtime_ns)
        for path in sorted(folder.rglob("*"))
    }


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


# What to replace in which line of a table, and what must be said of it. Line 2 is
# box_1d_brownian,0,3,1,x,,w and line 18 normal_2d_eq,0,3,1,x,y,w.
CELLS = [
    (2, 0, "box_9d", 'points.csv:2: column problem: "box_9d" is no problem of the suite'),
    (2, 0, "../../etc/passwd", 'column problem: "../../etc/passwd" is no problem'),
    (2, 0, "/etc/passwd", 'column problem: "/etc/passwd" is no problem'),
    (2, 0, "", 'points.csv:2: column problem: "" is no problem'),
    (2, 0, " box_1d_brownian", '" box_1d_brownian" is no problem'),
    (2, 0, "box_1d_brownian@1", '"box_1d_brownian@1" is no problem'),
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
    (2, 4, "0,5", "points.csv:2: has 8 cells, but the table has 7 columns"),
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


HEAD = "problem,seed,n,index,x_1,x_2,weight"
HEADS = [
    ("", "points.csv:1: is empty: the columns must be problem, seed, n, index, x_1, x_2, ..."),
    ("problem,seed,n,index,x_1,x_1,weight", 'has the column "x_1" twice'),
    ("seed,problem,n,index,x_1,x_2,weight", 'column 1 is "seed": the columns must be'),
    ("problem,seed,n,index,x_1,x_2", 'column 6 is "x_2": the columns must be'),
    ("problem,seed,n,index,x_2,x_1,weight", 'column 5 is "x_2"'),
    ("problem,seed,n,index,x_1,x_2,Weight", 'column 7 is "Weight"'),
    ("problem,seed,n,x_1,x_2,weight", 'column 4 is "x_1"'),
    ('"problem",seed,n,index,x_1,x_2,weight', "has quotes"),
    (HEAD.replace(",", ";"), 'column 1 is "problem;seed;n;index'),
    (HEAD.replace("weight", "x_3"), 'column 7 is "x_3"'),
    (HEAD + ",x_3", 'column 7 is "weight"'),
    (HEAD + ",".join(f"x_{i}" for i in range(9000)), "is longer than 4096 bytes"),
    ("problem,seed,n,index," + ",".join(f"x_{i + 1}" for i in range(21)) + ",weight", "26 columns"),
]


@pytest.mark.parametrize(("head", "expected"), HEADS)
def test_a_wrong_head_is_told(head, expected, own):
    put(own, [head, *rows(own)[1:]])
    (problem,) = said(own)
    assert expected in problem


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


def change(folder, **about):
    file = folder / "submission.json"
    file.write_text(json.dumps(json.loads(file.read_text()) | about))


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
    assert 'column 6 is "x_2": the columns must be' in said(sequence)[0]
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


ABOUTS = [
    ({"method": "K-means"}, 'method: "K-means" is not a valid label'),
    ({"method": "../kmeans"}, 'method: "../kmeans" is not a valid label'),
    ({"method": "nan"}, 'method: "nan" cannot be a label'),
    ({"method": "a" * 65}, "method: a label has at most 64"),
    ({"method": "sbq"}, 'method: "sbq" is an algorithm of bqlib'),
    ({"method": 3}, "method: must be a text, not 3"),
    ({"method": None}, "method: must be a text, not empty"),
    ({"version": "1/2"}, 'version: "1/2" is not a valid version'),
    ({"version": ".."}, 'version: ".." is not a valid version'),
    ({"version": 1.0}, "version: must be a text"),
    ({"authors": []}, "authors: must not be empty"),
    ({"authors": "me"}, "authors: must be a list"),
    ({"authors": [""]}, "authors.0: must not be empty"),
    ({"authors": ["me", "me"]}, "authors: names something twice"),
    ({"authors": [["me"]]}, "authors.0: must be a text, not a list"),
    ({"citation": "\x1b[2J"}, "citation: must not have the character '\\x1b'"),
    ({"citation": "\ud800"}, "citation: must not have the character '\\ud800'"),
    ({"citation": "a\u202eb"}, "citation: must not have the character '\\u202e'"),
    ({"licence": " "}, "licence: must not be empty"),
    ({"seconds": -1}, "seconds: must be a finite positive number"),
    ({"seconds": True}, "seconds: must be a number, not true"),
    ({"seconds": "5"}, "seconds: must be a number"),
    ({"information": ["Z"]}, 'unknown information "Z"; did you mean "z"?'),
    ({"information": ["z", "z"]}, "information: names something twice"),
    ({"information": "z"}, "information: must be a list"),
    ({"suite": "bqbench-2"}, 'suite: unknown suite "bqbench-2"; did you mean "bqbench-1"?'),
    ({"kind": "sets"}, 'kind: unknown kind "sets"; did you mean "set"?'),
    ({"weights": "BQ"}, 'weights: unknown weights "BQ"; did you mean "bq"?'),
    ({"run": "rm -rf"}, 'run: unknown key "run"'),
    ({"licens": "MIT"}, 'unknown key "licens"; did you mean "licence"?'),
]


@pytest.mark.parametrize(("changed", "expected"), ABOUTS)
def test_what_is_wrong_in_submission_json_is_told(changed, expected, own):
    change(own, **changed)
    problems = said(own)
    assert problems[0].startswith("submission.json:1: ") and expected in problems[0]


TEXTS = [
    (b"", "submission.json:1: column 1: is not JSON"),
    (b"{", "is not JSON"),
    (b"[]", "submission.json:1: must be a mapping"),
    (b"null", "must be a mapping"),
    (b'{"a": 1, "a": 2}', '"a" is there twice'),
    (b'{"seconds": NaN}', "NaN is no number of JSON"),
    (b'{"seconds": -Infinity}', "-Infinity is no number of JSON"),
    (b'{"seconds": %s}' % (b"1" * 5000), "digits"),
    (b"[" * 60_000, "nested too deeply"),
    (b'{"a":' * 10_000, "nested too deeply"),
    (b"{\n'a': 1}", "submission.json:2: column 1: is not JSON"),
    (b'{\n"method": "\xff"}', "submission.json:2: is not text in UTF-8"),
    ('{"method": 1}'.encode("utf-16"), "is not text in UTF-8"),
    (b"\x80\x04K\x01.", "is not text in UTF-8"),  # a pickle
    (b"{}", "submission.json:1: method: missing: give a label"),
    (b"!!python/object/apply:os.system ['id']", "is not JSON"),
]


@pytest.mark.parametrize(("data", "expected"), TEXTS)
def test_a_submission_json_that_is_none_is_told(data, expected, own):
    (own / "submission.json").write_bytes(data)
    assert expected in said(own)[0]


def test_a_key_has_its_line(own):
    change(own, version="a b", kind="both")
    file = own / "submission.json"
    file.write_text(json.dumps(json.loads(file.read_text()), indent=1))
    lines = file.read_text().split("\n")
    for problem, key in zip(said(own), ("version", "kind"), strict=True):
        line = int(problem.split(":")[1])
        assert lines[line - 1].startswith(f' "{key}"')


def test_a_byte_order_mark_and_other_ends_of_lines_are_taken(own):
    before = numbers(read_submission(own))
    for name in ("submission.json", "points.csv"):
        data = (own / name).read_bytes()
        (own / name).write_bytes(b"\xef\xbb\xbf" + data.replace(b"\n", b"\r\n"))
    assert numbers(read_submission(own)) == before
    (own / "points.csv").write_bytes((own / "points.csv").read_bytes().removesuffix(b"\r\n"))
    assert numbers(read_submission(own)) == before


def test_many_mistakes_are_counted(own):
    put(own, [line.replace("5,", "x,") for line in rows(own)])
    lines = rows(own)
    put(own, [lines[0], *(f"nowhere,0,1,{i}" for i in range(1000))])
    problems = said(own)
    assert len(problems) == MOST_SHOWN + 1
    assert problems[-1] == "and 950 more"


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
            lambda file: file.write_bytes((HEAD + "\n" + "," * 6 + "\n" * 400_000).encode()),
            'points.csv:2: column problem: "" is no problem',
        ),
    ],
    ids=["one line", "blank lines", "empty cells"],
)
def test_large_tables_are_refused_within_a_gigabyte(fill, expected, own):
    put(own, [HEAD, ""])
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


# Mutations: those that leave the numbers as they are, and those that a reader must refuse.


def another_number(text, rng):
    """The same number in other words."""
    value = float(text)
    words = [f"+{text}" if value >= 0 else text, f"{text}" if "e" in text else f"{text}000"]
    words += [f"{value!r}e0" if "e" not in repr(value) else text, f"{value:.17e}"]
    return rng.choice(words)


def harmless(lines, rng):
    """A table that has the same numbers."""
    head, *body = lines[:-1]
    which = rng.randrange(4)
    if which == 0:
        i = rng.randrange(len(body))
        cells = body[i].split(",")
        k = rng.choice([k for k in range(4, len(cells)) if cells[k]])
        cells[k] = another_number(cells[k], rng)
        body[i] = ",".join(cells)
    elif which == 1:  # one more column of coordinates, which no problem has
        head = head.replace("x_2", "x_2,x_3")
        body = [",".join([*(c := line.split(","))[:6], "", *c[6:]]) for line in body]
    elif which == 2:
        return ["\ufeff" + head, *body, ""]
    else:
        return [f"{line}\r" for line in (head, *body)] + [""]
    return [head, *body, ""]


WRONG = [
    "nan", "inf", "", " ", "1_000", "0x10", "1e400", "٣", "a", "../x", "/etc/passwd", "-", "1.2.3",
    "1e5e5", '"1"', "1;2", "1\t", "NULL", "None", "1e51", "9" * 70, "\x00", "\x1b]0;x\x07",
    "1,2", "²",
]  # fmt: skip


def harmful(lines, rng):
    """A table that must be refused."""
    head, *body = lines[:-1]
    i = rng.randrange(len(body))
    cells = body[i].split(",")
    which = rng.randrange(8)
    if which == 0:
        filled = [k for k in range(len(cells)) if cells[k]]
        cells[rng.choice(filled)] = rng.choice(WRONG)
        body[i] = ",".join(cells)
    elif which == 1:
        del body[i]
    elif which == 2:
        body.insert(rng.randrange(len(body)), body[i])
    elif which == 3:
        j = rng.choice([j for j in range(len(body)) if body[j] != body[i]])
        body[i], body[j] = body[j], body[i]
    elif which == 4:
        cells[3] = str(int(cells[3]) + rng.choice([-1, 1, 5, 1000]))
        body[i] = ",".join(cells)
    elif which == 5:
        names = head.split(",")
        k = rng.randrange(len(names))
        names[k] = rng.choice([*WRONG, "x_1" if names[k] != "x_1" else "n", names[k].upper()])
        head = ",".join(names)
    elif which == 6:
        body[i] = rng.choice(["", ",", body[i] + ",", body[i][: len(body[i]) // 2], "#" + body[i]])
    else:
        cells[2] = str(rng.choice([0, -3, 129, 10**9, 10**30]))
        body[i] = ",".join(cells)
    return [head, *body, ""]


@pytest.mark.parametrize("block", range(5))
def test_mutations_are_refused_or_change_nothing(block, own, sequence, tmp_path):
    rng = random.Random(block)
    before = {folder: numbers(read_submission(folder)) for folder in (own, sequence)}
    for _ in range(100):
        folder = rng.choice([own, sequence])
        lines = rows(folder)
        mutate = rng.choice([harmless, harmful, harmful, harmful])
        put(folder, changed := mutate(lines, rng))
        tree = tree_of(tmp_path)
        if mutate is harmless:
            assert numbers(read_submission(folder)) == before[folder], changed
        else:
            said(folder)
        assert tree_of(tmp_path) == tree
        put(folder, lines)


def test_any_bytes_are_taken_or_refused(own, tmp_path):
    rng = random.Random(0)
    for name in ("submission.json", "points.csv"):
        data = (own / name).read_bytes()
        for _ in range(150):
            changed = bytearray(data)
            for _ in range(rng.randrange(1, 4)):
                i = rng.randrange(len(changed))
                changed[i : i + rng.randrange(2)] = rng.randbytes(rng.randrange(3))
            (own / name).write_bytes(changed)
            try:
                found = read_submission(own)
            except SubmissionError as error:
                assert all(map(MESSAGE.fullmatch, error.problems)), error.problems
                assert str(error).replace("\n", "").isprintable()
            else:
                assert all(np.isfinite(one[3]).all() for one in numbers(found))
        (own / name).write_bytes(data)
