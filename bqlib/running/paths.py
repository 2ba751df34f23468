"""The files that a run is about, and how its processes hand them on."""

import json
import os
from contextlib import contextmanager
from dataclasses import asdict, dataclass
from pathlib import Path

# Environment variables, through which Snakemake's jobs know their run.
SOCKET = "BQLIB_RUN"  # path of the run's socket
PATHS = "BQLIB_PATHS"  # the run's Paths as JSON
SNAKEMAKE = "BQLIB_SNAKEMAKE"  # process number of the Snakemake that reads the environment's Paths


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
    """

    sweep: Path
    shelf: Path
    site: Path
    results: Path

    @classmethod
    def from_json(cls, text):
        """The paths from the text of :meth:`as_json`."""
        return cls(**{name: Path(path) for name, path in json.loads(text).items()})

    def as_json(self):
        """The paths as a text."""
        return json.dumps({name: str(path) for name, path in asdict(self).items()})

    def announce(self):
        """Put the paths, and who this process is, into the environment of its children."""
        os.environ |= {PATHS: self.as_json(), SNAKEMAKE: str(os.getpid())}
