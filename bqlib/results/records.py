"""Records: what each output was made of. They decide what a run makes again, not dates of files.

The job of an output writes its record at its end: a digest of its code and its settings, and of the
content of its inputs. Pieces and studies need none: the timings of a piece hold its digest, and so
does the head of a study. Snakemake compares the digests of studies, as params of their jobs; a job
of pieces makes many, and has no params.

Snakemake compares dates, and cannot be told not to: a copy of results, or a script that was only
touched, would run everything again. So :func:`settle` gives files the dates that say what the
digests say, before Snakemake looks at them.
"""

import hashlib
import json
import os
import re
import time
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from bqlib.results.damage import attributes_of, sha256
from bqlib.results.files import read_regular, write_atomically
from bqlib.results.layout import HEAD, Layout, piece_at
from bqlib.results.timings import sha256_of

# What an output was made of, and the sha256 of each of its files as its job wrote them.
RECORD = re.compile(r"([0-9a-f]{64})\n((?:[0-9a-f]{64}  .+\n)*)")


@dataclass(frozen=True)
class Step:
    """The outputs of one job.

    Attributes
    ----------
    made_by : str
        Digest of its code and its settings, see :func:`digest`.
    inputs : tuple of Path
        Pieces, studies, and outputs of other steps with their records.
    outputs : tuple of Path
    record : Path
        One of `outputs`.
    benchmark : Path
        Whose date Snakemake takes for that of an output.
    """

    made_by: str
    inputs: tuple[Path, ...]
    outputs: tuple[Path, ...]
    record: Path
    benchmark: Path


def digest(content):
    """64 hexadecimal digits that change with any content that JSON can hold."""
    text = json.dumps(content, sort_keys=True, allow_nan=False)
    return hashlib.sha256(text.encode()).hexdigest()


def write_record(results, record, made_by, inputs, outputs=()):
    """Write what an output was made of, and what it is.

    Parameters
    ----------
    results : path-like
        The experiment's folder of results.
    record : path-like
        The file to write.
    made_by : str
    inputs, outputs : iterable of path-like
        As in :class:`Step`. For the head of a store, all files of the store are outputs.
    """
    at = Layout(results)
    lines = [_made_of(at, made_by, inputs, _written)]
    for output in map(Path, outputs):
        if output != Path(record):
            files = output.parent.rglob("*") if output.name == HEAD else [output]
            paths = sorted(path for path in files if path.is_file())
            lines += [f"{sha256(p)}  {p.relative_to(at.folder).as_posix()}" for p in paths]
    write_atomically(record, "".join(f"{line}\n" for line in lines).encode())


def is_record(data):
    """Whether bytes are those of a record."""
    return RECORD.fullmatch(data.decode(errors="replace")) is not None


def sums_of_outputs(results):
    """Path below the results to sha256, of all files that records tell of."""
    sums = {}
    for record in sorted(Layout(results).records.rglob("*")):
        found = RECORD.fullmatch(_text(record))
        for line in found[2].splitlines() if found else []:
            known, _, path = line.partition("  ")
            sums[path] = known
    return sums


def settle(results, finished, outdated, steps, scripts):
    """Give outputs dates that let Snakemake make again what must be, and nothing else.

    An output that would be made of what it was made of gets a date after those of its inputs and
    of the scripts. One that would not gets a date before them. No file has a date in the future
    then, not even a script. Files of other users keep their dates, but the record of an output
    that must be made again is replaced by a copy. Outputs that lack a file stay as they are.

    Parameters
    ----------
    results : path-like
        The experiment's folder of results.
    finished : iterable of tuple of Path
        The files of each piece and study that was made by this sweep and this code; the first
        of each exists.
    outdated : iterable of Path
        Pieces of another sweep or of other code, which get dates before those of all scripts.
    steps : iterable of Step
        Each after those that make its inputs.
    scripts : iterable of Path
        The scripts of all jobs.
    """
    at, now, expected = Layout(results), time.time(), {}
    scripts = [path for path in scripts if path.exists()]
    for script in scripts:
        if script.stat().st_mtime > now:
            _set_date(script, now - 1)
    after = max(map(_date, scripts), default=0.0)
    for files in finished:
        _make_newer(files, after, now)
    before_all = min(map(_date, scripts), default=0.0) - 1
    for piece in outdated:
        _make_older(piece, before_all)
    for step in steps:
        expected[step.record] = _made_of(at, step.made_by, step.inputs, expected.get)
        if not all(path.exists() for path in step.outputs):
            continue
        inputs = [_date(path) for path in step.inputs if path.exists()]
        if _written(step.record) == expected[step.record]:
            _make_newer([*step.outputs, step.benchmark], after, now, inputs)
        else:
            _make_older(step.record, min([after, *inputs]) - 1)


def _make_older(path, before):
    """Let a file be no newer than a date; where it is another user's, a copy of it."""
    if _date(path) > before:
        _set_date(path, before)
    if _date(path) > before:
        with suppress(OSError):
            write_atomically(path, read_regular(path))
            _set_date(path, before)


def _make_newer(files, after, now, inputs=()):
    """Let files be newer than a date, not older than their inputs and not from the future."""
    files = [path for path in files if path.exists()]
    dates = [_date(path) for path in files]
    if min(dates) <= after or max(dates) > now or min(dates) < max(inputs, default=0.0):
        for path in files:
            _set_date(path, None)


def _date(path):
    return path.stat().st_mtime


def _set_date(path, date):
    """Set the date of a file; None is now, by the clock of the file's disk."""
    with suppress(OSError):  # another user's, or on a disk that cannot be written
        os.utime(path, None if date is None else (date, date))


def _made_of(at, made_by, inputs, record_of):
    """The digest of what an output is made of; `record_of` gives that of an input's record."""
    found = {}
    for path in map(Path, inputs):
        below = path.relative_to(at.folder).as_posix()
        if piece_at(below):
            found[below] = sha256_of(at.folder, piece_at(below))
        elif at.records in path.parents:
            found[below] = record_of(path)
        elif at.studies in path.parents:
            found[below] = attributes_of(path.parent).get("digest")
    return digest([made_by, found])


def _written(record):
    """What a record says that its output was made of; None if it is missing or damaged."""
    found = RECORD.fullmatch(_text(record))
    return found[1] if found else None


def _text(record):
    """The text of a record; none if it cannot be read."""
    with suppress(OSError):
        return read_regular(record).decode(errors="replace")
    return ""
