"""Files of results: written whole or not at all, and files that are private to this user."""

import errno
import json
import os
import shutil
import stat
import uuid
from contextlib import contextmanager
from pathlib import Path

from bqlib.results.layout import head


def write_atomically(path, data):
    """Write bytes to `path`: whole and on disk, or not at all.

    Parameters
    ----------
    path : path-like
        Missing folders above it are created.
    data : bytes
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    temporary = path.with_name(f".{path.name}.{uuid.uuid4().hex}.tmp")
    try:
        with open(temporary, "xb") as file:
            file.write(data)
            file.flush()
            os.fsync(file.fileno())
        os.replace(temporary, path)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)  # the rename itself
    finally:
        os.close(folder)


def open_itself(path, flags):
    """An opener for :func:`open` that refuses a link: results from elsewhere may hold any."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o666)


def open_privately(path, flags):
    """As :func:`open_itself`, of files that nobody but this user may read."""
    return os.open(path, flags | os.O_NOFOLLOW, 0o600)


def read_private(path, most):
    """Bytes of a file that nobody but this user can have written.

    Parameters
    ----------
    path : path-like
    most : int
        The largest number of bytes.

    Raises
    ------
    OSError
        If there is no such file; if it is a link or no regular file, if it belongs to another user,
        if others may write it, or if it is larger.
    """
    file = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
    with open(file, "rb") as opened:
        found = os.fstat(file)  # of what was opened: the name may mean something else by now
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EPERM, "is not a regular file", str(path))
        if found.st_uid != os.getuid() or found.st_mode & 0o022:
            raise OSError(errno.EPERM, "can be written by others", str(path))
        if found.st_size > most:
            raise OSError(errno.EFBIG, f"has more than {most} bytes", str(path))
        return opened.read(most)


def read_head(store):
    """The head of a store: its attributes, and the metadata of its arrays."""
    return json.loads(head(store).read_bytes())


def attributes_of(store):
    """Attributes of a store; none if it is missing or damaged."""
    try:
        return read_head(store).get("attributes", {})
    except (OSError, ValueError, AttributeError):
        return {}


@contextmanager
def replacing(path):
    """Give a path to write a file or a folder to, which replaces `path` at the end.

    The old one is removed only then. If the writing fails, it stays.

    Parameters
    ----------
    path : path-like
        Missing folders above it are created.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    new, old = (path.with_name(f".{uuid.uuid4().hex}.{path.name}") for _ in range(2))
    try:
        yield new
        if path.is_dir():  # which no rename replaces
            os.rename(path, old)
        try:
            os.replace(new, path)
        except BaseException:
            if old.exists():
                os.rename(old, path)
            raise
    finally:
        for left in (new, old):
            if left.is_dir():
                shutil.rmtree(left, ignore_errors=True)
            else:
                left.unlink(missing_ok=True)
