"""Results of two small sweeps, as their jobs leave them."""

import json
import shutil

import pytest
from complete_results import write_results
from project import SHELF
from written_results import TIMED, write_pieces, write_timed_pieces

from bqlib.results.integrity import write_manifest
from bqlib.results.store import gather
from bqlib.sweep.file import load

TWO_TARGETS = """
name: small
title: A small sweep
targets: [chen2010_mixture, line.json]
kernels: {eq: {family: exponentiated_quadratic}}
lengthscales: [0.5, 2]
algorithms: [herding, iid]
candidates: {size: 60}
n: 8
seeds: 3
seeds_per_job: 2
rate_windows: [[2, 8]]
"""
LINE = {"family": "gaussian_mixture", "weights": [1], "means": [[0]], "covariances": [[[1]]]}


@pytest.fixture
def experiment(tmp_path):
    (tmp_path / "line.json").write_text(json.dumps(LINE))
    (tmp_path / "sweep.yaml").write_text(TWO_TARGETS)
    return load(tmp_path / "sweep.yaml", SHELF)


@pytest.fixture
def pieces(experiment, tmp_path):
    """The folder of all pieces of `experiment`."""
    write_pieces(experiment, tmp_path / "pieces")
    return tmp_path / "pieces"


@pytest.fixture(scope="session")
def finished(tmp_path_factory):
    """The experiment TIMED, and its results as a run leaves them."""
    folder = tmp_path_factory.mktemp("finished")
    (folder / "sweep.yaml").write_text(TIMED)
    experiment = load(folder / "sweep.yaml", SHELF)
    results = folder / "results" / "small"
    write_timed_pieces(experiment, results)
    gather(experiment, results)
    (results / "figures").mkdir()
    (results / "figures" / "mmd.svg").write_text("<svg></svg>")
    (results / "report.html").write_text("<html>All is well.</html>")
    (results / "notes.txt").write_text("a user's own file")
    write_manifest(results)
    return experiment, results


@pytest.fixture
def results(finished, tmp_path):
    """A copy of the finished results, to damage."""
    return shutil.copytree(finished[1], tmp_path / "small")


@pytest.fixture(scope="session")
def complete(tmp_path_factory):
    """An experiment, and its finished results with every kind of file."""
    return write_results(tmp_path_factory.mktemp("complete"))
