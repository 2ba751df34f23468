"""Settings that all tests share."""

import json
import os
import signal

import pytest

# Tests run on all cores at once: threads of BLAS beside them only wait for each other.
os.environ.update(OPENBLAS_NUM_THREADS="1", OMP_NUM_THREADS="1")

from hypothesis import settings  # after BLAS was told
from written_sweep import NORMAL

# As at a terminal: what a shell runs in the background ignores it, and so would all that tests run.
signal.signal(signal.SIGINT, signal.default_int_handler)
# The same examples on every run, and no limit on the time of one: other programs may run beside.
settings.register_profile("bqlib", deadline=None, derandomize=True, max_examples=50)
# Many, and new ones on every run: --hypothesis-profile=fuzz
settings.register_profile("fuzz", deadline=None, max_examples=700, print_blob=True)
settings.load_profile("bqlib")


@pytest.hookimpl(optionalhook=True, wrapper=True)
def pytest_xdist_auto_num_workers():
    """One more than there are processors: tests that run the workflow often wait for it."""
    return (yield) + 1


def runs_a_workflow(item):
    """Whether the module of a test runs Snakemake, by what it imports."""
    return isinstance(item, pytest.Function) and bool(
        {"Checkout", "processes_of"} & vars(item.module).keys()
    )


def pytest_collection_modifyitems(items):
    """Start with the modules that run the workflow: they take longest, and nobody waits at the end.

    The examples of docstrings import what they use, as they must when they are copied.
    """
    items.sort(key=runs_a_workflow, reverse=True)  # keeps the order of equals
    for item in items:
        if isinstance(item, pytest.DoctestItem):
            item.dtest.globs = {"__name__": "__main__"}


@pytest.fixture(autouse=True, scope="module")
def environment_of_a_module():
    """The next module shall not have what this one set, as Dask does where it starts workers."""
    environment, before = os.environ, dict(os.environ)
    yield
    if environment != before:
        environment.clear()
        environment.update(before)


@pytest.fixture
def sweep_folder(tmp_path, monkeypatch):
    """The working directory, with a shelf of two targets."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "targets").mkdir()
    line = NORMAL | {"means": [[0.0]], "covariances": [[[1.0]]]}
    for name, content in {"normal": NORMAL, "normal_line": line}.items():
        (tmp_path / "targets" / f"{name}.json").write_text(json.dumps(content))
    return tmp_path
