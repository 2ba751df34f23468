"""The report: one HTML file with everything in it, readable without a network.

What goes into the page is put together here, as plain data. Its markup is in the templates.
"""

import base64
import json
import math
import re
from dataclasses import dataclass

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bqlib.figures.choice import Figure, figure_named
from bqlib.report import STYLE, TEMPLATES
from bqlib.report.summary import summary
from bqlib.results.damage import is_there, read_object
from bqlib.results.files import write_atomically
from bqlib.results.layout import CLAIMS, Layout

# A mark and a class of report.css for each verdict.
MARKS = {
    "holds": ("✓", "holds"),
    "holds with correction": ("±", "corrected"),
    "does not hold": ("✗", "fails"),
    "cannot be checked": ("?", "unknown"),
}
MET = {
    True: ("✓", "holds", "met"),
    False: ("✗", "fails", "not met"),
    None: ("?", "unknown", "not tested"),
}
# Columns whose cells head their rows.
LABELS = ("target", "kernel", "lengthscale", "algorithm", "window", "job")
# Headings of columns, where their names do not say enough.
HEADINGS = {
    "time_n": "CPU time: power of N",
    "time_m": "CPU time: power of M",
    "seconds": "CPU time (s)",
    "megabytes": "Memory (MB)",
    "rate": "Rate a, n ≥ 20",
    "power law n^-a": "a (power law)",
    "A - c n^b": "b (stretched exponential)",
    "median, s": "Median (s)",
    "longest, s": "Longest (s)",
    "sum, s": "Total (s)",
    "job": "Kind of job",
    "jobs": "Number of jobs",
    "most memory, MB": "Peak memory (MB)",
}
TABLE_1 = (
    "Known costs and guarantees, and our measurements. Costs are for N points from one pool of M "
    "candidates. CPU time is that of the largest N, memory that of half the largest N. The rate is "
    "a in MMD ~ n^-a. MMDs are geometric means over the seeds."
)
MMD = (
    "Median MMD over the seeds that succeeded. A dash means that a curve ends before this n, that "
    "a set was not made at this n, or that no seed succeeded."
)
RATES = (
    "Fitted to the MMD: the power law n^-a, the stretched exponential log MMD = A - c n^b, and a "
    "power law with a floor. Where the power law is not named, a is a mean slope and no rate. "
    "Brackets are 95 % intervals from a bootstrap over the seeds. A model is named if it misses "
    "the mean curve by no more than the noise between the seeds, or 4 %. The misfit is that of "
    "the model named, or the smallest if none is. Undecided: the data do not show which model "
    "holds. Faster than 1/n is a one-sided test."
)
FAILED = "Failed trials, with the reason."
ENDED = (
    "These trials succeeded, but their curves stop before the largest n: double precision cannot "
    "separate further points."
)
TRIALS = "Time per trial on its worker."
JOBS = (
    "Time and memory per Snakemake job. The times of pieces and studies include waiting for a "
    "worker."
)
WIDTH = 864  # of a figure in pixels, if its file gives none


@dataclass(frozen=True)
class Picture:
    """A figure as it was drawn.

    Attributes
    ----------
    figure : Figure
    kind : str
        "png" or "svg+xml".
    image : bytes
    width : int
        In pixels.
    """

    figure: Figure
    kind: str
    image: bytes
    width: int


@dataclass(frozen=True)
class Section:
    """A section of the page. Its template shows its content; without content it is left out."""

    name: str
    heading: str
    content: object
    template: str = "tables"


@dataclass(frozen=True)
class Column:
    """A column of a table; the cells of a column of labels are headings of the rows."""

    heading: str
    labels: bool


@dataclass(frozen=True)
class Table:
    """A table of text, the cells of each row in the order of the columns."""

    caption: str
    columns: tuple[Column, ...]
    rows: tuple[tuple[str, ...], ...]


def write_report(results, figures):
    """Write ``report.html`` into a folder of results.

    Parameters
    ----------
    results : path-like
        The experiment's folder, with its curves and figures.
    figures : iterable of str
        Names of figures and pages, see :func:`bqlib.figures.choice.figure_named`. With claims, the
        figures of the paper come first, in its order.
    """
    at = Layout(results)
    judged = read_object(at.folder, CLAIMS) if is_there(at.folder, CLAIMS) else {}
    drawn = [_picture(at, figure_named(name)) for name in figures]
    write_atomically(at.report, report(summary(at.folder), drawn, judged).encode())


def _picture(at, figure):
    """The smaller of a figure's two files: many points make a large SVG."""
    vector = at.figure(figure.name, "svg").read_bytes()
    pixels = at.figure(figure.name, "png").read_bytes()
    width = re.search(rb'width="([\d.]+)pt"', vector)
    kind, image = min(("svg+xml", vector), ("png", pixels), key=lambda file: len(file[1]))
    return Picture(figure, kind, image, round(float(width[1]) * 4 / 3) if width else WIDTH)


def report(about, figures, judged=None):
    """The report of an experiment.

    Parameters
    ----------
    about : dict
        As :func:`bqlib.report.summary.summary` gives it.
    figures : list of Picture
    judged : dict, optional
        Content of ``claims.json``.

    Returns
    -------
    str
        HTML.
    """
    judged = judged or {}
    table_1 = judged.get("table_1")
    sections = [
        Section("claims", "Claims of the paper", _claims(judged), "claims"),
        Section("expectations", "Reproduction checks", _expectations(judged), "expectations"),
        Section(
            "table-1", "Table 1 of the paper, measured and extended", _tables((table_1, TABLE_1))
        ),
        Section("figures", "Figures", _figures(figures, _is_of_huszar2012(judged)), "figures"),
        Section("mmd-table", "MMD in numbers", _tables((about["mmd"], MMD))),
        Section("rates", "Convergence rates", _tables((about["rates"], RATES))),
        Section("failed", "Failed trials", _failed(about), "failed"),
        Section("ended", "Curves that end early", _tables((about["ended"], ENDED))),
        Section("timing", "Timing", _tables((about["seconds"], TRIALS), (about["jobs"], JOBS))),
        Section("configuration", "Configuration", _configuration(about), "configuration"),
        Section("versions", "Versions", _versions(about), "versions"),
        Section("reading", "How to read and check these results", about["results"], "reading"),
    ]
    sections = [section for section in sections if section.content]
    if about["trials"]["failed"]:
        sections.sort(key=lambda section: section.name != "failed")  # before all else
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    return environment.get_template("report.html").render(
        style=STYLE.read_text(encoding="utf-8"),
        about=about,
        labels=[(_words(name), ", ".join(map(_text, of))) for name, of in about["labels"].items()],
        verdicts=_counts(about["verdicts"]),
        sections=sections,
        version=about["versions"].get("bqlib_version", ""),
    )


def _claims(judged):
    if not judged.get("claims"):
        return None
    rows, papers = [], judged.get("papers", {})
    for claim in judged["claims"]:
        mark, kind = MARKS[claim["verdict"]]
        where = claim["where"] + (f", {papers[claim['paper']]}" if len(papers) > 1 else "")
        rows.append({"rule": ""} | claim | {"mark": mark, "kind": kind, "where": where})
    return {"rows": rows, "verdicts": _counts(judged["verdicts"])}


def _counts(verdicts):
    return ", ".join(f"{verdict}: {count}" for verdict, count in verdicts.items())


def _expectations(judged):
    rows = []
    for expectation in judged.get("expectations", ()):
        mark, kind, result = MET[expectation["met"]]
        rows.append(expectation | {"mark": mark, "kind": kind, "result": result})
    return rows


def _tables(*contents):
    """Tables from pairs of rows and a caption; those without rows are left out."""
    return [_table(rows, caption) for rows, caption in contents if rows]


def _table(rows, caption):
    names = tuple(rows[0])
    columns = tuple(Column(_heading(name), name in LABELS) for name in names)
    return Table(caption, columns, tuple(tuple(_text(row[name]) for name in names) for row in rows))


def _heading(column):
    """The heading of a column; columns such as "mmd_100" are those of Table 1."""
    size = re.fullmatch(r"mmd_(\d+)", column)
    return f"MMD at n = {size[1]}" if size else HEADINGS.get(column, _words(column))


def _is_of_huszar2012(judged):
    """Whether the figures are those of Huszar and Duvenaud (2012), whose numbers they have."""
    return "huszar2012" in judged.get("papers", ("huszar2012",) if judged else ())


def _figures(pictures, of_the_paper):
    """What is shown of each figure; those of the paper first and with their number, if wanted."""
    shown = [
        {
            "name": picture.figure.name,
            "heading": _words(picture.figure.name),
            "caption": picture.figure.caption,
            "number": picture.figure.number if of_the_paper else None,
            "width": picture.width,
            "address": _address(picture),
        }
        for picture in pictures
    ]
    return sorted(shown, key=lambda figure: figure["number"] or math.inf)


def _address(picture):
    """The image itself, as the address of an image."""
    return f"data:image/{picture.kind};base64,{base64.b64encode(picture.image).decode()}"


def _failed(about):
    return {
        "trials": about["trials"],
        "advice": about["advice"],
        "tables": _tables((about["failed"], FAILED)),
    }


def _configuration(about):
    texts = {name: json.dumps(value, ensure_ascii=False) for name, value in about["config"].items()}
    return {
        "short": [(name, text) for name, text in texts.items() if len(text) < 200],
        "whole": json.dumps(about["config"], indent=1, ensure_ascii=False),
    }


def _versions(about):
    return [(name.removesuffix("_version"), value) for name, value in about["versions"].items()]


def _text(value):
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _words(name):
    """The name of a column, a dimension or a figure, as a heading."""
    words = name.replace("_", " ").replace("lengthscale", "length-scale")
    words = words.replace("mmd", "MMD").replace("bq ", "BQ ")
    symbol = words[1:2] == " "  # as in "n = 10"
    return words if symbol else words[0].upper() + words[1:]
