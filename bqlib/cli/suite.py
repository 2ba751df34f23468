"""Commands of those who enter a method in the benchmark suite."""

import argparse
from pathlib import Path

from bqlib.cli.command import (
    AS_JSON,
    PROBLEM,
    RESULTS_FOLDER,
    Command,
    NoAnswerError,
    ProblemError,
    counted,
    no_results,
    print_json,
    reading,
)
from bqlib.results.text import aligned


def score(folder, to, as_json):
    """Print what the points of a submission come to, and write their curves."""
    from bqlib.suite import scores  # 1.5 s
    from bqlib.suite.mistakes import SubmissionError
    from bqlib.suite.submission import read_submission

    try:
        submission = read_submission(folder)
        dataset = scores.score(submission)
    except SubmissionError as error:
        if not as_json:
            raise ProblemError(error) from None
        print_json({"problems": error.problems})
        return PROBLEM
    try:
        store = scores.write_scores(dataset, folder if to is None else to)
    except FileExistsError as error:
        raise NoAnswerError(error) from None
    rows = scores.table_of_scores(dataset)
    about = submission.about
    if as_json:
        said = {"method": about.method, "version": about.version, "sha256": submission.sha256}
        print_json({"problems": [], **said, "scores": rows, "curves": str(store)})
        return 0
    print(f"{about.method} {about.version}, {about.kind}, weights {about.weights}\n")
    print(aligned([_shown(row) for row in rows], ["seeds", "n", "MMD", "best known", "levels"]))
    above = [row["problem"] for row in rows if (row["mmd"] or 0) > row["of_no_points"]]
    if above:
        print(
            f"\nMMDs above that of no points: {', '.join(above)}. Are weights, columns and units "
            "right?"
        )
    entered = sum(row["levels"] for row in rows)
    print(
        f"\n{counted(len(rows), 'problem')}, {entered} of {sum(row['of_levels'] for row in rows)} "
        f"levels; curves: {store}"
    )
    return 0


def _shown(row):
    return {
        "problem": row["problem"],
        "seeds": row["seeds"],
        "n": row["n"],
        "MMD": "no n in common" if row["mmd"] is None else f"{row['mmd']:.3e}",
        "best known": "none" if row["best_known"] is None else f"{row['best_known']:.3e}",
        "levels": f"{row['levels']} of {row['of_levels']}",
    }


def template(method, to, pools, seeds):
    """Write an empty submission."""
    from bqlib.suite.template import write_template  # 1.5 s

    folder = Path(method if to is None else to)
    try:
        files = write_template(folder, method, pools, seeds)
    except FileExistsError as error:
        raise NoAnswerError(f"{folder} {error.strerror}") from None
    except ValueError as error:
        raise NoAnswerError(error) from None
    print(f"{folder}: {counted(len(files), 'file')}; README.txt says how to go on")


def submission_of(results, algorithm, to):
    """Write a rule of a finished sweep of problems as a submission."""
    from bqlib import __version__
    from bqlib.access.opening import open_results  # 1.6 s
    from bqlib.suite.about import NOBODY
    from bqlib.suite.mistakes import SubmissionError
    from bqlib.suite.of_results import point_sets_of
    from bqlib.suite.submission import write_submission
    from bqlib.sweep.problems import SUITE

    if not Path(results).exists():
        raise NoAnswerError(no_results(results))
    with reading(results, results):
        curves = open_results(results)
        curves["status"].load()
    about = {
        "method": f"{algorithm}_submitted",
        "version": __version__,
        "authors": [NOBODY],
        "citation": "",
        "licence": "CC0-1.0",
        "code": "",
        "suite": SUITE,
    }
    try:
        facts, sets, left_out = point_sets_of(curves, algorithm)
        write_submission(to, about | facts, sets)
    except SubmissionError as error:
        raise ProblemError(error) from None
    except FileExistsError as error:
        raise NoAnswerError(f"{to}: {error.strerror}") from None
    except ValueError as error:
        raise NoAnswerError(f"{results}: {error}") from None
    without = f"; left out: {counted(len(left_out), 'trial')} without points" if left_out else ""
    print(f"{to}: {counted(len(sets), 'point set')} of {algorithm}{without}")


def number_of_seeds(text):
    """The value of --seeds."""
    if not (text.isascii() and text.isdecimal()) or not 1 <= int(text[:4]) <= 100:
        raise argparse.ArgumentTypeError(f"must be a whole number from 1 to 100, not {text}")
    return int(text)


COMMANDS = (
    Command(
        name="submission-template",
        run=template,
        summary="write an empty submission to the benchmark suite",
        about=(
            "Writes a folder with submission.json to fill in, points.csv without rows, the "
            "problems of the suite, and a README.txt that says how to go on. Refuses to replace "
            "any file."
        ),
        examples=(
            "bqlib submission-template kmeans",
            "bqlib submission-template kmeans --to entries/kmeans --pools --seeds 3",
        ),
        arguments=(
            ("method", {"help": "a label of the method, such as kmeans"}),
            ("--to", {"metavar": "FOLDER", "help": "where to write (default: the label)"}),
            (
                "--pools",
                {
                    "action": "store_true",
                    "help": "also write the pools that the rules of bqlib pick from, 17 MB a seed",
                },
            ),
            (
                "--seeds",
                {
                    "type": number_of_seeds,
                    "default": 5,
                    "help": "number of seeds that get pools (default: 5)",
                },
            ),
        ),
    ),
    Command(
        name="score",
        run=score,
        summary="check and score a submission to the benchmark suite",
        about=(
            "Checks the points of a submission and says by row what is wrong with them, or "
            "computes every MMD from the points alone, writes the curves and prints for each "
            "problem the MMD at the largest n (the median over seeds), the best one known, and how "
            "many levels more than half of the seeds reach. Nothing of the submission is run."
        ),
        examples=("bqlib score kmeans", "bqlib score kmeans --to results/kmeans --json"),
        arguments=(
            ("folder", {"help": "the folder with submission.json and points.csv"}),
            (
                "--to",
                {
                    "metavar": "FOLDER",
                    "help": "where to write curves.zarr (default: the folder itself)",
                },
            ),
            AS_JSON,
        ),
    ),
    Command(
        name="submission-of",
        run=submission_of,
        summary="write an algorithm of a finished sweep of problems as a submission",
        about=(
            "Writes the points of an algorithm as a submission, as an example or to compare. Edit "
            "its submission.json before you hand it on."
        ),
        examples=("bqlib submission-of results/suite sbq --to sbq",),
        arguments=(
            RESULTS_FOLDER,
            ("algorithm", {"help": "the name of the algorithm"}),
            ("--to", {"metavar": "FOLDER", "required": True, "help": "where to write"}),
        ),
    ),
)
