"""The path of each file in a folder of results. No other module spells these paths.

Only the standard library is imported, because the process of each of Snakemake's jobs reads this.
"""

import os
import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath

RESULTS = Path("results")  # all experiments
MANIFEST = "manifest-sha256.txt"
PROVENANCE = "provenance.json"
CURVES, RATES, FUNCTION_ERRORS = "curves.zarr", "rates.zarr", "function_errors.zarr"
CLAIMS, REPORT = "claims.json", "report.html"
PIECES, TIMINGS, STUDIES, FIGURES = "pieces", "timings", "studies", "figures"
RECORDS, RUN_LOG = "records", "run"
# What a run makes and the manifest covers. Nothing is read from logs and benchmarks but times, and
# records describe the code as well.
PARTS = (
    PIECES, TIMINGS, CURVES, RATES, FUNCTION_ERRORS, STUDIES, FIGURES, CLAIMS, REPORT, PROVENANCE,
)  # fmt: skip
HEAD = "zarr.json"  # of a store, and of each array in it
STORE = ".zarr"
PIECE, TIMING, RECORD = ".zarr.zip", ".json", ".txt"
RETRIED = ".retried"  # before the suffix of a piece whose failed trials are run again
BLOCK = re.compile(rf"seeds-(\d+)-(\d+)({re.escape(RETRIED)})?{re.escape(PIECE)}")


@dataclass(frozen=True)
class Layout:
    """The paths of one experiment's results.

    Attributes
    ----------
    folder : Path
        The folder of results, such as ``results/quick``.
    """

    folder: Path

    def __post_init__(self):
        object.__setattr__(self, "folder", Path(self.folder))

    def file(self, path):
        """A file, by its path below the results, as in the manifest."""
        return self.folder / path

    @property
    def curves(self):
        """Store of all curves."""
        return self.folder / CURVES

    @property
    def rates(self):
        """Store of the fitted rates."""
        return self.folder / RATES

    @property
    def function_errors(self):
        """Store of the errors of single functions."""
        return self.folder / FUNCTION_ERRORS

    @property
    def studies(self):
        """Folder of the stores of the studies."""
        return self.folder / STUDIES

    def study(self, name):
        """Store of a study."""
        return self.folder / path_of_study(name)

    def store(self, name):
        """Store of a dataset by its name, such as ``"curves"`` or ``"studies/cost"``."""
        return self.folder / f"{name}{STORE}"

    @property
    def pieces(self):
        """Folder of the pieces."""
        return self.folder / PIECES

    def piece(self, name):
        """A piece, by what :func:`piece_name` returns."""
        return self.pieces / name

    @property
    def timings(self):
        """Folder of the timings, one file for each piece."""
        return self.folder / TIMINGS

    def timing(self, piece):
        """Timings of a piece, by the name of the piece."""
        return self.timings / timing_name(piece)

    @property
    def figures(self):
        """Folder of the figures."""
        return self.folder / FIGURES

    def figure(self, name, suffix):
        """A figure; `suffix` is ``"svg"`` or ``"png"``."""
        return self.figures / f"{name}.{suffix}"

    @property
    def claims(self):
        """Verdicts on the claims of papers."""
        return self.folder / CLAIMS

    @property
    def report(self):
        """The report."""
        return self.folder / REPORT

    @property
    def manifest(self):
        """sha256 of every file that the run made."""
        return self.folder / MANIFEST

    @property
    def provenance(self):
        """Configuration and versions of what made the results."""
        return self.folder / PROVENANCE

    @property
    def records(self):
        """Folder of the records of what outputs were made of."""
        return self.folder / RECORDS

    def record(self, name):
        """Record of what an output was made of, by the output's name, such as ``"rates"``."""
        return self.records / f"{name}{RECORD}"

    def log(self, name):
        """Log of a rule, or of one of its jobs."""
        return self.folder / "logs" / f"{name}.log"

    @property
    def worker_logs(self):
        """Folder of the logs of workers on a batch system."""
        return self.folder / "logs" / "workers"

    @property
    def benchmarks(self):
        """Folder of what Snakemake measures of its jobs."""
        return self.folder / "benchmarks"

    def benchmark(self, name):
        """What Snakemake measures of a rule, or of one of its jobs."""
        return self.benchmarks / f"{name}.tsv"

    @property
    def lock(self):
        """File that a run holds locked."""
        return self.folder / ".lock"

    @property
    def status(self):
        """What a run last said of itself."""
        return self.folder / ".status.json"

    @property
    def journal(self):
        """How to cancel each of the run's jobs on a batch system."""
        return self._own(".jobs")

    @property
    def kept(self):
        """Folder of finished trials whose pieces are not finished."""
        return self._own(".trials")

    @property
    def private(self):
        """Folder of the certificates of a run."""
        return self._own(".private")

    def _own(self, name):
        """What is private to a user, whose killed run must not stop another user's next one."""
        return self.folder / f"{name}-{os.getuid()}"


def has_results(folder):
    """Whether a folder holds anything that a run makes."""
    return any(Path(folder, part).exists() for part in (*PARTS, MANIFEST))


def head(store):
    """The file that is written last of a store, or of an array in it: no head, no store."""
    return Path(store) / HEAD


def results_of(store):
    """The folder of results that holds a store."""
    folder = Path(store).parent
    return folder.parent if folder.name == STUDIES else folder


def piece_name(cell, block):
    """Path of the file that holds one block of seeds of a cell, below the folder of pieces.

    Examples
    --------
    >>> from bqlib.results.layout import piece_name
    >>> from types import SimpleNamespace
    >>> labels = dict(target="normal", kernel="eq", lengthscale=0.5, algorithm="sbq")
    >>> piece_name(SimpleNamespace(**labels), (0, 9))
    'normal/eq/0.5/sbq/seeds-0-9.zarr.zip'
    """
    first, last = block
    return f"{cell_name(cell)}/{block_name(first, last)}{PIECE}"


def cell_name(cell):
    """Path of the folder of a cell's pieces, below the folder of pieces."""
    return f"{cell.target}/{cell.kernel}/{cell.lengthscale:.12g}/{cell.algorithm}"


def block_name(first, last):
    """Name of the files of a block of seeds, without a suffix."""
    return f"seeds-{first}-{last}"


def cell_of(piece):
    """Labels of target, kernel, length-scale and algorithm in the name of a piece.

    Examples
    --------
    >>> from bqlib.results.layout import cell_of
    >>> cell_of("normal/eq/0.5/sbq/seeds-0-9.zarr.zip")
    ('normal', 'eq', '0.5', 'sbq')
    """
    return PurePosixPath(piece).parent.parts


def seeds_of(piece):
    """The seeds that the name of a piece says; none if it is no such name.

    Examples
    --------
    >>> from bqlib.results.layout import seeds_of
    >>> seeds_of("normal/eq/0.5/sbq/seeds-0-9.zarr.zip")
    range(0, 10)
    """
    found = BLOCK.fullmatch(PurePosixPath(piece).name)
    return range(int(found[1]), int(found[2]) + 1) if found else range(0)


def retried_name(piece):
    """Name that a piece gets when its failed trials are to be run again.

    Examples
    --------
    >>> from bqlib.results.layout import retried_name
    >>> retried_name("normal/eq/0.5/sbq/seeds-0-9.zarr.zip")
    'normal/eq/0.5/sbq/seeds-0-9.retried.zarr.zip'
    """
    return piece.removesuffix(PIECE) + RETRIED + PIECE


def is_retried(piece):
    """Whether a name is one that :func:`retried_name` gives."""
    return piece.endswith(RETRIED + PIECE)


def job_name(piece):
    """Name of the log and the benchmark of a piece's job.

    Examples
    --------
    >>> from bqlib.results.layout import job_name
    >>> job_name("normal/eq/0.5/sbq/seeds-0-9.zarr.zip")
    'pieces/normal/eq/0.5/sbq/seeds-0-9'
    """
    return path_of_piece(piece).removesuffix(PIECE)


def job_name_of_study(name):
    """Name of the log and the benchmark of a study's job."""
    return path_of_study(name).removesuffix(STORE)


def timing_name(piece):
    """Path of a piece's timings below their folder, from the name of the piece.

    Examples
    --------
    >>> from bqlib.results.layout import timing_name
    >>> timing_name("normal/eq/0.5/sbq/seeds-0-9.zarr.zip")
    'normal/eq/0.5/sbq/seeds-0-9.json'
    """
    return str(piece).removesuffix(PIECE) + TIMING


def piece_of_timing(timing):
    """Name of the piece that a file of timings belongs to; the inverse of :func:`timing_name`."""
    return str(timing).removesuffix(TIMING) + PIECE


# Paths below the folder of results, as in the manifest and in messages.


def path_of_piece(piece):
    """Path of a piece below the results."""
    return f"{PIECES}/{piece}"


def path_of_timing(piece):
    """Path of a piece's timings below the results."""
    return f"{TIMINGS}/{timing_name(piece)}"


def path_of_study(name):
    """Path of a study's store below the results."""
    return f"{STUDIES}/{name}{STORE}"


def path_of_head(store):
    """Path of a store's head below the results, from that of the store."""
    return f"{store}/{HEAD}"


def piece_at(path):
    """Name of the piece at a path below the results, or of the one whose timings are there.

    None if the path is neither.
    """
    if path.startswith(f"{PIECES}/") and path.endswith(PIECE):
        return path.removeprefix(f"{PIECES}/")
    if path.startswith(f"{TIMINGS}/") and path.endswith(TIMING):
        return piece_of_timing(path.removeprefix(f"{TIMINGS}/"))
    return None


def store_at(path):
    """Path of the store that holds a path, both below the results; None if there is none."""
    store, found, _ = path.partition(f"{STORE}/")
    return store + STORE if found else None
