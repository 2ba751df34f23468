"""Write the report of a sweep."""

if __name__ == "__main__":
    from importlib import import_module
    from inspect import getdoc
    from pathlib import Path

    from bqlib import claims
    from bqlib.analysis import rate_rows
    from bqlib.files import write_atomically
    from bqlib.report import report
    from bqlib.run import logged
    from bqlib.store import open_dataset

    results = Path(snakemake.output[0]).parent
    with logged(snakemake.log[0]):
        curves, rates = (open_dataset(results / f"{name}.zarr") for name in ("curves", "rates"))
        figures = []
        for name in snakemake.params.figures:
            draw = getattr(import_module(f"bqlib.figures.{name}"), name)
            svg = (results / "figures" / f"{name}.svg").read_bytes()
            figures.append((name, getdoc(draw).splitlines()[0], svg))
        judged = ([], [], [])
        if snakemake.input.claims:
            judged = claims.read((results / "claims.json").read_text(encoding="utf-8"))
        hidden = ("config", "Conventions")
        about = {name: value for name, value in curves.attrs.items() if name not in hidden}
        text = report(curves.attrs["title"], about, figures, rate_rows(rates), *judged)
        write_atomically(snakemake.output[0], text.encode())
