"""Judge the paper's claims and our expectations by the results of a sweep."""

if __name__ == "__main__":
    from pathlib import Path

    from threadpoolctl import threadpool_limits

    from bqlib.claims import Evidence, as_json, evaluate, table_1
    from bqlib.files import write_atomically
    from bqlib.run import logged
    from bqlib.store import open_dataset

    results = Path(snakemake.output[0]).parent
    with logged(snakemake.log[0]), threadpool_limits(1):
        curves, rates = (open_dataset(results / f"{name}.zarr") for name in ("curves", "rates"))
        studies = {
            name: open_dataset(results / "studies" / f"{name}.zarr").compute()
            for name in snakemake.params.studies
        }
        evidence = Evidence(curves, rates.compute(), studies)
        text = as_json(*evaluate(evidence), table_1(evidence))
        write_atomically(snakemake.output[0], text.encode())
