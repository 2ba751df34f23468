"""Have the run's process compute a study, and write its dataset."""

if __name__ == "__main__":
    from pathlib import Path

    from bqlib.results.store import write_dataset
    from bqlib.running.client import fetch_study, logged
    from bqlib.sweep import registry

    name = snakemake.wildcards.study
    with logged(snakemake.log[0], snakemake.output[0]) as run:
        own = {"threads": snakemake.threads, "memory": snakemake.resources.get("mem_mb")}
        results = fetch_study(run, name, snakemake.params.digest, **own)
        dataset = registry.find("study", name).dataset(results, snakemake.params.about)
        write_dataset(dataset, Path(snakemake.output[0]).parent)
