"""The journal of a run's jobs."""

import os

import dask_jobqueue
import pytest

from bqlib.results.layout import Layout
from bqlib.running.journal import CANCEL, cancel_jobs, forget_jobs, new_name, note_job, note_name
from bqlib.running.site import BATCH_SYSTEMS


@pytest.mark.parametrize("system", BATCH_SYSTEMS)
def test_every_batch_system_has_the_command_that_cancels_its_jobs(system):
    cluster_class, _ = BATCH_SYSTEMS[system]
    assert CANCEL[system] == getattr(dask_jobqueue, cluster_class).job_cls.cancel_command


@pytest.fixture
def cancelled(tmp_path, stand_in):
    """Reads the commands by which jobs were cancelled, in their order."""
    for command in {*CANCEL.values(), "qselect"} - {"condor_rm"}:
        stand_in(command, f'echo {command} "$@" >> {tmp_path}/cancelled; echo 4.pbs 5.pbs')

    def read():
        path = tmp_path / "cancelled"
        return path.read_text().splitlines() if path.exists() else []

    return read


def test_all_jobs_of_a_killed_process_are_cancelled(tmp_path, cancelled):
    for system, number in (("slurm", "17"), ("htcondor", "2.0"), ("slurm", "18"), ("oar", "3")):
        note_job(tmp_path, system, number)
    cancel_jobs(tmp_path)  # no condor_rm is here
    assert cancelled() == ["scancel 17 18", "oardel 3"]


@pytest.mark.parametrize(
    ("system", "commands"),
    [
        ("slurm", [f"scancel --name=NAME --user={os.getuid()}"]),
        ("pbs", ["qselect -N NAME", "qdel 4.pbs 5.pbs"]),
        ("lsf", ["bkill -J NAME 0"]),
        ("sge", ["qdel NAME"]),
        ("oar", []),
    ],
)
def test_jobs_whose_numbers_nobody_knows_are_cancelled_by_their_name(
    tmp_path, cancelled, system, commands
):
    name = new_name("quick.2")
    assert name.startswith("bqlib-quick.2-") and name != new_name("quick.2")
    note_name(tmp_path, system, name)
    cancel_jobs(tmp_path)
    assert cancelled() == [command.replace("NAME", name) for command in commands]


@pytest.mark.parametrize(
    "name",
    ["*", "bqlib-*-00000000", "-u-00000000", "a b-00000000", "bqlib-quick", "x-0000000g"],
)
def test_other_names_are_not_taken_from_a_journal(tmp_path, cancelled, name):
    note_name(tmp_path, "sge", name)
    cancel_jobs(tmp_path)
    assert cancelled() == []


def test_snakemakes_jobs_are_cancelled_by_their_name(tmp_path, cancelled):
    name = "12345678-9abc-4def-8123-456789abcdef"  # as its plug-in for Slurm gives them
    note_name(tmp_path, "slurm", name)
    cancel_jobs(tmp_path)
    assert cancelled() == [f"scancel --name={name} --user={os.getuid()}"]


def test_a_journal_ends_with_its_run(tmp_path, cancelled):
    note_job(tmp_path, "slurm", "17")
    forget_jobs(tmp_path)
    forget_jobs(tmp_path)
    assert cancelled() == ["scancel 17"]
    assert not Layout(tmp_path).journal.exists()
