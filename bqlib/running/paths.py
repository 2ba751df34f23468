"""The files that a run is about, and how its processes hand them on."""

import json
import os
from dataclasses import asdict, dataclass
from pathlib import Path

# Environment variables, through which Snakemake's jobs know their run.
SOCKET = "BQLIB_RUN"  # path of the run's socket
PATHS = "BQLIB_PATHS"  # the run's Paths as JSON


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
        """Put the paths into the environment of this process's children."""
        os.environ[PATHS] = self.as_json()
