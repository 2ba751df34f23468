"""The site file: which machines a run may use."""

import re
from dataclasses import dataclass, fields
from pathlib import Path

from bqlib.running.errors import ClusterError
from bqlib.sweep import yamlfile

# Batch systems: the class of dask-jobqueue, and its word for who pays.
BATCH_SYSTEMS = {
    "slurm": ("SLURMCluster", "account"),
    "pbs": ("PBSCluster", "account"),
    "lsf": ("LSFCluster", "project"),
    "sge": ("SGECluster", "project"),
    "oar": ("OARCluster", "project"),
    "htcondor": ("HTCondorCluster", None),
}
SYSTEMS = (*BATCH_SYSTEMS, "local", "job")
SMALLEST_MEMORY = 512 * 2**20  # Python with its libraries takes half of it


@dataclass(frozen=True)
class Site:
    """The machines that a run may use. Read from a file beside the profile, never from a sweep.

    Attributes
    ----------
    system : {"slurm", "pbs", "lsf", "sge", "oar", "htcondor", "local", "job"}
        Where workers run: as jobs of a batch system; ``"local"``: as processes on this machine;
        ``"job"``: inside each of Snakemake's jobs.
    workers : int or None
        Number of workers, each with one thread; None for one on each core, where that is known.
    workers_per_job : int
        How many of them share one job of the batch system.
    memory : str
        Memory of one worker, such as ``"4GiB"``; ``"auto"`` shares this machine's evenly.
    queue, account : str or None
        Queue or partition, and the project that pays.
    walltime : str
        Time limit of one job, as ``hh:mm:ss``.
    interface : str or None
        Network interface through which login node and workers reach each other.
    scratch : str or None
        Folder for workers' temporary files; variables are those of the worker's machine.
    directives : tuple of str
        Further lines of a job's header, without their ``#SBATCH`` or the like.
    prologue : tuple of str
        Shell lines that a job runs before its workers start.
    wait : int
        Minutes without any worker after which the run gives up.
    """

    system: str = "local"
    workers: int | None = None
    workers_per_job: int = 1
    memory: str = "auto"
    queue: str | None = None
    account: str | None = None
    walltime: str = "01:00:00"
    interface: str | None = None
    scratch: str | None = None
    directives: tuple[str, ...] = ()
    prologue: tuple[str, ...] = ()
    wait: float = 30


def json_schema():
    """JSON Schema of a site file, for editors: it allows all that :func:`read_site` takes."""
    from pydantic import TypeAdapter  # 0.1 s, which runs do not need

    from bqlib.sweep.values import Untitled  # 0.1 s

    found = TypeAdapter(Site).json_schema(schema_generator=Untitled)["properties"]
    found["system"]["enum"] = list(SYSTEMS)
    # A key that is left empty has its default.
    properties = {key: {"anyOf": [value, {"type": "null"}]} for key, value in found.items()}
    return {
        "$schema": Untitled.schema_dialect,
        "title": "A site of bqlib",
        "type": "object",
        "properties": properties,
        "additionalProperties": False,
    }


def read_site(path):
    """Read a site file.

    Raises
    ------
    ClusterError
        With everything that is wrong: unknown keys, values that are not allowed.
    """
    path = Path(path)
    try:
        found, lines, problems = yamlfile.read(path)
    except yamlfile.UnreadableError as error:
        raise ClusterError(f"{path}:{error.line}: {error}") from None
    allowed = [field.name for field in fields(Site)]
    values = {}
    for key, value in found.items():
        if key not in allowed:
            problem = f"unknown key; allowed: {', '.join(allowed)}"
        elif value is None:  # left empty: the default
            continue
        else:
            problem = _problem(key, value)
            values[key] = tuple(value) if isinstance(value, list) else value
        if problem:
            problems.append((lines[(key,)], f"{key}: {problem}"))
    if not problems:
        problems = [(lines.get((k,), 1), f"{k}: {text}") for k, text in _misfits(Site(**values))]
    if problems:
        raise ClusterError("\n".join(f"{path}:{line}: {text}" for line, text in sorted(problems)))
    return Site(**values)


def _problem(key, value):
    """What is wrong with one value of a site file, or None."""
    if key == "system":
        if value not in SYSTEMS:
            return f"is {value!r}; allowed: {', '.join(SYSTEMS)}"
    elif key in ("workers", "workers_per_job"):
        if not isinstance(value, int) or isinstance(value, bool) or value < 1:
            return f"is {value!r}; give a whole number from 1 on"
    elif key == "wait":
        if not isinstance(value, int | float) or isinstance(value, bool) or not value > 0:
            return f"is {value!r}; give a number of minutes"
    elif key in ("directives", "prologue"):
        if not isinstance(value, list) or not all(isinstance(line, str) for line in value):
            return f'is {value!r}; give a list of texts, such as ["first", "second"]'
    elif not isinstance(value, str):
        return f"is {value!r}; give a text (in quotes, if it looks like a number)"
    elif key == "walltime":
        if not re.fullmatch(r"\d+:[0-5]\d:[0-5]\d", value):
            return f"is {value!r}; give hours, minutes and seconds, such as 01:30:00"
    elif key == "memory" and value != "auto":
        if bytes_of(value) is None:
            return f"is {value!r}; give a number with its unit, such as 4GiB"
        if bytes_of(value) < SMALLEST_MEMORY:
            return f"is {value!r}; a worker needs at least 512MiB"
    return None


def _misfits(site):
    """(key, problem) of each value that does not go with the site's system."""
    if site.system in BATCH_SYSTEMS:
        for key in ("workers", "memory"):
            if getattr(site, key) in (None, "auto"):
                yield key, f"missing, and system {site.system} needs it"
    if site.system == "htcondor":
        for key in ("queue", "account"):
            if getattr(site, key) is not None:
                yield key, "htcondor has none; use directives, such as accounting_group = physics"
        for line in site.directives:
            if "=" not in line:
                yield "directives", f"{line!r} must be of the form key = value for htcondor"


def bytes_of(text):
    from dask.utils import parse_bytes  # 0.3 s

    try:
        return parse_bytes(text)
    except (ValueError, OverflowError):  # of 1e400GiB
        return None
