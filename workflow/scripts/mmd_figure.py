"""Draw MMD against the number of points."""

if __name__ == "__main__":
    from pathlib import Path

    from bqlib.figures import save
    from bqlib.figures.mmd import mmd
    from bqlib.run import logged
    from bqlib.store import open_results

    with logged(snakemake.log[0]):
        curves = open_results(Path(snakemake.input[0]).parent)
        save(mmd(curves), snakemake.output)
