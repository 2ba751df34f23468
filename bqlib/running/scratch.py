"""Private folders for temporary files, which the next run removes where a kill has left them.

Such a folder has a name that nobody can foresee. A file in it is locked for as long as a process of
the run lives, so that another run sees which folders nobody uses any more.
"""

import fcntl
import os
import shutil
import stat
import tempfile
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import TextIO

from bqlib.results.files import open_itself, open_privately

PREFIX = "bqlib-"
LOCK = "lock"


@dataclass(frozen=True)
class Scratch:
    """A private folder, and the open file that says that it is used."""

    path: Path
    lock: TextIO

    def remove(self):
        """Remove the folder with all that is in it; nothing happens where it is gone."""
        shutil.rmtree(self.path, ignore_errors=True)
        self.lock.close()


def make(base=None):
    """Make a private folder.

    Parameters
    ----------
    base : path-like, optional
        Where; by default among the temporary files of this machine.

    Returns
    -------
    Scratch
    """
    path = Path(tempfile.mkdtemp(prefix=PREFIX, dir=base))
    lock = open(path / LOCK, "w", encoding="utf-8", opener=open_privately)  # noqa: SIM115
    with suppress(OSError):  # on a disk without locks, where no other run takes it for left
        fcntl.flock(lock, fcntl.LOCK_EX)
    lock.write("used\n")  # only now: a folder whose lock is empty is just being made
    lock.flush()
    return Scratch(path, lock)


def remove_left(base=None):
    """Remove this user's folders of :func:`make` that no process uses any more.

    Parameters
    ----------
    base : path-like, optional
        Where, as in :func:`make`.
    """
    with suppress(OSError), os.scandir(base or tempfile.gettempdir()) as entries:
        for path in [Path(entry) for entry in entries if entry.name.startswith(PREFIX)]:
            with suppress(OSError):  # in use, another user's, or gone
                if _is_unused(path):
                    shutil.rmtree(path)


def _is_unused(path):
    """Whether a folder was made by :func:`make` for this user, and no process uses it."""
    found = path.lstat()
    if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.getuid() or found.st_mode & 0o077:
        return False
    with open(path / LOCK, "rb", opener=open_itself) as lock:
        fcntl.flock(lock, fcntl.LOCK_EX | fcntl.LOCK_NB)
        return lock.read(1) != b""
