"""The work of a Snakemake job in its own process, for sites without a process for the whole run."""

import asyncio
from dataclasses import replace

from bqlib.running.cluster import connect
from bqlib.running.errors import RunError
from bqlib.running.kept import Progress
from bqlib.running.server import Server
from bqlib.running.site import read_site
from bqlib.sweep.file import load


def answer_here(paths, request, threads, memory):
    """Bytes and timings of a request, on so many threads and MiB of memory of this process.

    Raises
    ------
    RunError
        If the site has a process for the whole run, which must be asked instead.
    """
    site = read_site(paths.site)
    if site.system != "job":
        raise RunError(
            "the run's process is not there: run the workflow through snakemake with its hooks "
            "(without --no-hooks)"
        )
    if memory is not None:
        site = replace(site, memory=f"{memory}MiB")
    experiment = load(paths.sweep, paths.shelf)
    return asyncio.run(_answer(experiment, site, paths.results, request, threads))


async def _answer(experiment, site, results, request, threads):
    server = Server(experiment, Progress(0), results)
    async with connect(site, results, server.progress.say, threads) as client:
        server.client.set_result(client)
        return await server.work(request)
