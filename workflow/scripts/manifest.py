"""Record the sha256 of all that a run made, and where it comes from."""

if __name__ == "__main__":
    from pathlib import Path

    from bqlib.results.integrity import write_manifest
    from bqlib.running.client import logged

    with logged(snakemake.log[0]):
        write_manifest(Path(snakemake.output[0]).parent)
