"""The report: one HTML file with everything in it, readable without a network.

What goes into the page is put together here, as plain data. Its markup is in the templates.
"""

import base64
import io
import json
import math
import os
import platform
import re
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from datetime import UTC, datetime

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from PIL import Image

from bqlib.claims import FIRST, PAPERS
from bqlib.claims.evidence import CORRECTED, FAILS, HOLDS, UNKNOWN
from bqlib.figures.choice import Figure, figure_named
from bqlib.report import SCRIPT, STYLE, TEMPLATES
from bqlib.report.formulas import in_parts
from bqlib.report.summary import summary
from bqlib.results.damage import is_there, read_object
from bqlib.results.files import write_atomically
from bqlib.results.layout import CLAIMS, Layout
from bqlib.results.text import duration

# A mark and a class of report.css for each verdict; the exceptions first: readers look for them.
MARKS = {
    FAILS: ("✗", "fails"),
    CORRECTED: ("±", "corrected"),
    HOLDS: ("✓", "holds"),
    UNKNOWN: ("?", "unknown"),
}
COUNTED = {
    HOLDS: ("holds", "hold"),
    CORRECTED: ("holds with a correction", "hold with a correction"),
    FAILS: ("does not hold", "do not hold"),
    UNKNOWN: ("cannot be checked", "cannot be checked"),
}
CITE = (
    'The bqlib developers, "bqlib: convergence of herding, Bayesian quadrature and their '
    'relatives", version {version}'
)
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
    "rate a": "Rate a",
    "lead over i.i.d.": "Lead over i.i.d.",
}
BEST = (
    "The rule with the smallest MMD at the largest n, or at the end of its curve. MMDs and leads "
    "are geometric means over the seeds; figures and other tables have medians. A lead is how many "
    "times as large the MMD of the other rule is, over the seeds that both have, with a 95 % "
    "interval if these are at least 5. It is certain where this interval lies above 1. The rate is "
    "a of n^-a in the first window, or (slope) the mean slope of a curve that is not shown to be a "
    "power law. Where length-scales share a row, numbers go from the smallest to the largest."
)
PROFILE = (
    "How much each rule solves: the share of all problems, levels of the MMD and seeds that it "
    "reaches with n/d points for each dimension, and with all that it has. Problems to which it "
    "does not apply, and failed trials, count as unsolved. Wins and losses are means over the "
    "other rules: the shares on which it needs fewer or more points, of the problems to which both "
    "apply."
)
KNOWN = ("algorithm", "weights", "cost", "guarantee", "reference")  # of Table 1; all else measured
TABLE_1 = (
    "Our measurements. CPU time is that of the largest N, memory that of half the largest N; the "
    "powers say how the time grows with N points and M candidates. The rate is a in MMD ~ n^-a. "
    "MMDs are geometric means over the seeds."
)
TABLE_1_KNOWN = (
    "Known before: costs for N points from one pool of M candidates, and guarantees on the MMD."
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
    "holds, or there are fewer than 5 seeds, which allow no test. Faster than 1/n is a one-sided "
    "test."
)
FAILED = "Failed trials, with the reason."
ENDED = (
    "These trials succeeded, but their curves stop before the largest n: double precision cannot "
    "separate further points. The height of a kernel in the reasons is the largest k(x, x)."
)
TRIALS = (
    "Time per trial on its worker, while other trials ran beside it: no measure of an algorithm. "
    "The study cost measures these one at a time."
)
JOBS = (
    "Time and memory per Snakemake job. The times of pieces and studies include waiting for a "
    "worker."
)
MAIN_FIGURE = "mmd"  # of a paper: among its findings
LARGE = 300_000  # bytes of a figure; reports of many cells should stay below 5 MB
COLOURS = 128
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
    # In threads, as Pillow lets others run while it reduces the colours of a large picture.
    with ThreadPoolExecutor(len(os.sched_getaffinity(0))) as pool:
        drawn = list(pool.map(lambda name: _picture(at, figure_named(name)), figures))
    written = report(summary(at.folder), drawn, judged, _made())
    write_atomically(at.report, written.encode())


def _made():
    """When and where the report is written, in words."""
    now = datetime.now(UTC)
    return (
        f"{now.day} {now:%B %Y, %H:%M} UTC, on {platform.system()} {platform.machine()} with "
        f"{os.cpu_count()} processors"
    )


def _picture(at, figure):
    """The smaller of a figure's two files, as many points make a large SVG.

    If both are large, the picture with fewer colours: the link to the file leads to all details.
    """
    vector = at.figure(figure.name, "svg").read_bytes()
    pixels = at.figure(figure.name, "png").read_bytes()
    width = re.search(rb'width="([\d.]+)pt"', vector)
    kind, image = min(("svg+xml", vector), ("png", pixels), key=lambda file: len(file[1]))
    if len(image) > LARGE:
        kind, image = min((kind, image), ("png", _fewer_colours(pixels)), key=lambda f: len(f[1]))
    return Picture(figure, kind, image, round(float(width[1]) * 4 / 3) if width else WIDTH)


def _fewer_colours(pixels):
    with Image.open(io.BytesIO(pixels)) as image:
        small = image.convert("RGB").quantize(COLOURS)
    written = io.BytesIO()
    small.save(written, "PNG", optimize=True)
    return written.getvalue()


def report(about, figures, judged=None, made=""):
    """The report of an experiment.

    Parameters
    ----------
    about : dict
        As :func:`bqlib.report.summary.summary` gives it.
    figures : list of Picture
    judged : dict, optional
        Content of ``claims.json``.
    made : str
        When and where the report is written.

    Returns
    -------
    str
        HTML.
    """
    judged = judged or {}
    papers = _papers(judged)
    shown = _figures(figures, FIRST in papers)
    main = [figure for figure in shown if papers and figure["name"] == MAIN_FIGURE]
    shown = [figure for figure in shown if figure not in main]
    sections = [
        Section("findings", "Which rule, where", _findings(about, judged, main), "findings"),
        Section("claims", "Claims of the paper", _claims(judged), "claims"),
        Section("expectations", "Reproduction checks", _expectations(judged), "expectations"),
        Section("table-1", "Table 1 of the paper, measured and extended", _table_1(judged)),
        Section("figures", "Figures", shown, "figures"),
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
    return template("report.html").render(
        style=STYLE.read_text(encoding="utf-8"),
        script=SCRIPT.read_text(encoding="utf-8"),
        about=about,
        papers=[PAPERS[key].reference for key in papers],
        sentences=_sentences(about, judged),
        made=_facts(about, made),
        cite=CITE.format(version=about["versions"].get("bqlib_version", "-")),
        labels=[(_words(name), ", ".join(map(_text, of))) for name, of in about["labels"].items()],
        sections=sections,
        version=about["versions"].get("bqlib_version", ""),
    )


def template(name):
    """A template, which escapes all that it shows."""
    environment = Environment(
        loader=FileSystemLoader(TEMPLATES),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
        keep_trailing_newline=True,
    )
    environment.filters["in_parts"] = in_parts
    return environment.get_template(name)


def _papers(judged):
    """Keys of the papers whose claims are judged; older versions named none, as there was one."""
    if not judged.get("claims") and not judged.get("papers"):
        return []
    return [key for key in judged.get("papers", (FIRST,)) if key in PAPERS]


def _sentences(about, judged):
    """The findings in sentences: how many claims hold, the best rule, the paper's main results."""
    claims = judged.get("claims", ())
    said = []
    if claims:
        counts = [(sum(c["verdict"] == verdict for c in claims), verdict) for verdict in COUNTED]
        words = [f"{n} {COUNTED[verdict][n != 1]}" for n, verdict in counts if n]
        plural = "claim" if len(claims) == 1 else "claims"
        said.append(f"Of {len(claims)} {plural} of the paper, {_listed(words)}.")
    said.append(about["headline"])
    main = {name for key in _papers(judged) for name in PAPERS[key].findings}
    results = [c for c in claims if c.get("name") in main and c["verdict"] != UNKNOWN]
    if results:
        found = [f"{c['claim']}: {c['measured']} ({c['verdict']})" for c in results]
        said.append(f"{'. '.join(found)}.")
    return [sentence for sentence in said if sentence]


def _listed(words):
    return words[0] if len(words) == 1 else f"{', '.join(words[:-1])} and {words[-1]}"


def _facts(about, made):
    """When and where the results were made, as pairs of names and values."""
    commit = about["versions"].get("git_commit", "")
    time = duration(3600 * about["hours"])
    return [
        (name, value)
        for name, value in (
            ("Report written", made),
            ("Time of all trials", time if about["hours"] else ""),
            ("Commit", commit),
        )
        if value
    ]


def _findings(about, judged, main):
    claims = [claim for claim in _rows_of_claims(judged) if claim["verdict"] == FAILS]
    return {
        "tables": _tables((about["best"], BEST), (about["profile"], PROFILE)),
        "main": main,
        "failing": claims,
    }


def _claims(judged):
    """The claims by verdict: those that do not hold first."""
    rows = _rows_of_claims(judged)
    groups = [
        {"verdict": verdict, "mark": mark, "kind": kind, "rows": own}
        for verdict, (mark, kind) in MARKS.items()
        if (own := [row for row in rows if row["verdict"] == verdict])
    ]
    return (
        {"groups": groups, "count": len(rows), "verdicts": _counts(judged["verdicts"])}
        if rows
        else None
    )


def _rows_of_claims(judged):
    rows, papers = [], judged.get("papers", {})
    for i, claim in enumerate(judged.get("claims", ())):
        mark, kind = MARKS[claim["verdict"]]
        where = claim["where"] + (f", {papers[claim['paper']]}" if len(papers) > 1 else "")
        paper = PAPERS.get(claim.get("paper", FIRST))
        rows.append(
            {"rule": ""}
            | claim
            | {
                "mark": mark,
                "kind": kind,
                "where": where,
                "anchor": f"claim-{i + 1}",
                "erratum": paper.errata.get(claim.get("name"), "") if paper else "",
            }
        )
    return rows


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


def _table_1(judged):
    """What is measured, and what was known: beside each other they are wider than a page."""
    rows = judged.get("table_1") or []
    known = [{key: row[key] for key in KNOWN if key in row} for row in rows]
    measured = [
        {"algorithm": row["algorithm"]}
        | {key: value for key, value in row.items() if key.startswith("mmd_")}
        | {key: value for key, value in row.items() if key not in KNOWN}
        for row in rows
    ]
    return _tables((measured, TABLE_1), ([row for row in known if len(row) > 1], TABLE_1_KNOWN))


def _figures(pictures, of_the_paper):
    """What is shown of each figure; those of the paper first and with their number, if wanted."""
    shown = [
        {
            "name": picture.figure.name,
            "heading": _title(picture.figure),
            "caption": picture.figure.caption,
            "number": picture.figure.number if of_the_paper else None,
            "width": picture.width,
            "address": _address(picture),
        }
        for picture in pictures
    ]
    return sorted(shown, key=lambda figure: figure["number"] or math.inf)


def _title(figure):
    """The heading of a figure, or of a further page of it."""
    page = f", page {figure.page}" if figure.page > 1 else ""
    return f"{_words(figure.drawn_by)}{page}"


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
    symbol = words[1:2] in (" ", "/")  # as in "n = 10" and "n/d = 10"
    return words if symbol else words[0].upper() + words[1:]
