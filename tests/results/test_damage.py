"""Damage of every kind to every kind of file: it is named, and no other values are read."""

import shutil
import time

import numpy as np
import pytest
import xarray as xr
from complete_results import write_results
from damage import damages

import bqlib
from bqlib.results.damage import DamagedError
from bqlib.results.integrity import check
from bqlib.results.layout import Layout
from bqlib.results.store import open_dataset

MANY = 150


@pytest.fixture(scope="session")
def complete(tmp_path_factory):
    return write_results(tmp_path_factory.mktemp("complete"))


@pytest.fixture
def whole(complete, tmp_path):
    """A copy of finished results with every kind of file, to damage."""
    return shutil.copytree(complete[1], tmp_path / "small")


def opened(results):
    """What can be opened, by name, as functions that read it whole."""
    at = Layout(results)
    stores = [at.curves, at.rates, at.function_errors, *sorted(at.studies.iterdir())]
    known = {store.name: lambda store=store: open_dataset(store).load() for store in stores}
    return known | {"results": lambda: bqlib.open_results(results).load()}


def test_every_damage_is_named_and_no_other_values_are_read(whole):
    sound = {name: read() for name, read in opened(whole).items()}
    faults, count, silent = check(whole).faults, 0, []
    assert faults == ()
    for what, paths in damages(whole, MANY, np.random.default_rng(150)):
        named = {fault.path for fault in check(whole).faults}
        assert {path.relative_to(whole).as_posix() for path in paths} <= named, what
        for name, read in opened(whole).items():
            try:
                xr.testing.assert_identical(read(), sound[name])
            except DamagedError as error:
                assert any(str(path) in str(error) for path in paths), (what, str(error))
                assert f"bqlib retry --damaged {whole}, then run" in str(error)
            else:
                silent.append(what)
        count += 1
    assert count == MANY and check(whole).faults == ()
