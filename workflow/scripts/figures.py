"""Draw all figures, each from its datasets."""

if __name__ == "__main__":
    import gc
    from concurrent.futures import ProcessPoolExecutor
    from importlib import import_module
    from multiprocessing import get_context
    from pathlib import Path

    from threadpoolctl import threadpool_limits

    from bqlib.figures import save
    from bqlib.results.layout import Layout
    from bqlib.results.records import write_record
    from bqlib.results.store import open_dataset
    from bqlib.running.client import logged

    at = Layout(Path(snakemake.output[0]).parent.parent)
    figures = snakemake.params.figures

    def draw(name):
        drawn_by, page, stores = figures[name]
        which = {"page": page} if page > 1 else {}
        figure = functions[drawn_by](*(open_dataset(at.store(store)) for store in stores), **which)
        save(figure, [at.figure(name, suffix) for suffix in ("svg", "png")])

    # One thread each: as many for linear algebra in each process would wait for one another.
    with logged(snakemake.log[0], snakemake.output[0]), threadpool_limits(1):
        # Loading the libraries takes longer than drawing: they are loaded once, before the fork.
        functions = {
            name: getattr(import_module(f"bqlib.figures.{name}"), name)
            for name, *_ in figures.values()
        }
        gc.freeze()  # or drawing looks for cycles among all that was loaded, 0.3 s
        with ProcessPoolExecutor(snakemake.threads, mp_context=get_context("fork")) as pool:
            list(pool.map(draw, figures))
        made_by = snakemake.params.made_by
        write_record(at.folder, snakemake.output.record, made_by, snakemake.input, snakemake.output)
