"""One thread for linear algebra, in a process that may run several trials side by side."""

import threading
from contextlib import contextmanager

from threadpoolctl import OpenBLASController, threadpool_limits

_lock = threading.Lock()
_users = 0
_limits = None


@contextmanager
def one_blas_thread():
    """A context in which linear algebra runs on one thread.

    The limit is one of the whole process. Where several threads are in such a context, the first
    one sets it and the last one lifts it: each by itself would restore the limit of another.
    OpenBLAS takes limits from one thread alone, which therefore hands them on.
    """
    global _users, _limits
    with _lock:
        if _users == 0:
            OpenBLASController.clear_controlling_thread(force=True)
            _limits = threadpool_limits(1)
        _users += 1
    try:
        yield
    finally:
        with _lock:
            _users -= 1
            if _users == 0:
                OpenBLASController.clear_controlling_thread(force=True)
                _limits.restore_original_limits()
