"""Gather the pieces of a sweep into its dataset."""

if __name__ == "__main__":
    from pathlib import Path

    from bqlib.experiment import load
    from bqlib.run import logged
    from bqlib.store import gather

    store = Path(snakemake.output[0]).parent
    with logged(snakemake.log[0]):
        experiment = load(snakemake.params.sweep, snakemake.params.shelf)
        gather(experiment, store.parent / "pieces", store)
