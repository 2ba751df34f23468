"""Trials of unfinished pieces on disk, and the progress of a run on the terminal."""

import collections
import contextlib
import time
import uuid
import zipfile
import zlib

from bqlib.results.files import read_private
from bqlib.studies.study import pack, unpack

PROGRESS_SECONDS = 5
SECONDS = "seconds of the trial"  # among its arrays, whose names have no blanks
MOST_BYTES = 2**32  # of a trial
KEPT_PIECES = 1000  # more than Snakemake has jobs at a time


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
        return self.folder / f"{digest}-{seed}.npz"

    def read(self, digest, seed):
        """What was written, or None."""
        try:
            [arrays] = unpack(read_private(self._path(digest, seed), MOST_BYTES))
            seconds = float(arrays.pop(SECONDS))
        except (OSError, ValueError, KeyError, EOFError, zipfile.BadZipFile, zlib.error):
            return None
        except MemoryError:  # arrays that claim to be larger than what this process may have
            return None
        # Numbers and texts were packed as arrays without dimensions.
        return {k: a if a.ndim else a.item() for k, a in arrays.items()}, seconds

    def write(self, digest, seed, outcome):
        arrays, seconds = outcome
        self.folder.mkdir(mode=0o700, exist_ok=True)
        temporary = self.folder / f"{uuid.uuid4().hex}.tmp"
        with open(temporary, "xb") as file:  # not synced, as it may be lost
            file.write(pack([arrays | {SECONDS: seconds}]))
        temporary.rename(self._path(digest, seed))

    def delivered(self, digest, seeds):
        """Forget the trials of a piece, once enough further ones were delivered."""
        self._delivered.append([self._path(digest, seed) for seed in seeds])
        if len(self._delivered) > KEPT_PIECES:
            for path in self._delivered.popleft():
                path.unlink(missing_ok=True)
