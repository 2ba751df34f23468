"""The files that a run is about, and how its processes hand them on."""

import json
import os
import socket
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from pathlib import Path

# Environment variables, through which Snakemake's jobs know their runs: one for each sweep.
RUNS = "BQLIB_RUNS"  # folder of results to Announced, as JSON
SNAKEMAKE = "BQLIB_SNAKEMAKE"  # process number of the Snakemake that has announced them


@contextmanager
def of_socket(path):
    """A path to a socket that is short enough, whatever that of its folder.

    The system takes about 100 bytes, and folders of temporary files on clusters have long names.
    """
    folder = os.open(os.path.dirname(path), os.O_RDONLY | os.O_DIRECTORY)
    try:
        short = f"/proc/self/fd/{folder}/{os.path.basename(path)}"
        yield short if os.path.isdir(os.path.dirname(short)) else path
    finally:
        os.close(folder)


@dataclass(frozen=True)
class Paths:
    """The files that a run is about.

    Attributes
    ----------
    sweep : Path
        The sweep file.
    shelf : Path
        Folder of the targets that a sweep may call by name.
    site : Path
        The site file.
    results : Path
        The experiment's folder of results.
    folder : Path
        Where relative paths in the sweep start; by default the folder of its file.
    """

    sweep: Path
    shelf: Path
    site: Path
    results: Path
    folder: Path = None  # type: ignore[assignment]

    def __post_init__(self):
        if self.folder is None:
            object.__setattr__(self, "folder", Path(self.sweep).parent)

    @classmethod
    def from_json(cls, text):
        """The paths from the text of :meth:`as_json`."""
        return cls(**{name: Path(path) for name, path in json.loads(text).items()})

    def as_json(self):
        """The paths as a text."""
        return json.dumps({name: str(path) for name, path in asdict(self).items()})


@dataclass(frozen=True)
class Announced:
    """What the jobs of a sweep know of their run.

    Attributes
    ----------
    paths : str
        The run's :class:`Paths` as JSON.
    door : str
        Path of the socket at which the run's process is asked for, see
        :mod:`bqlib.running.door`; empty if there is none.
    host : str
        The machine that has it.
    """

    paths: str
    door: str = ""
    host: str = field(default_factory=socket.gethostname)


def announce(paths, door=None):
    """Tell the children of this process of a run, and who this process is.

    Parameters
    ----------
    paths : Paths
    door : path-like, optional
        By default that of the process which has started this one, if it is on this machine.
    """
    runs = _announced()
    if door is None:
        known = runs.get(str(paths.results))
        door = known.door if known and known.host == socket.gethostname() else ""
    runs[str(paths.results)] = Announced(paths.as_json(), str(door))
    text = json.dumps({results: asdict(run) for results, run in runs.items()})
    os.environ |= {RUNS: text, SNAKEMAKE: str(os.getpid())}


def announced(output):
    """The run that a file of results belongs to, by its path; None if none was announced."""
    folders = {str(folder) for folder in Path(output).parents}
    return next((run for results, run in _announced().items() if results in folders), None)


def _announced():
    found = json.loads(os.environ.get(RUNS, "{}"))
    return {results: Announced(**run) for results, run in found.items()}
