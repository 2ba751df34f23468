"""Write the report of a sweep."""

if __name__ == "__main__":
    from pathlib import Path

    from threadpoolctl import threadpool_limits

    from bqlib.report.html import write_report
    from bqlib.results.records import write_record
    from bqlib.running.client import logged

    results = Path(snakemake.output[0]).parent
    with logged(snakemake.log[0], snakemake.output[0]), threadpool_limits(1):
        write_report(results, snakemake.params.figures)
        made_by = snakemake.params.made_by
        write_record(results, snakemake.output.record, made_by, snakemake.input, snakemake.output)
