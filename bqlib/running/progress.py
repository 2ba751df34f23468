"""What a run has done and what is left: on the terminal, in its log and in its file of status."""

import contextlib
import os
import shutil
import socket
import sys
import time
from collections import Counter

from bqlib.results.files import open_itself, write_atomically
from bqlib.results.text import duration
from bqlib.running.status import Status, as_json

TIME = "%Y-%m-%d %H:%M:%S"  # of lines in the log
DRAW_SECONDS = 0.5  # between two looks of the line that stands on a terminal
SPEAK_SECONDS = 30  # between two lines where there is no terminal, and in the log
NOTE_SECONDS = 5  # between two files of status
CLEAR = "\r\x1b[K"  # the line that stands


class Progress:
    """Counts what a run does, and tells it.

    On a terminal, one line stands and is drawn again; elsewhere a line comes now and then. The log
    has these lines in any case. Each trial counts once, however often a run is asked for it.

    Parameters
    ----------
    trials : int
        Of the whole sweep.
    done, failed : iterable of (Cell, int)
        Cell and seed of the trials that were done before, and of those of them that failed.
    pieces : iterable of (Cell, str), optional
        Cell and name of the pieces that are still to be made.
    cells : int
        Of the whole sweep.
    seeds : int
        Seeds of studies that are still to be run.
    path, log : Path, optional
        The file of status, and the log.
    name : str, optional
        Of the sweep, where a workflow may have several.
    """

    def __init__(
        self,
        trials,
        done=(),
        failed=(),
        pieces=(),
        cells=0,
        seeds=0,
        path=None,
        log=None,
        name="",
    ):
        self._done, self._failed, self._pieces = _Trials(done), _Trials(failed), set(pieces)
        self._unfinished = Counter(cell for cell, _ in self._pieces)
        self.trials, self.cells, self.seeds = trials, cells, seeds
        self.workers, self.dashboard = 0, ""
        self._path, self._log = path, log
        self._start = f"[bqlib] {name}: " if name else "[bqlib] "
        self._began = self._last = self._spoken = self._drawn = self._noted = None
        self._now = self._said = 0  # trials and seeds of studies that this run has done, has told
        self._studied = set()  # seeds of studies that it has done
        self._stands = self._ended = False  # whether a line stands, and whether it was the last

    @property
    def done(self):
        """Number of trials that are done."""
        return self._done.count

    @property
    def failed(self):
        """Number of trials that failed."""
        return self._failed.count

    @property
    def seeds_left(self):
        """Number of seeds of studies that are still to be run."""
        return max(self.seeds - len(self._studied), 0)

    def say(self, text):
        """A line that stays."""
        self._write(f"{self._start}{text}\n")
        note(self._log, text)

    def count(self, done, failed=()):
        """Count trials that were done, and those of them that failed, as (cell, seed)."""
        self._done.add(done)
        self._failed.remove(done)
        self._failed.add(failed)
        self._counted(len(done))

    def count_seeds(self, done):
        """Count seeds of studies that were done, as (name, seed)."""
        self._studied.update(done)
        self._counted(len(done))

    def _counted(self, number):
        if number:
            self._began = self._began or time.monotonic()
            self._now += number
            self._last = time.monotonic()
            self.tell()

    def show(self, dashboard):
        """Name the address of the dashboard from now on."""
        self.dashboard = dashboard

    def piece(self, cell, name):
        """Count a piece of a cell."""
        if (cell, name) in self._pieces:
            self._pieces.remove((cell, name))
            self._unfinished[cell] -= 1

    def tell(self):
        """Tell what there is to tell, if it is time."""
        now = time.monotonic()
        stands = may_stand(sys.stdout)
        if self._began is not None and self._is_time_to_speak(now):
            self._spoken = now
            self._speak(shown=not stands)
        is_due = self._drawn is None or now - self._drawn >= DRAW_SECONDS
        if self._began is not None and stands and is_due and not self._ended:
            self._drawn = now
            self._draw()
            self._end_line()
        if self._path and (self._noted is None or now - self._noted >= NOTE_SECONDS):
            self._noted = now
            self._note()

    def _end_line(self):
        """Let the line that stands stay, once all is computed: other steps tell of themselves."""
        if self._is_complete():
            self._write(f"{self._start}{self.text()}\n")
            self._ended = True

    def _is_time_to_speak(self, now):
        """Whether there is something new, and all is done and made, or a while has passed."""
        if self._said == self._now:
            return False
        return self._is_complete() or self._spoken is None or now - self._spoken >= SPEAK_SECONDS

    def end(self):
        """Tell how far the run has come."""
        if may_stand(sys.stdout) and self._began is not None:
            if not self._ended:
                self._write(f"{self._start}{self.text()}\n")  # where the line stood
            self._speak(shown=False)
        else:
            self._speak()
        if self._path:
            self._note(ended=time.time())

    def _speak(self, shown=True):
        """Tell what is new, in the log and perhaps on the screen."""
        if self._said != self._now:
            self._said = self._now
            self.say(self.text()) if shown else note(self._log, self.text())

    def status(self, ended=None):
        """What the file of status says."""
        return Status(
            host=socket.gethostname(),
            process=os.getpid(),
            started=time.time() - (time.monotonic() - (self._began or time.monotonic())),
            told=time.time(),
            ended=ended,
            cells=self.cells,
            cells_done=self._cells_done(),
            trials=self.trials,
            trials_done=self.done,
            failed=self.failed,
            seeds_of_studies_left=self.seeds_left,
            a_second=self._rate(),
            workers=self.workers,
            dashboard=self.dashboard,
        )

    def text(self, width=None):
        """One line of at most so many letters, what matters most first.

        Where not even the trials have room, they are told in fewer words, and no number is cut.
        """
        left, rate = self._left(), self._rate()
        heads = [
            f"{self.done} of {self.trials} trials done, {self.failed} failed",
            f"{self.done}/{self.trials} done, {self.failed} failed",
            f"{self.done}/{self.trials}",
            "",
        ]
        parts = [
            f"{duration(left)} left" if left else "",
            f"{len(self._studied)} of {self.seeds} seeds of studies" if self.seeds else "",
            f"{self._cells_done()} of {self.cells} cells" if self.cells else "",
            f"{rate:.3g} a second" if rate else "",
            f"{self.workers} workers" if self.workers else "",
            self.dashboard,
        ]
        line = next(head for head in heads if width is None or len(head) <= max(width, 0))
        for part in parts:
            if part and (width is None or len(line) + len(part) + 2 <= width):
                line += f", {part}"
        return line

    def _cells_done(self):
        return self.cells - sum(left > 0 for left in self._unfinished.values())

    def _rate(self):
        if self._began is None:
            return None
        # Of what was computed: the steps after that take time, too.
        passed = (self._last if self._is_complete() else time.monotonic()) - self._began
        return self._now / passed if passed > 1 else None

    def _is_complete(self):
        """Whether all trials are done, and all their pieces are made."""
        return self.done == self.trials and not self.seeds_left and self._cells_done() == self.cells

    def _left(self):
        """Seconds that the rest takes at this rate."""
        if self.done == self.trials and not self._studied:
            return None  # a part of the sweep may be asked for, without its studies
        rest = self.trials - self.done + self.seeds_left
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


class _Trials:
    """A set of trials, (cell, seed), with one bit for each: there may be ten million."""

    def __init__(self, trials):
        self.count, self._bits = 0, {}
        self.add(trials)

    def add(self, trials):
        for cell, seed in trials:
            known = self._bits.get(cell, 0)
            self.count += not known >> seed & 1
            self._bits[cell] = known | 1 << seed

    def remove(self, trials):
        for cell, seed in trials:
            known = self._bits.get(cell, 0)
            self.count -= known >> seed & 1
            self._bits[cell] = known & ~(1 << seed)


def may_stand(stream):
    """Whether a line may stand and be drawn again: on a terminal that knows how to clear one."""
    return stream.isatty() and (os.environ.get("TERM") or "dumb") != "dumb"


def say(text, stream=None):
    """One line on the terminal, in the place of a line that stands there."""
    stream = stream or sys.stderr
    with contextlib.suppress(OSError):  # a closed terminal
        print(f"{CLEAR if may_stand(stream) else ''}[bqlib] {text}", file=stream, flush=True)


def note(log, text):
    """One line with its time at the end of a log, if there is one."""
    if log is None:
        return
    with contextlib.suppress(OSError), open(log, "ab", opener=open_itself) as file:
        file.write(f"{time.strftime(TIME)} {text}\n".encode(errors="backslashreplace"))
