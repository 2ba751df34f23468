"""Submissions changed at random: refused by row, or the same as before."""

import random

import numpy as np
import pytest
from submitted import MESSAGE, numbers, put, rows, said, tree_of

from bqlib.suite.mistakes import SubmissionError
from bqlib.suite.submission import read_submission

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
