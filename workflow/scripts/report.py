"""Write the report of a sweep."""

if __name__ == "__main__":
    from pathlib import Path

    from bqlib.report.html import write_report
    from bqlib.results.records import write_record
    from bqlib.running.client import logged

    results = Path(snakemake.output[0]).parent
    with logged(snakemake.log[0], snakemake.output[0]):
        write_report(results, snakemake.params.figures)
        made_by = snakemake.params.made_by
        write_record(results, snakemake.output.record, made_by, snakemake.input, snakemake.output)
