"""The progress of a run on the terminal."""

import contextlib
import sys
import time

PROGRESS_SECONDS = 5


class Progress:
    """Says on the terminal what is done and what is left, of a sweep that may be named."""

    def __init__(self, trials, name=""):
        self.total = trials
        self._start = f"[bqlib] {name}: " if name else "[bqlib] "
        self.done = self.failed = 0
        self.started = self.spoken = None

    def say(self, text):
        with contextlib.suppress(OSError):  # a closed terminal does not end the run
            print(f"{self._start}{text}", flush=True)

    def trials(self, done, failed):
        """Count trials that were done, some of which failed."""
        if not done:
            return
        self.started = self.started or time.monotonic()
        self.done += done
        self.failed += failed
        self.total = max(self.total, self.done)
        now = time.monotonic()
        last = self.done == self.total
        if self.spoken is None or now - self.spoken >= PROGRESS_SECONDS or last:
            self.spoken = now
            left = (now - self.started) / self.done * (self.total - self.done)
            self.say(
                f"{self.done} of {self.total} trials done, {self.failed} failed"
                + ("" if last or self.done < 3 else f", about {left:.0f} s left")
            )


def say(text):
    """One line on the terminal."""
    with contextlib.suppress(OSError):  # a closed terminal
        print(f"[bqlib] {text}", file=sys.stderr)
