"""Gather the pieces of a sweep into its dataset."""

if __name__ == "__main__":
    from pathlib import Path

    from bqlib.results.layout import results_of
    from bqlib.results.store import gather
    from bqlib.running.client import logged
    from bqlib.sweep.file import load

    with logged(snakemake.log[0]):
        experiment = load(snakemake.params.sweep, snakemake.params.shelf)
        gather(experiment, results_of(Path(snakemake.output[0]).parent))
