"""What a run tells: the line that stands on a terminal, lines elsewhere, its log and its status."""

import io
import re

import pytest

from bqlib.results.layout import Layout
from bqlib.running import progress
from bqlib.running.progress import CLEAR, Progress, may_stand, note, say
from bqlib.running.status import read_status

TIMED = re.compile(r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d (.*)")
CELL, OTHER = "a cell", "another cell"


class Terminal(io.StringIO):
    """A stream that says that it is a terminal."""

    def isatty(self):
        return True


class Closed(Terminal):
    """A terminal that has gone."""

    def write(self, text):
        raise OSError(5, "Input/output error")


@pytest.fixture
def clock(monkeypatch):
    """A clock that a test moves, as a list of one number."""
    now = [1000.0]
    monkeypatch.setattr(progress.time, "monotonic", lambda: now[0])
    return now


@pytest.fixture
def terminal(monkeypatch):
    """A terminal of a number of columns as standard output."""

    def make(columns=80, stream=Terminal):
        found = stream()
        monkeypatch.setenv("TERM", "xterm")
        monkeypatch.setenv("COLUMNS", str(columns))
        monkeypatch.setattr("sys.stdout", found)
        return found

    return make


def large(**more):
    """The progress of a large sweep, half of which was done before."""
    done = [(CELL, seed) for seed in range(50_000)]
    told = Progress(100_000, done, done[:1234], [(CELL, "a piece")], 2, 20, **more)
    told.workers, told.dashboard = 16, "http://127.0.0.1:8787/status"
    return told


def trials(first, last, cell=CELL):
    return [(cell, seed) for seed in range(first, last)]


@pytest.mark.parametrize(
    "columns, line",
    [
        (
            100,
            "[bqlib] 50010 of 100000 trials done, 1234 failed, 3 h left, 0 of 20 seeds of studies, "
            "5 a second",
        ),
        (60, "50010 of 100000 trials done, 1234 failed, 3 h left"),
        (40, "50010/100000 done, 1234 failed"),
        (20, "50010/100000"),
        (12, ""),
    ],
)
def test_the_line_has_what_matters_most_and_never_wraps(columns, line, terminal, clock):
    screen = terminal(columns)
    told = large()
    told.count(trials(50_000, 50_001))
    clock[0] += 2
    told.count(trials(50_001, 50_010))
    drawn = screen.getvalue().rpartition(CLEAR)[2]
    expected = line.replace("3 h", "2.8 h")
    assert drawn == expected and len(drawn) < columns


def test_on_a_terminal_one_line_stands_and_the_last_stays(terminal, clock, tmp_path):
    screen = terminal()
    told = Progress(4, log=tmp_path / "run.log")
    told.count(trials(0, 1))
    told.count(trials(1, 2))  # too soon to draw again
    clock[0] += 1
    told.count(trials(2, 4))
    told.end()
    first, second, last = screen.getvalue().split(CLEAR)
    assert first == "[bqlib] 1 of 4 trials done, 0 failed"
    assert second.startswith("[bqlib] 4 of 4 trials done, 0 failed")
    assert last == "[bqlib] 4 of 4 trials done, 0 failed\n"
    said = TIMED.findall((tmp_path / "run.log").read_text())
    assert said == [line.removeprefix("[bqlib] ").strip() for line in (first, last)]


def test_the_line_ends_with_the_last_piece_and_its_speed_is_that_of_the_trials(terminal, clock):
    screen = terminal()
    told = Progress(4, pieces=[(CELL, "a piece")], cells=1)
    told.count(trials(0, 2))
    clock[0] += 2
    told.count(trials(2, 4))
    told.piece(CELL, "a piece")
    clock[0] += 1
    told.tell()
    last = "[bqlib] 4 of 4 trials done, 0 failed, 1 of 1 cells, 2 a second"
    assert screen.getvalue().endswith(f"{CLEAR}{last}\n")
    clock[0] += 60  # figures are drawn
    told.tell()
    told.end()
    assert screen.getvalue().endswith(f"{CLEAR}{last}\n") and screen.getvalue().count(last) == 2


def test_trials_are_counted_by_bits():
    found = progress._Trials(trials(0, 3))
    found.add([*trials(2, 5), *trials(1000, 1001, OTHER)])
    assert found.count == 6
    found.remove([(CELL, 0), (CELL, 0), (CELL, 77), ("unknown", 1)])
    assert found.count == 5


def test_what_is_said_takes_the_place_of_the_line(terminal, clock, monkeypatch):
    screen = terminal()
    told = Progress(4)
    told.count(trials(0, 1))
    told.say("a worker has gone")
    monkeypatch.setattr("sys.stderr", screen)
    say("ValueError: of a job")  # of another process
    clock[0] += 1
    told.tell()
    assert screen.getvalue() == (
        f"[bqlib] 1 of 4 trials done, 0 failed{CLEAR}[bqlib] a worker has gone\n"
        f"{CLEAR}[bqlib] ValueError: of a job\n[bqlib] 1 of 4 trials done, 0 failed"
    )


@pytest.mark.parametrize("term", [None, "dumb", ""])
def test_where_no_line_can_stand_lines_come_now_and_then(term, terminal, clock, monkeypatch):
    screen = terminal()
    if term is None:
        monkeypatch.setattr(screen, "isatty", lambda: False)
    else:
        monkeypatch.setenv("TERM", term)
    told = Progress(5)
    told.count(trials(0, 1))
    clock[0] += 29
    told.count(trials(1, 2))  # too soon
    clock[0] += 1
    told.tell()
    told.tell()  # nothing new
    clock[0] += 31
    told.tell()
    told.count(trials(2, 5))
    told.end()
    lines = screen.getvalue().splitlines()
    assert [line[:17] for line in lines] == [
        "[bqlib] 1 of 5 tr",
        "[bqlib] 2 of 5 tr",
        "[bqlib] 5 of 5 tr",
    ]
    assert "\x1b" not in screen.getvalue() and "\r" not in screen.getvalue()


def test_a_terminal_that_has_gone_does_not_end_the_run(terminal, clock):
    terminal(stream=Closed)
    told = Progress(2)
    told.count(trials(0, 1))
    told.say("no")
    told.end()
    say("no", Closed())
    assert told.done == 1


def test_each_trial_counts_once_however_often_it_is_made():
    told = Progress(6, trials(0, 2), trials(1, 2), [(CELL, "p"), (CELL, "q"), (OTHER, "r")], 2, 3)
    told.count(trials(1, 4), trials(3, 4))  # the first of these again, and it succeeds
    told.count(trials(2, 4), trials(3, 4))  # as of a job that was killed and asks once more
    assert (told.done, told.failed) == (4, 1)
    for name in ("p", "p", "unknown"):
        told.piece(CELL, name)
    assert told.text().endswith("0 of 3 seeds of studies, 0 of 2 cells")
    told.piece(CELL, "q")
    told.count_seeds([("study", 0), ("study", 1)])
    told.count_seeds([("study", 1)])
    assert told.text().endswith("2 of 3 seeds of studies, 1 of 2 cells") and told.seeds_left == 1


def test_nothing_is_told_of_a_run_that_had_nothing_to_do(terminal):
    screen = terminal()
    Progress(2, trials(0, 2)).end()
    assert screen.getvalue() == ""


def test_the_time_that_is_left_follows_the_rate_of_this_run(clock):
    told = Progress(100, trials(0, 50))
    told.count(trials(50, 51))
    clock[0] += 10
    told.count(trials(51, 60))
    assert told.text() == "60 of 100 trials done, 0 failed, 40 s left, 1 a second"


def test_the_file_of_status_says_what_the_line_says(tmp_path, clock):
    told = large(path=Layout(tmp_path).status)
    told.count(trials(50_000, 50_002), trials(50_000, 50_001))
    told.tell()
    clock[0] += 6
    told.tell()
    found = read_status(tmp_path)
    assert (found.trials_done, found.failed, found.cells, found.cells_done) == (50_002, 1235, 2, 1)
    assert (found.seeds_of_studies_left, found.workers, found.ended) == (20, 16, None)
    assert found.a_second == pytest.approx(1 / 3)
    told.end()
    assert read_status(tmp_path).ended is not None


def test_a_status_that_cannot_be_written_does_not_end_the_run(tmp_path):
    (tmp_path / "results").write_text("a file where the folder should be")
    told = Progress(2, path=tmp_path / "results" / "status", log=tmp_path / "results" / "log")
    told.count(trials(0, 1))
    told.end()
    assert told.done == 1


def test_the_log_gets_lines_with_their_time_and_follows_no_link(tmp_path):
    log, elsewhere = tmp_path / "run.log", tmp_path / "elsewhere"
    note(log, "first")
    note(log, "no name \udce9")
    note(None, "nowhere")
    assert TIMED.findall(log.read_text()) == ["first", "no name \\udce9"]
    elsewhere.touch()
    log.unlink()
    log.symlink_to(elsewhere)
    note(log, "elsewhere")
    assert elsewhere.read_text() == ""


def test_a_workflow_of_several_sweeps_hears_which_one_speaks(capsys):
    Progress(1, name="wide").say("Dask")
    assert capsys.readouterr().out == "[bqlib] wide: Dask\n"


def test_a_line_stands_on_a_terminal_that_can_clear_it(monkeypatch):
    monkeypatch.setenv("TERM", "xterm")
    assert may_stand(Terminal()) and not may_stand(io.StringIO())
    monkeypatch.delenv("TERM")
    assert not may_stand(Terminal())
