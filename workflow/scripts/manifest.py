"""Check all that a run made, and record its sha256 and where it comes from."""

if __name__ == "__main__":
    import shutil
    from pathlib import Path

    from bqlib.results.integrity import write_manifest
    from bqlib.results.layout import Layout
    from bqlib.results.records import write_record
    from bqlib.running.client import logged

    results = Path(snakemake.output[0]).parent
    wanted = [Path(path).relative_to(results).as_posix() for path in snakemake.input]
    with logged(snakemake.log[0], snakemake.output[0]):
        # All pieces are there: no run has a use for their trials, and this may be killed hereafter.
        shutil.rmtree(Layout(results).kept, ignore_errors=True)
        write_manifest(results, wanted)
        made_by = snakemake.params.made_by
        write_record(results, snakemake.output.record, made_by, snakemake.input)
