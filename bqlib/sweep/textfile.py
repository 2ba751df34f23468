"""Text files of users, read within a limit of bytes."""

import errno
import os
import stat


def read_text(path, most):
    """The text of a file in UTF-8, without its byte order mark.

    Parameters
    ----------
    path : path-like
    most : int
        The largest number of bytes.

    Raises
    ------
    OSError
        If there is no such file, or it is no regular file or larger.
    UnicodeDecodeError
        If it is not text in UTF-8.
    """
    # Without waiting for whoever writes to a pipe.
    with open(os.open(path, os.O_RDONLY | os.O_NONBLOCK), "rb") as file:
        found = os.fstat(file.fileno())
        if not stat.S_ISREG(found.st_mode):
            raise OSError(errno.EINVAL, "is not a regular file", str(path))
        data = file.read(most + 1)  # a file may grow after it was measured
    if len(data) > most:
        words = f"has more than {most / 2**20:g} MiB, which is the limit"
        raise OSError(errno.EFBIG, words, str(path))
    return data.decode("utf-8-sig")
