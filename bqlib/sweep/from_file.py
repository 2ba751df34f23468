"""Targets whose points are in a data file: what a sweep says of them, and the target itself.

What a sweep, its trials and its results hold of such a target is the path of the file and a digest
of the points. Each process reads the file once, and refuses points that are not those.
"""

import os
from hashlib import sha256

from bqlib.sweep import registry
from bqlib.sweep.datafile import read_points
from bqlib.sweep.datapoints import DataFileError

FAMILY = "empirical"
MOST_HELD = 16  # targets, of the data files that this process has read last
_held: dict = {}


def is_from_file(content):
    """Whether the content of a target names a data file."""
    return content.get("family") == FAMILY and content.get("file") is not None


def read_target(content, folder):
    """Read the data file that the content of a target names.

    Parameters
    ----------
    content : dict
        With ``file``, whose path is relative to `folder`, and maybe ``columns``.
    folder : path-like

    Returns
    -------
    content : dict
        With the absolute path, the number of points, and a digest of them: 64 hexadecimal digits
        that the same points in another file or format share.
    target : bqlib.Empirical

    Raises
    ------
    DataFileError
    """
    path = os.path.abspath(os.path.join(folder, content["file"]))
    target, found = _read(path, content.get("columns"))
    return content | {"file": path, "rows": len(target.points), "sha256": found}, target


def hold(content):
    """Have the target of a content at hand in this process, if a data file has its points.

    Raises
    ------
    DataFileError
        As :func:`target_of`.
    """
    if is_from_file(content):
        target_of(content)


def target_of(content):
    """The target of a content that :func:`read_target` gave, in this or another process.

    Raises
    ------
    DataFileError
        If the file is gone or has other points by now.
    """
    wanted, path = content["sha256"], content["file"]
    target = _held.get(wanted)
    if target is None:
        why = "restore the file, or run the sweep again, which computes what is of other points"
        try:
            target, found = _read(path, content.get("columns"))
        except DataFileError as error:
            raise DataFileError(
                f"{error}. It was read as the sweep was: every machine of a run must see it under "
                f"this path until the run ends; {why}"
            ) from None
        if found != wanted:
            raise DataFileError(
                f"{path} has changed since the sweep was read, so that its points are others: {why}"
            )
    return target


def science_of(content):
    """What a content says of the points themselves, whatever file has them."""
    return {"family": content["family"], "sha256": content["sha256"]}


def without_folder(content):
    """The same content with the name of its file alone."""
    return content | {"file": os.path.basename(content["file"])}


def _read(path, columns):
    """Target and digest of the points in a file; the target is held for later."""
    points = read_points(path, columns)
    digest = sha256(f"{points.shape}\n".encode())
    digest.update(memoryview(points.astype("<f8", order="C", copy=False)).cast("B"))
    found = digest.hexdigest()
    target = _held.pop(found, None) or registry.find("target", FAMILY)(points)
    _held[found] = target  # as the last one
    for old in list(_held)[:-MOST_HELD]:
        _held.pop(old, None)
    return target, found
