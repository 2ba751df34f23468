"""Draw one figure from its datasets."""

if __name__ == "__main__":
    from importlib import import_module
    from pathlib import Path

    from bqlib.figures import save
    from bqlib.run import logged
    from bqlib.store import open_dataset

    name = snakemake.wildcards.figure
    with logged(snakemake.log[0]):
        draw = getattr(import_module(f"bqlib.figures.{name}"), name)
        save(
            draw(*[open_dataset(Path(place).parent) for place in snakemake.input]), snakemake.output
        )
