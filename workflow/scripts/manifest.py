"""Check all that a run made, and record its sha256 and where it comes from."""

if __name__ == "__main__":
    from pathlib import Path

    from bqlib.results.integrity import write_manifest
    from bqlib.running.client import logged

    results = Path(snakemake.output[0]).parent
    wanted = [Path(path).relative_to(results).as_posix() for path in snakemake.input]
    with logged(snakemake.log[0]):
        write_manifest(results, wanted)
