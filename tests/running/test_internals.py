"""Snakemake's private parts, as far as they work without a run; see also tests/test_screen.py."""

import io
import logging
import threading
from pathlib import Path
from types import SimpleNamespace

import pytest
from snakemake.logging import LogEvent
from snakemake.persistence.file import FilePersistence
from snakemake.scheduling.job_scheduler import JobScheduler

from bqlib.running import internals
from bqlib.running.internals import (
    NOTHING_TO_BE_DONE_MSG,
    end_timers,
    is_dry_run,
    is_suspected,
    may_join_jobs,
    quieten,
    trust,
)
from bqlib.running.progress import CLEAR

ASKED = {
    "verbose": False,
    "dryrun": False,
    "executor": None,
    **dict.fromkeys(("targets", "until", "omit_from", "forcerun", "allowed_rules"), ()),
    **dict.fromkeys(("summary", "detailed_summary", "lint", "unlock"), False),
    **dict.fromkeys(("delete_all_output", "dag", "rulegraph"), False),
}


@pytest.fixture
def asked(monkeypatch):
    """Lets Snakemake's command have some options; None for a call from Python."""

    def ask(**options):
        found = None if options == {"python": True} else SimpleNamespace(**ASKED | options)
        monkeypatch.setattr(internals, "command", lambda: found)

    return ask


class Terminal(io.StringIO):
    def isatty(self):
        return True


@pytest.fixture
def screen(asked, monkeypatch):
    """Makes a logger as Snakemake's, with a handler for a stream that is quietened."""

    def make(stream, verbose=False):
        asked(verbose=verbose)
        monkeypatch.setenv("TERM", "xterm")
        handler = logging.StreamHandler(stream)
        handler.name, handler.nocolor = "DefaultStreamHandler", False
        # As the profiles ask of Snakemake.
        handler.addFilter(lambda record: getattr(record, "event", None) != LogEvent.JOB_ERROR)
        log = logging.Logger("snakemake")
        log.addHandler(handler)
        quieten(log)
        return log

    return make


STATS = {"pieces_1": 1, "pieces_2": 1, "piece": 1, "gather": 1, "total": 4}


def run_info(log, stats):
    log.info("Job stats:", extra={"event": LogEvent.RUN_INFO, "stats": stats})


def test_of_what_snakemake_says_the_screen_has_counts_and_errors(screen):
    stream = io.StringIO()
    log = screen(stream)
    run_info(log, STATS)
    run_info(log, STATS)  # as at the end of a dry run
    log.info("Building DAG of jobs...")
    log.info("[a date]", extra={"event": LogEvent.JOB_STARTED})
    log.warning("a warning")
    log.error("MissingInputException")
    log.info(NOTHING_TO_BE_DONE_MSG)
    for rule in ("gather", "piece", "pieces_7"):
        log.info("a job", extra={"event": LogEvent.JOB_INFO, "rule_name": rule})
    run_info(log, {"total": 0})
    of_a_job = {"event": LogEvent.JOB_ERROR, "rule_name": "rates", "log": ["logs/rates.log"]}
    log.error("Error in rule rates:", extra=of_a_job)
    log.error("Error in rule theirs:", extra=of_a_job | {"rule_name": "theirs", "log": []})
    assert stream.getvalue().splitlines() == [
        "[bqlib] jobs: piece 3, gather 1, total 4",
        "a warning",
        "MissingInputException",
        NOTHING_TO_BE_DONE_MSG,
        "[bqlib] gathering the curves",
        "[bqlib] nothing to be done: all is up to date",
        "[bqlib] a job of rates failed: see logs/rates.log",
        "[bqlib] a job of theirs failed",
    ]


def test_an_error_takes_the_place_of_the_line_that_stands(screen, monkeypatch):
    stream = Terminal()
    log = screen(stream)
    log.error("an error")
    assert stream.getvalue() == f"{CLEAR}an error\n"
    monkeypatch.setenv("TERM", "dumb")
    log.error("another")
    assert stream.getvalue() == f"{CLEAR}an error\nanother\n"


@pytest.mark.parametrize("options", [{"verbose": True}, {"python": True}])
def test_snakemake_says_all_where_that_is_asked_for_or_it_is_called_from_python(
    options, asked, monkeypatch
):
    asked(**options)
    handler = logging.StreamHandler(io.StringIO())
    handler.name = "DefaultStreamHandler"
    log = logging.Logger("snakemake")
    log.addHandler(handler)
    quieten(log)
    log.info("Building DAG of jobs...")
    assert handler.stream.getvalue() == "Building DAG of jobs...\n"


def test_handlers_for_files_keep_everything(asked):
    asked()
    handler = logging.StreamHandler(io.StringIO())
    handler.name = "DefaultLogFileHandler"
    log = logging.Logger("snakemake")
    log.addHandler(handler)
    quieten(log)
    run_info(log, STATS)
    assert handler.stream.getvalue() == "Job stats:\n"


@pytest.mark.parametrize("value, nocolor", [("1", True), ("", False)])
def test_no_color_is_heeded(screen, monkeypatch, value, nocolor):
    monkeypatch.setenv("NO_COLOR", value)
    log = screen(io.StringIO())
    assert log.handlers[0].nocolor is nocolor


@pytest.mark.parametrize(
    "options, joined",
    [
        ({}, True),
        ({"executor": "local", "until": ["gather"]}, True),
        ({"executor": "slurm"}, False),
        ({"until": ["piece"]}, False),
        ({"allowed_rules": ["piece"]}, False),
        ({"forcerun": None, "omit_from": ["piece"]}, False),
        ({"python": True}, False),
    ],
)
def test_jobs_are_joined_on_this_machine_unless_the_command_names_their_rule(
    options, joined, asked
):
    asked(**options)
    assert may_join_jobs("piece") is joined


@pytest.mark.parametrize(
    "options, dry",
    [
        ({}, False),
        ({"dryrun": True}, True),
        ({"dryrun": True, "dag": True}, False),
        ({"dryrun": True, "unlock": True}, False),
        ({"python": True}, False),
    ],
)
def test_a_dry_run_is_one_that_says_what_it_would_do(options, dry, asked):
    asked(**options)
    assert is_dry_run() is dry


def test_a_command_from_python_is_none():
    assert internals.command() is None


def test_snakemakes_doubt_about_an_output_can_be_removed(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    path = "results/a very long name/" + 30 * "of a piece " + "seeds-0-9.zarr.zip"
    doubts = SimpleNamespace(_fetch_max_len=lambda folder: 255)
    record = Path(FilePersistence._record_path(doubts, ".snakemake/incomplete", path))
    assert not is_suspected(path)
    record.parent.mkdir(parents=True)
    record.touch()
    assert is_suspected(path)
    trust(path)
    assert not is_suspected(path)
    trust(path)


def test_only_the_timers_of_snakemakes_scheduler_end():
    other = threading.Timer(60, print)
    other.start()
    before = set(threading.enumerate())
    JobScheduler._schedule_reevalutation(SimpleNamespace(_open_jobs=None), 60)
    [timer] = set(threading.enumerate()) - before
    end_timers()
    timer.join(timeout=30)
    assert (timer.is_alive(), other.is_alive()) == (False, True)
    other.cancel()
