"""Write the report of a sweep."""

if __name__ == "__main__":
    from pathlib import Path

    from bqlib.report.html import write_report
    from bqlib.running.client import logged

    with logged(snakemake.log[0]):
        write_report(Path(snakemake.output[0]).parent, snakemake.params.figures)
