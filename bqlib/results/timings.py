"""The file of timings of each piece: seconds of its trials, and why some of them failed.

It also has the digest and the sha256 of its piece, see :mod:`bqlib.results.integrity`.

Only the standard library is imported, because Snakemake's own process reads timings too.
"""

import json

from bqlib.results.layout import TIMING, Layout, cell_name, piece_of_timing


def timed_pieces(results, cell=None):
    """Names of the pieces that have timings, of all cells or of one, in their order."""
    folder = Layout(results).timings
    own = folder if cell is None else folder / cell_name(cell)
    files = own.rglob(f"*{TIMING}")
    return sorted(piece_of_timing(path.relative_to(folder)) for path in files)


def read_timing(results, piece):
    """Seconds and failures of a piece's trials; both empty if the file is missing or damaged.

    :func:`bqlib.results.integrity.check` reports the damage.

    Parameters
    ----------
    results : path-like
        The experiment's folder of results.
    piece : str
        Path below the folder of pieces.

    Returns
    -------
    seconds : dict of int to float
        Seed to seconds, of the trials that succeeded.
    failed : dict of int to str
        Seed to why the trial failed.
    """
    try:
        found = json.loads(Layout(results).timing(piece).read_bytes())
        seconds = {int(seed): float(s) for seed, s in found["seconds"].items() if s is not None}
        failed = {int(seed): reason for seed, reason in found.get("failed", {}).items()}
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return {}, {}
    return seconds, failed


def digest_of(results, piece):
    """Digest of the spec that a piece was made for; None if its file of timings has none."""
    return _entry(results, piece, "digest")


def sha256_of(results, piece):
    """sha256 that the job of a piece recorded; None if its file of timings has none."""
    return _entry(results, piece, "sha256")


def made_by(results, piece):
    """Name to version of what made a piece, and then of what made the trials it took over.

    A list of one None if its file of timings has none.
    """
    others = _entry(results, piece, "other_versions")
    return [_entry(results, piece, "versions"), *(others if isinstance(others, list) else [])]


def _entry(results, piece, name):
    try:
        return json.loads(Layout(results).timing(piece).read_bytes())[name]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def failed_trials(results, pieces):
    """(piece, seed, reason) of each trial of `pieces` that failed."""
    return [
        (piece, seed, reason)
        for piece in pieces
        for seed, reason in read_timing(results, piece)[1].items()
    ]
