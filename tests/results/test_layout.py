"""Where files of results lie: no two in the same place, and each name leads back."""

from pathlib import Path
from types import SimpleNamespace

import pytest

from bqlib.results.layout import (
    Layout,
    cell_of,
    is_retried,
    job_name,
    job_name_of_study,
    path_of_head,
    path_of_piece,
    path_of_study,
    path_of_timing,
    piece_at,
    piece_name,
    piece_of_timing,
    results_of,
    retried_name,
    seeds_of,
    store_at,
    timing_name,
)

AT = Layout("results/small")
CELL = SimpleNamespace(target="normal", kernel="eq", lengthscale=0.1 + 0.2, algorithm="sbq")
PIECE = piece_name(CELL, (0, 9))


def test_no_two_files_have_the_same_path():
    names = [name for name, value in vars(Layout).items() if isinstance(value, property)]
    paths = [getattr(AT, name) for name in names]
    paths += [AT.piece(PIECE), AT.timing(PIECE), AT.study("cost"), AT.figure("mmd", "svg")]
    paths += [AT.log("gather"), AT.benchmark("gather")]
    assert len(set(paths)) == len(paths) > 15
    assert all(path.is_relative_to("results/small") for path in paths)


def test_the_name_of_a_piece_says_its_seeds_and_its_job():
    assert seeds_of(PIECE) == seeds_of(retried_name(PIECE)) == range(10)
    assert not seeds_of("normal/eq/1/sbq/seeds-0.zarr.zip")
    assert is_retried(retried_name(PIECE)) and not is_retried(PIECE)
    assert AT.log(job_name(PIECE)) == AT.log("pieces/normal/eq/0.3/sbq/seeds-0-9")
    assert AT.log(job_name_of_study("cost")) == AT.log("studies/cost")
    assert AT.record("rates") != AT.record("report")


def test_a_piece_and_its_timings_lead_to_each_other():
    assert cell_of(PIECE) == ("normal", "eq", "0.3", "sbq")
    assert piece_of_timing(timing_name(PIECE)) == PIECE
    for path, file in {path_of_piece(PIECE): AT.piece, path_of_timing(PIECE): AT.timing}.items():
        assert piece_at(path) == PIECE
        assert AT.file(path) == file(PIECE)


@pytest.mark.parametrize(
    "path", ["report.html", "pieces/notes.txt", f"figures/{PIECE}", "timings/x.zarr.zip"]
)
def test_other_files_belong_to_no_piece(path):
    assert piece_at(path) is None


def test_a_file_in_a_store_leads_to_the_store_and_its_results():
    study = path_of_study("cost")
    assert store_at(path_of_head(study)) == study
    assert store_at("curves.zarr/mmd/c.0.0") == "curves.zarr"
    assert store_at("report.html") is store_at(path_of_piece(PIECE)) is None
    assert AT.file(study) == AT.study("cost") == AT.store("studies/cost")
    assert results_of(AT.study("cost")) == results_of(AT.curves) == Path("results/small")


def test_what_is_private_in_a_shared_folder_is_so_for_each_user(monkeypatch):
    own = [AT.kept, AT.journal, AT.private]
    monkeypatch.setattr("os.getuid", lambda: 12345)
    assert not {AT.kept, AT.journal, AT.private} & set(own)
    assert len({AT.kept, AT.journal, AT.private, *own}) == 6
