"""Have the run's process compute pieces, and write them. Imports nothing heavy: it only waits."""

if __name__ == "__main__":
    from bqlib.running.client import fetch_pieces, logged

    with logged(snakemake.log[0], snakemake.output[0]) as run:
        own = {"threads": snakemake.threads, "memory": snakemake.resources.get("mem_mb")}
        fetch_pieces(run, snakemake.output, **own)
