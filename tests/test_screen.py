"""What a person sees of the real workflow: on a narrow terminal, in a file, and where it fails."""

import os
import pty
import re
import subprocess
import sys
import termios

import pytest
from checkout import Checkout, jobs

from bqlib.results.layout import Layout
from bqlib.running.progress import CLEAR
from bqlib.running.status import read_status

TIMED = re.compile(r"^\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (.*)$", re.M)


def on_terminal(checkout, columns, *arguments, **environment):
    """Exit code and bytes of a run on a pseudo-terminal, each line as it was written."""
    ours, theirs = pty.openpty()
    termios.tcsetwinsize(theirs, (24, columns))
    process = subprocess.Popen(
        [sys.executable, "-m", "snakemake", *checkout.options(), *arguments],
        cwd=checkout.folder,
        env={**os.environ, "PYTHONPATH": str(checkout.folder), "TERM": "xterm", **environment},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
    )
    os.close(theirs)
    written = b""
    try:
        while part := os.read(ours, 65536):
            written += part
    except OSError:  # all who wrote have closed it
        pass
    os.close(ours)
    return process.wait(timeout=60), written.decode().replace("\r\n", "\n")


@pytest.fixture(scope="module")
def checkout(tmp_path_factory):
    """A checkout whose trials take a moment, and some of which fail."""
    checkout = Checkout(tmp_path_factory.mktemp("screen") / "a checkout")
    checkout.edit("config/small.yaml", "seeds: 2", "seeds: 6")
    checkout.edit("config/small.yaml", "seeds_per_job: 1", "seeds_per_job: 3")
    checkout.set_faults({"iid 1 *": ["raise", "unlucky"], "*": ["sleep", 0.4]})
    return checkout


def test_a_dry_run_tells_each_number_once(checkout):
    output = checkout.run("-n", "--until", "gather").output
    assert jobs(output) == {"piece": 4, "gather": 1, "total": 5}
    for told in ("jobs: ", "0 trials done (0 of them failed), 12 missing", "missing trials: about"):
        assert output.count(told) == 1, output
    assert "Job stats" not in output and not Layout(checkout.results).log("run").exists()


def test_a_narrow_terminal_has_one_line_that_stands(checkout):
    code, screen = on_terminal(checkout, 40, "--until", "gather", NO_COLOR="1")
    assert code == 3, screen
    drawn = re.findall(re.escape(CLEAR) + r"([^\n\x1b\r]*)(?=\r)", screen)
    counts = [
        int(re.match(r"(\d+) of 12 trials done, [01] failed", line)[1]) for line in drawn if line
    ]
    assert counts == sorted(counts) and all(len(line) < 40 for line in drawn)
    assert "12 of 12 trials done, 1 failed" in screen
    assert "\x1b[" not in screen.replace(CLEAR, "")  # no colours
    said = [line.rpartition(CLEAR)[2] for line in screen.split("\n")]
    assert "[bqlib] 1 of 12 trials failed" in said
    assert sum("of 12 trials done" in line for line in said) == 1, said  # the others were cleared
    logged = TIMED.findall(Layout(checkout.results).log("run").read_text())
    lasting = [line.removeprefix("[bqlib] ") for line in said if line.startswith("[bqlib] ")]
    assert lasting[0].startswith("jobs: ") and "results are in results/small" in lasting
    # The last line that stood has been logged as trials ended, with the workers of then.
    assert "gathering the curves" in lasting  # which Snakemake's log has
    told = {line for line in lasting[1:] if "trials done" not in line}
    assert told - {"gathering the curves"} <= set(logged)
    assert any(line.startswith("12 of 12 trials done, 1 failed, 2 of 2 cells") for line in logged)
    found = read_status(checkout.results)
    assert (found.trials_done, found.trials, found.failed) == (12, 12, 1)
    assert (found.cells_done, found.cells) == (2, 2) and found.ended is not None


def test_a_run_that_goes_on_counts_what_was_done_and_agrees_at_its_end(checkout):
    checkout.edit("config/small.yaml", "seeds: 6", "seeds: 8")  # trials are taken over
    ran = checkout.run("--until", "gather", TERM="xterm")
    assert ran.returncode == 3 and "\x1b" not in ran.output, ran.output
    counts = re.findall(r"(\d+) of 16 trials done, (\d) failed", ran.output)
    assert int(counts[0][0]) > 1 and counts[-1] == ("16", "1"), ran.output
    assert "[bqlib] 1 of 16 trials failed" in ran.output
    checkout.edit("config/small.yaml", "seeds: 8", "seeds: 6")


def test_a_dumb_terminal_gets_plain_lines(checkout):
    for path in checkout.results.rglob("*.zip"):
        path.unlink()
    code, screen = on_terminal(checkout, 80, "--until", "piece", TERM="dumb")
    assert code == 3 and "12 of 12 trials done, 1 failed" in screen
    assert "\x1b" not in screen and "\r" not in screen


def test_errors_reach_the_screen_with_the_log_that_has_all(checkout):
    checkout.edit("workflow/scripts/rates.py", "curves = ", "assert 0, 'no rates'; curves = ")
    code, screen = on_terminal(checkout, 80, "--until", "rates")
    assert code == 1
    assert "[bqlib] AssertionError: no rates" in screen
    assert "[bqlib] a job of rates failed: see results/small/logs/rates.log" in screen
    [log] = re.findall(r"\[bqlib\] Snakemake's log is (\S+)", screen)
    assert "Building DAG of jobs" in (checkout.folder / log).read_text()
    assert "Building DAG of jobs" not in screen and "Traceback" not in screen
    code, screen = on_terminal(checkout, 80, "--until", "rates", "--verbose")
    assert code == 1 and "Job stats:" in screen and "RuleException" in screen
    checkout.edit("workflow/scripts/rates.py", "assert 0, 'no rates'; curves = ", "curves = ")
    code, screen = on_terminal(checkout, 80, "--", "nothing.txt")
    assert code == 1 and "MissingRuleException" in screen
