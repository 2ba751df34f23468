"""The status of a run: what its process last said in a file, and whether it is alive."""

import json
import os
import re
import socket
import stat
import time
from dataclasses import asdict, dataclass, fields

from bqlib.results.files import open_itself
from bqlib.results.layout import Layout
from bqlib.results.text import duration
from bqlib.running.errors import RunError

MOST_BYTES = 10_000
SILENT_SECONDS = 60  # after which a run that has not said a word is suspect


@dataclass(frozen=True)
class Status:
    """What a run says of itself.

    Attributes
    ----------
    host : str
    process : int
        Of the run's process, on that machine.
    started, told : float
        When its first trial was done, and when this was written, in seconds since 1970.
    ended : float or None
        When the run ended by itself.
    cells, cells_done : int
        Of the whole sweep.
    trials, trials_done, failed : int
        Of the whole sweep; those that failed are done, too.
    seeds_of_studies_left : int
    a_second : float or None
        Trials and seeds of studies that this run does in a second.
    workers : int
    dashboard : str
    """

    host: str
    process: int
    started: float
    told: float
    ended: float | None
    cells: int
    cells_done: int
    trials: int
    trials_done: int
    failed: int
    seeds_of_studies_left: int
    a_second: float | None
    workers: int
    dashboard: str


TEXTS = {"host": r"[\w.-]{1,255}", "dashboard": r"(http://[\w.-]+:\d{1,5}/status)?"}


def as_json(status):
    """Bytes of the file of a status."""
    return json.dumps(asdict(status), indent=1).encode() + b"\n"


def read_status(results):
    """What the last run on a folder of results has said; None if it said nothing.

    Raises
    ------
    RunError
        If the file is not as a run writes it.
    """
    path = Layout(results).status
    try:
        with open(path, "rb", opener=open_itself) as file:
            if not stat.S_ISREG(os.fstat(file.fileno()).st_mode):
                raise ValueError("it is no file")
            data = file.read(MOST_BYTES + 1)
        if len(data) > MOST_BYTES:
            raise ValueError("it is too large")
        return Status(**_checked(json.loads(data)))
    except FileNotFoundError:
        return None
    except (OSError, ValueError, TypeError, RecursionError) as error:
        raise RunError(
            f"{path} is not what a run writes ({error!s:.100}): remove it, the next run writes it"
        ) from None


def _checked(found):
    """The fields of a status, each of its type."""
    names = {field.name for field in fields(Status)}
    if not isinstance(found, dict) or found.keys() != names:
        raise ValueError("it has other fields")
    for name, pattern in TEXTS.items():
        if not isinstance(found[name], str) or not re.fullmatch(pattern, found[name]):
            raise ValueError(f"{name} is none")
    for name in names - set(TEXTS):
        value = found[name]
        if value is None and name in ("ended", "a_second"):
            continue
        whole = name not in ("started", "told", "ended", "a_second")
        if type(value) not in ((int,) if whole else (int, float)):
            raise ValueError(f"{name} is no number")
        if not 0 <= value < 1e15:  # which NaN is not
            raise ValueError(f"{name} is out of range")
    return found


def as_text(results, status, owner):
    """A status for people.

    Parameters
    ----------
    results : path-like
    status : Status
    owner : str
        Who holds the lock of the results; empty if nobody does.
    """
    ago = max(time.time() - status.told, 0)
    lines = [f"{results}: {_state(results, status, owner, ago)}"]
    lines.append(
        f"{status.cells_done} of {status.cells} cells, {status.trials_done} of {status.trials} "
        f"trials done, {status.failed} failed"
    )
    if status.seeds_of_studies_left:
        lines.append(f"{status.seeds_of_studies_left} seeds of studies left")
    if owner and status.a_second:
        left = max(status.trials - status.trials_done, 0) + status.seeds_of_studies_left
        lines.append(
            f"{status.a_second:.3g} a second on {status.workers} workers"
            + (f", about {duration(left / status.a_second)} left" if left else "")
        )
    if owner and status.dashboard:
        lines.append(f"dashboard on {status.host}: {status.dashboard}")
    return "\n".join(lines)


def _has_gone(status):
    """Whether the process is known to be gone, as it was one of this machine."""
    try:
        os.kill(status.process, 0)
    except (ProcessLookupError, OverflowError):
        return status.host == socket.gethostname()
    except PermissionError:  # another user's
        pass
    return False


def _state(results, status, owner, ago):
    if owner:
        heard = f"heard of {duration(ago)} ago"
        return f"running ({owner}), {heard}" + (
            ": it may be stopped, or its machine may be gone" if ago > SILENT_SECONDS else ""
        )
    if status.ended is not None:
        when = f"ended {duration(max(time.time() - status.ended, 0))} ago on {status.host}"
        if Layout(results).manifest.exists():  # which a run writes last
            return f"complete, {when}"
        return f"{when} before it was complete: bqlib resume goes on"
    if ago < SILENT_SECONDS and not _has_gone(status):
        # Where locks do not reach other machines, it may run there.
        return f"a run on {status.host} was heard of {duration(ago)} ago; it does not hold its lock"
    return (
        f"killed on {status.host}, heard of {duration(ago)} ago: to go on, bqlib resume the sweep "
        "there"
    )
