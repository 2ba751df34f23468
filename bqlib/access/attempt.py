"""One trial of curves, wherever it runs. It imports little, as each process loads it."""

import os
import signal
import threading
import time

from bqlib.results.retry import OUT_OF_MEMORY
from bqlib.results.text import failure_of


def attempt(spec, seed):
    """Curves of one trial, or why it failed."""
    try:
        return spec.run(seed)[0]
    except MemoryError as error:
        return f"{OUT_OF_MEMORY}: {error}".removesuffix(": ")
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # somebody's design may raise any
        return failure_of(error)


def follow(parent):
    """Let this process end when its parent ends it, or is gone, and not by an interrupt."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    threading.Thread(target=_end_without, args=(parent,), daemon=True).start()


def _end_without(parent):
    while os.getppid() == parent:
        time.sleep(0.5)
    os._exit(1)
