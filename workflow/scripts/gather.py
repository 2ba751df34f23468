"""Gather the pieces of a sweep into its dataset."""

if __name__ == "__main__":
    from pathlib import Path

    from bqlib.results.blocks import remove_superseded
    from bqlib.results.layout import results_of
    from bqlib.results.records import write_record
    from bqlib.results.store import gather
    from bqlib.running.client import logged
    from bqlib.sweep.file import load

    with logged(snakemake.log[0], snakemake.output[0]) as run:
        experiment = load(run.paths.sweep, run.paths.shelf, run.paths.folder)
        results = results_of(Path(snakemake.output[0]).parent)
        gather(experiment, results)
        remove_superseded(experiment, results)
        made_by = snakemake.params.made_by
        write_record(results, snakemake.output.record, made_by, snakemake.input, snakemake.output)
