"""What a run refuses before it starts."""

import os
import shlex
import shutil
from pathlib import Path

from bqlib.results.damage import DamagedError, read_attributes
from bqlib.results.files import strange_files
from bqlib.results.layout import Layout
from bqlib.results.retry import outdated
from bqlib.running.errors import RunError
from bqlib.schema import SCHEMA_VERSION

LEAST_SPACE = 2**20  # bytes; with less, a disk is full


def why_jobs_fail(results):
    """What may have made jobs fail, for the last lines of a run."""
    if shutil.disk_usage(results).free < LEAST_SPACE:
        return f"the disk that holds {results} is full"
    return "a job failed, see above"


def check_results_folder(results):
    """Refuse to run into a folder that cannot be written, or that another schema version wrote.

    And into one with links or the like: jobs would write through them, to files elsewhere.

    Raises
    ------
    RunError
    """
    results = Path(results)
    existing = next(path for path in (results, *results.absolute().parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK):
        raise RunError(
            f"results would go to {results}, but {existing} is not a folder that can be written: "
            "change its permissions, or run from another folder"
        )
    strange = sorted(strange_files(results))
    if strange:
        raise RunError(
            f"{results} holds {len(strange)} links or other things that are neither files nor "
            f"folders, which a run may write through or wait for; the first is {strange[0]}. "
            "Remove them, or give the sweep another name"
        )
    try:
        version = read_attributes(Layout(results).curves).get("schema_version")
    except (OSError, ValueError):
        return  # nothing there, or what gathering will replace
    if version != SCHEMA_VERSION:
        raise RunError(
            f"{results} was written with schema version {version}, this bqlib writes version "
            f"{SCHEMA_VERSION}: move that folder away, or give the sweep another name"
        )


def check_origin(paths, experiment, is_remade):
    """Refuse to run into results of another sweep or other code that Snakemake would keep.

    Snakemake makes the outdated files again that it made here. It has no record of files that came
    from elsewhere, and would take them as they are.

    Parameters
    ----------
    paths : bqlib.running.paths.Paths
        With the folder of results as Snakemake names it.
    experiment : bqlib.sweep.experiment.Experiment
    is_remade : callable
        Whether Snakemake makes an outdated file again, by its path.

    Raises
    ------
    RunError
    """
    at = Layout(paths.results)
    try:
        others = outdated(at.folder, experiment)
    except DamagedError as error:
        raise RunError(str(error)) from None
    strange = [path for path in others if not is_remade(at.file(path))]
    if strange:
        command = ["bqlib", "retry", "--sweep", str(paths.sweep), str(at.folder)]
        raise RunError(
            f"{at.folder} holds {len(strange)} files of another sweep or of other code, which "
            f"Snakemake would take as they are; the first is {strange[0]}. To keep them, give the "
            f"sweep another name; to recompute them: {shlex.join(command)}"
        )
