"""Commands that help after a sweep has run."""

import json
from dataclasses import asdict
from pathlib import Path

from bqlib.cli.command import (
    AS_JSON,
    PROBLEM,
    RESULTS_FOLDER,
    SHELF,
    Command,
    NoAnswerError,
    counted,
    json_text,
    loaded,
    no_results,
    print_json,
    reading,
)
from bqlib.results.damage import is_there, read_object
from bqlib.results.layout import (
    CLAIMS,
    MANIFEST,
    RESULTS,
    Layout,
    has_results,
    head,
    path_of_piece,
    path_of_timing,
    results_of,
)
from bqlib.results.retry import FAIL_AGAIN, delete, may_pass, outdated, set_aside
from bqlib.results.text import aligned
from bqlib.running.errors import RunError

SUFFIXES = (".csv", ".parquet", ".nc")  # of exports


def show(path, shelf, as_json):
    """Print a summary of results, or the cells of a sweep."""
    if Path(path).is_file() or Path(path).suffix == ".yaml":
        return show_sweep(path, shelf, as_json)
    if not Path(path).exists():
        raise NoAnswerError(no_results(path))
    from bqlib.report.summary import as_text, summary  # 1.7 s

    with reading(path, path):
        about = summary(path)
        text = json_text(about) + "\n" if as_json else as_text(about)
    print(text, end="")
    return PROBLEM if about["trials"]["failed"] or about["trials"]["missing"] else 0


def status(results, as_json):
    """Print how far the run on a folder of results is, or was."""
    from bqlib.running import session  # 50 ms
    from bqlib.running.status import as_text, read_status  # 10 ms

    folder = Path(results)
    if not folder.is_dir():
        raise NoAnswerError(no_results(results))
    try:
        found = read_status(folder)
        owner = session.owner_of(folder)
        if found is None and owner:
            raise NoAnswerError(
                f"{results}: a run works on it ({owner}) and has told no status: it has just "
                "begun, or each of its jobs does its own work; for counts: bqlib plan SWEEP"
            )
        if found is None:
            gathered = head(Layout(folder).curves).exists()
            todo = f"to see what is there: bqlib show {results}"
            todo = todo if gathered else "to finish it, run the sweep again"
            silent = f"{results}: its run left no status; {todo}"
            raise NoAnswerError(silent if has_results(folder) else no_results(results))
    except RunError as error:
        raise NoAnswerError(error) from None
    if as_json:
        print_json(asdict(found) | {"runs": bool(owner)})
    else:
        print(as_text(results, found, owner))
    return PROBLEM if found.failed else 0


def show_sweep(path, shelf, as_json):
    """Print the cells of a sweep."""
    experiment = loaded(path, shelf)
    if as_json:
        print_json(experiment.canonical())
        return 0
    print(f"{experiment.title}\n{RESULTS / experiment.name}\n")
    print(aligned([asdict(cell) for cell in experiment.cells()], ["lengthscale"]))
    studies = ", ".join(experiment.studies)
    print(
        f"\n{len(experiment.cells())} cells, each for n = 1 to {experiment.n} and "
        f"{experiment.seeds} seeds; studies: {studies or 'none'}"
    )
    return 0


def check(path, as_json):
    """Print what is wrong with the files of results, and what to do about it."""
    from bqlib.results import integrity  # 1.2 s

    try:
        checked = integrity.check(path)
    except FileNotFoundError:
        raise NoAnswerError(no_results(path)) from None
    if as_json:
        print_json(asdict(checked))
        return PROBLEM if checked.faults else 0
    folder = results_of(path) if head(path).exists() else Path(path)
    for fault in checked.faults:
        print(f"{folder / fault.path}: {fault.what}")
    how = f"compared with {MANIFEST}" if checked.recorded else f"there is no {MANIFEST} yet"
    if not checked.recorded and any(fault.path == MANIFEST for fault in checked.faults):
        how = f"without {MANIFEST}"
    print(
        f"{path}: {counted(checked.files, 'file')}, {checked.bytes / 1e6:.1f} MB ({how}): "
        + (counted(len(checked.faults), "fault") if checked.faults else "no faults")
    )
    if checked.unused:
        pieces = "1 piece is" if len(checked.unused) == 1 else f"{len(checked.unused)} pieces are"
        print(
            f"{pieces} not in the curves, because the sweep has changed; to free the space, "
            f"delete: {', '.join(checked.unused)}"
        )
    if any(not fault.foreign for fault in checked.faults) and has_results(folder):
        print(f"to recompute them: bqlib retry --damaged {folder}, then run the sweep again")
    if any(fault.foreign for fault in checked.faults):
        print("to read a store of another schema version, use the bqlib that wrote it")
    return PROBLEM if checked.faults else 0


def export(results, file, points):
    """Write results to a file, and print how many."""
    from bqlib.access.opening import open_results  # 1.6 s
    from bqlib.results import exports  # 0.6 s

    for path in results:
        if not Path(path).exists():
            raise NoAnswerError(no_results(path))
    suffix = Path(file).suffix.lower()
    if suffix not in SUFFIXES:
        raise NoAnswerError(f"{file}: the file must end in {_either(SUFFIXES)}")
    with reading(" or ".join(results), *results):
        curves = open_results(results)
        count, missing = exports.export(curves, file, points=points)
    if how := curves.attrs.get("merged_by"):
        print(how)
    table = suffix != ".nc"
    written = counted(count, "row") if table else f"{counted(count, 'value')} of the MMD"
    if missing:
        written += f"; {counted(missing, 'missing trial')} {'left out' if table else 'as NaN'}"
    print(f"{file}: {written}")


def retry(results, damaged, sweep, shelf):
    """Delete what the next run shall recompute, and print why."""
    from bqlib.results import integrity  # 1.2 s
    from bqlib.results.used import all_failed  # 0.7 s
    from bqlib.running.session import lock  # 0.1 s

    if not has_results(results):
        raise NoAnswerError(no_results(results))
    experiment = loaded(sweep, shelf) if sweep else None
    try:
        held = lock(Path(results))
    except RunError as error:
        raise NoAnswerError(error) from None
    with held:
        failed = all_failed(results)
        paths = []
        for piece, seed, reason in failed:
            print(f"{piece}: seed {seed} failed: {reason}")
        if damaged:
            faults = [fault for fault in integrity.check(results).faults if not fault.foreign]
            paths += [fault.path for fault in faults]
            for fault in faults:
                print(f"{fault.path}: {fault.what}")
        if experiment:
            with reading(results, results):
                others = outdated(results, experiment)
            paths += others
            for path in others:
                print(f"{path}: made by a different sweep or a different version of the code")
        retried = {piece for piece, _, _ in failed}
        wrong = {p for p in retried if {path_of_piece(p), path_of_timing(p)} & {*paths}}
        aside = set_aside(results, retried - wrong)
        deleted = delete(results, [*map(path_of_piece, retried), *paths])
        if deleted:  # the counts that the last run told are no longer so
            Layout(results).status.unlink(missing_ok=True)
    kept = f"{counted(aside, 'piece')} set aside, " if aside else ""
    files = f"{kept}{counted(deleted, 'file')} deleted; the next run recreates what is missing"
    failures = counted(len(failed), "failed trial")
    print(f"{failures}; {files if deleted else 'nothing to delete'}")
    certain = [reason for _, _, reason in failed if not may_pass(reason)]
    if certain:
        print(f"{len(certain)} of {len(failed)} {FAIL_AGAIN}")


def claims(results, as_json):
    """Print the verdicts on the claims of papers, and our reproduction checks."""
    from bqlib.claims import as_text, read  # 1.4 s

    if not Path(results).exists():
        raise NoAnswerError(no_results(results))
    path = Layout(results).claims
    with reading(path, results):
        if not is_there(results, CLAIMS):
            raise FileNotFoundError(
                f"there are no claims in {results}: give the results of a finished sweep with the "
                "settings of a paper, such as results/paper"
            )
        read_object(results, CLAIMS)  # or an error that says that it is damaged
        written = path.read_text(encoding="utf-8")
        judged, checks, _ = read(written)
        text = as_text(judged, checks)
    if as_json:
        print_json(json.loads(written))
    else:
        print(text, end="")
    return PROBLEM if any(check.met is False for check in checks) else 0


def profile(results, rule, as_json):
    """Print what share of all problems each rule solves, or how one does against the others."""
    from bqlib.access.opening import open_results  # 1.6 s
    from bqlib.report import profiles  # 0.1 s
    from bqlib.schema import FAILED, MISSING, POOLS  # 0.2 s

    for path in results:
        if not Path(path).exists():
            raise NoAnswerError(no_results(path))
    folders = " or ".join(results)
    with reading(folders, *results):
        curves = open_results(results)
        names = curves["algorithm"].values.tolist()
    if rule is not None and rule not in names:
        raise NoAnswerError(f"{folders}: no algorithm {rule}; there are {', '.join(names)}")
    if POOLS in curves.dims:
        raise NoAnswerError(f"{folders}: their pools differ: give folders of one pool")
    with reading(folders, *results):
        rows, said = profiles.versus_rows(curves, rule) if rule else profiles.profile_rows(curves)
        incomplete = bool(curves["status"].isin((MISSING, FAILED)).any())
    if as_json:
        print_json({"versus" if rule else "profile": rows, "remarks": said})
    else:
        words = profiles.in_words(rows)
        print(aligned(words, {name for row in words for name in row} - {"algorithm", "rival"}))
        if said:
            print("", *said, sep="\n")
    return PROBLEM if incomplete else 0


def _either(words):
    return f"{', '.join(words[:-1])} or {words[-1]}"


COMMANDS = (
    Command(
        name="status",
        run=status,
        summary="print how far a run is, while it runs and after",
        about=(
            "Prints whether a run works on a folder of results, how many cells and trials are done "
            "or failed, how fast it is and what time is left. Exits with 1 if a trial failed."
        ),
        examples=("bqlib status results/quick", "bqlib status --json results/quick | jq .failed"),
        arguments=(RESULTS_FOLDER, AS_JSON),
    ),
    Command(
        name="show",
        run=show,
        summary="print a summary of results, or the cells of a sweep",
        about=(
            "For a folder of results, prints how many trials succeeded, failed or ended early and "
            "why, which rule is best where, the medians of the MMD, the rates, and the number of "
            "claims with each verdict. "
            "Exits with 1 if a trial failed or is missing. For a sweep file, prints the cells."
        ),
        examples=(
            "bqlib show results/quick",
            "bqlib show --json results/quick | jq .trials",
            "bqlib show config/quick.yaml",
        ),
        arguments=(("path", {"help": "a folder of results, or a sweep file"}), SHELF, AS_JSON),
    ),
    Command(
        name="check",
        run=check,
        summary="check that all files are as they were written",
        about=(
            "Compares every file with the sha256 that the run recorded. Names each file that is "
            "missing, damaged, cut short, in the wrong place or of another schema, and says what "
            "to do next. Exits with 1 if a file has a fault. Before a run has finished, files "
            "other than pieces have only the checksums in their chunks."
        ),
        examples=(
            "bqlib check results/quick",
            "bqlib check results/quick/curves.zarr",
            "(cd results/quick && sha256sum --check --quiet manifest-sha256.txt)",
        ),
        arguments=(("path", {"help": "a folder of results, or one store"}), AS_JSON),
    ),
    Command(
        name="export",
        run=export,
        summary="write results as CSV, Parquet or NetCDF",
        about=(
            "Writes results for other programs. The suffix of the file selects the format. A table "
            "has one row for each cell, seed and number of points. A NetCDF file has the form of "
            "the dataset that bqlib.open_results returns. Several folders are merged; how pools or "
            "largest n that differ are joined is printed."
        ),
        examples=(
            "bqlib export results/quick quick.csv",
            "bqlib export --points results/quick quick.parquet",
            "bqlib export results/monday results/tuesday both.nc",
        ),
        arguments=(
            ("results", {"nargs": "+", "help": "folders of results"}),
            ("file", {"help": f"the file to write; it must end in {_either(SUFFIXES)}"}),
            ("--points", {"action": "store_true", "help": "add the points and their weights"}),
        ),
    ),
    Command(
        name="profile",
        run=profile,
        summary="compare rules by the points that they need",
        about=(
            "For each rule, prints the share of all problems, levels and seeds that it solves with "
            "n/d = 1, 10, 100 points for each dimension and with all, and its wins and losses "
            "against the other rules. A level is a value of the MMD: those of the problems of a "
            "sweep, or else 51 of each target, kernel and length-scale. With --versus, prints how "
            "one rule does against each other. Several folders are merged. Exits with 1 if a trial "
            "failed or is missing."
        ),
        examples=(
            "bqlib profile results/quick",
            "bqlib profile --versus sbq results/quick",
            "bqlib profile --json results/quick | jq .profile",
        ),
        arguments=(
            ("results", {"nargs": "+", "help": "folders of results"}),
            (
                "--versus",
                {"dest": "rule", "metavar": "RULE", "help": "one rule against the others"},
            ),
            AS_JSON,
        ),
    ),
    Command(
        name="retry",
        run=retry,
        summary="let the next run try failed trials again, and recompute damaged files",
        about=(
            "Lets the next run try failed trials again: sets aside the pieces with failed trials, "
            "and deletes the results gathered from them. The next run recomputes these, takes over "
            "the trials that succeeded, and keeps the rest. Says which of the failed trials will "
            "fail again unless the sweep, the code or what they use changes. Changes nothing while "
            "a run works on the results."
        ),
        examples=(
            "bqlib retry results/quick",
            "bqlib retry --damaged results/quick",
            "bqlib retry --sweep config/quick.yaml results/quick",
        ),
        arguments=(
            RESULTS_FOLDER,
            (
                "--damaged",
                {
                    "action": "store_true",
                    "help": "also delete the files that bqlib check reports as damaged",
                },
            ),
            (
                "--sweep",
                {
                    "metavar": "FILE",
                    "help": "also delete files made by a different sweep than this sweep file, or "
                    "by a different version of the code",
                },
            ),
            SHELF,
        ),
    ),
    Command(
        name="claims",
        run=claims,
        summary="print the verdicts on the claims of papers",
        about=(
            "Prints for each claim of a paper that the sweep repeats the verdict, its rule and "
            "what was measured, then our reproduction checks. Exits with 1 if a check fails."
        ),
        examples=("bqlib claims results/paper", "bqlib claims --json results/paper"),
        arguments=(RESULTS_FOLDER, AS_JSON),
    ),
)
