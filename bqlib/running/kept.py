"""Trials of unfinished pieces on disk."""

import collections
import contextlib
import uuid
import zipfile
import zlib

from bqlib.results.files import read_private
from bqlib.studies.study import pack, unpack

SEED, SECONDS = "seed of the trial", "seconds of the trial"  # names of arrays have no blanks
MOST_BYTES = 2**32  # of a file
KEPT_PIECES = 1000  # more than Snakemake has yet to take note of
SUFFIX = ".npz"


class Kept:
    """Results of trials, on disk until Snakemake has surely taken note of their pieces.

    They serve the next run where this one is killed. A trial is known by its cell's digest and its
    seed. Trials that ended together are in one file.
    """

    def __init__(self, folder):
        self.folder = folder
        self._files = collections.defaultdict(dict)  # digest to path to seeds, once these are known
        for path in sorted(folder.glob(f"*{SUFFIX}")):
            self._files[path.name.partition("-")[0]][path] = set()
        self._delivered = collections.deque()

    def read(self, digest, seeds):
        """Seed to (arrays, seconds) of those trials of a cell that were kept."""
        found, files = {}, self._files.get(digest, {})
        for path, own in files.items():
            if not own or own.intersection(seeds):
                trials = _read(path)
                files[path] = set(trials)
                found |= {seed: trials[seed] for seed in seeds if seed in trials}
        return found

    def write(self, digest, outcomes):
        """Keep trials of a cell: seed to (arrays, seconds)."""
        self.folder.mkdir(mode=0o700, exist_ok=True)
        name = uuid.uuid4().hex
        temporary = self.folder / f"{name}.tmp"
        trials = [
            arrays | {SEED: seed, SECONDS: seconds} for seed, (arrays, seconds) in outcomes.items()
        ]
        path = self.folder / f"{digest}-{name}{SUFFIX}"
        try:
            with open(temporary, "xb") as file:  # not synced, as it may be lost
                file.write(pack(trials))
            temporary.rename(path)
        except OSError:
            with contextlib.suppress(OSError):
                temporary.unlink(missing_ok=True)
            raise
        self._files[digest][path] = set(outcomes)

    def delivered(self, digest, seeds):
        """Forget the trials of a piece, once enough further ones were delivered."""
        self._delivered.append((digest, seeds))
        if len(self._delivered) > KEPT_PIECES:
            digest, seeds = self._delivered.popleft()
            files = self._files.get(digest, {})
            for path in [path for path, own in files.items() if own and own.issubset(seeds)]:
                path.unlink(missing_ok=True)
                del files[path]


def _read(path):
    """What was written to a file; nothing if it is damaged, or may be another user's."""
    try:
        trials = unpack(read_private(path, MOST_BYTES))
        heads = [(int(arrays.pop(SEED)), float(arrays.pop(SECONDS))) for arrays in trials]
    except (OSError, ValueError, KeyError, EOFError, TypeError, zipfile.BadZipFile, zlib.error):
        return {}
    except MemoryError:  # arrays that claim to be larger than what this process may have
        return {}
    # Numbers and texts were packed as arrays without dimensions.
    return {
        seed: ({k: a if a.ndim else a.item() for k, a in arrays.items()}, seconds)
        for (seed, seconds), arrays in zip(heads, trials, strict=True)
    }
