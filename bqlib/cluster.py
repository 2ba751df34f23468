"""One way to a Dask client: a scheduler that the user names, or else the run's own cluster."""

import os
import sys
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, fields
from importlib.metadata import version
from pathlib import Path

import yaml

SYSTEMS = ("local",)


class ClusterError(RuntimeError):
    """No cluster could be had; the message says why and what to do."""


@dataclass(frozen=True)
class Site:
    """The machine that a run may use. Read from a file beside the profile, never from a sweep.

    Attributes
    ----------
    system : {"local"}
        Where workers run. ``"local"``: as processes on this machine.
    workers : int or None
        Number of workers, each with one thread; None for one on each core.
    memory : str
        Memory of one worker, such as ``"4GiB"``; ``"auto"`` shares this machine's evenly.
    """

    system: str = "local"
    workers: int | None = None
    memory: str = "auto"


def read_site(path):
    """Read a site file.

    Raises
    ------
    ClusterError
        If the file is missing, broken, or says something that is not allowed.
    """
    try:
        found = yaml.safe_load(Path(path).read_text(encoding="utf-8")) or {}
    except (OSError, yaml.YAMLError) as error:
        raise ClusterError(f"the site file {path} cannot be read: {error}") from None
    allowed = [field.name for field in fields(Site)]
    unknown = sorted(set(found) - set(allowed)) if isinstance(found, dict) else [repr(found)]
    if unknown:
        raise ClusterError(
            f"{path}: unknown: {', '.join(map(str, unknown))}; allowed: {', '.join(allowed)}"
        )
    site = Site(**found)
    if site.system not in SYSTEMS:
        raise ClusterError(f"{path}: system is {site.system!r}; allowed: {', '.join(SYSTEMS)}")
    if site.workers is not None and not (isinstance(site.workers, int) and site.workers >= 1):
        raise ClusterError(f"{path}: workers is {site.workers!r}; give a whole number from 1 on")
    return site


@asynccontextmanager
async def connect(site, scratch, timeout=60):
    """An asynchronous client with at least one worker.

    A scheduler is named by ``DASK_SCHEDULER_ADDRESS`` or ``DASK_SCHEDULER_FILE`` (or the same
    keys in Dask's configuration); its TLS files are those of Dask's configuration. Where none is
    named, the run's own cluster is started as `site` says, and ends with this context.

    Parameters
    ----------
    site : Site
    scratch : path-like
        Folder for the workers' temporary files.
    timeout : float
        Seconds to wait for a named scheduler and its first worker.

    Yields
    ------
    client : distributed.Client
    about : str
        One line for the user: what was connected to, and where its dashboard is.

    Raises
    ------
    ClusterError
        If no worker could be had, or a named scheduler's workers run other versions.
    """
    import dask
    import distributed

    address = dask.config.get("scheduler-address", None)
    file = dask.config.get("scheduler-file", None)
    if file is not None and not Path(file).exists():
        raise ClusterError(f"the scheduler file {file} does not exist: start the scheduler first")
    named = address or file
    async with AsyncExitStack() as stack:
        if named:
            place = {"address": address} if address else {"scheduler_file": file}
        else:
            place = {"address": await stack.enter_async_context(_own_cluster(site, scratch))}
        try:
            client = await stack.enter_async_context(
                distributed.Client(asynchronous=True, timeout=timeout, **place)
            )
            await client.wait_for_workers(1, timeout=timeout)
        except (OSError, TimeoutError) as error:
            raise ClusterError(
                f"no Dask worker within {timeout} s at {named or 'the own cluster'}: {error}"
            ) from None
        if named:
            await _refuse_other_versions(client)
        workers = len(await client.nthreads())
        yield client, f"{workers} workers, dashboard {client.dashboard_link}"


@asynccontextmanager
async def _own_cluster(site, scratch):
    import distributed

    # Loopback and TLS: other users of this machine cannot run code as this one.
    async with distributed.LocalCluster(
        n_workers=site.workers or len(os.sched_getaffinity(0)),
        threads_per_worker=1,
        memory_limit=site.memory,
        host="127.0.0.1",
        protocol="tls://",
        security=distributed.Security.temporary(),
        dashboard_address="127.0.0.1:0",
        local_directory=str(scratch),
        asynchronous=True,
        silence_logs=False,
    ) as cluster:
        yield cluster


async def _refuse_other_versions(client):
    ours = versions()
    for worker, theirs in (await client.run(versions)).items():
        if theirs != ours:
            raise ClusterError(
                f"worker {worker} runs {theirs}, this process {ours}: make them equal"
            )


def versions():
    """Versions that results depend on."""
    packages = {name: version(name) for name in ("bqlib", "numpy", "scipy", "zarr")}
    return packages | {"python": ".".join(map(str, sys.version_info[:2]))}
