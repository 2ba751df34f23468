"""The file of timings of each piece: seconds of its trials, and why some of them failed.

It also has the digest and the sha256 of its piece, see :mod:`bqlib.results.integrity`.

Only the standard library is imported, because Snakemake's own process reads timings too.
"""

import hashlib
import json
import math
import re

from bqlib.results.files import read_regular
from bqlib.results.layout import TIMING, Layout, cell_name, piece_of_timing, seeds_of
from bqlib.results.text import one_line

DAMAGE = (OSError, ValueError, KeyError, AttributeError, TypeError, RecursionError)


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
        found = json.loads(read_regular(Layout(results).timing(piece)))
        seconds = {int(seed): float(s) for seed, s in found["seconds"].items() if _is_time(s)}
        failed = {
            int(seed): one_line(str(reason)) for seed, reason in found.get("failed", {}).items()
        }
    except DAMAGE:
        return {}, {}
    return seconds, failed


def checked_timing(results, piece):
    """The content of a piece's file of timings.

    Parameters
    ----------
    results : path-like
    piece : str
        Path below the folder of pieces.

    Returns
    -------
    dict
        ``digest`` and ``sha256`` of the piece, ``seconds`` and ``failed`` by seed, ``versions``,
        and ``other_versions`` where trials were taken over.

    Raises
    ------
    ValueError
        If it is not as a job writes it.
    """
    try:
        found = json.loads(read_regular(Layout(results).timing(piece)))
    except RecursionError:
        raise ValueError("it is nested too deeply") from None
    texts = {"digest": "[0-9a-f]{16}", "sha256": "[0-9a-f]{64}"}
    names = {*texts, "seconds", "failed", "versions"}
    if not isinstance(found, dict) or found.keys() - {"other_versions"} != names:
        raise ValueError(f"it has other keys than {', '.join(sorted(names))}")
    for name, pattern in texts.items():
        if not isinstance(found[name], str) or not re.fullmatch(pattern, found[name]):
            raise ValueError(f"its {name} is none")
    seconds, failed, versions = (found[name] for name in ("seconds", "failed", "versions"))
    if not all(isinstance(part, dict) for part in (seconds, failed, versions)):
        raise ValueError("its seconds, failed or versions are no JSON object")
    seeds = seeds_of(piece)
    if seeds and set(seconds) != {str(seed) for seed in seeds}:
        raise ValueError("its seconds are not those of the seeds of its piece")
    if not all(value is None or _is_time(value) for value in seconds.values()):
        raise ValueError("its seconds are no numbers")
    if failed.keys() != {seed for seed, value in seconds.items() if value is None}:
        raise ValueError("it gives seconds of a trial that failed, or none of one that did not")
    others = found.get("other_versions", [])
    if not isinstance(others, list) or not all(isinstance(other, dict) for other in others):
        raise ValueError("its other_versions are no list of JSON objects")
    texts = [text for each in (failed, versions, *others) for text in each.values()]
    if not all(isinstance(text, str) for text in texts):
        raise ValueError("its failed or versions are no texts")
    return found


def _is_time(value):
    return type(value) in (int, float) and math.isfinite(value) and value >= 0


def digest_of(results, piece):
    """Digest of the spec that a piece was made for; None if its file of timings has none."""
    return _entry(results, piece, "digest")


def sha256_of(results, piece):
    """sha256 that the job of a piece recorded; None if its file of timings has none."""
    return _entry(results, piece, "sha256")


def is_whole(results, piece):
    """Whether a piece has the sha256 that its job recorded."""
    try:
        data = read_regular(Layout(results).piece(piece))
    except OSError:
        return False
    return hashlib.sha256(data).hexdigest() == sha256_of(results, piece)


def made_by(results, piece):
    """Name to version of what made a piece, and then of what made the trials it took over.

    A list of one None if its file of timings has none.
    """
    others = _entry(results, piece, "other_versions")
    return [_entry(results, piece, "versions"), *(others if isinstance(others, list) else [])]


def _entry(results, piece, name):
    try:
        return json.loads(read_regular(Layout(results).timing(piece)))[name]
    except DAMAGE:
        return None


def failed_trials(results, pieces):
    """(piece, seed, reason) of each trial of `pieces` that failed."""
    return [
        (piece, seed, reason)
        for piece in pieces
        for seed, reason in read_timing(results, piece)[1].items()
    ]
