"""The work of a Snakemake job in its own process, where there is none for the whole run."""

import asyncio
from dataclasses import replace

from bqlib.running.cluster import connect
from bqlib.running.progress import Progress
from bqlib.running.server import Server
from bqlib.running.site import read_site
from bqlib.sweep.file import load


def answer_here(paths, request, take, threads, memory):
    """Answer a request on so many threads and MiB of memory of this process.

    `take(head, data)` is called with each answer.

    Whatever system the site names: a job that Snakemake has sent to another machine than its own
    has no run's process to ask.
    """
    site = replace(read_site(paths.site), system="job")
    if memory is not None:
        site = replace(site, memory=f"{memory}MiB")
    experiment = load(paths.sweep, paths.shelf, paths.folder)
    asyncio.run(_answer(experiment, site, paths.results, request, take, threads))


async def _answer(experiment, site, results, request, take, threads):
    server = Server(experiment, Progress(0), results)
    async with connect(site, results, server.progress.say, threads) as client:
        server.client.set_result(client)
        async for head, data in server.work(request):
            take(head, data)
