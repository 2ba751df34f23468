"""Trials of unfinished pieces on disk, and the progress of a run on the terminal."""

import collections
import contextlib
import pickle
import time

from bqlib.results.files import is_private

PROGRESS_SECONDS = 5
KEPT_PIECES = 1000  # more than Snakemake has jobs at a time


class Progress:
    """Says on the terminal what is done and what is left."""

    def __init__(self, trials):
        self.total = trials
        self.done = self.failed = 0
        self.started = self.spoken = None

    def say(self, text):
        with contextlib.suppress(OSError):  # a closed terminal does not end the run
            print(f"[bqlib] {text}", flush=True)

    def trial(self, failed):
        self.started = self.started or time.monotonic()
        self.done += 1
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


class Kept:
    """Results of trials, on disk until Snakemake has surely taken note of their pieces.

    They serve the next run where this one is killed. A trial is known by its cell's digest.
    """

    def __init__(self, folder):
        self.folder = folder
        self._delivered = collections.deque()

    def _path(self, digest, seed):
        return self.folder / f"{digest}-{seed}.pickle"

    def read(self, digest, seed):
        """What was written, or None."""
        try:
            if not is_private(self.folder):  # what others wrote must not be unpickled
                return None
            return pickle.loads(self._path(digest, seed).read_bytes())
        except (OSError, EOFError, pickle.UnpicklingError):
            return None

    def write(self, digest, seed, outcome):
        self.folder.mkdir(mode=0o700, exist_ok=True)
        path = self._path(digest, seed)
        path.with_suffix(".tmp").write_bytes(pickle.dumps(outcome))
        path.with_suffix(".tmp").rename(path)

    def delivered(self, digest, seeds):
        """Forget the trials of a piece, once enough further ones were delivered."""
        self._delivered.append([self._path(digest, seed) for seed in seeds])
        if len(self._delivered) > KEPT_PIECES:
            for path in self._delivered.popleft():
                path.unlink(missing_ok=True)
