"""Writing files so that nobody ever sees half of one."""

import os
import uuid
from pathlib import Path


def write_atomically(path, data):
    """Write bytes to `path`: whole and on disk, or not at all.

    Parameters
    ----------
    path : path-like
        Its folder is made where it is missing.
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
