"""Fit convergence rates to a sweep's curves."""

if __name__ == "__main__":
    from pathlib import Path

    from threadpoolctl import threadpool_limits

    from bqlib.analysis.fits import fit_rates
    from bqlib.results.layout import results_of
    from bqlib.results.records import write_record
    from bqlib.results.store import open_dataset, write_dataset
    from bqlib.running.client import logged

    # Others run beside this job: a second thread for such small systems waits more than it works.
    with logged(snakemake.log[0], snakemake.output[0]), threadpool_limits(1):
        curves = open_dataset(Path(snakemake.input[0]).parent)
        store = Path(snakemake.output[0]).parent
        write_dataset(fit_rates(curves), store)
        made_by = snakemake.params.made_by
        write_record(
            results_of(store), snakemake.output.record, made_by, snakemake.input, snakemake.output
        )
