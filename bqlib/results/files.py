"""Files of results: written whole or not at all, and files that are private to this user."""

import json
import os
import shutil
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


def open_privately(path, flags):
    """An opener for :func:`open`: only this user may read the files that it creates."""
    return os.open(path, flags, 0o600)


def is_private(path):
    """Whether only this user can have written a file, or into a folder."""
    found = os.stat(path)
    return found.st_uid == os.getuid() and not found.st_mode & 0o022


def read_head(store):
    """The head of a store: its attributes, and the metadata of its arrays."""
    return json.loads(head(store).read_bytes())


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
