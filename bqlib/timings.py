"""The file of timings of each piece: seconds of its trials, and why some of them failed.

Its piece's digest and sha256 are there too, see :mod:`bqlib.integrity`.

Only the standard library is imported, as Snakemake's own process reads these too.
"""

import json
from pathlib import Path

PIECE, TIMING = ".zarr.zip", ".json"


def timing_of(piece):
    """Path of a piece's file of timings, below their folder, from the piece's path below its own.

    Examples
    --------
    >>> timing_of("chen2010_mixture/eq/0.5/sbq/seeds-0-9.zarr.zip")
    'chen2010_mixture/eq/0.5/sbq/seeds-0-9.json'
    """
    return str(piece).removesuffix(PIECE) + TIMING


def piece_of(timing):
    """The other way round.

    Examples
    --------
    >>> piece_of("chen2010_mixture/eq/0.5/sbq/seeds-0-9.json")
    'chen2010_mixture/eq/0.5/sbq/seeds-0-9.zarr.zip'
    """
    return str(timing).removesuffix(TIMING) + PIECE


def timed_pieces(results):
    """Paths of the pieces that have a file of timings, in their order."""
    folder = Path(results, "timings")
    return sorted(piece_of(path.relative_to(folder)) for path in folder.rglob(f"*{TIMING}"))


def read_timing(results, piece):
    """Seconds and failures of a piece's trials; both empty where its file is not there or damaged.

    The damage is for :func:`bqlib.integrity.check` to name.

    Parameters
    ----------
    results : path-like
        The experiment's folder of results.
    piece : str
        Path below the folder of pieces.

    Returns
    -------
    seconds : dict of int to float
        By seed, of the trials that succeeded.
    failed : dict of int to str
        Why, by seed.
    """
    try:
        found = json.loads(Path(results, "timings", timing_of(piece)).read_bytes())
        seconds = {int(seed): float(s) for seed, s in found["seconds"].items() if s is not None}
        failed = {int(seed): reason for seed, reason in found.get("failed", {}).items()}
    except (OSError, ValueError, KeyError, AttributeError, TypeError):
        return {}, {}
    return seconds, failed


def digest_of(results, piece):
    """Digest of the spec that a piece was made for, None where its file of timings has none."""
    return _entry(results, piece, "digest")


def made_by(results, piece):
    """Versions of what made a piece, by name; None where its file of timings has none."""
    return _entry(results, piece, "versions")


def _entry(results, piece, name):
    try:
        return json.loads(Path(results, "timings", timing_of(piece)).read_bytes())[name]
    except (OSError, ValueError, KeyError, TypeError):
        return None


def failed_trials(results, pieces):
    """(piece, seed, reason) of each trial of `pieces` that failed."""
    return [
        (piece, seed, reason)
        for piece in pieces
        for seed, reason in read_timing(results, piece)[1].items()
    ]
