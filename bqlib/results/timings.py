"""The file of timings of each piece: seconds of its trials, and why some of them failed.

Its piece's digest and sha256 are there too, see :mod:`bqlib.results.integrity`.

Only the standard library is imported, as Snakemake's own process reads these too.
"""

import json

from bqlib.results.layout import TIMING, Layout, piece_of_timing


def timed_pieces(results):
    """Names of the pieces that have timings, in their order."""
    folder = Layout(results).timings
    files = folder.rglob(f"*{TIMING}")
    return sorted(piece_of_timing(path.relative_to(folder)) for path in files)


def read_timing(results, piece):
    """Seconds and failures of a piece's trials; both empty where its file is not there or damaged.

    The damage is for :func:`bqlib.results.integrity.check` to name.

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
        found = json.loads(Layout(results).timing(piece).read_bytes())
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
