"""Submissions that tests change."""

import pytest
import submitted


@pytest.fixture
def own(tmp_path):
    """A folder with a valid submission of sets with weights of their own."""
    submitted.write(tmp_path / "own", submitted.sets_of(True), weights="own")
    return tmp_path / "own"


@pytest.fixture
def sequence(tmp_path):
    """A folder with a valid submission of sequences with BQ weights."""
    sets = [own for own in submitted.sets_of(False) if len(own[2]) == 5]
    submitted.write(tmp_path / "sequence", sets, kind="sequence", weights="bq")
    return tmp_path / "sequence"
