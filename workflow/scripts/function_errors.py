"""Compute the errors of single functions from a sweep's points."""

if __name__ == "__main__":
    from pathlib import Path

    from threadpoolctl import threadpool_limits

    from bqlib.analysis.function_errors import function_errors
    from bqlib.results.layout import results_of
    from bqlib.results.records import write_record
    from bqlib.results.store import open_dataset, write_dataset
    from bqlib.running.client import logged
    from bqlib.sweep.file import load

    with logged(snakemake.log[0], snakemake.output[0]) as run, threadpool_limits(1):
        # Data files are read from where they are now, which the curves may not say.
        load(run.paths.sweep, run.paths.shelf, run.paths.folder)
        curves = open_dataset(Path(snakemake.input[0]).parent)
        store = Path(snakemake.output[0]).parent
        write_dataset(function_errors(curves), store)
        made_by = snakemake.params.made_by
        write_record(
            results_of(store), snakemake.output.record, made_by, snakemake.input, snakemake.output
        )
