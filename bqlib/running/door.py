"""The door of a run: where jobs ask for its process, which starts when the first of them does.

Snakemake's start hook opens no run where its workflow is a module of another one: hooks of modules
are not called. So the process that reads the workflow listens at a socket, in a thread, and is the
only one that starts the run's process, however many jobs ask at once.
"""

import json
import socket
import threading
import time
from contextlib import suppress

from bqlib.running.errors import RunEndedError, RunError
from bqlib.running.paths import of_socket

WAITING = 1024  # jobs whose questions may wait for the first answer


def open_door(path, answer):
    """Answer all who ask at a path, one after the other, until this process ends.

    Parameters
    ----------
    path : path-like
        Of the socket, in a folder that is private to this user.
    answer : callable
        Gives the answer, which JSON can hold; a RunError is told to who asks.
    """
    listening = socket.socket(socket.AF_UNIX)
    with of_socket(path) as place:
        listening.bind(place)
    listening.listen(WAITING)
    threading.Thread(target=_answer_all, args=(listening, answer), daemon=True).start()


def _answer_all(listening, answer):
    while True:
        try:
            connection, _ = listening.accept()
        except OSError:  # too many open files, for now
            time.sleep(0.1)
            continue
        with connection:
            try:
                told = {"answer": answer()}
            except RunError as error:
                told = {"error": str(error)}
            except Exception as error:  # whatever it was, the waiting job must hear of it
                told = {"error": f"{type(error).__name__}: {error}"}
            with suppress(OSError):  # the job was killed
                connection.sendall(json.dumps(told).encode())


def ask(path):
    """The answer at the door of a run.

    Raises
    ------
    RunError
        If there is no run's process.
    RunEndedError
        If the run has ended.
    """
    data = b""
    gone = (ConnectionError, FileNotFoundError)
    with suppress(*gone), socket.socket(socket.AF_UNIX) as connection:
        with of_socket(path) as place:
            connection.connect(place)
        with connection.makefile("rb") as told:
            data = told.read()
    if not data:
        raise RunEndedError("the run ended before the work was done")
    found = json.loads(data)
    if "error" in found:
        raise RunError(found["error"])
    return found["answer"]
