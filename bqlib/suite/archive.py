"""The archive: submissions to the suite with their scores, each in a folder of its own.

An entry is ``<archive>/<suite>/<method>-<version>/`` with the two files of the submission,
``curves.zarr``, and the definition ``entry.json``. Nothing of it ever changes: other points are
another version of the method. What is read here may come from anywhere: files are opened without
following links, measured before they are read, and compared with the definition.
"""

import os
import stat
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

from bqlib.results.damage import sha256_of
from bqlib.results.files import UNFINISHED, making, write_atomically
from bqlib.results.layout import CURVES, Layout
from bqlib.results.text import printable
from bqlib.suite.about import ABOUT, NOBODY, About, read_about
from bqlib.suite.about import MOST_BYTES as MOST_BYTES_OF_ABOUT
from bqlib.suite.definition import (
    DEFINITION,
    MOST_BYTES,
    SUBMITTED_FILES,
    Definition,
    definition_of,
    name_of,
    read_definition,
    text_of,
)
from bqlib.suite.mistakes import Mistakes
from bqlib.suite.scores import score, table_of_scores, write_scores
from bqlib.suite.submission import bytes_of, checked
from bqlib.suite.table import MOST_BYTES as MOST_BYTES_OF_POINTS
from bqlib.suite.table import POINTS
from bqlib.sweep.problems import SUITE

UNFINISHED_ENTRY = "is of an addition that did not finish: remove it, if none is going on"
MOST_FILES = 10_000  # of an entry
MOST_ENTRIES = 10_000
DEEPEST = 3  # parts of a path below an entry


class ArchiveError(ValueError):
    """An archive that is not as it was written, or that cannot take an entry.

    Attributes
    ----------
    problems : tuple of str
        Each as ``file: message``; the error's text has one per line.
    """

    def __init__(self, *problems):
        super().__init__(*problems)
        self.problems = problems

    def __str__(self):
        return "\n".join(self.problems)


@dataclass(frozen=True)
class Entry:
    """What an archive holds of a method, besides points and curves.

    Attributes
    ----------
    definition : Definition
    about : About
    """

    definition: Definition
    about: About


def add(folder, archive):
    """Check and score a submission, and add it to an archive: whole or not at all.

    Parameters
    ----------
    folder : path-like
        The submission.
    archive : path-like
        It is made if it is missing.

    Returns
    -------
    path : Path
        The folder of the entry.
    added : bool
        False if the same submission is there already.

    Raises
    ------
    SubmissionError
        If it cannot be scored.
    ArchiveError
        If there is another entry of this method and version, if it has no points, or if its authors
        are not filled in.

    Notes
    -----
    The cost is that of :func:`bqlib.suite.scores.score`.
    """
    mistakes = Mistakes()
    with opened(folder) as here:
        files = {name: bytes_of(here, name, most_of(name), mistakes) for name in SUBMITTED_FILES}
    mistakes.refuse()
    submission = checked(*(files[name] for name in SUBMITTED_FILES))
    if NOBODY in submission.about.authors:
        raise ArchiveError(f'{ABOUT}: authors: "{NOBODY}" stands for them: fill in who they are')
    path = Path(archive) / SUITE / name_of(submission.about)
    if _is_there(path, submission.sha256):
        return path, False
    dataset = score(submission)
    try:
        with making(path) as new:
            for name, data in files.items():
                write_atomically(new / name, data)
            write_scores(dataset, new)
            store = Layout(new).curves
            files |= {
                file.relative_to(new).as_posix(): file.read_bytes()
                for file in store.rglob("*")
                if file.is_file()
            }
            definition = definition_of(submission.about, files, table_of_scores(dataset))
            write_atomically(new / DEFINITION, text_of(definition).encode())
    except OSError:
        if _is_there(path, submission.sha256):  # from elsewhere, meanwhile
            return path, False
        raise
    return path, True


def _is_there(path, sums):
    """Whether an entry is there already, of the same files; an ArchiveError if of others."""
    for place in (path.parent, path):
        if place.is_symlink():
            raise ArchiveError(f"{place}: is a link: give an archive without links")
    if not os.path.lexists(path):
        return False
    with opened(path) as here:
        mistakes = Mistakes()
        entry = _definition_in(here, mistakes)
    if entry is None:
        raise ArchiveError(
            *(f"{path}/{told}" for told in mistakes.told()),
            f"{path}: is there already, and damaged: bqlib archive check tells more",
        )
    other = [name for name, sum_ in sums.items() if entry.files[name].sha256 != sum_]
    if other:
        raise ArchiveError(
            f"{path}: is there already with another {' and '.join(other)}; entries never change: "
            "give the submission another version"
        )
    return True


def read_archive(archive):
    """The entries of an archive, in the order of their names.

    Parameters
    ----------
    archive : path-like

    Returns
    -------
    list of Entry

    Raises
    ------
    FileNotFoundError, NotADirectoryError
        If there is no such folder.
    ArchiveError
        If a definition, or what a submission says of itself, is damaged. Points and curves are not
        looked at, see :func:`bqlib.suite.recheck.check`.

    Notes
    -----
    O(E) time for E entries.
    """
    found, problems = [], []
    with opened(archive) as top:
        names, strange = names_in(top)
        problems += [
            f"{name}: {told}"
            for name, told in strange.items()
            if not UNFINISHED.fullmatch(name.rpartition("/")[2])  # of no entry, or of none yet
        ]
        for name in names:
            mistakes = Mistakes()
            with opened_suite(top) as suite, opened(name, suite) as here:
                entry = read_entry(here, name, mistakes)
            problems += [f"{SUITE}/{printable(name)}/{told}" for told in mistakes.told()]
            if entry is not None:
                found.append(entry)
    if problems:
        raise ArchiveError(*problems)
    return found


def read_entry(here, name, mistakes):
    """The entry in an open folder; None with what is wrong with it in `mistakes`."""
    definition = _definition_in(here, mistakes)
    if definition is None:
        return None
    if definition.name != name:
        mistakes.add(DEFINITION, 0, f"is of {definition.name}, not of the folder's name")
        return None
    data = bytes_of(here, ABOUT, most_of(ABOUT), mistakes)
    if data is None:
        return None
    if sha256_of(data) != definition.files[ABOUT].sha256:
        mistakes.add(ABOUT, 0, f"is damaged: its sha256 differs from that in {DEFINITION}")
        return None
    about = read_about(data, mistakes)
    if about is None:
        return None
    if name_of(about) != name:
        mistakes.add(ABOUT, 0, f"is of {name_of(about)}, not of the folder's name")
        return None
    return Entry(definition, about)


def names_in(top):
    """Names of the entries in an open archive, and what else is there, each with what it is."""
    there = sorted(os.listdir(top))
    strange = {
        printable(name): f"is not part of an archive, which has a folder {SUITE} alone"
        for name in there
        if name != SUITE
    }
    names = []
    if SUITE not in there:
        return names, strange
    if not is_folder(top, SUITE):
        return names, strange | {SUITE: "is no folder, or a link"}
    with opened_suite(top) as suite:
        inside = sorted(os.listdir(suite))
        if len(inside) > MOST_ENTRIES:
            return names, strange | {SUITE: f"has more than {MOST_ENTRIES:,} entries"}
        for name in inside:
            place = f"{SUITE}/{printable(name)}"
            if UNFINISHED.fullmatch(name):
                strange[place] = UNFINISHED_ENTRY
            elif not is_folder(suite, name):
                strange[place] = "is no folder, or a link"
            else:
                names.append(name)
    return names, strange


def most_of(name):
    """The largest number of bytes that a file of an entry may have."""
    if name.startswith(CURVES):
        return 64 * 2**20
    return {POINTS: MOST_BYTES_OF_POINTS, ABOUT: MOST_BYTES_OF_ABOUT}.get(name, MOST_BYTES)


@contextmanager
def opened(path, above=None):
    """A folder, open; one in another that is open may be no link."""
    flags = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC | (0 if above is None else os.O_NOFOLLOW)
    here = os.open(path, flags, dir_fd=above)
    try:
        yield here
    finally:
        os.close(here)


def opened_suite(top):
    """The folder of the suite in an open archive, open."""
    return opened(SUITE, top)


def is_folder(here, name):
    """Whether a name in an open folder is a folder, and no link to one."""
    return stat.S_ISDIR(os.stat(name, dir_fd=here, follow_symlinks=False).st_mode)


def _definition_in(here, mistakes):
    data = bytes_of(here, DEFINITION, MOST_BYTES, mistakes)
    return None if data is None else read_definition(data, mistakes)
