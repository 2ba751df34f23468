"""The command for archives of submissions to the benchmark suite."""

from pathlib import Path

from bqlib.cli.command import (
    PROBLEM,
    Command,
    NoAnswerError,
    ProblemError,
    counted,
    no_results,
    reading,
)
from bqlib.results.text import aligned

ACTIONS = ("add", "check", "table")


def archive(action, folder, results, to, html, markdown):
    """Add a submission to an archive, check one, or print its table."""
    if (to is None) == (action == "add"):
        wanted = "needs --to ARCHIVE" if to is None else "takes no --to"
        raise NoAnswerError(f"archive {action} {wanted}")
    if action != "table" and (results or html or markdown):
        raise NoAnswerError(f"archive {action} takes no results, --html or --markdown")
    if action == "table":
        return _table(folder, results, html, markdown)
    return _add(folder, to) if action == "add" else _check(folder)


def _add(folder, to):
    from bqlib.suite.archive import ArchiveError, add  # 1.5 s
    from bqlib.suite.mistakes import SubmissionError

    try:
        path, added = add(folder, to)
    except (SubmissionError, ArchiveError) as error:
        raise ProblemError(error) from None
    print(f"{path}: {'added' if added else 'already there'}")
    return 0


def _check(folder):
    from bqlib.suite.recheck import check  # 1.5 s

    wrong = count = 0
    for name, problems in check(folder):
        count += 1
        wrong += bool(problems)
        print("\n".join(problems) if problems else f"{name}: right", flush=True)
    print(f"{count} checked, {wrong} wrong")
    return PROBLEM if wrong else 0


def _table(folder, results, html, markdown):
    from bqlib.access.opening import open_results  # 1.6 s
    from bqlib.report.standings import page
    from bqlib.results.files import write_atomically
    from bqlib.suite import standings
    from bqlib.suite.archive import ArchiveError, read_archive

    try:
        methods = standings.methods_of(read_archive(folder))
    except ArchiveError as error:
        raise ProblemError(error) from None
    for path in results:
        if not Path(path).exists():
            raise NoAnswerError(no_results(path))
        with reading(path, path):
            curves = open_results(path)
            curves["status"].load()
        try:
            methods += standings.methods_of_run(curves)
        except ValueError as error:
            raise NoAnswerError(f"{path}: {error}") from None
    try:
        table = standings.standings(methods)
    except ValueError as error:
        raise NoAnswerError(error) from None
    headings, rows, _ = standings.summary_table(table)
    shown = [dict(zip(headings, row, strict=True)) for row in rows]
    numbers = [headings[column] for column in standings.NUMBERS]
    print(aligned(shown, numbers) or f"{folder}: no entries")
    for path, text_of in ((html, page), (markdown, standings.markdown)):
        if path is not None:
            write_atomically(path, text_of(table).encode())
            print(f"{path}: {counted(len(table.rows), 'method')}")
    return 0


COMMANDS = (
    Command(
        name="archive",
        run=archive,
        summary="keep submissions to the benchmark suite, check and compare them",
        about=(
            "add checks and scores a submission and keeps it in an archive, with its curves and "
            "the sha256 of every file. check compares every file of an archive with these, and "
            "scores every submission again. table compares all methods of an archive on all "
            "problems, with the rules of bqlib where results of the suite are given."
        ),
        examples=(
            "bqlib archive add kmeans --to archive",
            "bqlib archive check archive",
            "bqlib archive table archive results/suite --html standings.html",
        ),
        arguments=(
            ("action", {"choices": ACTIONS, "help": "what to do"}),
            ("folder", {"help": "of add: the submission; else the archive"}),
            (
                "results",
                {"nargs": "*", "help": "of table: folders of results of the suite"},
            ),
            ("--to", {"metavar": "ARCHIVE", "help": "of add: the archive, made if missing"}),
            ("--html", {"metavar": "FILE", "help": "of table: write it as a page"}),
            ("--markdown", {"metavar": "FILE", "help": "of table: write it as Markdown"}),
        ),
    ),
)
