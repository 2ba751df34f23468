"""Files of results: written whole or not at all, and files that are private to this user."""

import errno
import os
import re
import shutil
import stat
import uuid
from contextlib import contextmanager
from pathlib import Path

# Names of what is being written: by replacing, and by write_atomically.
UNFINISHED = re.compile(r"\.[0-9a-f]{32}\..+|\..+\.[0-9a-f]{32}\.tmp")


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
        with _errors_of(path, temporary):
            with open(temporary, "xb") as file:
                file.write(data)
                file.flush()
                os.fsync(file.fileno())
            os.replace(temporary, path)
    except BaseException:
        _remove(temporary)
        raise
    _sync(path.parent, os.O_DIRECTORY)  # the rename itself; the folder may be a user's link


@contextmanager
def _errors_of(path, temporary):
    """Errors of writing `temporary`, with the name that the user knows."""
    try:
        yield
    except OSError as error:
        own = not error.filename or str(error.filename).startswith(str(temporary))
        if own and error.errno is not None:  # without a number, the text would be lost
            error.filename, error.filename2 = str(path), None
        raise


def _sync(path, flags=os.O_NOFOLLOW):
    """Wait until a file or a folder is on the disk; of a folder, the names in it."""
    opened = os.open(path, os.O_RDONLY | flags)
    try:
        os.fsync(opened)
    finally:
        os.close(opened)


def _sync_all(path):
    """As :func:`_sync`, of a file, or of a folder and all that is in it."""
    for folder, _, names in os.walk(path):
        for name in names:
            _sync(os.path.join(folder, name))
        _sync(folder)
    if not os.path.isdir(path):
        _sync(path)


NOT_REGULAR = "is not a regular file"


def open_itself(path, flags):
    """An opener for :func:`open` that refuses a link, and waits for nobody at a pipe.

    Results from elsewhere may hold any.
    """
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o666)


def open_privately(path, flags):
    """As :func:`open_itself`, of files that nobody but this user may read."""
    return os.open(path, flags | os.O_NOFOLLOW | os.O_NONBLOCK, 0o600)


def read_regular(path, most=None):
    """Bytes of a file; an OSError if it has more than `most`, or is a pipe, a device and so on."""
    with open(path, "rb", opener=_at_once) as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EPERM, NOT_REGULAR, str(path))
        if most is not None and found.st_size > most:
            raise OSError(
                errno.EFBIG, f"has {found.st_size:,} bytes, more than {most:,}", str(path)
            )
        return file.read()


def _at_once(path, flags):
    return os.open(path, flags | os.O_NONBLOCK)


def strange_files(folder):
    """Paths below a folder that are links, pipes or anything else but files and folders."""
    for place, folders, names in os.walk(folder):
        for path in (Path(place, name) for name in (*folders, *names)):
            try:
                mode = path.lstat().st_mode
            except FileNotFoundError:  # a run that is alive has removed or renamed it
                continue
            if not (stat.S_ISREG(mode) or stat.S_ISDIR(mode)):
                yield path


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
        return opened.read(found.st_size)  # with `most`, that much memory would be set aside


def remove_unfinished(folder):
    """Remove what :func:`write_atomically` and :func:`replacing` have left below `folder`.

    Only for whoever holds the lock of the results: nobody else may be writing.
    """
    for path in [path for path in Path(folder).rglob(".*") if UNFINISHED.fullmatch(path.name)]:
        _remove(path)


def _remove(path):
    """Remove a file, or a folder with all that is in it; nothing happens where it is gone."""
    if os.path.isdir(path) and not path.is_symlink():
        shutil.rmtree(path, ignore_errors=True)
    elif os.path.lexists(path):  # to both, no is the answer for a name that is too long
        path.unlink(missing_ok=True)


@contextmanager
def making(path):
    """Give a path to write a new folder to, which gets the name `path` at the end.

    What was written is on the disk before. If the writing fails, or if there is something at `path`
    by then (an OSError), nothing is left of it.

    Parameters
    ----------
    path : path-like
        Missing folders above it are created.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    new = path.with_name(f".{uuid.uuid4().hex}.{path.name}")
    try:
        with _errors_of(path, new):
            yield new
            _sync_all(new)
            os.rename(new, path)  # which replaces no folder that holds anything
            _sync(path.parent, os.O_DIRECTORY)
    finally:
        _remove(new)


@contextmanager
def replacing(path):
    """Give a path to write a file or a folder to, which replaces `path` at the end.

    The old one is removed only then. If the writing fails, it stays. What was written is on the
    disk before it gets its name, so that a power failure leaves the old one or the whole new one.

    Parameters
    ----------
    path : path-like
        Missing folders above it are created.
    """
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    new, old = (path.with_name(f".{uuid.uuid4().hex}.{path.name}") for _ in range(2))
    try:
        with _errors_of(path, new):
            yield new
            _sync_all(new)
            if path.is_dir():  # which no rename replaces
                os.rename(path, old)
            try:
                os.replace(new, path)
            except BaseException:
                if old.exists():
                    os.rename(old, path)
                raise
            _sync(path.parent, os.O_DIRECTORY)
    finally:
        for left in (new, old):
            _remove(left)
