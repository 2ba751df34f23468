"""What a run has done and what is left: on the terminal, in its log and in its file of status."""

import contextlib
import os
import shutil
import socket
import sys
import time
from collections import Counter

from bqlib.results.files import write_atomically
from bqlib.results.text import duration
from bqlib.running.status import Status, as_json

DRAW_SECONDS = 0.5  # between two looks of the line that stands on a terminal
SPEAK_SECONDS = 30  # between two lines where there is no terminal, and in the log
NOTE_SECONDS = 5  # between two files of status
CLEAR = "\r\x1b[K"  # the line that stands


class Progress:
    """Counts what a run does, and tells it.

    On a terminal, one line stands and is drawn again; elsewhere a line comes now and then.

    Parameters
    ----------
    trials, done, failed : int
        Trials of the whole sweep, those that were done before, and those of them that failed.
    cells : dict of Cell to int
        Number of pieces of each cell that are still to be made.
    others : int
        Seeds of studies that are still to be run.
    path : Path, optional
        The file of status.
    name : str, optional
        Of the sweep, where a workflow may have several.
    """

    def __init__(self, trials, done=0, failed=0, cells=None, others=0, path=None, name=""):
        self._cells = Counter(cells or {})
        self._all_cells = len(self._cells)
        self.trials, self.done, self.failed, self.others = trials, done, failed, others
        self.workers, self.dashboard = 0, ""
        self._path, self._start = path, f"[bqlib] {name}: " if name else "[bqlib] "
        self._began = self._spoken = self._drawn = self._noted = None
        self._now = self._said = 0  # trials and seeds of studies that this run has done, has told
        self._stands = self._studies = False  # whether a line stands, and whether studies run

    def say(self, text):
        """A line that stays."""
        self._write(f"{self._start}{text}\n")

    def count(self, done, failed=0, study=False):
        """Count trials, or seeds of a study, that were done."""
        if not done:
            return
        self._began = self._began or time.monotonic()
        self._now += done
        self._studies |= study
        if study:
            self.others = max(self.others - done, 0)
        else:
            self.done, self.failed = self.done + done, self.failed + failed
            self.trials = max(self.trials, self.done)
        self.tell()

    def show(self, dashboard):
        """Name the address of the dashboard from now on."""
        self.dashboard = dashboard

    def piece(self, cell):
        """Count a piece of a cell."""
        self._cells[cell] -= 1

    def tell(self):
        """Tell what there is to tell, if it is time."""
        now = time.monotonic()
        if self._began is not None and sys.stdout.isatty():
            if self._drawn is None or now - self._drawn >= DRAW_SECONDS:
                self._drawn = now
                self._draw()
        elif self._began is not None and self._is_time_to_speak(now):
            self._spoken, self._said = now, self._now
            self.say(self.text())
        if self._path and (self._noted is None or now - self._noted >= NOTE_SECONDS):
            self._noted = now
            self._note()

    def _is_time_to_speak(self, now):
        """Whether all is done, or a while has passed, and there is something new."""
        if self._said == self._now:
            return False
        complete = self.done == self.trials and not self.others
        return complete or self._spoken is None or now - self._spoken >= SPEAK_SECONDS

    def end(self):
        """Tell how far the run has come."""
        if self._said != self._now:
            self.say(self.text())
        if self._path:
            self._note(ended=time.time())

    def status(self, ended=None):
        """What the file of status says."""
        return Status(
            host=socket.gethostname(),
            process=os.getpid(),
            started=time.time() - (time.monotonic() - (self._began or time.monotonic())),
            told=time.time(),
            ended=ended,
            cells=self._all_cells,
            cells_done=sum(left <= 0 for left in self._cells.values()),
            trials=self.trials,
            trials_done=self.done,
            failed=self.failed,
            seeds_of_studies_left=self.others,
            a_second=self._rate(),
            workers=self.workers,
            dashboard=self.dashboard,
        )

    def text(self, width=None):
        """One line of at most so many letters, what matters most first."""
        found = self.status()
        left = self._left()
        parts = [
            f"{self.done} of {self.trials} trials done, {self.failed} failed",
            f"{duration(left)} left" if left else "",
            f"{found.cells_done} of {found.cells} cells" if found.cells else "",
            f"{self.others} seeds of studies left" if self.others else "",
            f"{found.a_second:.3g} a second" if found.a_second else "",
            f"{self.workers} workers" if self.workers else "",
            self.dashboard,
        ]
        line = parts[0]
        for part in parts[1:]:
            if part and (width is None or len(line) + len(part) + 2 <= width):
                line += f", {part}"
        return line if width is None else line[:width]

    def _rate(self):
        passed = time.monotonic() - self._began if self._began is not None else 0
        return self._now / passed if passed > 1 else None

    def _left(self):
        """Seconds that the rest takes at this rate."""
        if self.done == self.trials and not self._studies:
            return None  # a part of the sweep may be asked for, without its studies
        rest = self.trials - self.done + self.others
        return rest / self._rate() if rest and self._rate() and self._now > 2 else None

    def _draw(self):
        width = shutil.get_terminal_size().columns - 1  # in the last column a line would wrap
        with contextlib.suppress(OSError, ValueError):
            width = os.get_terminal_size(sys.stdout.fileno()).columns - 1
        start = self._start if width > 60 else ""
        self._write(f"{start}{self.text(width - len(start))}")
        self._stands = True

    def _write(self, text):
        with contextlib.suppress(OSError):  # a closed terminal does not end the run
            print(f"{CLEAR if self._stands else ''}{text}", end="", flush=True)
        self._stands = False

    def _note(self, ended=None):
        with contextlib.suppress(OSError):  # the disk is full, or the folder is gone
            write_atomically(self._path, as_json(self.status(ended)))


def say(text, stream=None):
    """One line on the terminal, in the place of a line that stands there."""
    stream = stream or sys.stderr
    with contextlib.suppress(OSError):  # a closed terminal
        print(f"{CLEAR if stream.isatty() else ''}[bqlib] {text}", file=stream, flush=True)
