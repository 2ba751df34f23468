"""One thread for linear algebra, whoever else sets and lifts the limit."""

import threading

import numpy as np  # noqa: F401, as it loads the library that is limited
from threadpoolctl import threadpool_info, threadpool_limits

from bqlib.sweep.blas import one_blas_thread


def threads():
    return {pool["num_threads"] for pool in threadpool_info() if pool["user_api"] == "blas"}


def test_the_last_to_leave_lifts_the_limit():
    inside, leave = threading.Event(), threading.Event()

    def stay():
        with one_blas_thread():
            inside.set()
            leave.wait(10)

    with threadpool_limits(2):
        before = threads()
        other = threading.Thread(target=stay)
        with one_blas_thread():
            other.start()
            assert inside.wait(10)
        assert threads() == {1}
        leave.set()
        other.join()
        assert threads() == before == {2}


def test_an_error_lifts_the_limit():
    with threadpool_limits(2):
        try:
            with one_blas_thread():
                raise ValueError
        except ValueError:
            assert threads() == {2}
