"""Record the sha256 of all that a run made, and where it comes from."""

if __name__ == "__main__":
    import shutil
    from pathlib import Path

    from bqlib.results.integrity import write_manifest
    from bqlib.results.layout import Layout
    from bqlib.running.client import logged

    results = Path(snakemake.output[0]).parent
    with logged(snakemake.log[0]):
        # All pieces are there: no run has a use for their trials, and this may be killed hereafter.
        shutil.rmtree(Layout(results).kept, ignore_errors=True)
        write_manifest(results)
