"""Runs of the real workflow that are killed, fail in part, or are refused before they start."""

import re
import signal
import time

import numpy as np
import pytest
from checkout import Checkout, jobs, processes_of
from written_results import fresh_pieces

import bqlib
from bqlib.results.integrity import check
from bqlib.results.layout import Layout


@pytest.fixture
def checkout(tmp_path):
    return Checkout(tmp_path / "a checkout")


TOLD_TO_END = """
import os
import signal

from snakemake.scheduling.job_scheduler import JobScheduler

from bqlib.designs.herding import herding

# All processes that read the sweep do this; only Snakemake's own has a scheduler.
finish = JobScheduler._finish_jobs


def finish_and_be_told_to_end(scheduler):
    if scheduler._tofinish:
        os.kill(os.getpid(), signal.SIGTERM)
    finish(scheduler)


JobScheduler._finish_jobs = finish_and_be_told_to_end


def design(target, kernel, n, *, rng, candidates):
    return herding(target, kernel, n, rng=rng, candidates=candidates)
"""


def test_a_run_that_is_told_to_end_at_any_moment_ends(checkout):
    # While its scheduler holds locks, which Snakemake's own answer to the signal asks for too.
    (checkout.folder / "config" / "told_to_end.py").write_text(TOLD_TO_END)
    plugin = "[iid, {name: told, design: told_to_end.py:design, weights: uniform}]"
    checkout.edit("config/small.yaml", "[iid, herding]", plugin)
    ran = checkout.run("--until", "piece")
    assert ran.returncode == 128 + signal.SIGTERM
    assert "[bqlib] stopped: told to end by SIGTERM" in ran.output, ran.output
    assert "Traceback" not in ran.output
    assert not processes_of(checkout.folder)


def test_a_killed_run_leaves_nothing_behind_and_can_be_resumed(checkout, tmp_path):
    # Enough slow trials to be killed among.
    checkout.edit("config/small.yaml", "seeds: 2", "seeds: 12")
    checkout.set_faults({"*": ["sleep", 0.3]})
    process = checkout.start("--until", "gather")
    while len(checkout.pieces()) < 3:
        assert process.poll() is None, process.communicate()[0]
        time.sleep(0.1)
    process.send_signal(signal.SIGKILL)
    process.communicate()
    deadline = time.monotonic() + 10
    while left := processes_of(checkout.folder):
        assert time.monotonic() < deadline, left
        time.sleep(0.2)
    kept = {path: path.stat().st_mtime_ns for path in checkout.results.rglob("*.zip")}
    assert 3 <= len(kept) < 24
    assert checkout.run("--unlock").returncode == 0
    trials = Layout(checkout.results).kept
    trials.mkdir(mode=0o700, exist_ok=True)
    (trials / "of another piece").touch()
    names = [path.with_name(f"seeds-{k}-{k}.zarr.zip") for path in kept for k in range(12)]
    missing = next(path for path in names if path not in kept)
    part = checkout.run("--", str(missing.relative_to(checkout.folder)))
    assert part.returncode == 0, part.output
    assert jobs(part.output)["piece"] == 1 and (trials / "of another piece").exists(), part.output
    assert "[bqlib] results are in results/small\n" in part.output
    resumed = checkout.run("--until", "gather")
    assert not trials.exists()
    assert resumed.returncode == 0, resumed.output
    # What was whole is made by no job again, though its job was killed.
    assert {path: path.stat().st_mtime_ns for path in kept} == kept
    checkout.set_faults({})
    assert checkout.pieces() == fresh_pieces(checkout.sweep, tmp_path / "undisturbed")


def test_a_failed_trial_is_data(checkout):
    checkout.set_faults({"* 1 *": ["raise", "seed one is unlucky"]})
    ran = checkout.run()
    assert ran.returncode == 3 and "4 of 4 trials done, 2 failed" in ran.output, ran.output
    curves = bqlib.open_results(checkout.results)
    assert curves.status.squeeze().values.tolist() == [[1, 2], [1, 2]]
    assert str(curves.reason.values[0, 0, 0, 0, 1]) == "RuntimeError: seed one is unlucky"
    assert np.isnan(curves.mmd.sel(seed=1)).all()
    report = (checkout.results / "report.html").read_text(encoding="utf-8")
    assert "2 of 4 trials failed" in report and "seed one is unlucky" in report
    assert "2 of 2 failed trials ended with an error of their own: they fail again" in ran.output
    assert check(checkout.results).faults == ()
    again = checkout.run()  # which has nothing to do
    assert again.returncode == 3 and "nothing to be done: all is up to date" in again.output
    told = ("2 of 4 trials failed", "seed 1: RuntimeError: seed one is unlucky", "they fail again")
    for text in told:
        assert text in again.output, again.output
    assert "Dask" not in again.output and "Traceback" not in again.output
    assert checkout.run("-n").returncode == 0


def test_bad_sweeps_end_with_their_errors_and_no_traceback(checkout):
    checkout.edit("config/small.yaml", "herding]", "hering]")
    checkout.edit("config/small.yaml", "n: 20", "n: 0")
    ran = checkout.run()
    assert ran.returncode == 1 and "Traceback" not in ran.output
    assert re.search(r'small.yaml:7: .*"hering".*"herding"', ran.output)
    assert "small.yaml:9: n: " in ran.output
    assert not (checkout.folder / "results").exists()


def test_a_bad_site_file_is_told_before_anything_runs(checkout):
    checkout.edit("profiles/local/site.yaml", "workers:", "wrokers:")
    ran = checkout.run("--dry-run")
    assert ran.returncode == 1 and "Traceback" not in ran.output
    assert re.search(r"^profiles/local/site\.yaml:\d+: wrokers: ", ran.output, re.M), ran.output


def test_results_of_another_schema_version_are_left_alone(checkout):
    store = checkout.results / "curves.zarr" / "zarr.json"
    store.parent.mkdir(parents=True)
    store.write_text('{"attributes": {"schema_version": 0}}')
    ran = checkout.run()
    assert ran.returncode == 1 and "schema version 0" in ran.output
    assert "Traceback" not in ran.output and "schema_version" in store.read_text()


def test_results_that_cannot_be_written_are_said_before_anything_runs(checkout):
    (checkout.folder / "results").write_text("a file where the folder should be")
    ran = checkout.run()
    assert ran.returncode == 1 and "not a folder that can be written" in ran.output
    assert "Traceback" not in ran.output


@pytest.mark.parametrize(
    ("arguments", "told"),
    [
        (["--config", "seeds=50", "name=x"], ["--config seeds=50: has no", "--config name=x: has"]),
        (["--config"], ["would be lost: add site=profiles/cluster/site.yaml to --config"]),
        (["--config", "site=none.yaml"], ["--config site=none.yaml: there is no site file "]),
        (["config/quick.yaml"], ["small.yaml config/quick.yaml: Snakemake would merge these"]),
    ],
)
def test_a_setting_that_would_be_lost_or_ignored_is_refused(checkout, arguments, told):
    checkout.profile = "cluster"
    ran = (
        checkout.run(*arguments, "-n")
        if arguments[0] != "--config"
        else checkout.run("-n", *arguments)
    )
    assert ran.returncode == 1 and all(words in ran.output for words in told), ran.output
    assert "Traceback" not in ran.output


def test_a_workflow_that_imports_ours_has_keys_of_its_own_but_loses_no_site(checkout):
    (checkout.folder / "Theirs").write_text(
        'include: "workflow/Snakefile"\n\n\nrule theirs:\n    shell:\n        "true"\n'
    )
    theirs = ("-n", "--snakefile", "Theirs", "theirs", "--config", "colour=red")
    ran = checkout.run(*theirs)
    assert "would be lost: add site=profiles/local/site.yaml to --config" in ran.output
    assert ran.returncode == 1 and "colour" not in ran.output
    ran = checkout.run(*theirs, "site=profiles/local/site.yaml")
    assert ran.returncode == 0 and jobs(ran.output)["theirs"] == 1, ran.output
