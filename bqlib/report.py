"""The report: one HTML file with everything in it, readable without a network."""

import ast
import base64
import json
import re
from html import escape
from pathlib import Path

from bqlib.results.files import write_atomically
from bqlib.summary import summary

# Verdicts have a mark and words beside their colour, a class of report.css.
MARKS = {
    "holds": ("✓", "holds"),
    "holds with correction": ("±", "corrected"),
    "does not hold": ("✗", "fails"),
    "cannot be checked": ("?", "unknown"),
}
MET = {
    True: ("✓", "met", "holds"),
    False: ("✗", "not met", "fails"),
    None: ("?", "not tested", "unknown"),
}
# The paper's own number of a figure, and headings of Table 1.
NUMBERS = {
    "samples": 1,
    "bq_illustration": 2,
    "weight_histogram": 3,
    "weight_sum": 4,
    "mmd": 5,
    "within_model": 6,
    "error_bound": 7,
    "out_of_model": 8,
}
HEADINGS = {
    "cost": "cost, one pool of M",
    "time_n": "CPU time as N to the power",
    "time_m": "and as M to the power",
    "rate": "MMD as n to the power -a, n from 20",
}
WIDTH = 864  # of a figure in pixels, where it says none
LABELS = ("target", "kernel", "lengthscale", "algorithm", "window", "job")


def write_report(results, figures):
    """Write ``report.html`` into a folder of results.

    Parameters
    ----------
    results : path-like
        The experiment's folder, with its curves and figures.
    figures : iterable of str
        Names of the figures. With claims, those of the paper come first, in its order.
    """
    results = Path(results)
    claims = results / "claims.json"
    judged = json.loads(claims.read_text(encoding="utf-8")) if claims.exists() else {}
    drawn = [(name, caption(name), *_smaller(results / "figures" / name)) for name in figures]
    write_atomically(results / "report.html", report(summary(results), drawn, judged).encode())


def caption(name):
    """The first line that the function of a figure says of it; read without loading matplotlib."""
    source = Path(__file__).with_name("figures") / f"{name}.py"
    tree = ast.parse(source.read_text(encoding="utf-8"))
    draw = next(x for x in tree.body if isinstance(x, ast.FunctionDef) and x.name == name)
    return ast.get_docstring(draw).splitlines()[0]


def _smaller(path):
    """Type and bytes of the smaller of a figure's two files: many points make a large SVG."""
    files = {"svg+xml": path.with_suffix(".svg"), "png": path.with_suffix(".png")}
    images = {kind: file.read_bytes() for kind, file in files.items()}
    kind = min(images, key=lambda kind: len(images[kind]))
    width = re.search(rb'width="([\d.]+)pt"', images["svg+xml"])
    return kind, images[kind], round(float(width[1]) * 4 / 3) if width else WIDTH


def report(about, figures, judged=None):
    """The report of an experiment.

    Parameters
    ----------
    about : dict
        As :func:`bqlib.summary.summary` gives it.
    figures : list of (str, str, str, bytes, int)
        Name, caption, type of image, image and width in pixels of each.
    judged : dict, optional
        Content of ``claims.json``.

    Returns
    -------
    str
        HTML.
    """
    judged = judged or {}
    numbers = NUMBERS if judged else {}
    figures = sorted(figures, key=lambda figure: numbers.get(figure[0], len(NUMBERS) + 1))
    # (name, heading, content) of each section; one without content is left out.
    sections = [
        ("claims", "Claims of the paper", _claims(judged.get("claims"), judged.get("verdicts"))),
        (
            "expectations",
            "What a faithful reproduction must show",
            _expectations(judged.get("expectations")),
        ),
        (
            "table-1",
            "Table 1, measured and extended",
            _rows(
                judged.get("table_1"), "Costs and rates: what is known, and what was measured here."
            ),
        ),
        ("figures", "Figures", "\n".join(_figure(*figure, numbers) for figure in figures)),
        (
            "mmd-table",
            "MMD in numbers",
            _rows(about["mmd"], "MMD, median over the seeds; - where a curve ends before."),
        ),
        ("rates", "Rates", _rows(about["rates"], _RATES)),
        ("failed", "Failed trials", _failed(about)),
        ("ended", "Curves that end early", _rows(about["ended"], _ENDED)),
        ("timing", "Timing", _timing(about)),
        ("configuration", "Configuration", _configuration(about["config"])),
        (
            "versions",
            "Versions",
            _facts({n.removesuffix("_version"): value for n, value in about["versions"].items()}),
        ),
        ("reading", "Reading and checking these results", _reading(about["results"])),
    ]
    sections = [section for section in sections if section[2]]
    if about["trials"]["failed"]:
        sections.sort(key=lambda section: section[0] != "failed")  # before all else
    title = escape(about["title"])
    style = Path(__file__).with_suffix(".css").read_text(encoding="utf-8")
    body = "\n".join(
        f'<section aria-labelledby="{name}">\n<h2 id="{name}">{heading}</h2>\n{content}\n</section>'
        for name, heading, content in sections
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta name="viewport" content="width=device-width, initial-scale=1">
<title>{title}</title>
<style>
{style}</style>
</head>
<body>
<a class="skip" href="#content">Skip to the content</a>
<header>
<h1>{title}</h1>
{_overview(about)}
</header>
<nav aria-label="Contents">
{_contents(sections, figures)}
</nav>
<main id="content">
{body}
</main>
<footer>Made by bqlib {escape(str(about["versions"].get("bqlib_version", "")))}.</footer>
</body>
</html>
"""


_RATES = (
    "Convergence rates of the MMD: a, where it falls as n^-a, and b, where its logarithm falls as "
    "A - c n^b. Intervals are of 95 % and from a bootstrap over seeds. The best model wins in 95 % "
    "of the seeds, or it is undecided; faster than 1/n is a one-sided test."
)
_ENDED = "Trials that are well, whose curves end before the largest n because float64 does."


def _overview(about):
    trials, labels = about["trials"], about["labels"]
    texts = [f"{trials['ok']} of {trials['all']} trials ran"]
    for key, word in (("failed", "failed"), ("missing", "are missing"), ("ended", "ended early")):
        if trials[key]:
            place = key if key in ("failed", "ended") else None
            text = f"{trials[key]} {word}"
            texts.append(f'<a href="#{place}">{text}</a>' if place else text)
    facts = {name: ", ".join(_text(label) for label in values) for name, values in labels.items()}
    facts = {_words(name): escape(value) for name, value in facts.items()}
    facts |= {
        "Points": f"1 to {about['n']}, from {about['candidates']} candidates",
        "Seeds": about["seeds"],
        "Trials": ", ".join(texts),
    }
    if about["verdicts"]:
        facts["Claims"] = f'<a href="#claims">{escape(_counts(about["verdicts"]))}</a>'
    return _description(facts)


def _contents(sections, figures):
    lines = ["<ol>"]
    for name, heading, _ in sections:
        inner = ""
        if name == "figures":
            links = "".join(f'<li><a href="#{f[0]}">{_words(f[0])}</a></li>' for f in figures)
            inner = f"<ol>{links}</ol>"
        lines.append(f'<li><a href="#{name}">{heading}</a>{inner}</li>')
    return "\n".join([*lines, "</ol>"])


def _counts(verdicts):
    return ", ".join(f"{verdict}: {count}" for verdict, count in verdicts.items())


def _claims(claims, verdicts):
    if not claims:
        return ""
    rows = [
        {
            "verdict": _marked(
                MARKS[claim["verdict"]][0], claim["verdict"], MARKS[claim["verdict"]][1]
            ),
            "claim": f"{escape(claim['claim'])} <i>({escape(claim['where'])})</i>",
            "measured": escape(claim["measured"]),
            "why": escape(claim["why"]),
        }
        for claim in claims
    ]
    table = _table(rows, "What the paper claims, and what we measured.", "stack")
    return f"<p>{len(claims)} claims; {_counts(verdicts)}.</p>\n{table}"


def _expectations(expectations):
    rows = [
        {
            "result": _marked(*MET[expectation["met"]]),
            "expected": escape(expectation["expected"]),
            "found": escape(expectation["measured"]),
        }
        for expectation in expectations or ()
    ]
    return _table(rows, "Numbers that are known beforehand, and what was found.", "stack")


def _marked(mark, words, kind):
    return f'<span class="verdict {kind}"><span aria-hidden="true">{mark}</span> {words}</span>'


def _failed(about):
    trials = about["trials"]
    if not trials["failed"]:
        return f"<p>None of {trials['all']} trials failed.</p>"
    return (
        f"<p>{trials['failed']} of {trials['all']} trials failed. Their curves are NaN in the "
        "results, and they count in no median, rate or figure. To try them again: "
        f"<code>bqlib retry {escape(about['results'])}</code>, then the same run again.</p>\n"
        + _rows(about["failed"], "Trials that failed, and why.")
    )


def _timing(about):
    return "\n".join(
        [
            _rows(about["seconds"], "Seconds of the trials on their workers."),
            _rows(
                about["jobs"],
                "Seconds and memory of Snakemake's jobs. Those of pieces and studies wait for the "
                "workers, side by side.",
            ),
        ]
    ).strip()


def _configuration(config):
    whole = escape(json.dumps(config, indent=1, ensure_ascii=False))
    short = {
        name: json.dumps(value, ensure_ascii=False)
        for name, value in config.items()
        if len(json.dumps(value)) < 200
    }
    whole = f"<details><summary>All of it, as JSON</summary>\n<pre>{whole}</pre></details>"
    return f"{_facts(short)}\n{whole}"


def _reading(results):
    code = f"""import bqlib

curves = bqlib.open_results("{results}")
print(curves.mmd.median("seed"))"""
    shell = f"""bqlib show {results}
bqlib check {results}      # compares every file with manifest-sha256.txt"""
    return f"<pre>{escape(code)}</pre>\n<pre>{escape(shell)}</pre>"


def _facts(values):
    return _description({escape(name): escape(str(value)) for name, value in values.items()})


def _description(values):
    parts = [f"<dt>{name}</dt><dd>{value}</dd>" for name, value in values.items()]
    return "\n".join(['<dl class="facts">', *parts, "</dl>"])


def _rows(rows, caption):
    """A table of plain values; nothing where there are no rows."""
    cells = [{name: escape(_text(value)) for name, value in row.items()} for row in rows or ()]
    return _table(cells, caption)


def _table(rows, caption, kind=""):
    """A table of HTML. On narrow screens it scrolls, or its cells stack where `kind` is "stack".

    Roles are given in words, as stacked cells lose those that tables have by themselves.
    """
    if not rows:
        return ""
    heads = {name: HEADINGS.get(name, _words(name)) for name in rows[0]}
    head = "".join(f'<th scope="col" role="columnheader">{text}</th>' for text in heads.values())
    lines = []
    for row in rows:
        cells = [_cell(name, value, heads[name]) for name, value in row.items()]
        lines.append(f'<tr role="row">{"".join(cells)}</tr>')
    return "\n".join(
        [
            f'<div class="scroll" role="region" aria-label="{escape(caption)}" tabindex="0">',
            f'<table role="table" class="{kind}"><caption>{escape(caption)}</caption>',
            f'<thead role="rowgroup"><tr role="row">{head}</tr></thead>',
            '<tbody role="rowgroup">',
            *lines,
            "</tbody></table></div>",
        ]
    )


def _cell(name, value, head):
    if name in LABELS:
        return f'<th scope="row" role="rowheader">{value}</th>'
    kind = ' class="long"' if len(value) > 50 else ""  # may be broken into lines
    return f'<td role="cell"{kind} data-head="{head}">{value}</td>'


def _figure(name, caption, kind, image, width, numbers):
    number = f" Figure {numbers[name]} of the paper." if name in numbers else ""
    text = escape(caption)
    data = base64.b64encode(image).decode()
    return (
        f'<h3 id="{name}">{_words(name)}</h3>\n<figure>\n'
        f'<div class="scroll" role="region" aria-label="{_words(name)}" tabindex="0">'
        f'<img alt="{text}" width="{width}" src="data:image/{kind};base64,{data}"></div>\n'
        f"<figcaption>{text}{number} File: figures/{name}.svg</figcaption>\n</figure>"
    )


def _text(value):
    return f"{value:.12g}" if isinstance(value, float) else str(value)


def _words(name):
    words = name.replace("_", " ").replace("lengthscale", "length-scale")
    words = words.replace("mmd", "MMD").replace("bq ", "BQ ").replace("sha256", "SHA-256")
    symbol = words[1:2] == " "  # as in "n = 10"
    return escape(words if symbol else words[0].upper() + words[1:])
