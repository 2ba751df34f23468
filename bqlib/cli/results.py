"""Commands on results."""

import json
from dataclasses import asdict
from pathlib import Path

from bqlib.cli.command import (
    AS_JSON,
    BAD_NEWS,
    RESULTS,
    SHELF,
    NoAnswerError,
    command,
    counted,
    json_text,
    loaded,
    no_results,
    print_json,
    reading,
)

SUFFIXES = (".csv", ".parquet", ".nc")  # of exports


@command(("path", {"help": "a folder of results, or a sweep file"}), SHELF, AS_JSON)
def _show(path, shelf, as_json):
    """Show what results hold, or what a sweep asks for.

    Of results: how many trials ran, failed or ended early and why, the MMD, the rates and the
    verdicts. Of a sweep: its cells. The exit code is 1 if a trial failed or is missing.

    examples:
      bqlib show results/quick
      bqlib show --json results/quick | jq .trials
      bqlib show config/quick.yaml
    """
    if Path(path).is_file() or Path(path).suffix == ".yaml":
        return _show_sweep(path, shelf, as_json)
    if not Path(path).exists():
        raise NoAnswerError(no_results(path))
    from bqlib.report.summary import as_text, summary

    with reading(path, path):
        about = summary(path)
        text = json_text(about) + "\n" if as_json else as_text(about)
    print(text, end="")
    return BAD_NEWS if about["trials"]["failed"] or about["trials"]["missing"] else 0


def _show_sweep(path, shelf, as_json):
    from bqlib.results.text import aligned

    experiment = loaded(path, shelf)
    if as_json:
        print_json(experiment.canonical())
        return 0
    print(f"{experiment.title}\nresults/{experiment.name}\n")
    print(aligned([asdict(cell) for cell in experiment.cells()], ["lengthscale"]))
    studies = ", ".join(experiment.studies)
    print(
        f"\n{len(experiment.cells())} cells, each for n = 1 to {experiment.n} and "
        f"{experiment.seeds} seeds; studies: {studies or 'none'}"
    )
    return 0


def _are_results(path):
    from bqlib.results.layout import MANIFEST, PARTS

    return any(Path(path, part).exists() for part in (*PARTS, MANIFEST))


@command(("path", {"help": "a folder of results, or one store"}), AS_JSON)
def _check(path, as_json):
    """Check that results are as their run wrote them.

    Compares every file with the sha256 that was recorded of it, and names what is missing, damaged,
    cut short, in the place of another or of another schema. Where a run has not finished, stores
    are checked by the checksums in them. The exit code is 1 if something is wrong.

    examples:
      bqlib check results/quick
      bqlib check results/quick/curves.zarr
      (cd results/quick && sha256sum --check --quiet manifest-sha256.txt)
    """
    from bqlib.results.integrity import check
    from bqlib.results.layout import MANIFEST

    try:
        checked = check(path)
    except FileNotFoundError:
        raise NoAnswerError(no_results(path)) from None
    if as_json:
        print_json(asdict(checked))
        return BAD_NEWS if checked.faults else 0
    folder = Path(path)
    if Path(path, "zarr.json").exists():  # one store, which is in a folder of results, or alone
        folder = Path(path).parent
    for fault in checked.faults:
        print(f"{folder / fault.path}: {fault.what}")
    how = f"compared with {MANIFEST}" if checked.recorded else f"there is no {MANIFEST} yet"
    if not checked.recorded and any(fault.path == MANIFEST for fault in checked.faults):
        how = f"without {MANIFEST}"
    print(
        f"{path}: {counted(checked.files, 'file')}, {checked.bytes / 1e6:.1f} MB ({how}): "
        + (counted(len(checked.faults), "fault") if checked.faults else "all as written")
    )
    if checked.unused:
        print(
            f"{len(checked.unused)} pieces are not in the curves, as the sweep asks for others; "
            f"they can be deleted: {', '.join(checked.unused)}"
        )
    folder = folder.parent if folder.name == "studies" else folder
    if any(not fault.foreign for fault in checked.faults) and _are_results(folder):
        print(f"to have them made anew: bqlib retry --damaged {folder}, then run the sweep again")
    if any(fault.foreign for fault in checked.faults):
        print("to read what another schema version wrote: use the bqlib that wrote it")
    return BAD_NEWS if checked.faults else 0


@command(
    RESULTS,
    (
        "--damaged",
        {"action": "store_true", "help": "also delete what bqlib check finds to be damaged"},
    ),
    (
        "--sweep",
        {"help": "also delete what another sweep than this file's, or other code, has made"},
    ),
    SHELF,
)
def _retry(results, damaged, sweep, shelf):
    """Have the next run try failed trials again.

    Deletes the pieces that hold them, and what was gathered from these.

    examples:
      bqlib retry results/quick
      bqlib retry --damaged results/quick
      bqlib retry --sweep config/quick.yaml results/quick
    """
    from bqlib.results.integrity import check
    from bqlib.results.retry import delete, outdated
    from bqlib.results.used import all_failed
    from bqlib.running.errors import RunError
    from bqlib.running.session import lock

    if not _are_results(results):
        raise NoAnswerError(no_results(results))
    experiment = loaded(sweep, shelf) if sweep else None
    try:
        held = lock(Path(results))
    except RunError as error:
        raise NoAnswerError(error) from None
    with held:
        failed = all_failed(results)
        paths = [f"pieces/{piece}" for piece, _, _ in failed]
        for piece, seed, reason in failed:
            print(f"{piece}: seed {seed} had failed: {reason}")
        if damaged:
            faults = [fault for fault in check(results).faults if not fault.foreign]
            paths += [fault.path for fault in faults]
            for fault in faults:
                print(f"{fault.path}: {fault.what}")
        if experiment:
            with reading(results, results):
                others = outdated(results, experiment)
            paths += others
            for path in others:
                print(f"{path}: of another sweep or other code")
        deleted = delete(results, paths)
    files = f"{counted(deleted, 'file')} deleted; the next run makes them anew"
    failures = counted(len(failed), "failed trial")
    print(f"{failures}; {files if deleted else 'nothing to delete'}")
    return 0


@command(
    ("results", {"nargs": "+", "help": "folders of results; several are merged"}),
    ("file", {"help": f"the file to write, which ends in {', '.join(SUFFIXES)}"}),
    ("--points", {"action": "store_true", "help": "also the points and their weights"}),
)
def _export(results, file, points):
    """Write results as CSV, Parquet or NetCDF.

    A table has a row for each cell, seed and number of points; a NetCDF file has the form of the
    dataset that bqlib.open_results gives.

    examples:
      bqlib export results/quick quick.csv
      bqlib export --points results/quick quick.parquet
      bqlib export results/monday results/tuesday both.nc
    """
    from bqlib import export, open_results

    for path in results:
        if not Path(path).exists():
            raise NoAnswerError(no_results(path))
    if Path(file).suffix.lower() not in SUFFIXES:
        raise NoAnswerError(f"{file}: must end in {', '.join(SUFFIXES)}")
    with reading(" or ".join(results), *results):
        rows, missing = export(open_results(results), file, points=points)
    left_out = f"; {missing} missing trials left out" if missing else ""
    print(f"{file}: {rows} rows{left_out}")


@command(RESULTS, AS_JSON)
def _claims(results, as_json):
    """Say what became of the paper's claims.

    The exit code is 1 if an expectation is not met.

    examples:
      bqlib claims results/paper
      bqlib claims --json results/paper
    """
    from bqlib.claims import as_text, read

    if not Path(results).exists():
        raise NoAnswerError(no_results(results))
    path = Path(results, "claims.json")
    if not path.exists():
        raise NoAnswerError(
            f"there are no claims in {results}: name the folder of a sweep with the paper's "
            "settings and its studies, such as results/paper, after it has run"
        )
    with reading(path, results):
        written = path.read_text(encoding="utf-8")
        claims, expectations, _ = read(written)
        text = as_text(claims, expectations)
    if as_json:
        print_json(json.loads(written))
    else:
        print(text, end="")
    return BAD_NEWS if any(expectation.met is False for expectation in expectations) else 0
