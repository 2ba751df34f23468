"""Compute the errors of single functions from a sweep's points."""

if __name__ == "__main__":
    from pathlib import Path

    from bqlib.analysis import function_errors
    from bqlib.run import logged
    from bqlib.store import open_results, write_dataset

    with logged(snakemake.log[0]):
        curves = open_results(Path(snakemake.input[0]).parent)
        write_dataset(function_errors(curves), Path(snakemake.output[0]).parent)
