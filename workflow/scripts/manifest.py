"""Record the sha256 of all that a run made, and where it comes from."""

if __name__ == "__main__":
    from pathlib import Path

    from bqlib.results.integrity import write_manifest
    from bqlib.results.records import write_record
    from bqlib.running.client import logged

    results = Path(snakemake.output[0]).parent
    with logged(snakemake.log[0]):
        write_manifest(results)
        made_by = snakemake.params.made_by
        write_record(results, snakemake.output.record, made_by, snakemake.input)
