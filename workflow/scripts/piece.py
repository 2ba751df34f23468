"""Have the run's process compute a piece, and write it. Imports nothing heavy: it only waits."""

if __name__ == "__main__":
    from bqlib.running.client import fetch_piece, logged

    wildcards = snakemake.wildcards
    cell = {
        "target": wildcards.target,
        "kernel": wildcards.kernel,
        "lengthscale": float(wildcards.lengthscale),
        "algorithm": wildcards.algorithm,
    }
    with logged(snakemake.log[0], snakemake.output[0]) as run:
        fetch_piece(
            run,
            cell,
            int(wildcards.first),
            int(wildcards.last),
            snakemake.params.digest,
            snakemake.output.piece,
            snakemake.output.timing,
            threads=snakemake.threads,
            memory=snakemake.resources.get("mem_mb"),
        )
