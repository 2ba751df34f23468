"""The table of an archive: all methods over all problems, as plain data and as Markdown."""

import json
import re
from collections import Counter
from dataclasses import dataclass, field

import numpy as np

from bqlib.results.text import one_line, printable
from bqlib.suite.about import About
from bqlib.suite.of_results import information_of
from bqlib.suite.scores import SUBMITTED, table_of_scores
from bqlib.sweep.problems import SUITE
from bqlib.sweep.problems import problems as problems_of_suite

ARCHIVE = "archive"
NUMBERS = range(1, 5)  # columns of the summary
NO_RECORD = "none"  # the source of a best known value that stands for one to come
_MARKS = re.compile(r"([\\`*_{}\[\]<>#|~$^&:@])|(?<=www)(\.)")


@dataclass(frozen=True)
class Method:
    """A method with its scores.

    Attributes
    ----------
    method, version, kind, weights : str
        As in ``submission.json``; of a rule of a run its name, the version of bqlib, and so on.
    scores : dict of str to dict
        Problem to ``seeds``, ``n``, ``mmd``, ``levels`` and ``of_levels``, see
        :func:`bqlib.suite.scores.table_of_scores`.
    about : About or None
        What the submission says of itself; None for a rule of a run.
    source : str
        The archive, or the name of the run.
    information : tuple of str, optional
        What it uses, as in ``submission.json``; None if nobody said.
    """

    method: str
    version: str
    kind: str
    weights: str
    scores: dict
    about: About | None = None
    source: str = ARCHIVE
    information: tuple[str, ...] | None = None


@dataclass(frozen=True)
class Row:
    """A method in the table.

    Attributes
    ----------
    method : Method
    levels : float
        Mean share of the levels of all problems that it reaches; of problems that were not entered
        none.
    levels_entered : float
        The same of those that were entered.
    ratio : float
        Median over the problems entered of its MMD over the best one; NaN if there is none.
    """

    method: Method
    levels: float
    levels_entered: float
    ratio: float


@dataclass(frozen=True)
class Standings:
    """All methods over all problems.

    Attributes
    ----------
    rows : list of Row
        The method that reaches most levels of all problems first.
    best : dict of str to float
        Problem to the smallest MMD known: the record of the suite, or one of the table. Problems
        of which nothing is known are left out.
    """

    rows: list[Row]
    best: dict[str, float] = field(default_factory=dict)


def methods_of(entries):
    """The methods in an archive, as :func:`bqlib.suite.archive.read_archive` gives its entries.

    Scores on another version of a problem are left out.
    """
    suite, found = problems_of_suite(), []
    for entry in entries:
        about = entry.about
        scores = {
            name: scored.model_dump()
            for name, scored in entry.definition.problems.items()
            if name in suite and suite[name].sha256 == scored.sha256
        }
        facts = about.method, about.version, about.kind, about.weights
        found.append(Method(*facts, scores, about, information=tuple(about.information)))
    return found


def methods_of_run(curves):
    """The rules of a sweep of problems.

    Parameters
    ----------
    curves : xarray.Dataset
        As :func:`bqlib.open_results` gives it for a run of the suite.

    Raises
    ------
    ValueError
        If it is not of a sweep of problems, or of other versions of them, or holds the scores of a
        submission.
    """
    config = json.loads(curves.attrs["config"])
    suite = problems_of_suite()
    if not config.get("problems"):
        raise ValueError(f"the results are not of a sweep with problems of {SUITE}")
    for name, settings in config["problems"].items():
        if name not in suite or suite[name].sha256 != settings["sha256"]:
            raise ValueError(f"problem {name} is another one in this version of bqlib")
    found, used = [], ["mmd", "points", "rank_reached", "status", "weight_l1", "weight_sum"]
    for algorithm in config["algorithms"]:
        rows = table_of_scores(curves[used].sel(algorithm=[algorithm["name"]]).load())
        facts = (
            printable(algorithm["name"]),
            printable(str(curves.attrs["bqlib_version"])),
            "set" if algorithm["sizes"] else "sequence",
            algorithm["weights"],
        )
        if algorithm["design"] == SUBMITTED:
            raise ValueError(
                f"{algorithm['name']} is a submission: add it to an archive, which tells what it "
                "says of itself"
            )
        scores = {row["problem"]: row for row in rows}
        found.append(
            Method(
                *facts,
                scores,
                source=printable(config["name"]),
                information=information_of(algorithm),
            )
        )
    return found


def standings(methods):
    """The table of methods.

    Parameters
    ----------
    methods : list of Method

    Returns
    -------
    Standings

    Raises
    ------
    ValueError
        If a rule of a run is there twice.
    """
    suite = problems_of_suite()
    names = [(method.method, method.version, method.source) for method in methods]
    for (name, _, source), count in Counter(names).items():
        if count > 1:
            raise ValueError(f"{name} of {source} is there twice: give each run once")
    best = {}
    for name, problem in suite.items():
        known = [mmd for _, mmd, source in problem.best_known if source != NO_RECORD]
        known += [m.scores[name]["mmd"] for m in methods if name in m.scores]
        known = [mmd for mmd in known if mmd is not None]
        if known:
            best[name] = min(known)
    of_levels = sum(len(problem.levels) for problem in suite.values())
    rows = []
    for method in methods:
        reached = sum(row["levels"] for row in method.scores.values())
        entered = sum(row["of_levels"] for row in method.scores.values())
        ratios = [ratio for name in method.scores if (ratio := ratio_of(method, name, best))]
        rows.append(
            Row(
                method,
                reached / of_levels,
                reached / entered if entered else 0.0,
                float(np.median(ratios)) if ratios else np.nan,
            )
        )
    return Standings(sorted(rows, key=lambda row: (-row.levels, row.method.method)), best)


def ratio_of(method, problem, best):
    """The MMD of a method over the best one; None if there is none."""
    mmd = method.scores[problem]["mmd"] if problem in method.scores else None
    return None if mmd is None or problem not in best else mmd / best[problem]


def summary_table(table):
    """Headings, rows of text, and for each column the numbers of the rows that are best in it.

    In what counts the problems entered alone, only methods can be best that have an MMD on at least
    half of the suite: those that enter few can choose them.
    """
    headings = [
        "Method", "Levels reached, of all", "Levels reached, of those entered",
        "MMD / best, median", "Problems entered", "Version", "From", "Kind", "Weights",
        "Information used",
    ]  # fmt: skip
    rows = []
    for row in table.rows:
        method = row.method
        used = method.information
        rows.append(
            [
                method.method,
                f"{100 * row.levels:.1f} %",
                f"{100 * row.levels_entered:.1f} %",
                "-" if np.isnan(row.ratio) else f"{row.ratio:.3g}",
                f"{len(method.scores)} of {len(problems_of_suite())}",
                method.version,
                method.source,
                method.kind,
                method.weights,
                "-" if used is None else ", ".join(used) or "nothing",
            ]
        )
    half = len(problems_of_suite()) / 2
    of_many = [
        sum(scored["mmd"] is not None for scored in row.method.scores.values()) >= half
        for row in table.rows
    ]
    best = {1: _largest([row.levels for row in table.rows])}
    for column, key, sign in ((2, "levels_entered", 1), (3, "ratio", -1)):
        values = [sign * getattr(row, key) for row in table.rows]
        best[column] = _largest(np.where(of_many, values, np.nan))
    return headings, rows, best


def names_of(table):
    """A name for each method of the table that no other has: with version and run, if need be."""
    names = [row.method.method for row in table.rows]
    for fact in ("version", "source"):
        names = [
            name if names.count(name) == 1 else f"{name} {getattr(row.method, fact)}"
            for name, row in zip(names, table.rows, strict=True)
        ]
    return names


def matrix(table):
    """The MMD of each method on each problem.

    Returns
    -------
    list of tuple
        For each problem that anybody entered its name, largest n, best MMD, and for each method of
        the table (mmd, n, ratio), or None; the MMD is None if seeds have no n in common.
    """
    found = []
    for name, problem in problems_of_suite().items():
        cells = []
        for row in table.rows:
            scored = row.method.scores.get(name)
            ratio = ratio_of(row.method, name, table.best)
            cells.append(None if scored is None else (scored["mmd"], scored["n"], ratio))
        if any(cells):
            found.append((name, problem.n, table.best.get(name), cells))
    return found


def best_of(cells):
    """Positions of the best cells of a row of :func:`matrix`."""
    mmds = [None if cell is None else cell[0] for cell in cells]
    return _largest([np.nan if mmd is None else -mmd for mmd in mmds])


def short(mmd):
    """An MMD in few characters.

    Examples
    --------
    >>> from bqlib.suite.standings import short
    >>> short(0.00123), short(None)
    ('1.2e-3', '-')
    """
    if mmd is None:
        return "-"
    digits, _, power = f"{mmd:.1e}".partition("e")
    return f"{digits}e{int(power)}"


def markdown(table):
    """The table as Markdown."""
    headings, rows, best = summary_table(table)
    lines = [f"# Methods on {SUITE}", "", plain(explanation(table)), ""]
    lines += _markdown_table(headings, _bold(rows, best), NUMBERS)
    lines += ["", "## MMD by problem", "", plain(about_matrix()), ""]
    rows = []
    for name, n, least, cells in matrix(table):
        texts = [_cell(cell, n) for cell in cells]
        top = best_of(cells)
        texts = [f"**{text}**" if i in top else text for i, text in enumerate(texts)]
        rows.append([plain(name), str(n), "-" if least is None else short(least), *texts])
    headings = ["Problem", "n", "Best", *names_of(table)]
    lines += _markdown_table(headings, rows, numbers=range(1, len(headings)))
    told = list_of_entries(table)
    if told:
        lines += ["", "## Entries", ""]
    for name, facts in told:
        lines.append(f"- **{plain(name)}**. " + " ".join(f"{k}: {plain(v)}." for k, v in facts))
    return "\n".join(lines) + "\n"


def explanation(table):
    """What the table of methods says."""
    runs = sorted({row.method.source for row in table.rows if row.method.about is None})
    ours = sum(row.method.about is None for row in table.rows)
    of_runs = f"; {ours} of them are rules that bqlib ran, in {', '.join(runs)}" if runs else ""
    return (
        f"{len(table.rows)} methods on the {len(problems_of_suite())} problems of {SUITE}"
        f"{of_runs}. A level is an MMD to be reached: it counts if more than half "
        "of the seeds reach it at some n. Problems that were not entered count as none reached in "
        "the levels of all. MMDs are those at the largest n submitted, medians over the seeds. The "
        "best MMD of a problem is its record, or the least of this table. The best of a column is "
        "bold, in the columns on the problems entered among methods with an MMD on at least half."
    )


def about_matrix():
    """What the table of problems says."""
    return (
        "Median MMD over the seeds at the problem's n, or at the largest n submitted, which then "
        "stands beside it. The best of each row is bold. A dash: not entered, the method does not "
        "apply, or its seeds have no n in common. Where rounding may hide more than a tenth of "
        "MMD², the number is a bound that the MMD is not above."
    )


def list_of_entries(table):
    """For each entry of the archive its name and pairs of what it says of itself."""
    found = []
    for row in sorted(table.rows, key=lambda row: (row.method.method, row.method.version)):
        about = row.method.about
        if about is None:
            continue
        seconds = "" if about.seconds is None else f"{about.seconds:.3g} s"
        facts = [
            ("Authors", ", ".join(about.authors)),
            ("Licence", about.licence),
            ("Cite", about.citation),
            ("Code", about.code),
            ("Time", ", ".join(text for text in (seconds, about.machine) if text)),
        ]
        said = [(key, " ".join(text.split())) for key, text in facts if text.strip()]
        found.append((f"{about.method} {about.version}", said))
    return found


def plain(text):
    """Text that Markdown takes for nothing else, in one line and without control codes.

    Examples
    --------
    >>> from bqlib.suite.standings import plain
    >>> print(plain("<b> [x](http://y)"))
    \\<b\\> \\[x\\](http\\://y)
    """
    return _MARKS.sub(lambda found: f"\\{found[0]}", one_line(text))


def _markdown_table(headings, rows, numbers):
    rule = ["--:" if i in numbers else "---" for i in range(len(headings))]
    lines = [[plain(heading) for heading in headings], rule, *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def _bold(rows, best):
    return [
        [
            f"**{plain(text)}**" if i in best.get(column, ()) else plain(text)
            for column, text in enumerate(row)
        ]
        for i, row in enumerate(rows)
    ]


def _cell(cell, n):
    if cell is None:
        return "-"
    mmd, own, _ = cell
    return plain(short(mmd) + (f" (n {own})" if own != n else ""))


def _largest(values):
    """Positions of the largest of some numbers; NaN is never it."""
    values = np.array(values, dtype=float)
    if not len(values) or np.isnan(values).all():
        return set()
    return set(np.flatnonzero(values == np.nanmax(values)).tolist())
