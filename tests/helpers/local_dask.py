"""Dask on this machine, for the tests."""

import asyncio

from bqlib.running.cluster import connect

# Keywords of a LocalCluster whose dashboards take whatever port is free.
QUIET = {"dashboard_address": "127.0.0.1:0", "worker_dashboard_address": "127.0.0.1:0"}


def connected(site, folder, act=None, **arguments):
    """Connect to the cluster of a site, do `act(client)`, and return what was said."""
    said = []

    async def work():
        async with connect(site, folder, said.append, **arguments) as client:
            if act is not None:
                await act(client)

    asyncio.run(work())
    return said
