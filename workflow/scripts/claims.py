"""Judge the claims of papers and our expectations by the results of a sweep."""

if __name__ == "__main__":
    from pathlib import Path

    from threadpoolctl import threadpool_limits

    from bqlib.claims import Evidence, as_json, evaluate, table_1
    from bqlib.results.files import write_atomically
    from bqlib.results.layout import Layout
    from bqlib.results.records import write_record
    from bqlib.results.store import open_dataset
    from bqlib.running.client import logged

    at = Layout(Path(snakemake.output[0]).parent)
    with logged(snakemake.log[0], snakemake.output[0]), threadpool_limits(1):
        curves, rates = open_dataset(at.curves), open_dataset(at.rates).compute()
        studies = {
            name: open_dataset(at.study(name)).compute() for name in snakemake.params.studies
        }
        papers = snakemake.params.papers
        evidence = Evidence(curves, rates, studies)
        text = as_json(*evaluate(evidence, papers), table_1(evidence, papers))
        write_atomically(snakemake.output[0], text.encode())
        made_by = snakemake.params.made_by
        write_record(at.folder, snakemake.output.record, made_by, snakemake.input, snakemake.output)
