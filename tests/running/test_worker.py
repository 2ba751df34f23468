import re
from dataclasses import replace

import pytest
from distributed import Client, LocalCluster
from project import QUICK

from bqlib.running import worker
from bqlib.running.errors import OtherCodeError
from bqlib.running.worker import attempt, versions
from bqlib.sweep.file import load


def test_a_worker_with_other_code_or_versions_is_refused():
    experiment = load(QUICK)
    spec = experiment.spec(experiment.cells()[0])
    with pytest.raises(OtherCodeError, match=r"runs numpy .* and not 1\.0: make them equal"):
        attempt(spec, 0, versions() | {"numpy": "1.0"})
    with pytest.raises(OtherCodeError, match="runs other code"):
        attempt(replace(spec, fingerprint="other"), 0, versions())


@pytest.mark.parametrize("error", [SystemExit(3), KeyboardInterrupt(), GeneratorExit()])
def test_a_trial_that_would_end_its_worker_says_so(monkeypatch, error):
    def run(spec, seed):
        raise error

    experiment = load(QUICK)
    spec = experiment.spec(experiment.cells()[0])
    monkeypatch.setattr(worker, "own_memory", lambda: None)
    monkeypatch.setattr(type(spec), "run", run)
    with pytest.raises(RuntimeError, match=re.escape(f"its code raised {error!r}")):
        attempt(spec, 3, versions())


def hoard(size):
    with worker.memory_limited(worker.own_memory()):
        return len(bytearray(size))


def test_a_worker_has_no_more_than_its_memory():
    quiet = {"dashboard_address": "127.0.0.1:0", "worker_dashboard_address": "127.0.0.1:0"}
    with (
        LocalCluster(n_workers=1, memory_limit="768MiB", **quiet) as cluster,
        Client(cluster) as client,
    ):
        assert isinstance(client.submit(hoard, 2**29).exception(), MemoryError)
        assert client.submit(hoard, 2**26).result() == 2**26
