"""The table of an archive: right numbers, and nothing that a submission says is markup."""

import json
import re
from dataclasses import replace

import numpy as np
import pytest
import submitted

import bqlib
from bqlib.results import store
from bqlib.results.layout import Layout, piece_name
from bqlib.results.pieces import encode_piece
from bqlib.suite.archive import add, read_archive
from bqlib.suite.scores import write_scores
from bqlib.suite.standings import (
    Method,
    list_of_entries,
    markdown,
    matrix,
    methods_of,
    methods_of_run,
    names_of,
    plain,
    standings,
    summary_table,
)
from bqlib.sweep.problems import problems

BROWNIAN, BRIDGE = "box_1d_brownian", "box_1d_bridge"
HOSTILE = (
    '<script>alert(1)</script>[x](javascript:y) | **b** `c` &lt; www.e.org http://e.org "\n# z'
)


def midpoints(n):
    return (np.arange(n)[:, None] + 0.5) / n


@pytest.fixture(scope="module")
def archive(tmp_path_factory):
    folder = tmp_path_factory.mktemp("archive")
    for version, n in (("1.0", 16), ("1.1", 128)):
        sets = [(BROWNIAN, 0, midpoints(n)), (BROWNIAN, 1, midpoints(n))]
        submitted.write(folder / version, sets, version=version, citation=HOSTILE, code=HOSTILE)
        add(folder / version, folder / "archive")
    submitted.write(folder / "q", [(BRIDGE, 0, midpoints(64))], method="other", information=[])
    add(folder / "q", folder / "archive")
    return folder / "archive"


@pytest.fixture(scope="module")
def table(archive):
    return standings(methods_of(read_archive(archive)))


def test_numbers_are_those_of_the_scores(table):
    optimum = 1 / (np.sqrt(12) * 128)  # the MMD of the midpoints, in closed form
    levels = np.array(problems()[BROWNIAN].levels)
    reached = {n: int((levels >= 1 / (np.sqrt(12) * n) - 1e-15).sum()) for n in (16, 128)}
    assert (table.rows[0].method.method, table.rows[0].method.version) == ("halves", "1.1")
    by_version = {r.method.version: r for r in table.rows if r.method.method == "halves"}
    assert np.isclose(by_version["1.1"].levels, reached[128] / (51 * 42), rtol=1e-12)
    assert np.isclose(by_version["1.0"].levels_entered, reached[16] / 51, rtol=1e-12)
    best = min(table.best[BROWNIAN], optimum)
    assert np.isclose(by_version["1.0"].ratio, optimum * 8 / best, rtol=1e-9)
    names = names_of(table)
    assert sorted(names) == ["halves 1.0", "halves 1.1", "other"]
    cells = {name: dict(zip(names, cells, strict=True)) for name, _, _, cells in matrix(table)}
    assert cells.keys() == {BROWNIAN, BRIDGE}
    assert cells[BRIDGE]["halves 1.0"] is None
    mmd, n, _ = cells[BROWNIAN]["halves 1.0"]
    assert n == 16 and np.isclose(mmd, optimum * 8, rtol=1e-12)


def of(mmd, name="m", entered=(BROWNIAN,), levels=10):
    row = {"seeds": 1, "n": 128, "mmd": mmd, "levels": levels, "of_levels": 51}
    return Method(name, "1", "set", "bq", dict.fromkeys(entered, row))


def test_the_best_are_marked_and_what_has_no_number_is_not_one():
    table = standings([of(0.2, "a", levels=9), of(0.1, "b"), of(None, "c", levels=11)])
    assert [row.method.method for row in table.rows] == ["c", "b", "a"]
    assert table.best[BROWNIAN] <= 0.1
    _, _, best = summary_table(table)
    assert best == {1: {0}, 2: set(), 3: set()}  # as none entered many problems
    assert np.isnan(table.rows[0].ratio)
    text = markdown(table)
    assert "| - | **1.0e-1** | 2.0e-1 |" in text
    assert "**1.0e-1**" in markdown(standings([of(0.2, "a"), of(0.1, "b")]))
    assert summary_table(standings([]))[1] == []
    assert "0 methods" in markdown(standings([]))


def test_the_best_of_those_entered_have_entered_half_of_the_suite():
    many = list(problems())[:21]
    table = standings([of(1e-9, "few", many[:20], 51), of(0.1, "a", many, 9), of(0.2, "b", many)])
    _, rows, best = summary_table(table)
    assert [row[0] for row in rows] == ["few", "b", "a"]
    assert best == {1: {0}, 2: {1}, 3: {2}}
    none = of(None).scores[BROWNIAN]  # of seeds without an n in common
    dodge = of(1e-9, "dodge", many[:1])
    dodge.scores.update(dict.fromkeys(many[1:], none))
    assert summary_table(standings([dodge, *(row.method for row in table.rows)]))[2][3] == {3}


def test_a_record_of_the_suite_is_best():
    record = min(mmd for _, mmd, _ in problems()["chen2010_eq"].best_known)
    (row,) = standings([of(2 * record, entered=["chen2010_eq"])]).rows
    assert np.isclose(row.ratio, 2)


def test_scores_on_another_version_of_a_problem_are_left_out(archive):
    entries = read_archive(archive)
    for entry in entries:
        for scored in entry.definition.problems.values():
            object.__setattr__(scored, "sha256", "0" * 64)
    assert all(method.scores == {} for method in methods_of(entries))


def test_nothing_that_a_submission_says_is_markdown(table):
    text = markdown(table)
    starts = {line[:1] for line in text.splitlines()}
    assert starts == {"", "#", "|", "-", "3", "M"}  # the last two are our own paragraphs
    entries = text[text.index("## Entries") :]
    bare = re.sub(r"\\.", "", entries)
    assert not re.search(r"[<>\[\]`|&]|://|www\.e", bare)
    assert bare.count("**") == 2 * 3
    assert "\n# z" not in text
    assert plain("a|b") == r"a\|b" and plain("1.5 (x)") == "1.5 (x)"


def test_entries_say_licence_and_citation(table):
    told = dict(list_of_entries(table))
    assert told.keys() == {"halves 1.0", "halves 1.1", "other 1.0"}
    facts = dict(told["other 1.0"])
    assert facts == {
        "Authors": "A. Author, B. Author",
        "Licence": "CC-BY-4.0",
        "Cite": "Author and Author, 2026",
        "Code": "https://example.org/halves",
        "Time": "12.5 s, a laptop",
    }


def test_rules_of_a_run_join_the_table(archive, tmp_path):
    experiment = submitted.sweep_of(
        [BROWNIAN, "banana_stein"], ["iid", "latin_hypercube", "stein_thinning"]
    )
    at = Layout(tmp_path / "run")
    for cell in experiment.cells():
        spec = experiment.spec(cell)
        piece = at.piece(piece_name(cell, (0, 1)))
        piece.parent.mkdir(parents=True)
        piece.write_bytes(encode_piece(spec, range(2), [spec.run(seed)[0] for seed in range(2)]))
    store.gather(experiment, tmp_path / "run")
    curves = bqlib.open_results(tmp_path / "run")
    iid, latin, stein = methods_of_run(curves)
    assert (iid.method, iid.kind, iid.weights, iid.about) == ("iid", "sequence", "uniform", None)
    assert latin.kind == "set" and latin.version == bqlib.__version__
    assert stein.scores.keys() == {"banana_stein"}  # it does not apply to the other
    expected = np.median(curves["mmd"].sel(algorithm="iid", n=128, target=BROWNIAN).squeeze())
    assert np.isclose(iid.scores[BROWNIAN]["mmd"], expected, rtol=1e-15)
    table = standings([*methods_of(read_archive(archive)), iid, latin, stein])
    _, rows, _ = summary_table(table)
    assert {row[0]: (row[6], row[9]) for row in rows} == {
        "halves": ("archive", "z, pool"),
        "other": ("archive", "nothing"),
        "iid": ("small", "draws"),
        "latin_hypercube": ("small", "nothing"),
        "stein_thinning": ("small", "score, pool"),
    }
    assert "3 of them are rules that bqlib ran, in small." in markdown(table)
    others = [replace(iid, source="other_run"), iid]
    assert names_of(standings(others)) == [
        f"iid {iid.version} other_run",
        f"iid {iid.version} small",
    ]
    hostile = json.loads(curves.attrs["config"]) | {"name": "<b>\x1b[31m"}
    found = methods_of_run(curves.assign_attrs(config=json.dumps(hostile)))
    text = markdown(standings(found))
    assert r"in \<b\>\\x1b\[31m." in text and r"| \<b\>\\x1b\[31m |" in text
    with pytest.raises(ValueError, match="iid of small is there twice"):
        standings([iid, iid])


def test_other_results_are_refused(archive, tmp_path):
    curves = bqlib.open_results(archive / "bqbench-1" / "halves-1.0").load()
    changed = curves.attrs["config"].replace(problems()[BROWNIAN].sha256, "0" * 64)
    write_scores(curves, tmp_path)
    with pytest.raises(ValueError, match=f"problem {BROWNIAN} is another one"):
        methods_of_run(curves.assign_attrs(config=changed))
    with pytest.raises(ValueError, match="halves is a submission: add it to an archive"):
        methods_of_run(curves)
    with pytest.raises(ValueError, match="not of a sweep with problems"):
        methods_of_run(curves.assign_attrs(config='{"problems": {}, "algorithms": []}'))
