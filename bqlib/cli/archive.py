"""The command for archives of submissions to the benchmark suite."""

from bqlib.cli.command import PROBLEM, Command, NoAnswerError, ProblemError

ACTIONS = ("add", "check")


def archive(action, folder, to):
    """Add a submission to an archive, or check one."""
    if (to is None) == (action == "add"):
        wanted = "needs --to ARCHIVE" if to is None else "takes no --to"
        raise NoAnswerError(f"archive {action} {wanted}")
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


COMMANDS = (
    Command(
        name="archive",
        run=archive,
        summary="keep submissions to the benchmark suite, and check them",
        about=(
            "add checks and scores a submission and keeps it in an archive, with its curves and "
            "the sha256 of every file. check compares every file of an archive with these, and "
            "scores every submission again."
        ),
        examples=(
            "bqlib archive add kmeans --to archive",
            "bqlib archive check archive",
        ),
        arguments=(
            ("action", {"choices": ACTIONS, "help": "what to do"}),
            ("folder", {"help": "of add: the submission; else the archive"}),
            ("--to", {"metavar": "ARCHIVE", "help": "of add: the archive, made if missing"}),
        ),
    ),
)
